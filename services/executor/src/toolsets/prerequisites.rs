//! What a toolset needs, and whether it is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{Declared, HttpTool, file, tool::TemplateTool};
use crate::{
    process::{Exit, Launcher},
    tools::Settings,
};

/// How long a prerequisite's command may take.
const TIME: Duration = Duration::from_secs(20);
/// What is kept of its output.
const OUTPUT_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) enum Prerequisite {
    /// A command that must succeed, and print this if it says so.
    Command {
        command: Box<TemplateTool>,
        expected: Option<String>,
    },
    /// An HTTP API whose health checks must pass.
    Healthy(Arc<HttpTool>),
    /// Variables that are not set.
    Missing(BTreeSet<String>),
    NoTools,
}

/// Why a toolset does not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failing {
    #[error("these variables of the environment are not set: {0}")]
    Variables(String),
    #[error("Sleuth has no toolset of this name, and it declares no tools")]
    NoTools,
    #[error("{0}")]
    Unhealthy(String),
    #[error("`{command}` {problem}")]
    Command { command: String, problem: String },
}

impl Prerequisite {
    pub(super) fn new(
        toolset: &Arc<str>,
        prerequisite: file::Prerequisite,
        environment: &dyn Fn(&str) -> Option<String>,
        missing: &mut BTreeSet<String>,
    ) -> Result<Self, String> {
        match prerequisite {
            file::Prerequisite::Environment { env } => {
                Ok(Self::Missing(env.into_iter().filter(|name| environment(name).is_none()).collect()))
            }
            file::Prerequisite::Command { command, expected_output } => {
                let tool = file::Tool {
                    name: "prerequisite".to_owned(),
                    description: String::new(),
                    user_description: None,
                    command: Some(command),
                    script: None,
                    parameters: BTreeMap::new(),
                    timeout: None,
                    effect: Some(file::Effect::Read),
                    transformers: Vec::new(),
                    unknown: serde_json::Map::new(),
                };
                let command = Box::new(TemplateTool::new(toolset, tool, environment, missing)?);
                if let Some(name) = command.parameter_names().next() {
                    return Err(format!("nobody gives a value for `{name}`"));
                }
                Ok(Self::Command { command, expected: expected_output })
            }
        }
    }

    async fn check(&self, settings: &Settings, launcher: &Launcher) -> Result<(), Failing> {
        match self {
            Self::NoTools => Err(Failing::NoTools),
            Self::Healthy(tool) => tool.check().await.map_err(Failing::Unhealthy),
            Self::Missing(names) if names.is_empty() => Ok(()),
            Self::Missing(names) => {
                Err(Failing::Variables(names.iter().cloned().collect::<Vec<_>>().join(", ")))
            }
            Self::Command { command, expected } => run(command, expected.as_deref(), settings, launcher)
                .await
                .map_err(|problem| Failing::Command { command: command.invocation(), problem }),
        }
    }
}

async fn run(
    command: &TemplateTool,
    expected: Option<&str>,
    settings: &Settings,
    launcher: &Launcher,
) -> Result<(), String> {
    let spec = command.without_values(settings)?;
    let stop = CancellationToken::new();
    let running = launcher.run(&spec, OUTPUT_BYTES, &stop, |_, _, _| {});
    let outcome = tokio::time::timeout(TIME, running)
        .await
        .map_err(|_| format!("did not end in {} s", TIME.as_secs()))?;
    let output = outcome.stdout.text();
    match (outcome.exits.first(), expected) {
        (Some(Exit::Exited(0)), Some(expected)) if !output.contains(expected) => {
            Err(format!("did not print `{expected}`"))
        }
        (Some(Exit::Exited(0)), _) => Ok(()),
        (Some(Exit::Exited(code)), _) => {
            let said = output.trim().lines().last().unwrap_or_default().chars().take(200);
            Err(format!("exited with {code}: {}", said.collect::<String>()))
        }
        (Some(Exit::Signalled(signal)), _) => Err(format!("was ended by signal {signal}")),
        (Some(Exit::NotStarted(why)), _) => Err(format!("did not start: {why}")),
        (None, _) => Err("did not start".to_owned()),
    }
}

impl Declared {
    /// Looks for what it needs, in the order of the file, up to the first that is missing.
    pub(crate) async fn check(&self, settings: &Settings, launcher: &Launcher) -> Result<(), Failing> {
        for prerequisite in &self.prerequisites {
            prerequisite.check(settings, launcher).await?;
        }
        Ok(())
    }
}
