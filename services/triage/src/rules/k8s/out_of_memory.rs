//! Containers that were killed for using more memory than they may.

use crate::{
    finding::Finding,
    look::Look,
    rules::{
        Rule,
        pod::{self, Container},
    },
    snapshot::{Group, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants, check };

fn killed<'g>(snapshot: &Snapshot<'_>, group: &'g Group<'_>) -> Option<Container<'g>> {
    pod::containers(group).find(|container| {
        let is_looping = container.status.waits_for() == Some("CrashLoopBackOff");
        let ended = container.status.ended().filter(|end| end.reason == "OOMKilled");
        ended.is_some_and(|end| is_looping || pod::is_recent(snapshot, end))
    })
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let killed = snapshot.groups.iter().filter_map(|group| Some((group, killed(snapshot, group)?)));
    killed.flat_map(|(group, container)| pod::log_looks(snapshot, group, container)).collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let container = killed(snapshot, group)?;
    let name = &container.status.name;
    let end = container.status.ended()?;
    let spec = group.manifest.as_ref()?.container(name)?;
    let limit = spec.resources.limits.get("memory").and_then(serde_json::Value::as_str);
    let bound = limit.map_or_else(
        || "it has no memory limit of its own".to_owned(),
        |limit| format!("its memory limit is {limit}"),
    );
    let what = format!(
        "runs out of memory: container `{name}` was OOMKilled (exit code {}, {} restarts), {bound}",
        end.exit_code, container.status.restart_count
    );
    let cause = match limit {
        Some(limit) => format!(
            "The kernel kills `{name}` when it uses more than {limit}. Either that is too little for what it has to do, \
             or it uses more and more (a leak, or a batch or cache that is too big)."
        ),
        None => format!("`{name}` has no memory limit, so the node itself, or the limit of a parent group, ran out of memory."),
    };
    let flag = group.owner.flag();
    let owner = pod::owner_path(group);
    let mut finding = pod::finding(snapshot, group, &what)
        .because(cause)
        .quoting(pod::state_quote(group, container).map(|state| state.and(pod::limits_quote(group, container))))
        .quoting(pod::log(snapshot, group, container).map(pod::log_quote))
        .next("See what it uses now", format!("kubectl top pod {}{flag} --containers", group.sample()?.name));
    if let Some(more) = limit.and_then(doubled).filter(|_| pod::is_workload(group)) {
        finding = finding.next(
            "If it needs more for honest work, raise the limit",
            format!("kubectl set resources {owner}{flag} -c {name} --requests=memory={more} --limits=memory={more}"),
        );
    }
    Some(finding.next(
        "If it started with a change, go back",
        format!("kubectl rollout history {owner}{flag}"),
    ))
}

/// Twice a quantity such as `64Mi`.
fn doubled(quantity: &str) -> Option<String> {
    let digits = quantity.find(|c: char| !c.is_ascii_digit()).unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at_checked(digits)?;
    Some(format!("{}{unit}", number.parse::<u64>().ok()?.checked_mul(2)?))
}
