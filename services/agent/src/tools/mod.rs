//! Where tools are and how they are called: most of them live in executors, some in the agent itself, some at the
//! client of a run.

mod alerts;
mod call;
mod client;
mod code;
mod execution;
mod executor;
pub(crate) mod executors;
mod headers;
mod home;
mod kept;
mod media;
mod offered;
mod reach;
mod restricted;
mod result;
mod rules;
mod runbook;
mod subagent;
mod summarize;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use domain::{
    Before, CallId, ClientTool, Labels, Permission, Subagents, ToolCall, ToolPlan, ToolProfile, ToolResult,
    ToolVerdict,
};
use futures_util::future::join_all;
use model::ToolSpec;

use crate::{
    clusters::{Clusters, NotConnected},
    config::Config,
};
use client::ClientTools;
use executor::Executor;
use executors::{Discovered, Member};
use kept::KeptResults;
use reach::Reach;
use restricted::Restricted;
use rules::Judged;
use runbook::FetchRunbook;
use subagent::StartAgent;

pub(crate) use alerts::AlertHistory;
pub(crate) use call::{Context, Placing, Running};
pub(crate) use client::Unusable;
pub(crate) use code::{Answerer, Given, Input as CodeInput, Interpreter, Question, Wants, command, said};
pub(crate) use executor::NoExecutor;
pub(crate) use headers::RequestHeaders;
pub(crate) use home::Home;
pub(crate) use rules::Rules;
pub(crate) use summarize::{Summarize, Summarizer, Summarizers};

/// The tool that shows files.
const READ: &str = "read";

/// The tools on offer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    /// As models see them.
    pub specs: Arc<[ToolSpec]>,
    /// Toolset of each, in the same order.
    pub toolsets: Arc<[String]>,
    /// What is summarised, by the name of the tool.
    pub summarize: Arc<HashMap<String, Summarize>>,
    /// Those that are for whoever follows a runbook.
    pub restricted: Restricted,
    /// How to use them: name and instructions of each toolset, and what does not work.
    pub instructions: Arc<[(String, String)]>,
}

impl Offer {
    /// This offer and one more tool.
    fn with(self, spec: ToolSpec, toolset: &str) -> Self {
        let specs = self.specs.iter().cloned().chain([spec]).collect();
        let toolsets = self.toolsets.iter().cloned().chain([toolset.to_owned()]).collect();
        Self { specs, toolsets, ..self }
    }

    /// One tool of it.
    fn only(self, name: &str) -> Self {
        let both = self.specs.iter().cloned().zip(self.toolsets.iter().cloned());
        let (specs, toolsets): (Vec<_>, Vec<_>) = both.filter(|(spec, _)| spec.name == name).unzip();
        Self { specs: specs.into(), toolsets: toolsets.into(), ..self }
    }
}

/// The tools, wherever they are. Of two with one name, the agent's own counts.
#[derive(Clone)]
pub(crate) struct Tools {
    /// The agent's own executors.
    own: Executor,
    /// Those of the run.
    executors: Reach,
    /// Looked for as long as there are tools.
    search: Discovered,
    clusters: Clusters,
    runbooks: FetchRunbook,
    client: ClientTools,
    kept: KeptResults,
    agents: StartAgent,
    restricted: Restricted,
}

impl Tools {
    pub(crate) fn new(executors: Discovered, config: &Config) -> Self {
        let own = config.own_cluster();
        let executor = Executor::new(Arc::new(executors.pool().labelled(&config.executor_labels)));
        Self {
            executors: Reach::one(own, executor.clone()),
            own: executor,
            search: executors,
            clusters: Clusters::new(own),
            runbooks: FetchRunbook::new(config.runbooks.clone()),
            client: ClientTools::default(),
            kept: KeptResults::default(),
            agents: StartAgent::default(),
            restricted: Restricted::default(),
        }
    }

    /// The same with the executors of a cluster of an account that have these labels; the agent's own executors if
    /// no cluster is named, or theirs is.
    pub(crate) fn of(&self, account: &str, cluster: &str, labels: &Labels) -> Result<Self, NotConnected> {
        let own = self.clusters.own();
        let (name, executor) = match cluster {
            cluster if cluster.is_empty() || cluster == own => (own, self.own.clone()),
            cluster => (cluster, Executor::new(self.clusters.pool(account, cluster)?)),
        };
        Ok(Self { executors: Reach::one(name, chosen(executor, labels)), ..self.clone() })
    }

    /// The same with the executors of several clusters of an account, among which each call chooses.
    pub(crate) fn of_several(&self, account: &str, clusters: &[String], labels: &Labels) -> Self {
        let executor = |cluster: &String| match cluster == self.clusters.own() {
            true => self.own.clone(),
            false => Executor::new(self.clusters.expected(account, cluster)),
        };
        let executor = |cluster| chosen(executor(cluster), labels).of_many(cluster);
        let executors = clusters.iter().map(|cluster| (cluster.clone(), executor(cluster)));
        Self { executors: Reach::several(executors.collect(), self.clusters.own()), ..self.clone() }
    }

    /// The clusters that an account can reach, and the executors of each, in the order of their names.
    pub(crate) fn reach(&self, account: &str) -> BTreeMap<String, Vec<Arc<Member>>> {
        let own = (self.clusters.own().to_owned(), self.own.members());
        let mut reach: BTreeMap<_, _> = self.clusters.list(account).into_iter().chain([own]).collect();
        reach.retain(|_, members| !members.is_empty());
        reach
    }

    /// The clusters that a question may look at which names none: those that answer, and that `only` has if it has any.
    pub(crate) fn choice(&self, account: &str, only: &[String]) -> Vec<String> {
        let mut reach = self.reach(account);
        reach.retain(|name, members| {
            let answers = members.iter().any(|member| !member.instance().is_empty());
            answers && (only.is_empty() || only.contains(name))
        });
        reach.into_keys().collect()
    }

    /// The same where nobody has said at which cluster to look.
    pub(crate) fn anywhere(&self, account: &str, only: &[String]) -> Self {
        match self.search.is_empty() {
            true => self.of_several(account, &self.choice(account, only), &Labels::new()),
            false => self.clone(),
        }
    }

    /// The clusters that are connected.
    pub(crate) fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// The tools of one run, whose results may have `result_tokens` each: these and the client's, and the offer
    /// with them.
    pub(crate) fn for_run(
        &self,
        tools: Vec<ClientTool>,
        offer: Offer,
        result_tokens: u64,
        subagents: Subagents,
    ) -> Result<(Self, Offer), Unusable> {
        let client = ClientTools::new(tools);
        let offer = client.join(offer)?;
        // Whoever has a tool of this name wants that one.
        let is_taken = offer.specs.iter().any(|spec| spec.name == subagent::NAME);
        let agents = if is_taken { StartAgent::default() } else { StartAgent::new(subagents) };
        let offer = match agents.spec() {
            Some(spec) => offer.with(spec, subagent::TOOLSET),
            None => offer,
        };
        let (kept, restricted) = (KeptResults::new(result_tokens), offer.restricted.clone());
        Ok((Self { client, agents, kept, restricted, ..self.clone() }, offer))
    }

    /// What there is now. If no executor answers, its part is what it was before.
    pub(crate) async fn offer(&self, profile: ToolProfile) -> Result<Offer, NoExecutor> {
        let offer = self.executors.offer(profile).await?;
        if profile == ToolProfile::Rlm {
            return Ok(offer.only(code::REPL));
        }
        let mut own = vec![(KeptResults::spec(), kept::TOOLSET.to_owned())];
        own.extend(self.runbooks.spec().map(|spec| (spec, runbook::TOOLSET.to_owned())));
        let others = offer.specs.iter().cloned().zip(offer.toolsets.iter().cloned());
        let others = others.filter(|(spec, _)| own.iter().all(|(mine, _)| mine.name != spec.name));
        let (specs, toolsets): (Vec<_>, Vec<_>) = others.chain(own.iter().cloned()).unzip();
        Ok(Offer { specs: specs.into(), toolsets: toolsets.into(), ..offer })
    }

    /// Whether an executor answers now, if there are to be any beside those of clusters.
    pub(crate) async fn check(&self) -> Result<(), NoExecutor> {
        if self.search.is_empty() {
            return Ok(());
        }
        self.executors.check().await
    }

    /// Has calls judged, all at once, and then by the client's rules, one after the other. Every call gets a plan: one
    /// that cannot be judged must not run.
    pub(crate) async fn plan(&self, calls: &[ToolCall], context: &Context) -> Vec<ToolPlan> {
        let judged = join_all(calls.iter().map(async |call| {
            if context.profile == ToolProfile::Rlm && call.name != code::REPL {
                let why = format!("There is no tool `{}`: write code for `{}`.", call.name, code::REPL);
                Judged::harmless(ToolPlan::own(call, String::new(), None, ToolVerdict::Refuse(why)))
            } else if self.agents.owns(&call.name) {
                Judged::harmless(self.agents.plan(call))
            } else if self.client.owns(call) {
                Judged::harmless(self.client.plan(call))
            } else if self.runbooks.owns(call) {
                Judged::harmless(self.runbooks.plan(call))
            } else if self.kept.owns(call) {
                Judged::harmless(self.kept.plan(call))
            } else if self.restricted.owns(call) && !context.follows_runbook {
                Judged::harmless(Restricted::plan(call))
            } else {
                self.executors.plan(call, context).await
            }
        }))
        .await;
        // The rules speak of what code does, not of code.
        let ruled = |(call, judged): (&ToolCall, Judged)| match context.profile {
            ToolProfile::Rlm => judged.plan,
            ToolProfile::Holmes | ToolProfile::Harness => context.rules.judge(call, judged),
        };
        calls.iter().zip(judged).map(ruled).collect()
    }

    /// Starts a call. It ends with the returned handle, or when that is dropped.
    /// With `before`, another process began it, and the log has that much of its output.
    pub(crate) fn run(
        &self,
        call: ToolCall,
        permission: Option<Permission>,
        before: Before,
        context: &Context,
    ) -> Running {
        if self.client.owns(&call) {
            Running::at_once(&call, || self.client.run(&call))
        } else if self.runbooks.owns(&call) {
            Running::at_once(&call, || self.runbooks.run(&call))
        } else if self.kept.owns(&call) {
            Running::at_once(&call, || self.kept.run(&call))
        } else {
            self.executors.run(call, permission, before, context)
        }
    }

    /// Starts code of an agent, as [`Self::run`] does a tool.
    pub(crate) fn run_code(
        &self,
        call: ToolCall,
        interpreter: Interpreter,
        before: Before,
        context: &Context,
    ) -> Running {
        self.executors.run_code(call, interpreter, before, context)
    }

    /// Has a command of code judged.
    pub(crate) async fn plan_command(&self, command: &ToolCall, context: &Context) -> ToolPlan {
        context.rules.judge(command, self.executors.plan(command, context).await)
    }

    /// Whether a tool starts a subagent.
    pub(crate) fn starts_agents(&self, tool: &str) -> bool {
        self.agents.owns(tool)
    }

    /// What a call gives a subagent to do, if it starts one.
    pub(crate) fn task(&self, call: &ToolCall) -> Option<String> {
        subagent::task(call).filter(|_| self.starts_agents(&call.name))
    }

    /// Ends what executors keep for the session of a run that has ended.
    pub(crate) async fn close_session(&self, context: &Context) {
        match context.profile {
            ToolProfile::Holmes => {}
            ToolProfile::Harness | ToolProfile::Rlm => self.executors.close_session(context).await,
        }
    }

    /// Ends an interpreter of a run that goes on.
    pub(crate) async fn end_interpreter(&self, name: &str, context: &Context) {
        self.executors.end_interpreter(name, context).await;
    }

    /// Ends what executors keep for a session of an account that is gone.
    pub(crate) async fn forget(&self, account: &str, session: &str) {
        let caller = wire::executor::Caller { account: account.to_owned(), principal: String::new() };
        let members = self.reach(account).into_values().flatten();
        executor::close_session(members, caller, session).await;
    }

    /// A summary in the place of a result; the model can read the result itself.
    pub(crate) fn shorten(&self, call: &CallId, result: ToolResult, summary: &str) -> ToolResult {
        self.kept.shorten(call, result, summary)
    }

    /// A result with the picture or the document that it is, if it is one.
    pub(crate) fn shown(&self, tool: &str, result: ToolResult) -> ToolResult {
        if tool == READ { media::shown(result) } else { result }
    }

    /// Cuts a result that would take too much of the model's window; the model can read on in it.
    pub(crate) fn fit(&self, call: &CallId, result: ToolResult) -> ToolResult {
        self.kept.fit(call, result)
    }
}

/// Those that have labels, if any are asked for.
fn chosen(executor: Executor, labels: &Labels) -> Executor {
    if labels.is_empty() { executor } else { executor.labelled(labels) }
}
