//! Toolsets: which tools work or fail together, and what they need.

use super::Profile;

/// A group of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toolset {
    Bash,
    KubernetesCore,
    KubernetesLogs,
    KubernetesLiveMetrics,
    PrometheusMetrics,
    Alerts,
    CoreInvestigation,
    Workspace,
    Repl,
}

/// The program without which a toolset fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Bash,
    Kubectl,
}

impl Toolset {
    pub(crate) const ALL: [Self; 9] = [
        Self::Bash,
        Self::KubernetesCore,
        Self::KubernetesLogs,
        Self::KubernetesLiveMetrics,
        Self::PrometheusMetrics,
        Self::Alerts,
        Self::CoreInvestigation,
        Self::Workspace,
        Self::Repl,
    ];

    /// Whose tools they are.
    pub(crate) fn profile(self) -> Profile {
        match self {
            Self::Bash
            | Self::KubernetesCore
            | Self::KubernetesLogs
            | Self::KubernetesLiveMetrics
            | Self::PrometheusMetrics
            | Self::Alerts
            | Self::CoreInvestigation => Profile::Holmes,
            Self::Workspace => Profile::Harness,
            Self::Repl => Profile::Rlm,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::KubernetesCore => "kubernetes/core",
            Self::KubernetesLogs => "kubernetes/logs",
            Self::KubernetesLiveMetrics => "kubernetes/live-metrics",
            Self::PrometheusMetrics => "prometheus/metrics",
            Self::Alerts => "alerts",
            Self::CoreInvestigation => "core_investigation",
            Self::Workspace => "workspace",
            Self::Repl => "repl",
        }
    }

    pub(crate) fn needs(self) -> Needs {
        match self {
            Self::Bash | Self::Workspace => Needs::Bash,
            Self::KubernetesCore | Self::KubernetesLogs | Self::KubernetesLiveMetrics => Needs::Kubectl,
            Self::PrometheusMetrics | Self::Alerts | Self::CoreInvestigation | Self::Repl => Needs::Nothing,
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Bash => "Read-only commands on the machine of the executor",
            Self::KubernetesCore => "Objects and events of a Kubernetes cluster",
            Self::KubernetesLogs => "Logs of pods",
            Self::KubernetesLiveMetrics => "Processor and memory use of pods and nodes, as of now",
            Self::PrometheusMetrics => "Metrics of a Prometheus: what there is, and PromQL",
            Self::Alerts => "Alerts of a Prometheus or an Alertmanager",
            Self::CoreInvestigation => "Keeping track of an investigation",
            Self::Workspace => "Commands, and files of the session",
            Self::Repl => "A JavaScript interpreter",
        }
    }

    /// How a model should use it. May be empty.
    pub(crate) fn instructions(self) -> &'static str {
        match self {
            Self::Bash => {
                "Commands run from `/` without a terminal. Only programs that read are allowed, joined by `|`, `&&`, \
                 `||` and `;`; no substitutions, variables, loops or redirections to files. Prefer a tool made for \
                 the purpose where there is one. When a command is refused, read the reason and write another one."
            }
            Self::KubernetesCore => {
                "Look before you conclude: an object's status, then its events, then its owner and its node. When a \
                 name is not known exactly, find it first. Secrets are never shown."
            }
            Self::KubernetesLogs => {
                "For a container that restarts, the previous container's log tells more than the current one's."
            }
            Self::KubernetesLiveMetrics => {
                "Needs the metrics API in the cluster. It shows the present, no history."
            }
            Self::PrometheusMetrics => {
                "Find out which metrics and labels there are before you write a query. Ask for rates of counters, and \
                 for a range where it matters how something changed. An expression that fires as an alert is in the \
                 rules. Aggregate by the labels that matter, so that the answer is short."
            }
            Self::Alerts => {
                "Alerts tell when trouble began and what else was wrong then; look at them early."
            }
            Self::CoreInvestigation => {
                "For a question of several steps, write the steps down first and keep their status up to date; send \
                 the whole list each time."
            }
            Self::Workspace => {
                "Commands start in the workspace, a directory of this session. It is the only place that can be \
                 changed; the rest of the machine can be looked at. Paths are relative to it. Read a file before you \
                 patch it."
            }
            Self::Repl => "",
        }
    }
}
