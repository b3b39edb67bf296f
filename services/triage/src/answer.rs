//! The answer of an investigation, in markdown.

use crate::{
    case::{Access, Case, namespaces},
    correlate::{self, Problem},
    evidence::Fetched,
    finding::{Finding, Quote},
    look::{self, Scope},
    name::Kind,
    question::Topic,
    quote,
    snapshot::machine,
    unseen::{self, no_cluster_line},
};

/// Problems that are told in full; of the others the headline.
const IN_FULL: usize = 20;
/// From so many problems on, quotes are shorter.
const MANY: usize = 4;
/// Lines of such a shorter quote.
const SHORT: usize = 12;

/// What it is, for questions that it can not answer.
pub(crate) fn introduction() -> String {
    "I am `builtin/triage`: an investigator that works by rules, without a language model. That question needs one, \
     so I ran nothing.\n\n\
     **What I can do** is look at this machine and at the cluster that `kubectl` points at, and say what is wrong:\n\n\
     - *What is wrong?* · *What is wrong in namespace shop?* · *Why is checkout slow?* · *Why does pod web-0 crash?*\n\
     - *Is the disk full?* · *Why is this machine slow?* · *Which ports are listening?*\n\
     - *Show me the logs of checkout-api* · *List the pods in namespace shop* · *Describe deployment web*\n\n\
     **To have a language model answer**, set a key and ask again: `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` in the \
     environment, or a list of models with `--model-list FILE` (`MODEL_LIST_FILE_LOCATION`)."
        .to_owned()
}

/// What is said before a round of looks.
pub(crate) fn narration(case: &Case<'_>, round: usize, looks: usize) -> String {
    let place = match (&case.scope, case.question.topic) {
        (_, Topic::Host) => "this machine".to_owned(),
        (Scope::Namespace(name), _) => format!("namespace `{name}`"),
        (Scope::Cluster, Topic::Cluster) => "the cluster".to_owned(),
        (Scope::Cluster, Topic::Both) => "this machine and the cluster".to_owned(),
    };
    let groups = &case.snapshot.groups;
    match (round, groups.len()) {
        (0, _) => format!("Looking at {place}.\n"),
        (_, 0) => format!("Looking closer at {place} ({looks} looks).\n"),
        (1.., 1) => format!(
            "Looking closer at {}.\n",
            groups.first().map_or_else(String::new, |group| group.owner.to_string())
        ),
        (1.., count) => format!("Looking closer at {count} suspects.\n"),
    }
}

/// The report: what is wrong, or that nothing is.
pub(crate) fn report(case: &Case<'_>) -> String {
    let nothing_seen = case.evidence.fetched.iter().all(|fetched| fetched.failure.is_some());
    if nothing_seen && !matches!(case.cluster, Access::Closed(_)) {
        return join([
            "**I could not look at anything**, so I can not say what is wrong.".to_owned(),
            unseen::section(case, &failed(case)),
        ]);
    }
    let (relevant, other) = split(case, correlate::problems(&case.snapshot));
    let mut parts = vec![headline(case, &relevant)];
    parts.extend(missing(case));
    if relevant.len() > 1 {
        parts.push(overview(&relevant));
    }
    for (at, problem) in relevant.iter().take(IN_FULL).enumerate() {
        parts.push(section(problem, (relevant.len() > 1).then_some(at + 1), relevant.len() >= MANY));
    }
    if relevant.is_empty() {
        parts.push(health(case));
    }
    if !other.is_empty() {
        let list = other.iter().take(8).map(|problem| format!("- {}", problem.cause.sentence()));
        let rest = other.len().saturating_sub(8);
        let more = (rest > 0).then(|| format!("- and {rest} more"));
        parts.push(format!(
            "**Also seen**, beside what you asked about:\n\n{}",
            list.chain(more).collect::<Vec<_>>().join("\n")
        ));
    }
    parts.push(unseen::section(case, &failed(case)));
    parts.push(footer(case));
    join(parts)
}

pub(crate) fn join(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> =
        parts.into_iter().map(|part| part.trim_end().to_owned()).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// Problems that the question is about, and the others.
pub(crate) fn split(case: &Case<'_>, problems: Vec<Problem>) -> (Vec<Problem>, Vec<Problem>) {
    let namespace = match &case.scope {
        Scope::Namespace(name) => Some(name),
        Scope::Cluster => None,
    };
    problems.into_iter().partition(|problem| {
        let in_scope = namespace
            .is_none_or(|name| problem.objects().any(|object| object.namespace.as_ref() == Some(name)));
        let in_focus = case.focus.objects.is_empty()
            || problem.objects().any(|object| case.focus.objects.contains(object));
        let is_host = problem.cause.about.kind == Kind::Host;
        let is_general = case.focus.objects.is_empty()
            && (namespace.is_none() || matches!(case.cluster, Access::Closed(_)));
        if is_host { is_general } else { in_scope && in_focus }
    })
}

fn place(case: &Case<'_>) -> String {
    let objects = &case.focus.objects;
    let workloads: Vec<_> =
        objects.iter().filter(|object| !matches!(object.kind, Kind::Pod | Kind::Service)).collect();
    let named = if workloads.is_empty() { objects.iter().collect() } else { workloads };
    let (closed, open) = (matches!(case.cluster, Access::Closed(_)), case.cluster == Access::Open);
    match (named.as_slice(), &case.scope, case.question.topic) {
        ([one], ..) => one.to_string(),
        ([one, two], ..) => format!("{one} and {two}"),
        ([one, rest @ ..], ..) if !rest.is_empty() => format!("{one} and {} more", rest.len()),
        (_, Scope::Namespace(name), _) => format!("namespace `{name}`"),
        (_, Scope::Cluster, Topic::Host) => "this machine".to_owned(),
        (_, Scope::Cluster, Topic::Cluster) if !closed => "the cluster".to_owned(),
        (_, Scope::Cluster, _) if open => "the cluster and this machine".to_owned(),
        (_, Scope::Cluster, _) => "this machine".to_owned(),
    }
}

pub(crate) fn headline(case: &Case<'_>, relevant: &[Problem]) -> String {
    if case.namespace_exists() == Some(false)
        && let Scope::Namespace(name) = &case.scope
    {
        let known = namespaces(case.evidence);
        let texts: Vec<&str> = known.iter().map(crate::name::Name::as_str).collect();
        let near =
            crate::similar::closest(name.as_str(), &texts).map(|near| format!(" Did you mean `{near}`?"));
        let list: Vec<String> = texts.iter().take(40).map(|name| format!("`{name}`")).collect();
        return format!(
            "**There is no namespace `{name}`.**{}\n\nThere are {}.",
            near.unwrap_or_default(),
            list.join(", ")
        );
    }
    if let (Access::Closed(failure), false) =
        (&case.cluster, case.question.topic == Topic::Both || case.question.topic == Topic::Host)
    {
        let also = if relevant.is_empty() { "" } else { " This machine has trouble of its own, though." };
        return format!("**I could not look at the cluster.** {}{also}", no_cluster_line(failure));
    }
    match relevant {
        [] => format!("**I found nothing wrong with {}.**", place(case)),
        [only] => format!("**{}.**{}", only.cause.sentence(), follows(only)),
        [first, ..] => format!(
            "**{} problems in {}. The worst: {}.**",
            relevant.len(),
            place(case),
            first.cause.sentence()
        ),
    }
}

fn follows(problem: &Problem) -> String {
    let named: Vec<String> = problem.consequences.iter().map(|finding| finding.about.to_string()).collect();
    match named.split_last() {
        None => String::new(),
        Some((last, [])) => format!(" That also explains what is wrong with {last}."),
        Some((last, rest)) if rest.len() < 4 => {
            format!(" That also explains what is wrong with {} and {last}.", rest.join(", "))
        }
        Some((_, rest)) => format!(" That also explains {} other failures.", rest.len() + 1),
    }
}

fn overview(problems: &[Problem]) -> String {
    let lines = problems.iter().enumerate().map(|(at, problem)| {
        let more = match problem.consequences.len() {
            0 => String::new(),
            1 => " *(1 consequence)*".to_owned(),
            count => format!(" *({count} consequences)*"),
        };
        format!("{}. {}{more}", at + 1, problem.cause.sentence())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Names in the question that name nothing that was seen.
fn missing(case: &Case<'_>) -> Option<String> {
    let seen_all = case.cluster == Access::Open && case.namespace_exists() != Some(false);
    let unknown = &case.focus.unknown;
    let is_certain = unknown.iter().any(|mention| mention.is_certain);
    let said = unknown.iter().filter(|mention| mention.is_certain == is_certain);
    let words: Vec<String> = said.map(|mention| format!("`{}`", mention.word)).collect();
    // What may be no name is worth a word only if nothing else was named.
    let is_idle = !is_certain && !case.focus.objects.is_empty();
    if words.is_empty() || is_idle || !seen_all {
        return None;
    }
    let instead =
        if case.focus.objects.is_empty() { ", so this is about everything I looked at" } else { "" };
    Some(match is_certain {
        true => format!("I found nothing named {}{instead}.", words.join(" or ")),
        false => format!("*Nothing that I saw is named {}{instead}.*", words.join(" or ")),
    })
}

fn section(problem: &Problem, number: Option<usize>, is_short: bool) -> String {
    let finding = &problem.cause;
    let (title, cause, next) = match number {
        Some(number) => (
            format!("## {number}. {}\n\n{}.", finding.about, capital(&finding.what)),
            "**Likely cause.** ",
            "**Next steps**\n\n",
        ),
        None => ("## Key findings".to_owned(), "## Likely cause\n\n", "## Next steps\n\n"),
    };
    join([
        title,
        quotes(finding, is_short),
        format!("{cause}{}", finding.cause),
        consequences(&problem.consequences),
        format!("{next}{}", steps(finding)),
    ])
}

pub(crate) fn quotes(finding: &Finding, is_short: bool) -> String {
    let most = if is_short { SHORT } else { quote::LINES };
    let quotes: Vec<String> = finding.quotes.iter().map(|quote| block(quote, most)).collect();
    quotes.join("\n")
}

pub(crate) fn steps(finding: &Finding) -> String {
    let steps = finding.steps.iter().enumerate().map(|(at, step)| {
        format!("{}. {}:\n\n{}", at + 1, step.text, indented(&quote::command(&step.command)))
    });
    steps.collect::<Vec<_>>().join("\n")
}

pub(crate) fn consequences(findings: &[Finding]) -> String {
    let lines = findings.iter().map(|finding| {
        let quote = finding
            .quotes
            .last()
            .map(|quote| format!("\n\n{}", indented(&block(quote, 6))))
            .unwrap_or_default();
        format!("- {}.{quote}", finding.sentence())
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { String::new() } else { format!("**What follows from it**\n\n{}", lines.join("\n")) }
}

fn block(quote: &Quote, most: usize) -> String {
    quote::block(&quote.command, &quote.lines, most)
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| if line.is_empty() { String::from("\n") } else { format!("   {line}\n") })
        .collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// What a healthy scope looks like: the rows of what was asked about, and the machine in numbers.
pub(crate) fn health(case: &Case<'_>) -> String {
    let snapshot = &case.snapshot;
    let namespace = match &case.scope {
        Scope::Namespace(name) => Some(name),
        Scope::Cluster => None,
    };
    let in_focus = |object: &crate::name::Object| {
        if case.focus.objects.is_empty() {
            namespace.is_some() && object.namespace.as_ref() == namespace
        } else {
            case.focus.objects.contains(object)
        }
    };
    let workloads =
        snapshot.workloads.iter().filter(|workload| in_focus(&workload.object)).map(|workload| &workload.row);
    let pods = snapshot.pods.iter().filter(|pod| {
        let owner = snapshot.owner_of(&pod.namespace, &pod.name);
        in_focus(&pod.object()) || owner.is_some_and(|owner| in_focus(&owner))
    });
    let quotes = [Quote::rows(workloads), Quote::rows(pods.map(|pod| &pod.row))];
    let old = snapshot.events.iter().filter(|event| in_focus(&event.about) && !event.is_recent()).count();
    let noise = if old > 0 {
        format!("{old} old warnings are left; none is about anything that is broken now.")
    } else {
        String::new()
    };
    let quotes: Vec<String> = quotes.into_iter().flatten().map(|quote| block(&quote, 12)).collect();
    let machine =
        if namespace.is_none() && case.focus.objects.is_empty() { machine(case) } else { String::new() };
    join([quotes.join("\n"), noise, machine])
}

/// The machine in numbers, as far as they were fetched.
fn machine(case: &Case<'_>) -> String {
    let evidence = case.evidence;
    let mut lines = Vec::new();
    if let Some((total, available)) = machine::memory(evidence) {
        lines.push(format!("- Memory: {available} of {total} MiB are available."));
    }
    if let Some(([one, five, fifteen], processors)) = machine::load(evidence) {
        lines.push(format!(
            "- Load: {one}, {five}, {fifteen} (1, 5, 15 minutes) with {processors} processors."
        ));
    }
    let disks = evidence.of(&look::host::disks()).map(machine::file_systems).unwrap_or_default();
    if let Some(fullest) = disks.first() {
        lines.push(format!(
            "- Disk: the fullest of {} file systems is {} ({} %).",
            disks.len(),
            quote::inline(fullest.mount),
            fullest.used
        ));
    }
    if evidence.shown(&look::host::failed_units()).is_some() {
        lines.push("- System units: none has failed.".to_owned());
    }
    let ports = machine::listeners(evidence);
    if !ports.is_empty() {
        let list: Vec<String> = ports.iter().take(30).map(|address| quote::inline(address)).collect();
        lines.push(format!("- Listening: {}.", list.join(", ")));
    }
    lines.join("\n")
}

fn failed<'c>(case: &'c Case<'_>) -> Vec<&'c Fetched> {
    case.evidence.fetched.iter().filter(|fetched| fetched.failure.is_some()).collect()
}

/// Where it looked, in counts.
pub(crate) fn footer(case: &Case<'_>) -> String {
    let snapshot = &case.snapshot;
    let mut counts = Vec::new();
    let mut count = |number: usize, what: &str| {
        if number > 0 {
            counts.push(format!("{number} {what}{}", if number == 1 { "" } else { "s" }));
        }
    };
    if case.scope == Scope::Cluster {
        count(namespaces(case.evidence).len(), "namespace");
        count(snapshot.nodes.len(), "node");
    }
    count(pods_in_all(case).unwrap_or(snapshot.pods.len()), "pod");
    count(snapshot.workloads.len(), "workload");
    count(snapshot.jobs.len(), "job");
    count(snapshot.services.len(), "service");
    count(snapshot.events.len(), "warning");
    let commands = case.evidence.fetched.iter().filter(|fetched| fetched.failure.is_none());
    let commands: Vec<String> =
        commands.map(|fetched| format!("- {}", quote::inline(&fetched.command))).collect();
    let seen = if counts.is_empty() { String::new() } else { format!(" They cover {}.", counts.join(", ")) };
    match commands.len() {
        0 => String::new(),
        many if many > 12 => format!("*I ran {many} read-only commands.{seen}*"),
        many => format!("*I ran {many} read-only commands.{seen}*\n\n{}", commands.join("\n")),
    }
}

fn pods_in_all(case: &Case<'_>) -> Option<usize> {
    let counted = case.evidence.shown(&look::pod_counts())?;
    let numbers = counted.lines().filter_map(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    Some(numbers.sum())
}
