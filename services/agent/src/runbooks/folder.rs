//! Runbooks of an operator: `NAME/SKILL.md` files, and what a HolmesGPT `catalog.json` lists.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use serde::Deserialize;

use super::{MOST, MOST_BYTES, Runbook, RunbookError, text};

type Found = (String, Runbook);

/// Reads all runbooks of a folder.
pub(super) fn load(folder: &Path) -> Result<BTreeMap<String, Runbook>, RunbookError> {
    let mut found = skills(folder)?;
    found.extend(listed(folder)?);
    if found.is_empty() {
        return Err(RunbookError::Empty(folder.to_owned()));
    }
    if found.len() > MOST {
        return Err(RunbookError::TooMany(folder.to_owned()));
    }
    let mut by_id = BTreeMap::new();
    for (id, runbook) in found {
        if by_id.insert(id.clone(), runbook).is_some() {
            return Err(RunbookError::Duplicate { folder: folder.to_owned(), id });
        }
    }
    Ok(by_id)
}

fn skills(folder: &Path) -> Result<Vec<Found>, RunbookError> {
    let entries = fs::read_dir(folder).map_err(|source| unreadable(folder, source))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| unreadable(folder, source))?;
        let (name, path) = (entry.file_name(), entry.path().join("SKILL.md"));
        // Kubernetes keeps the files of a mounted ConfigMap in hidden folders, and links to them.
        if name.as_encoded_bytes().starts_with(b".") || !path.is_file() {
            continue;
        }
        let skill = text::parse(&read(&path)?).map_err(|why| malformed(&path, &why))?;
        if *name != *skill.0 {
            return Err(malformed(&path, &format!("its name is `{}`, its folder's is another", skill.0)));
        }
        found.push(skill);
        if found.len() > MOST {
            break;
        }
    }
    Ok(found)
}

#[derive(Deserialize)]
struct Catalog {
    catalog: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    description: String,
    link: String,
}

fn listed(folder: &Path) -> Result<Vec<Found>, RunbookError> {
    let path = folder.join("catalog.json");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let Catalog { catalog } = serde_json::from_str(&read(&path)?).map_err(|why| malformed(&path, &why))?;
    let within = folder.canonicalize().map_err(|source| unreadable(folder, source))?;
    let entries = catalog.into_iter().take(MOST + 1).map(|Entry { id, description, link }| {
        let file = folder.join(link);
        let real = file.canonicalize().map_err(|source| unreadable(&file, source))?;
        if !real.starts_with(&within) || !real.is_file() {
            return Err(malformed(&path, &format!("the link of `{id}` leads to no file in this folder")));
        }
        text::runbook(id, &description, &read(&real)?).map_err(|why| malformed(&file, &why))
    });
    entries.collect()
}

fn read(path: &Path) -> Result<String, RunbookError> {
    let mut bytes = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    opened.map_err(|source| unreadable(path, source))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(malformed(path, &format!("it is larger than {} KiB", MOST_BYTES >> 10)));
    }
    String::from_utf8(bytes).map_err(|_| malformed(path, "it is not UTF-8"))
}

fn unreadable(path: &Path, source: io::Error) -> RunbookError {
    RunbookError::Unreadable { path: path.to_owned(), source }
}

fn malformed(path: &Path, why: &(impl ToString + ?Sized)) -> RunbookError {
    RunbookError::Malformed { path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests;
