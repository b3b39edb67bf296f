//! What readers of a real server get, and what they cost: events per second to many at once, and readers per GiB.
//!
//! `cargo build --release -p sleuth && cargo bench -p wire`

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::future::try_join_all;
use harness::{
    client::Stream,
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};

/// Readers of one long run, and readers that wait.
const BUSY: usize = 50;
const WAITING: usize = 1000;
/// Model calls of the long run.
const ROUNDS: usize = 60;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let openai = ScriptedOpenAi::start().await?;
    let list = format!("gpt: {{model: openai/gpt-4.1, api_key: none, base_url: {}}}\n", openai.url());
    let sleuth = Start::serve().models(&list)?.env("MAX_STEPS", "1000").start().await?;
    deliver(&sleuth).await?;
    wait(&sleuth).await?;
    sleuth.kill().await
}

async fn ask(sleuth: &Sleuth, script: Value) -> anyhow::Result<Stream> {
    let body = json!({ "ask": format!("look FAKE_LLM{script}"), "stream": true });
    Stream::open(&sleuth.url("/api/chat")?, &body).await
}

async fn deliver(sleuth: &Sleuth) -> anyhow::Result<()> {
    let mut first = ask(sleuth, json!({ "rounds": ROUNDS, "say": "x".repeat(300) })).await?;
    let url = sleuth.url(&format!("/api/runs/{}/events", first.run_id().context("no run")?))?;
    while first.next().await?.is_some() {}
    let began = Instant::now();
    let counts = try_join_all((0..BUSY).map(async |_| {
        let (mut stream, mut count) = (Stream::get(&url).await?, 0_u64);
        while stream.next().await?.is_some() {
            count += 1;
        }
        anyhow::Ok(count)
    }));
    let count: u64 = counts.await?.into_iter().sum();
    say(&format!("delivered to {BUSY} readers"), count as f64 / began.elapsed().as_secs_f64(), "events/s");
    Ok(())
}

async fn wait(sleuth: &Sleuth) -> anyhow::Result<()> {
    let command = json!({ "command": "tail -f /dev/null", "suggested_prefixes": ["tail"] });
    let run = ask(sleuth, json!({ "rounds": 1, "args": command })).await?;
    let url = sleuth.url(&format!("/api/runs/{}/events", run.run_id().context("no run")?))?;
    let before = memory(sleuth)?;
    let readers = try_join_all((0..WAITING).map(async |_| {
        let mut stream = Stream::get(&url).await?;
        stream.next().await?.context("no event")?;
        anyhow::Ok(stream)
    }));
    let readers = readers.await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let each = memory(sleuth)?.saturating_sub(before) as f64 / readers.len() as f64;
    say("a reader that waits", each, "KiB");
    say("readers that wait", f64::from(1 << 20) / each.max(1.0), "per GiB");
    Ok(())
}

/// Memory of a process, in KiB.
fn memory(sleuth: &Sleuth) -> anyhow::Result<u64> {
    let id = sleuth.id().context("it has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(resident.trim().trim_end_matches(" kB").parse()?)
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn say(what: &str, figure: f64, unit: &str) {
    println!("{what:<30} {figure:>10.0} {unit}");
}
