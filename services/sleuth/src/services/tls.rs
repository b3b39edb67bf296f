//! TLS, as the flags and the environment say.

use std::path::PathBuf;

use runtime::tls::{Client, Error, Identity, Server};

use crate::{cli::Tls, settings::variable};

/// How connections to this process are secured, if they are.
pub(crate) fn server_tls(flags: &Tls) -> Result<Option<Server>, Error> {
    let identity = identity(flags.tls_cert.clone(), flags.tls_key.clone());
    identity.map(|identity| Server::load(&identity, flags.tls_client_ca.as_deref())).transpose()
}

/// How connections of this process are secured where an address says that they are.
pub(super) fn client_tls() -> Result<Client, Error> {
    let file = |name| variable(name).map(PathBuf::from);
    let identity = identity(file("SLEUTH_TLS_CERT"), file("SLEUTH_TLS_KEY"));
    Client::load(file("SLEUTH_TLS_CA").as_deref(), identity.as_ref())
}

fn identity(certificates: Option<PathBuf>, key: Option<PathBuf>) -> Option<Identity> {
    Some(Identity { certificates: certificates?, key: key? })
}
