//! A conversation that is too long: a summary, written by the model, takes its place.

use crate::{
    CompactionDone, CompactionStarted, Effect, EventKind, FailureCode, Message, MessageId, ModelReply, Part,
    Role, Step, Totals, UsageReported, tokens,
};

use super::{
    state::{Phase, Run},
    text,
};

/// What a model is asked for a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRequest {
    /// What it has to do.
    pub instruction: &'static str,
    /// The conversation as one text, cut so that it fits.
    pub transcript: String,
}

impl Run {
    /// The conversation as a model gets it. Providers take system messages out of its course, and what is left
    /// must not end with the model's own words.
    pub fn prompt(&self) -> Vec<Message> {
        let mut messages = self.messages.clone();
        for message in &mut messages {
            if message.role == Role::System && message.joined_text() == text::COMPACTED {
                message.role = Role::User;
            }
        }
        messages
    }

    /// The request that [`Effect::Summarize`] stands for.
    pub fn summary_request(&self) -> SummaryRequest {
        let instruction = text::SUMMARIZE;
        let room = self.window.saturating_sub(self.reserve).saturating_sub(tokens::of_text(instruction));
        // Some room is left for what the estimate gets wrong.
        let transcript = transcript(&self.messages[self.instructions().len()..], room / 10 * 9);
        SummaryRequest { instruction, transcript }
    }

    /// Asks the model; first for a summary if the conversation is too long.
    pub(super) fn ask(&mut self, step: &mut Step, time_is_up: bool) {
        match self.limits.compaction_percent {
            Some(percent) if self.is_above(percent) && self.can_shrink() => {
                let message = MessageId::new(self.own(&format!("summary_{}", self.steps.saturating_add(1))));
                step.effects.push(Effect::Summarize { message: message.clone() });
                let started = CompactionStarted {
                    message,
                    tokens: self.context.total(),
                    messages: self.messages.len() as u64,
                    threshold_percent: percent,
                    time_is_up,
                };
                self.publish(step, EventKind::CompactionStarted(started));
            }
            Some(_) | None => self.ask_now(step, time_is_up),
        }
    }

    pub(super) fn is_compacting(&self, message: &MessageId) -> bool {
        matches!(&self.phase, Phase::Compacting(started) if started.message == *message)
    }

    /// The summary is there; it counts if it is shorter than what it stands for.
    pub(super) fn summarized(&mut self, step: &mut Step, reply: &ModelReply) {
        let Phase::Compacting(started) = self.phase.clone() else { return };
        let totals = self.totals.plus(reply.usage);
        let summary = reply.message.joined_text().trim().to_owned();
        let messages = self.compacted(&summary);
        let size = self.size_of(&messages);
        if summary.is_empty() || size.total() >= started.tokens {
            let reason = text::NOTHING_GAINED.to_owned();
            self.publish(step, EventKind::CompactionFailed { message: started.message, reason });
            self.count_summary(step, reply, totals);
        } else {
            let text = text::compacted(started.tokens, size.total());
            let done = CompactionDone {
                message: started.message,
                summary,
                messages,
                tokens_before: started.tokens,
                tokens_after: size.total(),
                usage: reply.usage,
            };
            self.publish(step, EventKind::CompactionDone(done));
            self.publish(step, EventKind::Notice { text });
            let compactions = totals.compactions.saturating_add(1);
            self.count_summary(step, reply, Totals { compactions, ..totals });
        }
        self.ask_now(step, started.time_is_up);
    }

    fn count_summary(&mut self, step: &mut Step, reply: &ModelReply, totals: Totals) {
        let report = UsageReported { usage: reply.usage, totals, context: self.context };
        self.publish(step, EventKind::UsageReported(report));
    }

    /// There will be no summary: what fits without one goes on.
    pub(super) fn not_compacted(&mut self, step: &mut Step, reason: String, time_is_up: bool) {
        let Phase::Compacting(started) = self.phase.clone() else { return };
        self.publish(step, EventKind::CompactionFailed { message: started.message, reason });
        self.ask_now(step, started.time_is_up || time_is_up);
    }

    /// Whether the conversation and a reply fit into the window.
    pub(super) fn fits(&self) -> bool {
        !self.is_above(100)
    }

    /// How a run ends whose conversation does not fit.
    pub(super) fn too_long(&self) -> EventKind {
        let compacts = self.limits.compaction_percent.is_some();
        let message = text::too_long(self.context.total(), self.reserve, self.window, compacts);
        EventKind::RunFailed { code: FailureCode::ContextTooLong, message }
    }

    /// Whether the conversation and a reply need more than this share of the window.
    fn is_above(&self, percent: u64) -> bool {
        let needed = u128::from(self.context.total()) + u128::from(self.reserve);
        self.window > 0 && needed * 100 > u128::from(self.window) * u128::from(percent)
    }

    /// Whether there is more than what every compaction keeps.
    fn can_shrink(&self) -> bool {
        self.messages.len() > self.kept().count()
    }

    /// The client's instructions at the start.
    fn instructions(&self) -> &[Message] {
        let end = self.messages.iter().take_while(|message| message.role == Role::System).count();
        &self.messages[..end]
    }

    /// What stays as it is: the instructions and the last question.
    fn kept(&self) -> impl Iterator<Item = &Message> {
        let question = self.messages.iter().rfind(|message| message.role == Role::User);
        self.instructions().iter().chain(question)
    }

    fn compacted(&self, summary: &str) -> Vec<Message> {
        let summary = Message::text(Role::Assistant, summary);
        let marker = Message::text(Role::System, text::COMPACTED);
        self.kept().cloned().chain([summary, marker]).collect()
    }
}

/// A conversation as one text of about `room` tokens at most: the longest messages are cut first.
fn transcript(messages: &[Message], room: u64) -> String {
    let texts: Vec<_> = messages.iter().map(spoken).collect();
    let sizes: Vec<_> = texts.iter().map(|text| tokens::of_text(text)).collect();
    let mut most = sizes.iter().copied().max().unwrap_or(0);
    while most > 0 && sizes.iter().map(|size| *size.min(&most)).sum::<u64>() > room {
        most -= most.div_ceil(8);
    }
    texts.iter().zip(sizes).map(|(text, size)| shortened(text, size, most)).collect()
}

fn shortened(text: &str, size: u64, most: u64) -> String {
    if size <= most {
        return text.to_owned();
    }
    let keep = (text.len() as u64).saturating_mul(most) / size;
    let cut = text.floor_char_boundary(usize::try_from(keep).unwrap_or(usize::MAX));
    format!("{} […]\n\n", &text[..cut])
}

fn spoken(message: &Message) -> String {
    let mut text = match (message.role, &message.answers) {
        (Role::Tool, Some((call, tool))) => format!("## Result of {tool} ({call})\n\n"),
        (Role::Tool, None) => "## Result of a tool\n\n".to_owned(),
        (Role::System, _) => "## Instructions\n\n".to_owned(),
        (Role::User, _) => "## User\n\n".to_owned(),
        (Role::Assistant, _) => "## Assistant\n\n".to_owned(),
    };
    for part in &message.parts {
        match part {
            Part::Text(said) => text.push_str(said),
            Part::Image(_) => text.push_str("[an image]"),
            Part::Document(_) => text.push_str("[a document]"),
            Part::Thinking(_) => {}
        }
    }
    for call in &message.tool_calls {
        text.push_str(&format!("\n[calls {} with {}]", call.name, call.arguments));
    }
    text.push_str("\n\n");
    text
}

#[cfg(test)]
mod tests;
