//! What a model is told before the conversation, and with the question.
//!
//! The system prompt is the same over a run and nearly the same over all runs, so that providers can cache it;
//! what changes from question to question, such as the time, goes along with the question.

pub(crate) mod rlm;
mod section;

use domain::{Message, Part, Role};
use jiff::{Timestamp, tz::TimeZone};

use crate::{runbooks::Runbooks, tools::Offer};

pub use section::EnabledPrompts;
pub(crate) use section::Sections;
use section::{Place, Section};

/// Comes after the question, before everything that is added to it.
const ADDED: &str = "\n\n# Added by Sleuth\n\n";
/// Name of the tool that keeps a list of tasks.
const TODO_TOOL: &str = "TodoWrite";

/// A text file that belongs to the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub name: String,
    pub text: String,
}

/// Everything that a prompt may speak of.
#[derive(Clone, Copy)]
pub(crate) struct Prompt<'a> {
    pub sections: &'a Sections,
    pub cluster_name: Option<&'a str>,
    /// The clusters among which each call chooses, if there are several.
    pub clusters: &'a [String],
    pub offer: &'a Offer,
    pub runbooks: &'a Runbooks,
    /// Ids of those that the question is about.
    pub matching: &'a [String],
    /// What the client adds to the system prompt.
    pub addition: &'a str,
    pub files: &'a [File],
    /// Whether the runbooks are announced as skills, before the conversation and not with the question.
    pub announces_skills: bool,
    /// In nanoseconds since the Unix epoch.
    pub now: i64,
}

impl Prompt<'_> {
    /// The system prompt; empty if all of its sections are off.
    pub(crate) fn system(&self) -> String {
        let skills = match self.announces_skills && self.sections.offer_runbooks() {
            true => about("{skills}", &self.skills(), include_str!("../../prompts/skills.md")),
            false => String::new(),
        };
        [self.told(Place::System), skills]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    /// The question as a message.
    pub(crate) fn question(&self, text: &str, media: Vec<Part>) -> Message {
        let added = self.told(Place::User);
        let text = if added.is_empty() { text.to_owned() } else { format!("{text}{ADDED}{added}") };
        Message::new(Role::User, std::iter::once(Part::Text(text)).chain(media).collect())
    }

    fn told(&self, place: Place) -> String {
        let texts = self.sections.of(place).map(|section| self.text(section));
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// What a section says; nothing where there is nothing to be said.
    fn text(&self, section: Section) -> String {
        match section {
            Section::Intro => fixed(include_str!("../../prompts/intro.md")),
            Section::AskUser => fixed(include_str!("../../prompts/ask_user.md")),
            Section::GeneralInstructions => fixed(include_str!("../../prompts/general_instructions.md")),
            Section::ClusterName if !self.clusters.is_empty() => {
                let names: Vec<_> = self.clusters.iter().map(|name| format!("`{name}`")).collect();
                about("{clusters}", &names.join(", "), include_str!("../../prompts/clusters.md"))
            }
            Section::ClusterName => {
                let name = self.cluster_name.unwrap_or_default();
                about("{cluster_name}", name, include_str!("../../prompts/cluster_name.md"))
            }
            Section::TodowriteInstructions => {
                self.if_tasks_can_be_kept(include_str!("../../prompts/todowrite_instructions.md"))
            }
            Section::AiSafety => fixed(include_str!("../../prompts/ai_safety.md")),
            Section::ToolsetInstructions => {
                about("{toolsets}", &self.toolsets(), include_str!("../../prompts/toolset_instructions.md"))
            }
            Section::PermissionErrors => fixed(include_str!("../../prompts/permission_errors.md")),
            Section::StyleGuide => fixed(include_str!("../../prompts/style_guide.md")),
            Section::SystemPromptAdditions => fixed(self.addition),
            Section::Files => about("{files}", &self.attached(), include_str!("../../prompts/files.md")),
            Section::TodowriteReminder => {
                self.if_tasks_can_be_kept(include_str!("../../prompts/todowrite_reminder.md"))
            }
            Section::TimeRunbooks if self.announces_skills => self.time(),
            Section::TimeRunbooks => {
                let runbooks =
                    about("{runbooks}", &self.catalogue(), include_str!("../../prompts/runbooks.md"));
                fixed(&format!("{}\n\n{runbooks}", self.time()))
            }
        }
    }

    fn if_tasks_can_be_kept(&self, text: &str) -> String {
        let can = self.offer.specs.iter().any(|spec| spec.name == TODO_TOOL);
        if can { fixed(text) } else { String::new() }
    }

    fn toolsets(&self) -> String {
        let toolsets = self.offer.instructions.iter();
        let toolsets = toolsets.map(|(name, text)| format!("## {name}\n\n{}", text.trim()));
        toolsets.collect::<Vec<_>>().join("\n\n")
    }

    fn attached(&self) -> String {
        let files = self.files.iter().map(|File { name, text }| {
            let fence = fence(text);
            let name = name.replace(char::is_control, " ");
            format!("`{name}`:\n\n{fence}\n{}\n{fence}", text.trim_end())
        });
        files.collect::<Vec<_>>().join("\n\n")
    }

    fn catalogue(&self) -> String {
        let runbooks = self.runbooks.iter().map(|(id, runbook)| format!("- `{id}`: {}", runbook.description));
        let catalogue = runbooks.collect::<Vec<_>>().join("\n");
        if self.matching.is_empty() {
            return catalogue;
        }
        let matching: Vec<_> = self.matching.iter().map(|id| format!("`{id}`")).collect();
        format!("{catalogue}\n\nThe question seems to be about {}.", matching.join(", "))
    }

    /// The catalogue in the form that agents of many makers are told of skills.
    fn skills(&self) -> String {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let skills = self.runbooks.iter().map(|(name, skill)| {
            let (name, description) = (escaped(name), escaped(&skill.description));
            format!(
                "  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n  </skill>"
            )
        });
        skills.collect::<Vec<_>>().join("\n")
    }

    fn time(&self) -> String {
        let now = Timestamp::from_nanosecond(self.now.into()).unwrap_or(Timestamp::UNIX_EPOCH);
        fixed(include_str!("../../prompts/time.md"))
            .replace("{now}", &now.strftime("%Y-%m-%d %H:%M:%S").to_string())
            .replace("{unix}", &now.as_second().to_string())
            .replace("{year}", &now.to_zoned(TimeZone::UTC).year().to_string())
    }
}

fn fixed(text: &str) -> String {
    text.trim().to_owned()
}

/// A template about something; nothing if there is nothing of it.
fn about(placeholder: &str, what: &str, template: &str) -> String {
    if what.trim().is_empty() { String::new() } else { fixed(template).replace(placeholder, what) }
}

/// A fence that no line of a text can be taken for.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests;
