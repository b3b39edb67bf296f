//! Reads a request: what is asked now, what was said before, and what the tools returned in this run.

use domain::{Message, Role, ToolCall};
use model::Request;
use serde_json::{Map, Value};

/// Text between the parameters and the output of a tool message.
const ANNOUNCEMENT: &str = "Its output follows.\n";
const METADATA: &str = "tool_call_metadata=";
/// Text with which what agents append to the question begins.
const APPENDED: [&str; 2] = ["\n\n# Added by Sleuth\n\n", "The current UTC date and time are"];

/// A request, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The question, as the person wrote it.
    pub(crate) question: String,
    /// The whole last user message.
    pub(crate) message: String,
    /// Earlier questions and answers, oldest first.
    pub(crate) earlier: Vec<(Role, String)>,
    /// What the tools returned since the question.
    pub(crate) results: Vec<Returned>,
    /// Replies with tool calls since the question.
    pub(crate) rounds: usize,
    /// Tool calls in the whole conversation.
    pub(crate) calls: usize,
}

/// What one tool call returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Returned {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    /// The output, whole or what there is of it.
    pub(crate) output: String,
    /// Why it failed.
    pub(crate) error: Option<String>,
}

impl Transcript {
    pub(crate) fn read(request: &Request) -> Self {
        let messages = without_note(request);
        let asked = messages.iter().rposition(|message| message.role == Role::User);
        let (earlier, run) = messages.split_at(asked.unwrap_or(0));
        let message = run.first().map(Message::joined_text).unwrap_or_default();
        Self {
            question: question_of(&message),
            message,
            earlier: earlier.iter().filter_map(spoken).collect(),
            results: results(run),
            rounds: run.iter().filter(|message| !message.tool_calls.is_empty()).count(),
            calls: messages.iter().map(|message| message.tool_calls.len()).sum(),
        }
    }
}

/// The conversation without what an agent adds at its end, when it offers no more tools, to get an answer: nobody
/// asks between a tool and its model, or twice in a row for one form.
fn without_note(request: &Request) -> &[Message] {
    let messages = request.messages.as_slice();
    let [before @ .., last] = messages else { return messages };
    let is_note = last.role == Role::User
        && request.tools.is_empty()
        && match before.last().map(|message| message.role) {
            Some(Role::Tool) => true,
            Some(Role::User) => request.response_format.is_some(),
            Some(Role::System | Role::Assistant) | None => false,
        };
    if is_note { before } else { messages }
}

fn question_of(message: &str) -> String {
    let end = APPENDED.iter().filter_map(|mark| message.find(mark)).min().unwrap_or(message.len());
    message.get(..end).unwrap_or(message).trim().to_owned()
}

fn spoken(message: &Message) -> Option<(Role, String)> {
    let text = message.joined_text();
    match message.role {
        Role::User => Some((Role::User, question_of(&text))),
        Role::Assistant if !text.trim().is_empty() => Some((Role::Assistant, text)),
        Role::Assistant | Role::System | Role::Tool => None,
    }
}

/// What the calls of a run returned, in the order in which they were made.
fn results(run: &[Message]) -> Vec<Returned> {
    let calls = run.iter().flat_map(|message| &message.tool_calls);
    let answer = |call: &ToolCall| {
        run.iter().find(|message| message.answers.as_ref().is_some_and(|(id, _)| *id == call.id))
    };
    calls.filter_map(|call| Some(returned(call, answer(call)?))).collect()
}

fn returned(call: &ToolCall, message: &Message) -> Returned {
    let mut arguments: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    // It says where a tool looks, not at what.
    arguments.remove("cluster");
    let text = message.joined_text();
    let body = text.split_once(ANNOUNCEMENT).map_or(text.as_str(), |(_, body)| body);
    let body = without_metadata(body);
    let command = arguments.get("command").and_then(Value::as_str);
    let (error, output) = match command {
        Some(command) if is_headed(body, command) => (None, body),
        Some(_) => split_error(body),
        None if looks_failed(body) => split_error(body),
        None => (None, body),
    };
    let output = command.and_then(|command| output.strip_prefix(command)).unwrap_or(output);
    Returned {
        tool: call.name.clone(),
        output: output.strip_prefix('\n').unwrap_or(output).to_owned(),
        error: error.map(str::to_owned),
        arguments,
    }
}

fn without_metadata(body: &str) -> &str {
    let Some(rest) = body.strip_prefix(METADATA) else { return body };
    let mut json = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    match json.next() {
        Some(Ok(_)) => rest.get(json.byte_offset()..).unwrap_or_default(),
        Some(Err(_)) | None => rest,
    }
}

fn is_headed(body: &str, command: &str) -> bool {
    body.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
}

fn looks_failed(body: &str) -> bool {
    let starts = ["Error", "error:", "Failed", "Tool call", "Command", "Refused", "Unknown tool"];
    starts.iter().any(|start| body.starts_with(start)) && body.contains(":\n\n")
}

fn split_error(body: &str) -> (Option<&str>, &str) {
    match body.split_once(":\n\n") {
        Some((error, data)) => (Some(error), data),
        None => (Some(body), ""),
    }
}

#[cfg(test)]
mod tests {
    use domain::CallId;

    use super::*;

    fn conversation(body: &str) -> Request {
        let arguments = r#"{"command":"df -P","suggested_prefixes":["df"]}"#.to_owned();
        let id = CallId::new("c1");
        let mut asks = Message::text(Role::Assistant, "");
        asks.tool_calls = vec![ToolCall { id: id.clone(), name: "bash".into(), arguments }];
        let text = format!("Called with {{\"command\": \"df -P\"}}. {ANNOUNCEMENT}{body}");
        let question = "disk?\n\nThe current UTC date and time are";
        let messages = vec![Message::text(Role::User, question), asks, Message::tool(id, "bash", text)];
        Request { messages, ..Request::default() }
    }

    #[test]
    fn output_and_errors_are_told_apart() {
        let metadata = r#"tool_call_metadata={"tool_name": "bash", "tool_call_id": "c1"}"#;
        for (body, output, error) in [
            ("df -P\nFilesystem\n/dev/x", "Filesystem\n/dev/x", None),
            ("df -P\n", "", None),
            ("Error: exit status 1:\n\ndf -P\nno such", "no such", Some("Error: exit status 1")),
            ("Tool call rejected: no:\n\n", "", Some("Tool call rejected: no")),
            ("Refused", "", Some("Refused")),
        ] {
            let read = Transcript::read(&conversation(&format!("{metadata}{body}")));
            assert_eq!(read.question, "disk?");
            let result = read.results.first().expect("a result");
            assert_eq!((result.output.as_str(), result.error.as_deref()), (output, error), "{body}");
        }
    }

    #[test]
    fn what_is_appended_is_no_part_of_the_question() {
        for appended in [
            "",
            "\n\nThe current UTC date and time are 2026-11-21 21:54:27.",
            "\n\n# Added by Sleuth\n\nKeep a list.\n\nThe current UTC date and time are 2026-11-21 21:54:27.",
        ] {
            assert_eq!(question_of(&format!("why is\n\nweb down?{appended}")), "why is\n\nweb down?");
        }
    }
}
