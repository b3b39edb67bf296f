//! What an account may spend in a day: a run begins within what is left, and ends with it.

use domain::{Limits, Timestamp, Usage};
use runtime::clock;
use serde_json::Number;
use store::{Budget, Spent, until_tomorrow};

use super::{Refusal, Runs};

/// Nothing is left of an account's budget.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the account has spent its budget of today ({}), which begins anew at midnight UTC", told(.budget, .spent))]
pub(crate) struct OverBudget {
    budget: Budget,
    spent: Spent,
    now: Timestamp,
}

impl OverBudget {
    /// Whole seconds until there is a new one.
    pub(crate) fn seconds(&self) -> u64 {
        until_tomorrow(self.now).as_secs().saturating_add(1)
    }

    /// What was spent, of how much, and of what.
    pub(crate) fn figures(&self) -> (Number, Number, &'static str) {
        let Self { budget, spent, .. } = self;
        let dollars = |cost| Number::from_f64(cost).unwrap_or_else(|| 0.into());
        match (budget.tokens, budget.cost_usd) {
            (Some(most), None) => (spent.tokens.into(), most.into(), "tokens"),
            (Some(most), Some(_)) if spent.tokens >= most => (spent.tokens.into(), most.into(), "tokens"),
            (_, most) => (dollars(spent.cost_usd), dollars(most.unwrap_or_default()), "usd"),
        }
    }
}

/// What was spent, of what may be.
fn told(budget: &Budget, spent: &Spent) -> String {
    let tokens = budget.tokens.map(|most| format!("{} of {most} tokens", spent.tokens));
    let cost = budget.cost_usd.map(|most| format!("{:.2} of {most:.2} US dollars", spent.cost_usd));
    tokens.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
}

impl Runs {
    /// The limits of a run that begins now: it may spend no more than is left. Runs that begin at the same time may do so
    /// each.
    pub(crate) async fn within_budget(&self, account: &str, limits: Limits) -> Result<Limits, Refusal> {
        let Some(account) = self.log.account(account).await? else { return Ok(limits) };
        let spent = account.spent;
        let budget = account.budget.or(self.config.default_budget);
        let over = OverBudget { budget, spent, now: Timestamp(clock::unix_nanos()) };
        let Budget { tokens, cost_usd } = budget.less(spent).ok_or(over)?;
        Ok(limits.lowered_to(Limits { tokens, cost_usd, ..limits }))
    }

    /// Counts what was spent for an account beside its runs.
    pub(crate) async fn spend(&self, account: &str, usage: Usage) {
        let tokens = usage.prompt.saturating_add(usage.completion);
        let spent = Spent { tokens, cost_usd: usage.cost_usd };
        if let Err(error) = self.log.spend(account, spent).await {
            tracing::warn!(%error, "what an account has spent is not counted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_was_spent_and_when_there_is_more() {
        let noon = Timestamp(12 * 3600 * 1_000_000_000);
        let over = OverBudget {
            budget: Budget { tokens: Some(100), cost_usd: Some(2.5) },
            spent: Spent { tokens: 120, cost_usd: 0.333 },
            now: noon,
        };
        assert!(over.to_string().contains("(120 of 100 tokens, 0.33 of 2.50 US dollars)"), "{over}");
        assert_eq!(over.seconds(), 12 * 3600 + 1);
        assert_eq!(over.figures(), (120.into(), 100.into(), "tokens"));
        let of_cost = Budget { tokens: Some(1000), ..over.budget };
        let over = OverBudget { budget: of_cost, spent: Spent { cost_usd: 3.0, ..over.spent }, ..over };
        let dollars = |cost| Number::from_f64(cost).unwrap();
        assert_eq!(over.figures(), (dollars(3.0), dollars(2.5), "usd"));
    }
}
