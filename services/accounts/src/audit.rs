//! What was asked and done in an account, read from the logs of its runs. Nothing is kept beside them.

use std::{collections::HashMap, num::NonZeroUsize, sync::Arc};

use domain::{CallId, Event, EventKind, LogId, Timestamp, ToolStatus};
use futures_util::{StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use prost::Message as _;
use store::{Kind, Query, Store};
use tonic::Status;
use wire::{
    account::{AuditEntry, audit_entry as entry, audit_entry::What},
    executor::{Grant, SignedGrant},
};

/// Events of a log that are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// What is wanted of a trail. What is empty asks for everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) principal: String,
    pub(crate) cluster: String,
    pub(crate) kinds: Vec<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

impl Filter {
    fn wants(&self, entry: &AuditEntry, time: Timestamp) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let kind = entry.what.as_ref().map_or("", What::name);
        is(&self.principal, &entry.principal)
            && is(&self.cluster, &entry.cluster)
            && (self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind))
            && self.since.is_none_or(|since| since <= time)
            && self.until.is_none_or(|until| time < until)
    }
}

/// The entries of an account's runs and sessions, newest first, or of one of them.
pub(crate) async fn trail(
    store: Arc<dyn Store>,
    account: String,
    limit: u32,
    run: String,
    filter: Filter,
) -> Result<BoxStream<'static, Result<AuditEntry, Status>>, Status> {
    let logs = if run.is_empty() {
        newest(&*store, &account, limit).await.map_err(|error| unavailable(&error))?
    } else {
        let log = LogId::new(run);
        match store.entry(&log).await {
            Ok(entry) if entry.meta.account == account => vec![log],
            Ok(_) | Err(store::Error::UnknownLog(_) | store::Error::BadName(_)) => {
                return Err(Status::not_found(format!("there is no run {log}")));
            }
            Err(error) => return Err(unavailable(&error)),
        }
    };
    let filter = Arc::new(filter);
    let runs = stream::iter(logs)
        .flat_map(move |log| run_trail(Arc::clone(&store), account.clone(), log, Arc::clone(&filter)));
    Ok(runs.boxed())
}

/// The logs of an account, of runs and of sessions, newest first.
async fn newest(store: &dyn Store, account: &str, limit: u32) -> Result<Vec<LogId>, store::Error> {
    let limit = NonZeroUsize::new(limit as usize).unwrap_or(NonZeroUsize::MIN);
    let mut found = Vec::new();
    for kind in [Kind::Run, Kind::Session] {
        found.extend(store.list(Query { account: account.to_owned(), kind, before: None, limit }).await?);
    }
    found.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.number));
    Ok(found.into_iter().take(limit.get()).map(|entry| entry.log).collect())
}

/// The entries of one log. A log that went in the meantime has none.
fn run_trail(
    store: Arc<dyn Store>,
    account: String,
    log: LogId,
    filter: Arc<Filter>,
) -> impl futures_util::Stream<Item = Result<AuditEntry, Status>> {
    let pages = stream::try_unfold(0, move |after| {
        let (store, log) = (Arc::clone(&store), log.clone());
        async move {
            let page = match store.read(&log, after, PAGE).await {
                Ok(page) => page,
                Err(store::Error::UnknownLog(_)) => Vec::new(),
                Err(error) => return Err(unavailable(&error)),
            };
            Ok(page.last().map(|event| event.position).map(|last| (page, last)))
        }
    });
    let mut reader = Reader { account, ..Reader::default() };
    pages.map_ok(|page| stream::iter(page.into_iter().map(Ok))).try_flatten().try_filter_map(move |event| {
        let entry = reader.entry(&event).filter(|entry| filter.wants(entry, event.time));
        std::future::ready(Ok(entry))
    })
}

/// What is known of a run from its entries before.
#[derive(Debug, Default)]
struct Reader {
    account: String,
    principal: String,
    /// The only cluster that the run looks at.
    cluster: String,
    /// Where its calls run.
    calls: HashMap<CallId, String>,
}

impl Reader {
    fn entry(&mut self, event: &Event) -> Option<AuditEntry> {
        if let EventKind::RunStarted(started) = &event.kind
            && started.call.is_none()
        {
            self.principal.clone_from(&started.principal);
            self.cluster.clone_from(&started.setup.cluster);
        }
        let what = what(event)?;
        Some(AuditEntry {
            time: Some(wire::time(event.time)),
            account: self.account.clone(),
            run_id: event.run.as_str().to_owned(),
            position: event.position,
            principal: self.speaker(&event.kind).to_owned(),
            cluster: self.place(&event.kind),
            what: Some(what),
        })
    }

    /// Who asked for what an event tells of.
    fn speaker<'a>(&'a self, event: &'a EventKind) -> &'a str {
        match event {
            EventKind::Steered(steered) => &steered.principal,
            _ => &self.principal,
        }
    }

    fn place(&mut self, event: &EventKind) -> String {
        let found = match event {
            EventKind::ToolStarted { call, cluster, .. } | EventKind::CallApproved { call, cluster, .. } => {
                let cluster = cluster.clone().unwrap_or_default();
                self.calls.insert(call.id.clone(), cluster.clone());
                Some(cluster)
            }
            EventKind::ApprovalRequested { call, .. } | EventKind::CallAllowed { call, .. } => {
                self.calls.get(call).cloned()
            }
            EventKind::ToolFinished { call, .. } => self.calls.remove(call),
            EventKind::CallResolved { call, .. } => self.calls.remove(&call.id),
            _ => None,
        };
        found.unwrap_or_else(|| self.cluster.clone())
    }
}

/// What an event says to an auditor.
fn what(event: &Event) -> Option<What> {
    Some(match &event.kind {
        EventKind::RunStarted(started) => What::Asked(entry::Asked {
            question: started.messages.last().map(domain::Message::joined_text).unwrap_or_default(),
            model: started.model.clone(),
            clusters: started.setup.clusters.clone(),
        }),
        EventKind::Steered(steered) => {
            What::Asked(entry::Asked { question: steered.message.joined_text(), ..entry::Asked::default() })
        }
        EventKind::ToolStarted { call, description, .. } => What::Began(entry::Began {
            call_id: call.id.to_string(),
            tool: call.name.clone(),
            description: description.clone(),
            arguments_json: call.arguments.clone(),
        }),
        EventKind::ReplInput { call, .. } => What::Began(entry::Began {
            call_id: call.id.to_string(),
            tool: call.name.clone(),
            description: String::new(),
            arguments_json: call.arguments.clone(),
        }),
        EventKind::ApprovalRequested { call, approval } => What::Waits(entry::Waits {
            call_id: call.to_string(),
            command: approval.command.clone(),
            target: approval.target.clone(),
            reason: approval.reason.clone(),
        }),
        EventKind::CallApproved { call, description, permission, .. } => What::Allowed(entry::Allowed {
            call_id: call.id.to_string(),
            tool: call.name.clone(),
            description: description.clone(),
            arguments_json: call.arguments.clone(),
            by: decider(&permission.grant),
        }),
        EventKind::CallAllowed { call, permission } => What::Allowed(entry::Allowed {
            call_id: call.to_string(),
            by: decider(&permission.grant),
            ..entry::Allowed::default()
        }),
        EventKind::ToolFinished { call, result } => ended(call.to_string(), result),
        EventKind::ReplOutput { call, output } => What::Ended(entry::Ended {
            call_id: call.to_string(),
            status: if output.error.is_none() { "success" } else { "error" }.to_owned(),
            error: output.error.clone().unwrap_or_default(),
            ..entry::Ended::default()
        }),
        EventKind::CallResolved { call, result, .. } => ended(call.id.to_string(), result),
        EventKind::RunSuspended => closed("suspended", ""),
        EventKind::RunFinished { .. } => closed("finished", ""),
        EventKind::RunFailed { message, .. } => closed("failed", message),
        EventKind::RunCancelled { reason } => closed("cancelled", reason),
        EventKind::RunRecovered
        | EventKind::RunHandedOver
        | EventKind::CallPlaced { .. }
        | EventKind::SessionRecord(_)
        | EventKind::ModelCalled(_)
        | EventKind::AttemptAbandoned { .. }
        | EventKind::TextDelta { .. }
        | EventKind::ThinkingDelta { .. }
        | EventKind::UsageReported(_)
        | EventKind::QuestionAnswered(_)
        | EventKind::AssistantMessage(_)
        | EventKind::ToolOutput { .. }
        | EventKind::ReplProgress { .. }
        | EventKind::ClientToolRequested { .. }
        | EventKind::CompactionStarted(_)
        | EventKind::CompactionDone(_)
        | EventKind::CompactionFailed { .. }
        | EventKind::Notice { .. } => return None,
    })
}

fn ended(call_id: String, result: &domain::ToolResult) -> What {
    let status = match result.status {
        ToolStatus::Success => "success",
        ToolStatus::Error => "error",
        ToolStatus::NoData => "no_data",
    };
    What::Ended(entry::Ended {
        call_id,
        status: status.to_owned(),
        command: result.invocation.clone().unwrap_or_default(),
        return_code: result.return_code,
        error: result.error.clone().unwrap_or_default(),
    })
}

fn closed(outcome: &str, reason: &str) -> What {
    What::Closed(entry::Closed { outcome: outcome.to_owned(), reason: reason.to_owned() })
}

/// Who signed a permission. Whether it counted is for the executor to say, and the call's end tells.
fn decider(signed: &[u8]) -> String {
    let grant = SignedGrant::decode(signed).and_then(|signed| Grant::decode(signed.grant));
    grant.map(|grant| grant.principal).unwrap_or_default()
}

fn unavailable(error: &store::Error) -> Status {
    Status::unavailable(error.to_string())
}
