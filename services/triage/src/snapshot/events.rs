//! Warnings as `kubectl get events` lists them.

use crate::{
    name::{Kind, Name, Object},
    table::Row,
    time::Age,
};

/// A warning.
#[derive(Clone, Debug)]
pub(crate) struct Event<'a> {
    pub(crate) about: Object,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    /// When it was seen last.
    pub(crate) age: Option<Age>,
    pub(crate) row: Row<'a>,
}

impl<'a> Event<'a> {
    pub(super) fn read(row: Row<'a>) -> Option<Self> {
        row.cell("TYPE").filter(|kind| *kind == "Warning")?;
        let (kind, name) = row.cell("OBJECT")?.split_once('/')?;
        let kind = Kind::parse(kind)?;
        let name = Name::parse(name)?;
        let namespace = if kind.is_global() { None } else { super::namespace_of(&row) };
        Some(Self {
            about: Object { kind, namespace, name },
            reason: row.cell("REASON")?,
            message: row.cell("MESSAGE").unwrap_or_default(),
            age: row.cell("LAST SEEN").and_then(|age| Age::parse(age.split_whitespace().next()?)),
            row,
        })
    }

    pub(crate) fn is_recent(&self) -> bool {
        self.age.is_none_or(Age::is_recent)
    }
}
