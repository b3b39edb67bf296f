//! What the agent knows, in the wire's form.

use std::sync::Arc;

use domain::{EventKind, RunSetup};
use model::Catalogue;
use wire::agent::{
    ClusterInfo, ExecutorInfo, GetReadinessResponse, ListClustersResponse, ListModelsResponse,
    ListToolsResponse, ModelInfo, ToolInfo,
};

use crate::{
    runs::Runs,
    tools::{Offer, executors::Member},
};

/// An event for a reader, who gets nothing of what only another agent would need.
pub(super) fn event(mut event: domain::Event) -> wire::agent::Event {
    if let EventKind::RunStarted(started) = &mut event.kind {
        let RunSetup { limits, session, cluster, .. } = *std::mem::take(&mut started.setup);
        *started.setup = RunSetup { limits, session, cluster, ..RunSetup::default() };
    }
    event.into()
}

pub(super) fn models(catalogue: &Catalogue) -> ListModelsResponse {
    let default = catalogue.default_name();
    let models = catalogue.models().iter().map(|model| {
        let info = model.info();
        ModelInfo {
            name: info.name.clone(),
            provider: info.provider.clone(),
            id: info.id.clone(),
            context_window: info.context_window,
            max_output_tokens: info.max_output_tokens,
            is_default: info.name == default,
            sees_images: info.sees_images,
        }
    });
    ListModelsResponse { models: models.collect() }
}

pub(super) fn clusters(connected: impl Iterator<Item = (String, Vec<Arc<Member>>)>) -> ListClustersResponse {
    let clusters = connected.map(|(name, members)| {
        let executors = members.iter().map(|member| ExecutorInfo {
            name: member.name().to_owned(),
            instance: member.instance(),
            calls: u32::try_from(member.calls()).unwrap_or(u32::MAX),
            agent: member.agent().unwrap_or_default().to_owned(),
        });
        ClusterInfo { executors: executors.collect(), name }
    });
    ListClustersResponse { clusters: clusters.collect() }
}

pub(super) fn tools(offer: &Offer) -> ListToolsResponse {
    let tools = offer.specs.iter().zip(offer.toolsets.iter()).map(|(spec, toolset)| ToolInfo {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters_json: spec.parameters.to_string(),
        toolset: toolset.clone(),
    });
    ListToolsResponse { tools: tools.collect() }
}

pub(super) async fn readiness(runs: &Runs) -> GetReadinessResponse {
    let mut missing = Vec::new();
    // Anybody may ask, so what exactly is wrong goes to the log.
    if let Err(error) = runs.log().check().await {
        tracing::warn!(%error, "the event log is not writable");
        missing.push("the event log is not writable".to_owned());
    }
    if let Err(error) = runs.tools().check().await {
        tracing::warn!(%error, "no tools");
        missing.push("no executor answers".to_owned());
    }
    let models: Vec<_> = runs.models().names().map(str::to_owned).collect();
    if models.is_empty() {
        missing.push("no model is configured".to_owned());
    }
    GetReadinessResponse { ready: missing.is_empty(), missing, models }
}
