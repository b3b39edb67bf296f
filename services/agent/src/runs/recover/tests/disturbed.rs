//! Runs whose callers and readers leave, whose start fails, or that are deleted.

use domain::{CallId, Message, Permission, ToolCall};
use store::{Idempotency, Kind, Meta, NewLog, OwnerId};

use super::*;
use crate::runs::{Decision, Refusal};

/// Makes a log of the account that nobody owns.
fn left(world: &World, id: &str, idempotency: Option<Idempotency>) -> LogId {
    let meta = Meta { account: "a".to_owned(), kind: Kind::Run, title: String::new(), details: Vec::new() };
    let (id, owner, events) = (LogId::new(id), OwnerId::new("nobody"), Vec::new());
    let new = NewLog { id: id.clone(), owner, meta, idempotency, events };
    world.now(world.store.create(new)).unwrap();
    id
}

#[test]
fn a_run_whose_caller_leaves_while_it_starts_ends_as_one_whose_readers_have_left() {
    // It looks for longer than anybody waits.
    let world = World::new(&[252]);
    let life = world.live();
    let log = life.begins_for_nobody(Question { keeper: String::new(), ..question(world.limits) });
    life.ends(&log);
    assert_eq!(told(&world, &log).0, Some(Outcome::Cancelled));
}

#[test]
fn a_run_that_is_read_through_another_agent_goes_on_without_readers_here() {
    let mut world = World::new(&[252]);
    world.grace = Duration::ZERO;
    let life = world.live();
    let log = life.begins_for_another(Question { keeper: String::new(), ..question(world.limits) });
    life.lives_for(Duration::from_secs(30));
    assert_eq!(told(&world, &log).0, None);
    life.ends(&log);
    assert_eq!(told(&world, &log).0, Some(Outcome::Cancelled));
}

#[test]
fn a_run_that_is_deleted_while_it_goes_on_is_not_there_any_more() {
    let world = World::new(&[252]);
    let life = world.live();
    let log = life.begins(question(world.limits));
    assert!(world.now(world.store.delete(&log)).unwrap());
    life.forgets(&log);
}

#[test]
fn a_permission_is_there_still_for_a_request_that_is_made_again() {
    let world = World::new(&[0]);
    let life = world.live();
    let earlier = left(&world, "run_earlier", None);
    let call = ToolCall { id: CallId::new("c1"), name: CHANGE.into(), arguments: r#"{"seconds":1}"#.into() };
    let mut said = Message::text(Role::Assistant, "");
    said.tool_calls = vec![call.clone()];
    let run = RunId::new(earlier.as_str());
    let permission = Permission { run, grant: vec![1], standing: Vec::new(), always: false };
    let key = |digest| Idempotency { scope: "a".to_owned(), key: "k".to_owned(), digest: [digest; 32] };
    let asked = || {
        let mut asked = Question {
            history: vec![Message::text(Role::User, "Change it."), said.clone()],
            text: String::new(),
            idempotency: Some(key(1)),
            ..question(world.limits)
        };
        asked.brought.decisions.insert(call.id.clone(), Decision::Approved(permission.clone()));
        asked
    };
    // The first try fails: its key is another request's, for as long as that is there.
    let other = left(&world, "run_other", Some(key(2)));
    assert!(matches!(life.tries(asked()), Some(Refusal::OtherRequest)));
    assert!(world.now(world.store.delete(&other)).unwrap());
    let log = life.begins(asked());
    let approved = world.reads(&log).iter().any(|event| matches!(event.kind, EventKind::CallApproved { .. }));
    assert!(approved, "{:?}", world.reads(&log));
}
