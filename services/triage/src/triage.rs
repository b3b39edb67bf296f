//! The investigator as a model: a request in; tool calls or the answer out.

use domain::{CallId, Exchange, Message, Role, ToolCall, Usage, tokens};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use model::{Delta, Deltas, Error, Info, Model, Reply, Request};
use serde_json::Value;

use crate::{
    answer,
    case::Case,
    evidence::Evidence,
    form,
    look::Look,
    question::{Intent, Question},
    show,
    time::Moment,
    transcript::Transcript,
};

/// Replies with tool calls; after them the answer is written with what there is.
const ROUNDS: usize = 6;
/// Tool calls in one reply.
const PARALLEL: usize = 64;

/// A deterministic investigator: what it does next is a pure function of the request.
#[derive(Debug)]
pub struct Triage {
    info: Info,
}

impl Triage {
    /// A new investigator. It needs no key, no file and no network of its own.
    pub fn new() -> Self {
        Self {
            info: Info {
                name: "builtin/triage".into(),
                provider: "builtin".into(),
                id: "triage".into(),
                context_window: 1_000_000,
                max_output_tokens: 64_000,
                sees_images: Some(false),
            },
        }
    }
}

impl Default for Triage {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for Triage {
    fn info(&self) -> &Info {
        &self.info
    }

    fn call(&self, request: Request) -> BoxFuture<'_, Result<Deltas, Error>> {
        async move {
            let reply = reply(&request);
            let pieces = pieces(&reply.message.joined_text());
            let deltas = pieces.into_iter().map(Delta::Text).chain([Delta::Done(Box::new(reply))]).map(Ok);
            Ok(stream::iter(deltas).boxed())
        }
        .boxed()
    }
}

fn reply(request: &Request) -> Reply {
    let transcript = Transcript::read(request);
    let next = decide(request, &transcript);
    let (text, tool_calls, finish_reason) = match next {
        Next::Answer(text) => (text, Vec::new(), "stop"),
        Next::Look(narration, calls) => (narration, calls, "tool_calls"),
    };
    let message = Message { tool_calls, ..Message::text(Role::Assistant, text) };
    let prompt =
        tokens::of_text(&request.system) + request.messages.iter().map(tokens::of_message).sum::<u64>();
    let usage = Usage { prompt, completion: tokens::of_message(&message), ..Usage::default() };
    Reply { message, usage, finish_reason: finish_reason.to_owned(), exchange: Exchange::default() }
}

enum Next {
    Look(String, Vec<ToolCall>),
    Answer(String),
}

fn decide(request: &Request, transcript: &Transcript) -> Next {
    let question = Question::read(transcript);
    if question.intent == Intent::Other {
        return Next::Answer(answer::introduction());
    }
    let evidence = Evidence::new(transcript.results.clone());
    let case = Case::open(&question, &evidence, Moment::stated(&transcript.message));
    let looks = match question.intent {
        Intent::Show(wish) => show::looks(&case, wish),
        Intent::Investigate | Intent::Other => case.looks(),
    };
    let calls = calls(request, transcript, &evidence, &looks);
    if !calls.is_empty() && transcript.rounds < ROUNDS {
        return Next::Look(answer::narration(&case, transcript.rounds, calls.len()), calls);
    }
    Next::Answer(match question.intent {
        Intent::Show(wish) => show::answer(&case, wish),
        Intent::Investigate | Intent::Other => {
            let format = request.response_format.as_ref();
            format.and_then(|format| form::fill(format, &case)).unwrap_or_else(|| answer::report(&case))
        }
    })
}

/// The calls for the looks that were not taken yet.
fn calls(request: &Request, transcript: &Transcript, evidence: &Evidence, looks: &[Look]) -> Vec<ToolCall> {
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let mut calls: Vec<ToolCall> = Vec::new();
    for look in looks.iter().filter(|look| evidence.of(look).is_none()) {
        let Some((name, mut arguments)) = look.call(offered) else { continue };
        if let Some(cluster) = cluster(request, name, &transcript.question) {
            arguments["cluster"] = cluster.into();
        }
        let arguments = arguments.to_string();
        if calls.len() < PARALLEL
            && !calls.iter().any(|call| call.name == name && call.arguments == arguments)
        {
            let id = CallId::new(format!("triage_{}", transcript.calls + calls.len() + 1));
            calls.push(ToolCall { id, name: name.to_owned(), arguments });
        }
    }
    calls
}

/// Where a tool that has a choice of clusters is to look: at the one that the question names, or the first, where it
/// must be one.
fn cluster(request: &Request, tool: &str, question: &str) -> Option<String> {
    let schema = &request.tools.iter().find(|spec| spec.name == tool)?.parameters;
    let names: Vec<_> =
        schema["properties"]["cluster"]["enum"].as_array()?.iter().filter_map(Value::as_str).collect();
    let words: Vec<_> = question.split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).collect();
    let named = names.iter().find(|name| words.iter().any(|word| word.trim_end_matches('.') == **name));
    let is_required = schema["required"].as_array().is_some_and(|names| names.contains(&"cluster".into()));
    named.or_else(|| names.first().filter(|_| is_required)).map(|name| (*name).to_owned())
}

/// A text in pieces, as a model that writes would stream it: by lines.
fn pieces(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use model::ToolSpec;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cluster_that_is_named_is_looked_at() {
        let tool = |required: Value| {
            let names = json!({ "cluster": { "enum": ["eu-1", "us"] } });
            let parameters = json!({ "properties": names, "required": required });
            let tools = [ToolSpec { name: "bash".into(), description: String::new(), parameters }].into();
            Request { tools, ..Request::default() }
        };
        let (free, required) = (tool(json!([])), tool(json!(["cluster"])));
        let at = |request: &Request, question: &str| cluster(request, "bash", question);
        assert_eq!(at(&free, "why is us slow?").as_deref(), Some("us"));
        assert_eq!(at(&free, "look at eu-1.").as_deref(), Some("eu-1"));
        assert_eq!(at(&free, "what of usage"), None);
        assert_eq!(at(&required, "what of usage").as_deref(), Some("eu-1"));
        assert_eq!(cluster(&required, "other", "us"), None);
    }
}
