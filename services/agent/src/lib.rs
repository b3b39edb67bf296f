//! The agent: it drives runs. It spawns no process, speaks no SSE and holds no key that signs approvals.
//!
//! # Layout
//! * [`Config`] → [`Agent`] → [`Agent::service`]
//! * `rpc/`: the `sleuth.agent.v1` service, thin handlers
//! * `runs/`: runs as objects: started, listed, watched, cancelled
//! * `sessions/`: conversations that last, and their events
//! * `driver/`: performs what a run's machine decides
//! * `clusters/`: clusters whose executors have dialled in
//! * `tools/`: where tools are and how they are called
//! * `prompt/`: what a model is told
//! * `runbooks/`: what is known of how to investigate

mod clusters;
mod config;
mod driver;
mod prompt;
mod rpc;
mod runbooks;
mod runs;
mod sessions;
mod telemetry;
mod tools;

use std::sync::Arc;

use model::Catalogue;
use store::Store;
use wire::{agent::agent_server::AgentServer, session::sessions_server::SessionsServer};

pub use clusters::{Admission, Clusters, Joined, Link};
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
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

impl Agent {
    /// An agent that asks these models, calls the tools of these executors and writes to `log`.
    pub fn new(config: Config, models: Catalogue, executors: Discovered, log: Arc<dyn Store>) -> Self {
        let tools = Tools::new(executors, &config);
        let runs = Arc::new(Runs::new(config, models, tools, log));
        Self { sessions: Arc::new(Sessions::new(Arc::clone(&runs))), runs }
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

    /// The clusters that are connected.
    pub fn clusters(&self) -> Clusters {
        self.runs.tools().clusters().clone()
    }

    /// Lets the runs in progress go on for `drain_time`, then cancels them and waits until they have ended.
    pub async fn shutdown(&self) {
        self.runs.shutdown().await;
        self.sessions.shutdown().await;
        self.clusters().close();
    }
}
