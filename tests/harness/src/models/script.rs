//! The script language: what a scripted model replies, in no provider's form.

use serde::Deserialize;
use serde_json::{Value, json};

const MARK: &str = "FAKE_LLM";

/// A script. Absent fields have the defaults of [`Script::default`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct Script {
    /// Assistant turns that call tools before the final answer.
    pub rounds: usize,
    /// Tool calls in each of those turns.
    pub tools: usize,
    /// Tool to call.
    pub tool: String,
    /// Its arguments; `{r}` and `{t}` become round and tool index. A text need not be JSON.
    pub args: Value,
    /// Explicit turns; they override the four fields above.
    pub steps: Option<Vec<Vec<ScriptedCall>>>,
    /// Text sent next to tool calls.
    pub say: String,
    /// The final answer; what is not a text is sent as JSON text.
    pub answer: Value,
    /// Delay before the reply.
    pub latency_ms: u64,
    /// Delay between streamed chunks.
    pub chunk_ms: u64,
    /// Reply with this HTTP status once `fail_after` rounds are done.
    pub status: u16,
    /// See `status`.
    pub fail_after: usize,
    /// Reported tokens of the prompt; by default its size / 4.
    pub prompt_tokens: Option<u64>,
    /// Reported tokens of the reply; by default its size / 4.
    pub completion_tokens: Option<u64>,
    /// Thinking before every reply.
    pub thinking: String,
    /// `"chunk"`: cut the stream into pieces of a few bytes, also inside UTF-8 characters.
    pub cut: Option<String>,
    /// Never answer.
    pub hang: bool,
    /// Close the connection after this many chunks.
    pub break_after: Option<usize>,
    /// Send what is not JSON.
    pub malformed: bool,
    /// Answer a request for a stream with one JSON document.
    pub whole: bool,
    /// Begin the stream, then report this error inside it.
    pub error_event: Option<String>,
    /// Value of the `retry-after-ms` header of failures.
    pub retry_after: Option<u64>,
    /// Fail the first calls that carry this very script, with `status` or 503, then go on.
    pub fail_times: usize,
}

/// A tool call of an explicit turn.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct ScriptedCall {
    /// Tool to call.
    pub name: String,
    /// Its arguments, as in [`Script::args`].
    #[serde(default)]
    pub args: Value,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rounds: 0,
            tools: 1,
            tool: "bash".into(),
            args: json!({"command": "echo r{r}t{t}", "suggested_prefixes": ["echo"]}),
            steps: None,
            say: String::new(),
            answer: json!("The answer is 42."),
            latency_ms: 0,
            chunk_ms: 0,
            status: 200,
            fail_after: 0,
            prompt_tokens: None,
            completion_tokens: None,
            thinking: String::new(),
            cut: None,
            hang: false,
            break_after: None,
            malformed: false,
            whole: false,
            error_event: None,
            retry_after: None,
            fail_times: 0,
        }
    }
}

/// Who speaks in a [`Turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Assistant,
    User,
    Other,
}

/// One message of a request.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) speaker: Speaker,
    pub(super) text: String,
    pub(super) calls_tools: bool,
}

/// A request, in no provider's form.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) turns: Vec<Turn>,
    pub(super) offers_tools: bool,
    pub(super) size: usize,
}

/// A tool call of a reply.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// What a scripted model says.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) thinking: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
}

impl Conversation {
    /// The script that governs, and how many rounds of it are done.
    pub(super) fn script(&self, default: &Script) -> (Script, usize) {
        let found = self.turns.iter().enumerate().rev().find_map(|(at, turn)| {
            let script = (turn.speaker == Speaker::User).then(|| parse(&turn.text)).flatten()?;
            Some((at, script))
        });
        let (at, script) = found.unwrap_or_else(|| (0, default.clone()));
        let round = self.turns[at..].iter().filter(|turn| turn.calls_tools).count();
        (script, round)
    }

    /// What the model says in this round of the script.
    pub(super) fn reply(&self, script: &Script, round: usize) -> Reply {
        let calls = if self.offers_tools { self.calls(script, round) } else { Vec::new() };
        let text = match (&script.answer, calls.is_empty()) {
            (_, false) => script.say.clone(),
            (Value::String(answer), true) => answer.clone(),
            (answer, true) => answer.to_string(),
        };
        let size: usize = calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        Reply {
            prompt_tokens: script.prompt_tokens.unwrap_or(self.size as u64 / 4),
            completion_tokens: script.completion_tokens.unwrap_or((text.len() + size) as u64 / 4),
            thinking: script.thinking.clone(),
            text,
            calls,
        }
    }

    fn calls(&self, script: &Script, round: usize) -> Vec<Call> {
        let planned = match &script.steps {
            Some(steps) => steps.get(round).cloned().unwrap_or_default(),
            None if round < script.rounds => {
                vec![ScriptedCall { name: script.tool.clone(), args: script.args.clone() }; script.tools]
            }
            None => Vec::new(),
        };
        let messages = self.turns.len();
        planned
            .into_iter()
            .enumerate()
            .map(|(tool, call)| Call {
                id: format!("call_m{messages}r{round}t{tool}"),
                name: call.name,
                arguments: arguments(call.args)
                    .replace("{r}", &round.to_string())
                    .replace("{t}", &tool.to_string()),
            })
            .collect()
    }
}

fn arguments(args: Value) -> String {
    match args {
        Value::String(text) => text,
        Value::Null => "{}".into(),
        args => args.to_string(),
    }
}

/// The last script in a text. A script may have others in its texts, for agents that it starts.
fn parse(text: &str) -> Option<Script> {
    let (mut rest, mut last) = (text, None);
    while let Some((_, after)) = rest.split_once(MARK) {
        let mut scripts = serde_json::Deserializer::from_str(after).into_iter();
        rest = match scripts.next() {
            Some(Ok(script)) => {
                last = Some(script);
                &after[scripts.byte_offset()..]
            }
            Some(Err(_)) | None => after,
        };
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(speaker: Speaker, text: &str, calls_tools: bool) -> Turn {
        Turn { speaker, text: text.into(), calls_tools }
    }

    #[test]
    fn rounds_count_from_the_newest_script() {
        let mut turns = vec![
            turn(Speaker::Other, "system", false),
            turn(Speaker::User, r#"old FAKE_LLM{"rounds": 9}"#, false),
            turn(Speaker::Assistant, "", true),
            turn(Speaker::Other, "result", false),
            turn(Speaker::User, r#"go FAKE_LLM{"rounds": 1, "tools": 2, "say": "Hm."} and more"#, false),
        ];
        let first = Conversation { turns: std::mem::take(&mut turns), offers_tools: true, size: 40 };
        let (script, round) = first.script(&Script::default());
        let reply = first.reply(&script, round);
        let ids: Vec<_> = reply.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!((round, reply.text.as_str(), ids), (0, "Hm.", vec!["call_m5r0t0", "call_m5r0t1"]));
        assert_eq!(reply.calls[1].arguments, r#"{"command":"echo r0t1","suggested_prefixes":["echo"]}"#);

        let mut second = first;
        second.turns.push(turn(Speaker::Assistant, "", true));
        let (script, round) = second.script(&Script::default());
        assert_eq!((round, second.reply(&script, round).text.as_str()), (1, "The answer is 42."));
        second.turns.pop();
        second.offers_tools = false;
        assert_eq!(second.reply(&script, 0).text, "The answer is 42.");
    }

    #[test]
    fn captured_counts_are_met() {
        let turns = vec![turn(Speaker::User, r#"FAKE_LLM{"rounds": 1}"#, false)];
        let conversation = Conversation { turns, offers_tools: true, size: 0 };
        let (script, round) = conversation.script(&Script::default());
        assert_eq!(conversation.reply(&script, round).completion_tokens, 14);
        assert_eq!(conversation.reply(&script, 1).completion_tokens, 4);
    }
}
