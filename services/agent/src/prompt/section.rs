//! The sections of the prompt, and which of them are on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Unknown keys that a log line names.
const NAMED: usize = 10;

/// A part of the prompt that can be switched off. In the order in which the prompt has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Intro,
    AskUser,
    GeneralInstructions,
    ClusterName,
    TodowriteInstructions,
    AiSafety,
    ToolsetInstructions,
    PermissionErrors,
    StyleGuide,
    SystemPromptAdditions,
    Files,
    TodowriteReminder,
    TimeRunbooks,
}

/// The message that a section belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    System,
    User,
}

impl Section {
    pub(crate) const ALL: [Self; 13] = [
        Self::Intro,
        Self::AskUser,
        Self::GeneralInstructions,
        Self::ClusterName,
        Self::TodowriteInstructions,
        Self::AiSafety,
        Self::ToolsetInstructions,
        Self::PermissionErrors,
        Self::StyleGuide,
        Self::SystemPromptAdditions,
        Self::Files,
        Self::TodowriteReminder,
        Self::TimeRunbooks,
    ];

    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Intro => "intro",
            Self::AskUser => "ask_user",
            Self::GeneralInstructions => "general_instructions",
            Self::ClusterName => "cluster_name",
            Self::TodowriteInstructions => "todowrite_instructions",
            Self::AiSafety => "ai_safety",
            Self::ToolsetInstructions => "toolset_instructions",
            Self::PermissionErrors => "permission_errors",
            Self::StyleGuide => "style_guide",
            Self::SystemPromptAdditions => "system_prompt_additions",
            Self::Files => "files",
            Self::TodowriteReminder => "todowrite_reminder",
            Self::TimeRunbooks => "time_runbooks",
        }
    }

    pub(crate) fn place(self) -> Place {
        match self {
            Self::Intro
            | Self::AskUser
            | Self::GeneralInstructions
            | Self::ClusterName
            | Self::TodowriteInstructions
            | Self::AiSafety
            | Self::ToolsetInstructions
            | Self::PermissionErrors
            | Self::StyleGuide
            | Self::SystemPromptAdditions => Place::System,
            Self::Files | Self::TodowriteReminder | Self::TimeRunbooks => Place::User,
        }
    }

    fn is_on_by_default(self) -> bool {
        self != Self::AiSafety
    }

    fn parse(key: &str) -> Option<Self> {
        let key = key.trim().to_lowercase();
        match key.as_str() {
            "time_skills" => Some(Self::TimeRunbooks),
            key => Self::ALL.into_iter().find(|section| section.key() == key),
        }
    }
}

/// The sections that an operator has named (`ENABLED_PROMPTS`): those are on, and all others are off whatever a
/// request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnabledPrompts(BTreeSet<Section>);

impl EnabledPrompts {
    /// Reads the keys of sections, or the word `none`. Without any key there is nothing to go by: `None`.
    /// Unknown keys are ignored, which is logged.
    pub fn parse<'a>(keys: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let is_none = |key: &&str| key.trim().eq_ignore_ascii_case("none");
        let keys: Vec<_> = keys.into_iter().filter(|key| !key.trim().is_empty()).collect();
        if keys.is_empty() {
            return None;
        }
        let (known, unknown) = known(keys.into_iter().filter(|key| !is_none(key)).map(|key| (key, ())));
        warn("ENABLED_PROMPTS", &unknown);
        Some(Self(known.into_iter().map(|(section, ())| section).collect()))
    }
}

/// The sections that are on for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sections(BTreeSet<Section>);

impl Sections {
    /// What an operator allows, what a request chooses among it, and else the defaults. Of contradicting choices
    /// for a section, the one that switches it off counts. Unknown keys are ignored, which is logged.
    pub(crate) fn choose(enabled: Option<&EnabledPrompts>, controls: &HashMap<String, bool>) -> Self {
        let (chosen, unknown) = known(controls.iter().map(|(key, on)| (key.as_str(), *on)));
        warn("behavior_controls", &unknown);
        let mut choices = BTreeMap::new();
        for (section, on) in chosen {
            choices.entry(section).and_modify(|before| *before &= on).or_insert(on);
        }
        let is_on = |section: &Section| {
            let choice = choices.get(section).copied();
            match enabled {
                Some(enabled) => enabled.0.contains(section) && choice.unwrap_or(true),
                None => choice.unwrap_or(section.is_on_by_default()),
            }
        };
        Self(Section::ALL.into_iter().filter(is_on).collect())
    }

    /// Whether the model is told of runbooks.
    pub(crate) fn offer_runbooks(&self) -> bool {
        self.0.contains(&Section::TimeRunbooks)
    }

    /// The ones of a message, in order.
    pub(crate) fn of(&self, place: Place) -> impl Iterator<Item = Section> {
        self.0.iter().copied().filter(move |section| section.place() == place)
    }
}

/// What is said of known sections, and the keys of others.
fn known<'a, T>(said: impl Iterator<Item = (&'a str, T)>) -> (Vec<(Section, T)>, Vec<&'a str>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (key, value) in said {
        match Section::parse(key) {
            Some(section) => known.push((section, value)),
            None => unknown.push(key),
        }
    }
    (known, unknown)
}

fn warn(from: &str, unknown: &[&str]) {
    if !unknown.is_empty() {
        let keys: Vec<String> =
            unknown.iter().take(NAMED).map(|key| key.chars().take(64).collect()).collect();
        tracing::warn!(from, ?keys, total = unknown.len(), "unknown prompt sections are ignored");
    }
}

#[cfg(test)]
mod tests;
