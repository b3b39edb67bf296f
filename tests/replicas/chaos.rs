//! Processes of every kind die at seeded moments, while many read: the histories are those of undisturbed runs.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use fastrand::Rng;
use futures_util::future::join_all;
use harness::client::Frame;
use serde_json::{Value, json};

use crate::fleet::{Fleet, Place, Victim};

/// How many rounds of deaths there are unless `SLEUTH_CHAOS_SEEDS` says how many.
const SEEDS: u64 = 2;
const RUNS: usize = 5;
const SESSIONS: usize = 4;
/// Readers of each.
const READERS: usize = 2;
/// Milliseconds between two deaths, at most.
const LONGEST_PAUSE: u64 = 1500;
const VICTIMS: [Victim; 5] =
    [Victim::Agent, Victim::Gateway, Victim::Executor, Victim::Postgres, Victim::Agent];

/// Looks at something, changes something, and both once more. The changes are lines in a file.
fn script(fleet: &Fleet, name: &str) -> Value {
    let file = fleet.file(name);
    let look = |round| format!("sleep 0.3; echo look-{round}");
    let change = |round| format!("echo change-{round} | tee -a {}; sleep 0.2", file.display());
    let bash = |command: String| json!([{ "name": "bash", "args": { "command": command } }]);
    let steps: Vec<_> = (0..2).flat_map(|round| [bash(look(round)), bash(change(round))]).collect();
    json!({
        "steps": steps, "say": "I look, and I change.", "answer": "It is told.", "latency_ms": 200, "chunk_ms": 20,
    })
}

/// The part of a history that no death may alter. What became of a change may be unknown.
fn told(frames: &[Frame]) -> Vec<Value> {
    let result = |name: &str, text: &Value| match text.as_str() {
        Some(text) if text.contains("look-") => json!([name, text]),
        _ => json!([name, "a change"]),
    };
    let told = frames.iter().filter_map(|frame| {
        let (event, data) = (frame.event.as_str(), &frame.data);
        Some(match event {
            "start_tool_calling" => json!([event, data["tool_name"]]),
            "tool_calling_result" => result(event, &data["result"]["data"]),
            "ai_message" => json!([event, data["content"]]),
            "ai_answer_end" => json!([event, data["analysis"]]),
            "input.message" | "turn.started" | "session.idled" => json!([event]),
            "tool.started" => json!([event, data["data"]["tool_call"]["name"]]),
            "tool.completed" => result(event, &data["data"]["result"][0]["text"]),
            "output.message.completed" => json!([event, data["data"]["message"]["content"][0]["text"]]),
            "turn.completed" => json!([event, data["data"]["final_answer_preview"]]),
            _ => return None,
        })
    });
    told.collect()
}

/// Each frame once, in order.
fn check_order(frames: &[Frame]) {
    let ids: HashSet<_> = frames.iter().map(|frame| &frame.id).collect();
    assert_eq!(ids.len(), frames.len(), "nothing twice: {frames:#?}");
    let sequences = frames.iter().map(|frame| match frame.data["sequence"].as_u64() {
        Some(sequence) => sequence,
        None => frame.id.rsplit_once(':').unwrap().1.parse().unwrap(),
    });
    assert!(sequences.is_sorted(), "{frames:#?}");
}

/// What comes of a message piece by piece is what it says in the end.
fn check_deltas(frames: &[Frame]) {
    let mut said: HashMap<&str, String> = HashMap::new();
    for frame in frames {
        let data = &frame.data["data"];
        match frame.event.as_str() {
            "output.message.delta" => {
                let said = said.entry(data["message_id"].as_str().unwrap()).or_default();
                said.push_str(data["delta"].as_str().unwrap());
                assert_eq!(data["accumulated"], said.as_str(), "{frames:#?}");
            }
            "output.message.completed" => {
                let said = said.remove(data["message"]["id"].as_str().unwrap()).unwrap_or_default();
                let text = data["message"]["content"][0]["text"].as_str().unwrap_or_default();
                assert_eq!(said, text, "{frames:#?}");
            }
            _ => {}
        }
    }
}

struct Story {
    name: String,
    id: String,
    session: bool,
}

impl Story {
    fn place(&self) -> Place<'_> {
        if self.session { Place::Session(&self.id) } else { Place::Run(&self.id) }
    }
}

/// Begins runs and sessions, all at once.
async fn begin(fleet: &Fleet, name: &str, runs: usize, sessions: usize) -> Vec<Story> {
    let stories = (0..runs + sessions).map(|number| async move {
        let (name, session) = (format!("{name}-{number}"), number >= runs);
        let script = script(fleet, &name);
        let id = if session { fleet.session(&script).await } else { fleet.run(&script).await };
        Story { name, id, session }
    });
    join_all(stories).await
}

/// What each of several readers of each got.
async fn read(fleet_url: &(impl Fn(&str) -> String + Sync), stories: &[Story]) -> Vec<Vec<Vec<Frame>>> {
    let read = stories.iter().map(|story| {
        let readers = (0..READERS).map(|_| async { story.place().read(fleet_url).await });
        join_all(readers)
    });
    join_all(read).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_dies_at_any_moment_every_reader_gets_the_whole_history_once() {
    let Some(mut fleet) = Fleet::start().await else { return };
    let base = fleet.url("");
    let url = |path: &str| format!("{base}{path}");
    let undisturbed = begin(&fleet, "undisturbed", 1, 1).await;
    let expected: Vec<_> = read(&url, &undisturbed).await.iter().map(|readers| told(&readers[0])).collect();
    assert!(expected.iter().all(|told| told.len() > 10), "{expected:#?}");

    let seeds = std::env::var("SLEUTH_CHAOS_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    for seed in 0..seeds.unwrap_or(SEEDS) {
        let mut dice = Rng::with_seed(seed);
        let stories = begin(&fleet, &format!("seed-{seed}"), RUNS, SESSIONS).await;
        let deaths = async {
            let mut victims = VICTIMS;
            dice.shuffle(&mut victims);
            for victim in victims {
                tokio::time::sleep(Duration::from_millis(dice.u64(0..LONGEST_PAUSE))).await;
                fleet.strike(victim, dice.usize(0..2)).await;
            }
        };
        let (histories, ()) = tokio::join!(read(&url, &stories), deaths);
        for (story, readers) in stories.iter().zip(&histories) {
            for frames in readers {
                check_order(frames);
                check_deltas(frames);
                assert_eq!(frames, &readers[0], "all readers of {} see the same", story.name);
            }
            let expected = &expected[usize::from(story.session)];
            assert_eq!(&told(&readers[0]), expected, "seed {seed}: {}: {:#?}", story.name, readers[0]);
            check_changes(&fleet, story, &readers[0]);
        }
    }
}

/// No change was made twice, and those that are said to be made are made.
fn check_changes(fleet: &Fleet, story: &Story, frames: &[Frame]) {
    let written = std::fs::read_to_string(fleet.file(&story.name)).unwrap_or_default();
    let lines: Vec<_> = written.lines().collect();
    let once: HashSet<_> = lines.iter().collect();
    assert_eq!(once.len(), lines.len(), "{}: {lines:?}", story.name);
    let said = serde_json::to_string(&frames.iter().map(|frame| &frame.data).collect::<Vec<_>>()).unwrap();
    for round in 0..2 {
        let change = format!("change-{round}");
        // The text of the command is told, too.
        if said.contains(&format!("\\n{change}")) {
            assert!(lines.contains(&change.as_str()), "{}: {change} is told, and not made", story.name);
        }
    }
}
