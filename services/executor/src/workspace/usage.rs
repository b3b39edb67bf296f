//! How much is in a directory.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

/// What each file takes at least, so that empty ones are not free.
const ENTRY: u64 = 512;

/// Bytes that the files below a directory take on the disk, counted no further than just above `enough`.
pub(super) fn of(directory: &Path, enough: u64) -> u64 {
    let mut size = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        // What goes away meanwhile takes nothing.
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            size += about.blocks() * 512 + ENTRY;
            if size > enough {
                return size;
            }
            if about.is_dir() {
                open.push(entry.path());
            }
        }
    }
    size
}
