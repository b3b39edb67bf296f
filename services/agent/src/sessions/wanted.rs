//! Which events of a session a reader wants.

use std::collections::HashSet;

use wire::{
    SESSION_EVENTS,
    session::{
        Context, Filter, Message, Search, ToolCall, ToolCallRequested, ToolCompleted, content_part::Part,
        event::Data,
    },
};

use super::{name, record::Entry};

/// Names that a filter may have.
const NAMES: usize = 64;

/// Why events cannot be chosen so.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoFilter {
    #[error("{0}: unknown event type '{1}'")]
    UnknownType(&'static str, String),
    #[error("{0}: {1} event types, and at most {NAMES} may be named")]
    TooMany(&'static str, usize),
}

/// Which events a reader wants.
pub(crate) struct Wanted {
    names: HashSet<&'static str>,
    accumulated: bool,
    prompts: bool,
    search: Search,
}

impl Wanted {
    pub(crate) fn of(filter: Option<Filter>, search: Option<Search>) -> Result<Self, NoFilter> {
        let Filter { types, exclude, no_accumulated, no_prompts } = filter.unwrap_or_default();
        let only = known("types", &types)?;
        let not = known("exclude", &exclude)?;
        let all = SESSION_EVENTS.into_iter().filter(|name| only.is_empty() || only.contains(name));
        let names = all.filter(|name| !not.contains(name)).collect();
        let mut search = search.unwrap_or_default();
        search.text = search.text.to_lowercase();
        Ok(Self { names, accumulated: !no_accumulated, prompts: !no_prompts, search })
    }

    /// Whether deltas come with all the text before them.
    pub(super) fn accumulated(&self) -> bool {
        self.accumulated
    }

    /// Whether generations come with what the model was told.
    pub(super) fn prompts(&self) -> bool {
        self.prompts
    }

    /// Whether an entry is wanted.
    pub(super) fn has(&self, entry: &Entry) -> bool {
        self.names.contains(name(entry)) && self.finds(entry)
    }

    fn finds(&self, entry: &Entry) -> bool {
        let Search { from, to, turn_id, exec_id, trace_id, tags, tool_name, text } = &self.search;
        let nowhere = Context::default();
        let context =
            entry.record.event.as_ref().and_then(|event| event.context.as_ref()).unwrap_or(&nowhere);
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        from.is_none_or(|from| wire::timestamp(from) <= entry.time)
            && to.is_none_or(|to| entry.time <= wire::timestamp(to))
            && is(turn_id, &context.turn_id)
            && is(exec_id, &context.exec_id)
            && is(trace_id, &context.trace_id)
            && entry.data().is_some_and(|data| {
                (tags.is_empty() || tags_of(data).iter().any(|tag| tags.contains(tag)))
                    && (tool_name.is_empty() || tools_of(data).contains(&tool_name.as_str()))
                    && (text.is_empty()
                        || texts_of(data).iter().any(|said| said.to_lowercase().contains(text)))
            })
    }
}

fn known(parameter: &'static str, names: &[String]) -> Result<HashSet<&'static str>, NoFilter> {
    if names.len() > NAMES {
        return Err(NoFilter::TooMany(parameter, names.len()));
    }
    let find = |name: &String| SESSION_EVENTS.into_iter().find(|known| known == name);
    names
        .iter()
        .map(|name| find(name).ok_or_else(|| NoFilter::UnknownType(parameter, name.clone())))
        .collect()
}

fn tags_of(data: &Data) -> &[String] {
    match data {
        Data::InputMessage(it) => it.message.as_ref().map_or(&[], |message| &message.tags),
        _ => &[],
    }
}

/// The tools that an event is about.
fn tools_of(data: &Data) -> Vec<&str> {
    match data {
        Data::ActStarted(it) => it.tool_calls.iter().map(|call| &*call.name).collect(),
        Data::ToolStarted(it) => it.tool_call.iter().map(|call| &*call.name).collect(),
        Data::ToolApprovalRequested(it) => it.tool_call.iter().map(|call| &*call.name).collect(),
        Data::ToolCallRequested(it) => it.tool_calls.iter().map(|call| &*call.name).collect(),
        Data::ToolCompleted(it) => vec![&it.tool_name],
        Data::ToolProgress(it) => vec![&it.tool_name],
        Data::ToolOutputDelta(it) => vec![&it.tool_name],
        Data::TranscriptRepaired(it) => it.tool_name.iter().map(|name| &**name).collect(),
        Data::ToolCallRepaired(it) => vec![&it.tool_name],
        Data::CapabilityUsage(it) => it.records.iter().filter_map(|used| used.tool_name.as_deref()).collect(),
        _ => Vec::new(),
    }
}

/// What was said or done, in whole texts: a delta is a piece of one that comes later.
fn texts_of(data: &Data) -> Vec<&str> {
    let mut texts = Vec::new();
    let optional = match data {
        Data::InputMessage(it) => {
            texts.extend(it.message.iter().flat_map(texts_in));
            None
        }
        Data::OutputMessageCompleted(it) => {
            texts.extend(it.message.iter().flat_map(texts_in));
            None
        }
        Data::TurnStarted(it) => it.input_content.as_deref(),
        Data::TurnCompleted(it) => it.final_answer_preview.as_deref(),
        Data::TurnFailed(it) => Some(&*it.error),
        Data::TurnSealed(it) => it.detail.as_deref(),
        Data::TurnCancelled(it) => it.reason.as_deref(),
        Data::ReasonCompleted(it) => it.error.as_deref(),
        Data::ReasonThinkingCompleted(it) => Some(&*it.thinking),
        Data::LlmGeneration(it) => it.error.as_deref(),
        Data::ToolStarted(it) => {
            texts.extend(it.tool_call.iter().flat_map(texts_in_call));
            it.narration.as_deref()
        }
        Data::ToolApprovalRequested(it) => {
            texts.extend(it.tool_call.iter().flat_map(texts_in_call));
            Some(&*it.reason)
        }
        Data::ToolCallRequested(ToolCallRequested { tool_calls, .. }) => {
            texts.extend(tool_calls.iter().flat_map(texts_in_call));
            None
        }
        Data::ToolCompleted(ToolCompleted { result, tool_name, error, .. }) => {
            texts.push(tool_name);
            texts.extend(result.iter().filter_map(|part| part.part.as_ref()).flat_map(texts_in_part));
            error.as_deref()
        }
        Data::ToolProgress(it) => Some(&*it.message),
        Data::TaskCreated(it) | Data::TaskUpdated(it) => {
            texts.push(&it.display_name);
            it.summary.as_deref()
        }
        _ => None,
    };
    texts.extend(optional);
    texts
}

fn texts_in(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|part| part.part.as_ref()).flat_map(texts_in_part)
}

fn texts_in_part(part: &Part) -> Vec<&str> {
    match part {
        Part::Text(text) => vec![text],
        Part::ToolCall(call) => texts_in_call(call).to_vec(),
        Part::ToolResult(result) => {
            result.result_json.as_deref().into_iter().chain(result.error.as_deref()).collect()
        }
        Part::Image(_) | Part::ImageFile(_) => Vec::new(),
    }
}

fn texts_in_call(call: &ToolCall) -> [&str; 2] {
    [&call.name, &call.arguments_json]
}
