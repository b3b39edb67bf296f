//! What whoever takes a run over needs.

use std::time::Duration;

use domain::{Effort, Limits, RunSetup, Subagents, ToolBrief, ToolProfile};

use crate::agent as wire;

impl From<RunSetup> for wire::RunSetup {
    fn from(setup: RunSetup) -> Self {
        Self {
            system: setup.system,
            response_format_json: setup.response_format,
            limits: Some(setup.limits.into()),
            session: setup.session,
            cluster: setup.cluster,
            clusters: setup.clusters,
            profile: setup.profile.name().to_owned(),
            context_sha256: setup.context,
            exec_directory: setup.exec_directory,
            home: setup.home,
            standing_grants: setup.standing,
            keeper: setup.keeper,
            executor_labels: setup.labels.into_iter().collect(),
            permissions: setup.permissions.map(Into::into),
            reasoning_effort: setup.effort.map(Effort::name).unwrap_or_default().to_owned(),
            tools: setup.tools.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<wire::RunSetup> for RunSetup {
    fn from(setup: wire::RunSetup) -> Self {
        Self {
            system: setup.system,
            response_format: setup.response_format_json,
            limits: setup.limits.map(Into::into).unwrap_or_default(),
            session: setup.session,
            cluster: setup.cluster,
            clusters: setup.clusters,
            profile: ToolProfile::named(&setup.profile).unwrap_or_default(),
            context: setup.context_sha256,
            exec_directory: setup.exec_directory,
            home: setup.home,
            standing: setup.standing_grants,
            keeper: setup.keeper,
            labels: setup.executor_labels.into_iter().collect(),
            permissions: setup.permissions.map(Into::into),
            effort: Effort::named(&setup.reasoning_effort),
            tools: setup.tools.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<ToolBrief> for wire::ToolBrief {
    fn from(ToolBrief { name, description, toolset }: ToolBrief) -> Self {
        Self { name, description, toolset }
    }
}

impl From<wire::ToolBrief> for ToolBrief {
    fn from(wire::ToolBrief { name, description, toolset }: wire::ToolBrief) -> Self {
        Self { name, description, toolset }
    }
}

impl From<Subagents> for wire::Subagents {
    fn from(subagents: Subagents) -> Self {
        Self { depth: subagents.depth, number: subagents.number }
    }
}

impl From<wire::Subagents> for Subagents {
    fn from(subagents: wire::Subagents) -> Self {
        Self { depth: subagents.depth, number: subagents.number }
    }
}

impl From<Limits> for wire::RunLimits {
    fn from(limits: Limits) -> Self {
        Self {
            steps: limits.steps,
            tool_calls: limits.tool_calls,
            parallel_tools: limits.parallel_tools,
            tokens: limits.tokens,
            cost_usd: limits.cost_usd,
            wall_time: limits.wall_time.try_into().ok(),
            answer_time: limits.answer_time.try_into().ok(),
            decision_time: limits.decision_time.try_into().ok(),
            compaction_percent: limits.compaction_percent,
        }
    }
}

impl From<wire::RunLimits> for Limits {
    fn from(limits: wire::RunLimits) -> Self {
        let default = Self::default();
        let time = |time: Option<prost_types::Duration>, usual: Duration| {
            time.and_then(|time| time.try_into().ok()).unwrap_or(usual)
        };
        Self {
            steps: limits.steps,
            tool_calls: limits.tool_calls,
            parallel_tools: limits.parallel_tools,
            tokens: limits.tokens,
            cost_usd: limits.cost_usd,
            wall_time: time(limits.wall_time, default.wall_time),
            answer_time: time(limits.answer_time, default.answer_time),
            decision_time: time(limits.decision_time, default.decision_time),
            compaction_percent: limits.compaction_percent,
        }
    }
}
