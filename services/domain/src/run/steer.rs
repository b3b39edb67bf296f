//! What is said to a run while it goes on: the next model call has it, and an answer without it is not the last.

use crate::{Closing, EventKind, Message, Steered, Step};

use super::state::Run;

impl Run {
    pub(super) fn steered(&mut self, step: &mut Step, steered: Steered) {
        if self.outcome().is_none() {
            self.publish(step, EventKind::Steered(steered));
        }
    }

    /// Somebody said something that the model is to hear.
    pub(super) fn queue(&mut self, message: &Message) {
        self.context.add(message);
        self.unheard.push(message.clone());
    }

    /// What was said becomes part of the conversation that the model is asked about.
    pub(super) fn hear(&mut self) {
        self.messages.append(&mut self.unheard);
    }

    /// The model has answered: the run ends with it, unless something was said since it was asked and the run may go
    /// on.
    pub(super) fn answered(
        &mut self,
        step: &mut Step,
        answer: String,
        reason: String,
        closing: Option<Closing>,
    ) {
        if self.unheard.is_empty() || matches!(closing, Some(Closing::Ceiling(_))) {
            self.end(step, EventKind::RunFinished { answer, reason });
        } else {
            self.ask(step, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    fn said(text: &str) -> Input {
        Input::Steered(Steered {
            key: text.into(),
            message: Message::text(Role::User, text),
            principal: String::new(),
        })
    }

    fn replied(step: &Step, text: &str) -> Input {
        let Some(Effect::CallModel { message, .. }) = step.effects.last() else { panic!("{step:?}") };
        let reply = ModelReply {
            message: Message::text(Role::Assistant, text),
            usage: Usage::default(),
            finish_reason: "stop".into(),
            in_form: true,
            exchange: Exchange::default(),
        };
        Input::ModelReplied { message: message.clone(), reply }
    }

    #[test]
    fn what_is_said_before_the_answer_is_answered_too_and_once() {
        let mut run = Run::new(Limits::default());
        run.messages.push(Message::text(Role::User, "why?"));
        let begun = run.step(Input::Begin);
        let answer = replied(&begun, "so");
        run.step(said("and this?"));
        assert_eq!(run.messages().len(), 1, "the model was asked without it");
        let lost = run.step(Input::TakenOver);
        let texts = |run: &Run| run.messages().iter().map(Message::joined_text).collect::<Vec<_>>();
        assert_eq!(texts(&run), ["why?", "and this?"], "a call that is made again has it");
        assert_eq!(run.step(answer), Step::default());
        run.step(said("and that?"));
        let goes_on = run.step(replied(&lost, "so"));
        assert_eq!(texts(&run), ["why?", "and this?", "so", "and that?"]);
        let end = run.step(replied(&goes_on, "that, too"));
        assert!(
            matches!(end.events.last(), Some(EventKind::RunFinished { answer, .. }) if answer == "that, too")
        );
        assert_eq!(run.step(said("too late")), Step::default());
    }

    #[test]
    fn no_word_lifts_a_ceiling() {
        let mut run = Run::new(Limits { steps: 1, ..Limits::default() });
        run.messages.push(Message::text(Role::User, "why?"));
        let begun = run.step(Input::Begin);
        run.step(said("and this?"));
        let end = run.step(replied(&begun, "so"));
        assert!(matches!(end.events.last(), Some(EventKind::RunFinished { .. })), "{end:?}");
    }
}
