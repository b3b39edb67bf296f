//! The file of the model list: a YAML map from names to entries.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::ListError;

/// An entry as written.
pub(super) struct Written {
    pub(super) name: String,
    /// Its line in the file; `None` for one that is not from the file.
    pub(super) line: Option<u64>,
    pub(super) members: Map<String, Value>,
}

/// Reads the entries, in the order of the file.
pub(super) fn read(yaml: &str) -> Result<Vec<Written>, ListError> {
    // A snippet of the file in an error could show a key.
    let options = serde_saphyr::options! { with_snippet: false };
    let entries: Option<Entries> = serde_saphyr::from_str_with_options(yaml, options)
        .map_err(|error| ListError::Syntax(error.to_string()))?;
    let entries = entries.map(|entries| entries.0).unwrap_or_default();
    if entries.is_empty() {
        return Err(ListError::Empty);
    }
    Ok(entries)
}

/// A map in the order of the file.
struct Entries(Vec<Written>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from names to models")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Vec::new();
        while let Some((name, entry)) = map.next_entry::<Spanned<String>, Map<String, Value>>()? {
            let line = Some(name.referenced.line());
            entries.push(Written { name: name.value, line, members: entry });
        }
        Ok(Entries(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_file_is_kept() {
        let entries = read("zeta: {model: a/b}\n\nalpha:\n  model: c/d\n").unwrap_or_default();
        let read: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.line)).collect();
        assert_eq!(read, [("zeta", Some(1)), ("alpha", Some(3))]);
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_line_and_without_its_text() {
        for (yaml, line) in [
            ("a: {model: x}\nb: {model: y}\na: {model: z}\n", "line 3"),
            ("- model: secret\n", "line 1"),
            ("a: {model: x}\nb: secret\n", "line 2"),
            ("a: [secret\n", "line"),
        ] {
            let error = read(yaml).err().unwrap().to_string();
            assert!(error.contains(line), "{yaml:?}: {error}");
            assert!(!error.contains("secret"), "{yaml:?}: {error}");
        }
        for empty in ["", "# nothing\n", "{}"] {
            assert!(matches!(read(empty), Err(ListError::Empty)), "{empty:?}");
        }
    }
}
