//! Alerts as text.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::{Alert, Period, Wanted};

/// Alerts and periods that are shown; what is left out is counted.
const MOST_ALERTS: usize = 50;
const MOST_PERIODS: usize = 10;
const LONGEST_SUMMARY: usize = 300;

/// What a source knows: first the alerts of the workload, then others of its namespace.
pub(super) fn list(source: &str, alerts: Vec<Alert>, wanted: &Wanted) -> String {
    let (own, others): (Vec<_>, Vec<_>) = alerts.into_iter().partition(|alert| concerns(alert, &wanted.name));
    let of = match (wanted.name.as_str(), wanted.namespace.as_str()) {
        ("", "") => String::new(),
        ("", namespace) => format!(" in namespace {namespace}"),
        (name, "") => format!(" about {name}"),
        (name, namespace) => format!(" about {name} in namespace {namespace}"),
    };
    let mut text = if own.is_empty() {
        format!("{source}: no alert{of} in the last {} hours.", wanted.hours)
    } else {
        format!("{source}: alerts{of} in the last {} hours:\n{}", wanted.hours, lines(own))
    };
    if !others.is_empty() && !wanted.namespace.is_empty() {
        text.push_str(&format!("\n\nOther alerts in namespace {}:\n{}", wanted.namespace, lines(others)));
    }
    text
}

/// Whether a label names the workload, or something that is called after it, such as its pods.
fn concerns(alert: &Alert, name: &str) -> bool {
    let is_named =
        |value: &str| value.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    name.is_empty() || alert.labels.iter().any(|(label, value)| label != "namespace" && is_named(value))
}

/// The newest first.
fn lines(mut alerts: Vec<Alert>) -> String {
    let last = |alert: &Alert| alert.periods.last().map(|period| (period.to.is_none(), period.from));
    alerts.sort_by_key(|alert| Reverse(last(alert)));
    let more = alerts.len().saturating_sub(MOST_ALERTS);
    let mut lines: Vec<_> = alerts.iter().take(MOST_ALERTS).map(line).collect();
    if more > 0 {
        lines.push(format!("- and {more} more"));
    }
    lines.join("\n")
}

fn line(alert: &Alert) -> String {
    let labels: Vec<_> = alert.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    let left_out = alert.periods.len().saturating_sub(MOST_PERIODS);
    let mut periods: Vec<_> = alert.periods.iter().skip(left_out).map(period).collect();
    if left_out > 0 {
        periods.insert(0, format!("{left_out} times before"));
    }
    let summary = alert.summary.as_deref().unwrap_or_default();
    let summary: String =
        summary.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_SUMMARY).collect();
    let line = format!("- {} ({}): {}", alert.name, labels.join(", "), periods.join("; "));
    if summary.is_empty() { line } else { format!("{line}. {summary}") }
}

fn period(period: &Period) -> String {
    let time = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
    match period.to {
        Some(to) => format!("{} to {}", time(period.from), time(to)),
        None => format!("firing since {}", time(period.from)),
    }
}
