//! What Prometheus knows of alerts: the samples of its series `ALERTS`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::{ANSWER_TIME, Alert, Period, Source, Wanted};

/// Samples of each series over the whole time, and seconds between them at least.
const SAMPLES: u32 = 300;
const SHORTEST_STEP: u32 = 30;

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    values: Vec<(f64, serde::de::IgnoredAny)>,
}

pub(super) async fn history(
    source: &Source,
    wanted: &Wanted,
    since: Timestamp,
    now: Timestamp,
) -> Result<Vec<Alert>, String> {
    let step = (wanted.hours.saturating_mul(3600) / SAMPLES).max(SHORTEST_STEP);
    let query = [
        ("query", selector(&wanted.namespace)),
        ("start", since.as_second().to_string()),
        ("end", now.as_second().to_string()),
        ("step", step.to_string()),
    ];
    let query = query.each_ref().map(|(name, value)| (*name, value.as_str()));
    let answer: Answer = source.get("api/v1/query_range", &query, ANSWER_TIME).await?;
    Ok(answer.data.result.into_iter().map(|series| alert(series, step, now)).collect())
}

/// The firing alerts of a namespace, as PromQL. A Rust string literal's escapes are PromQL's.
fn selector(namespace: &str) -> String {
    let of = if namespace.is_empty() { String::new() } else { format!(",namespace={namespace:?}") };
    format!("ALERTS{{alertstate=\"firing\"{of}}}")
}

fn alert(series: Series, step: u32, now: Timestamp) -> Alert {
    let Series { mut metric, values } = series;
    let name = metric.remove("alertname").unwrap_or_default();
    metric.retain(|label, _| label != "__name__" && label != "alertstate");
    let times = values.into_iter().filter_map(|(time, _)| Timestamp::from_second(time as i64).ok());
    Alert { name, labels: metric.into_iter().collect(), summary: None, periods: periods(times, step, now) }
}

/// Samples that follow each other are one period; the last one goes on if it reaches the present.
fn periods(times: impl Iterator<Item = Timestamp>, step: u32, now: Timestamp) -> Vec<Period> {
    let longest_gap = i64::from(step) * 3 / 2;
    let mut periods: Vec<(Timestamp, Timestamp)> = Vec::new();
    for time in times {
        match periods.last_mut() {
            Some((_, to)) if time.as_second() - to.as_second() <= longest_gap => *to = time,
            _ => periods.push((time, time)),
        }
    }
    let ended = |to: &Timestamp| now.as_second() - to.as_second() > longest_gap;
    periods.into_iter().map(|(from, to)| Period { from, to: Some(to).filter(ended) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_periods() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let times = [0, 60, 120, 600, 660, 940, 1000];
        let found = periods(times.map(at).into_iter(), 60, at(1010));
        let period = |from, to: Option<i64>| Period { from: at(from), to: to.map(at) };
        assert_eq!(found, [period(0, Some(120)), period(600, Some(660)), period(940, None)]);
    }

    #[test]
    fn a_namespace_stays_a_value() {
        assert_eq!(selector(""), "ALERTS{alertstate=\"firing\"}");
        assert_eq!(selector("a\"}\n"), "ALERTS{alertstate=\"firing\",namespace=\"a\\\"}\\n\"}");
    }
}
