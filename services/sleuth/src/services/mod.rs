//! How the services are put together.

mod accounts;
mod clusters;
mod grpc;
mod metrics;
mod private;
mod signing;
mod storage;
mod supervisor;
mod tls;

use std::{path::PathBuf, sync::Arc};

use agent::{Agent, Call, Dial, Discovered};
use anyhow::Context as _;
use model::Catalogue;
use runtime::propagation;
use store::Store;
use triage::Triage;
use wire::transport;

pub(crate) use accounts::client as accounts;
pub(crate) use grpc::{Client, client, remote, serve_agent, serve_executor, stranger};
pub(crate) use metrics::{Metrics, Readers};
pub(crate) use private::connect;
pub(crate) use signing::signing_key;
pub(crate) use storage::{Place, Storage};
pub(crate) use supervisor::Supervisor;
pub(crate) use tls::server_tls;

use crate::settings::{File, variable};

/// The models of a list and of the environment, and the one that needs no key.
pub(crate) fn models(file: &File, list: Option<&PathBuf>) -> anyhow::Result<Catalogue> {
    let list = file.model_list(list)?;
    let outgoing = model::Outgoing::new(propagation::inject);
    let settings = model::Settings { outgoing, ..model::Settings::from_env(&variable)? };
    Catalogue::load(list.as_deref(), &variable, settings, Arc::new(Triage::new()))
        .context("cannot load the models")
}

/// An agent that keeps its runs in a store that others may share, and goes on with the runs of those that are lost.
pub(crate) fn lasting_agent(
    config: agent::Config,
    models: Catalogue,
    executor: &str,
    storage: &Storage,
) -> anyhow::Result<Agent> {
    let config = agent::Config { hands_over: storage.lasts(), ..config };
    let agent = agent(config, models, executor, storage.store())?;
    agent.recover();
    Ok(agent)
}

/// An agent that keeps its runs in a store and whose executors are at an address, or at several.
fn agent(
    config: agent::Config,
    models: Catalogue,
    executor: &str,
    store: Arc<dyn Store>,
) -> anyhow::Result<Agent> {
    let dial: Dial = Arc::new(|place| Ok(grpc::with_key(place.channel(tls::client_tls)?)));
    let call: Call = Arc::new(|peer| Ok(transport(peer.channel(tls::client_tls)?)));
    Ok(Agent::new(config, models, Discovered::behind(executor, dial)?, store, call))
}
