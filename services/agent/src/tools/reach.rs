//! The clusters that a run reaches: one, or several among which each call chooses.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use domain::{Before, Permission, ToolCall, ToolPlan, ToolProfile, ToolVerdict};
use futures_util::future::join_all;
use model::ToolSpec;
use serde_json::{Value, json};

use super::{
    Interpreter, Offer,
    call::{Context, Running},
    executor::{Executor, NoExecutor},
    rules::Judged,
};

/// The parameter by which a call names its cluster.
const PARAMETER: &str = "cluster";

/// The clusters of a run.
#[derive(Clone)]
pub(super) struct Reach {
    executors: Arc<BTreeMap<String, Executor>>,
    /// The one that takes calls that name none.
    usual: Option<String>,
}

impl Reach {
    /// One cluster, which takes all calls as they are.
    pub(super) fn one(cluster: &str, executor: Executor) -> Self {
        let executors = Arc::new(BTreeMap::from([(cluster.to_owned(), executor)]));
        Self { executors, usual: Some(cluster.to_owned()) }
    }

    /// Several, of which `usual`, if it is one of them, takes the calls that name none.
    pub(super) fn several(executors: BTreeMap<String, Executor>, usual: &str) -> Self {
        let usual = executors.contains_key(usual).then(|| usual.to_owned());
        Self { executors: Arc::new(executors), usual }
    }

    /// Whether each call chooses.
    fn is_choice(&self) -> bool {
        self.executors.len() > 1
    }

    /// Whether an executor answers now.
    pub(super) async fn check(&self) -> Result<(), NoExecutor> {
        let mut last = Ok(());
        for executor in self.executors.values() {
            last = executor.check().await;
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// The tools of all clusters that answer, each with the clusters that have it.
    pub(super) async fn offer(&self, profile: ToolProfile) -> Result<Offer, NoExecutor> {
        let offers = join_all(
            self.executors
                .iter()
                .map(async |(name, executor)| (name.as_str(), executor.offer(profile).await)),
        );
        let mut offers = offers.await;
        // Where tools differ, they are as the cluster has them that is asked without a name.
        offers.sort_by_key(|(name, _)| self.usual.as_deref() != Some(name));
        let mut answered = Vec::new();
        let mut failed = None;
        for (name, offer) in offers {
            match offer {
                Ok(offer) => answered.push((name, offer)),
                Err(error) => failed = Some(error),
            }
        }
        match (answered.pop(), failed) {
            (None, Some(error)) => Err(error),
            (None, None) => Ok(Offer::default()),
            (Some((_, only)), _) if !self.is_choice() => Ok(only),
            (Some(last), _) => {
                answered.push(last);
                Ok(self.merged(&answered))
            }
        }
    }

    fn merged(&self, offers: &[(&str, Offer)]) -> Offer {
        let mut tools: Vec<(ToolSpec, String, Vec<&str>)> = Vec::new();
        for (cluster, offer) in offers {
            for (spec, toolset) in offer.specs.iter().zip(offer.toolsets.iter()) {
                match tools.iter_mut().find(|(known, ..)| known.name == spec.name) {
                    Some((.., clusters)) => clusters.push(cluster),
                    None => tools.push((spec.clone(), toolset.clone(), vec![cluster])),
                }
            }
        }
        let chosen = tools
            .into_iter()
            .filter_map(|(spec, toolset, clusters)| Some((self.with_choice(spec, &clusters)?, toolset)));
        let (specs, toolsets): (Vec<_>, Vec<_>) = chosen.unzip();
        let summarize = offers
            .iter()
            .rev()
            .flat_map(|(_, offer)| offer.summarize.iter().map(|(tool, how)| (tool.clone(), how.clone())));
        Offer {
            specs: specs.into(),
            toolsets: toolsets.into(),
            summarize: Arc::new(summarize.collect()),
            restricted: offers.iter().flat_map(|(_, offer)| offer.restricted.names().cloned()).collect(),
            instructions: instructions(offers).into(),
        }
    }

    /// A tool whose calls say where they go. One that has such a parameter of its own is left out.
    fn with_choice(&self, mut spec: ToolSpec, clusters: &[&str]) -> Option<ToolSpec> {
        let usual = self.usual.as_deref().filter(|usual| clusters.contains(usual));
        let mut description = "The cluster to look at.".to_owned();
        if let Some(usual) = usual {
            // Writing to a string cannot fail.
            let _ = write!(description, " Without it: `{usual}`.");
        }
        let parameters = spec.parameters.as_object_mut()?;
        let properties = parameters.entry("properties").or_insert_with(|| json!({})).as_object_mut()?;
        if properties.contains_key(PARAMETER) {
            tracing::warn!(tool = spec.name, "a tool has a parameter `cluster` of its own: it is left out");
            return None;
        }
        let mut names = clusters.to_vec();
        names.sort_unstable();
        let parameter = json!({ "type": "string", "enum": names, "description": description });
        properties.insert(PARAMETER.to_owned(), parameter);
        if usual.is_none() {
            let required = parameters.entry("required").or_insert_with(|| json!([]));
            required.as_array_mut()?.push(Value::from(PARAMETER));
        }
        Some(spec)
    }

    /// The cluster that a call goes to, or what the model is told where it goes to none.
    fn choose(&self, call: &ToolCall) -> Result<(&str, &Executor), String> {
        let named = match self.is_choice() {
            true => named(&call.arguments),
            false => None,
        };
        let names = || self.executors.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match named.as_deref().or(self.usual.as_deref()) {
            Some(name) => match self.executors.get_key_value(name) {
                Some((name, executor)) => Ok((name, executor)),
                None => Err(format!("There is no cluster `{name}` to look at. There are: {}.", names())),
            },
            None => Err(format!("The call names no cluster: `{PARAMETER}` must be one of {}.", names())),
        }
    }

    /// Has a call judged where it goes.
    pub(super) async fn plan(&self, call: &ToolCall, context: &Context) -> Judged {
        let (cluster, executor) = match self.choose(call) {
            Ok(chosen) => chosen,
            Err(why) => {
                let verdict = ToolVerdict::Refuse(why);
                return Judged::harmless(ToolPlan::own(call, String::new(), None, verdict));
            }
        };
        let Judged { mut plan, facts } = executor.plan(call, context).await;
        if self.is_choice() {
            plan.description = format!("{cluster}: {}", plan.description);
        }
        plan.cluster = Some(cluster.to_owned());
        Judged { plan, facts }
    }

    /// Starts a call where it goes.
    pub(super) fn run(
        &self,
        call: ToolCall,
        permission: Option<Permission>,
        before: Before,
        context: &Context,
    ) -> Running {
        match self.choose(&call) {
            Ok((_, executor)) => executor.run(call, permission, before, context),
            Err(why) => Running::at_once(&call, || domain::ToolResult::error(why)),
        }
    }

    /// Starts code, likewise.
    pub(super) fn run_code(
        &self,
        call: ToolCall,
        interpreter: Interpreter,
        before: Before,
        context: &Context,
    ) -> Running {
        match self.choose(&call) {
            Ok((_, executor)) => executor.run_code(call, interpreter, before, context),
            Err(why) => Running::at_once(&call, || domain::ToolResult::error(why)),
        }
    }

    /// Tells all executors that the session of a run has ended.
    pub(super) async fn close_session(&self, context: &Context) {
        join_all(self.executors.values().map(|executor| executor.close_session(context))).await;
    }

    /// Tells the executor that has the session that an interpreter is not needed any more.
    pub(super) async fn end_interpreter(&self, name: &str, context: &Context) {
        join_all(self.executors.values().map(|executor| executor.end_interpreter(name, context))).await;
    }
}

/// The cluster that arguments name.
fn named(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    arguments.get(PARAMETER)?.as_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// How to use the toolsets; with the cluster where they are not the same everywhere.
fn instructions(offers: &[(&str, Offer)]) -> Vec<(String, String)> {
    let mut texts: Vec<((String, String), Vec<&str>)> = Vec::new();
    for (cluster, offer) in offers {
        for instruction in offer.instructions.iter() {
            match texts.iter_mut().find(|(known, _)| known == instruction) {
                Some((_, clusters)) => clusters.push(cluster),
                None => texts.push((instruction.clone(), vec![cluster])),
            }
        }
    }
    let labelled = texts.into_iter().map(|((name, text), clusters)| match clusters.len() == offers.len() {
        true => (name, text),
        false => (format!("{name} ({})", clusters.join(", ")), text),
    });
    labelled.collect()
}

#[cfg(test)]
mod tests;
