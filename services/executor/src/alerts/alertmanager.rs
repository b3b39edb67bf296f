//! What Alertmanager knows of alerts: those that fire now, and those that ended a short while ago.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::{ANSWER_TIME, Alert, Period, Source, Wanted};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    starts_at: Timestamp,
    ends_at: Option<Timestamp>,
}

pub(super) async fn history(
    source: &Source,
    wanted: &Wanted,
    since: Timestamp,
) -> Result<Vec<Alert>, String> {
    let known: Vec<Known> = source.get("api/v2/alerts", &[], ANSWER_TIME).await?;
    let now = Timestamp::now();
    let alerts = known.into_iter().filter(|known| {
        let namespace = known.labels.get("namespace").map(String::as_str).unwrap_or_default();
        (wanted.namespace.is_empty() || namespace == wanted.namespace)
            && known.ends_at.is_none_or(|end| end >= since)
    });
    Ok(alerts.map(|known| alert(known, now)).collect())
}

fn alert(known: Known, now: Timestamp) -> Alert {
    let Known { mut labels, mut annotations, starts_at, ends_at } = known;
    let summary = ["summary", "description", "message"].iter().find_map(|key| annotations.remove(*key));
    Alert {
        name: labels.remove("alertname").unwrap_or_default(),
        labels: labels.into_iter().collect(),
        summary,
        // The end of one that fires is when it would count as over if nobody said more.
        periods: vec![Period { from: starts_at, to: ends_at.filter(|end| *end <= now) }],
    }
}
