//! The owner of a session while a turn goes on: it begins the runs of the turn, makes the session's events of theirs,
//! and hears what others say.

mod ask;
mod end;
mod write;

use std::{sync::Arc, time::Duration};

use domain::{CallId, LogId, RunId, Timestamp};
use futures_util::StreamExt as _;
use prost::Message as _;
use runtime::clock;
use store::{Head, Lease, Posted, tail};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use wire::session::{
    Context, Letter, Phase, Rest, SessionActivated, SessionSettings, SessionStarted, TurnCancelled,
    TurnFailed, TurnSealed, TurnStarted, event::Data, letter,
};

use super::{
    Sessions,
    failure::Cause,
    ids,
    project::{Draft, Ending, Providers, Settlement, TurnIds},
    record::Standing,
    turn::{Doing, Following, INTERRUPTED, STOPPED, TOO_LATE, Turn, conversation, given_to},
};
use crate::runs::Refusal;
use end::completed;
use write::Source;

/// Events of a run that are made into events of its session at a time.
const CHUNK: usize = 64;
/// How long a turn waits for the client's tools, and for a person.
const CLIENT_TIME: Duration = Duration::from_secs(300);
const PERSON_TIME: Duration = Duration::from_secs(15 * 60);
/// How long after its ceilings a run counts as lost.
const SLACK: Duration = Duration::from_secs(300);

/// The owner of a session.
pub(super) struct Actor {
    sessions: Arc<Sessions>,
    lease: Lease,
    log: LogId,
    account: String,
    principal: String,
    settings: SessionSettings,
    providers: Providers,
    position: u64,
    rest: Rest,
    turn: Option<Turn>,
    head: watch::Receiver<Head>,
    /// Letters up to here were heard.
    heard: u64,
    /// Letters after this one would be lost with this process; none if they would not.
    held: Option<u64>,
}

impl Actor {
    /// Takes a session over.
    pub(super) async fn new(
        sessions: Arc<Sessions>,
        lease: Lease,
        principal: String,
        settings: SessionSettings,
    ) -> Result<Self, store::Error> {
        let (store, log) = (sessions.store(), lease.log().clone());
        let head = store.head(&log).await?;
        let entry = store.entry(&log).await?;
        let standing = Standing::of(&*store, &log, entry.position).await?;
        let providers = sessions.providers();
        let mut actor = Self {
            account: entry.meta.account,
            position: standing.position,
            rest: standing.rest.clone(),
            sessions,
            lease,
            log,
            principal,
            settings,
            providers: Arc::clone(&providers),
            turn: None,
            head,
            heard: 0,
            held: None,
        };
        if let Some(turn) = standing.turn_id() {
            let input = standing.turn.first().and_then(|entry| match entry.data() {
                Some(Data::InputMessage(input)) => input.message.as_ref(),
                _ => None,
            });
            let ids =
                actor.turn_ids(turn.to_owned(), input.map(|message| message.id.clone()).unwrap_or_default());
            let taken = Turn::taken_over(&*store, &standing, ids, providers).await?;
            if let Some((turn, seen)) = taken {
                actor.turn = Some(turn);
                actor.resume(seen).await?;
            }
        }
        Ok(actor)
    }

    /// Works until there is nothing to do, and gives the session up.
    pub(super) async fn work(mut self) -> Result<(), store::Error> {
        loop {
            for letter in self.letters().await? {
                self.hear(letter).await?;
            }
            let Some(turn) = &mut self.turn else { break };
            match &mut turn.doing {
                Doing::Beginning => self.begin_run().await?,
                Doing::Following(following) => {
                    let until = following.until;
                    tokio::select! {
                        events = following.events.next() => match events {
                            Some(events) => self.follow(events?).await?,
                            None => self.run_over().await?,
                        },
                        came = comes(&mut self.head, self.heard, &self.log) => came?,
                        () = sleep_until(until) => self.run_over().await?,
                    }
                }
                Doing::Waiting(until) => {
                    let until = *until;
                    tokio::select! {
                        () = sleep_until(until) => self.time_out().await?,
                        came = comes(&mut self.head, self.heard, &self.log) => came?,
                    }
                }
            }
        }
        self.sessions.store().release(self.lease).await
    }

    /// What has come and was not heard yet.
    async fn letters(&mut self) -> Result<Vec<Posted>, store::Error> {
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

    async fn hear(&mut self, posted: Posted) -> Result<(), store::Error> {
        let Posted { entry, key, payload } = posted;
        let known = self.turn.as_ref().is_some_and(|turn| turn.causes.contains(&key));
        let content = Letter::decode(payload.as_slice()).ok().and_then(|letter| letter.content);
        self.heard = entry;
        match content {
            Some(letter::Content::Message(message)) if !known => self.hear_message(&key, message).await,
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
                    self.rest.standing_grants.extend(standing);
                }
                Ok(())
            }
            Some(letter::Content::Message(_)) | None => {
                self.append(Source::Own, Vec::new(), self.phase()).await
            }
        }
    }

    /// A message begins a turn, or joins the one that goes on, unless that waits for the client.
    async fn hear_message(&mut self, key: &str, message: wire::session::Message) -> Result<(), store::Error> {
        if matches!(self.turn.as_ref().map(|turn| &turn.doing), Some(Doing::Waiting(_))) {
            let entry = self.heard;
            self.heard = entry.saturating_sub(1);
            let drafts = self.close_calls("cancelled", INTERRUPTED);
            self.end(cancelled("the user said something new"), drafts).await?;
            self.heard = entry;
        }
        if self.turn.is_some() {
            return self.join(key, message).await;
        }
        self.begin_turn(key, message).await
    }

    async fn join(&mut self, key: &str, message: wire::session::Message) -> Result<(), store::Error> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        let said = super::turn::Said { sequence: self.position + 1, message: message.clone() };
        let draft = (turn.projection.context(), input(message));
        self.append(Source::Letter(key), vec![draft], self.phase()).await?;
        if let Some(turn) = &mut self.turn {
            turn.said.push(said);
        }
        Ok(())
    }

    async fn begin_turn(&mut self, key: &str, message: wire::session::Message) -> Result<(), store::Error> {
        self.settings = self.sessions.details(&self.log).await?.settings.unwrap_or_default();
        let (now, first) = (now(), self.position + 1);
        let turn_id = ids::made_of("turn_", now, &format!("{}/{}", self.log, message.id));
        let ids = self.turn_ids(turn_id.clone(), message.id.clone());
        let run = (!self.rest.run_id.is_empty()).then(|| RunId::new(&*self.rest.run_id));
        let turn = Turn::new(ids, message.clone(), first, now, run, Arc::clone(&self.providers));
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
        self.append(Source::Letter(key), drafts, Phase::Active).await
    }

    fn turn_ids(&self, turn: String, input_message: String) -> TurnIds {
        let SessionSettings { harness_id, agent_id, .. } = &self.settings;
        let or = |id: &String, usual: &str| if id.is_empty() { usual.to_owned() } else { id.clone() };
        TurnIds {
            turn,
            input_message,
            harness: or(harness_id, wire::HARNESS_ID),
            agent: or(agent_id, wire::AGENT_ID),
        }
    }

    /// Begins the next run of the turn. One that was begun before is followed.
    async fn begin_run(&mut self) -> Result<(), store::Error> {
        let store = self.sessions.store();
        let before = self.turn.as_ref().map_or(0, |turn| turn.began_at.saturating_sub(1));
        let history = match self.turn.as_ref().and_then(|turn| turn.run.clone()) {
            Some(run) => match conversation(&*store, &run).await {
                Err(store::Error::UnknownLog(_)) => self.sessions.remembered(&self.log, before).await?,
                told => told?,
            },
            None => Vec::new(),
        };
        let Some(question) = self.turn.as_ref().map(|turn| self.question(turn, history)) else {
            return Ok(());
        };
        match self.sessions.runs().start(question).await {
            Ok(reading) => {
                let run = reading.run().clone();
                if let Some(turn) = &mut self.turn {
                    turn.begins(run.clone());
                }
                self.held = None;
                let first = store.read(&LogId::from(&run), 0, std::num::NonZeroUsize::MIN).await?;
                let given = first.first().and_then(|event| given_to(event));
                self.follow_from(reading, 0, given);
                Ok(())
            }
            Err(Refusal::Log(error)) => Err(error),
            Err(Refusal::ShuttingDown) => Err(store::Error::Unavailable("this agent is closing".to_owned())),
            Err(refusal) => {
                tracing::warn!(session = %self.log, %refusal, "a turn cannot be answered");
                let cause = Cause::from(&refusal);
                let apology = self.turn.as_ref().map(|turn| turn.projection.apology(now(), cause));
                let end = self.failed(cause);
                self.end(end, apology.into_iter().collect()).await
            }
        }
    }

    fn follow_from(&mut self, reading: crate::runs::Reading, seen: u64, given: Option<u64>) {
        let Some(turn) = &mut self.turn else { return };
        let run = reading.run().clone();
        let events = tail(self.sessions.store(), &run, seen).ready_chunks(CHUNK);
        let events = events.map(|chunk| chunk.into_iter().collect::<Result<Vec<_>, _>>());
        turn.given = given.unwrap_or(turn.given);
        let limits = self.sessions.runs().config().limits;
        let until = Instant::now() + limits.wall_time + limits.answer_time + SLACK;
        let events = events.boxed();
        turn.doing = Doing::Following(Box::new(Following { run, events, until, _reading: reading }));
    }

    /// Makes the session's events of a run's.
    async fn follow(&mut self, events: Vec<Arc<domain::Event>>) -> Result<(), store::Error> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        let Doing::Following(following) = &mut turn.doing else { return Ok(()) };
        let run = following.run.clone();
        let mut entries = Vec::new();
        for event in events {
            let drafts = turn.projection.apply(&event);
            entries.extend(drafts.into_iter().map(|draft| (event.position, draft)));
        }
        let ending = turn.projection.ending().cloned();
        self.append_run(&run, entries).await?;
        match ending {
            Some(_) => self.run_over().await,
            None => Ok(()),
        }
    }

    /// Goes on where another process was lost.
    async fn resume(&mut self, seen: u64) -> Result<(), store::Error> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        if turn.ending().is_some() {
            return self.run_over().await;
        }
        let Some(run) = turn.run.clone().filter(|_| turn.runs > 0) else { return Ok(()) };
        match self.sessions.runs().find(&run, &self.account).await? {
            Some(found) => {
                let reading = self.sessions.runs().read(found);
                self.follow_from(reading, seen, None);
                Ok(())
            }
            None => self.end(self.failed(Cause::Other), Vec::new()).await,
        }
    }

    /// The newest run has ended: the turn waits, goes on with another run, or ends.
    async fn run_over(&mut self) -> Result<(), store::Error> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        match turn.ending().cloned() {
            Some(Ending::Suspended) => {
                let (calls, approvals) = turn.waits_for();
                let time = if approvals.is_empty() { CLIENT_TIME } else { PERSON_TIME };
                turn.doing = if calls.is_empty() && approvals.is_empty() {
                    Doing::Beginning
                } else {
                    Doing::Waiting(Instant::now() + time)
                };
                Ok(())
            }
            Some(Ending::Answered { .. }) if !turn.unheard().is_empty() => {
                turn.doing = Doing::Beginning;
                Ok(())
            }
            Some(Ending::Answered { answer, reason }) => {
                let end = completed(turn, &answer, &reason);
                self.end(end, Vec::new()).await
            }
            Some(Ending::Failed(cause)) => {
                let end = self.failed(cause);
                self.end(end, Vec::new()).await
            }
            Some(Ending::Sealed(detail)) => {
                let sealed = TurnSealed {
                    turn_id: turn.projection.ids().turn.clone(),
                    reason: "no_progress".to_owned(),
                    detail: Some(detail),
                    iterations: Some(turn.projection.tally.answered),
                    usage: Some(turn.projection.tally.usage()),
                };
                self.end(Data::TurnSealed(sealed), Vec::new()).await
            }
            Some(Ending::Cancelled { reason }) => self.end(cancelled(&reason), Vec::new()).await,
            None => self.end(self.failed(Cause::Other), Vec::new()).await,
        }
    }

    /// Something came for a call. Whether it waited for that.
    async fn settle(
        &mut self,
        entry: u64,
        key: &str,
        id: &CallId,
        known: bool,
        bring: impl FnOnce(&mut Turn) -> Option<Settlement>,
    ) -> Result<bool, store::Error> {
        let phase = self.phase();
        let Some(turn) = &mut self.turn else {
            self.append(Source::Own, Vec::new(), phase).await?;
            return Ok(false);
        };
        let (calls, approvals) = turn.waits_for();
        if !known && !calls.contains(id) && !approvals.contains(id) {
            return Ok(false);
        }
        // What was brought is safe once the next run has it.
        self.held.get_or_insert(entry - 1);
        let settled = bring(turn).filter(|_| !known);
        let drafts = settled.map(|settled| turn.projection.settle(now(), id, &settled)).unwrap_or_default();
        turn.causes.insert(key.to_owned());
        if !drafts.is_empty() {
            self.append(Source::Letter(key), drafts, phase).await?;
        }
        self.go_on_if_settled();
        Ok(true)
    }

    fn go_on_if_settled(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        let (calls, approvals) = turn.waits_for();
        if calls.is_empty() && approvals.is_empty() && matches!(turn.doing, Doing::Waiting(_)) {
            turn.doing = Doing::Beginning;
        }
    }

    /// The client did not come in time.
    async fn time_out(&mut self) -> Result<(), store::Error> {
        let drafts = self.close_calls("timeout", TOO_LATE);
        self.append(Source::Own, drafts, Phase::Active).await?;
        self.go_on_if_settled();
        Ok(())
    }

    /// Ends the calls that wait.
    fn close_calls(&mut self, status: &'static str, why: &str) -> Vec<Draft> {
        let Some(turn) = &mut self.turn else { return Vec::new() };
        let (calls, approvals) = turn.waits_for();
        let mut drafts = Vec::new();
        for id in calls.iter().chain(&approvals) {
            let settled = turn.deny(status, id, why);
            drafts.extend(turn.projection.settle(now(), id, &settled));
        }
        drafts
    }

    /// Stops the turn, if it is the one that is meant.
    async fn cancel(&mut self, entry: u64, key: &str, reason: String) -> Result<(), store::Error> {
        let phase = self.phase();
        let meant = |turn: &&mut Turn| key.ends_with(turn.projection.ids().turn.as_str());
        let Some(turn) = self.turn.as_mut().filter(meant) else {
            return self.append(Source::Own, Vec::new(), phase).await;
        };
        self.held.get_or_insert(entry - 1);
        turn.projection.cancels();
        match &turn.doing {
            Doing::Following(following) => {
                let run = following.run.clone();
                if let Some(found) = self.sessions.runs().find(&run, &self.account).await? {
                    self.sessions.runs().cancel(found, reason).await?;
                }
                Ok(())
            }
            Doing::Beginning | Doing::Waiting(_) => {
                let drafts = self.close_calls("cancelled", STOPPED);
                self.end(cancelled(&reason), drafts).await
            }
        }
    }

    fn failed(&self, cause: Cause) -> Data {
        let Some(turn) = &self.turn else { return Data::TurnFailed(TurnFailed::default()) };
        let disclosure = turn.projection.disclosure();
        Data::TurnFailed(TurnFailed {
            turn_id: turn.projection.ids().turn.clone(),
            error: cause.text(disclosure).to_owned(),
            failure: Some(cause.failure(disclosure, turn.projection.model())),
        })
    }

    fn phase(&self) -> Phase {
        match self.turn.as_ref().map(|turn| &turn.doing) {
            None => Phase::Idle,
            Some(Doing::Waiting(_)) => Phase::Waiting,
            Some(Doing::Beginning | Doing::Following(_)) => Phase::Active,
        }
    }
}

/// Waits for a letter.
async fn comes(head: &mut watch::Receiver<Head>, heard: u64, log: &LogId) -> Result<(), store::Error> {
    let came = head.wait_for(|head| head.inbox > heard).await;
    came.map(drop).map_err(|_| store::Error::UnknownLog(log.clone()))
}

fn now() -> Timestamp {
    Timestamp(clock::unix_nanos())
}

fn input(message: wire::session::Message) -> Data {
    Data::InputMessage(wire::session::InputMessage { message: Some(message) })
}

fn cancelled(reason: &str) -> Data {
    Data::TurnCancelled(TurnCancelled {
        reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        ..TurnCancelled::default()
    })
}
