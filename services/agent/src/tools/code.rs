//! Code of a model: the interpreter that runs it, what it asks for, and what came of it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use domain::{CallId, CodeOutput, LogId, QuestionId, ToolCall, ToolPlan, ToolResult, ToolStatus};
use futures_util::stream;
use serde::Deserialize;
use store::{BlobId, Store};
use tokio::time::timeout;
use wire::executor::{self, answer_host_call_request::Answer};

use super::{
    call::{CANCEL_TIME, Context, traced},
    executors::Client,
};
use crate::prompt::rlm::About;

/// Characters of the output of code that a model sees.
const SHOWN: usize = 4000;
/// Bytes of an input that go out at a time.
const PIECE: usize = 1 << 20;

/// Where the input of code is.
#[derive(Clone)]
pub(crate) enum Input {
    /// A text that came with a question.
    Text(Bytes),
    /// A text that the executor has.
    Kept(Bytes),
    /// A body of the run's log.
    Stored(Arc<dyn Store>, LogId, BlobId),
    /// It was lost with the process that knew it.
    Gone,
}

/// The interpreter of one agent.
#[derive(Clone)]
pub(crate) struct Interpreter {
    name: String,
    input: Input,
    /// Whether it runs, as far as is known here.
    begun: Arc<AtomicBool>,
}

impl Interpreter {
    /// One with this name within the run's session.
    pub(crate) fn new(name: String, input: Input, begun: bool) -> Self {
        Self { name, input, begun: Arc::new(AtomicBool::new(begun)) }
    }

    /// What an executor is told of it. The first time, its input goes there.
    pub(super) async fn prepare(
        &self,
        client: &Client,
        context: &Context,
    ) -> Result<executor::Interpreter, String> {
        let name = self.name.clone();
        if self.begun.load(Ordering::Relaxed) {
            return Ok(executor::Interpreter { name, ..executor::Interpreter::default() });
        }
        let context_sha256 = match &self.input {
            Input::Text(text) => put(client, context, text.clone()).await?,
            Input::Kept(digest) => digest.clone(),
            Input::Stored(store, log, id) => match store.blob(log, *id).await {
                Ok(Some(body)) => put(client, context, body.into()).await?,
                Ok(None) => return Err("the input of the run is not kept".to_owned()),
                Err(error) => return Err(format!("the input of the run cannot be read: {error}")),
            },
            Input::Gone => return Err("the interpreter was lost, and its input with it".to_owned()),
        };
        self.begun.store(true, Ordering::Relaxed);
        Ok(executor::Interpreter { name, begins: true, context_sha256 })
    }

    /// What came of code, as its agent sees it.
    pub(crate) fn output(&self, result: ToolResult) -> CodeOutput {
        #[derive(Deserialize)]
        struct Data {
            stdout: String,
            error: Option<String>,
            answer: Option<String>,
            truncated: bool,
            #[serde(default)]
            lost: bool,
        }
        let data = match result.status {
            ToolStatus::Success => serde_json::from_str::<Data>(&result.data).ok(),
            ToolStatus::Error | ToolStatus::NoData => None,
        };
        let Some(Data { stdout, error, answer, truncated, lost }) = data else {
            // Whether it still runs is not known: with the next code it begins anew.
            self.begun.store(false, Ordering::Relaxed);
            return CodeOutput::failed(result.error.unwrap_or_else(|| "the code did not run".to_owned()));
        };
        if lost {
            self.begun.store(false, Ordering::Relaxed);
        }
        let cut = stdout.char_indices().nth(SHOWN).map(|(at, _)| at);
        let shown = match cut {
            None => stdout,
            Some(at) => format!("{}\n[... {} more bytes ...]", &stdout[..at], stdout.len() - at),
        };
        let truncated = truncated || cut.is_some();
        CodeOutput { stdout: shown, error, answer, truncated, elapsed: result.elapsed }
    }
}

/// Takes an input to an executor, which names it.
async fn put(client: &Client, context: &Context, text: Bytes) -> Result<Bytes, String> {
    let (caller, session) = (Some(context.caller()), context.session.clone());
    let rest = (0..text.len()).step_by(PIECE).map({
        let text = text.clone();
        move |at| executor::PutBlobRequest {
            data: text.slice(at..text.len().min(at + PIECE)),
            ..executor::PutBlobRequest::default()
        }
    });
    let first = executor::PutBlobRequest { caller, session, data: Bytes::new() };
    let pieces = stream::iter(std::iter::once(first).chain(rest).collect::<Vec<_>>());
    let left = context.deadline;
    let put = tokio::time::timeout_at(left, client.clone().put_blob(traced(pieces))).await;
    match put {
        Ok(Ok(kept)) => Ok(kept.into_inner().sha256),
        Ok(Err(status)) => Err(format!("the executor did not take the input: {}", status.message())),
        Err(_) => Err("the executor did not take the input in time".to_owned()),
    }
}

/// A question of code, with the way to answer it.
#[derive(Debug)]
pub(crate) struct Question {
    pub id: QuestionId,
    pub wants: Wants,
    pub answerer: Answerer,
}

/// What code asks for.
#[derive(Debug)]
pub(crate) enum Wants {
    /// What a model says.
    Model { prompt: String, given: Option<Given> },
    /// What a command says. Its arguments.
    Command(String),
    /// What a command says that was judged.
    Judged { command: ToolCall, plan: ToolPlan },
    /// Something that there is not.
    Unknown(String),
}

/// A text that belongs to a question.
pub(crate) struct Given {
    /// All of it, where it is not too long for a model.
    pub text: Option<Bytes>,
    pub input: Input,
    pub about: About,
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Given").field("about", &self.about).finish_non_exhaustive()
    }
}

/// The way to answer a question.
#[derive(Clone, Debug)]
pub(crate) struct Answerer {
    client: Client,
    request: executor::AnswerHostCallRequest,
}

impl Question {
    pub(super) fn new(
        client: &Client,
        caller: executor::Caller,
        execution_id: String,
        call: executor::HostCall,
    ) -> Self {
        #[derive(Deserialize)]
        struct Prompt {
            prompt: String,
        }
        let id = QuestionId::new(&call.host_call_id);
        let request = executor::AnswerHostCallRequest {
            caller: Some(caller),
            execution_id,
            host_call_id: call.host_call_id.clone(),
            answer: None,
        };
        let answerer = Answerer { client: client.clone(), request };
        let wants = match (call.operation.as_str(), serde_json::from_str(&call.arguments_json)) {
            ("llm_query", Ok(Prompt { prompt })) => Wants::Model { prompt, given: given(call) },
            ("exec", _) => Wants::Command(call.arguments_json),
            _ => Wants::Unknown(call.operation),
        };
        Self { id, wants, answerer }
    }
}

fn given(call: executor::HostCall) -> Option<Given> {
    let about = About { characters: call.context_characters, prefix: call.context_prefix };
    match call.context {
        Some(text) => {
            let text = Bytes::from(text);
            Some(Given { text: Some(text.clone()), input: Input::Text(text), about })
        }
        None if call.context_sha256.is_empty() => None,
        None => Some(Given { text: None, input: Input::Kept(call.context_sha256), about }),
    }
}

impl Answerer {
    /// Answers with JSON, or with why there is none. Bounded by a deadline of its own.
    pub(crate) async fn give(mut self, answer: Result<String, String>) {
        self.request.answer = Some(match answer {
            Ok(json) => Answer::ResultJson(json),
            Err(why) => Answer::Error(why),
        });
        match timeout(CANCEL_TIME, self.client.answer_host_call(traced(self.request))).await {
            // Code that has ended wants no answer.
            Ok(_) => {}
            Err(_) => tracing::warn!("an executor did not take an answer"),
        }
    }
}

/// The tool that models call.
pub(super) const REPL: &str = "repl";

/// A command that code asks for, to start in a directory of the workspace.
pub(crate) fn command(call: &CallId, question: &QuestionId, arguments: String, directory: &str) -> ToolCall {
    let placed = serde_json::from_str(&arguments).ok().filter(|_| !directory.is_empty());
    let arguments = placed.map_or(arguments, |mut arguments: serde_json::Map<_, _>| {
        arguments.insert("cwd".to_owned(), directory.into());
        serde_json::Value::from(arguments).to_string()
    });
    ToolCall { id: call.of_command(question), name: "exec".to_owned(), arguments }
}

/// What a command says, for code. One that was stopped has no exit code of its own.
pub(crate) fn said(result: ToolResult) -> Result<String, String> {
    const STOPPED: i32 = -1;
    match result.error {
        None => Ok(result.data),
        Some(error) if result.elapsed.is_some() => {
            let code = result.return_code.unwrap_or(STOPPED);
            Ok(serde_json::json!({"exitCode": code, "stdout": "", "stderr": error}).to_string())
        }
        Some(error) => Err(error),
    }
}
