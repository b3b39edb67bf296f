//! The answer of an investigation as JSON, for a client that asked for one by schema.

use serde_json::{Map, Value};

use crate::{
    answer::{self, join},
    case::{Access, Case},
    correlate::{self, Problem},
    name::Kind,
};

/// From so many problems on, quotes are shorter.
const MANY: usize = 4;

/// The object that the schema of a `response_format` describes; `None` if it wants what is not known here.
pub(crate) fn fill(format: &Value, case: &Case<'_>) -> Option<String> {
    let schema = format.pointer("/json_schema/schema")?;
    let properties = schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
    let (problems, _) = answer::split(case, correlate::problems(&case.snapshot));
    let values = properties.iter().map(|(name, property)| {
        let value = value(&name.to_lowercase(), property, case, &problems)?;
        Some((name.clone(), value))
    });
    Some(Value::Object(values.collect::<Option<Map<_, _>>>()?).to_string())
}

/// What belongs under a name, as far as names tell.
fn value(name: &str, property: &Value, case: &Case<'_>, problems: &[Problem]) -> Option<Value> {
    let names = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let text = if names(&["healthy"]) && allows(property, "boolean") {
        return Some(is_healthy(case, problems).into());
    } else if names(&["summary", "analysis", "answer", "report", "result"]) {
        answer::report(case)
    } else if names(&["explanation", "headline"]) {
        answer::headline(case, problems)
    } else if names(&["finding", "evidence"]) {
        findings(case, problems)
    } else if names(&["cause", "conclusion", "why"]) {
        causes(problems)
    } else if names(&["step", "remediation", "recommendation"]) {
        steps(problems)
    } else if names(&["infra"]) {
        sides(problems)
    } else {
        String::new()
    };
    match text.is_empty() {
        false if allows(property, "string") => Some(text.into()),
        _ => allows(property, "null").then_some(Value::Null),
    }
}

fn allows(property: &Value, kind: &str) -> bool {
    match property.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|allowed| allowed == kind),
        Some(allowed) => allowed == kind,
        None => true,
    }
}

/// Only what was seen can be called healthy.
fn is_healthy(case: &Case<'_>, problems: &[Problem]) -> bool {
    let is_seen = case.cluster == Access::Open
        && case.namespace_exists() != Some(false)
        && !case.focus.unknown.iter().any(|mention| mention.is_certain);
    is_seen && problems.is_empty()
}

fn findings(case: &Case<'_>, problems: &[Problem]) -> String {
    if problems.is_empty() {
        return answer::health(case);
    }
    each(problems, |problem| {
        let is_short = problems.len() >= MANY;
        join([answer::quotes(&problem.cause, is_short), answer::consequences(&problem.consequences)])
    })
}

fn causes(problems: &[Problem]) -> String {
    each(problems, |problem| problem.cause.cause.clone())
}

fn steps(problems: &[Problem]) -> String {
    each(problems, |problem| answer::steps(&problem.cause))
}

/// Who has to act: those who run the nodes, or those who run the workload.
fn sides(problems: &[Problem]) -> String {
    each(problems, |problem| {
        let about = &problem.cause.about;
        match about.kind {
            Kind::Node | Kind::Host | Kind::Claim => format!("Infra: {about}."),
            Kind::Pod
            | Kind::Deployment
            | Kind::StatefulSet
            | Kind::DaemonSet
            | Kind::ReplicaSet
            | Kind::Job
            | Kind::CronJob
            | Kind::Service
            | Kind::ConfigMap
            | Kind::Secret
            | Kind::Namespace => format!("App: {about}."),
        }
    })
}

/// A part for each problem, with its sentence where there are several.
fn each(problems: &[Problem], part: impl Fn(&Problem) -> String) -> String {
    match problems {
        [only] => part(only),
        many => join(
            many.iter().map(|problem| join([format!("**{}.**", problem.cause.sentence()), part(problem)])),
        ),
    }
}
