//! What others say to the owner of a session.

use domain::{CallId, RunId, Steered};
use prost::Message as _;
use store::Posted;
use wire::session::{
    Context, Letter, Message, Phase, SessionActivated, SessionStarted, TurnStarted, event::Data, letter,
};

use super::{Actor, cancelled, input, now, write::Source};
use crate::{
    runs::NotSteered,
    sessions::{
        ids, standing,
        turn::{Doing, INTERRUPTED, Said, Turn},
    },
};

/// What was said, as the model hears it.
pub(super) struct Heard {
    pub sequence: u64,
    pub message: domain::Message,
    pub principal: String,
}

impl Actor {
    /// What has come and was not heard yet.
    pub(super) async fn letters(&mut self) -> Result<Vec<Posted>, store::Error> {
        let newest = self.head.borrow_and_update().inbox;
        if newest <= self.heard {
            return Ok(Vec::new());
        }
        let letters = self.sessions.store().posted(&self.log, self.heard).await?;
        if letters.is_empty() {
            // They were taken before.
            self.heard = newest;
        }
        Ok(letters)
    }

    pub(super) async fn hear(&mut self, posted: Posted) -> Result<(), store::Error> {
        let Posted { entry, key, payload } = posted;
        let known = self.turn.as_ref().is_some_and(|turn| turn.causes.contains(&key));
        let Letter { content, principal, .. } = Letter::decode(payload.as_slice()).unwrap_or_default();
        self.heard = entry;
        match content {
            Some(letter::Content::Message(message)) if !known => {
                self.hear_message(&key, message, principal).await
            }
            Some(letter::Content::Cancel(reason)) => self.cancel(entry, &key, reason).await,
            Some(letter::Content::Result(result)) => {
                let id = CallId::new(&*result.tool_call_id);
                self.settle(entry, &key, &id, known, |turn| Some(turn.bring(&id, &result))).await?;
                Ok(())
            }
            Some(letter::Content::Decision(decision)) => {
                let id = CallId::new(&*decision.tool_call_id);
                let standing = decision.standing_grants.clone();
                if self.settle(entry, &key, &id, known, |turn| turn.decide(&id, decision)).await? {
                    standing::add(&mut self.rest.standing_grants, standing, now());
                }
                Ok(())
            }
            Some(letter::Content::Message(_)) | None => {
                self.append(Source::Own, Vec::new(), self.phase()).await
            }
        }
    }

    /// A message begins a turn, or joins the one that goes on, unless that waits for the client.
    pub(super) async fn hear_message(
        &mut self,
        key: &str,
        message: Message,
        principal: String,
    ) -> Result<(), store::Error> {
        if matches!(self.turn.as_ref().map(|turn| &turn.doing), Some(Doing::Waiting(_))) {
            let entry = self.heard;
            self.heard = entry.saturating_sub(1);
            let drafts = self.close_calls("cancelled", INTERRUPTED);
            self.end(cancelled("the user said something new"), drafts).await?;
            self.heard = entry;
        }
        if self.turn.is_some() {
            return self.join(key, message, principal).await;
        }
        self.begin_turn(key, message, principal).await
    }

    pub(super) async fn join(
        &mut self,
        key: &str,
        message: Message,
        principal: String,
    ) -> Result<(), store::Error> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        let draft = (turn.projection.context(), input(message.clone()));
        let said = Said { sequence: self.position + 1, message, principal };
        self.append(Source::Said(key, &said.principal), vec![draft], self.phase()).await?;
        if let Some(turn) = &mut self.turn {
            turn.said.push(said);
        }
        self.tell_run().await
    }

    /// Tells the run that goes on what was said since it began. What it does not hear is for the next run.
    pub(super) async fn tell_run(&mut self) -> Result<(), store::Error> {
        let run = match self.turn.as_ref().map(|turn| &turn.doing) {
            Some(Doing::Following(following)) => following.run.clone(),
            Some(Doing::Beginning | Doing::Waiting(_)) | None => return Ok(()),
        };
        for Heard { sequence, message, principal } in self.heard(Turn::untold).await? {
            let runs = self.sessions.runs();
            let Some(found) = runs.find(&run, &self.account).await? else { break };
            match runs.steer(found, Steered { key: sequence.to_string(), message, principal }).await {
                Ok(()) | Err(NotSteered::OtherMessage) => {}
                Err(NotSteered::Over(_) | NotSteered::Blind(_)) => break,
                Err(NotSteered::Store(error)) => return Err(error),
            }
            if let Some(turn) = &mut self.turn {
                turn.told = sequence;
            }
        }
        Ok(())
    }

    /// Some of what was said in the turn, as the model hears it.
    pub(super) async fn heard(
        &mut self,
        some: impl Fn(&Turn) -> &[Said],
    ) -> Result<Vec<Heard>, store::Error> {
        let said = self.turn.as_ref().map(|turn| some(turn).to_vec()).unwrap_or_default();
        let mut heard = Vec::new();
        for Said { sequence, message, principal } in said {
            let message = self.sessions.for_model(&self.account, &message).await?;
            heard.push(Heard { sequence, message, principal });
        }
        Ok(heard)
    }

    pub(super) async fn begin_turn(
        &mut self,
        key: &str,
        message: Message,
        principal: String,
    ) -> Result<(), store::Error> {
        let settings = self.sessions.details(&self.log).await?.settings.unwrap_or_default();
        self.settings = self.sessions.with_agent(&self.account, settings).await?;
        let now = now();
        let turn_id = ids::made_of("turn_", now, &format!("{}/{}", self.log, message.id));
        let ids = self.turn_ids(turn_id.clone(), message.id.clone());
        let run = (!self.rest.run_id.is_empty()).then(|| RunId::new(&*self.rest.run_id));
        let first =
            Said { sequence: self.position + 1, message: message.clone(), principal: principal.clone() };
        let turn = Turn::new(ids, first, now, run, self.told());
        let mut drafts = vec![(Context::default(), input(message.clone()))];
        if self.position == 0 {
            let started = SessionStarted {
                harness_id: turn.projection.ids().harness.clone(),
                agent_id: Some(turn.projection.ids().agent.clone()),
                model_id: Some(self.settings.model.clone()).filter(|model| !model.is_empty()),
            };
            drafts.push((Context::default(), Data::SessionStarted(started)));
        }
        let context = turn.projection.context();
        let input_message_id = message.id.clone();
        let activated = SessionActivated { turn_id: turn_id.clone(), input_message_id };
        drafts.push((context.clone(), Data::SessionActivated(activated)));
        let started = TurnStarted { turn_id, input_message_id: message.id, input_content: turn.question() };
        drafts.push((context, Data::TurnStarted(started)));
        self.turn = Some(turn);
        self.append(Source::Said(key, &principal), drafts, Phase::Active).await
    }
}
