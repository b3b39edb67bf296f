//! A way to PostgreSQL that carries everything but `LISTEN`, as poolers of connections do.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};
use tokio_util::task::AbortOnDropHandle;

/// The name of a server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// It ends when this is dropped.
pub(crate) struct Pooler {
    folder: TempDir,
    refused: Arc<AtomicU32>,
    _accepting: AbortOnDropHandle<()>,
}

impl Pooler {
    /// In front of the server with this folder.
    pub(crate) fn of(server: &Path) -> Self {
        let (folder, server) = (TempDir::new().unwrap(), server.join(SOCKET));
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let refused = Arc::new(AtomicU32::new(0));
        let accepting = tokio::spawn(accept(listener, server, Arc::clone(&refused)));
        Self { folder, refused, _accepting: AbortOnDropHandle::new(accepting) }
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How often it did not carry a `LISTEN`.
    pub(crate) fn refused(&self) -> u32 {
        self.refused.load(Ordering::Relaxed)
    }
}

async fn accept(listener: UnixListener, server: PathBuf, refused: Arc<AtomicU32>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((caller, _)) = listener.accept().await {
        let (server, refused) = (server.clone(), Arc::clone(&refused));
        // How a connection ended is for its two ends to say.
        connections.spawn(async move { drop(carry(caller, &server, &refused).await) });
    }
}

async fn carry(caller: UnixStream, server: &Path, refused: &AtomicU32) -> io::Result<()> {
    let (mut from_caller, mut to_caller) = caller.into_split();
    let (mut from_server, mut to_server) = UnixStream::connect(server).await?.into_split();
    let asks = async {
        let mut piece = vec![0; 16 << 10];
        loop {
            let read = from_caller.read(&mut piece).await?;
            let said = &piece[..read];
            if said.windows(6).any(|word| word == b"LISTEN") {
                refused.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            to_server.write_all(said).await?;
            if read == 0 {
                return Ok(());
            }
        }
    };
    tokio::select! {
        ended = asks => ended,
        ended = tokio::io::copy(&mut from_server, &mut to_caller) => ended.map(drop),
    }
}
