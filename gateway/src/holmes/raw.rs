//! JSON values that are looked at without being taken apart, so that they can be given back as they came.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The members of an object. Of equal names the last one counts.
pub(super) type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Object,
    Array,
    String,
    Bool,
    Null,
    Number,
}

impl Type {
    /// The first byte of a value tells.
    pub(super) fn of(value: &RawValue) -> Self {
        match value.get().as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            Some(_) | None => Self::Number,
        }
    }
}

/// The members of an object; `None` for anything else.
pub(super) fn members(value: &RawValue) -> Option<Members<'_>> {
    serde_json::from_str(value.get()).ok()
}

/// Members in the order in which the client sent them.
pub(super) fn in_order(members: Members<'_>) -> Vec<(String, &RawValue)> {
    let mut members: Vec<_> = members.into_iter().collect();
    // All values are parts of one body, so their addresses are in its order.
    members.sort_by_key(|(_, value)| value.get().as_ptr());
    members
}

/// The items of an array; `None` for anything else.
pub(super) fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}
