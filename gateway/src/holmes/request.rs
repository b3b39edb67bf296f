//! The body of `POST /api/chat`. Unknown fields are ignored.

use std::collections::HashMap;

use domain::Image;
use serde_json::value::RawValue;
use wire::agent::ChatRequest;

use crate::problem::Problem;

use super::{
    approval::Decided,
    fields::Fields,
    frontend,
    invalid::{Kind, Loc},
    raw::{self, Type},
};

const IMAGES: &str = "images";
const RESPONSE_FORMAT: &str = "response_format";
const BEHAVIOR_CONTROLS: &str = "behavior_controls";
/// Ours: HolmesGPT has one executor, itself.
const EXECUTOR_LABELS: &str = "executor_labels";

/// A valid request.
#[derive(Debug)]
pub(crate) struct Question {
    /// Whether the answer is streamed.
    pub(crate) stream: bool,
    /// The question as the agent takes it, but for the decisions.
    pub(crate) chat: ChatRequest,
    /// What a person decided about calls of the history.
    pub(crate) decided: Decided,
}

/// Reads a body. The answer is streamed if the route or the body says so.
pub(crate) fn parse(body: &[u8], streams: bool) -> Result<Question, Problem> {
    let mut fields = Fields::parse(body)?;
    fields.first_role()?;
    let (client_tools, client_results) = (frontend::tools(&mut fields), frontend::results(&mut fields));
    let decided = Decided::read(&mut fields);
    let resumes = !client_results.is_empty() || decided.resumes();
    let chat = ChatRequest {
        caller: None,
        question: if resumes {
            fields.string("ask").unwrap_or_default()
        } else {
            fields.required_string("ask")
        },
        history: fields.history().into_iter().map(Into::into).collect(),
        model: fields.string("model").unwrap_or_default(),
        images: fields.images().into_iter().map(Into::into).collect(),
        response_format_json: fields.response_format(),
        additional_system_prompt: fields.string("additional_system_prompt").unwrap_or_default(),
        limits: None,
        behavior_controls: fields.behavior_controls(),
        files: Vec::new(),
        alert_history: None,
        client_tools,
        client_results,
        approvals: fields.flag("enable_tool_approval", false),
        executor_labels: fields.executor_labels(),
        ..ChatRequest::default()
    };
    let stream = fields.flag("stream", false) || streams;
    fields.finish()?;
    frontend::check(&chat.client_tools, stream)?;
    Ok(Question { stream, chat, decided })
}

impl Fields<'_> {
    fn behavior_controls(&mut self) -> HashMap<String, bool> {
        let Some(value) = self.get(BEHAVIOR_CONTROLS) else { return HashMap::new() };
        let path = [Loc::Key(BEHAVIOR_CONTROLS)];
        let controls = self.members(value, Kind::Dict, &path).unwrap_or_default();
        let controls = controls.into_iter().map(|(key, value)| {
            let path = [Loc::Key(BEHAVIOR_CONTROLS), Loc::Member(key.clone())];
            (key, self.boolean(value, &path))
        });
        controls.collect()
    }

    fn executor_labels(&mut self) -> HashMap<String, String> {
        let Some(value) = self.get(EXECUTOR_LABELS) else { return HashMap::new() };
        let labels = self.members(value, Kind::Dict, &[Loc::Key(EXECUTOR_LABELS)]).unwrap_or_default();
        let labels = labels.into_iter().map(|(key, value)| {
            let path = [Loc::Key(EXECUTOR_LABELS), Loc::Member(key.clone())];
            (key, self.text(value, &path))
        });
        labels.collect()
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
        let before = self.errors.count();
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
        // What is not a text has been reported as such.
        if self.errors.count() == before
            && let Err(bad) = image.check()
        {
            self.errors.add_value(&bad.to_string(), &path(&[]), item);
        }
        image
    }
}
