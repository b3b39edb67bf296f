//! An executor that outlives its agents: what was begun goes on, whoever follows it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::ToolProfile;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::time::{Instant, sleep_until};
use tonic::{Request, Response, Status, Streaming};
use wire::executor::{
    AnswerHostCallRequest, AnswerHostCallResponse, AttachRequest, CancelRequest, CancelResponse,
    CloseSessionRequest, CloseSessionResponse, EffectClass, Ending, ExecuteEvent, ExecuteRequest, Finished,
    Heartbeat, ListToolsRequest, ListToolsResponse, OutputChunk, PlanRequest, PlanResponse, PutBlobRequest,
    PutBlobResponse, Tool, ToolStatus, Verdict, execute_event::Kind, tool_executor_server::ToolExecutor,
};

/// Reads.
pub(super) const LOOK: &str = "look";
/// May change something.
pub(super) const CHANGE: &str = "change";
/// Waits for a person.
const ASK: &str = "ask";
pub(super) const TOOLS: [&str; 3] = [LOOK, CHANGE, ASK];
/// Who asks for these tools gets no answer.
pub(super) const SILENT: ToolProfile = ToolProfile::Rlm;
/// How often an executor says something.
const BEAT: Duration = Duration::from_secs(5);

/// Something that was begun.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) tool: String,
    /// How often it was given to the executor.
    pub(super) times: u32,
    at: Instant,
    takes: Duration,
}

#[derive(Clone, Default)]
pub(super) struct Hands {
    begun: Arc<Mutex<HashMap<String, Begun>>>,
    closed: Arc<Mutex<Closed>>,
}

/// What sessions were closed.
#[derive(Default)]
pub(super) struct Closed {
    /// Whether nobody is told that one is.
    pub(super) silent: bool,
    pub(super) sessions: Vec<String>,
}

impl Hands {
    pub(super) fn closed(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was begun, by its execution.
    pub(super) fn begun(&self) -> MutexGuard<'_, HashMap<String, Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Begun {
    fn of(asked: &ExecuteRequest) -> Self {
        let arguments: serde_json::Value = serde_json::from_str(&asked.arguments_json).unwrap();
        let takes = Duration::from_secs(arguments["seconds"].as_u64().unwrap());
        Self { tool: asked.tool.clone(), times: 0, at: Instant::now(), takes }
    }

    /// What happens when, counted from the beginning: it prints something on each beat.
    fn story(&self) -> Vec<(Duration, Kind)> {
        let printed = |offset| OutputChunk { stream: 1, offset, data: b"so, "[..].into(), command: 0 };
        let beats = (0..).map(|beat| (BEAT * beat, Kind::Output(printed(4 * u64::from(beat)))));
        let heard = [(Duration::ZERO, Kind::Heartbeat(Heartbeat::default()))];
        let finished = Finished {
            status: ToolStatus::Success.into(),
            data: "it is as it was".to_owned(),
            ending: Ending::Answered.into(),
            ..Finished::default()
        };
        let printing = beats.take_while(|(at, _)| *at < self.takes);
        heard.into_iter().chain(printing).chain([(self.takes, Kind::Finished(finished))]).collect()
    }

    fn events(&self, after: u64) -> BoxStream<'static, Result<ExecuteEvent, Status>> {
        let began = self.at;
        let story = (1..).zip(self.story()).filter(move |(sequence, _)| *sequence > after);
        let events = stream::iter(story).then(move |(sequence, (at, kind))| async move {
            sleep_until(began + at).await;
            Ok(ExecuteEvent { sequence, kind: Some(kind) })
        });
        events.boxed()
    }
}

#[tonic::async_trait]
impl ToolExecutor for Hands {
    type ExecuteStream = BoxStream<'static, Result<ExecuteEvent, Status>>;
    type AttachStream = BoxStream<'static, Result<ExecuteEvent, Status>>;

    async fn list_tools(
        &self,
        asked: Request<ListToolsRequest>,
    ) -> Result<Response<ListToolsResponse>, Status> {
        if asked.get_ref().profile == SILENT.name() {
            std::future::pending::<()>().await;
        }
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            parameters_json: "{}".to_owned(),
            toolset: "hands".to_owned(),
            ..Tool::default()
        };
        let (tools, instance) = (TOOLS.map(tool).to_vec(), "one".to_owned());
        Ok(Response::new(ListToolsResponse { tools, instance, ..ListToolsResponse::default() }))
    }

    async fn plan(&self, asked: Request<PlanRequest>) -> Result<Response<PlanResponse>, Status> {
        let tool = asked.into_inner().tool;
        let effect = if tool == LOOK { EffectClass::Read } else { EffectClass::Mutation };
        let verdict = if tool == ASK { Verdict::Ask } else { Verdict::Allow };
        let (verdict, effect) = (verdict.into(), effect.into());
        Ok(Response::new(PlanResponse { verdict, effect, ..PlanResponse::default() }))
    }

    async fn execute(&self, asked: Request<ExecuteRequest>) -> Result<Response<Self::ExecuteStream>, Status> {
        let asked = asked.into_inner();
        let mut begun = self.begun();
        let begun = begun.entry(asked.execution_id.clone()).or_insert_with(|| Begun::of(&asked));
        begun.times += 1;
        Ok(Response::new(begun.events(0)))
    }

    async fn attach(&self, asked: Request<AttachRequest>) -> Result<Response<Self::AttachStream>, Status> {
        let asked = asked.into_inner();
        match self.begun().get(&asked.execution_id) {
            Some(begun) => Ok(Response::new(begun.events(asked.after_sequence))),
            None => Err(Status::not_found("it never began")),
        }
    }

    async fn answer_host_call(
        &self,
        _: Request<AnswerHostCallRequest>,
    ) -> Result<Response<AnswerHostCallResponse>, Status> {
        Err(Status::unimplemented("nothing asks"))
    }

    async fn cancel(&self, _: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        Ok(Response::new(CancelResponse::default()))
    }

    async fn put_blob(
        &self,
        _: Request<Streaming<PutBlobRequest>>,
    ) -> Result<Response<PutBlobResponse>, Status> {
        Err(Status::unimplemented("there is no code"))
    }

    async fn close_session(
        &self,
        asked: Request<CloseSessionRequest>,
    ) -> Result<Response<CloseSessionResponse>, Status> {
        let is_silent = {
            let mut closed = self.closed();
            closed.sessions.push(asked.into_inner().session);
            closed.silent
        };
        if is_silent {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(CloseSessionResponse {}))
    }
}
