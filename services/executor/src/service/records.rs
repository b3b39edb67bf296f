//! What must be known after a crash: which calls were begun that may change something, and which grants were used.
//!
//! Each is a file of its own: its name says all that counts, and the file system makes it exactly once.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use tokio::{task::spawn_blocking, time::timeout};
use uuid::Uuid;
use wire::executor::Ending;

use super::executions::Key;

/// How long records are kept. A call that comes again after that is a new one.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How long the disk may take.
const DISK_TIME: Duration = Duration::from_secs(30);

/// Asks the disk where blocking is fine. One that hangs is not waited for.
pub(super) async fn on_disk<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<io::Error> + Send + 'static,
{
    match timeout(DISK_TIME, spawn_blocking(work)).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(io::Error::other(error).into()),
        Err(late) => Err(io::Error::from(late).into()),
    }
}

/// Where records are kept.
#[derive(Clone, Debug)]
pub(super) struct Records {
    folder: PathBuf,
}

/// A call that was begun before.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Begun {
    /// When, as far as that could still be written.
    pub(super) at: String,
    /// The executor that began it.
    pub(super) instance: String,
    #[serde(skip)]
    pub(super) ended: Option<Ended>,
}

/// How such a call ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ended {
    pub(super) ending: i32,
    pub(super) exit_code: Option<i32>,
}

/// What came of noting that a call begins.
#[derive(Debug)]
pub(super) enum Beginning {
    /// It is on the disk: the call may begin.
    Noted,
    /// It was begun before and must not begin again.
    Before(Begun),
}

impl Records {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Forgets what is too old to matter.
    pub(super) fn sweep(&self) {
        for kind in ["started", "ended", "grants"] {
            if let Err(error) = forget(&self.folder.join(kind))
                && error.kind() != ErrorKind::NotFound
            {
                tracing::warn!(%error, "old records cannot be removed");
            }
        }
    }

    /// The name of this place: a grant says that it is to be used here, and here it is noted. Where nothing can be
    /// noted it is another one each time, and no grant counts anyway.
    pub(super) fn place(&self) -> String {
        let (path, new) = (self.folder.join("place"), Uuid::new_v4().simple().to_string());
        let known = || fs::read_to_string(&path).ok();
        known().or_else(|| self.settle(&path, &new).ok().and_then(|()| known())).unwrap_or(new)
    }

    fn settle(&self, path: &Path, name: &str) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut file = NamedTempFile::new_in(&self.folder)?;
        file.write_all(name.as_bytes())?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(path) {
            // Another executor was first.
            Err(late) if late.error.kind() != ErrorKind::AlreadyExists => Err(late.error),
            Ok(_) | Err(_) => File::open(&self.folder)?.sync_all(),
        }
    }

    /// Notes that a call begins that may change something. The note is on the disk when this returns.
    pub(super) fn begin(&self, key: &Key, instance: &str) -> io::Result<Beginning> {
        let begun = Begun { at: Timestamp::now().to_string(), instance: instance.to_owned(), ended: None };
        let text = serde_json::to_vec(&begun)?;
        match self.create("started", &name(key), &text) {
            Ok(()) => Ok(Beginning::Noted),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Ok(Beginning::Before(self.begun(key).unwrap_or_default()))
            }
            Err(error) => Err(error),
        }
    }

    /// What is known of a call that was begun.
    pub(super) fn begun(&self, key: &Key) -> Option<Begun> {
        let name = name(key);
        let read = |kind: &str| fs::read(self.folder.join(kind).join(&name)).ok();
        // A crash may have left the file empty: that it is there is enough.
        let begun: Begun = serde_json::from_slice(&read("started")?).unwrap_or_default();
        let ended = read("ended").and_then(|text| serde_json::from_slice(&text).ok());
        Some(Begun { ended, ..begun })
    }

    /// Notes how a call ended that was begun.
    pub(super) fn end(&self, key: &Key, ending: Ending, exit_code: Option<i32>) -> io::Result<()> {
        let text = serde_json::to_vec(&Ended { ending: ending.into(), exit_code })?;
        self.create("ended", &name(key), &text)
    }

    /// Notes that a grant is used. `false` if it was used before.
    pub(super) fn use_grant(&self, grant: &[u8]) -> io::Result<bool> {
        match self.create("grants", &hex(&digest(grant)), b"") {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a file that must not be there, and waits until a crash could not undo it.
    fn create(&self, kind: &str, name: &str, text: &[u8]) -> io::Result<()> {
        let folder = self.folder.join(kind);
        if !folder.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            File::open(&self.folder)?.sync_all()?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
        file.write_all(text)?;
        file.sync_all()?;
        File::open(&folder)?.sync_all()
    }
}

fn forget(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let age = SystemTime::now().duration_since(entry.metadata()?.modified()?);
        if age.is_ok_and(|age| age > KEPT_FOR) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The name of a call's files. Nothing of a caller's id can lead elsewhere.
fn name(key: &Key) -> String {
    hex(&digest(format!("{}\0{}", key.account, key.id).as_bytes()))
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref().to_vec()
}

/// Bytes as text.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_begins_once_and_a_grant_counts_once_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Records::new(folder.path().join("state"));
        let key = |id: &str| Key { account: "a".to_owned(), id: id.to_owned() };
        assert!(matches!(open().begin(&key("x"), "one").unwrap(), Beginning::Noted));
        assert!(open().use_grant(b"grant").unwrap());
        assert!(!open().use_grant(b"grant").unwrap());
        let Beginning::Before(begun) = open().begin(&key("x"), "two").unwrap() else { panic!("begun twice") };
        assert_eq!((begun.instance.as_str(), begun.ended.is_none()), ("one", true));
        open().end(&key("x"), Ending::Exited, Some(3)).unwrap();
        let ended = open().begun(&key("x")).unwrap().ended.unwrap();
        assert_eq!((ended.ending, ended.exit_code), (Ending::Exited.into(), Some(3)));
        assert!(open().begun(&key("../x")).is_none());
        assert_eq!(open().place(), open().place());
        assert_ne!(open().place(), Records::new(folder.path().join("other")).place());
    }

    #[test]
    fn a_note_that_a_crash_left_empty_counts() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::new(folder.path().to_owned());
        let key = Key { account: String::new(), id: "x".to_owned() };
        records.begin(&key, "one").unwrap();
        fs::write(folder.path().join("started").join(name(&key)), "").unwrap();
        assert!(records.begun(&key).is_some());
    }
}
