//! What the agent knows, in the wire's form.

use domain::{Outcome, RunId};
use model::Catalogue;
use tonic::Status;
use wire::agent::{
    GetReadinessResponse, ListModelsResponse, ListToolsResponse, ModelInfo, RunInfo, RunState, ToolInfo,
};

use crate::{
    runs::{Progress, Runs, State},
    tools::Offer,
};

pub(super) fn no_such_run(id: &RunId) -> Status {
    Status::not_found(format!("there is no run {id}"))
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

pub(super) fn tools(offer: &Offer) -> ListToolsResponse {
    let tools = offer.specs.iter().zip(offer.toolsets.iter()).map(|(spec, toolset)| ToolInfo {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters_json: spec.parameters.to_string(),
        toolset: toolset.clone(),
    });
    ListToolsResponse { tools: tools.collect() }
}

pub(super) fn state(state: &State) -> RunState {
    match state.outcome {
        None => RunState::Running,
        Some(Outcome::Finished) => RunState::Finished,
        Some(Outcome::Failed) => RunState::Failed,
        Some(Outcome::Cancelled) => RunState::Cancelled,
        Some(Outcome::Suspended) => RunState::Suspended,
    }
}

pub(super) fn run(run: &Progress) -> RunInfo {
    let now = run.state();
    RunInfo {
        run_id: run.id.as_str().to_owned(),
        state: state(&now).into(),
        question: run.question.clone(),
        model: run.model.clone(),
        started_at: Some(wire::time(run.started_at)),
        ended_at: now.ended_at.map(wire::time),
        last_position: now.position,
        steps: now.steps,
        tool_calls: now.tool_calls,
        totals: Some(now.totals.into()),
        readers: now.readers,
    }
}

pub(super) async fn readiness(runs: &Runs) -> GetReadinessResponse {
    let mut missing = Vec::new();
    if let Err(error) = runs.log().check().await {
        missing.push(format!("the event log is not writable: {error}"));
    }
    if let Err(error) = runs.tools().check().await {
        missing.push(error.to_string());
    }
    let models: Vec<_> = runs.models().names().map(str::to_owned).collect();
    if models.is_empty() {
        missing.push("no model is configured".to_owned());
    }
    GetReadinessResponse { ready: missing.is_empty(), missing, models }
}
