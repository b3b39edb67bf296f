//! Logs of one pod, as kubectl prints them.

use super::{
    Arguments, Plan, Presentation, Settings, Tool, Toolset,
    kubectl::{command, name, run},
    parameters::Parameter,
    present,
};

/// One container without a log must not hide the others'. What is wrong with it becomes a line without prefix.
pub(super) const ALL_CONTAINERS: [&str; 3] = ["--all-containers", "--prefix", "--ignore-errors"];
/// How a line of a log starts then.
pub(super) const PREFIX: &str = "[pod/";

const POD: Parameter = Parameter::text("pod_name", "Name of the pod.");
const NAMESPACE: Parameter = Parameter::text("namespace", "Namespace of the pod.");
const CONTAINER: Parameter =
    Parameter::text("container_name", "Container; all of the pod's unless given, each line with its own.")
        .optional();
const TAIL: Parameter =
    Parameter::integer("tail", "Only the last lines, this many of each container.").optional();

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "kubectl_logs",
        toolset: Toolset::KubernetesLogs,
        needs_jq: false,
        description: "Shows the log of a pod's running containers.",
        parameters: &[
            POD,
            NAMESPACE,
            CONTAINER,
            Parameter::boolean("previous", "The log of the containers before their last restart instead.")
                .optional(),
            TAIL,
        ],
        plan: |settings, arguments| plan(settings, arguments, arguments.boolean("previous")),
    },
    Tool {
        name: "kubectl_previous_logs",
        toolset: Toolset::KubernetesLogs,
        needs_jq: false,
        description: "Shows the log of a pod's containers before their last restart: why they crashed.",
        parameters: &[POD, NAMESPACE, CONTAINER, TAIL],
        plan: |settings, arguments| plan(settings, arguments, true),
    },
];

fn plan(settings: &Settings, arguments: &Arguments, previous: bool) -> Result<Plan, String> {
    let mut own = vec!["logs", name(arguments, "pod_name")?, "-n", name(arguments, "namespace")?];
    let all = arguments.text("container_name").is_empty();
    if all {
        own.extend(ALL_CONTAINERS);
    } else {
        own.extend(["-c", name(arguments, "container_name")?]);
    }
    if previous {
        own.push("--previous");
    }
    let tail = arguments.integer("tail").map(|lines| format!("--tail={}", lines.max(1)));
    own.extend(tail.as_deref());
    let shown = command(&own);
    Ok(run(settings, shown.clone(), &own, move |outcome| match present::plain(&shown, outcome) {
        Presentation::Success(text) if all && !text.lines().any(|line| line.starts_with(PREFIX)) => {
            Presentation::NoData(text)
        }
        other => other,
    }))
}
