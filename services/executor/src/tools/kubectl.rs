//! Reads of a cluster's objects, events and present load. Arguments go to kubectl one by one, never through a
//! shell.

use super::{
    Arguments, Decision, Plan, Presentation, Run, Settings, Tool, Toolset, Work, parameters::Parameter,
    present,
};
use crate::{
    policy::{Effect, check_kind},
    process::{Outcome, Spec},
    sandbox::Network,
};

const KIND: Parameter = Parameter::text("kind", "Kind of object, such as pod, deployment or node.");
const NAME: Parameter = Parameter::text("name", "Name of the object.");
const NAMESPACE: Parameter = Parameter::text("namespace", "Namespace.");
const IF_NAMESPACED: Parameter =
    Parameter::text("namespace", "Namespace, unless the kind has none.").optional();

pub(super) const TOOLS: &[Tool] = &[
    tool(
        "kubectl_describe",
        "Describes one object: its spec, status and recent events, as `kubectl describe` shows them.",
        &[KIND, NAME, IF_NAMESPACED],
        |settings, arguments| {
            let own = ["describe", kind(arguments, "kind")?, name(arguments, "name")?];
            in_namespace(settings, arguments, &own)
        },
    ),
    tool(
        "kubectl_get_by_name",
        "Shows one object as a line of a table, with its labels.",
        &[KIND, NAME, IF_NAMESPACED],
        |settings, arguments| {
            let own =
                ["get", kind(arguments, "kind")?, name(arguments, "name")?, "-o", "wide", "--show-labels"];
            in_namespace(settings, arguments, &own)
        },
    ),
    tool(
        "kubectl_get_by_kind_in_namespace",
        "Lists all objects of a kind in a namespace, with their labels.",
        &[KIND, NAMESPACE],
        |settings, arguments| {
            let own = ["get", kind(arguments, "kind")?, "-o", "wide", "--show-labels"];
            in_namespace(settings, arguments, &own)
        },
    ),
    tool(
        "kubectl_get_by_kind_in_cluster",
        "Lists all objects of a kind in the cluster, with their namespaces and labels.",
        &[KIND],
        |settings, arguments| Ok(plain(settings, &list(kind(arguments, "kind")?))),
    ),
    tool(
        "kubectl_find_resource",
        "Finds objects of a kind in the whole cluster by a text in their name, namespace, labels or other columns.",
        &[KIND, Parameter::text("keyword", "Text to look for. Upper and lower case are the same.")],
        find_resource,
    ),
    tool(
        "kubectl_get_yaml",
        "Shows one object in full as YAML.",
        &[KIND, NAME, IF_NAMESPACED],
        |settings, arguments| {
            let own = ["get", kind(arguments, "kind")?, name(arguments, "name")?, "-o", "yaml"];
            in_namespace(settings, arguments, &own)
        },
    ),
    tool(
        "kubectl_events",
        "Shows the events of one object.",
        &[
            Parameter::text("resource_type", "Kind of the object, such as pod or deployment."),
            Parameter::text("resource_name", "Name of the object."),
            IF_NAMESPACED,
        ],
        |settings, arguments| {
            let of = format!("{}/{}", kind(arguments, "resource_type")?, name(arguments, "resource_name")?);
            in_namespace(settings, arguments, &["events", "--for", &of])
        },
    ),
    Tool {
        toolset: Toolset::KubernetesLiveMetrics,
        ..tool(
            "kubectl_top_pods",
            "Shows how much processor and memory pods use now; of all namespaces unless one is given.",
            &[Parameter::text("namespace", "Namespace.").optional()],
            |settings, arguments| match arguments.text("namespace") {
                "" => Ok(plain(settings, &["top", "pods", "-A"])),
                _ => in_namespace(settings, arguments, &["top", "pods"]),
            },
        )
    },
    Tool {
        toolset: Toolset::KubernetesLiveMetrics,
        ..tool(
            "kubectl_top_nodes",
            "Shows how much processor and memory nodes use now.",
            &[],
            |settings, _| Ok(plain(settings, &["top", "nodes"])),
        )
    },
];

const fn tool(
    name: &'static str,
    description: &'static str,
    parameters: &'static [Parameter],
    plan: fn(&Settings, &Arguments) -> Result<Plan, String>,
) -> Tool {
    Tool { name, toolset: Toolset::KubernetesCore, needs_jq: false, description, parameters, plan }
}

fn list(kind: &str) -> [&str; 6] {
    ["get", kind, "-A", "-o", "wide", "--show-labels"]
}

fn find_resource(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let keyword = arguments.text("keyword").to_lowercase();
    let own = list(kind(arguments, "kind")?);
    let shown = format!("{} | grep -i {}", command(&own), present::command_line([keyword.as_str()]));
    Ok(run(settings, shown.clone(), &own, move |outcome| match present::failure(&shown, outcome) {
        Some(error) => Presentation::Error { data: present::both(outcome), error },
        None => {
            let found =
                present::filtered(&outcome.stdout.text(), |line| line.to_lowercase().contains(&keyword));
            found.map_or_else(
                || Presentation::NoData(outcome.stderr.text().trim_end().to_owned()),
                Presentation::Success,
            )
        }
    }))
}

/// A kind of object whose content may be shown.
pub(super) fn kind<'a>(arguments: &'a Arguments, parameter: &str) -> Result<&'a str, String> {
    let kind = arguments.text(parameter).trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ',');
    if !kind.starts_with(|c: char| c.is_ascii_alphabetic()) || !kind.chars().all(plain) {
        return Err(format!(
            "the parameter `{parameter}` must be a kind of object, such as pod or deployment.apps"
        ));
    }
    kind.split(',').try_for_each(check_kind)?;
    Ok(kind)
}

/// A name of an object.
pub(super) fn name<'a>(arguments: &'a Arguments, parameter: &str) -> Result<&'a str, String> {
    let name = arguments.text(parameter).trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
        return Err(format!("the parameter `{parameter}` must be a name without spaces or slashes"));
    }
    Ok(name)
}

/// Runs kubectl in the namespace that was given, if one was.
fn in_namespace(settings: &Settings, arguments: &Arguments, own: &[&str]) -> Result<Plan, String> {
    if arguments.text("namespace").trim().is_empty() {
        return Ok(plain(settings, own));
    }
    Ok(plain(settings, &[own, &["-n", name(arguments, "namespace")?]].concat()))
}

fn plain(settings: &Settings, own: &[&str]) -> Plan {
    let shown = command(own);
    run(settings, shown.clone(), own, move |outcome| present::plain(&shown, outcome))
}

/// A plan that runs kubectl once.
pub(super) fn run(
    settings: &Settings,
    shown: String,
    own: &[&str],
    show: impl FnOnce(&Outcome) -> Presentation + Send + 'static,
) -> Plan {
    run_all(settings, shown, vec![Spec::program(arguments(settings, own))], |outcomes| {
        match outcomes.first() {
            Some(outcome) => show(outcome),
            None => Presentation::NoData(String::new()),
        }
    })
}

/// A plan that runs several programs side by side.
pub(super) fn run_all(
    settings: &Settings,
    shown: String,
    specs: Vec<Spec>,
    show: impl FnOnce(&[Outcome]) -> Presentation + Send + 'static,
) -> Plan {
    Plan {
        description: shown.clone(),
        effect: Effect::Read,
        decision: Decision::Allow(Work::Run(Run {
            invocation: shown,
            specs: specs.into_iter().map(|spec| spec.confined(settings.view, Network::None)).collect(),
            clusters: true,
            workspace: None,
            timeout: settings.kubectl_timeout,
            present: Box::new(show),
        })),
    }
}

/// kubectl's arguments, itself first.
pub(super) fn arguments(settings: &Settings, own: &[&str]) -> Vec<String> {
    std::iter::once(settings.kubectl.clone()).chain(own.iter().map(|it| (*it).to_owned())).collect()
}

/// A kubectl command as one would type it.
pub(super) fn command(own: &[&str]) -> String {
    present::command_line(std::iter::once("kubectl").chain(own.iter().copied()))
}
