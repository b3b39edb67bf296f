//! What the sandbox adds to the start of a program: medians of interleaved runs, in one process.
//!
//! `cargo run --release -p executor --example sandbox-cost [RUNS]`
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops where a step fails, and prints"
)]

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use executor::{Config, Reach, Sight, Trial};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    // Before any thread: this program is its own launcher.
    if std::env::args_os().nth(1).is_some_and(|first| first == executor::launcher::ARG) {
        return executor::launcher::main();
    }
    let runs = std::env::args().nth(1).map_or(200, |runs| runs.parse().unwrap());
    tokio::runtime::Runtime::new().unwrap().block_on(measure(runs));
    ExitCode::SUCCESS
}

async fn measure(runs: usize) {
    let variable = |name: &str| std::env::var(name).ok();
    let grouped = Config::from_env(&variable).unwrap();
    let ungrouped = Config::from_env(&|name| match name {
        "SLEUTH_SANDBOX_WITHOUT" => Some("cgroup".to_owned()),
        _ => variable(name),
    });
    let pod = Config::from_env(&|name| match name {
        "SLEUTH_SANDBOX_WITHOUT" => Some("namespaces,cgroup".to_owned()),
        _ => variable(name),
    });
    let (grouped, ungrouped, pod) = (
        Trial::new(&grouped).await.unwrap(),
        Trial::new(&ungrouped.unwrap()).await.unwrap(),
        Trial::new(&pod.unwrap()).await.unwrap(),
    );
    let ways = [
        ("launcher alone", &ungrouped, Sight::Everything, Reach::Everything),
        ("pod, host's view", &pod, Sight::Host, Reach::Nothing),
        ("host's view", &ungrouped, Sight::Host, Reach::Nothing),
        ("host's view, cgroup", &grouped, Sight::Host, Reach::Nothing),
        ("private view, own network", &ungrouped, Sight::Private, Reach::Nothing),
        ("private view, gate", &ungrouped, Sight::Private, Reach::Gate),
        ("private view, gate, cgroup", &grouped, Sight::Private, Reach::Gate),
    ];
    let mut bare = Vec::new();
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..runs {
        let started = Instant::now();
        assert!(tokio::process::Command::new("true").status().await.unwrap().success());
        bare.push(started.elapsed());
        for ((name, trial, sight, reach), times) in ways.iter().zip(&mut times) {
            let started = Instant::now();
            let tried = trial.run(*sight, *reach, &["true"], &CancellationToken::new()).await;
            times.push(started.elapsed());
            assert_eq!(tried.code, Some(0), "{name}: {}", tried.output);
        }
    }
    let base = median(bare);
    println!("{:<28} {:>7.2} ms", "bare fork and exec", base);
    for ((name, trial, ..), times) in ways.iter().zip(times) {
        let time = median(times);
        println!("{name:<28} {time:>7.2} ms  +{:.2} ms  (level {})", time - base, trial.level());
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
