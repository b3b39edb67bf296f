//! Runs whose agents die, or are taken for dead, at random moments: whoever takes them over brings them to the end
//! that they would have had.

mod deleted;
mod disturbed;
mod hands;
mod life;
mod oracle;
mod stuck;

use std::collections::HashMap;

use domain::{Limits, Outcome, Role};
use proptest::prelude::*;

use super::*;
use crate::runs::{Brought, Question};
use hands::{CHANGE, LOOK};
use life::{Moment, World};

/// Within this time another agent has a run whose agent is lost, as `docs/delivery.md` has it.
const SOON: Duration = Duration::from_secs(10);
/// How long an agent goes on that has slept while others took it for dead.
const TWITCH: Duration = Duration::from_secs(1);

fn question(limits: Limits) -> Question {
    Question {
        text: "What is wrong?".to_owned(),
        history: Vec::new(),
        model: None,
        images: Vec::new(),
        documents: Vec::new(),
        client_tools: Vec::new(),
        brought: Brought::default(),
        approvals: true,
        waits: true,
        subagents: domain::Subagents::default(),
        standing: Vec::new(),
        headers: RequestHeaders::default(),
        session: String::new(),
        rlm: None,
        exec_directory: String::new(),
        home: String::new(),
        profile: domain::ToolProfile::default(),
        permissions: None,
        cluster: String::new(),
        labels: domain::Labels::default(),
        clusters: Vec::new(),
        form: None,
        sections: crate::prompt::Sections::choose(None, &HashMap::new()),
        files: Vec::new(),
        alert_history: None,
        additional_system_prompt: String::new(),
        limits,
        account: "a".to_owned(),
        principal: String::new(),
        idempotency: None,
        keeper: "a test".to_owned(),
        effort: None,
    }
}

/// What can be told of a run that has ended. Of a change whose agent died over it, nobody may know whether it began.
fn told(world: &World, log: &LogId) -> (Option<Outcome>, Vec<(Role, String)>) {
    let events = world.reads(log);
    let positions: Vec<_> = events.iter().map(|event| event.position).collect();
    assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<_>>(), "dense");
    let family = Family::fold(world.limits, events.iter().map(AsRef::as_ref));
    // The question tells the time.
    let said = family.main().messages().iter().skip(1).map(|message| {
        let text = match &message.answers {
            Some((_, tool)) if tool == CHANGE => "changed, or not".to_owned(),
            _ => message.joined_text(),
        };
        (message.role, text)
    });
    let mut said: Vec<_> = said.collect();
    // Results come in the order in which calls end.
    said.chunk_by_mut(|one, other| one.0 == other.0)
        .for_each(|turn| turn.sort_by(|one, other| one.1.cmp(&other.1)));
    (family.main().outcome(), said)
}

#[test]
fn what_lists_show_of_a_run_is_made_of_its_log_again() {
    let world = World::new(&[7, 90, 4]);
    let (life, other) = (world.live(), world.live());
    let log = life.begins(question(world.limits));
    life.ends(&log);
    life.lives_for(TWITCH);
    let kept = other.lists(&log);
    assert!(kept.steps == 4 && kept.tool_calls > 0 && kept.model == "oracle", "{kept:?}");
    let forgotten = world.store.describe(&log, kept.question.clone(), Vec::new());
    world.now(forgotten).unwrap();
    let again = other.lists(&log);
    // The event and whoever kept it ask the clock apart.
    assert_eq!(wire::agent::RunInfo { ended_at: kept.ended_at, ..again }, kept);
}

#[test]
fn an_agent_that_drains_takes_nothing_over() {
    let world = World::new(&[255, 255]);
    let life = world.live();
    let log = life.begins(question(world.limits));
    assert!(!life.ends_before(Moment::Events(3, 0), &log));
    drop(life);
    let before = world.reads(&log).len();
    let life = world.live();
    life.begins(question(world.limits));
    life.drains_for(SOON + TWITCH);
    assert_eq!(world.reads(&log).len(), before);
    let next = world.live();
    assert!(next.takes_over(&log) <= SOON);
    next.ends(&log);
    assert_eq!(told(&world, &log).0, Some(Outcome::Finished));
}

#[test]
fn a_run_that_agents_hand_over_again_and_again_goes_on() {
    // It looks for longer than they live.
    let world = World::new(&[255, 255]);
    let mut life = world.live();
    let log = life.begins(question(world.limits));
    assert!(!life.ends_before(Moment::Events(3, 0), &log));
    for _ in 0..6 {
        life.hands_over();
        life = world.live();
        assert!(life.takes_over(&log) <= SOON);
    }
    life.ends(&log);
    assert_eq!(told(&world, &log).0, Some(Outcome::Finished));
    let handed_over = world.reads(&log).iter().filter(|event| event.kind == EventKind::RunHandedOver).count();
    assert!(handed_over >= 6, "{handed_over}");
}

fn moments() -> impl Strategy<Value = Moment> {
    prop_oneof![
        (0..90_000_u64).prop_map(|millis| Moment::Time(Duration::from_millis(millis))),
        (1..12_u64, 0..8_u8).prop_map(|(events, breaths)| Moment::Events(events, breaths)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_run_whose_agents_die_ends_as_it_would_have(
        dice in prop::collection::vec(any::<u8>(), 1..6), deaths in prop::collection::vec((moments(), any::<bool>()), 1..4),
    ) {
        let quiet = World::new(&dice);
        let life = quiet.live();
        let log = life.begins(question(quiet.limits));
        life.ends(&log);
        let undisturbed = told(&quiet, &log);
        prop_assert_eq!(undisturbed.0, Some(Outcome::Finished));

        let cruel = World::new(&dice);
        let (mut life, mut undead) = (cruel.live(), Vec::new());
        let log = life.begins(question(cruel.limits));
        for (moment, is_dead) in deaths {
            if life.ends_before(moment, &log) {
                break;
            }
            let before = std::mem::replace(&mut life, cruel.live());
            if is_dead {
                drop(before);
            } else {
                undead.push(before);
            }
            let took = life.takes_over(&log);
            prop_assert!(took <= SOON, "it took {took:?}");
            undead.iter().for_each(|agent| agent.lives_for(TWITCH));
        }
        life.ends(&log);
        prop_assert_eq!(told(&cruel, &log), undisturbed);
        let begun = cruel.hands.begun();
        let once = begun.values().all(|begun| begun.tool == LOOK || begun.times == 1);
        prop_assert!(once, "no change is made twice: {:?}", begun);
    }
}
