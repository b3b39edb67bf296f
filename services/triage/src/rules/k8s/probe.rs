//! Containers that run, and whose probes fail.

use serde_json::Value;

use crate::{
    evidence::Fetched,
    finding::{Finding, Quote},
    look::{self, Look},
    manifest,
    name::Name,
    quote,
    rules::{
        Rule,
        pod::{self, Container},
    },
    snapshot::{Event, Group, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants, check };

/// A probe that fails, and the warning that says so.
struct Failing<'s, 'a> {
    kind: &'static str,
    container: Container<'s>,
    events: Vec<&'s Event<'a>>,
}

fn failing<'s, 'a>(snapshot: &'s Snapshot<'a>, group: &'s Group<'a>) -> Option<Failing<'s, 'a>> {
    ["Liveness", "Startup", "Readiness"].into_iter().find_map(|kind| {
        let events: Vec<_> = pod::warnings(snapshot, group)
            .into_iter()
            .filter(|event| event.reason == "Unhealthy" && event.message.starts_with(&format!("{kind} probe")))
            .collect();
        let container = pod::containers(group).filter(|container| !container.is_init).find(|container| {
            let probed = group.manifest.as_ref().and_then(|pod| probe(pod, &container.status.name, kind)).is_some();
            let killed = container.status.ended().is_some_and(|end| {
                matches!(end.exit_code, 137 | 143) && end.reason != "OOMKilled" && pod::is_recent(snapshot, end)
            });
            let runs = container.status.state.running.is_some();
            probed && if kind == "Readiness" { runs && !container.status.ready } else { killed }
        })?;
        // a container that is not ready although it runs can only be so for its readiness probe
        (!events.is_empty() || kind == "Readiness").then_some(Failing { kind, container, events })
    })
}

fn probe<'p>(pod: &'p manifest::Pod, container: &str, kind: &str) -> Option<&'p Value> {
    let spec = pod.container(container)?;
    match kind {
        "Liveness" => spec.liveness_probe.as_ref(),
        "Startup" => spec.startup_probe.as_ref(),
        _ => spec.readiness_probe.as_ref(),
    }
}

fn log_look(group: &Group<'_>, failing: &Failing<'_, '_>) -> Option<Look> {
    let pod = group.sample()?;
    let previous = failing.kind != "Readiness";
    Some(look::logs(&pod.namespace, &pod.name, Some(&Name::parse(&failing.container.status.name)?), previous))
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let failing = snapshot.groups.iter().filter_map(|group| log_look(group, &failing(snapshot, group)?));
    failing.collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let failing = failing(snapshot, group)?;
    let name = &failing.container.status.name;
    let probe = probe(group.manifest.as_ref()?, name, failing.kind)?;
    let asks = asks(probe);
    let verb = match failing.kind {
        "Readiness" => "is not ready".to_owned(),
        _ => format!("is restarted by its probe again and again ({} restarts)", failing.container.status.restart_count),
    };
    let said = failing.events.first().map_or_else(
        || format!("the readiness probe ({asks}) does not succeed"),
        |event| quote::plain(event.message),
    );
    let log = log_look(group, &failing).and_then(|look| snapshot.evidence.shown(&look));
    let cause = match failing.kind {
        "Readiness" => format!(
            "The program runs, but answers its readiness probe ({asks}) as not ready, so it gets no traffic.{}",
            in_log(log).unwrap_or_else(|| " Such a probe often fails because something that the program needs does not answer.".to_owned())
        ),
        _ => format!(
            "The kubelet kills `{name}` because its {} probe ({asks}) fails: the program hangs or is too slow, or the probe is \
             stricter than the program can meet (timeout {} s, {} failures in a row).",
            failing.kind.to_lowercase(),
            probe.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(1),
            probe.get("failureThreshold").and_then(Value::as_u64).unwrap_or(3),
        ),
    };
    let state = if failing.kind == "Readiness" { pod::row_quote(group) } else { pod::state_quote(group, failing.container) };
    let owner = pod::owner_path(group);
    let flag = group.owner.flag();
    Some(
        pod::finding(snapshot, group, &format!("{verb}: {said}"))
            .because(cause)
            .quoting(pod::event_quote(&failing.events))
            .quoting(state)
            .quoting(log.filter(|log| log.lines().next().is_some()).map(pod::log_quote).map(shorter))
            .next("Watch what the program logs while it is probed", format!("kubectl logs {owner}{flag} -c {name} --since=5m"))
            .next("See the probe and its time limits", format!("kubectl get {owner}{flag} -o yaml | grep -n -A 12 Probe"))
            .next("If it began with a rollout", format!("kubectl rollout history {owner}{flag}")),
    )
}

/// The last line of a log that complains.
fn in_log(log: Option<&Fetched>) -> Option<String> {
    let complains = |line: &&str| ["WARN", "ERROR", "warn", "error", "fail", "503", "500", "unavailable"].iter().any(|word| line.contains(word));
    let lines: Vec<&str> = log?.lines().filter(complains).collect();
    lines.last().map(|line| format!(" Its log says: {}.", quote::inline(line)))
}

fn shorter(mut quote: Quote) -> Quote {
    let start = quote.lines.len().saturating_sub(6);
    quote.lines.drain(..start);
    quote
}

/// What a probe does, in short: `GET :8080/healthz`.
fn asks(probe: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(get) = probe.get("httpGet") {
        let path = get.get("path").map(text).unwrap_or_default();
        return format!("GET `:{}{path}`", get.get("port").map(text).unwrap_or_default());
    }
    for (key, words) in [("tcpSocket", "connecting to port"), ("grpc", "a gRPC health check on port")] {
        if let Some(port) = probe.get(key).and_then(|how| how.get("port")) {
            return format!("{words} `{}`", text(port));
        }
    }
    match probe.pointer("/exec/command").and_then(Value::as_array) {
        Some(words) => quote::inline(&words.iter().map(text).collect::<Vec<_>>().join(" ")),
        None => "an unknown kind of check".to_owned(),
    }
}
