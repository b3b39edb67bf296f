//! Which tools this executor offers, and why others are missing.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wire::executor::{ListToolsResponse, Tool as WireTool, Toolset as WireToolset, ToolsetStatus};

use crate::{
    process::{Exit, Launcher, Spec},
    tools::{self, Needs, Settings, Tool, Toolset},
};

/// How long a program may take to say its version.
const PROBE_TIME: Duration = Duration::from_secs(20);

/// The tools as they are offered, fixed when the executor starts.
#[derive(Debug)]
pub(crate) struct Catalogue {
    tools: Vec<&'static Tool>,
    list: ListToolsResponse,
}

/// What is missing of the programs that tools need.
#[derive(Debug, Default)]
struct Missing {
    bash: Option<String>,
    kubectl: Option<String>,
    jq: Option<String>,
}

impl Missing {
    fn of(&self, toolset: Toolset) -> Option<&String> {
        match toolset.needs() {
            Needs::Nothing => None,
            Needs::Bash => self.bash.as_ref(),
            Needs::Kubectl => self.kubectl.as_ref(),
        }
    }

    fn offers(&self, tool: &Tool) -> bool {
        self.of(tool.toolset).is_none() && !(tool.needs_jq && self.jq.is_some())
    }
}

impl Catalogue {
    /// Looks for the programs. Whether a cluster answers is not asked: it may come later.
    pub(crate) async fn probe(settings: &Settings, launcher: &Launcher) -> Self {
        let (bash, kubectl, jq) = tokio::join!(
            probe(launcher, &settings.bash, &["--version"]),
            probe(launcher, &settings.kubectl, &["version", "--client"]),
            probe(launcher, &settings.jq, &["--version"]),
        );
        Self::new(&Missing { bash, kubectl, jq })
    }

    fn new(missing: &Missing) -> Self {
        let tools: Vec<_> = tools::all().filter(|tool| missing.offers(tool)).collect();
        let list = ListToolsResponse {
            tools: tools.iter().map(|tool| describe(tool)).collect(),
            toolsets: Toolset::ALL.iter().map(|toolset| state(*toolset, missing.of(*toolset))).collect(),
            instance: uuid::Uuid::now_v7().to_string(),
        };
        Self { tools, list }
    }

    pub(crate) fn instance(&self) -> &str {
        &self.list.instance
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'static Tool> {
        self.tools.iter().copied().find(|tool| tool.name == name)
    }

    pub(crate) fn list(&self) -> ListToolsResponse {
        self.list.clone()
    }
}

fn describe(tool: &Tool) -> WireTool {
    WireTool {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters_json: tool.schema().to_string(),
        toolset: tool.toolset.name().to_owned(),
    }
}

fn state(toolset: Toolset, missing: Option<&String>) -> WireToolset {
    let status = if missing.is_some() { ToolsetStatus::Failed } else { ToolsetStatus::Enabled };
    WireToolset {
        name: toolset.name().to_owned(),
        description: toolset.description().to_owned(),
        instructions: toolset.instructions().to_owned(),
        status: status.into(),
        error: missing.cloned().unwrap_or_default(),
    }
}

/// What is wrong with a program, if anything is.
async fn probe(launcher: &Launcher, program: &str, arguments: &[&str]) -> Option<String> {
    let command: Vec<_> =
        std::iter::once(program).chain(arguments.iter().copied()).map(str::to_owned).collect();
    let shown = command.join(" ");
    let (spec, stop) = (Spec::program(command), CancellationToken::new());
    let run = launcher.run(&spec, 4096, &stop, |_, _, _| {});
    let Ok(outcome) = tokio::time::timeout(PROBE_TIME, run).await else {
        return Some(format!("`{shown}` did not end in {} s", PROBE_TIME.as_secs()));
    };
    match outcome.exits.first() {
        Some(Exit::Exited(0)) => None,
        Some(Exit::Exited(code)) => Some(format!("`{shown}` exited with {code}")),
        Some(Exit::Signalled(signal)) => Some(format!("`{shown}` was ended by signal {signal}")),
        Some(Exit::NotStarted(why)) => Some(format!("`{shown}` did not start: {why}")),
        None => Some(format!("`{shown}` did not start")),
    }
}
