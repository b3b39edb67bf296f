//! A place where a service is: an address, or one of the machines that share a name.

use std::{fmt, net::SocketAddr};

use tonic::transport::{Channel, Uri};

use crate::{
    address::{self, Error},
    tls,
};

/// Where one process of a service is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    service: String,
    /// One of the addresses of its host.
    at: Option<SocketAddr>,
}

impl Place {
    /// Reads `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.
    ///
    /// # Errors
    /// [`Error::NotAService`] if it is neither.
    pub fn of(service: &str) -> Result<Self, Error> {
        address::endpoint(service)?;
        Ok(Self { service: service.to_owned(), at: None })
    }

    /// The host and port that are to be resolved; `None` if there is nothing to resolve.
    pub fn name(&self) -> Option<(String, u16)> {
        let uri: Uri = self.service.parse().ok()?;
        let host = uri.host()?.trim_matches(['[', ']']).to_owned();
        let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let numeric = host.parse::<std::net::IpAddr>().is_ok();
        (!numeric).then_some((host, uri.port_u16().unwrap_or(usual)))
    }

    /// The service that it is of.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Which one of the machines it is that share the name.
    pub fn address(&self) -> Option<SocketAddr> {
        self.at
    }

    /// One of the machines that share its name.
    #[must_use]
    pub fn at(&self, address: SocketAddr) -> Self {
        Self { service: self.service.clone(), at: Some(address) }
    }

    /// Whether it is one of the machines that share the other's name.
    pub fn is_of(&self, other: &Self) -> bool {
        self.service == other.service
    }

    /// A channel to it. It connects when it is first used, and again when the connection is lost. `client` secures
    /// connections to `https://HOST:PORT`.
    ///
    /// # Errors
    /// [`Error::NotAService`] if the address cannot be read, [`Error::Tls`] if nothing can be secured.
    pub fn channel(&self, client: impl Fn() -> Result<tls::Client, tls::Error>) -> Result<Channel, Error> {
        address::channel_at(&self.service, self.at, client)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            None => f.write_str(&self.service),
            Some(at) => write!(f, "{} at {at}", self.service),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_resolved() {
        let name = |service: &str| Place::of(service).unwrap().name();
        assert_eq!(name("http://executors:50052"), Some(("executors".to_owned(), 50052)));
        assert_eq!(name("http://executors"), Some(("executors".to_owned(), 80)));
        assert_eq!(name("http://10.0.0.1:50052"), None);
        assert_eq!(name("http://[::1]:50052"), None);
        assert_eq!(name("unix:/run/executor.sock"), None);
        assert!(Place::of("executors:50052").is_err());
    }
}
