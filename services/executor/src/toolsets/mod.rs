//! Toolsets of the operator: commands as templates, and MCP servers, read from a file when the executor starts.
//!
//! * `file`: the format
//! * `template`, `shell`: from the text of a template to a script in which values are never code
//! * `tool`: a call of such a script
//! * `transformer`: what becomes of long results
//! * `prerequisites`: whether a toolset works here
//! * `headers`: what is sent along with requests
//! * `http`: HTTP APIs that are listed
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
mod headers;
mod http;
pub(crate) mod mcp;
mod prerequisites;
mod shell;
mod template;
mod tool;
mod transformer;

pub(crate) use http::HttpTool;
pub(crate) use tool::TemplateTool;
pub(crate) use transformer::Summarize;

use crate::{
    source::Source,
    tools::{self, Callable, Origin, Profile, RequestHeaders, Toolset},
};
use headers::Headers;
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
    /// The Prometheus that the file names.
    prometheus: Option<(Source, Vec<SecretString>)>,
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
    pub(crate) tools: Vec<Callable>,
    prerequisites: Vec<Prerequisite>,
}

/// What the file says of a toolset that is built in.
#[derive(Debug)]
struct Override {
    enabled: bool,
    about: About,
}

/// What the file says of all tools of a toolset.
#[derive(Debug)]
struct About {
    approval: Patterns,
    restricted: Patterns,
    summarize: Option<Arc<Summarize>>,
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
                if name == Toolset::PrometheusMetrics.name() && !toolset.config.is_null() {
                    let config: file::PrometheusConfig = read(toolset.config.clone()).map_err(place)?;
                    warn_of_unknown(&name, config.unknown.keys());
                    all.prometheus = prometheus(config, environment).map_err(place)?;
                }
                let own = Override::new(&name, &toolset).map_err(place)?;
                all.overrides.insert(name, own);
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
        let tools = self.declared.iter().flat_map(|own| &own.tools);
        let tools = tools.flat_map(|tool| match &tool.origin {
            Origin::Template(tool) => tool.secrets().collect::<Vec<_>>(),
            Origin::Http(tool) => tool.secrets().collect(),
            Origin::Builtin(_) | Origin::Mcp(_) => Vec::new(),
        });
        let prometheus = self.prometheus.iter().flat_map(|(_, secrets)| secrets.clone());
        tools.chain(self.servers.iter().flat_map(mcp::Server::secrets)).chain(prometheus).collect()
    }

    /// Whether the operator leaves a toolset that is built in switched on.
    pub(crate) fn enables(&self, toolset: Toolset) -> bool {
        self.overrides.get(toolset.name()).is_none_or(|own| own.enabled)
    }

    /// Whether the file says that a toolset that is built in is wanted.
    pub(crate) fn asks_for(&self, toolset: Toolset) -> bool {
        self.overrides.get(toolset.name()).is_some_and(|own| own.enabled)
    }

    /// The Prometheus that the file names.
    pub(crate) fn prometheus(&self) -> Option<&Source> {
        self.prometheus.as_ref().map(|(source, _)| source)
    }

    /// What becomes of long results of a toolset that is built in.
    pub(crate) fn summarizes(&self, toolset: Toolset) -> Option<Arc<Summarize>> {
        self.overrides.get(toolset.name())?.about.summarize.clone()
    }

    /// Whether a tool that is built in is for whoever follows a runbook.
    pub(crate) fn restricts(&self, toolset: Toolset, tool: &str) -> bool {
        self.overrides.get(toolset.name()).is_some_and(|own| own.about.restricted.matches(tool))
    }

    /// Whether a tool that is built in runs only with the approval of a person.
    pub(crate) fn guards(&self, toolset: Toolset, tool: &str) -> bool {
        self.overrides.get(toolset.name()).is_some_and(|own| own.about.approval.matches(tool))
    }
}

impl Override {
    fn new(name: &str, toolset: &file::Toolset) -> Result<Self, String> {
        if !toolset.tools.is_empty() {
            return Err("it is built in: it has its own tools".to_owned());
        }
        Ok(Self { enabled: toolset.enabled, about: About::new(name, toolset)? })
    }
}

impl About {
    fn new(name: &str, toolset: &file::Toolset) -> Result<Self, String> {
        Ok(Self {
            approval: Patterns::new(&toolset.approval_required_tools)?,
            restricted: Patterns::new(&toolset.restricted_tools)?,
            summarize: transformer::summarize(name, &toolset.transformers)?,
        })
    }

    fn callable(&self, name: &str, summarize: Option<Arc<Summarize>>, origin: Origin) -> Callable {
        Callable {
            name: name.to_owned(),
            needs_approval: self.approval.matches(name),
            restricted: self.restricted.matches(name),
            summarize: summarize.or_else(|| self.summarize.clone()),
            origin,
        }
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
        let about = About::new(name, &toolset).map_err(place)?;
        let mut missing = BTreeSet::new();
        let mut tools = Vec::new();
        for mut tool in toolset.tools {
            let own = tool.name.clone();
            // What is kept for those who follow a runbook is hardly harmless.
            tool.effect = tool.effect.or(about.restricted.matches(&own).then_some(file::Effect::Mutation));
            warn_of_unknown(&format!("{name}, tool {own}"), tool.unknown.keys());
            let tool = TemplateTool::new(&shared, tool, environment, &mut missing)
                .map_err(|problem| (format!("toolset `{name}`, tool `{own}`: "), problem))?;
            tools.push(about.callable(&own, tool.summarize.clone(), Origin::Template(Arc::new(tool))));
        }
        let mut prerequisites = Vec::new();
        for prerequisite in toolset.prerequisites {
            let read = Prerequisite::new(&shared, prerequisite, environment, &mut missing);
            prerequisites
                .push(read.map_err(|problem| (format!("toolset `{name}`, prerequisites: "), problem))?);
        }
        if toolset.kind == "http" {
            let tool = read(toolset.config).and_then(|config: file::HttpConfig| {
                HttpTool::new(&shared, config, environment, &mut missing)
            });
            let tool = Arc::new(tool.map_err(place)?);
            prerequisites.push(Prerequisite::Healthy(Arc::clone(&tool)));
            tools.push(about.callable(&tool.name, None, Origin::Http(Arc::clone(&tool))));
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
            prerequisites,
        })
    }
}

/// The Prometheus of a toolset, and the secrets that it is sent.
fn prometheus(
    config: file::PrometheusConfig,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<(Source, Vec<SecretString>)>, String> {
    let Some(url) = config.prometheus_url else { return Ok(None) };
    let mut missing = BTreeSet::new();
    let headers = Headers::new(&config.headers, environment, &mut missing)?;
    let url = fill_noting(&url, environment, &mut missing)?;
    if let Some(name) = missing.first() {
        return Err(format!("the variable `{name}` is not set"));
    }
    let source = Source::new(&url, None).map_err(|wanted| format!("`prometheus_url` must be {wanted}"))?;
    let secrets = headers.secrets().collect();
    Ok(Some((source.with_headers(headers.render(&RequestHeaders::default())?), secrets)))
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn warn_of_unknown<'a>(place: &str, keys: impl Iterator<Item = &'a String>) {
    for key in keys {
        tracing::warn!(place, key, "an unknown key of the toolset file is ignored");
    }
}

/// A text of the file in which only variables of the environment may stand, and have to be set.
fn fill(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut missing = BTreeSet::new();
    let filled = fill_noting(text, environment, &mut missing)?;
    match missing.first() {
        Some(name) => Err(format!("the variable `{name}` is not set")),
        None => Ok(filled),
    }
}

/// The same, where those that are not set are noted in `missing`.
fn fill_noting(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
    missing: &mut BTreeSet<String>,
) -> Result<String, String> {
    let template = Template::parse(text)?;
    let mut values = Vec::new();
    for slot in &template.slots {
        let Slot::Environment(name) = slot else {
            return Err(format!("`{text}` can have only `{{{{ env.NAME }}}}` in it"));
        };
        values.push(environment(name).unwrap_or_else(|| {
            missing.insert(name.clone());
            String::new()
        }));
    }
    if !template.conditions.is_empty() {
        return Err(format!("`{text}` can have only `{{{{ env.NAME }}}}` in it"));
    }
    Ok(template.render(|_| false, |slot| values[slot].clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_document_can_be_used() {
        let document = include_str!("../../TOOLSETS.md");
        let examples = document.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let environment =
            |name: &str| Some(if name.ends_with("_URL") { "http://localhost:9090" } else { "x" }.to_owned());
        let read: Vec<_> = examples.map(|text| Toolsets::parse(text, &environment).unwrap()).collect();
        let tools: Vec<_> = read
            .iter()
            .flat_map(|own| &own.declared)
            .flat_map(|own| &own.tools)
            .map(|tool| &*tool.name)
            .collect();
        assert_eq!(tools, ["prometheus_query", "restart_cache", "issue_tracker_request"]);
        assert_eq!(read.iter().map(|own| own.servers.len()).sum::<usize>(), 2);
    }
}
