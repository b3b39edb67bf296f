//! One execution: its events, who reads them, and the right to end it.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream::unfold};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};
use tokio_util::sync::CancellationToken;
use wire::executor::{
    Accepted, Ending, ExecuteEvent, Finished, Heartbeat, HostCall, OutputChunk, OutputStream,
    execute_event::Kind,
};

use super::known::Known;
use crate::{process::Source, repl::Answer};

/// The most pieces in which output is shown as it comes. Bytes are limited as well.
const LIVE_CHUNKS: usize = 8192;

/// What is asked to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments_json: String,
    /// A person's permission.
    pub(super) grant: Bytes,
}

impl Call {
    /// Whether both ask for the same, with whatever permission.
    pub(super) fn is_same_work(&self, other: &Self) -> bool {
        self.tool == other.tool && self.arguments_json == other.arguments_json
    }
}

/// An execution from its admission until it is forgotten.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) call: Call,
    pub(super) started: Instant,
    /// Ends it.
    pub(super) cancel: CancellationToken,
    live_bytes: usize,
    log: Mutex<Log>,
    /// Who waits for an answer, by host call.
    asked: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
    /// How many events there are.
    length: watch::Sender<u64>,
    /// How many streams read it.
    readers: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<ExecuteEvent>,
    shown: usize,
    finished: bool,
}

impl Execution {
    pub(super) fn new(
        id: &str,
        instance: &str,
        call: Call,
        live_bytes: usize,
        cancel: CancellationToken,
    ) -> Self {
        let execution = Self {
            call,
            started: Instant::now(),
            cancel,
            live_bytes,
            log: Mutex::default(),
            asked: Mutex::default(),
            length: watch::Sender::new(0),
            readers: watch::Sender::new(0),
        };
        execution
            .push(Kind::Accepted(Accepted { execution_id: id.to_owned(), instance: instance.to_owned() }));
        execution
    }

    /// Shows output as it comes, until there is too much.
    pub(super) fn output(&self, command: usize, source: Source, offset: u64, bytes: &[u8]) {
        {
            let mut log = self.log();
            if log.shown + bytes.len() > self.live_bytes || log.events.len() >= LIVE_CHUNKS {
                log.shown = self.live_bytes;
                return;
            }
            log.shown += bytes.len();
        }
        self.push(Kind::Output(OutputChunk {
            stream: stream(source).into(),
            command: u32::try_from(command).unwrap_or(u32::MAX),
            offset,
            data: Bytes::copy_from_slice(bytes),
        }));
    }

    /// Asks whoever reads it. The question goes when the answer is not waited for any more.
    pub(super) async fn ask(&self, call: HostCall) -> Answer {
        let (answer, answered) = oneshot::channel();
        let _asked = Asked { execution: self, id: call.host_call_id.clone() };
        self.asked().insert(call.host_call_id.clone(), answer);
        self.push(Kind::HostCall(call));
        answered.await.unwrap_or_else(|_| Err("nobody answers any more".to_owned()))
    }

    /// Hands in the answer to a host call. False if nobody waits for it.
    pub(super) fn answer(&self, host_call: &str, answer: Answer) -> bool {
        let asked = self.asked().remove(host_call);
        asked.is_some_and(|asked| asked.send(answer).is_ok())
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it. Nothing comes after the first end.
    pub(super) fn finish(&self, finished: Finished) {
        self.push(Kind::Finished(finished));
    }

    fn push(&self, kind: Kind) {
        let mut log = self.log();
        if log.finished {
            return;
        }
        log.finished = matches!(kind, Kind::Finished(_));
        let sequence = log.events.len() as u64 + 1;
        log.events.push_back(ExecuteEvent { sequence, kind: Some(kind) });
        self.length.send_replace(sequence);
    }

    pub(super) fn is_finished(&self) -> bool {
        self.log().finished
    }

    /// Whether it was refused, so that nothing of it ran.
    pub(super) fn was_refused(&self) -> bool {
        let log = self.log();
        matches!(
            log.events.back().and_then(|event| event.kind.as_ref()),
            Some(Kind::Finished(finished)) if finished.ending() == Ending::Refused
        )
    }

    /// Roughly the memory that it holds.
    pub(super) fn bytes(&self) -> usize {
        let events: usize = self.log().events.iter().map(size).sum();
        events + self.call.arguments_json.len()
    }

    /// Returns when nobody has read it for `grace`.
    pub(super) async fn orphaned(&self, grace: Duration) {
        let mut readers = self.readers.subscribe();
        loop {
            if readers.wait_for(|readers| *readers == 0).await.is_err() {
                return std::future::pending().await;
            }
            match tokio::time::timeout(grace, readers.wait_for(|readers| *readers > 0)).await {
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Streams what came and is not known, then what comes, to the end.
    pub(super) fn read(
        self: &Arc<Self>,
        known: Known,
        heartbeat: Duration,
    ) -> impl Stream<Item = ExecuteEvent> + Send + use<> {
        unfold(Reader::new(self, known, heartbeat), |mut reader| async {
            let event = reader.next().await?;
            Some((event, reader))
        })
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that waits for its answer.
struct Asked<'a> {
    execution: &'a Execution,
    id: String,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.execution.asked().remove(&self.id);
        // Its place in the order of events stays; what it said may be long, and nobody needs it any more.
        let mut log = self.execution.log();
        let said = log.events.iter_mut().find_map(|event| match &mut event.kind {
            Some(Kind::HostCall(call)) if call.host_call_id == self.id => Some(&mut event.kind),
            _ => None,
        });
        if let Some(kind) = said {
            *kind = None;
        }
    }
}

/// A stream's place in an execution. While it exists the execution has a reader.
struct Reader {
    execution: Arc<Execution>,
    known: Known,
    length: watch::Receiver<u64>,
    heartbeat: Interval,
    ended: bool,
}

impl Reader {
    fn new(execution: &Arc<Execution>, known: Known, period: Duration) -> Self {
        execution.readers.send_modify(|readers| *readers += 1);
        let mut heartbeat = interval_at(Instant::now() + period, period);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            execution: Arc::clone(execution),
            known,
            length: execution.length.subscribe(),
            heartbeat,
            ended: false,
        }
    }

    async fn next(&mut self) -> Option<ExecuteEvent> {
        if self.ended {
            return None;
        }
        loop {
            {
                let log = self.execution.log();
                let next = usize::try_from(self.known.sequence).ok().and_then(|seen| log.events.get(seen));
                if let Some(event) = next {
                    self.known.sequence = event.sequence;
                    self.ended = matches!(event.kind, Some(Kind::Finished(_)));
                    match self.known.news(event) {
                        Some(news) => return Some(news),
                        None => continue,
                    }
                }
                if log.finished {
                    return None;
                }
            }
            let seen = self.known.sequence;
            tokio::select! {
                grown = pin!(self.length.wait_for(|length| *length > seen)) => drop(grown.ok()?),
                _ = self.heartbeat.tick() => {
                    let elapsed = self.execution.started.elapsed().try_into().ok();
                    return Some(ExecuteEvent { sequence: 0, kind: Some(Kind::Heartbeat(Heartbeat { elapsed })) });
                }
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.execution.readers.send_modify(|readers| *readers -= 1);
    }
}

/// A stream as the contract names it.
pub(super) fn stream(source: Source) -> OutputStream {
    match source {
        Source::Stdout => OutputStream::Stdout,
        Source::Stderr => OutputStream::Stderr,
    }
}

fn size(event: &ExecuteEvent) -> usize {
    const OVERHEAD: usize = 128;
    OVERHEAD
        + match &event.kind {
            Some(Kind::Output(chunk)) => chunk.data.len(),
            Some(Kind::Finished(finished)) => {
                let images: usize = finished.images.iter().map(|image| image.data.len()).sum();
                finished.data.len() + finished.error.len() + finished.invocation.len() + images
            }
            Some(Kind::HostCall(call)) => call.arguments_json.len() + call.context().len(),
            Some(Kind::Accepted(_) | Kind::Heartbeat(_)) | None => 0,
        }
}
