//! What a model is told before the conversation, and with the question.
//!
//! The system prompt is the same over a run and nearly the same over all runs, so that providers can cache it;
//! what changes from question to question, the time, goes along with the question.

use domain::{Image, Message, Part, Role};
use jiff::{Timestamp, tz::TimeZone};

use crate::{config::Config, tools::Offer};

const SECTIONS: [&str; 5] = [
    include_str!("../../prompts/intro.md"),
    include_str!("../../prompts/investigation.md"),
    include_str!("../../prompts/safety.md"),
    include_str!("../../prompts/permissions.md"),
    include_str!("../../prompts/style.md"),
];

/// The agent's own prompt, with what the client adds to it.
pub(crate) fn system(config: &Config, offer: &Offer, addition: &str) -> String {
    let mut prompt = SECTIONS.map(str::trim).join("\n\n");
    if let Some(cluster) = &config.cluster_name {
        prompt.push_str(&format!("\n\nThe tools look at the Kubernetes cluster `{cluster}`."));
    }
    if !offer.instructions.is_empty() {
        prompt.push_str("\n\n# Toolsets");
    }
    for (toolset, text) in offer.instructions.iter() {
        prompt.push_str(&format!("\n\n## {toolset}\n\n{}", text.trim()));
    }
    if !addition.trim().is_empty() {
        prompt.push_str("\n\n");
        prompt.push_str(addition.trim());
    }
    prompt
}

/// The question as a message. `now` is in nanoseconds since the Unix epoch.
pub(crate) fn question(text: &str, images: Vec<Image>, now: i64) -> Message {
    let text = format!("{text}\n\n{}", time_context(now));
    let images = images.into_iter().map(Part::Image);
    Message::new(Role::User, std::iter::once(Part::Text(text)).chain(images).collect())
}

fn time_context(now: i64) -> String {
    let now = Timestamp::from_nanosecond(now.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    let year = now.to_zoned(TimeZone::UTC).year();
    format!(
        "The current UTC date and time are {}. As a Unix timestamp that is {}. A date without a year means one in \
         {year}, unless the context says otherwise. Query tools for the time that the question is about.",
        now.strftime("%Y-%m-%d %H:%M:%S"),
        now.as_second(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_carries_the_time() {
        let message = question("why?", Vec::new(), 1_795_298_067_249_102_000);
        let text = message.joined_text();
        assert!(
            text.starts_with("why?\n\nThe current UTC date and time are 2026-11-21 21:54:27. "),
            "{text}"
        );
        assert!(text.contains(" 1795298067. ") && text.contains(" in 2026,"), "{text}");
    }

    #[test]
    fn the_prompt_ends_with_what_the_client_adds() {
        let config = Config { cluster_name: Some("prod".into()), ..Config::default() };
        let offer = Offer {
            instructions: [("bash".to_owned(), "Only reads.".to_owned())].into(),
            ..Offer::default()
        };
        let prompt = system(&config, &offer, " Answer in French. ");
        assert!(prompt.starts_with("You are Sleuth"), "{prompt}");
        assert!(prompt.contains("cluster `prod`") && prompt.contains("## bash\n\nOnly reads."), "{prompt}");
        assert!(prompt.ends_with("\n\nAnswer in French."), "{prompt}");
    }
}
