//! Certificates of a test's own.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use crate::process::Start;

/// A name that the certificates are for, and that nobody resolves.
pub const SHARED: &str = "agents.sleuth.test";

/// An authority, and a certificate for this machine that it has issued.
#[derive(Debug)]
pub struct Papers {
    folder: TempDir,
}

impl Papers {
    /// Those of a new authority: `ca.pem`, `cert.pem` and `key.pem`.
    ///
    /// # Errors
    /// If they cannot be made or written.
    pub fn issue() -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let names = ["localhost", "127.0.0.1", SHARED].map(str::to_owned).to_vec();
        let certificate = CertificateParams::new(names)?.signed_by(&key, &authority)?;
        for (name, text) in
            [("ca.pem", authority.pem()), ("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem())]
        {
            std::fs::write(folder.path().join(name), text)?;
        }
        Ok(Self { folder })
    }

    /// One of the files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A process that has the certificate.
    #[must_use]
    pub fn prove(&self, start: Start) -> Start {
        start.env("SLEUTH_TLS_CERT", self.file("cert.pem")).env("SLEUTH_TLS_KEY", self.file("key.pem"))
    }

    /// A process that trusts the authority.
    #[must_use]
    pub fn trust(&self, start: Start) -> Start {
        start.env("SLEUTH_TLS_CA", self.file("ca.pem"))
    }

    /// A client of HTTP, which proves itself if it is to.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn client(&self, proves: bool) -> anyhow::Result<reqwest::Client> {
        let read = |name| std::fs::read(self.file(name));
        let authority = reqwest::Certificate::from_pem(&read("ca.pem")?)?;
        let mut client = reqwest::Client::builder().tls_certs_only([authority]);
        if proves {
            client = client
                .identity(reqwest::Identity::from_pem(&[read("cert.pem")?, read("key.pem")?].concat())?);
        }
        Ok(client.build()?)
    }
}
