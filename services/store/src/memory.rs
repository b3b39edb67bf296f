//! A log that ends with its process.

use std::{
    collections::{HashMap, VecDeque},
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{Event, EventKind, Message, Part, RunId};
use futures_util::future::{BoxFuture, ready};
use tokio::sync::watch;

use crate::{Error, EventLog};

/// How much of the runs that have ended is kept. The oldest go first.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Runs that have ended.
    pub runs: usize,
    /// Their text, in bytes.
    pub bytes: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { runs: 1000, bytes: 256 << 20 }
    }
}

/// A log in memory.
#[derive(Debug, Default)]
pub struct Memory {
    runs: Mutex<Runs>,
    retention: Retention,
}

#[derive(Debug, Default)]
struct Runs {
    by_id: HashMap<RunId, Log>,
    ended: VecDeque<RunId>,
    ended_bytes: usize,
}

#[derive(Debug)]
struct Log {
    events: Vec<Arc<Event>>,
    bytes: usize,
    head: watch::Sender<u64>,
}

impl Memory {
    /// An empty log.
    pub fn new(retention: Retention) -> Self {
        Self { runs: Mutex::default(), retention }
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        // Nothing in here panics half-way through a change.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_now(&self, run: &RunId, expected: u64, events: Vec<Event>) -> Result<(), Error> {
        let mut runs = self.lock();
        let log = runs.by_id.entry(run.clone()).or_insert_with(Log::new);
        let found = log.position();
        if found != expected {
            return Err(Error::Conflict { run: run.clone(), expected, found });
        }
        let ends = events.last().is_some_and(|event| event.kind.is_terminal());
        log.bytes += events.iter().map(weight).sum::<usize>();
        log.events.extend(events.into_iter().map(Arc::new));
        log.head.send_replace(log.position());
        if ends {
            runs.ended_bytes += log_bytes(&runs.by_id, run);
            runs.ended.push_back(run.clone());
            runs.forget(self.retention);
        }
        Ok(())
    }
}

fn log_bytes(logs: &HashMap<RunId, Log>, run: &RunId) -> usize {
    logs.get(run).map_or(0, |log| log.bytes)
}

impl Runs {
    fn get(&self, run: &RunId) -> Result<&Log, Error> {
        self.by_id.get(run).ok_or_else(|| Error::UnknownRun(run.clone()))
    }

    fn forget(&mut self, keep: Retention) {
        while self.ended.len() > keep.runs.max(1) || (self.ended_bytes > keep.bytes && self.ended.len() > 1) {
            let Some(oldest) = self.ended.pop_front() else { return };
            self.ended_bytes -= log_bytes(&self.by_id, &oldest);
            self.by_id.remove(&oldest);
        }
    }
}

impl Log {
    fn new() -> Self {
        Self { events: Vec::new(), bytes: 0, head: watch::Sender::new(0) }
    }

    fn position(&self) -> u64 {
        self.events.len() as u64
    }
}

impl EventLog for Memory {
    fn append(&self, run: &RunId, expected: u64, events: Vec<Event>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(ready(self.append_now(run, expected, events)))
    }

    fn read(
        &self,
        run: &RunId,
        after: u64,
        limit: NonZeroUsize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Event>>, Error>> {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let read = |log: &Log| log.events.iter().skip(after).take(limit.get()).cloned().collect();
        Box::pin(ready(self.lock().get(run).map(read)))
    }

    fn head(&self, run: &RunId) -> BoxFuture<'_, Result<watch::Receiver<u64>, Error>> {
        Box::pin(ready(self.lock().get(run).map(|log| log.head.subscribe())))
    }

    fn check(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }
}

/// Bytes of text in an event.
fn weight(event: &Event) -> usize {
    let text = match &event.kind {
        EventKind::RunStarted(started) => started.messages.iter().map(message_weight).sum(),
        EventKind::AssistantMessage(assistant) => message_weight(&assistant.message),
        EventKind::TextDelta { text, .. }
        | EventKind::ThinkingDelta { text, .. }
        | EventKind::ToolOutput { text, .. } => text.len(),
        EventKind::ToolStarted { call, description, .. } => call.arguments.len() + description.len(),
        EventKind::ToolFinished { result, .. } => result.data.len(),
        EventKind::RunFinished { answer, .. } => answer.len(),
        EventKind::RunFailed { message, .. } => message.len(),
        EventKind::AttemptAbandoned { reason, .. } | EventKind::RunCancelled { reason } => reason.len(),
        EventKind::CallResolved { call, result, .. } => call.arguments.len() + result.data.len(),
        EventKind::CompactionDone(done) => {
            done.summary.len() + done.messages.iter().map(message_weight).sum::<usize>()
        }
        EventKind::CompactionFailed { reason, .. } => reason.len(),
        EventKind::Notice { text } => text.len(),
        EventKind::ModelCalled(_)
        | EventKind::CompactionStarted(_)
        | EventKind::UsageReported(_)
        | EventKind::ClientToolRequested { .. }
        | EventKind::RunSuspended => 0,
    };
    size_of::<Event>() + text
}

fn message_weight(message: &Message) -> usize {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.len(),
        Part::Image(image) => image.url.len(),
        Part::Thinking(thinking) => thinking.text.len(),
    });
    let calls = message.tool_calls.iter().map(|call| call.arguments.len());
    size_of::<Message>()
        + parts.chain(calls).sum::<usize>()
        + message.client_json.as_ref().map_or(0, String::len)
}
