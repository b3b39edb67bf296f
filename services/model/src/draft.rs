//! A reply while it arrives.

use std::collections::{HashSet, VecDeque};

use domain::{CallId, Exchange, Message, Part, Role, Thinking, ToolCall, Usage, tokens};
use serde_json::{Value, json};

use crate::{Delta, Reply, Request, failure::Failure};

/// Key of the only member of a call's arguments if the model wrote what is not a JSON object: the text that it
/// wrote, cut to 2000 characters. Tools answer such a call with an error that the model can learn from.
pub const MALFORMED_ARGUMENTS: &str = "_malformed";
const MALFORMED_SHOWN: usize = 2000;

/// What a provider has sent so far, in no provider's form.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// Deltas that the reader has not seen.
    pub(crate) deltas: VecDeque<Delta>,
    /// The reason to stop in OpenAI's words; with it the reply is whole, though counts may follow.
    pub(crate) finish_reason: Option<String>,
    /// Nothing more will come.
    pub(crate) ended: bool,
    /// Tokens as the provider counts them.
    pub(crate) usage: Option<Usage>,
    /// The provider's id of the reply.
    pub(crate) id: Option<String>,
    parts: Vec<Part>,
    calls: Vec<DraftCall>,
}

/// A tool call while it arrives.
#[derive(Debug, Default)]
pub(crate) struct DraftCall {
    /// The provider's number for it.
    pub(crate) index: Option<u64>,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// What a reply must fit to.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    taken: HashSet<String>,
    prompt: u64,
}

impl Context {
    pub(crate) fn of(request: &Request) -> Self {
        let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
        let tools = request
            .tools
            .iter()
            .map(|tool| tokens::of_text(&tool.description) + tokens::of_text(&tool.parameters.to_string()));
        Self {
            taken: calls.map(|call| call.id.to_string()).collect(),
            prompt: tokens::of_text(&request.system)
                + request.messages.iter().map(tokens::of_message).sum::<u64>()
                + tools.sum::<u64>(),
        }
    }

    /// An id that no call of the conversation has: the given one if possible.
    fn unique(&mut self, id: &str) -> CallId {
        let base = if id.is_empty() { "call" } else { id };
        let numbered = (self.taken.len()..).map(|number| format!("{base}_{number}"));
        let given = (!id.is_empty()).then(|| id.to_owned());
        let id = given.into_iter().chain(numbered).find(|id| !self.taken.contains(id)).unwrap_or_default();
        self.taken.insert(id.clone());
        CallId::new(id)
    }
}

impl Draft {
    /// More text.
    pub(crate) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text(so_far)) => so_far.push_str(text),
            Some(Part::Image(_) | Part::Document(_) | Part::Thinking(_)) | None => {
                self.parts.push(Part::Text(text.into()));
            }
        }
        self.deltas.push_back(Delta::Text(text.into()));
    }

    /// More thinking.
    pub(crate) fn thinking(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Thinking(block)) => block.text.push_str(text),
            Some(Part::Text(_) | Part::Image(_) | Part::Document(_)) | None => {
                self.begin_thinking(Thinking { text: text.into(), ..Thinking::default() });
            }
        }
        self.deltas.push_back(Delta::Thinking(text.into()));
    }

    /// A new block of thinking.
    pub(crate) fn begin_thinking(&mut self, block: Thinking) {
        self.parts.push(Part::Thinking(block));
    }

    /// More of the signature of the block of thinking that arrives.
    pub(crate) fn sign(&mut self, signature: &str) {
        if let Some(Part::Thinking(block)) = self.parts.last_mut() {
            block.signature.get_or_insert_default().push_str(signature);
        }
    }

    /// The calls so far.
    pub(crate) fn calls(&mut self) -> &mut Vec<DraftCall> {
        &mut self.calls
    }

    /// The whole reply.
    pub(crate) fn into_reply(self, mut context: Context) -> Result<Reply, Failure> {
        if self.parts.is_empty() && self.calls.is_empty() && self.finish_reason.is_none() {
            return Err(Failure::malformed("the model provider sent a reply with nothing in it"));
        }
        let visible = |part: &Part| match part {
            Part::Thinking(block) => *block != Thinking::default(),
            Part::Text(_) | Part::Image(_) | Part::Document(_) => true,
        };
        let parts = self.parts.into_iter().filter(visible).collect();
        let mut message = Message::new(Role::Assistant, parts);
        for call in self.calls {
            if call.name.is_empty() {
                return Err(Failure::malformed("the model provider sent a tool call without a name"));
            }
            message.tool_calls.push(ToolCall {
                id: context.unique(&call.id),
                name: call.name,
                arguments: canonical(&call.arguments),
            });
        }
        let reason = self.finish_reason.unwrap_or_default();
        let stopped = matches!(reason.as_str(), "" | "stop" | "function_call");
        let finish_reason = match (stopped, message.tool_calls.is_empty()) {
            (true, false) => "tool_calls".into(),
            (true, true) => "stop".into(),
            (false, _) => reason,
        };
        let usage = self.usage.unwrap_or_else(|| Usage {
            prompt: context.prompt,
            completion: tokens::of_message(&message),
            ..Usage::default()
        });
        let exchange = Exchange { response: self.id, ..Exchange::default() };
        Ok(Reply { message, usage, finish_reason, exchange })
    }
}

/// Arguments as compact JSON with sorted keys.
fn canonical(text: &str) -> String {
    if text.trim().is_empty() {
        return "{}".into();
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Value::Object(arguments).to_string(),
        Ok(Value::Null) => "{}".into(),
        // Some models write the object as a JSON text.
        Ok(Value::String(inner)) => canonical(&inner),
        Ok(Value::Bool(_) | Value::Number(_) | Value::Array(_)) | Err(_) => {
            let shown: String = text.chars().take(MALFORMED_SHOWN).collect();
            json!({MALFORMED_ARGUMENTS: shown}).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_canonical() {
        for (written, read) in [
            ("", "{}"),
            (" null ", "{}"),
            (r#"{"b": 1, "a": {"d": [1, 2], "c": null}}"#, r#"{"a":{"c":null,"d":[1,2]},"b":1}"#),
            (r#""{\"a\": 1}""#, r#"{"a":1}"#),
            (r#"{"a": "#, r#"{"_malformed":"{\"a\": "}"#),
            ("[1]", r#"{"_malformed":"[1]"}"#),
        ] {
            assert_eq!(canonical(written), read, "{written}");
        }
        assert!(canonical(&"é".repeat(9000)).len() < 4100);
    }

    #[test]
    fn ids_are_unique_in_the_conversation() {
        let mut asked = Message::new(Role::Assistant, Vec::new());
        let call = ToolCall { id: CallId::new("a"), name: "t".into(), arguments: "{}".into() };
        asked.tool_calls.push(call);
        let request = Request { messages: vec![asked], ..Request::default() };
        let mut draft = Draft::default();
        for id in ["a", "a", "", "", "b"] {
            draft.calls().push(DraftCall { id: id.into(), name: "t".into(), ..DraftCall::default() });
        }
        let reply = draft.into_reply(Context::of(&request)).unwrap();
        let ids: HashSet<_> = reply.calls().iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), 5, "{ids:?}");
        assert!(ids.contains("b") && !ids.contains("a") && !ids.contains(""), "{ids:?}");
        assert_eq!(reply.finish_reason, "tool_calls");
    }
}
