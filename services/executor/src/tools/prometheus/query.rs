//! PromQL, at one point in time and over a range.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Arguments, MOST_TIME, Period, Plan, Presentation, Question, Settings, TIME};

/// Points of each series, unless fewer or more are wanted, and at most.
const POINTS: i64 = 300;
const MOST_POINTS: i64 = 2000;
/// Points of each series where no step is given, and seconds between them at least.
const USUAL_POINTS: i64 = 60;
const SHORTEST_STEP: i64 = 15;
const LONGEST_STEP: f64 = 1e9;

pub(super) fn instant(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let shown = Shown::new("execute_prometheus_instant_query", arguments, json!({}));
    question(arguments, "api/v1/query", Vec::new()).plan(settings, |data| shown.present(data))
}

pub(super) fn range(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let period = Period::read(arguments, Timestamp::now())?;
    let most = arguments.integer("max_points").unwrap_or(POINTS).clamp(1, MOST_POINTS);
    let step = step(arguments.text("step"), period, most)?;
    let output_type = Some(arguments.text("output_type")).filter(|kind| !kind.is_empty()).unwrap_or("Plain");
    let more = json!({
        "start": period.start.to_string(),
        "end": period.end.to_string(),
        "step": step,
        "output_type": output_type,
    });
    let shown = Shown::new("execute_prometheus_range_query", arguments, more);
    let mut query = period.pairs().to_vec();
    query.push(("step", step.to_string()));
    question(arguments, "api/v1/query_range", query).plan(settings, |data| shown.present(data))
}

fn question(arguments: &Arguments, path: &str, mut query: Vec<(&'static str, String)>) -> Question {
    let promql = arguments.text("query").trim();
    let asked = arguments.integer("timeout").and_then(|seconds| u64::try_from(seconds).ok());
    let time = asked.unwrap_or(TIME).clamp(1, MOST_TIME);
    query.extend([("query", promql.to_owned()), ("timeout", format!("{time}s"))]);
    let description = format!("Prometheus: {promql} ({})", arguments.text("description"));
    Question { description, path: path.to_owned(), query, time }
}

/// Seconds between points: as it is wanted, and so that there are at most so many.
fn step(text: &str, period: Period, most: i64) -> Result<i64, String> {
    let length = period.end.as_second().saturating_sub(period.start.as_second()).max(1);
    let least = length.div_euclid(most) + i64::from(length.rem_euclid(most) != 0);
    let wanted = match text.trim() {
        "" => (length / USUAL_POINTS).max(SHORTEST_STEP),
        text => seconds(text).ok_or("`step` must be seconds, or a duration such as `5m`")?,
    };
    Ok(wanted.max(least).max(1))
}

/// Seconds, or a duration of Prometheus.
fn seconds(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return None,
    };
    let seconds = (number.trim().parse::<f64>().ok()? * factor).ceil();
    (seconds > 0.0 && seconds < LONGEST_STEP).then_some(seconds as i64)
}

/// What is said with the data, in HolmesGPT's form: its consoles draw graphs of it.
struct Shown(Value);

impl Shown {
    fn new(tool: &str, arguments: &Arguments, more: Value) -> Self {
        let mut said = more;
        said["tool_name"] = tool.into();
        said["description"] = arguments.text("description").into();
        said["query"] = arguments.text("query").into();
        Self(said)
    }

    fn present(self, data: Value) -> Presentation {
        let Self(mut said) = self;
        let is_empty = data["result"].as_array().is_some_and(Vec::is_empty);
        said["data"] = data;
        if is_empty {
            said["status"] = "Failed".into();
            said["error_message"] = "The query has no result. Are its names and labels right?".into();
            return Presentation::NoData(said.to_string());
        }
        said["status"] = "success".into();
        said["error_message"] = Value::Null;
        Presentation::Success(said.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_keep_to_the_points() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let hour = Period { start: at(0), end: at(3600) };
        for (text, most, wanted) in [
            ("", 300, Some(60)),
            ("", 10, Some(360)),
            ("30", 300, Some(30)),
            ("1", 300, Some(12)),
            ("5m", 300, Some(300)),
            ("1.5h", 300, Some(5400)),
            ("500ms", 2000, Some(2)),
            ("0", 300, None),
            ("-5", 300, None),
            ("1e300", 300, None),
            ("5 apples", 300, None),
        ] {
            assert_eq!(step(text, hour, most).ok(), wanted, "{text}");
        }
    }
}
