//! The catalogue of runbooks: how to investigate what is known to go wrong. Read once, at the start.

mod builtin;
mod folder;
mod matching;
mod text;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Runbooks that one folder may have.
const MOST: usize = 200;
/// Bytes that one file may have.
const MOST_BYTES: u64 = 64 << 10;

/// All runbooks that models may read, by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runbooks(Arc<BTreeMap<String, Runbook>>);

/// One runbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runbook {
    /// When to read it, in one line.
    pub description: String,
    /// What to do.
    pub text: String,
}

/// Why a folder of runbooks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunbookError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file in it is not what it should be.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// There is nothing in it.
    #[error("{}: no runbook in it; each is a file NAME/SKILL.md, or is listed in catalog.json", .0.display())]
    Empty(PathBuf),
    /// There is too much in it.
    #[error("{}: it has more than {MOST} runbooks", .0.display())]
    TooMany(PathBuf),
    /// Two have one name.
    #[error("{}: two runbooks are called `{id}`", folder.display())]
    Duplicate {
        /// The folder.
        folder: PathBuf,
        /// The name.
        id: String,
    },
}

impl Default for Runbooks {
    /// The ones that come with the program.
    fn default() -> Self {
        Self(Arc::new(builtin::all().collect()))
    }
}

impl Runbooks {
    /// Adds the runbooks of a folder. One with the name of another that is there already replaces it.
    ///
    /// # Errors
    /// If the folder has none, or one that cannot be used.
    pub fn with_folder(mut self, folder: &Path) -> Result<Self, RunbookError> {
        Arc::make_mut(&mut self.0).extend(folder::load(folder)?);
        Ok(self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Runbook> {
        self.0.get(id)
    }

    /// Ids and runbooks, in the order of the ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Runbook)> {
        self.0.iter().map(|(id, runbook)| (id.as_str(), runbook))
    }
}
