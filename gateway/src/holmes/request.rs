//! The body of `POST /api/chat`: checked field by field, so that a client learns of all its mistakes at once.
//! Unknown fields are ignored.

use std::collections::HashMap;

use domain::{Image, Message};
use http::StatusCode;
use serde_json::value::RawValue;
use wire::agent::ChatRequest;

use crate::problem::Problem;

use super::{
    history,
    invalid::{self, Errors, Kind, Loc},
    raw::{self, Members, Type},
};

const HISTORY: &str = "conversation_history";
const IMAGES: &str = "images";
const RESPONSE_FORMAT: &str = "response_format";
const BEHAVIOR_CONTROLS: &str = "behavior_controls";

/// A valid request.
#[derive(Debug)]
pub(super) struct Question {
    /// Whether the answer is streamed.
    pub(super) stream: bool,
    /// The question as the agent takes it.
    pub(super) chat: ChatRequest,
}

/// Reads a body.
pub(super) fn parse(body: &[u8]) -> Result<Question, Problem> {
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
    let mut check = Check { whole, members, errors: Errors::default() };
    check.first_role()?;
    let chat = ChatRequest {
        caller: None,
        question: check.required_string("ask"),
        history: check.history().into_iter().map(Into::into).collect(),
        model: check.string("model").unwrap_or_default(),
        images: check.images().into_iter().map(Into::into).collect(),
        response_format_json: check.response_format(),
        additional_system_prompt: check.string("additional_system_prompt").unwrap_or_default(),
        limits: None,
        behavior_controls: check.behavior_controls(),
        files: Vec::new(),
    };
    let stream = check.stream();
    check.errors.into_result()?;
    Ok(Question { stream, chat })
}

/// A body that is looked through. Where a value is wrong, the error is noted and an empty one goes on.
struct Check<'a> {
    whole: &'a RawValue,
    members: Members<'a>,
    errors: Errors,
}

impl<'a> Check<'a> {
    /// A member that is neither missing nor null.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members.get(name).copied().filter(|value| Type::of(value) != Type::Null)
    }

    /// The original checks this before anything else, and then reports nothing else.
    fn first_role(&mut self) -> Result<(), Problem> {
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

    fn required_string(&mut self, name: &'static str) -> String {
        match self.members.get(name) {
            Some(value) => self.text(value, &[Loc::Key(name)]),
            None => {
                self.errors.add(Kind::Missing, &[Loc::Key(name)], self.whole);
                String::new()
            }
        }
    }

    fn string(&mut self, name: &'static str) -> Option<String> {
        self.get(name).map(|value| self.text(value, &[Loc::Key(name)]))
    }

    fn text(&mut self, value: &RawValue, path: &[Loc]) -> String {
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

    fn list(&mut self, name: &'static str) -> Vec<&'a RawValue> {
        let Some(value) = self.get(name) else { return Vec::new() };
        raw::items(value).unwrap_or_else(|| {
            self.errors.add(Kind::List, &[Loc::Key(name)], value);
            Vec::new()
        })
    }

    fn stream(&mut self) -> bool {
        let value = self.members.get("stream").copied();
        value.is_some_and(|value| self.boolean(value, &[Loc::Key("stream")]))
    }

    /// Pydantic's idea of a boolean.
    fn boolean(&mut self, value: &RawValue, path: &[Loc]) -> bool {
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

    fn behavior_controls(&mut self) -> HashMap<String, bool> {
        let Some(value) = self.get(BEHAVIOR_CONTROLS) else { return HashMap::new() };
        let path = [Loc::Key(BEHAVIOR_CONTROLS)];
        let Some(controls) = raw::members(value) else {
            // The syntax is fine: of an object, only a key with half a surrogate pair can be the matter.
            let kind = if Type::of(value) == Type::Object { Kind::Unicode } else { Kind::Dict };
            self.errors.add(kind, &path, value);
            return HashMap::new();
        };
        let controls = controls.into_iter().map(|(key, value)| {
            let path = [Loc::Key(BEHAVIOR_CONTROLS), Loc::Member(key.clone())];
            (key, self.boolean(value, &path))
        });
        controls.collect()
    }

    fn response_format(&mut self) -> String {
        let Some(value) = self.get(RESPONSE_FORMAT) else { return String::new() };
        let path = [Loc::Key(RESPONSE_FORMAT)];
        if Type::of(value) != Type::Object {
            self.errors.add(Kind::Dict, &path, value);
        } else if serde_json::from_str::<serde_json::Value>(value.get()).is_err() {
            self.errors.add_value("it is nested too deeply", &path, value);
        }
        value.get().to_owned()
    }

    fn images(&mut self) -> Vec<Image> {
        let items = self.list(IMAGES);
        items.into_iter().enumerate().map(|(index, item)| self.image(index, item)).collect()
    }

    fn image(&mut self, index: usize, item: &RawValue) -> Image {
        let path = |rest: &[Loc]| [&[Loc::Key(IMAGES), Loc::Index(index)], rest].concat();
        let at = |name| path(&[Loc::Key(name)]);
        let image = match Type::of(item) {
            Type::String => Image { url: self.text(item, &path(&[])), ..Image::default() },
            Type::Object => {
                let members = raw::members(item).unwrap_or_default();
                let mut optional = |name| {
                    let value = members.get(name).filter(|value| Type::of(value) != Type::Null)?;
                    Some(self.text(value, &at(name)))
                };
                let (detail, format) = (optional("detail"), optional("format"));
                let Some(url) = members.get("url") else {
                    self.errors.add(Kind::Missing, &at("url"), item);
                    return Image::default();
                };
                Image { url: self.text(url, &at("url")), detail, format }
            }
            Type::Array | Type::Bool | Type::Null | Type::Number => {
                // A union: the original reports each of its branches.
                self.errors.add(Kind::String, &at("str"), item);
                self.errors.add(Kind::Dict, &at("dict[str,any]"), item);
                return Image::default();
            }
        };
        let scheme = image.url.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if !image.url.is_empty() && !["http", "https", "data"].contains(&scheme.as_str()) {
            self.errors.add_value("an image is an http(s) address or a data: URI", &path(&[]), item);
        }
        image
    }

    fn history(&mut self) -> Vec<Message> {
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
