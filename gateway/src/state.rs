//! What all requests share.

use std::sync::Arc;

use tokio::{sync::Semaphore, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use wire::{Transport, agent::ChatRequest};

use crate::{
    answer::{Answer, Came},
    approvals::Approvals,
    asker::Asker,
    body,
    config::Config,
    following::Following,
    ops::Readiness,
    problem::Problem,
    resume::Cursor,
    sessions,
    upstream::{Started, Upstream},
};

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) upstream: Upstream,
    /// Signs approvals, if there is a key.
    pub(crate) approvals: Option<Approvals>,
    /// One permit per answer in progress.
    answers: Arc<Semaphore>,
    pub(crate) bodies: body::Room,
    /// What was last known of the agent's readiness.
    pub(crate) readiness: Readiness,
    /// Cancelled when answers in progress must end.
    pub(crate) ending: CancellationToken,
    /// Cancelled when the server is told to stop: streams without an end of their own end then.
    pub(crate) stopping: CancellationToken,
    /// The agent's sessions, and who reads them.
    pub(crate) sessions: sessions::Upstream,
    pub(crate) seats: sessions::Seats,
}

impl Shared {
    pub(crate) fn new(config: Config, transport: Transport) -> Self {
        let upstream = Upstream::new(transport.clone());
        let answers = Arc::new(Semaphore::new(config.max_answers.min(Semaphore::MAX_PERMITS)));
        let approvals = config.signing_key.clone().map(Approvals::new);
        let bodies = body::Room::new(config.body_room);
        Self {
            config,
            upstream,
            approvals,
            answers,
            bodies,
            readiness: Readiness::default(),
            ending: CancellationToken::new(),
            stopping: CancellationToken::new(),
            sessions: sessions::Upstream::new(transport),
            seats: sessions::Seats::default(),
        }
    }

    /// Starts a run for a question, which takes the room of its body until the agent has it.
    pub(crate) async fn ask(
        &self,
        asker: &Asker,
        mut question: ChatRequest,
        room: body::Taken,
    ) -> Result<Answer, Problem> {
        question.caller = Some(asker.caller.clone());
        question.request_headers = asker.headers.to_wire();
        let came = if question.idempotency_key.is_empty() { Came::First } else { Came::WithKey };
        // Questions are large, and futures are copied on their way here.
        let asked = Box::pin(self.upstream.chat(question, self.config.answer_deadline));
        let answer = self.read(asker, asked, came).await;
        drop(room);
        answer
    }

    /// Goes on with the answer of a run.
    pub(crate) async fn attach(&self, asker: &Asker, cursor: Cursor) -> Result<Answer, Problem> {
        let watching = self.upstream.watch(&asker.caller, cursor.run, self.config.answer_deadline);
        self.read(asker, watching, Came::After(cursor.after)).await
    }

    /// The beginning of the run that the same question has begun before.
    pub(crate) async fn begun(
        &self,
        asker: &Asker,
        question: &ChatRequest,
    ) -> Result<Option<Cursor>, Problem> {
        let ChatRequest { idempotency_key: key, request_digest: digest, .. } = question;
        if key.is_empty() {
            return Ok(None);
        }
        let run = self.upstream.begun(&asker.caller, key.clone(), digest.clone()).await?;
        Ok(run.map(|run| Cursor { run, after: 0 }))
    }

    /// The clusters that an account can ask about now.
    pub(crate) async fn clusters(&self, asker: &Asker) -> Result<Vec<String>, Problem> {
        Ok(self.upstream.clusters(&asker.caller).await?)
    }

    async fn read(
        &self,
        asker: &Asker,
        starting: impl Future<Output = Result<Started, Status>>,
        came: Came,
    ) -> Result<Answer, Problem> {
        let permit = Arc::clone(&self.answers).try_acquire_owned().map_err(|_| Problem::overloaded())?;
        let deadline = Instant::now() + self.config.answer_deadline;
        let patience = self.config.agent_patience;
        let run = Following::run(self.upstream.clone(), asker.caller.clone(), starting.await?, patience);
        Ok(Answer::new(run, came, deadline, self.ending.clone(), permit))
    }
}
