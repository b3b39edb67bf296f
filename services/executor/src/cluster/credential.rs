//! What the executor shows an API server: a header, a client certificate, or what a program prints.

use std::{fs, io, path::PathBuf, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    exec,
    kubeconfig::{Context, User},
};

/// Why there is no credential.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot read the {what} {}: {error}", path.display())]
    File { what: &'static str, path: PathBuf, error: io::Error },
    #[error("the {0} is not valid")]
    Invalid(&'static str),
    #[error("the auth-provider `{0}` is not supported; use an exec plugin")]
    Provider(String),
    #[error(transparent)]
    Exec(#[from] exec::Error),
    #[error("{0}")]
    Unusable(String),
}

/// Where a credential comes from.
#[derive(Debug)]
pub(super) enum Credential {
    Fixed(Identity),
    /// Read at each use: such tokens are short-lived.
    TokenFile(PathBuf, Identity),
    Exec(Box<exec::Plugin>, Identity),
    /// There is none, for this reason.
    Unusable(String),
}

/// What is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Identity {
    pub(super) authorization: Option<HeaderValue>,
    /// Certificate chain and key, as PEM.
    pub(super) certificate: Option<Arc<SecretString>>,
}

impl Credential {
    /// Of what a user of a kubeconfig has, takes what kubectl would take.
    pub(super) fn new(context: &Context) -> Result<Self, Error> {
        let user = &context.user;
        let mut own = Identity { authorization: None, certificate: certificate(user)? };
        if let Some(token) = user.token.as_ref().filter(|token| !token.expose_secret().is_empty()) {
            own.authorization = Some(bearer(token.expose_secret())?);
        } else if let Some(path) = &user.token_file {
            return Ok(Self::TokenFile(path.clone(), own));
        } else if let Some(name) = &user.username {
            let password = user.password.as_ref().map(SecretString::expose_secret).unwrap_or_default();
            own.authorization = Some(basic(name, password)?);
        } else if let Some(plugin) = &user.exec {
            return Ok(Self::Exec(Box::new(exec::Plugin::new(plugin, &context.cluster)?), own));
        } else if let Some(provider) = &user.auth_provider {
            return Err(Error::Provider(provider.name.clone()));
        }
        Ok(Self::Fixed(own))
    }

    /// What to show now.
    pub(super) async fn identity(&self) -> Result<Identity, Error> {
        match self {
            Self::Fixed(identity) => Ok(identity.clone()),
            Self::TokenFile(path, own) => {
                let read = tokio::fs::read_to_string(path).await;
                let token =
                    read.map_err(|error| Error::File { what: "token file", path: path.clone(), error })?;
                Ok(Identity { authorization: Some(bearer(token.trim())?), ..own.clone() })
            }
            Self::Exec(plugin, own) => {
                let printed = plugin.identity().await?;
                Ok(Identity {
                    authorization: printed.authorization,
                    certificate: printed.certificate.or_else(|| own.certificate.clone()),
                })
            }
            Self::Unusable(why) => Err(Error::Unusable(why.clone())),
        }
    }

    /// The API server does not know what was shown.
    pub(super) async fn was_refused(&self) {
        match self {
            Self::Exec(plugin, _) => plugin.forget().await,
            Self::Fixed(_) | Self::TokenFile(..) | Self::Unusable(_) => {}
        }
    }
}

/// A header with a bearer token.
pub(super) fn bearer(token: &str) -> Result<HeaderValue, Error> {
    sensitive(&format!("Bearer {token}"), "token")
}

fn basic(name: &str, password: &str) -> Result<HeaderValue, Error> {
    sensitive(&format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}"))), "user name")
}

fn sensitive(text: &str, what: &'static str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text).map_err(|_| Error::Invalid(what))?;
    value.set_sensitive(true);
    Ok(value)
}

fn certificate(user: &User) -> Result<Option<Arc<SecretString>>, Error> {
    let chain =
        pem(user.client_certificate_data.as_deref(), user.client_certificate.as_ref(), "client certificate")?;
    let key = user.client_key_data.as_ref().map(SecretString::expose_secret);
    let key = pem(key, user.client_key.as_ref(), "client key")?;
    match (chain, key) {
        (Some(chain), Some(key)) => Ok(Some(Arc::new(joined(&chain, &key)?))),
        (Some(_), None) => Err(Error::Invalid("client key")),
        (None, _) => Ok(None),
    }
}

/// A certificate chain with its key.
pub(super) fn joined(chain: &[u8], key: &[u8]) -> Result<SecretString, Error> {
    let text = String::from_utf8([chain, b"\n", key].concat());
    Ok(text.map_err(|_| Error::Invalid("client certificate"))?.into())
}

/// What is given in place, or else in a file.
pub(super) fn pem(
    data: Option<&str>,
    path: Option<&PathBuf>,
    what: &'static str,
) -> Result<Option<Vec<u8>>, Error> {
    match (data.filter(|data| !data.is_empty()), path) {
        (Some(data), _) => {
            let data: String = data.split_ascii_whitespace().collect();
            BASE64_STANDARD.decode(data).map(Some).map_err(|_| Error::Invalid(what))
        }
        (None, Some(path)) => {
            let read = fs::read(path);
            read.map(Some).map_err(|error| Error::File { what, path: path.clone(), error })
        }
        (None, None) => Ok(None),
    }
}
