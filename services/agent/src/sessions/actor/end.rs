//! How a turn ends.

use wire::session::{Message, Phase, SessionIdled, TurnCancelled, TurnCompleted, event::Data};

use super::{Actor, input, now, write::Source};
use crate::sessions::{ids, project::Draft, turn::Turn, words};

/// What the conversation says where the client stopped it.
const CANCELLED: &str = "User requested to cancel the work.";

impl Actor {
    /// Ends the turn, and with it the session's work.
    pub(super) async fn end(&mut self, end: Data, before: Vec<Draft>) -> Result<(), store::Error> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let (context, tally) = (turn.projection.context(), &turn.projection.tally);
        let turn_id = turn.projection.ids().turn.clone();
        let usage = tally.usage();
        let mut drafts = before;
        let end = match end {
            Data::TurnCancelled(cancelled) => Data::TurnCancelled(TurnCancelled {
                turn_id: turn_id.clone(),
                usage: Some(usage),
                ..cancelled
            }),
            end => end,
        };
        let synthetic = matches!(end, Data::TurnCancelled(_)) && turn.projection.cancelled().is_some();
        drafts.push((context.clone(), end));
        if synthetic {
            let message = Message {
                id: ids::named("message_", &format!("{turn_id}/cancelled")),
                role: "user".to_owned(),
                content: vec![words::text(CANCELLED)],
                created_at: Some(wire::time(now())),
                ..Message::default()
            };
            drafts.push((context.clone(), input(message)));
        }
        let iterations = Some(tally.answered).filter(|answered| *answered > 0);
        let run_id = turn.run.as_ref().map(|run| run.as_str().to_owned()).unwrap_or_default();
        self.rest.usage = Some(words::sum(self.rest.usage.unwrap_or_default(), usage));
        self.rest.run_id = run_id;
        let idled = SessionIdled { turn_id, iterations, usage: self.rest.usage };
        drafts.push((context, Data::SessionIdled(idled)));
        self.held = None;
        self.append(Source::Own, drafts, Phase::Idle).await?;
        self.turn = None;
        Ok(())
    }
}

pub(super) fn completed(turn: &Turn, answer: &str, reason: &str) -> Data {
    let tally = &turn.projection.tally;
    let termination = match reason {
        "length" | "max_tokens" => "max_tokens",
        ceiling if domain::Ceiling::named(ceiling).is_some() => "max_turn_requests",
        _ => "end_turn",
    };
    Data::TurnCompleted(TurnCompleted {
        turn_id: turn.projection.ids().turn.clone(),
        iterations: tally.answered,
        duration_ms: Some(turn.age(now())),
        usage: Some(tally.usage()),
        input_content: turn.question(),
        final_message_id: tally.final_message.clone(),
        final_answer_preview: words::preview(answer),
        time_to_first_token_ms: tally.first_text.map(|first| turn.age(first)),
        tool_call_count: Some(tally.tool_calls),
        llm_call_count: Some(tally.answered),
        status: Some("completed".to_owned()),
        termination_reason: Some(termination.to_owned()),
        issue_count: Some(tally.issues),
        stop_reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
    })
}
