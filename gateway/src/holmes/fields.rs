//! The fields of a body, checked one by one, so that a client learns of all its mistakes at once. Where a value is
//! wrong, the error is noted and an empty one goes on.

use domain::Message;
use http::StatusCode;
use serde_json::value::RawValue;

use crate::problem::Problem;

use super::{
    history,
    invalid::{self, Errors, Kind, Loc},
    marks,
    raw::{self, Members, Type},
};

const HISTORY: &str = "conversation_history";

/// A body that is looked through.
pub(super) struct Fields<'a> {
    whole: &'a RawValue,
    members: Members<'a>,
    pub(super) errors: Errors,
}

impl<'a> Fields<'a> {
    /// Takes a body apart.
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        let text = std::str::from_utf8(body)
            .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "The body is not valid UTF-8"))?;
        if text.is_empty() {
            return Err(invalid::only(Kind::Missing, &[], RawValue::NULL));
        }
        let whole: &RawValue = serde_json::from_str(text).map_err(|error| invalid::not_json(text, &error))?;
        let members = match Type::of(whole) {
            Type::Object => serde_json::from_str(text).map_err(|error| invalid::not_json(text, &error))?,
            Type::Null => return Err(invalid::only(Kind::Missing, &[], whole)),
            Type::Array | Type::String | Type::Bool | Type::Number => {
                return Err(invalid::only(Kind::Object, &[], whole));
            }
        };
        Ok(Self { whole, members, errors: Errors::default() })
    }

    /// The answer, if anything is wrong.
    pub(super) fn finish(self) -> Result<(), Problem> {
        self.errors.into_result()
    }

    /// A member that is neither missing nor null.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members.get(name).copied().filter(|value| Type::of(value) != Type::Null)
    }

    /// A member that may not be missing.
    fn required(&mut self, name: &'static str) -> Option<&'a RawValue> {
        let value = self.members.get(name).copied();
        if value.is_none() {
            self.errors.add(Kind::Missing, &[Loc::Key(name)], self.whole);
        }
        value
    }

    /// The original checks this before anything else, and then reports nothing else.
    pub(super) fn first_role(&mut self) -> Result<(), Problem> {
        let items = self.get(HISTORY).and_then(raw::items).unwrap_or_default();
        let Some(first) = items.first().and_then(|item| raw::members(item)) else { return Ok(()) };
        if first.get("role").is_some_and(|role| role.get() == "\"system\"") {
            return Ok(());
        }
        let why = "The first item in conversation_history must contain 'role': 'system'";
        let mut errors = Errors::default();
        errors.add_value(why, &[], self.whole);
        errors.into_result()
    }

    pub(super) fn required_string(&mut self, name: &'static str) -> String {
        self.required(name).map(|value| self.text(value, &[Loc::Key(name)])).unwrap_or_default()
    }

    pub(super) fn string(&mut self, name: &'static str) -> Option<String> {
        self.get(name).map(|value| self.text(value, &[Loc::Key(name)]))
    }

    pub(super) fn text(&mut self, value: &RawValue, path: &[Loc]) -> String {
        if Type::of(value) != Type::String {
            self.errors.add(Kind::String, path, value);
            return String::new();
        }
        serde_json::from_str(value.get()).unwrap_or_else(|_| {
            // The syntax is fine: only half a surrogate pair can be the matter.
            self.errors.add(Kind::Unicode, path, value);
            String::new()
        })
    }

    /// The members of a value that must be an object; `kind` says what it is not if it is none.
    pub(super) fn members(&mut self, value: &'a RawValue, kind: Kind, path: &[Loc]) -> Option<Members<'a>> {
        let members = raw::members(value);
        if members.is_none() {
            // The syntax is fine: of an object, only a key with half a surrogate pair can be the matter.
            let kind = if Type::of(value) == Type::Object { Kind::Unicode } else { kind };
            self.errors.add(kind, path, value);
        }
        members
    }

    pub(super) fn required_object(&mut self, name: &'static str) -> Members<'a> {
        let value = self.required(name);
        value.and_then(|value| self.members(value, Kind::Dict, &[Loc::Key(name)])).unwrap_or_default()
    }

    /// Looks through the members of a member, which may not be missing, in the same way.
    pub(super) fn within<T: Default>(&mut self, name: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        let Some(whole) = self.required(name) else { return T::default() };
        let Some(members) = self.members(whole, Kind::Object, &[Loc::Key(name)]) else { return T::default() };
        let mut inner = Self { whole, members, errors: std::mem::take(&mut self.errors) };
        inner.errors.enter(name);
        let read = read(&mut inner);
        self.errors = inner.errors;
        self.errors.leave();
        read
    }

    pub(super) fn list(&mut self, name: &'static str) -> Vec<&'a RawValue> {
        let Some(value) = self.get(name) else { return Vec::new() };
        raw::items(value).unwrap_or_else(|| {
            self.errors.add(Kind::List, &[Loc::Key(name)], value);
            Vec::new()
        })
    }

    pub(super) fn flag(&mut self, name: &'static str, default: bool) -> bool {
        let value = self.members.get(name).copied();
        value.map_or(default, |value| self.boolean(value, &[Loc::Key(name)]))
    }

    /// Pydantic's idea of a boolean.
    pub(super) fn boolean(&mut self, value: &RawValue, path: &[Loc]) -> bool {
        let word = match Type::of(value) {
            Type::Bool | Type::Number => value.get().to_owned(),
            Type::String => self.text(value, path).to_ascii_lowercase(),
            Type::Object | Type::Array | Type::Null => {
                self.errors.add(Kind::Bool, path, value);
                return false;
            }
        };
        match word.as_str() {
            "true" | "1" | "1.0" | "t" | "y" | "yes" | "on" => true,
            "false" | "0" | "0.0" | "f" | "n" | "no" | "off" => false,
            _ => {
                self.errors.add(Kind::BoolParsing, path, value);
                false
            }
        }
    }

    /// What our own answers have marked in the history.
    pub(super) fn marks(&self) -> marks::Incoming {
        self.get(HISTORY).and_then(raw::items).map(|items| marks::Incoming::read(&items)).unwrap_or_default()
    }

    pub(super) fn history(&mut self) -> Vec<Message> {
        let items = self.list(HISTORY);
        let mut messages = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let path = [Loc::Key(HISTORY), Loc::Index(index)];
            if Type::of(item) != Type::Object {
                self.errors.add(Kind::Dict, &path, item);
                continue;
            }
            match history::read(item) {
                Ok(message) => messages.extend(message),
                Err(error) => self.errors.add_value(&error.to_string(), &path, item),
            }
        }
        messages
    }
}
