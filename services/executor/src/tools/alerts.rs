//! `fetch_alert_history`: which alerts fired.

use std::time::Duration;

use futures_util::FutureExt as _;

use super::{
    Arguments, Decision, Plan, Presentation, Remote, Settings, Tool, Toolset, Work, parameters::Parameter,
};
use crate::{alerts::Wanted, policy::Effect};

/// Both sources are asked at the same time, and each has its own, shorter time.
const TIME: Duration = Duration::from_secs(20);
const DEFAULT_HOURS: i64 = 24;
/// Thirty days.
const MOST_HOURS: i64 = 720;

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "fetch_alert_history",
    toolset: Toolset::Alerts,
    needs_jq: false,
    description: "Shows which alerts fired and when, from Prometheus and Alertmanager.",
    parameters: &[
        Parameter::text("namespace", "Only alerts of this namespace.").optional(),
        Parameter::text("name", "Only alerts about this workload, or its pods.").optional(),
        Parameter::integer("since_hours", "How many hours back, 24 if not given.").optional(),
    ],
    plan,
}];

fn plan(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let alerts = settings.alerts.clone().ok_or("no source of alerts is configured")?;
    let hours = arguments.integer("since_hours").unwrap_or(DEFAULT_HOURS).clamp(1, MOST_HOURS);
    let wanted = Wanted {
        namespace: arguments.text("namespace").to_owned(),
        name: arguments.text("name").to_owned(),
        hours: u32::try_from(hours).unwrap_or(1),
    };
    let invocation = format!("Alert history of {hours} hours: {} {}", wanted.namespace, wanted.name);
    let invocation = invocation.replace(char::is_control, " ").trim_end().to_owned();
    let answer = async move {
        match alerts.history(&wanted).await {
            Ok(text) => Presentation::Success(text),
            Err(error) => Presentation::Error { data: String::new(), error },
        }
    };
    Ok(Plan {
        description: invocation.clone(),
        effect: Effect::Read,
        decision: Decision::Allow(Work::Remote(Remote { invocation, timeout: TIME, answer: answer.boxed() })),
    })
}
