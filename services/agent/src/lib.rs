//! The agent: it drives runs. It spawns no process, speaks no SSE and holds no key that signs approvals.
//!
//! # Layout
//! * [`Config`] → [`Agent`] → [`Agent::service`]
//! * `rpc/`: the `sleuth.agent.v1` service, thin handlers
//! * `runs/`: runs as objects: started, listed, watched, cancelled
//! * `sessions/`: conversations that last, and their events
//! * `driver/`: performs what a run's machine decides
//! * `naming`: which cluster a text is about; `reply`: what a model says, as a whole
//! * `clusters/`: clusters whose executors have dialled in
//! * `tools/`: where tools are and how they are called
//! * `prompt/`: what a model is told
//! * `runbooks/`: what is known of how to investigate

mod clusters;
mod config;
mod driver;
mod naming;
mod prompt;
mod reply;
mod rpc;
mod runbooks;
mod runs;
mod sessions;
mod telemetry;
mod tools;

use std::{sync::Arc, time::Duration};

use model::Catalogue;
use store::Store;
use tokio_util::task::AbortOnDropHandle;
use wire::{agent::agent_server::AgentServer, session::sessions_server::SessionsServer};

use clusters::Peers;
pub use clusters::{Admission, Call, Clusters, Joined, Link, Relay};
pub use config::Config;
pub use prompt::EnabledPrompts;
pub use rpc::{Service, SessionService};
pub use runbooks::{RunbookError, Runbooks};
use runs::Runs;
pub use sessions::Disclosure;
use sessions::Sessions;
use tools::Tools;
pub use tools::executors::{Dial, Discovered};

/// A running agent. Cloning gives another handle to it.
#[derive(Clone)]
pub struct Agent {
    runs: Arc<Runs>,
    sessions: Arc<Sessions>,
    relay: Relay,
    _peers: Arc<AbortOnDropHandle<()>>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

impl Agent {
    /// An agent that asks these models, calls the tools of these executors and writes to `log`. `call` leads to other
    /// agents that share it.
    pub fn new(
        config: Config,
        models: Catalogue,
        executors: Discovered,
        log: Arc<dyn Store>,
        call: Call,
    ) -> Self {
        let tools = Tools::new(executors, &config);
        let peers = Peers::new(tools.clusters().clone(), Arc::clone(&log), config.address.clone(), call);
        let relay = peers.relay();
        let peers = Arc::new(AbortOnDropHandle::new(tokio::spawn(peers.keep())));
        let runs = Arc::new(Runs::new(config, models, tools, log));
        Self { sessions: Arc::new(Sessions::new(Arc::clone(&runs))), runs, relay, _peers: peers }
    }

    /// What serves the executors of the clusters that are linked here to other agents. It asks for a key of its own.
    pub fn relay(&self) -> Relay {
        self.relay.clone()
    }

    /// Takes over runs and sessions whose agent is lost, from now on until the shutdown.
    pub fn recover(&self) {
        let sessions = Arc::clone(&self.sessions);
        self.runs.keep_recovering(move |session| sessions.wake(session));
    }

    /// The gRPC service.
    pub fn service(&self) -> AgentServer<Service> {
        AgentServer::new(Service::new(Arc::clone(&self.runs)))
            .max_decoding_message_size(self.runs.config().max_request_bytes)
            .max_encoding_message_size(usize::MAX)
    }

    /// The gRPC service of sessions.
    pub fn sessions(&self) -> SessionsServer<SessionService> {
        SessionsServer::new(SessionService::new(Arc::clone(&self.sessions)))
            .max_decoding_message_size(self.runs.config().max_request_bytes)
            .max_encoding_message_size(usize::MAX)
    }

    /// How long an executor of a cluster stays linked before it is to come again.
    pub fn link_age(&self) -> Duration {
        self.runs.config().link_age
    }

    /// The clusters that are connected.
    pub fn clusters(&self) -> Clusters {
        self.runs.tools().clusters().clone()
    }

    /// Lets the runs in progress go on for `drain_time`, then cancels them and waits until they have ended.
    pub async fn shutdown(&self) {
        self.clusters().leave();
        self.runs.shutdown().await;
        self.sessions.shutdown().await;
        self.clusters().close();
    }
}
