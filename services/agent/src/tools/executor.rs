//! The tools of an executor.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::{Approval, Before, Labels, Permission, ToolCall, ToolPlan, ToolProfile, ToolVerdict};
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};
use wire::executor::{self, Verdict};

use super::{
    Interpreter, Offer,
    call::{self, Context, Destination, Running},
    execution::RETURN_TIME,
    executors::{Member, Pool, Wish, is_lost},
    offered,
    rules::Judged,
};

/// How long an executor may think about what it has at hand.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Pause before an executor that could not be reached is asked again.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// No executor has said what tools there are.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no executor has answered: {0}")]
pub(crate) struct NoExecutor(String);

/// Executors, as far as their tools go.
#[derive(Clone)]
pub(super) struct Executor {
    at: Destination,
    /// The last offers: an executor that restarts does not make an agent forget its tools.
    last: Arc<Mutex<HashMap<ToolProfile, Offer>>>,
}

impl Executor {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self { at: Destination { pool, cluster: String::new() }, last: Arc::default() }
    }

    /// The same as those of one of many clusters: calls say that they are for it.
    pub(super) fn of_many(self, cluster: &str) -> Self {
        Self { at: Destination { cluster: cluster.to_owned(), ..self.at }, ..self }
    }

    /// The same with only those executors that have these labels too.
    pub(super) fn labelled(&self, labels: &Labels) -> Self {
        let pool = Arc::new(self.at.pool.labelled(labels));
        Self { at: Destination { pool, ..self.at.clone() }, last: Arc::default() }
    }

    /// All of them.
    pub(super) fn members(&self) -> Vec<Arc<Member>> {
        self.at.pool.members().to_vec()
    }

    /// What they have together now, and what those had that do not answer.
    pub(super) async fn offer(&self, profile: ToolProfile) -> Result<Offer, NoExecutor> {
        let looked = self.look(profile).await;
        let lists: Vec<_> = self.at.pool.members().iter().filter_map(|member| member.list(profile)).collect();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.is_empty() {
            return last.get(&profile).cloned().ok_or_else(|| looked.err().unwrap_or_else(|| self.nobody()));
        }
        let offer = offered::union(&lists);
        last.insert(profile, offer.clone());
        Ok(offer)
    }

    /// Whether an executor answers now.
    pub(super) async fn check(&self) -> Result<(), NoExecutor> {
        self.look(ToolProfile::default()).await
    }

    /// Asks all of them what they have.
    async fn look(&self, profile: ToolProfile) -> Result<(), NoExecutor> {
        let silent = |status: Status| NoExecutor(status.message().to_owned());
        let filled = async {
            self.at.pool.filled().await;
            Ok(())
        };
        within(ANSWER_TIME, filled).await.map_err(silent)?;
        let all = self.at.pool.candidates();
        let anybody = all.iter().any(|member| member.works());
        let asked =
            all.iter().filter(|member| member.works() || !anybody).map(|member| list(member, profile));
        let answers = join_all(asked).await;
        let here = self.at.pool.members();
        let ours = |name: &str| here.iter().any(|member| member.name() == name);
        let mut missing = self.nobody();
        for answer in answers {
            match answer {
                Ok(name) if ours(&name) => return Ok(()),
                Ok(_) => {}
                Err(status) => missing = silent(status),
            }
        }
        Err(missing)
    }

    fn nobody(&self) -> NoExecutor {
        let labels: Vec<_> =
            self.at.pool.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
        NoExecutor(format!("none has the labels {}", labels.join(", ")))
    }

    /// Has a call judged. One that cannot be judged must not run.
    pub(super) async fn plan(&self, call: &ToolCall, context: &Context) -> Judged {
        let asked = executor::PlanRequest {
            caller: Some(context.caller()),
            tool: call.name.clone(),
            arguments_json: call.arguments.clone(),
            standing_grants: context.standing.to_vec(),
            session: context.session.clone(),
            profile: context.profile.name().to_owned(),
            request_headers: context.headers.to_wire(),
            cluster: self.at.cluster.clone(),
        };
        let refused = |reason: String| {
            let (call, description, verdict) = (call.id.clone(), String::new(), ToolVerdict::Refuse(reason));
            Judged::harmless(ToolPlan { call, description, toolset: None, cluster: None, by: None, verdict })
        };
        let wish =
            Wish { near: context.files(), tool: Some((context.profile, &call.name)), ..Wish::default() };
        match within(self.patience(), self.judged(asked, wish)).await {
            Ok(answer) => {
                let mut answer = answer.into_inner();
                let description = std::mem::take(&mut answer.description);
                let toolset = Some(std::mem::take(&mut answer.toolset)).filter(|toolset| !toolset.is_empty());
                let by = Some(std::mem::take(&mut answer.allowed_by)).filter(|by| !by.is_empty());
                let (verdict, facts) = judgement(answer);
                let call = call.id.clone();
                Judged { plan: ToolPlan { call, description, toolset, cluster: None, by, verdict }, facts }
            }
            Err(status) if status.code() == Code::NotFound => {
                refused(format!("Failed to find tool {}", call.name))
            }
            Err(status) => refused(format!("The executor could not judge the call: {}", status.message())),
        }
    }

    /// How long a judgement may take: an executor that dials in may have to come back for it.
    fn patience(&self) -> Duration {
        if self.at.pool.expects() { RETURN_TIME } else { ANSWER_TIME }
    }

    /// The executor's judgement. One that is away is waited for: nothing has run yet.
    async fn judged(
        &self,
        asked: executor::PlanRequest,
        wish: Wish<'_>,
    ) -> Result<tonic::Response<executor::PlanResponse>, Status> {
        loop {
            let judged = self.at.pool.ask(wish, |member| {
                let asked = call::traced(asked.clone());
                async move { member.client().plan(asked).await }
            });
            match judged.await {
                Err(status) if is_lost(&status) => sleep(RESTART_PAUSE).await,
                answer => return answer.map(|(judgement, _)| judgement),
            }
        }
    }

    /// Tells all executors that the session of a run has ended. Bounded by its own deadline.
    pub(super) async fn close_session(&self, context: &Context) {
        close_session(self.members(), context.caller(), &context.session).await;
    }

    /// Tells the executor that has the session that it does not need an interpreter any more. Bounded by its own
    /// deadline.
    pub(super) async fn end_interpreter(&self, name: &str, context: &Context) {
        let home = context.home.instance();
        let there = self.members().into_iter().filter(|member| member.instance() == home);
        let request = executor::CloseSessionRequest {
            caller: Some(context.caller()),
            session: context.session.clone(),
            interpreter: name.to_owned(),
        };
        close(there, request).await;
    }

    /// Starts a call. It ends with the returned handle, or when that is dropped.
    pub(super) fn run(
        &self,
        call: ToolCall,
        permission: Option<Permission>,
        before: Before,
        context: &Context,
    ) -> Running {
        Running::start(self.at.clone(), call, permission, before, None, context)
    }

    /// Starts code, likewise.
    pub(super) fn run_code(
        &self,
        call: ToolCall,
        interpreter: Interpreter,
        before: Before,
        context: &Context,
    ) -> Running {
        Running::start(self.at.clone(), call, None, before, Some(interpreter), context)
    }
}

/// Tells executors that a session has ended. Bounded by its own deadline.
pub(super) async fn close_session(
    members: impl IntoIterator<Item = Arc<Member>>,
    caller: executor::Caller,
    session: &str,
) {
    let (caller, session) = (Some(caller), session.to_owned());
    close(members, executor::CloseSessionRequest { caller, session, interpreter: String::new() }).await;
}

async fn close(members: impl IntoIterator<Item = Arc<Member>>, request: executor::CloseSessionRequest) {
    let told = members.into_iter().map(async |member| {
        let request = call::traced(request.clone());
        if let Err(status) = within(ANSWER_TIME, member.client().close_session(request)).await {
            tracing::warn!(%status, "an executor keeps what it has of a session until it is old");
        }
    });
    join_all(told).await;
}

/// Has an executor say what it has.
async fn list(member: &Member, profile: ToolProfile) -> Result<String, Status> {
    let asked = executor::ListToolsRequest { caller: None, profile: profile.name().to_owned() };
    match within(ANSWER_TIME, member.client().list_tools(call::traced(asked))).await {
        Ok(list) => {
            member.told(profile, list.into_inner());
            Ok(member.name().to_owned())
        }
        Err(status) => {
            if is_lost(&status) {
                member.failed(&status);
            }
            Err(status)
        }
    }
}

fn judgement(answer: executor::PlanResponse) -> (ToolVerdict, Approval) {
    let verdict = answer.verdict();
    let facts = Approval {
        effect: answer.effect().into(),
        reason: answer.reason,
        command: answer.command,
        target: answer.target,
        prefixes: answer.prefixes,
        policy: answer.policy_version,
    };
    let verdict = match verdict {
        Verdict::Allow => ToolVerdict::Allow,
        Verdict::Ask => ToolVerdict::AskPerson(facts.clone()),
        Verdict::Deny | Verdict::Unspecified => ToolVerdict::Refuse(facts.reason.clone()),
    };
    (verdict, facts)
}

async fn within<T>(time: Duration, answer: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = || Status::deadline_exceeded(format!("no answer within {} s", time.as_secs()));
    timeout(time, answer).await.unwrap_or_else(|_| Err(late()))
}
