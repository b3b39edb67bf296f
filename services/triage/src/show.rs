//! Wishes to see something as it is: finds it, fetches it, shows it.

use crate::{
    answer,
    case::{Access, Case},
    evidence::Fetched,
    look::{self, Look, Scope},
    name::{Kind, Name, Object},
    question::Show,
    quote,
    snapshot::Pod,
    unseen,
};

/// Lines that are shown of what was asked for.
const LINES: usize = 200;
/// Objects that one wish may mean.
const MEANT: usize = 3;

/// The looks that a wish needs.
pub(crate) fn looks(case: &Case<'_>, wish: Show) -> Vec<Look> {
    match wish {
        Show::Ports => return vec![look::host::ports()],
        Show::Disks => return vec![look::host::disks(), look::host::inodes()],
        _ if matches!(case.cluster, Access::Closed(_)) => return Vec::new(),
        Show::List(_)
        | Show::Logs { .. }
        | Show::Description
        | Show::Manifest
        | Show::Events
        | Show::Usage => {}
    }
    let mut looks = finding(case);
    if looks.is_empty() || case.cluster == Access::Open {
        looks.extend(wanted(case, wish));
    }
    looks
}

/// The looks that tell what is meant.
fn finding(case: &Case<'_>) -> Vec<Look> {
    let words: Vec<&Name> = case.question.mentions.iter().map(|mention| &mention.word).take(5).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let mut looks = vec![look::namespaces()];
    if case.cluster == Access::Open {
        let lists = ["deployments,statefulsets,daemonsets", "services", "jobs"];
        looks.extend(lists.map(|kinds| look::list(kinds, &case.scope)));
        looks.push(match &case.scope {
            Scope::Cluster => look::pods_named(&words),
            Scope::Namespace(_) => look::list("pods", &case.scope),
        });
    }
    looks
}

/// The looks at what is meant.
fn wanted(case: &Case<'_>, wish: Show) -> Vec<Look> {
    let meant = meant(case);
    match wish {
        Show::List(kind) => vec![list(kind, &case.scope)],
        Show::Logs { previous } => pods(case)
            .iter()
            .flat_map(|(namespace, name, restarts)| {
                let last = (previous || *restarts > 0).then(|| look::logs(namespace, name, None, true));
                let now = (!previous).then(|| look::logs(namespace, name, None, false));
                now.into_iter().chain(last)
            })
            .collect(),
        Show::Description => meant.into_iter().map(look::describe).collect(),
        Show::Manifest => meant.into_iter().map(look::yaml).collect(),
        Show::Events if meant.is_empty() => vec![look::events(&case.scope, None)],
        Show::Events => meant
            .iter()
            .map(|object| {
                let scope = object.namespace.clone().map_or(Scope::Cluster, Scope::Namespace);
                look::events(&scope, Some(&object.name))
            })
            .collect(),
        Show::Usage => vec![look::top("nodes", &Scope::Cluster), look::top("pods", &case.scope)],
        Show::Ports | Show::Disks => Vec::new(),
    }
}

fn list(kind: Kind, scope: &Scope) -> Look {
    match kind {
        Kind::Namespace => look::namespaces(),
        Kind::Node => look::nodes(),
        Kind::Pod => look::list("pods", scope),
        Kind::Deployment => look::list("deployments", scope),
        Kind::StatefulSet => look::list("statefulsets", scope),
        Kind::DaemonSet => look::list("daemonsets", scope),
        Kind::ReplicaSet => look::list("replicasets", scope),
        Kind::Job => look::list("jobs", scope),
        Kind::CronJob => look::list("cronjobs", scope),
        Kind::Service => look::list("services", scope),
        Kind::Claim => look::list("pvc", scope),
        Kind::ConfigMap => look::list("configmaps", scope),
        Kind::Secret => look::list("secrets", scope),
        Kind::Host => look::host::load(),
    }
}

/// The objects that are meant; workloads rather than what belongs to them.
fn meant<'c>(case: &'c Case<'_>) -> Vec<&'c Object> {
    let objects = &case.focus.objects;
    let workloads: Vec<_> = objects.iter().filter(|object| is_workload(object)).collect();
    let chosen = if workloads.is_empty() { objects.iter().collect() } else { workloads };
    chosen.into_iter().take(MEANT).collect()
}

fn is_workload(object: &Object) -> bool {
    matches!(object.kind, Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet)
}

/// The pods whose logs are meant, with their restarts.
fn pods(case: &Case<'_>) -> Vec<(Name, Name, u32)> {
    let objects = &case.focus.objects;
    let is_meant = |pod: &&Pod<'_>| {
        let owner = case.snapshot.owner_of(&pod.namespace, &pod.name);
        objects.contains(&pod.object()) || owner.is_some_and(|owner| objects.contains(&owner))
    };
    let mut seen: Vec<_> = case.snapshot.pods.iter().filter(is_meant).collect();
    seen.sort_by_key(|pod| std::cmp::Reverse(pod.restarts));
    let mut pods: Vec<_> =
        seen.iter().map(|pod| (pod.namespace.clone(), pod.name.clone(), pod.restarts)).collect();
    if pods.is_empty() {
        let named = objects.iter().filter(|object| object.kind == Kind::Pod);
        pods = named.filter_map(|pod| Some((pod.namespace.clone()?, pod.name.clone(), 1))).collect();
    }
    pods.truncate(MEANT);
    pods
}

/// What was fetched, shown.
pub(crate) fn answer(case: &Case<'_>, wish: Show) -> String {
    if let (Access::Closed(failure), false) = (&case.cluster, matches!(wish, Show::Ports | Show::Disks)) {
        return unseen::no_cluster(failure);
    }
    let wanted = match wish {
        Show::Ports => vec![look::host::ports()],
        Show::Disks => vec![look::host::disks(), look::host::inodes()],
        Show::List(_)
        | Show::Logs { .. }
        | Show::Description
        | Show::Manifest
        | Show::Events
        | Show::Usage => wanted(case, wish),
    };
    let fetched: Vec<&Fetched> = wanted.iter().filter_map(|look| case.evidence.of(look)).collect();
    if fetched.is_empty() {
        return nothing(case);
    }
    let (failed, mut fetched): (Vec<&Fetched>, Vec<&Fetched>) =
        fetched.into_iter().partition(|fetched| fetched.failure.is_some());
    // the log of a container that waits is that of its previous run
    fetched.dedup_by(|later, first| later.output == first.output);
    let shown: Vec<String> = fetched.iter().map(|fetched| block(fetched)).collect();
    let failed = unseen::section(case, &failed);
    let headline = match shown.len() {
        0 => "**I could not fetch that.**".to_owned(),
        _ => format!("**{}**", headline(case, wish, &fetched)),
    };
    [headline]
        .into_iter()
        .chain(shown)
        .chain([failed])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn headline(case: &Case<'_>, wish: Show, fetched: &[&Fetched]) -> String {
    let place = match &case.scope {
        Scope::Cluster => "in the cluster".to_owned(),
        Scope::Namespace(name) => format!("in namespace `{name}`"),
    };
    let names: Vec<String> = meant(case).iter().map(ToString::to_string).collect();
    let of = if names.is_empty() { place.clone() } else { format!("of {}", names.join(", ")) };
    let rows = || {
        fetched
            .iter()
            .map(|fetched| crate::table::rows(&fetched.command, &fetched.output).len())
            .sum::<usize>()
    };
    match wish {
        Show::List(kind) if kind.is_global() => format!("{} {}s", rows(), kind.word()),
        Show::List(kind) => format!("{} {}s {place}", rows(), kind.word()),
        Show::Logs { .. } => {
            let pods: Vec<String> =
                pods(case).iter().map(|(namespace, name, _)| format!("`{namespace}/{name}`")).collect();
            format!("Log of {}", pods.join(", "))
        }
        Show::Description => format!("Description {of}"),
        Show::Manifest => format!("Manifest {of}"),
        Show::Events => format!("Events {of}"),
        Show::Usage => format!("What nodes and pods {place} use"),
        Show::Ports => "Ports that are listened on".to_owned(),
        Show::Disks => "File systems, by space and by inodes".to_owned(),
    }
}

/// The output, or its beginning.
fn block(fetched: &Fetched) -> String {
    let lines: Vec<String> = fetched.output.lines().map(str::to_owned).collect();
    if lines.iter().all(|line| line.trim().is_empty()) {
        return format!("`{}` printed nothing.", fetched.command);
    }
    quote::block(&fetched.command, &lines, LINES).trim_end().to_owned()
}

fn nothing(case: &Case<'_>) -> String {
    let words: Vec<String> =
        case.question.mentions.iter().map(|mention| format!("`{}`", mention.word)).collect();
    if words.is_empty() {
        return "**Of what?** Name a pod or workload, and its namespace if the name is not unique, for example: \
                `logs of checkout-api in namespace shop`.".to_owned();
    }
    format!("**I found nothing named {}.**\n\n{}", words.join(", "), answer::footer(case))
}
