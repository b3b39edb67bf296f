//! What the sandbox adds to the start of a program, and the proxy to kubectl: interleaved runs, in one process.
//!
//! `cargo run --release -p executor --example sandbox-cost [RUNS]`, with `SLEUTH_TEST_KUBECONFIG` for kubectl.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops where a step fails, and prints"
)]

mod kubectl;

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
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        measure(runs).await;
        kubectl::measure(runs.div_ceil(4)).await;
    });
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
    let base = print("bare fork and exec", bare, None);
    for ((name, trial, ..), times) in ways.iter().zip(times) {
        print(&format!("{name} ({})", trial.level()), times, Some(base));
    }
}

/// Prints the median and the 95th percentile in milliseconds, and what the median adds to another one.
fn print(name: &str, mut times: Vec<Duration>, base: Option<f64>) -> f64 {
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1000.0;
    let added = base.map(|base| format!("  +{:.2} ms, x{:.2}", at(50) - base, at(50) / base));
    println!("{name:<44} p50 {:>7.2} ms  p95 {:>7.2} ms{}", at(50), at(95), added.unwrap_or_default());
    at(50)
}
