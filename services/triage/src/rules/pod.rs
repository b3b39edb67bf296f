//! What rules about pods share: a finding about a group, and quotes from its manifest, events and logs.

use crate::{
    evidence::Fetched,
    excerpt,
    finding::{Finding, Quote, Severity},
    logs,
    look::{self, Look},
    manifest::{ContainerStatus, Pod, Terminated},
    name::{Kind, Name},
    snapshot::{Event, Group, Snapshot},
    time::Moment,
};

/// A finding about a group: how bad it is follows from the replicas that are left.
pub(super) fn finding(snapshot: &Snapshot<'_>, group: &Group<'_>, what: &str) -> Finding {
    let workload = snapshot.workloads.iter().find(|workload| workload.object == group.owner);
    let runs = group.sample().is_some_and(|pod| pod.status == "Running");
    let replicas = match workload.map(|workload| (workload.ready, workload.wanted)) {
        Some((ready, wanted)) if ready >= wanted && runs => {
            format!("; at the moment {ready} of {wanted} replicas are ready")
        }
        Some((ready, wanted)) if ready >= wanted => format!("; {ready} older replicas are still ready"),
        Some((ready, wanted)) => format!("; {ready} of {wanted} replicas are ready"),
        None => String::new(),
    };
    let severity = match workload {
        Some(workload) if workload.ready > 0 => Severity::Degraded,
        Some(_) | None => Severity::Outage,
    };
    Finding::new(severity, group.owner.clone(), format!("{what}{replicas}")).covering(group.covers())
}

/// A container of a group's examined pod.
#[derive(Clone, Copy)]
pub(super) struct Container<'g> {
    pub(super) status: &'g ContainerStatus,
    pub(super) is_init: bool,
}

/// The containers of a group's examined pod, init containers first.
pub(super) fn containers<'g>(group: &'g Group<'_>) -> impl Iterator<Item = Container<'g>> {
    group.manifest.iter().flat_map(|pod: &Pod| {
        let init =
            pod.status.init_container_statuses.iter().map(|status| Container { status, is_init: true });
        init.chain(pod.status.container_statuses.iter().map(|status| Container { status, is_init: false }))
    })
}

/// Whether a container ended lately; without a clock, whether it ended.
pub(super) fn is_recent(snapshot: &Snapshot<'_>, end: &Terminated) -> bool {
    match (snapshot.now, Moment::parse(&end.finished_at)) {
        (Some(now), Some(then)) => then.before(now).is_recent(),
        (None, _) | (_, None) => true,
    }
}

/// A container's state, as the manifest has it.
pub(super) fn state_quote(group: &Group<'_>, container: Container<'_>) -> Option<Quote> {
    let yaml = group.yaml?;
    let lines: Vec<&str> = yaml.output.lines().collect();
    let list = if container.is_init { "initContainerStatuses" } else { "containerStatuses" };
    let status = excerpt::entry(&lines, "status")?;
    let own = excerpt::item(excerpt::entry(status.get(1..)?, list)?, &container.status.name)?;
    let parts = ["name", "restartCount", "state", "lastState"];
    let quoted = parts.iter().filter_map(|part| excerpt::entry(own, part)).flatten();
    let noise = ["containerID", "lastState: {}", "message: back-off", "startedAt"];
    Some(Quote::of(yaml, quoted.copied().filter(|line| !noise.iter().any(|noise| line.contains(noise)))))
}

/// The limits of a container, as the manifest has them.
pub(super) fn limits_quote(group: &Group<'_>, container: Container<'_>) -> Option<Quote> {
    let yaml = group.yaml?;
    let lines: Vec<&str> = yaml.output.lines().collect();
    let list = if container.is_init { "initContainers" } else { "containers" };
    let spec = excerpt::entry(&lines, "spec")?;
    let own = excerpt::item(excerpt::entry(spec.get(1..)?, list)?, &container.status.name)?;
    Some(Quote::of(
        yaml,
        excerpt::entry(excerpt::entry(own, "resources")?.get(1..)?, "limits")?.iter().copied(),
    ))
}

/// An unmet condition, as the manifest has it.
pub(super) fn condition_quote(group: &Group<'_>, kind: &str) -> Option<Quote> {
    let yaml = group.yaml?;
    let lines: Vec<&str> = yaml.output.lines().collect();
    let status = excerpt::entry(&lines, "status")?;
    let conditions = excerpt::entry(status.get(1..)?, "conditions")?.get(1..)?;
    let at = conditions.iter().position(|line| line.trim() == format!("type: {kind}"))?;
    let start = conditions.get(..at)?.iter().rposition(|line| line.trim_start().starts_with("- "))?;
    Some(Quote::of(yaml, conditions.get(start..=at)?.iter().copied()))
}

/// Recent warnings about the pods of a group.
pub(super) fn warnings<'s, 'a>(snapshot: &'s Snapshot<'a>, group: &'s Group<'a>) -> Vec<&'s Event<'a>> {
    let about =
        |event: &&Event<'a>| event.is_recent() && group.pods.iter().any(|pod| pod.object() == event.about);
    snapshot.events.iter().filter(about).collect()
}

/// The first warnings of a list, as a quote.
pub(super) fn event_quote(events: &[&Event<'_>]) -> Option<Quote> {
    Quote::rows(events.iter().take(3).map(|event| &event.row))
}

/// The rows of a group's pods.
pub(super) fn row_quote(group: &Group<'_>) -> Option<Quote> {
    Quote::rows(group.pods.iter().take(4).map(|pod| &pod.row))
}

/// The looks at the log of a container's last run.
pub(super) fn log_looks(snapshot: &Snapshot<'_>, group: &Group<'_>, container: Container<'_>) -> Vec<Look> {
    let Some((previous, current)) = both_logs(group, container) else { return Vec::new() };
    if container.status.restart_count == 0 {
        return vec![current];
    }
    let has_failed = snapshot.evidence.of(&previous).is_some_and(|fetched| !is_useful(fetched));
    if has_failed { vec![previous, current] } else { vec![previous] }
}

/// The log of a container's last run, if it was read and says anything.
pub(super) fn log<'a>(
    snapshot: &Snapshot<'a>,
    group: &Group<'_>,
    container: Container<'_>,
) -> Option<&'a Fetched> {
    let (previous, current) = both_logs(group, container)?;
    let read = |look: &Look| snapshot.evidence.of(look).filter(|fetched| is_useful(fetched));
    read(&previous).or_else(|| read(&current))
}

/// The lines of a log worth quoting.
pub(super) fn log_quote(log: &Fetched) -> Quote {
    let lines: Vec<&str> = log.lines().collect();
    Quote::of(log, logs::excerpt(&lines))
}

fn is_useful(fetched: &Fetched) -> bool {
    fetched.failure.is_none() && fetched.lines().next().is_some()
}

fn both_logs(group: &Group<'_>, container: Container<'_>) -> Option<(Look, Look)> {
    let pod = group.sample()?;
    let name = Name::parse(&container.status.name)?;
    let look = |previous| look::logs(&pod.namespace, &pod.name, Some(&name), previous);
    Some((look(true), look(false)))
}

/// What to name in a command that changes the owner: `deployment/web`.
pub(super) fn owner_path(group: &Group<'_>) -> String {
    group.owner.path()
}

/// Whether the owner has a template that can be changed in place.
pub(super) fn is_workload(group: &Group<'_>) -> bool {
    matches!(group.owner.kind, Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet)
}
