//! One evaluation: what it prints is passed on, what it asks for is asked, and it ends in time.

use std::{collections::VecDeque, io, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{Instant, sleep_until};

use super::{
    message::{FromEngine, Limits, Stream, ToEngine},
    process::Process,
};

/// Calls that are asked at the same time; the others wait for their turn.
const AT_ONCE: usize = 16;
/// Calls that are asked or wait at the same time, and the bytes of what they say. One alone may say more.
const OPEN_CALLS: usize = 1024;
const OPEN_BYTES: usize = 64 << 20;
/// How much longer than it may work an interpreter gets to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// What code is told that asks for more at the same time.
const TOO_MUCH: &str = "too much waits for an answer: at most 1024 calls and 64 MiB at the same time";

/// Something that the code asks its host for.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) operation: String,
    /// A JSON object.
    pub(crate) arguments: String,
    /// A text that belongs to it, of any length.
    pub(crate) context: Option<String>,
}

/// JSON, or why there is none.
pub(crate) type Answer = Result<String, String>;

/// Whoever an evaluation speaks to.
pub(crate) trait Host {
    /// It prints something.
    fn print(&self, stream: Stream, text: &str);
    /// It asks for something.
    fn ask(&self, ask: Ask) -> impl Future<Output = Answer> + Send;
}

/// How an evaluation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Evaluated {
    /// What ended it, unless it came to its end.
    pub(crate) error: Option<String>,
    /// What it gave as the final answer.
    pub(crate) answer: Option<String>,
}

/// Why an interpreter is lost, with all its variables.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("it did not stop after {} seconds of work and was ended", .0.as_secs())]
    Stuck(Duration),
    #[error("its process ended, most likely for want of memory")]
    Ended(#[source] io::Error),
}

/// Runs code. A process that is lost, or whose evaluation is dropped, must not be used again.
pub(super) async fn evaluate(
    process: &mut Process,
    limits: Limits,
    code: &str,
    host: &impl Host,
) -> Result<Evaluated, Lost> {
    let patience = Duration::from_millis(limits.work_ms) + GRACE;
    let mut clock = Clock::new(patience);
    let (mut waiting, mut asked) = (VecDeque::new(), FuturesUnordered::new());
    let mut open_bytes = 0;
    process.send(&ToEngine::Evaluate, code.as_bytes()).await.map_err(Lost::Ended)?;
    clock.told();
    loop {
        tokio::select! {
            said = process.next() => {
                let (message, attachment) = said.map_err(Lost::Ended)?;
                let text = String::from_utf8_lossy(&attachment);
                match message {
                    FromEngine::Print(stream) => host.print(stream, &text),
                    FromEngine::Call { id, operation, arguments, has_context } => {
                        let size = text.len() + arguments.len();
                        let calls = waiting.len() + asked.len();
                        if calls > 0 && (calls >= OPEN_CALLS || open_bytes + size > OPEN_BYTES) {
                            process.send(&ToEngine::Refusal(id), TOO_MUCH.as_bytes()).await.map_err(Lost::Ended)?;
                            clock.told();
                            continue;
                        }
                        open_bytes += size;
                        let context = has_context.then(|| text.into_owned());
                        waiting.push_back((id, size, Ask { operation, arguments, context }));
                    }
                    FromEngine::Waiting => clock.heard(),
                    FromEngine::Done { error, answer } => return Ok(Evaluated { error, answer }),
                    FromEngine::Ready => return Err(Lost::Ended(io::ErrorKind::InvalidData.into())),
                }
            }
            Some((id, size, answer)) = asked.next() => {
                open_bytes -= size;
                let sent = match &answer {
                    Ok(json) => process.send(&ToEngine::Answer(id), String::as_bytes(json)).await,
                    Err(why) => process.send(&ToEngine::Refusal(id), String::as_bytes(why)).await,
                };
                sent.map_err(Lost::Ended)?;
                clock.told();
            }
            () = clock.rings() => return Err(Lost::Stuck(patience)),
        }
        while asked.len() < AT_ONCE
            && let Some((id, size, ask)) = waiting.pop_front()
        {
            asked.push(async move { (id, size, host.ask(ask).await) });
        }
    }
}

/// Runs while the interpreter has something to do.
struct Clock {
    patience: Duration,
    /// Messages that it has not worked off.
    open: usize,
    deadline: Instant,
}

impl Clock {
    fn new(patience: Duration) -> Self {
        Self { patience, open: 0, deadline: Instant::now() + patience }
    }

    fn told(&mut self) {
        if self.open == 0 {
            self.deadline = Instant::now() + self.patience;
        }
        self.open += 1;
    }

    fn heard(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    async fn rings(&self) {
        match self.open {
            0 => std::future::pending().await,
            _ => sleep_until(self.deadline).await,
        }
    }
}
