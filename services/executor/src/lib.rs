//! The executor: judges tool calls and runs them out of process. It knows no conversation and holds no model key.
//!
//! # Layout
//! * `service`: the gRPC service and the executions that it keeps
//! * `tools`: what a model may call, and what each call runs
//! * `toolsets`: more tools, from the operator's file
//! * `alerts`: what Prometheus and Alertmanager know
//! * `source`: an HTTP API that is asked for JSON
//! * `policy`: what may run
//! * `process`: how it runs, and how all of it ends
//! * `redact`: what must not leave
//! * [`cluster`]: how it reaches Kubernetes clusters
//! * `sandbox`: what it may see, reach and use while it runs
//! * `scratch`: its directories among temporary files
//! * `repl`: an interpreter of JavaScript, in a process of its own
//! * `workspace`: files that sessions keep
//! * `folder`: directories in which programs write
//! * `uplink`: the way out of a cluster that cannot be dialled
//! * `trial`: one program in that sandbox, for whoever wants to see what it is like

mod alerts;
pub mod cluster;
mod config;
mod folder;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod policy;
mod process;
mod redact;
mod repl;
mod sandbox;
mod scratch;
mod service;
mod source;
mod tools;
mod toolsets;
mod trial;
mod uplink;
mod workspace;

use std::sync::Arc;

use wire::executor::tool_executor_server::ToolExecutorServer;

pub use config::{AlertSources, Config, ConfigError};
pub use policy::{BuiltinAllowlist, Lifts};
pub use process::launcher;
pub use redact::RedactError;
pub use sandbox::{Level, Minimum, SandboxError, Setting as SandboxSetting, Unavailable};
pub use scratch::Scratch;
pub use service::Service;
pub use toolsets::ToolsetError;
pub use trial::{Reach, Sight, Trial, Tried};
pub use uplink::{Uplink, UplinkError};

use service::Catalogue;
use toolsets::Toolsets;
use workspace::Workspaces;

/// Why an executor could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A limit that must be at least one is zero.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    /// The rules for secrets cannot be used.
    #[error(transparent)]
    Redact(#[from] RedactError),
    /// The sandbox is not what was required.
    #[error(transparent)]
    Sandbox(#[from] Unavailable),
    /// The toolset file cannot be used.
    #[error(transparent)]
    Toolsets(#[from] ToolsetError),
}

/// An executor. Dropping the last of it and of its services ends everything that it runs.
#[derive(Clone, Debug)]
pub struct Executor {
    service: Arc<Service>,
    sandbox: sandbox::Sandbox,
}

impl Executor {
    /// Makes an executor and looks for the programs that its tools need. A missing one is no error: its toolset
    /// says so.
    pub async fn build(config: Config) -> Result<Self, Error> {
        for (name, value) in [("concurrency", config.concurrency), ("output_bytes", config.output_bytes)] {
            if value == 0 {
                return Err(Error::Zero(name));
            }
        }
        let redaction = config.redact.as_deref().map(redact::Settings::load).transpose()?.unwrap_or_default();
        let (program, environment) = (config.launcher.clone(), config.environment.clone());
        let mut launcher =
            process::Launcher::probe(program, environment, config.sandbox(), config.start_time).await?;
        launcher.for_operator.clone_from(&config.operator_environment);
        let toolsets = match &config.toolsets {
            Some(path) => Toolsets::load(path, &|name| std::env::var(name).ok())?,
            None => Toolsets::default(),
        };
        let prometheus = config.alerts.0.as_ref().and_then(|alerts| alerts.prometheus());
        let settings = tools::Settings {
            saved: tools::Saved::default(),
            bash: config.bash.clone(),
            kubectl: config.kubectl.clone(),
            jq: config.jq.clone(),
            policy: policy::Policy {
                kubeconfigs: config.kubernetes.source.paths().to_vec(),
                rules: config.rules(),
            },
            view: launcher.sandbox.view(),
            kubectl_timeout: config.kubectl_timeout,
            bash_timeout: config.bash_timeout,
            longest_timeout: config.longest_timeout,
            alerts: config.alerts.clone().0,
            prometheus: toolsets.prometheus().or(prometheus).cloned(),
            headers: tools::RequestHeaders::default(),
            site: tools::Site {
                workspaces: Arc::new(Workspaces::new(config.state.clone(), config.workspaces())),
                session: workspace::Session { account: String::new(), id: String::new() },
            },
        };
        let redactor = redact::Redactor::new(redaction, &toolsets.secrets())?;
        let version = service::policy_version(&settings, &format!("{:?} {}", config.lifts, toolsets.text));
        let sandbox = launcher.sandbox.clone();
        sandbox.report();
        let starting = Catalogue::start(&settings, &launcher, toolsets, config.toolset_refresh);
        // Large, and whoever builds an executor carries it.
        let catalogue = Box::pin(starting).await;
        let service = Service::new(&config, settings, &version, launcher, redactor, catalogue);
        Ok(Self { service: Arc::new(service), sandbox })
    }

    /// The service, to be added to a server.
    pub fn service(&self) -> ToolExecutorServer<Service> {
        ToolExecutorServer::from_arc(Arc::clone(&self.service))
    }

    /// The sandbox that every command of a model has at least.
    pub fn sandbox(&self) -> Level {
        self.sandbox.level()
    }

    /// Takes no more calls, gives those that run some time, ends the rest with all their processes, and waits for that.
    pub async fn shutdown(&self) {
        self.service.shutdown().await;
    }
}
