//! A way to servers that breaks when a test wants it to.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

/// Bytes that are carried at a time.
const PIECE: usize = 16 << 10;

/// An address that leads each connection to one of its targets, to the next one that answers. Dropping it cuts all
/// connections.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// How often all connections were cut.
    cuts: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// The one that is tried next comes first.
    targets: VecDeque<SocketAddr>,
    /// Bytes that callers have got.
    carried: u64,
    /// How many they have at the next cuts.
    breaks: VecDeque<u64>,
}

impl Link {
    /// A way to these targets.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn to(targets: impl IntoIterator<Item = SocketAddr>) -> io::Result<Self> {
        Self::at("127.0.0.1:0", targets).await
    }

    /// One that begins at an address.
    ///
    /// # Errors
    /// If it cannot.
    pub async fn at(begin: &str, targets: impl IntoIterator<Item = SocketAddr>) -> io::Result<Self> {
        let listener = TcpListener::bind(begin).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = AbortOnDropHandle::new(tokio::spawn(accept(listener, Arc::clone(&shared))));
        let link = Self { address, shared, _accepting: accepting };
        link.aim(targets);
        Ok(link)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL behind it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Leads new connections to these targets instead.
    pub fn aim(&self, targets: impl IntoIterator<Item = SocketAddr>) {
        self.shared.lock().targets = targets.into_iter().collect();
    }

    /// Cuts all connections; new ones are carried.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Cuts all connections whenever callers have got so many bytes in all, within an event or not.
    #[must_use]
    pub fn breaking_at(self, bytes: impl IntoIterator<Item = u64>) -> Self {
        self.shared.lock().breaks = bytes.into_iter().collect();
        self
    }

    /// How often it was cut.
    pub fn cuts(&self) -> u64 {
        *self.shared.cuts.borrow()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((caller, _)) = accepted {
                let shared = Arc::clone(&shared);
                // How a connection ended is for its two ends to say.
                connections.spawn(async move { drop(shared.carry(caller).await) });
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    async fn carry(&self, caller: TcpStream) -> io::Result<()> {
        let mut cuts = self.cuts.subscribe();
        let (from_server, mut to_server) = self.connect().await?.into_split();
        let (mut from_caller, to_caller) = caller.into_split();
        tokio::select! {
            ended = tokio::io::copy(&mut from_caller, &mut to_server) => ended.map(drop),
            ended = self.answer(from_server, to_caller) => ended,
            _ = cuts.changed() => Ok(()),
        }
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let targets = self.lock().targets.len();
        for _ in 0..targets {
            let next = {
                let mut state = self.lock();
                state.targets.rotate_left(1);
                state.targets.back().copied()
            };
            if let Some(target) = next
                && let Ok(server) = TcpStream::connect(target).await
            {
                return Ok(server);
            }
        }
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    async fn answer(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let read = from.read(&mut piece).await?;
            let (carried, breaks) = self.lock().carry(read);
            to.write_all(&piece[..carried]).await?;
            if breaks {
                self.cut();
            }
            if breaks || read == 0 {
                return Ok(());
            }
        }
    }
}

impl State {
    /// How many of so many bytes are carried, and whether the connections are cut then.
    fn carry(&mut self, bytes: usize) -> (usize, bool) {
        let room = self.breaks.front().map(|at| at.saturating_sub(self.carried));
        let carried = room.and_then(|room| usize::try_from(room).ok()).map_or(bytes, |room| bytes.min(room));
        self.carried += carried as u64;
        let breaks = self.breaks.pop_front_if(|at| *at <= self.carried).is_some();
        (carried, breaks)
    }
}
