//! The models that can be asked: HolmesGPT's `modelList`, the environment, and the model that needs no key.

mod entry;
mod file;
mod provider;
mod template;

use std::{collections::HashSet, fmt, sync::Arc};

use reqwest::{Client, redirect};
use serde_json::{Map, Value};

pub use entry::EntryError;

use crate::{Model, Settings, prices::Table};
use entry::Shared;
use file::Written;

/// Models that are offered if there is nothing but their provider's key.
const DEFAULTS: [(&str, &str); 2] = [("OPENAI_API_KEY", "gpt-5.4"), ("ANTHROPIC_API_KEY", "claude-sonnet-5")];

/// Why the models cannot be loaded. The texts never hold a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The file is not a YAML map from names to entries.
    #[error("the model list cannot be read: {0}")]
    Syntax(String),
    /// The file has no entry.
    #[error("the model list is empty")]
    Empty,
    /// A name is taken twice, or by the builtin model.
    #[error("the model list has the name `{0}` twice")]
    Duplicate(String),
    /// An entry cannot be used.
    #[error("the model `{name}` ({}) cannot be used: {reason}", place(*line))]
    Entry {
        /// Name of the entry.
        name: String,
        /// Its line in the file; `None` for one from the environment.
        line: Option<u64>,
        /// Why.
        reason: EntryError,
    },
    /// A setting is not a number.
    #[error("{name} must be a whole number, not `{value}`")]
    Setting {
        /// The environment variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
    /// The data file of known models is broken.
    #[error("the data on known models cannot be read: {0}")]
    Data(String),
}

fn place(line: Option<u64>) -> String {
    line.map_or_else(|| "from the environment".to_owned(), |line| format!("line {line} of the model list"))
}

/// Nobody offers this model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown model `{name}`; known models: {}", known.join(", "))]
pub struct UnknownModel {
    /// The name that was asked for.
    pub name: String,
    /// The names that there are.
    pub known: Vec<String>,
}

/// The models that can be asked, in the order of the list.
pub struct Catalogue {
    models: Vec<Arc<dyn Model>>,
    default: usize,
}

impl Catalogue {
    /// Loads the models of a list; those that `MODEL` and `FAST_MODEL` name, with `API_KEY` and `API_BASE`, if they
    /// are not among them; without a list and `MODEL`, one for each of `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`; and last the builtin one.
    /// The default is what `MODEL` names, or else the first.
    ///
    /// # Errors
    /// If the list, the environment or one of the models is not as it must be.
    pub fn load(
        yaml: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
        settings: Settings,
        builtin: Arc<dyn Model>,
    ) -> Result<Self, ListError> {
        let env = |name: &str| env(name).filter(|value| !value.is_empty());
        let mut entries = yaml.map(file::read).transpose()?.unwrap_or_default();
        let chosen = env("MODEL");
        let there = |entries: &[Written], name: &str| {
            name == builtin.info().name || entries.iter().any(|entry| entry.name == name)
        };
        if let Some(name) = chosen.as_deref().filter(|name| !there(&entries, name)) {
            entries.push(from_env(name, &env));
        }
        if entries.is_empty() && chosen.is_none() {
            let keyed = DEFAULTS.iter().filter(|(key, _)| env(key).is_some());
            entries.extend(keyed.map(|(_, model)| written(model, [("model", Some((*model).into()))])));
        }
        if let Some(name) = env("FAST_MODEL").as_deref().filter(|name| !there(&entries, name)) {
            entries.push(from_env(name, &env));
        }
        let shared = shared(settings)?;
        let mut models = Vec::<Arc<dyn Model>>::new();
        for Written { name, line, members } in entries {
            let model = entry::model(name.clone(), members, &env, &shared);
            models.push(Arc::new(model.map_err(|reason| ListError::Entry { name, line, reason })?));
        }
        models.push(builtin);
        let default = models.iter().position(|model| Some(&model.info().name) == chosen.as_ref());
        let mut names = HashSet::new();
        match models.iter().find(|model| !names.insert(&model.info().name)) {
            Some(twice) => Err(ListError::Duplicate(twice.info().name.clone())),
            None => Ok(Self { default: default.unwrap_or(0), models }),
        }
    }

    /// The model of this name, or the default.
    ///
    /// # Errors
    /// If there is no model of this name.
    pub fn get(&self, name: Option<&str>) -> Result<Arc<dyn Model>, UnknownModel> {
        let Some(name) = name else { return Ok(self.models[self.default].clone()) };
        let found = self.models.iter().find(|model| model.info().name == name);
        found.cloned().ok_or_else(|| UnknownModel {
            name: name.to_owned(),
            known: self.names().map(str::to_owned).collect(),
        })
    }

    /// All models, in the order of the list.
    pub fn models(&self) -> &[Arc<dyn Model>] {
        &self.models
    }

    /// All names, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.iter().map(|model| model.info().name.as_str())
    }

    /// Name of the model that answers when none is asked for.
    pub fn default_name(&self) -> &str {
        &self.models[self.default].info().name
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// One client for all models, so that they share connections.
fn shared(settings: Settings) -> Result<Shared, ListError> {
    let client = Client::builder()
        .connect_timeout(settings.connect_timeout)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("sleuth/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| ListError::Client(error.to_string()))?;
    let table = Table::load().map_err(|error| ListError::Data(error.to_string()))?;
    Ok(Shared { client, settings: Arc::new(settings), table })
}

fn from_env(model: &str, env: &dyn Fn(&str) -> Option<String>) -> Written {
    let members =
        [("model", Some(model.to_owned())), ("api_key", env("API_KEY")), ("base_url", env("API_BASE"))];
    written(model, members)
}

fn written<const N: usize>(name: &str, members: [(&str, Option<String>); N]) -> Written {
    let present = members.into_iter().filter_map(|(member, text)| Some((member.to_owned(), text?)));
    let members: Map<String, Value> = present.map(|(member, text)| (member, Value::String(text))).collect();
    Written { name: name.to_owned(), line: None, members }
}
