//! Queries over all objects of a kind: with jq, as a count, or as a table of chosen columns.
//!
//! kubectl pages through the API and feeds jq directly; the program is one argument of jq.

use serde_json::{Value, json};

use super::{
    Arguments, Plan, Presentation, Settings, Tool, Toolset,
    kubectl::{arguments, command, kind, run, run_all},
    parameters::Parameter,
    pod_logs::Pattern,
    present,
};
use crate::process::{Outcome, Spec};

const KIND: Parameter = Parameter::text("kind", "Kind of object, such as pods or deployments.");
const PREVIEW: usize = 10;

pub(super) const TOOLS: &[Tool] = &[
    tool(
        "kubernetes_jq_query",
        true,
        "Runs a jq expression over the list of all objects of a kind in the cluster. Its input is a list with \
         `.items`, as of `kubectl get -A -o json`. Returns JSON with the results.",
        &[
            KIND,
            Parameter::text(
                "jq_expr",
                "The expression, such as `.items[] | select(.status.phase != \"Running\") | .metadata.name`.",
            ),
        ],
        |settings, arguments| jq(settings, arguments, usize::MAX, "results"),
    ),
    tool(
        "kubernetes_count",
        true,
        "Counts the results of a jq expression over the list of all objects of a kind in the cluster. Returns JSON \
         with the count and the first results.",
        &[
            KIND,
            Parameter::text(
                "jq_expr",
                "The expression; each of its results counts as one, such as `.items[] | select(.spec.replicas == 0)`.",
            ),
        ],
        |settings, arguments| jq(settings, arguments, PREVIEW, "preview"),
    ),
    tool(
        "kubernetes_tabular_query",
        false,
        "Shows chosen fields of all objects of a kind in the cluster as a table.",
        &[
            KIND,
            Parameter::text(
                "columns",
                "Columns as for kubectl's custom-columns: `NAME:.metadata.name,NODE:.spec.nodeName`.",
            ),
            Parameter::text(
                "filter_pattern",
                "Only lines that match this regular expression; the heading stays.",
            )
            .optional(),
        ],
        table,
    ),
];

const fn tool(
    name: &'static str,
    needs_jq: bool,
    description: &'static str,
    parameters: &'static [Parameter],
    plan: fn(&Settings, &Arguments) -> Result<Plan, String>,
) -> Tool {
    Tool { name, toolset: Toolset::KubernetesCore, needs_jq, description, parameters, plan }
}

fn jq(settings: &Settings, given: &Arguments, most: usize, field: &'static str) -> Result<Plan, String> {
    let expression = given.text("jq_expr").to_owned();
    if expression.trim().is_empty() {
        return Err("the parameter `jq_expr` is empty".to_owned());
    }
    let get = ["get", kind(given, "kind")?, "-A", "-o", "json", "--chunk-size=500"];
    // In brackets it cannot be taken for an option, nor import a module; a comment ends with the line.
    let program = format!("(.items|length),({expression}\n)");
    let shown = format!("{} | {}", command(&get), present::command_line(["jq", "-c", &expression]));
    let spec = Spec {
        pipeline: vec![arguments(settings, &get), vec![settings.jq.clone(), "-c".to_owned(), program]],
        ..Spec::program(Vec::new())
    };
    Ok(run_all(settings, shown.clone(), vec![spec], move |outcomes| match outcomes.first() {
        Some(outcome) => show(&shown, outcome, most, field),
        None => Presentation::NoData(String::new()),
    }))
}

fn show(shown: &str, outcome: &Outcome, most: usize, field: &str) -> Presentation {
    if let Some(error) = present::failure(shown, outcome) {
        return Presentation::Error { data: outcome.stderr.text().trim_end().to_owned(), error };
    }
    let output = outcome.stdout.text();
    let mut lines = output.lines();
    let total: Value = lines.next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    // Where the output was too long, the lines around the cut are none.
    let results: Vec<Value> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut answer = json!({
        "total_items_processed": total,
        "matches_found": results.len(),
        field: results.get(..most.min(results.len())),
    });
    if outcome.stdout.omitted() > 0 {
        answer["left_out_bytes"] = json!(outcome.stdout.omitted());
    }
    if outcome.stderr.total() > 0 {
        answer["stderr"] = json!(outcome.stderr.text().trim_end());
    }
    if results.is_empty() {
        Presentation::NoData(answer.to_string())
    } else {
        Presentation::Success(answer.to_string())
    }
}

fn table(settings: &Settings, given: &Arguments) -> Result<Plan, String> {
    let columns = given.text("columns").trim();
    if columns.is_empty() {
        return Err("the parameter `columns` is empty".to_owned());
    }
    let output = format!("custom-columns={columns}");
    let own = ["get", kind(given, "kind")?, "-A", "-o", &output, "--chunk-size=500"];
    let pattern = Pattern::new(given.text("filter_pattern"));
    let shown = command(&own);
    Ok(run(settings, shown.clone(), &own, move |outcome| match present::plain(&shown, outcome) {
        Presentation::Success(table) => match present::filtered(&table, |line| pattern.matches(line)) {
            Some(found) => Presentation::Success(found),
            None => Presentation::NoData(String::new()),
        },
        other @ (Presentation::Pictures { .. }
        | Presentation::NoData(_)
        | Presentation::Error { .. }
        | Presentation::Files { .. }) => other,
    }))
}
