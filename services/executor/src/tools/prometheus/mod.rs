//! `prometheus/metrics`: PromQL, and what there is to ask about. Names and parameters are HolmesGPT's.

use std::time::Duration;

use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    Arguments, Decision, Plan, Presentation, Remote, Settings, Tool, Toolset, Work, parameters::Parameter,
};
use crate::policy::Effect;

mod discover;
mod query;

/// How far back is looked when nothing is said.
const WINDOW: Duration = Duration::from_secs(3600);
/// Seconds that an answer may take, if nothing else is said, and at most.
const TIME: u64 = 20;
const MOST_TIME: u64 = 180;
/// Seconds that Prometheus is given beside, to say that it took too long.
const GRACE: u64 = 5;
/// Time to say that there was no answer in time.
const TO_SAY_SO: Duration = Duration::from_secs(1);

pub(super) const TOOLS: &[Tool] = &[
    tool(
        "list_prometheus_rules",
        "Lists the alerting and recording rules, with their state and expressions.",
        &[],
        discover::rules,
    ),
    tool(
        "get_metric_names",
        "Lists the names of metrics that match a selector. Start here to find what is measured.",
        &[MATCH, START, END],
        discover::metric_names,
    ),
    tool(
        "get_label_values",
        "Lists the values of a label, such as the namespaces or pods that there are metrics of.",
        &[Parameter::text("label", "Name of the label."), MATCH.optional(), START, END],
        discover::label_values,
    ),
    tool("get_all_labels", "Lists the names of labels.", &[MATCH.optional(), START, END], discover::labels),
    tool(
        "get_series",
        "Lists the series that match a selector, with all their labels.",
        &[MATCH, START, END],
        discover::series,
    ),
    tool(
        "get_metric_metadata",
        "Says what metrics mean: type, unit and help.",
        &[Parameter::text("metric", "Only this metric.").optional()],
        discover::metadata,
    ),
    tool(
        "execute_prometheus_instant_query",
        "Evaluates a PromQL expression at one point in time, now.",
        &[QUERY, DESCRIPTION, TIMEOUT],
        query::instant,
    ),
    tool(
        "execute_prometheus_range_query",
        "Evaluates a PromQL expression over a time range, the last hour unless given. Shows how something changed.",
        &[
            QUERY,
            DESCRIPTION,
            START,
            END,
            Parameter::text("step", "Time between points: seconds, or a duration such as `5m`.").optional(),
            Parameter::text(
                "output_type",
                "What the values are: `Plain`, `Bytes`, `Percentage` (0 to 1) or `CPUUsage` (cores).",
            )
            .optional(),
            Parameter::integer("max_points", "At most this many points a series. 300 unless given.")
                .optional(),
            TIMEOUT,
        ],
        query::range,
    ),
];

const MATCH: Parameter =
    Parameter::text("match", "A selector, such as `{__name__=~\"node_cpu.*\"}` or `up{job=\"api\"}`.");
const START: Parameter = Parameter::text(
    "start",
    "From when: RFC 3339, Unix seconds, or a negative number of seconds before `end`. 1 hour unless given.",
)
.optional();
const END: Parameter = Parameter::text(
    "end",
    "Until when: RFC 3339, Unix seconds, or a negative number of seconds before now. Now unless given.",
)
.optional();
const QUERY: Parameter = Parameter::text("query", "The PromQL expression.");
const DESCRIPTION: Parameter = Parameter::text("description", "What it is meant to show, in a few words.");
const TIMEOUT: Parameter =
    Parameter::integer("timeout", "Seconds that it may take. 20 unless given, at most 180.").optional();

const fn tool(
    name: &'static str,
    description: &'static str,
    parameters: &'static [Parameter],
    plan: fn(&Settings, &Arguments) -> Result<Plan, String>,
) -> Tool {
    Tool { name, toolset: Toolset::PrometheusMetrics, needs_jq: false, description, parameters, plan }
}

/// A question to the HTTP API.
struct Question {
    /// What it asks, in one line.
    description: String,
    path: String,
    query: Vec<(&'static str, String)>,
    /// Seconds that the answer may take.
    time: u64,
}

impl Question {
    /// Asks it; `present` shows what the API says under `data`.
    fn plan(
        self,
        settings: &Settings,
        present: impl FnOnce(Value) -> Presentation + Send + 'static,
    ) -> Result<Plan, String> {
        let Self { description, path, query, time } = self;
        let prometheus = settings.prometheus.clone().ok_or("no Prometheus is configured")?;
        let description = description.replace(char::is_control, " ");
        let time = Duration::from_secs(time + GRACE).min(settings.longest_timeout);
        let answer = async move {
            let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            match prometheus.get::<Value>(&path, &query, time).await {
                Ok(mut answer) => present(answer["data"].take()),
                Err(why) => Presentation::Error { data: String::new(), error: format!("Prometheus: {why}") },
            }
        };
        let remote =
            Remote { invocation: description.clone(), timeout: time + TO_SAY_SO, answer: answer.boxed() };
        Ok(Plan { description, effect: Effect::Read, decision: Decision::Allow(Work::Remote(remote)) })
    }
}

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period {
    start: Timestamp,
    end: Timestamp,
}

impl Period {
    fn read(arguments: &Arguments, now: Timestamp) -> Result<Self, String> {
        let end = moment(arguments.text("end"), now, "end")?.unwrap_or(now);
        let window = SignedDuration::try_from(WINDOW).map_err(|error| error.to_string())?;
        let start = moment(arguments.text("start"), end, "start")?.unwrap_or(end - window);
        if start >= end {
            return Err("`start` must be before `end`".to_owned());
        }
        Ok(Self { start, end })
    }

    fn pairs(self) -> [(&'static str, String); 2] {
        [("start", self.start.to_string()), ("end", self.end.to_string())]
    }
}

/// RFC 3339, seconds since 1970, or seconds before another moment.
fn moment(text: &str, before: Timestamp, parameter: &str) -> Result<Option<Timestamp>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let read = match text.parse::<f64>() {
        Ok(seconds) if seconds <= 0.0 => {
            before.checked_add(SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::MIN)).ok()
        }
        Ok(seconds) if seconds.is_nan() => None,
        Ok(seconds) => Timestamp::from_second(seconds as i64).ok(),
        Err(_) => text.parse().ok(),
    };
    read.map(Some).ok_or_else(|| format!("`{parameter}` must be a time in RFC 3339 or a number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_their_forms() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        for (text, second) in [
            ("-60", Some(1_699_999_940)),
            ("0", Some(1_700_000_000)),
            ("1600000000", Some(1_600_000_000)),
            ("1600000000.5", Some(1_600_000_000)),
            ("2020-09-13T12:26:40Z", Some(1_600_000_000)),
            ("yesterday", None),
            ("-1e300", None),
            ("1e300", None),
            ("NaN", None),
        ] {
            let read = moment(text, now, "start").ok().flatten().map(Timestamp::as_second);
            assert_eq!(read, second, "{text}");
        }
        assert_eq!(moment(" ", now, "start"), Ok(None));
    }
}
