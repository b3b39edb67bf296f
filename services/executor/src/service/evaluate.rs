//! Code of a model on its way through an interpreter: output masked, questions passed on to the agent.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;
use wire::executor::{Ending, Finished, HostCall, Interpreter};

use super::{
    drive::{Permitted, Workshop},
    ending::{failed, finished},
    execution::Execution,
    stop::Stop,
};
use crate::{
    process::{Capture, Life, Source},
    redact::{Masked, Masker, Redactor, Suspicion},
    repl::{Answer, Ask, Evaluated, Failed, Host, Name, Place, Stream},
    tools::{Evaluation, Presentation},
    workspace::{Session, Workspaces},
};

/// Output of an evaluation that its result holds.
const OUTPUT: usize = 64 << 10;
/// Bytes of what ended it that are passed on.
const ERROR: usize = 16 << 10;
/// The longest final answer.
const ANSWER: usize = 8 << 20;
/// How long an agent may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(15 * 60);
/// The longest text that is sent along with a question. A longer one is kept, and the agent names it.
const CONTEXT: usize = 1 << 20;
/// Characters of a longer one that are shown.
const PREFIX: usize = 200;

impl Workshop {
    /// Has an interpreter run code. It takes no place among the commands: most of its time it waits for others.
    pub(super) async fn evaluate(&self, permitted: &Permitted<'_>, evaluation: Evaluation) -> Finished {
        let Permitted { execution, order, redactor, .. } = permitted;
        let refused = |why: &str| failed("", format!("refused: {why}"), Ending::Refused);
        let Some(interpreter) = &order.interpreter else { return refused("no interpreter is named") };
        let session = Session { account: order.key.account.clone(), id: order.standing.session.clone() };
        let place = match self.place(&session, interpreter).await {
            Ok(place) => place,
            Err(why) => return refused(&why),
        };
        let name = Name { session: session.clone(), own: interpreter.name.clone() };
        let suspicion = permitted.suspicion(&evaluation.code);
        let desk = Desk {
            execution,
            redactor: redactor.clone(),
            workspaces: &self.workspaces,
            session,
            output: Mutex::new(Output::new(redactor.masker(suspicion))),
            masked: AtomicU64::new(0),
        };
        let mut sandbox = (String::new(), Vec::new());
        let began = |life: &Life| {
            let (level, layers) = life.sandbox();
            sandbox = (level.to_string(), layers.iter().map(ToString::to_string).collect());
        };
        let mut stopped = pin!(self.stopped(permitted));
        let evaluated = tokio::select! {
            evaluated = self.interpreters.evaluate(&self.launcher, name, place, &evaluation.code, &desk, began) => {
                Ok(evaluated)
            }
            stop = &mut stopped => Err(stop),
        };
        let printed = desk.ended();
        let finished = match evaluated {
            Ok(evaluated) => ended(evaluated, &printed, &desk),
            Err(stop) => stopped_early(stop),
        };
        let (sandbox, sandbox_layers) = sandbox;
        Finished {
            total_bytes: printed.bytes,
            omitted_bytes: printed.omitted,
            redacted_spans: printed.masked + desk.masked.into_inner(),
            sandbox,
            sandbox_layers,
            ..finished
        }
    }

    async fn place(&self, session: &Session, interpreter: &Interpreter) -> Result<Place, String> {
        if !interpreter.begins {
            return Ok(Place::Known);
        }
        if interpreter.context_sha256.is_empty() {
            return Ok(Place::New(None));
        }
        let (workspaces, session) = (Arc::clone(&self.workspaces), session.clone());
        let opened = tokio::task::spawn_blocking(move || workspaces.open(&session)).await;
        let workspace =
            opened.map_err(|error| error.to_string())?.map_err(|unavailable| unavailable.to_string())?;
        let context = workspace.blobs.find(&interpreter.context_sha256);
        context.map(|file| Place::New(Some(file))).ok_or_else(|| "its context is not here".to_owned())
    }
}

fn ended(evaluated: Result<Evaluated, Failed>, printed: &Printed, desk: &Desk<'_>) -> Finished {
    let lost = matches!(evaluated, Err(Failed::Unknown | Failed::Full));
    let Evaluated { error, answer } =
        evaluated.unwrap_or_else(|lost| Evaluated { error: Some(lost.to_string()), answer: None });
    let answer = answer.map(|answer| desk.shown(&answer[..answer.floor_char_boundary(ANSWER)]));
    let error = error.map(|error| desk.shown(&error[..error.floor_char_boundary(ERROR)]));
    let (stdout, truncated) = (&printed.text, printed.omitted > 0);
    let data =
        json!({ "stdout": stdout, "error": error, "answer": answer, "truncated": truncated, "lost": lost });
    finished(Presentation::Success(data.to_string()), Ending::Answered)
}

fn stopped_early(stop: Stop) -> Finished {
    Finished { clock: stop.clock().into(), ..failed("", stop.error("repl"), stop.ending()) }
}

/// Stands between an interpreter and the agent.
struct Desk<'a> {
    execution: &'a Execution,
    redactor: Redactor,
    workspaces: &'a Arc<Workspaces>,
    session: Session,
    output: Mutex<Output>,
    /// Secrets that were masked in what it asked and answered.
    masked: AtomicU64,
}

/// All that was printed.
struct Printed {
    text: String,
    bytes: u64,
    omitted: u64,
    masked: u64,
}

/// What was printed, without secrets.
struct Output {
    masker: Masker,
    kept: Capture,
    /// Bytes that were passed on, of each stream.
    passed: [u64; 2],
}

impl Output {
    fn new(masker: Masker) -> Self {
        Self { masker, kept: Capture::new(OUTPUT), passed: [0; 2] }
    }

    fn pass(&mut self, execution: &Execution, source: Source, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let passed = match source {
            Source::Stdout => &mut self.passed[0],
            Source::Stderr => &mut self.passed[1],
        };
        execution.output(0, source, *passed, bytes);
        *passed += bytes.len() as u64;
        self.kept.push(bytes);
    }
}

impl Desk<'_> {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> Printed {
        let mut output = self.output();
        let (rest, errors) = output.masker.finish();
        output.pass(self.execution, Source::Stdout, &rest);
        output.pass(self.execution, Source::Stderr, &errors);
        Printed {
            text: output.kept.text(),
            bytes: output.passed.iter().sum(),
            omitted: output.kept.omitted(),
            masked: output.masker.spans(),
        }
    }

    fn shown(&self, text: &str) -> String {
        self.count(self.redactor.text(text, Suspicion::Usual))
    }

    fn count(&self, masked: Masked) -> String {
        self.masked.fetch_add(masked.spans, Ordering::Relaxed);
        masked.text
    }

    /// The question, with a text that is too long for it kept beside it.
    async fn question(&self, ask: Ask) -> Result<HostCall, String> {
        let call = HostCall {
            host_call_id: Uuid::now_v7().to_string(),
            operation: ask.operation,
            arguments_json: self.shown(&ask.arguments),
            ..HostCall::default()
        };
        let Some(context) = ask.context else { return Ok(call) };
        // A long one takes its time.
        let redactor = self.redactor.clone();
        let shown = tokio::task::spawn_blocking(move || redactor.text(&context, Suspicion::Usual));
        let context = self.count(shown.await.map_err(|error| error.to_string())?);
        let context_characters = context.chars().count() as u64;
        let context_prefix = context.chars().take(PREFIX).collect();
        let call = HostCall { context_characters, context_prefix, ..call };
        if context.len() <= CONTEXT {
            return Ok(HostCall { context: Some(context), ..call });
        }
        let (workspaces, session) = (Arc::clone(self.workspaces), self.session.clone());
        let kept = tokio::task::spawn_blocking(move || {
            let workspace = workspaces.open(&session).map_err(|unavailable| unavailable.to_string())?;
            let mut draft = workspace.blobs.draft().map_err(|error| error.to_string())?;
            draft.push(context.as_bytes()).map_err(|rejected| rejected.to_string())?;
            Ok::<_, String>(draft.keep().0)
        });
        let digest = kept.await.map_err(|error| error.to_string())??;
        Ok(HostCall { context_sha256: digest.into(), ..call })
    }
}

impl Host for Desk<'_> {
    fn print(&self, stream: Stream, text: &str) {
        let source = match stream {
            Stream::Out => Source::Stdout,
            Stream::Err => Source::Stderr,
        };
        let mut output = self.output();
        let masked = output.masker.push(source, text.as_bytes());
        output.pass(self.execution, source, &masked);
    }

    async fn ask(&self, ask: Ask) -> Answer {
        let call = self.question(ask).await?;
        let late = |_| Err(format!("no answer within {} seconds", ANSWER_TIME.as_secs()));
        timeout(ANSWER_TIME, self.execution.ask(call)).await.unwrap_or_else(late)
    }
}
