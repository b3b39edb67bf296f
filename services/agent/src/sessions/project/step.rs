//! One model call, with all its attempts.

use domain::{Event, MessageId, ModelCalled, Timestamp};
use wire::session::{
    Context, Failure, Message, ModelMetadata, OutputMessageCompleted, OutputMessageDelta,
    OutputMessageStarted, ReasonCompleted, ReasonRecovered, ReasonStarted, ReasonThinkingCompleted,
    ReasonThinkingDelta, ReasonThinkingStarted, Usage, event::Data,
};

use super::{Draft, Projection, millis};
use crate::sessions::{ids, words};

/// A model call that goes on.
pub(super) struct Step {
    pub(super) exec: String,
    pub(super) span: String,
    pub(super) began: Timestamp,
    pub(super) first_text: Option<Timestamp>,
    /// The message that the reply becomes.
    pub(super) message: String,
    /// The run's name of it.
    said_as: MessageId,
    /// Characters of it so far.
    said: u64,
    thinking: Option<String>,
}

impl Step {
    pub(super) fn span_of(&self, operation: &str) -> String {
        ids::named("span_", &format!("{}/{operation}", self.span))
    }

    pub(super) fn completed(
        &self,
        now: Timestamp,
        text: &str,
        calls: usize,
        usage: Option<Usage>,
        error: Option<&str>,
    ) -> Data {
        Data::ReasonCompleted(ReasonCompleted {
            success: error.is_none(),
            has_tool_calls: calls > 0,
            tool_call_count: u32::try_from(calls).unwrap_or(u32::MAX),
            text_preview: words::preview(text),
            error: error.map(str::to_owned),
            duration_ms: Some(millis(self.began, now)),
            usage,
        })
    }
}

impl Projection {
    pub(super) fn called(&mut self, event: &Event, called: &ModelCalled, out: &mut Vec<Draft>) {
        let message = ids::named("message_", &format!("{}/{}", event.run, called.message));
        match self.step.as_mut().filter(|_| called.attempt > 1) {
            Some(step) => {
                let accumulated_len = std::mem::take(&mut step.said);
                step.message.clone_from(&message);
                step.said_as = called.message.clone();
                step.thinking = None;
                let recovered = ReasonRecovered {
                    turn_id: self.ids.turn.clone(),
                    mode: "restart".to_owned(),
                    accumulated_len,
                };
                out.push((self.in_step(), Data::ReasonRecovered(recovered)));
            }
            None => self.begin_step(event, called, message.clone(), out),
        }
        let started = OutputMessageStarted {
            turn_id: self.ids.turn.clone(),
            model: Some(self.model.clone()),
            iteration: Some(self.tally.begun),
            message_id: message,
        };
        out.push((self.in_step(), Data::OutputMessageStarted(started)));
    }

    fn begin_step(&mut self, event: &Event, called: &ModelCalled, message: String, out: &mut Vec<Draft>) {
        self.tally.begun += 1;
        let seed = format!("{}/{}", event.run, event.position);
        let step = Step {
            exec: ids::made_of("exec_", event.time, &seed),
            span: ids::named("span_", &seed),
            began: event.time,
            first_text: None,
            message,
            said_as: called.message.clone(),
            said: 0,
            thinking: None,
        };
        let started = ReasonStarted {
            harness_id: self.ids.harness.clone(),
            agent_id: Some(self.ids.agent.clone()),
            metadata: Some(self.answers()),
        };
        out.push((self.within(&step.exec, &step.span, &self.ids.turn), Data::ReasonStarted(started)));
        self.step = Some(step);
    }

    /// The context of what the model says.
    fn in_step(&self) -> Context {
        let exec_id = self.step.as_ref().map(|step| step.exec.clone()).unwrap_or_default();
        Context { exec_id, ..self.context() }
    }

    fn speaking(&mut self, message: &MessageId) -> Option<&mut Step> {
        self.step.as_mut().filter(|step| step.said_as == *message)
    }

    pub(super) fn thought(&mut self, message: &MessageId, text: &str, out: &mut Vec<Draft>) {
        let Some(step) = self.speaking(message) else { return };
        let begins = step.thinking.is_none();
        step.thinking.get_or_insert_default().push_str(text);
        let (context, turn_id) = (self.in_step(), self.ids.turn.clone());
        if begins {
            let started = ReasonThinkingStarted { turn_id: turn_id.clone(), model: Some(self.model.clone()) };
            out.push((context.clone(), Data::ReasonThinkingStarted(started)));
        }
        let delta = ReasonThinkingDelta { turn_id, delta: text.to_owned(), accumulated: None };
        out.push((context, Data::ReasonThinkingDelta(delta)));
    }

    pub(super) fn said(&mut self, now: Timestamp, message: &MessageId, text: &str, out: &mut Vec<Draft>) {
        self.close_thinking(out);
        let Some(step) = self.speaking(message) else { return };
        step.said += text.chars().count() as u64;
        step.first_text.get_or_insert(now);
        let message_id = step.message.clone();
        self.tally.first_text.get_or_insert(now);
        let delta = OutputMessageDelta {
            turn_id: self.ids.turn.clone(),
            delta: text.to_owned(),
            accumulated: None,
            message_id,
        };
        out.push((self.in_step(), Data::OutputMessageDelta(delta)));
    }

    fn close_thinking(&mut self, out: &mut Vec<Draft>) {
        if let Some(thinking) = self.step.as_mut().and_then(|step| step.thinking.take()) {
            let completed = ReasonThinkingCompleted { turn_id: self.ids.turn.clone(), thinking };
            out.push((self.in_step(), Data::ReasonThinkingCompleted(completed)));
        }
    }

    /// Ends the model call.
    pub(super) fn close_step(&mut self, out: &mut Vec<Draft>) -> Option<Step> {
        self.close_thinking(out);
        self.step.take()
    }

    /// The model that answers.
    fn answers(&self) -> ModelMetadata {
        ModelMetadata { model: self.model.clone(), provider: self.provider() }
    }

    pub(super) fn message_completed(
        &self,
        message: Message,
        usage: Option<Usage>,
        failure: Option<Failure>,
    ) -> Data {
        let metadata = Some(self.answers()).filter(|_| !self.model.is_empty());
        Data::OutputMessageCompleted(OutputMessageCompleted {
            message: Some(message),
            metadata,
            usage,
            failure,
        })
    }
}
