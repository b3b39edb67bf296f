//! Requests, checked on their way in.

use std::path::{Component, Path};

use domain::{
    CallId, Document, Effort, Image, Limits, Message, Permission, Rlm, Role, RunId, Subagents, ToolProfile,
};
use store::Idempotency;
use tonic::{Status, metadata::MetadataValue};
use wire::agent::{Caller, ChatRequest, ClientResult, RlmMode, decision};

use crate::{
    config::Config,
    driver::Form,
    prompt::{File, Sections},
    runs::{Brought, Decision, Question, Refusal},
    tools::{AlertHistory, RequestHeaders},
};

use super::account;

/// A question from the wire.
pub(super) fn question(request: ChatRequest, config: &Config) -> Result<Question, Status> {
    let goes_on = !request.client_results.is_empty() || !request.decisions.is_empty();
    // What the history ends with may be what is asked.
    if request.question.trim().is_empty() && request.history.is_empty() && !goes_on {
        return Err(Status::invalid_argument("question: it is empty; ask something"));
    }
    let history = request.history.into_iter().enumerate().map(|(at, message)| {
        message.try_into().map_err(|error| Status::invalid_argument(format!("history[{at}]: {error}")))
    });
    let history = history.collect::<Result<Vec<_>, _>>()?;
    let exec_directory = exec_directory(request.rlm.as_ref())?;
    let rlm = request.rlm.map(|asked| rlm(asked, &request.question, &history));
    let limits = request.limits.unwrap_or_default().within(config.limits);
    Ok(Question {
        history,
        text: request.question,
        model: model(request.model, request.caller.as_ref()),
        images: images(request.images)?,
        documents: documents(request.documents)?,
        client_tools: request.client_tools.into_iter().map(Into::into).collect(),
        brought: brought(request.client_results, request.decisions)?,
        approvals: request.approvals,
        waits: request.waits,
        // Code asks for its agents by itself.
        subagents: match rlm {
            Some(_) => Subagents::default(),
            None => request.subagents.map_or(config.subagents, Into::into),
        },
        standing: request.standing_grants.into_iter().map(Into::into).collect(),
        headers: RequestHeaders::new(request.request_headers),
        session: request.session,
        profile: if rlm.is_some() { ToolProfile::Rlm } else { profile(&request.profile)? },
        permissions: request.permissions.map(Into::into),
        cluster: cluster(request.cluster, request.caller.as_ref()),
        labels: request.executor_labels.into_iter().collect(),
        clusters: request.caller.as_ref().map(|caller| caller.clusters.clone()).unwrap_or_default(),
        form: form(&request.response_format_json)?,
        sections: Sections::choose(config.enabled_prompts.as_ref(), &request.behavior_controls),
        files: request.files.into_iter().map(|file| File { name: file.name, text: file.text }).collect(),
        alert_history: request.alert_history.map(alert_history).transpose()?,
        additional_system_prompt: request.additional_system_prompt,
        limits: rlm.as_ref().map_or(limits, |(rlm, _)| of_code(limits, *rlm)),
        rlm,
        exec_directory,
        home: String::new(),
        keeper: String::new(),
        effort: effort(&request.reasoning_effort)?,
        idempotency: idempotency(
            account(request.caller.as_ref()),
            request.idempotency_key,
            &request.request_digest,
        )?,
        account: account(request.caller.as_ref()).to_owned(),
        principal: request.caller.map(|caller| caller.principal).unwrap_or_default(),
    })
}

/// More than this makes no sense, and costs.
const DEEPEST: u32 = 5;
const MOST_ITERATIONS: u32 = 100;
const MOST_CALLS: u32 = 2000;

/// A directory within the workspace, by its path from there.
fn exec_directory(asked: Option<&RlmMode>) -> Result<String, Status> {
    let directory = asked.map(|asked| asked.exec_directory.clone()).unwrap_or_default();
    let is_inside = Path::new(&directory)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    match is_inside && !directory.contains('\0') {
        true => Ok(directory),
        false => Err(Status::invalid_argument(
            "exec_directory: it is not within the workspace: give a relative path without `..`",
        )),
    }
}

/// How code works, and over what: what the user said last, where nothing else is given.
fn rlm(asked: RlmMode, question: &str, history: &[Message]) -> (Rlm, String) {
    let or = |asked: u32, usual: u32| if asked == 0 { usual } else { asked };
    let rlm = Rlm {
        depth: 0,
        max_depth: asked.max_depth.unwrap_or(2).min(DEEPEST),
        iterations: or(asked.max_iterations, 10).min(MOST_ITERATIONS),
        calls: or(asked.max_model_calls, 200).min(MOST_CALLS),
    };
    let said = history.iter().filter(|message| message.role == Role::User).map(Message::joined_text);
    let mut texts = [asked.context, question.to_owned()].into_iter().chain(said.rev());
    (rlm, texts.find(|text| !text.trim().is_empty()).unwrap_or_default())
}

/// After the last of its code an agent has one more step, to answer. Its code runs one after the other.
fn of_code(limits: Limits, rlm: Rlm) -> Limits {
    let steps = limits.steps.min(rlm.iterations.saturating_add(1));
    Limits { steps, parallel_tools: 1, ..limits }
}

fn profile(name: &str) -> Result<ToolProfile, Status> {
    let unknown = || Status::invalid_argument(format!("profile: there is none of the name `{name}`"));
    ToolProfile::named(name).ok_or_else(unknown)
}

fn effort(name: &str) -> Result<Option<Effort>, Status> {
    let unknown =
        || Status::invalid_argument(format!("reasoning_effort: there is none of the name `{name}`"));
    if name.is_empty() { Ok(None) } else { Effort::named(name).map(Some).ok_or_else(unknown) }
}

/// The model that is asked for, or that the account has.
fn model(asked: String, caller: Option<&Caller>) -> Option<String> {
    let usual = caller.map(|caller| caller.default_model.clone());
    [Some(asked), usual].into_iter().flatten().find(|name| !name.is_empty())
}

/// The cluster that is asked about: the named one, or the only one that the caller may reach.
fn cluster(named: String, caller: Option<&Caller>) -> String {
    match caller.map(|caller| caller.clusters.as_slice()) {
        Some([only]) if named.is_empty() => only.clone(),
        _ => named,
    }
}

fn alert_history(asked: wire::agent::AlertHistory) -> Result<AlertHistory, Status> {
    let wire::agent::AlertHistory { namespace, name, since_hours } = asked;
    if !since_hours.is_finite() {
        return Err(Status::invalid_argument("alert_history.since_hours: it is no number of hours"));
    }
    Ok(AlertHistory { namespace, name, since_hours })
}

pub(super) fn images(images: Vec<wire::agent::Image>) -> Result<Vec<Image>, Status> {
    let images = images.into_iter().map(Image::from).enumerate().map(|(at, image)| match image.check() {
        Ok(()) => Ok(image),
        Err(error) => Err(Status::invalid_argument(format!("images[{at}]: {error}"))),
    });
    images.collect()
}

fn documents(documents: Vec<wire::agent::Document>) -> Result<Vec<Document>, Status> {
    let documents = documents.into_iter().map(Document::from).enumerate();
    let documents = documents.map(|(at, document)| match document.check() {
        Ok(()) => Ok(document),
        Err(error) => Err(Status::invalid_argument(format!("documents[{at}]: {error}"))),
    });
    documents.collect()
}

fn brought(results: Vec<ClientResult>, decisions: Vec<wire::agent::Decision>) -> Result<Brought, Status> {
    let results = results.into_iter().map(|given| (CallId::new(given.call_id), given.result)).collect();
    let decisions = decisions.into_iter().enumerate().map(|(at, given)| {
        let decision = match given.decision {
            Some(decision::Decision::Grant(grant)) => {
                let (run, standing) = (RunId::new(given.run_id), given.standing_grants);
                Decision::Approved(Permission { run, grant, standing, always: false })
            }
            Some(decision::Decision::Denial(why)) => Decision::Denied(why),
            None => return Err(Status::invalid_argument(format!("decisions[{at}]: it decides nothing"))),
        };
        Ok((CallId::new(given.call_id), decision))
    });
    Ok(Brought { results, decisions: decisions.collect::<Result<_, _>>()? })
}

/// Keys are unique within an account; what else tells requests apart is part of the key.
pub(super) fn idempotency(account: &str, key: String, digest: &[u8]) -> Result<Option<Idempotency>, Status> {
    if key.is_empty() {
        return Ok(None);
    }
    let digest = digest
        .try_into()
        .map_err(|_| Status::invalid_argument("request_digest: it is not the SHA-256 of a request"))?;
    Ok(Some(Idempotency { scope: account.to_owned(), key, digest }))
}

fn form(json: &str) -> Result<Option<Form>, Status> {
    if json.is_empty() {
        return Ok(None);
    }
    let bad = |why: &dyn std::fmt::Display| Status::invalid_argument(format!("response_format: {why}"));
    let format = serde_json::from_str(json).map_err(|error| bad(&error))?;
    Form::read(format).map_err(|error| bad(&error))
}

/// Why a run did not start, for the caller.
pub(super) fn refused(refusal: &Refusal) -> Status {
    let text = refusal.to_string();
    match refusal {
        Refusal::Model(_)
        | Refusal::Blind { .. }
        | Refusal::ClientTool(_)
        | Refusal::Unnamed(_)
        | Refusal::NothingToDo => Status::invalid_argument(text),
        Refusal::OtherRequest => Status::already_exists(text),
        Refusal::TooMany(_) => Status::resource_exhausted(text),
        Refusal::OverBudget(over) => {
            let mut status = Status::resource_exhausted(text);
            status.metadata_mut().insert(wire::RETRY_AFTER, over.seconds().into());
            status
        }
        Refusal::Cluster(_) => Status::not_found(text),
        Refusal::NotPermitted(_) => Status::permission_denied(text),
        Refusal::Executor(_) => {
            let mut status = Status::unavailable(text);
            status.metadata_mut().insert(wire::FOR_THE_ASKER, MetadataValue::from_static("true"));
            status
        }
        Refusal::ShuttingDown | Refusal::Log(_) => Status::unavailable(text),
    }
}
