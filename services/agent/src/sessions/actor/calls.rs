//! Calls that wait for the client or a person: how they are settled, and what stops them.

use domain::CallId;
use wire::session::Phase;

use super::{Actor, cancelled, now, write::Source};
use crate::sessions::{
    project::{Draft, Settlement},
    turn::{Doing, STOPPED, TOO_LATE, Turn},
};

impl Actor {
    /// Something came for a call. Whether it waited for that.
    pub(super) async fn settle(
        &mut self,
        entry: u64,
        key: &str,
        id: &CallId,
        known: bool,
        bring: impl FnOnce(&mut Turn) -> Option<Settlement>,
    ) -> Result<bool, store::Error> {
        let phase = self.phase();
        let Some(turn) = &mut self.turn else {
            self.append(Source::Own, Vec::new(), phase).await?;
            return Ok(false);
        };
        let (calls, approvals) = turn.waits_for();
        if !known && !calls.contains(id) && !approvals.contains(id) {
            return Ok(false);
        }
        // What was brought is safe once the next run has it.
        self.held.get_or_insert(entry - 1);
        let settled = bring(turn).filter(|_| !known);
        let drafts = settled.map(|settled| turn.projection.settle(now(), id, &settled)).unwrap_or_default();
        turn.causes.insert(key.to_owned());
        if !drafts.is_empty() {
            self.append(Source::Letter(key), drafts, phase).await?;
        }
        self.go_on_if_settled();
        Ok(true)
    }

    pub(super) fn go_on_if_settled(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        let (calls, approvals) = turn.waits_for();
        if calls.is_empty() && approvals.is_empty() && matches!(turn.doing, Doing::Waiting(_)) {
            turn.doing = Doing::Beginning;
        }
    }

    /// The client did not come in time.
    pub(super) async fn time_out(&mut self) -> Result<(), store::Error> {
        let drafts = self.close_calls("timeout", TOO_LATE);
        self.append(Source::Own, drafts, Phase::Active).await?;
        self.go_on_if_settled();
        Ok(())
    }

    /// Ends the calls that wait.
    pub(super) fn close_calls(&mut self, status: &'static str, why: &str) -> Vec<Draft> {
        let Some(turn) = &mut self.turn else { return Vec::new() };
        let (calls, approvals) = turn.waits_for();
        let mut drafts = Vec::new();
        for id in calls.iter().chain(&approvals) {
            let settled = turn.deny(status, id, why);
            drafts.extend(turn.projection.settle(now(), id, &settled));
        }
        drafts
    }

    /// Stops the turn, if it is the one that is meant.
    pub(super) async fn cancel(&mut self, entry: u64, key: &str, reason: String) -> Result<(), store::Error> {
        let phase = self.phase();
        let meant = |turn: &&mut Turn| key.ends_with(turn.projection.ids().turn.as_str());
        let Some(turn) = self.turn.as_mut().filter(meant) else {
            return self.append(Source::Own, Vec::new(), phase).await;
        };
        self.held.get_or_insert(entry - 1);
        turn.projection.cancels(&reason);
        match &turn.doing {
            Doing::Following(following) => {
                let run = following.run.clone();
                if let Some(found) = self.sessions.runs().find(&run, &self.account).await? {
                    self.sessions.runs().cancel(found, reason).await?;
                }
                Ok(())
            }
            Doing::Beginning | Doing::Waiting(_) => {
                let drafts = self.close_calls("cancelled", STOPPED);
                self.end(cancelled(&reason), drafts).await
            }
        }
    }
}
