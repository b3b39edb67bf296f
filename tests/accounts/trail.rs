//! The audit trail, narrowed down: by command as over HTTP.

use prost_types::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::World;

/// Where an entry is.
fn place(entry: &Value) -> (String, u64) {
    (entry["run_id"].as_str().unwrap().to_owned(), entry["position"].as_u64().unwrap())
}

fn time(entry: &Value) -> (i64, i32) {
    let at: Timestamp = entry["time"].as_str().unwrap().parse().unwrap();
    (at.seconds, at.nanos)
}

type Wanted<'a> = Box<dyn Fn(&Value) -> bool + 'a>;

#[tokio::test]
async fn a_trail_is_narrowed_down_by_command_as_over_http() {
    let world = World::start().await;
    world.waiting().await;
    let script = json!({ "rounds": 2 });
    let asked = json!({ "ask": format!("what FAKE_LLM{script}") });
    let mut runs = Vec::new();
    for key in [&world.victim, &world.limited, &world.intruders[0].key] {
        let answer = world.send(Method::POST, "/api/chat", key, &asked, &[]).await;
        runs.push(answer.headers()["x-sleuth-run-id"].to_str().unwrap().to_owned());
        assert_eq!(answer.status(), 200);
    }
    let limited = world.limited.split('_').nth(1).unwrap();
    let all = world.audit("acme").await;
    // In the middle of the runs there are times before and after.
    let mut times: Vec<_> = all.iter().map(time).collect();
    times.sort_unstable();
    let middle = times[times.len() / 2];
    let named = all.iter().find(|entry| time(entry) == middle).unwrap()["time"].as_str().unwrap();
    let (by, until) = (format!("principal={limited}"), format!("until={named}"));
    let (since, run) = (format!("since={named}"), format!("run_id={}", runs[0]));
    let newest_of_victim = format!("runs=1&principal={}", world.victim_id);
    let before = format!("before={}", runs[1]);
    let kind = |kinds: &'static [&'static str]| -> Wanted<'_> {
        Box::new(move |entry| kinds.contains(&entry["kind"].as_str().unwrap()))
    };
    let filters: Vec<(Vec<&str>, &str, Wanted<'_>)> = vec![
        (vec![], "", Box::new(|_| true)),
        (vec!["--by", limited], &by, Box::new(|entry| entry["principal"] == limited)),
        (vec!["--run", &runs[0]], &run, Box::new(|entry| entry["run_id"] == runs[0])),
        (
            vec!["--runs", "1", "--by", &world.victim_id],
            &newest_of_victim,
            Box::new(|entry| entry["run_id"] == runs[0]),
        ),
        (vec!["--before", &runs[1]], &before, Box::new(|entry| entry["run_id"] != runs[1])),
        (vec!["--runs", "1"], "runs=1", Box::new(|entry| entry["run_id"] == runs[1])),
        (vec!["--kind", "waits"], "kinds=waits", kind(&["waits"])),
        (vec!["--kind", "asked", "--kind", "ended"], "kinds=asked,ended", kind(&["asked", "ended"])),
        (vec!["--cluster", "lab", "--kind", "began"], "cluster=lab&kinds=began", kind(&["began"])),
        (vec!["--since", named], &since, Box::new(|entry| time(entry) >= middle)),
        (vec!["--until", named], &until, Box::new(|entry| time(entry) < middle)),
    ];
    for (flags, query, wanted) in filters {
        let expected: Vec<_> = all.iter().filter(|entry| wanted(entry)).map(place).collect();
        assert!(!expected.is_empty(), "{flags:?}");
        assert!(flags.is_empty() || expected.len() < all.len(), "{flags:?} {all:?}");
        let over_http = world.audit(&format!("acme&{query}")).await;
        assert_eq!(over_http.iter().map(place).collect::<Vec<_>>(), expected, "{query}");
        let by_command = world.audit_by_command(&[&["--account", "acme"], flags.as_slice()].concat()).await;
        assert_eq!(by_command.iter().map(place).collect::<Vec<_>>(), expected, "{flags:?}");
    }
    for (flags, query) in [
        (["--by", "nobody"], "principal=nobody"),
        (["--cluster", "elsewhere"], "cluster=elsewhere"),
        (["--until", "2020-01-01T00:00:00Z"], "until=2020-01-01T00:00:00Z"),
        (["--since", "2120-01-01T00:00:00Z"], "since=2120-01-01T00:00:00Z"),
    ] {
        assert_eq!(world.audit(&format!("acme&{query}")).await, [Value::Null; 0], "{query}");
        let by_command = [&["--account", "acme"][..], &flags].concat();
        assert_eq!(world.audit_by_command(&by_command).await, [Value::Null; 0], "{flags:?}");
    }
    let of_rival = world.audit_by_command(&["--account", "rival"]).await;
    assert!(!of_rival.is_empty() && of_rival.iter().all(|entry| entry["run_id"] == runs[2]), "{of_rival:?}");
    assert_eq!(world.get_as_admin("/api/admin/audit?kinds=nonsense").await, 400);
    assert_eq!(world.get_as_admin("/api/admin/audit?since=yesterday").await, 400);
    let of_another = format!("/api/admin/audit?account=acme&before={}", runs[2]);
    assert_eq!(world.get_as_admin(&of_another).await, 404);
}
