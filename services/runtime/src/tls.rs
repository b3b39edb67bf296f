//! TLS: what a listener proves and whom it lets in, and whom a client trusts and what it proves.

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{
        CertificateDer, PrivateKeyDer, ServerName,
        pem::{self, PemObject as _},
    },
    server::WebPkiClientVerifier,
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// How long the other side may take to prove who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is not what it should be.
    #[error("cannot read {what} in {path}: {source}")]
    File {
        /// What should be in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: pem::Error,
    },
    /// There is no certificate in a file.
    #[error("there is no certificate in {0}")]
    Empty(PathBuf),
    /// The parts do not fit together.
    #[error("TLS cannot be set up: {0}")]
    Unfit(#[from] rustls::Error),
    /// Certificates of clients cannot be checked.
    #[error("certificates of clients cannot be checked: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// A certificate with those between it and an authority, and its key: PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificates.
    pub certificates: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// The side that listens.
#[derive(Clone)]
pub struct Server(TlsAcceptor);

/// The side that connects.
#[derive(Clone)]
pub struct Client(TlsConnector);

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Server")
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Server {
    /// Proves an identity. With `clients`, a PEM file of authorities, only clients with a certificate of these get in.
    ///
    /// # Errors
    /// If a file cannot be read, or the parts do not fit together.
    pub fn load(identity: &Identity, clients: Option<&Path>) -> Result<Self, Error> {
        let builder =
            ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = match clients {
            Some(path) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots(path)?.into(), provider());
                builder.with_client_cert_verifier(verifier.build()?)
            }
            None => builder.with_no_client_auth(),
        };
        let (certificates, key) = identity.read()?;
        let mut config = builder.with_single_cert(certificates, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Secures a connection that was accepted.
    ///
    /// # Errors
    /// If the client breaks off, is too slow, or does not prove what it must.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<Secured> {
        let secured =
            timeout(HANDSHAKE, self.0.accept(stream)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        Ok(Secured(secured.into()))
    }
}

impl Client {
    /// Trusts the authorities of a PEM file, or else those of this machine, and proves an identity to whoever asks.
    ///
    /// # Errors
    /// If a file cannot be read, or the parts do not fit together.
    pub fn load(authorities: Option<&Path>, identity: Option<&Identity>) -> Result<Self, Error> {
        let builder =
            ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = match authorities {
            Some(path) => builder.with_root_certificates(roots(path)?),
            None => builder.with_platform_verifier()?,
        };
        let mut config = match identity.map(Identity::read).transpose()? {
            Some((certificates, key)) => builder.with_client_auth_cert(certificates, key)?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Secures a connection to a host that was made.
    ///
    /// # Errors
    /// If the host breaks off, is too slow, or does not prove that it is that host.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<Secured> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let connecting = self.0.connect(name, stream);
        let secured = timeout(HANDSHAKE, connecting).await.map_err(|_| io::ErrorKind::TimedOut)??;
        Ok(Secured(secured.into()))
    }
}

impl Identity {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
        let key = PrivateKeyDer::from_pem_file(&self.key);
        let key = key.map_err(|source| Error::File { what: "a key", path: self.key.clone(), source })?;
        Ok((certificates(&self.certificates)?, key))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |source| Error::File { what: "certificates", path: path.to_owned(), source };
    let found = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    if found.is_empty() { Err(Error::Empty(path.to_owned())) } else { Ok(found) }
}

/// A connection under TLS.
#[derive(Debug)]
pub struct Secured(TlsStream<TcpStream>);

impl Connected for Secured {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.0.get_ref().0.connect_info()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
