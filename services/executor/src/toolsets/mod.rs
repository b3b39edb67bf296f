//! Toolsets of the operator: commands as templates, and MCP servers, read from a file when the executor starts.
//!
//! * `file`: the format
//! * `template`, `shell`: from the text of a template to a script in which values are only ever arguments
//! * `tool`: a call of such a script
//! * `prerequisites`: whether a toolset works here
//! * `mcp`: tools of MCP servers

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use regex::RegexSet;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

mod file;
pub(crate) mod mcp;
mod prerequisites;
mod shell;
mod template;
mod tool;

pub(crate) use tool::TemplateTool;

use crate::tools::{self, Profile, Toolset};
use prerequisites::Prerequisite;
use template::{Slot, Template};

/// A toolset file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {place}{problem}", file.display())]
pub struct ToolsetError {
    file: PathBuf,
    place: String,
    problem: String,
}

/// What a toolset file says.
#[derive(Debug, Default)]
pub(crate) struct Toolsets {
    pub(crate) declared: Vec<Declared>,
    pub(crate) servers: Vec<mcp::Server>,
    overrides: BTreeMap<String, Override>,
    /// The file as it was read.
    pub(crate) text: String,
}

/// A toolset of the file.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) name: Arc<str>,
    pub(crate) description: String,
    pub(crate) instructions: String,
    pub(crate) enabled: bool,
    pub(crate) tools: Vec<Arc<TemplateTool>>,
    /// Tools that run only with the approval of a person.
    pub(crate) approval: Patterns,
    prerequisites: Vec<Prerequisite>,
}

/// What the file says of a toolset that is built in.
#[derive(Debug)]
struct Override {
    enabled: bool,
    approval: Patterns,
}

/// Shell-style patterns of names: `*` and `?`.
#[derive(Debug, Default)]
pub(crate) struct Patterns(RegexSet);

impl Patterns {
    fn new(patterns: &[String]) -> Result<Self, String> {
        let all = patterns.iter().map(|pattern| {
            format!("^(?s:{})$", regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
        });
        RegexSet::new(all).map(Self).map_err(|error| error.to_string())
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl Toolsets {
    /// Reads a file. `environment` gives the values for `{{ env.NAME }}`.
    pub(crate) fn load(
        path: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ToolsetError> {
        let fail = |(place, problem)| ToolsetError { file: path.to_owned(), place, problem };
        let text = std::fs::read_to_string(path).map_err(|error| fail((String::new(), error.to_string())))?;
        Self::parse(&text, environment).map_err(fail)
    }

    fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, (String, String)> {
        let file: file::File =
            serde_saphyr::from_str(text).map_err(|error| (String::new(), error.to_string()))?;
        warn_of_unknown("the file", file.unknown.keys());
        let mut all = Self { text: text.to_owned(), ..Self::default() };
        // Each profile has names of its own, and the operator's tools belong to the first.
        let beside = tools::all().filter(|tool| tool.toolset.profile() == Profile::default());
        let mut owners: BTreeMap<String, String> =
            beside.map(|tool| (tool.name.to_owned(), tool.toolset.name().to_owned())).collect();
        for (name, toolset) in file.toolsets {
            let place = |problem| (format!("toolset `{name}`: "), problem);
            let toolset: file::Toolset = read(toolset).map_err(place)?;
            warn_of_unknown(&name, toolset.unknown.keys());
            if Toolset::ALL.iter().any(|own| own.name() == name) {
                all.overrides.insert(name.clone(), Override::new(&toolset).map_err(place)?);
                continue;
            }
            let declared = Declared::new(&name, toolset, environment)?;
            for tool in &declared.tools {
                if let Some(owner) = owners.insert(tool.name.clone(), name.clone()) {
                    return Err(place(format!("its tool `{}` is one of toolset `{owner}`, too", tool.name)));
                }
            }
            all.declared.push(declared);
        }
        for (name, server) in file.mcp_servers {
            let place = |problem| (format!("MCP server `{name}`: "), problem);
            let server: file::McpServer = read(server).map_err(place)?;
            warn_of_unknown(&name, server.unknown.keys().chain(server.config.unknown.keys()));
            all.servers.push(mcp::Server::new(&name, server, environment).map_err(place)?);
        }
        Ok(all)
    }

    /// Secrets that tools are given.
    pub(crate) fn secrets(&self) -> Vec<SecretString> {
        let tools = self.declared.iter().flat_map(|own| &own.tools).flat_map(|tool| tool.secrets());
        tools.chain(self.servers.iter().flat_map(mcp::Server::secrets)).collect()
    }

    /// Whether the operator leaves a toolset that is built in switched on.
    pub(crate) fn enables(&self, toolset: Toolset) -> bool {
        self.overrides.get(toolset.name()).is_none_or(|own| own.enabled)
    }

    /// Whether a tool that is built in runs only with the approval of a person.
    pub(crate) fn guards(&self, toolset: Toolset, tool: &str) -> bool {
        self.overrides.get(toolset.name()).is_some_and(|own| own.approval.matches(tool))
    }
}

impl Override {
    fn new(toolset: &file::Toolset) -> Result<Self, String> {
        if !toolset.tools.is_empty() {
            return Err("it is built in: only `enabled` and `approval_required_tools` can be set".to_owned());
        }
        Ok(Self { enabled: toolset.enabled, approval: Patterns::new(&toolset.approval_required_tools)? })
    }
}

impl Declared {
    fn new(
        name: &str,
        toolset: file::Toolset,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, (String, String)> {
        let place = |problem| (format!("toolset `{name}`: "), problem);
        let shared: Arc<str> = name.into();
        let mut missing = BTreeSet::new();
        let mut tools = Vec::new();
        for tool in toolset.tools {
            let own = tool.name.clone();
            warn_of_unknown(&format!("{name}, tool {own}"), tool.unknown.keys());
            let tool = TemplateTool::new(&shared, tool, environment, &mut missing)
                .map_err(|problem| (format!("toolset `{name}`, tool `{own}`: "), problem))?;
            tools.push(Arc::new(tool));
        }
        let mut prerequisites = Vec::new();
        for prerequisite in toolset.prerequisites {
            let read = Prerequisite::new(&shared, prerequisite, environment, &mut missing);
            prerequisites
                .push(read.map_err(|problem| (format!("toolset `{name}`, prerequisites: "), problem))?);
        }
        if !missing.is_empty() {
            prerequisites.insert(0, Prerequisite::Missing(missing));
        }
        if tools.is_empty() {
            prerequisites.insert(0, Prerequisite::NoTools);
        }
        Ok(Self {
            name: shared,
            description: toolset.description,
            instructions: toolset.llm_instructions.trim().to_owned(),
            enabled: toolset.enabled,
            tools,
            approval: Patterns::new(&toolset.approval_required_tools).map_err(place)?,
            prerequisites,
        })
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn warn_of_unknown<'a>(place: &str, keys: impl Iterator<Item = &'a String>) {
    for key in keys {
        tracing::warn!(place, key, "an unknown key of the toolset file is ignored");
    }
}

/// A text of the file in which only variables of the environment may stand.
fn fill(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let template = Template::parse(text)?;
    if let Some((name, _)) = template.parameters().first() {
        return Err(format!("`{{{{ {name} }}}}` cannot stand here; only `{{{{ env.NAME }}}}` can"));
    }
    let values = template.slots.iter().filter_map(|slot| match slot {
        Slot::Environment(name) => Some(environment(name).ok_or(name)),
        Slot::Parameter { .. } => None,
    });
    let values = values.collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|name| format!("the variable `{name}` is not set"))?;
    Ok(template.render(|_| false, |slot| values[slot].clone()))
}
