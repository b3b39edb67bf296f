//! A place with everything that an attempt to escape is after: secrets, files, sockets and a process.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::MetadataExt as _,
            net::{SocketAddr, UnixListener},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

/// What attempts are after, and what others must not notice.
pub(crate) struct Arena {
    folder: TempDir,
    /// What another execution would have.
    other: TempDir,
    victim: Child,
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    _by_path: UnixListener,
    abstract_name: String,
    _abstract: UnixListener,
}

/// Every file with what an attempt could change of it.
pub(crate) type State = BTreeMap<PathBuf, (u32, u32, i64, Vec<u8>)>;

const SECRETS: &[&str] = &[
    "kubeconfig",
    "hidden/file",
    "home/.kube/config",
    "home/.ssh/id_ed25519",
    "home/.aws/credentials",
    "home/.docker/config.json",
    "home/.netrc",
    "home/.local/state/sleuth/key",
];

impl Arena {
    pub(crate) fn build() -> Self {
        // Not below `sleuth-…`, which is hidden as a whole.
        let folder = tempfile::Builder::new().prefix("arena-").tempdir().unwrap();
        let other = tempfile::Builder::new().prefix("sleuth-escape-").tempdir().unwrap();
        fs::write(other.path().join("file"), "SECRET").unwrap();
        for secret in SECRETS {
            let path = folder.path().join(secret);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "SECRET").unwrap();
        }
        let home = folder.path().join("home");
        let victim = Command::new("bash")
            .args(["-c", "exec 7<.kube/config; echo ready; exec sleep 1000"])
            .env("PASSWORD", "SECRET")
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let name = format!("arena-{}", victim.id());
        let mut arena = Self {
            _by_path: UnixListener::bind(folder.path().join("socket")).unwrap(),
            folder,
            other,
            victim,
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _abstract: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
            abstract_name: name,
        };
        let mut ready = [0; 6];
        io::Read::read_exact(arena.victim.stdout.as_mut().unwrap(), &mut ready).unwrap();
        arena
    }

    /// The variables that an executor here would have.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let at = |path: &str| Some(self.folder.path().join(path).display().to_string());
        match name {
            "HOME" => at("home"),
            "KUBECONFIG" => at("kubeconfig"),
            // Commands are not told where it is; one that knows must not read it either.
            "SLEUTH_EXECUTOR_PASS_ENV" => Some("KUBECONFIG".to_owned()),
            "SLEUTH_SANDBOX_HIDE" => at("hidden"),
            _ => None,
        }
    }

    /// A script with what it is told.
    pub(crate) fn arguments(&self, script: &str) -> Vec<String> {
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port().to_string();
        [
            "bash".to_owned(),
            "-c".to_owned(),
            script.to_owned(),
            "attempt".to_owned(),
            self.folder.path().display().to_string(),
            self.victim.id().to_string(),
            port(&self.tcp),
            self.udp.local_addr().unwrap().port().to_string(),
            self.abstract_name.clone(),
            self.tcp6.as_ref().map(port).unwrap_or_default(),
        ]
        .into()
    }

    /// Makes anew what an attempt may have taken away.
    pub(crate) fn refresh(&self) -> State {
        let at = |name: &str| self.folder.path().join(name);
        for gone in ["mark", "l", "own", "big", "disk", "mem", "m"] {
            let _ = fs::remove_file(at(gone));
            let _ = fs::remove_dir(at(gone));
        }
        let _ = fs::remove_file(at("file"));
        fs::write(at("file"), "mine").unwrap();
        let _ = fs::create_dir(at("folder"));
        self.state()
    }

    pub(crate) fn state(&self) -> State {
        let mut state = State::new();
        note(self.folder.path(), &mut state);
        note(self.other.path(), &mut state);
        state
    }
}

fn note(folder: &Path, state: &mut State) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let about = entry.metadata().unwrap();
        let content = if about.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
        state.insert(entry.path(), (about.mode(), about.uid(), about.mtime(), content));
        if about.is_dir() {
            note(&entry.path(), state);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}
