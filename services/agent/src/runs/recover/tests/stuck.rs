//! Runs that nobody can go on with now, or any more.

use domain::{Event, EventKind, Limits, LogId, Outcome, RunId, RunSetup, RunStarted};
use store::{Creation, Kind, Meta, NewLog, OwnerId};
use tokio::sync::watch;

use super::{
    SOON,
    hands::SILENT,
    life::{Life, Moment, World},
    question, told,
};

/// The runs' cluster.
const AWAY: &str = "away";

/// How a run begins.
fn first(world: &World, life: &Life<'_>) -> (Event, RunStarted) {
    let like = life.begins(question(world.limits));
    life.ends(&like);
    let first = world.reads(&like).remove(0);
    let EventKind::RunStarted(started) = &first.kind else { panic!("{first:?}") };
    ((*first).clone(), started.clone())
}

/// Leaves a log behind.
fn leave(world: &World, life: &Life<'_>, run: &RunId, events: Vec<Event>) -> LogId {
    let meta = Meta { account: "a".to_owned(), kind: Kind::Run, title: String::new(), details: Vec::new() };
    let (id, owner) = (LogId::from(run), OwnerId::new("gone"));
    let new = NewLog { id: id.clone(), owner, meta, idempotency: None, events };
    let created = life.until(world.store.create(new)).unwrap();
    assert!(matches!(created, Creation::New(_)));
    id
}

/// Leaves runs behind that look at a cluster that is not connected.
fn leave_behind(world: &World, life: &Life<'_>, number: u32, limits: Limits) -> Vec<LogId> {
    leave_runs(world, life, number, |setup| (setup.cluster, setup.limits) = (AWAY.to_owned(), limits))
}

/// Leaves runs behind, set up like this.
fn leave_runs(world: &World, life: &Life<'_>, number: u32, set: impl Fn(&mut RunSetup)) -> Vec<LogId> {
    let (first, mut started) = first(world, life);
    set(&mut started.setup);
    let runs = (0..number).map(|number| {
        let (run, kind) = (RunId::new(format!("run_{number}")), EventKind::RunStarted(started.clone()));
        leave(world, life, &run, vec![Event { run: run.clone(), kind, ..first.clone() }])
    });
    runs.collect()
}

/// Leaves a session behind to which something was said.
fn leave_session(world: &World, life: &Life<'_>) -> LogId {
    let id = LogId::new(format!("session_{:032x}", 1));
    let meta =
        Meta { account: "a".to_owned(), kind: Kind::Session, title: String::new(), details: Vec::new() };
    let (owner, events) = (OwnerId::new("gone"), Vec::new());
    let new = NewLog { id: id.clone(), owner, meta, idempotency: None, events };
    life.until(async {
        world.store.create(new).await.unwrap();
        world.store.post(&id, "message/1", Vec::new()).await.unwrap();
    });
    id
}

#[test]
fn runs_that_cannot_go_on_now_keep_no_other_from_going_on() {
    let world = World::new(&[100]);
    let life = world.live();
    let stuck = leave_behind(&world, &life, 100, world.limits);
    let log = life.begins(question(world.limits));
    assert!(!life.ends_before(Moment::Events(3, 0), &log));
    drop(life);
    let other = world.live();
    let took = other.takes_over(&log);
    assert!(took <= SOON * 2, "it took {took:?}");
    other.ends(&log);
    assert_eq!(told(&world, &log).0, Some(Outcome::Finished));
    assert!(stuck.iter().all(|log| told(&world, log).0.is_none()), "they may go on later");
}

#[test]
fn runs_whose_executor_is_silent_keep_no_other_and_no_session_from_going_on() {
    let world = World::new(&[100]);
    let life = world.live();
    leave_runs(&world, &life, 40, |setup| setup.profile = SILENT);
    let session = leave_session(&world, &life);
    let log = life.begins(question(world.limits));
    assert!(!life.ends_before(Moment::Events(3, 0), &log));
    drop(life);
    let (told, mut heard) = watch::channel(None);
    let other = world.live_for(move |session| drop(told.send_replace(Some(session))));
    let took = other.takes_over(&log);
    assert!(took <= SOON, "it took {took:?}");
    let woken = other.until(async { heard.wait_for(Option::is_some).await.unwrap().clone() });
    assert_eq!(woken, Some(session));
    other.ends(&log);
}

#[test]
fn a_run_that_cannot_go_on_in_its_time_fails_and_says_why() {
    let world = World::new(&[100]);
    let life = world.live();
    let none = std::time::Duration::ZERO;
    let limits = Limits { wall_time: none, answer_time: none, ..world.limits };
    let stuck = leave_behind(&world, &life, 1, limits);
    life.ends(&stuck[0]);
    let last = world.reads(&stuck[0]).pop().unwrap();
    let EventKind::RunFailed { message, .. } = &last.kind else { panic!("{last:?}") };
    assert!(message.contains("`away` is not connected"), "{message}");
}

#[test]
fn a_run_that_cannot_be_read_ends_once_and_says_why() {
    let world = World::new(&[100]);
    let life = world.live();
    let (first, started) = first(&world, &life);
    let run = RunId::new("run_torn");
    let kinds = [EventKind::RunRecovered, EventKind::RunStarted(started)];
    let event = |(kind, position)| Event { run: run.clone(), position, kind, ..first.clone() };
    let log = leave(&world, &life, &run, kinds.into_iter().zip(1..).map(event).collect());
    life.until(world.store.post(&log, "cancel", Vec::new())).unwrap();
    life.ends(&log);
    let last = world.reads(&log).pop().unwrap();
    let EventKind::RunFailed { message, .. } = &last.kind else { panic!("{last:?}") };
    assert!(message.contains("does not begin with its start"), "{message}");
    // What comes too late wakes nobody for ever.
    life.until(world.store.post(&log, "cancel/again", Vec::new())).unwrap();
    life.lives_for(SOON);
    assert_eq!(world.reads(&log).pop().unwrap().position, last.position);
    assert!(life.until(world.store.posted(&log, 0)).unwrap().is_empty());
}
