//! Every way to a run, over HTTP and gRPC.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tonic::{Code, Request, Status, metadata::MetadataValue, transport::Channel};
use wire::{
    account::{AuditRequest, accounts_client::AccountsClient},
    agent::{
        Caller, CancelRunRequest, DecideRequest, GetRunRequest, ListRunsRequest, SteerRequest, WatchRequest,
        agent_client::AgentClient, decide_request::Settlement,
    },
};

use crate::world::World;

/// More than any refusal may take; what has not ended by then is an open stream.
const PATIENCE: Duration = Duration::from_secs(60);

/// A way to a run.
pub(crate) struct Door {
    pub(crate) name: &'static str,
    way: Way,
}

/// How it is gone.
#[derive(Clone, Copy)]
enum Way {
    /// `{run}` stands for the run.
    Get(&'static str),
    Cancel,
    /// A decision about a call of it, as the harness API takes it.
    Relay,
    /// A question with the run's place as `Last-Event-ID`.
    Resume(&'static str),
    Rpc(Rpc),
}

#[derive(Clone, Copy)]
enum Rpc {
    Get,
    /// The ended run, by the key of its question.
    Begun,
    Watch,
    List,
    Cancel,
    Decide,
    Steer,
    Audit,
}

pub(crate) const DOORS: &[Door] = &[
    Door { name: "GET run", way: Way::Get("/api/runs/{run}") },
    Door { name: "GET events", way: Way::Get("/api/runs/{run}/events") },
    Door { name: "GET runs", way: Way::Get("/api/runs?limit=1000") },
    Door { name: "GET audit of the run", way: Way::Get("/api/admin/audit?run_id={run}") },
    Door {
        name: "GET audit of the account's run",
        way: Way::Get("/api/admin/audit?account=acme&run_id={run}"),
    },
    Door { name: "POST cancel", way: Way::Cancel },
    Door { name: "POST relay", way: Way::Relay },
    Door { name: "resume chat", way: Way::Resume("/api/chat") },
    Door { name: "resume stream", way: Way::Resume("/api/stream/chat") },
    Door { name: "resume in the harness", way: Way::Resume("/chat") },
    Door { name: "resume an investigation", way: Way::Resume("/api/investigate") },
    Door { name: "resume the stream of an investigation", way: Way::Resume("/api/stream/investigate") },
    Door { name: "resume an issue's chat", way: Way::Resume("/api/issue_chat") },
    Door { name: "resume the stream of an issue's chat", way: Way::Resume("/api/stream/issue_chat") },
    Door { name: "resume a check", way: Way::Resume("/api/workload_health_check") },
    Door { name: "resume a workload's chat", way: Way::Resume("/api/workload_health_chat") },
    Door { name: "resume the account's chat", way: Way::Resume("/api/holmes/acme/chat") },
    Door { name: "resume in the rival's chat", way: Way::Resume("/api/holmes/rival/chat") },
    Door { name: "GetRun", way: Way::Rpc(Rpc::Get) },
    Door { name: "GetRun by key", way: Way::Rpc(Rpc::Begun) },
    Door { name: "Watch", way: Way::Rpc(Rpc::Watch) },
    Door { name: "ListRuns", way: Way::Rpc(Rpc::List) },
    Door { name: "CancelRun", way: Way::Rpc(Rpc::Cancel) },
    Door { name: "Decide", way: Way::Rpc(Rpc::Decide) },
    Door { name: "Steer", way: Way::Rpc(Rpc::Steer) },
    Door { name: "Audit", way: Way::Rpc(Rpc::Audit) },
];

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Whether anything of the run was seen or done.
    pub(crate) succeeded: bool,
    status: String,
    body: String,
}

impl Seen {
    /// The same for any run.
    pub(crate) fn without(mut self, run: &str) -> Self {
        self.body = self.body.replace(run, "RUN");
        self
    }
}

impl Door {
    /// Whether whoever owns a run sees it there, and changes nothing.
    pub(crate) fn shows_its_owner(&self) -> bool {
        match self.way {
            Way::Get(path) => path.starts_with("/api/runs"),
            Way::Resume(path) => !path.contains("rival"),
            Way::Rpc(Rpc::Get | Rpc::Begun | Rpc::Watch | Rpc::List) => true,
            Way::Cancel | Way::Relay | Way::Rpc(Rpc::Cancel | Rpc::Decide | Rpc::Steer | Rpc::Audit) => false,
        }
    }

    pub(crate) async fn attempt(&self, world: &World, key: &str, run: &str) -> Seen {
        match self.way {
            Way::Get(path) => {
                let path = path.replace("{run}", run);
                http(world, Method::GET, &path, key, run, &Value::Null, &[]).await
            }
            Way::Cancel => {
                http(world, Method::POST, &format!("/api/runs/{run}/cancel"), key, run, &json!({}), &[]).await
            }
            Way::Relay => {
                let body = json!({ "sessionId": run, "response": { "approved": true } });
                http(world, Method::POST, "/chat/relay/call", key, run, &body, &[]).await
            }
            Way::Resume(path) => {
                let place = format!("{run}:1");
                let seen =
                    http(world, Method::POST, path, key, run, &question(path), &[("last-event-id", &place)])
                        .await;
                let is_read = !["400", "422"].iter().any(|bad| seen.status.starts_with(bad));
                assert!(is_read, "the question itself is right: {seen:?}");
                seen
            }
            Way::Rpc(rpc) => grpc(world, rpc, key, run).await,
        }
    }
}

/// A body that a route takes for a question.
fn question(path: &str) -> Value {
    let text = "what FAKE_LLM{}";
    if path == "/chat" {
        return json!({ "messages": [{ "role": "user", "content": text }] });
    }
    json!({
        "ask": text, "stream": true,
        "source": "prometheus", "title": "It is slow", "description": text, "subject": {}, "context": {},
        "issue_type": "slow", "investigation_result": { "result": "none", "tools": [] },
        "resource": {}, "workload_health_result": { "analysis": "none", "tools": [] },
    })
}

async fn http(
    world: &World,
    method: Method,
    path: &str,
    key: &str,
    run: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> Seen {
    let listing = path.starts_with("/api/runs?");
    let response = world.send(method, path, key, body, headers).await;
    let status = response.status();
    let body = tokio::time::timeout(PATIENCE, response.text()).await.expect("a stream is open").unwrap();
    let succeeded = if listing { body.contains(run) } else { status.is_success() };
    Seen { succeeded, status: status.to_string(), body }
}

async fn grpc(world: &World, rpc: Rpc, key: &str, run: &str) -> Seen {
    let channel = Channel::from_shared(world.sleuth.grpc().unwrap()).unwrap().connect().await.unwrap();
    let bearer: Option<MetadataValue<_>> =
        (!key.is_empty()).then(|| format!("Bearer {key}").parse().unwrap());
    let present = move |mut request: Request<()>| {
        if let Some(bearer) = &bearer {
            request.metadata_mut().insert("authorization", bearer.clone());
        }
        Ok::<_, Status>(request)
    };
    // What a request says of its caller is not believed.
    let caller = Some(Caller { account: "acme".to_owned(), ..Caller::default() });
    let run_id = run.to_owned();
    let mut agent = AgentClient::with_interceptor(channel.clone(), present.clone());
    let mut accounts = AccountsClient::with_interceptor(channel, present);
    let answer = match rpc {
        Rpc::Get => {
            let asked = GetRunRequest { caller, run_id, ..Default::default() };
            agent.get_run(asked).await.map(|_| String::new())
        }
        Rpc::Begun => {
            let (route, key, question) = World::keyed();
            let asked = GetRunRequest {
                caller,
                idempotency_key: format!("{route} {key}"),
                request_digest: grants::sha256(question.to_string()),
                ..Default::default()
            };
            agent.get_run(asked).await.map(|_| String::new())
        }
        Rpc::Watch => {
            let asked = WatchRequest { caller, run_id, after_position: 0 };
            agent.watch(asked).await.map(|_| String::new())
        }
        Rpc::Cancel => {
            let asked = CancelRunRequest { caller, run_id, reason: "because".to_owned() };
            agent.cancel_run(asked).await.map(|_| String::new())
        }
        Rpc::Decide => {
            let settlement = Some(Settlement::Denial("no".to_owned()));
            let asked = DecideRequest {
                caller,
                run_id,
                call_id: "call".to_owned(),
                settlement,
                ..Default::default()
            };
            agent.decide(asked).await.map(|_| String::new())
        }
        Rpc::Steer => {
            let said = SteerRequest { caller, run_id, text: "stop".to_owned(), ..Default::default() };
            agent.steer(said).await.map(|_| String::new())
        }
        Rpc::Audit => {
            let asked = AuditRequest { account: "acme".to_owned(), run_id, ..Default::default() };
            accounts.audit(asked).await.map(|_| String::new())
        }
        Rpc::List => {
            let listed = agent.list_runs(ListRunsRequest { caller, limit: 1000 }).await;
            listed.map(|listed| listed.into_inner().runs.into_iter().map(|run| run.run_id).collect())
        }
    };
    match (rpc, answer) {
        (Rpc::List, Ok(listed)) => {
            Seen { succeeded: listed.contains(run), status: format!("{:?}", Code::Ok), body: listed }
        }
        (_, Ok(body)) => Seen { succeeded: true, status: format!("{:?}", Code::Ok), body },
        (_, Err(status)) => Seen {
            succeeded: false,
            status: format!("{:?}", status.code()),
            body: status.message().to_owned(),
        },
    }
}
