//! Which tools this executor offers, and why others are missing.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use wire::executor::{ListToolsResponse, Summarize, Tool as WireTool, Toolset as WireToolset, ToolsetStatus};

use crate::{
    process::{Exit, Launcher, Spec},
    sandbox::Level,
    tools::{self, Callable, Needs, Origin, Profile, Settings, Tool, Toolset},
    toolsets::{
        Declared, Toolsets,
        mcp::{Connection, McpTool, Server},
    },
};

/// Pauses before a failing MCP server is tried again; from then on it is at each refresh.
const RETRIES: [Duration; 3] = [Duration::from_secs(30), Duration::from_secs(60), Duration::from_secs(120)];
/// What a toolset says that nobody has looked at yet.
const UNSEEN: &str = "it is still being checked";
/// What a toolset says that the operator wants, and whose server nobody has named.
const UNCONFIGURED: &str = "its server is not configured: set `prometheus_url` or PROMETHEUS_URL";

/// How long a program may take to say its version.
const PROBE_TIME: Duration = Duration::from_secs(20);

/// How long the start waits for the operator's toolsets. One that takes longer is offered when it is known to work.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// The tools as they are offered now. The operator's toolsets come and go, as what they need does.
#[derive(Debug)]
pub(crate) struct Catalogue {
    offer: Arc<Offer>,
    /// Look after the operator's toolsets.
    _keepers: Vec<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct Offer {
    instance: String,
    sandbox: Level,
    groups: RwLock<Vec<Group>>,
    /// How many have not been looked at yet.
    unseen: watch::Sender<usize>,
}

/// A toolset with all its tools.
#[derive(Debug)]
struct Group {
    profile: Profile,
    toolset: WireToolset,
    tools: Vec<Callable>,
}

impl Group {
    fn works(&self) -> bool {
        self.toolset.status() == ToolsetStatus::Enabled
    }

    fn show(&mut self, failing: Option<String>) {
        let status = if failing.is_some() { ToolsetStatus::Failed } else { ToolsetStatus::Enabled };
        self.toolset.status = status.into();
        self.toolset.error = failing.unwrap_or_default();
    }
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
    /// Looks for the programs and at the operator's toolsets, and keeps looking at these every `refresh`. Whether a
    /// cluster answers is not asked: it may come later.
    pub(crate) async fn start(
        settings: &Settings,
        launcher: &Launcher,
        toolsets: Toolsets,
        refresh: Duration,
    ) -> Self {
        let (bash, kubectl, jq) = tokio::join!(
            probe(launcher, &settings.bash, &["--version"]),
            probe(launcher, &settings.kubectl, &["version", "--client"]),
            probe(launcher, &settings.jq, &["--version"]),
        );
        let missing = Missing { bash, kubectl, jq };
        let mut groups: Vec<_> =
            Toolset::ALL.iter().map(|toolset| builtin(*toolset, settings, &missing, &toolsets)).collect();
        let first_declared = groups.len();
        groups.extend(toolsets.declared.iter().map(declared));
        let first_server = groups.len();
        groups.extend(toolsets.servers.iter().map(server));

        let on = |index: &usize| groups[*index].toolset.status() != ToolsetStatus::Disabled;
        let unseen = (first_declared..groups.len()).filter(on).collect::<BTreeSet<_>>();
        let offer = Arc::new(Offer {
            instance: uuid::Uuid::now_v7().to_string(),
            sandbox: launcher.sandbox.level(),
            groups: RwLock::new(groups),
            unseen: watch::Sender::new(unseen.len()),
        });
        let mut keepers = Vec::new();
        for (index, own) in (first_declared..).zip(toolsets.declared).filter(|(at, _)| unseen.contains(at)) {
            let (offer, settings, launcher) = (Arc::clone(&offer), settings.clone(), launcher.clone());
            keepers.push(spawn(async move {
                loop {
                    let checked = own.check(&settings, &launcher).await;
                    offer.publish(index, checked.err().map(|error| error.to_string()), None);
                    sleep(refresh).await;
                }
            }));
        }
        for (index, own) in (first_server..).zip(toolsets.servers).filter(|(at, _)| unseen.contains(at)) {
            let offer = Arc::clone(&offer);
            let connection = Connection::new(own, settings.bash.clone(), launcher.clone());
            keepers.push(spawn(async move {
                let mut pauses = RETRIES.into_iter();
                loop {
                    let pause = match connection.tools().await {
                        Ok(tools) => {
                            offer.publish(index, None, Some(tools));
                            pauses = RETRIES.into_iter();
                            refresh
                        }
                        Err(error) => {
                            offer.publish(index, Some(error), None);
                            pauses.next().unwrap_or(refresh).min(refresh)
                        }
                    };
                    sleep(pause).await;
                }
            }));
        }
        let mut seen = offer.unseen.subscribe();
        // What is not seen in time is seen later.
        let _ = timeout(FIRST_LOOK, seen.wait_for(|unseen| *unseen == 0)).await;
        Self { offer, _keepers: keepers }
    }

    pub(crate) fn instance(&self) -> &str {
        &self.offer.instance
    }

    pub(crate) fn find(&self, name: &str, profile: Profile) -> Option<Callable> {
        let groups = self.offer.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups
            .iter()
            .filter(|group| group.profile == profile && group.works())
            .flat_map(|group| &group.tools)
            .find(|tool| tool.name == name)
            .cloned()
    }

    pub(crate) fn list(&self, profile: Profile) -> ListToolsResponse {
        let groups = self.offer.groups.read().unwrap_or_else(PoisonError::into_inner);
        let groups: Vec<_> = groups.iter().filter(|group| group.profile == profile).collect();
        let working = groups.iter().filter(|group| group.works());
        ListToolsResponse {
            tools: working.flat_map(|group| &group.tools).map(describe).collect(),
            toolsets: groups.iter().map(|group| group.toolset.clone()).collect(),
            instance: self.offer.instance.clone(),
            sandbox: self.offer.sandbox.name().to_owned(),
            ..ListToolsResponse::default()
        }
    }
}

impl Offer {
    /// Notes what a look at a toolset found: why it fails, and its tools if they may have changed.
    fn publish(&self, index: usize, failing: Option<String>, tools: Option<Vec<Arc<McpTool>>>) {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        let named = tools.map(|tools| {
            let others = groups.iter().enumerate();
            let others = others.filter(|(at, group)| *at != index && group.profile == Profile::default());
            let taken = others.flat_map(|(_, group)| &group.tools).map(|tool| tool.name.clone()).collect();
            name_apart(tools, taken)
        });
        let Some(group) = groups.get_mut(index) else { return };
        let first = group.toolset.error == UNSEEN;
        if let Some(error) = &failing
            && *error != group.toolset.error
        {
            tracing::warn!(toolset = group.toolset.name, error, "a toolset does not work");
        }
        group.show(failing);
        if let Some(tools) = named {
            group.tools = tools;
        }
        if first {
            self.unseen.send_modify(|unseen| *unseen -= 1);
        }
    }
}

/// Tools of a server under names that no other tool has.
fn name_apart(tools: Vec<Arc<McpTool>>, mut taken: BTreeSet<String>) -> Vec<Callable> {
    let mut named = Vec::new();
    for tool in tools {
        let Some(name) = tool.names().into_iter().find(|name| !taken.contains(name)) else {
            tracing::warn!(
                server = tool.server(),
                tool = tool.remote_name(),
                "a tool has no name of its own and is left out"
            );
            continue;
        };
        taken.insert(name.clone());
        named.push(Callable {
            name,
            needs_approval: !tool.is_allowed(),
            restricted: tool.is_restricted(),
            summarize: tool.summarize(),
            origin: Origin::Mcp(tool),
        });
    }
    named
}

fn spawn(keeper: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(keeper))
}

fn describe(tool: &Callable) -> WireTool {
    WireTool {
        name: tool.name.clone(),
        description: tool.description().to_owned(),
        parameters_json: tool.schema().to_string(),
        toolset: tool.toolset().to_owned(),
        restricted: tool.restricted,
        summarize: tool.summarize.as_deref().map(|own| Summarize {
            input_threshold: own.threshold,
            prompt: own.prompt.clone(),
            model: own.model.clone(),
        }),
    }
}

fn builtin(toolset: Toolset, settings: &Settings, missing: &Missing, toolsets: &Toolsets) -> Group {
    let is_configured = match toolset {
        Toolset::Alerts => settings.alerts.is_some(),
        Toolset::PrometheusMetrics => settings.prometheus.is_some(),
        _ => true,
    };
    let tools = tools::all().filter(|tool| tool.toolset == toolset && missing.offers(tool));
    let tools = tools.map(|tool| Callable {
        name: tool.name.to_owned(),
        needs_approval: toolsets.guards(toolset, tool.name),
        restricted: toolsets.restricts(toolset, tool.name),
        summarize: toolsets.summarizes(toolset),
        origin: Origin::Builtin(tool),
    });
    let group = group(toolset.name(), toolset.description(), toolset.instructions(), tools.collect());
    let mut group = Group { profile: toolset.profile(), ..group };
    if toolsets.enables(toolset) && is_configured {
        group.show(missing.of(toolset).cloned());
    } else if toolsets.asks_for(toolset) {
        group.show(Some(UNCONFIGURED.to_owned()));
    } else {
        group.toolset.status = ToolsetStatus::Disabled.into();
    }
    group
}

fn declared(own: &Declared) -> Group {
    unseen(group(&own.name, &own.description, &own.instructions, own.tools.clone()), own.enabled)
}

fn server(own: &Server) -> Group {
    unseen(group(&own.name, &own.description, &own.instructions, Vec::new()), own.enabled)
}

fn unseen(mut group: Group, enabled: bool) -> Group {
    if enabled {
        group.show(Some(UNSEEN.to_owned()));
    } else {
        group.toolset.status = ToolsetStatus::Disabled.into();
    }
    group
}

fn group(name: &str, description: &str, instructions: &str, tools: Vec<Callable>) -> Group {
    let toolset = WireToolset {
        name: name.to_owned(),
        description: description.to_owned(),
        instructions: instructions.to_owned(),
        ..WireToolset::default()
    };
    Group { profile: Profile::default(), toolset, tools }
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
