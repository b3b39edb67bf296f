//! The files of one workspace: nothing outside of it can be reached, by whatever path or link.

use std::{
    collections::HashMap,
    io::{self, ErrorKind, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _},
};
use rustix::fs::OFlags;
use uuid::Uuid;
use wire::executor::WrittenFile;

use super::{
    patch::Change,
    usage,
    view::{self, Range, View},
};

/// The longest file that a patch changes.
const LONGEST: u64 = 16 << 20;
/// Files of which it is known what they were when they were read.
const MOST_SEEN: usize = 10_000;

/// Why a file is not read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0} is outside of the workspace")]
    Outside(String),
    #[error("{0} does not exist")]
    Missing(String),
    #[error("{0} exists already")]
    Exists(String),
    #[error("{0} is not a file")]
    NoFile(String),
    #[error("{0} must be read before it is changed")]
    Unread(String),
    #[error("{0} has changed since it was read: read it again")]
    Stale(String),
    #[error("{0} is not text")]
    Binary(String),
    #[error("{path} is longer than {most} bytes")]
    TooLong { path: String, most: u64 },
    #[error("the lines of hunk {hunk} do not stand in {path}")]
    NotThere { path: String, hunk: usize },
    #[error("the workspace holds more than {0} bytes: delete what is not needed")]
    Full(u64),
    #[error("{path}: {error}")]
    Io { path: String, error: io::Error },
}

/// The files of a workspace.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
    directory: Dir,
    quota: u64,
    /// What files were when they were read, by inode. Locked while files change.
    seen: Mutex<HashMap<u64, Stamp>>,
}

/// A change that was made.
#[derive(Debug)]
pub(crate) struct Done {
    /// It in a line.
    pub(crate) line: String,
    /// The file that it wrote, if it wrote one.
    pub(crate) written: Option<WrittenFile>,
}

impl Done {
    fn wrote(path: &str, bytes: u64, created: bool) -> Self {
        let line = format!("{} {path}", if created { "Added" } else { "Updated" });
        Self { line, written: Some(WrittenFile { path: path.to_owned(), bytes, created }) }
    }
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    size: u64,
}

impl Stamp {
    fn of(about: &Metadata) -> Self {
        Self { modified: (about.mtime(), about.mtime_nsec()), size: about.size() }
    }
}

impl Files {
    pub(super) fn new(root: &Path, quota: u64) -> io::Result<Self> {
        let directory = Dir::open_ambient_dir(root, ambient_authority())?;
        Ok(Self { root: root.to_owned(), directory, quota, seen: Mutex::default() })
    }

    /// A part of a file, as a model sees it.
    pub(crate) fn read(&self, given: &str, range: Range) -> Result<View, Refused> {
        let (file, about) = self.open(&self.inside(given)?, given)?;
        let view = view::of(given, file, range).map_err(|error| failed(given, error))?;
        self.remember(&about);
        view
    }

    /// Makes one change.
    pub(crate) fn change(&self, change: &Change) -> Result<Done, Refused> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Add { path, lines } => {
                let inside = self.inside(path)?;
                let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
                let bytes = self.add(&inside, path, &text, &mut seen)?;
                Ok(Done::wrote(path, bytes, true))
            }
            Change::Delete { path } => {
                let inside = self.inside(path)?;
                let (_, about) = self.open(&inside, path)?;
                check(&seen, &about, path)?;
                self.directory.remove_file(&inside).map_err(|error| failed(path, error))?;
                seen.remove(&about.ino());
                Ok(Done { line: format!("Deleted {path}"), written: None })
            }
            Change::Update { path, hunks } => {
                let inside = self.real(path)?;
                let (file, about) = self.open(&inside, path)?;
                check(&seen, &about, path)?;
                let mut text = text_of(file, path)?;
                for (hunk, number) in hunks.iter().zip(1..) {
                    let not_there = || Refused::NotThere { path: path.clone(), hunk: number };
                    text = hunk.apply(&text).ok_or_else(not_there)?;
                }
                let bytes = self.replace(&inside, path, &text, &about, &mut seen)?;
                Ok(Done::wrote(path, bytes, false))
            }
        }
    }

    fn add(
        &self,
        inside: &Path,
        given: &str,
        text: &str,
        seen: &mut HashMap<u64, Stamp>,
    ) -> Result<u64, Refused> {
        self.check_room()?;
        if let Some(parent) = inside.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.directory.create_dir_all(parent).map_err(|error| failed(given, error))?;
        }
        let about = self.write_new(inside, text).map_err(|error| failed(given, error))?;
        note(seen, &about);
        Ok(about.size())
    }

    /// Puts a new text in the place of a file, at once.
    fn replace(
        &self,
        inside: &Path,
        given: &str,
        text: &str,
        before: &Metadata,
        seen: &mut HashMap<u64, Stamp>,
    ) -> Result<u64, Refused> {
        self.check_room()?;
        let beside = inside.with_file_name(format!(".{}", Uuid::now_v7().simple()));
        let write = || {
            let about = self.write_new(&beside, text)?;
            self.directory.set_permissions(&beside, before.permissions())?;
            self.directory.rename(&beside, &self.directory, inside)?;
            Ok(about)
        };
        let about = write().map_err(|error: io::Error| {
            // It may not be there.
            let _ = self.directory.remove_file(&beside);
            failed(given, error)
        })?;
        seen.remove(&before.ino());
        note(seen, &about);
        Ok(about.size())
    }

    fn write_new(&self, path: &Path, text: &str) -> io::Result<Metadata> {
        let mut file = self.directory.open_with(path, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(text.as_bytes())?;
        file.metadata()
    }

    fn check_room(&self) -> Result<(), Refused> {
        if usage::exceeds(&self.root, self.quota) { Err(Refused::Full(self.quota)) } else { Ok(()) }
    }

    /// Opens a file. A pipe that nobody writes to holds nobody up.
    fn open(&self, inside: &Path, given: &str) -> Result<(File, Metadata), Refused> {
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let file = self.directory.open_with(inside, OpenOptions::new().read(true).custom_flags(flags));
        let file = file.map_err(|error| failed(given, error))?;
        let about = file.metadata().map_err(|error| failed(given, error))?;
        if about.is_file() { Ok((file, about)) } else { Err(Refused::NoFile(given.to_owned())) }
    }

    fn remember(&self, about: &Metadata) {
        note(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner), about);
    }

    /// A path relative to the workspace; one that leads out of it by links fails when it is used.
    fn inside(&self, given: &str) -> Result<PathBuf, Refused> {
        let path = Path::new(given);
        let relative = if path.is_absolute() { path.strip_prefix(&self.root).ok() } else { Some(path) };
        let relative = relative.filter(|path| !path.as_os_str().is_empty());
        relative.map(Path::to_owned).ok_or_else(|| Refused::Outside(given.to_owned()))
    }

    /// The same without links, so that what they lead to is replaced and not they.
    fn real(&self, given: &str) -> Result<PathBuf, Refused> {
        self.directory.canonicalize(self.inside(given)?).map_err(|error| failed(given, error))
    }
}

fn check(seen: &HashMap<u64, Stamp>, about: &Metadata, given: &str) -> Result<(), Refused> {
    match seen.get(&about.ino()) {
        None => Err(Refused::Unread(given.to_owned())),
        Some(stamp) if *stamp != Stamp::of(about) => Err(Refused::Stale(given.to_owned())),
        Some(_) => Ok(()),
    }
}

fn note(seen: &mut HashMap<u64, Stamp>, about: &Metadata) {
    if seen.len() >= MOST_SEEN {
        // They have to be read again.
        seen.clear();
    }
    seen.insert(about.ino(), Stamp::of(about));
}

fn text_of(file: File, given: &str) -> Result<String, Refused> {
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text);
    match read {
        Ok(_) if text.len() as u64 > LONGEST => {
            Err(Refused::TooLong { path: given.to_owned(), most: LONGEST })
        }
        Ok(_) => Ok(text),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(Refused::Binary(given.to_owned())),
        Err(error) => Err(failed(given, error)),
    }
}

fn failed(given: &str, error: io::Error) -> Refused {
    let path = given.to_owned();
    match error.kind() {
        ErrorKind::NotFound => Refused::Missing(path),
        ErrorKind::AlreadyExists => Refused::Exists(path),
        // Only a path that leads out is refused so: the files are the executor's own.
        ErrorKind::PermissionDenied => Refused::Outside(path),
        _ => Refused::Io { path, error },
    }
}

#[cfg(test)]
mod tests;
