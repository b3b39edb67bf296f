//! The owner of a session while a turn goes on.
//!
//! * this file: it begins the runs of the turn (`ask`) and makes the session's events of theirs (`write`)
//! * `hear`, `calls`: what others say to it
//! * `end`: how a turn ends

mod ask;
mod calls;
mod end;
mod hear;
mod write;

use std::{sync::Arc, time::Duration};

use domain::{LogId, Timestamp};
use futures_util::StreamExt as _;
use runtime::clock;
use store::{Head, Lease, tail};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use wire::session::{
    Details, Phase, Rest, SessionSettings, TurnCancelled, TurnFailed, TurnSealed, event::Data,
};

use super::{
    Sessions,
    failure::{Cause, Disclosure},
    project::{Ending, Providers, TurnIds},
    record::Standing,
    turn::{Doing, Following, Left, STOPPED, Turn, given_to},
};
use crate::runs::{Question, Refusal};
use end::completed;

/// Events of a run that are made into events of its session at a time.
const CHUNK: usize = 64;
/// How long a turn waits for a person.
const PERSON_TIME: Duration = Duration::from_secs(15 * 60);
/// How long after its ceilings a run counts as lost.
const SLACK: Duration = Duration::from_secs(300);

/// The owner of a session.
pub(super) struct Actor {
    sessions: Arc<Sessions>,
    lease: Lease,
    log: LogId,
    account: String,
    /// The only clusters that its runs may reach.
    clusters: Vec<String>,
    settings: SessionSettings,
    providers: Providers,
    position: u64,
    /// Events up to there that are no deltas.
    lasting: u64,
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
        Details { clusters, settings, .. }: Details,
    ) -> Result<Self, store::Error> {
        let (store, log) = (sessions.store(), lease.log().clone());
        let head = store.head(&log).await?;
        let entry = store.entry(&log).await?;
        let standing = Standing::of(&*store, &log, entry.position).await?;
        let providers = sessions.providers();
        let settings = sessions.with_agent(&entry.meta.account, settings.unwrap_or_default()).await?;
        let mut actor = Self {
            account: entry.meta.account,
            position: standing.position,
            lasting: standing.lasting,
            rest: standing.rest.clone(),
            sessions,
            lease,
            log,
            clusters,
            settings,
            providers,
            turn: None,
            head,
            heard: 0,
            held: None,
        };
        if let Some(turn) = standing.turn_id() {
            let entries = standing.turn(&*store, &actor.log).await?;
            let input = entries.first().and_then(|entry| match entry.data() {
                Some(Data::InputMessage(input)) => input.message.as_ref(),
                _ => None,
            });
            let ids =
                actor.turn_ids(turn.to_owned(), input.map(|message| message.id.clone()).unwrap_or_default());
            let taken = Turn::taken_over(&*store, (&standing.rest, &entries), ids, actor.told()).await?;
            if let Some((turn, seen)) = taken {
                actor.turn = Some(turn);
                actor.resume(seen).await?;
            }
        }
        Ok(actor)
    }

    /// Works until there is nothing to do, and gives the session up.
    pub(super) async fn work(mut self) -> Result<(), store::Error> {
        match self.go_on().await {
            Ok(()) => self.sessions.store().release(self.lease).await,
            Err(error) => {
                let is_deleted = matches!(&error, store::Error::UnknownLog(log) if *log == self.log);
                let run = self.turn.as_ref().filter(|turn| turn.runs > 0).and_then(|turn| turn.run.as_ref());
                if let Some(run) = run.filter(|_| is_deleted) {
                    self.sessions.stop(run, &self.account).await?;
                    self.sessions.delete_run(run, &self.account).await?;
                }
                Err(error)
            }
        }
    }

    async fn go_on(&mut self) -> Result<(), store::Error> {
        loop {
            for letter in self.letters().await? {
                self.hear(letter).await?;
            }
            let Some(turn) = &mut self.turn else { return Ok(()) };
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
    }

    /// What a turn tells of models and errors.
    fn told(&self) -> (Providers, Disclosure) {
        (Arc::clone(&self.providers), self.sessions.runs().config().error_disclosure)
    }

    fn turn_ids(&self, turn: String, input_message: String) -> TurnIds {
        let SessionSettings { harness_id, agent_id, .. } = &self.settings;
        let or = |id: &String, usual: &str| if id.is_empty() { usual.to_owned() } else { id.clone() };
        TurnIds {
            session: self.log.as_str().to_owned(),
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
        let Left { messages, home } = match self.turn.as_ref().and_then(|turn| turn.run.clone()) {
            Some(run) => match Left::by(&*store, &run).await {
                Err(store::Error::UnknownLog(_)) => {
                    let messages = self.sessions.remembered(&self.log, before).await?;
                    Left { messages, ..Left::default() }
                }
                left => left?,
            },
            None => Left::default(),
        };
        let heard = self.heard(Turn::asked).await?;
        let heard = heard.into_iter().map(|heard| heard.message).collect();
        let Some(turn) = &self.turn else { return Ok(()) };
        let question = Question { home, ..self.question(turn, messages, heard) };
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
                self.tell_run().await
            }
            Err(Refusal::Log(error)) => Err(error),
            Err(Refusal::ShuttingDown) => Err(store::Error::Unavailable("this agent is closing".to_owned())),
            Err(refusal) => {
                tracing::warn!(session = %self.log, %refusal, "a turn cannot be answered");
                let (cause, why) = (Cause::from(&refusal), refusal.to_string());
                let apology = self.turn.as_ref().map(|turn| turn.projection.apology(now(), cause, &why));
                let end = self.failed(cause, &why);
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
            turn.hears(&event);
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
                self.tell_run().await
            }
            None => self.end(self.failed(Cause::Other, ""), Vec::new()).await,
        }
    }

    /// The newest run has ended: the turn waits, goes on with another run, or ends.
    async fn run_over(&mut self) -> Result<(), store::Error> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        if let Some(reason) = turn.projection.cancelled().filter(|_| turn.goes_on()) {
            // The client's wish met the end of the run.
            let end = cancelled(reason);
            let drafts = self.close_calls("cancelled", STOPPED);
            return self.end(end, drafts).await;
        }
        match turn.ending().cloned() {
            Some(Ending::Suspended) => {
                let (calls, approvals) = turn.waits_for();
                let client_time = self.sessions.runs().config().client_tool_time;
                let time = if approvals.is_empty() { client_time } else { PERSON_TIME };
                turn.doing = if calls.is_empty() && approvals.is_empty() {
                    Doing::Beginning
                } else {
                    Doing::Waiting(Instant::now() + turn.left_of(time, now()))
                };
                Ok(())
            }
            Some(Ending::Answered { .. }) if turn.goes_on() => {
                turn.doing = Doing::Beginning;
                Ok(())
            }
            Some(Ending::Answered { answer, reason }) => {
                let end = completed(turn, &answer, &reason);
                self.end(end, Vec::new()).await
            }
            Some(Ending::Failed(cause, why)) => {
                let end = self.failed(cause, &why);
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
            None => self.end(self.failed(Cause::Other, ""), Vec::new()).await,
        }
    }

    fn failed(&self, cause: Cause, why: &str) -> Data {
        let Some(turn) = &self.turn else { return Data::TurnFailed(TurnFailed::default()) };
        let disclosure = turn.projection.disclosure();
        Data::TurnFailed(TurnFailed {
            turn_id: turn.projection.ids().turn.clone(),
            error: cause.text(disclosure, why),
            failure: Some(turn.projection.failure(cause, why)),
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
