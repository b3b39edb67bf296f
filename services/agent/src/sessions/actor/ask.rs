//! What the next run of a turn is asked.

use std::collections::HashMap;

use domain::{Effort, Message, Part, ToolProfile};
use store::Idempotency;
use wire::session::SessionSettings;

use super::Actor;
use crate::{
    prompt::Sections,
    runs::Question,
    sessions::{turn::Turn, words},
    tools::RequestHeaders,
};

impl Actor {
    /// The question that what was said is, with the conversation before it.
    pub(super) fn question(&self, turn: &Turn, history: Vec<Message>, said: Vec<Message>) -> Question {
        let (text, images, documents) = split(said.into_iter().flat_map(|message| message.parts));
        let asker = turn.asker();
        let controls = asker.and_then(|said| said.message.controls.as_ref());
        let hints = words::hints(&self.settings.hints_json, controls);
        let model = controls.and_then(|controls| controls.model_id.clone());
        let model = model.unwrap_or_else(|| self.settings.model.clone());
        let locale = controls.and_then(|controls| controls.locale.clone());
        let config = self.sessions.runs().config();
        let mut limits = config.limits;
        if self.settings.max_iterations > 0 {
            limits.steps = limits.steps.min(self.settings.max_iterations);
        }
        let turn_id = &turn.projection.ids().turn;
        Question {
            text,
            history,
            model: Some(model).filter(|model| !model.is_empty()),
            images,
            documents,
            client_tools: self.settings.tools.iter().cloned().map(Into::into).collect(),
            brought: turn.brought.clone(),
            approvals: hints["tool_approvals"] == true,
            waits: false,
            rlm: None,
            exec_directory: String::new(),
            home: String::new(),
            subagents: self.settings.subagents.map_or(config.subagents, Into::into),
            profile: if hints["files"] == true { ToolProfile::Harness } else { ToolProfile::default() },
            cluster: hints["cluster"].as_str().unwrap_or_default().to_owned(),
            labels: domain::Labels::default(),
            clusters: self.clusters.clone(),
            standing: self.rest.standing_grants.iter().cloned().map(Into::into).collect(),
            // A message may be answered long after its request has ended.
            headers: RequestHeaders::default(),
            session: self.log.as_str().to_owned(),
            permissions: None,
            form: None,
            sections: Sections::choose(config.enabled_prompts.as_ref(), &HashMap::new()),
            files: Vec::new(),
            alert_history: None,
            additional_system_prompt: addition(&self.settings, locale.as_deref()),
            limits,
            account: self.account.clone(),
            principal: asker.map(|said| said.principal.clone()).unwrap_or_default(),
            idempotency: Some(Idempotency {
                scope: self.log.as_str().to_owned(),
                key: format!("{turn_id}/{}", turn.runs + 1),
                digest: [0; 32],
            }),
            effort: controls.and_then(|controls| Effort::named(controls.reasoning_effort.as_deref()?)),
            keeper: format!("{turn_id} {}", asker.map_or(0, |said| said.sequence)),
        }
    }
}

/// The text of what was said, its parts on lines of their own, its images, and its documents.
fn split(parts: impl Iterator<Item = Part>) -> (String, Vec<domain::Image>, Vec<domain::Document>) {
    let (mut texts, mut images, mut documents) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Image(image) => images.push(image),
            Part::Document(document) => documents.push(document),
            Part::Thinking(_) => {}
        }
    }
    (texts.join("\n"), images, documents)
}

/// What a session adds to the agent's own prompt.
fn addition(settings: &SessionSettings, locale: Option<&str>) -> String {
    let locale = locale.unwrap_or(&settings.locale);
    let language = if locale.is_empty() {
        String::new()
    } else {
        format!("Answer in the language of the locale `{locale}`.")
    };
    let parts = [settings.system_prompt.as_str(), language.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}
