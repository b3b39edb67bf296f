//! The alerts that a model is told of with the question, fetched with a tool of the executor.

use std::time::Duration;

use domain::{Before, CallId, ToolCall, ToolStatus};
use serde_json::json;
use tokio::time::timeout;

use super::{Context, Offer, Tools};
use crate::prompt::File;

const TOOL: &str = "fetch_alert_history";
/// The question waits for it.
const TIME: Duration = Duration::from_secs(5);

/// Thirty days, as the tool has it.
const MOST_HOURS: f64 = 720.0;

/// Whose alerts are wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AlertHistory {
    pub namespace: String,
    pub name: String,
    pub since_hours: f64,
}

impl Tools {
    /// What is known of alerts, or why nothing is, as a file that goes with the question.
    pub(crate) async fn alert_history(
        &self,
        wanted: &AlertHistory,
        offer: &Offer,
        context: &Context,
    ) -> File {
        let hours = wanted.since_hours.ceil().clamp(1.0, MOST_HOURS);
        let text = if offer.specs.iter().any(|spec| spec.name == TOOL) {
            self.fetch(wanted, hours, context).await
        } else {
            "There are none to show: neither a Prometheus nor an Alertmanager is configured. Say so if earlier alerts \
             would matter."
                .to_owned()
        };
        File { name: format!("alerts of the last {hours} hours"), text }
    }

    async fn fetch(&self, wanted: &AlertHistory, hours: f64, context: &Context) -> String {
        let AlertHistory { namespace, name, .. } = wanted;
        let arguments = json!({ "namespace": namespace, "name": name, "since_hours": hours });
        let call = ToolCall {
            id: CallId::new("alert_history"),
            name: TOOL.to_owned(),
            arguments: arguments.to_string(),
        };
        let running = self.run(call, None, Before::default(), context);
        match timeout(TIME, running.finished()).await {
            Ok(Some(result)) if result.status == ToolStatus::Success => result.data,
            Ok(Some(result)) => format!("They could not be fetched: {}", result.error.unwrap_or_default()),
            Ok(None) | Err(_) => format!("They could not be fetched in time; `{TOOL}` can try again."),
        }
    }
}
