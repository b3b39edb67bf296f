//! What there is to ask about: rules, metrics, labels, series.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Arguments, Period, Plan, Presentation, Question, Settings, TIME};

/// Entries that are shown; what is left out is counted.
const MOST: usize = 100;

pub(super) fn rules(settings: &Settings, _: &Arguments) -> Result<Plan, String> {
    ask(settings, "Prometheus: rules", "api/v1/rules", Vec::new())
}

pub(super) fn metric_names(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let about = format!("Prometheus: metrics like {}", arguments.text("match"));
    ask(settings, &about, "api/v1/label/__name__/values", matching(arguments)?)
}

pub(super) fn label_values(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let label = arguments.text("label");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if label.is_empty() || !label.chars().all(is_plain) {
        return Err("`label` must be the name of a label".to_owned());
    }
    let path = format!("api/v1/label/{label}/values");
    ask(settings, &format!("Prometheus: values of {label}"), &path, matching(arguments)?)
}

pub(super) fn labels(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    ask(settings, "Prometheus: labels", "api/v1/labels", matching(arguments)?)
}

pub(super) fn series(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let about = format!("Prometheus: series like {}", arguments.text("match"));
    ask(settings, &about, "api/v1/series", matching(arguments)?)
}

pub(super) fn metadata(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let metric = arguments.text("metric");
    let query = if metric.is_empty() { Vec::new() } else { vec![("metric", metric.to_owned())] };
    ask(settings, &format!("Prometheus: what metrics mean {metric}"), "api/v1/metadata", query)
}

fn matching(arguments: &Arguments) -> Result<Vec<(&'static str, String)>, String> {
    let mut query = Period::read(arguments, Timestamp::now())?.pairs().to_vec();
    let selector = arguments.text("match").trim();
    if !selector.is_empty() {
        query.push(("match[]", selector.to_owned()));
    }
    Ok(query)
}

fn ask(
    settings: &Settings,
    about: &str,
    path: &str,
    query: Vec<(&'static str, String)>,
) -> Result<Plan, String> {
    let description = about.trim_end().to_owned();
    Question { description, path: path.to_owned(), query, time: TIME }.plan(settings, show)
}

fn show(data: Value) -> Presentation {
    let (data, all) = match data {
        Value::Array(mut list) => {
            let all = list.len();
            list.truncate(MOST);
            (Value::Array(list), all)
        }
        Value::Object(map) => {
            let all = map.len();
            (Value::Object(map.into_iter().take(MOST).collect()), all)
        }
        other => (other, 1),
    };
    if all == 0 {
        return Presentation::NoData(json!({"status": "success", "data": data}).to_string());
    }
    let mut answer = json!({"status": "success", "data": data});
    if all > MOST {
        answer["truncated"] =
            json!(format!("These are {MOST} of {all}. Narrow the question to see the others."));
    }
    Presentation::Success(answer.to_string())
}
