//! Runs that nobody can go on with now, or any more.

use domain::{Event, EventKind, Limits, LogId, Outcome, RunId, RunStarted};
use store::{Creation, Kind, Meta, NewLog, OwnerId};

use super::{
    SOON,
    life::{Life, Moment, World},
    question, told,
};

/// The runs' cluster.
const AWAY: &str = "away";

/// Leaves runs behind that look at a cluster that is not connected.
fn leave_behind(world: &World, life: &Life<'_>, number: u32, limits: Limits) -> Vec<LogId> {
    let like = life.begins(question(world.limits));
    life.ends(&like);
    let first = world.reads(&like).remove(0);
    let EventKind::RunStarted(started) = &first.kind else { panic!("{first:?}") };
    let mut started: RunStarted = started.clone();
    (started.setup.cluster, started.setup.limits) = (AWAY.to_owned(), limits);
    let runs = (0..number).map(|number| {
        let run = RunId::new(format!("run_{number}"));
        let kind = EventKind::RunStarted(started.clone());
        let events = vec![Event { run: run.clone(), kind, ..(*first).clone() }];
        let meta =
            Meta { account: "a".to_owned(), kind: Kind::Run, title: String::new(), details: Vec::new() };
        let (id, owner) = (LogId::from(&run), OwnerId::new("gone"));
        let new = NewLog { id: id.clone(), owner, meta, idempotency: None, events };
        let created = life.until(world.store.create(new)).unwrap();
        assert!(matches!(created, Creation::New(_)));
        id
    });
    runs.collect()
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
