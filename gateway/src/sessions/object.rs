//! JSON objects whose fields may be missing.

use serde_json::{Map, Value};
use wire::session::Event;

/// A JSON object that is put together.
#[derive(Debug, Default)]
pub(super) struct Object(Map<String, Value>);

impl Object {
    /// A field.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// A field that is left out if there is nothing to say.
    pub(super) fn may(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// A text that is left out if it is empty.
    pub(super) fn text(self, name: &str, text: String) -> Self {
        self.may(name, Some(text).filter(|text| !text.is_empty()))
    }

    /// A list that is left out if it is empty.
    pub(super) fn list<T>(self, name: &str, items: Vec<T>, each: impl Fn(T) -> Value) -> Self {
        if items.is_empty() { self } else { self.with(name, all(items, each)) }
    }

    /// A field that is JSON already. What is not is left out.
    pub(super) fn json(self, name: &str, json: Option<String>) -> Self {
        let value = json.filter(|json| !json.is_empty()).and_then(|json| serde_json::from_str(&json).ok());
        self.may(name, value.map(|value: Value| value))
    }

    /// The fields of another object.
    pub(super) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

/// A list.
pub(super) fn all<T>(items: Vec<T>, each: impl Fn(T) -> Value) -> Value {
    Value::Array(items.into_iter().map(each).collect())
}

/// The name of an event.
pub(super) fn name(event: &Event) -> &'static str {
    event.data.as_ref().map_or("", wire::session::event::Data::name)
}
