//! Calls that a person decided about: each permission counts once.

use domain::{EventKind, LogId, Permission, RunId, ToolCall};
use store::{Idempotency, Post};

use super::{
    Runs,
    open_calls::{self, Settled},
};
use crate::tools::{Context, Tools};

impl Runs {
    /// The event that settles a call. A permission counts once, and only where the run that asked is known.
    pub(super) async fn settled(
        &self,
        settled: Settled,
        taker: &str,
        tools: &Tools,
        context: &Context,
    ) -> Result<EventKind, store::Error> {
        let (call, permission) = match settled {
            Settled::Resolved(event) => return Ok(*event),
            Settled::Approved(call, permission) => (call, permission),
        };
        if let Err(why) = self.use_up(&call, &permission, taker, &context.account).await? {
            return Ok(open_calls::refused(call, why));
        }
        let plan = tools.plan(std::slice::from_ref(&call), context).await.into_iter().next();
        let planned = plan.map(|plan| (plan.description, plan.toolset, plan.cluster));
        let (description, toolset, cluster) = planned.unwrap_or_default();
        Ok(EventKind::CallApproved { call, description, toolset, cluster, permission })
    }

    /// Takes note, in the log of the run that asked, that a call was allowed; the inner error is why it does not count.
    async fn use_up(
        &self,
        call: &ToolCall,
        permission: &Permission,
        taker: &str,
        account: &str,
    ) -> Result<Result<(), &'static str>, store::Error> {
        let log = LogId::from(&permission.run);
        match self.log.entry(&log).await {
            Ok(entry) if entry.meta.account == account => {}
            Ok(_) | Err(store::Error::UnknownLog(_)) => return Ok(Err(open_calls::FORGOTTEN)),
            Err(error) => return Err(error),
        }
        match self.log.post(&log, &format!("approved/{}", call.id), taker.into()).await? {
            Post::First => Ok(Ok(())),
            Post::Earlier(earlier) if earlier == taker.as_bytes() => Ok(Ok(())),
            Post::Earlier(_) => Ok(Err(open_calls::USED_UP)),
        }
    }
}

/// Who uses permissions up: a run, or the request that it is for. A repeated request leads to one run at most, so that
/// one whose first try failed has them still.
pub(super) fn taker(run: &RunId, request: Option<&Idempotency>) -> String {
    match request {
        Some(Idempotency { scope, key, .. }) => format!("request/{scope}/{key}"),
        None => run.as_str().to_owned(),
    }
}
