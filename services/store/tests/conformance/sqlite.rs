//! What SQLite promises beside the rest: one process, which may be killed; records that are damaged.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use rusqlite::Connection;
use store::{Catalog as _, Error, EventLog as _, Ownership as _, Sqlite, SqliteError};
use tempfile::TempDir;

use crate::stores::{ALL, Bench, began, delta, log, sqlite_in};

/// Tells a process of this test that it is the one to be killed.
const FOLDER: &str = "SLEUTH_TEST_STORE_FOLDER";

#[tokio::test]
async fn a_folder_has_one_owner() {
    let folder = TempDir::new().unwrap();
    let first = sqlite_in(folder.path());
    assert!(matches!(Sqlite::open(folder.path()), Err(SqliteError::InUse(_))));
    drop(first);
    Sqlite::open(folder.path()).unwrap();
}

#[tokio::test]
async fn what_was_kept_is_there_after_a_restart_and_has_no_owner() {
    let folder = TempDir::new().unwrap();
    let bench = sqlite_in(folder.path());
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    bench.append(&lease, 0, vec![began(), delta("x")]).await.unwrap();
    drop(bench);
    let store = Sqlite::open(folder.path()).unwrap();
    assert_eq!(store.entry(&log("r")).await.unwrap().position, 2);
    assert_eq!(store.abandoned(9).await.unwrap(), [log("r")]);
    let lease = store.claim(&log("r"), &store::OwnerId::new("b")).await.unwrap().unwrap();
    assert_eq!(lease.epoch(), 2);
}

#[tokio::test]
async fn a_folder_of_a_newer_version_is_refused() {
    let folder = TempDir::new().unwrap();
    drop(sqlite_in(folder.path()));
    let database = Connection::open(folder.path().join("events.db")).unwrap();
    database.pragma_update(None, "user_version", 1000).unwrap();
    assert!(matches!(Sqlite::open(folder.path()), Err(SqliteError::Newer { found: 1000, .. })));
}

#[tokio::test]
async fn a_damaged_record_is_named_and_the_rest_is_read() {
    let folder = TempDir::new().unwrap();
    let bench = sqlite_in(folder.path());
    let owner = bench.owner("a").await;
    let lease = bench.run("r", &owner).await;
    bench.append(&lease, 0, vec![began(), delta("x"), delta("y")]).await.unwrap();
    drop(bench);
    let database = Connection::open(folder.path().join("events.db")).unwrap();
    let damage =
        "UPDATE events SET record = substr(record, 1, length(record) - 1) || X'00' WHERE position = 2";
    assert_eq!(database.execute(damage, []).unwrap(), 1);
    drop(database);
    let store = Sqlite::open(folder.path()).unwrap();
    let error = store.read(&log("r"), 0, ALL).await.unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { log: found, position: 2, .. } if *found == log("r")),
        "{error}"
    );
    assert_eq!(store.read(&log("r"), 2, ALL).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_loses_nothing_that_it_acknowledged() {
    let mut dice = fastrand::Rng::with_seed(7);
    for round in 0..8 {
        let folder = TempDir::new().unwrap();
        let acknowledged = kill_after(folder.path(), dice.usize(20..400));
        let bench = sqlite_in(folder.path());
        for (number, acknowledged) in acknowledged.into_iter().enumerate() {
            let positions = bench.positions(&log(&format!("r{number}"))).await;
            let last = positions.len() as u64;
            assert_eq!(positions, (1..=last).collect::<Vec<_>>(), "round {round}");
            assert!(last >= acknowledged, "round {round}: {last} of {acknowledged}");
        }
    }
}

const LOGS: usize = 4;

/// Kills a process that writes after some acknowledgements; returns how far each log was acknowledged.
fn kill_after(folder: &Path, acknowledgements: usize) -> [u64; LOGS] {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "sqlite::writes_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = [0; LOGS];
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let news = lines.map_while(Result::ok).filter_map(|line| {
        let (log, position) = line.strip_prefix("acknowledged ")?.split_once(' ')?;
        Some((log.parse::<usize>().ok()?, position.parse::<u64>().ok()?))
    });
    for (count, (log, position)) in news.enumerate() {
        acknowledged[log] = position;
        if count == acknowledgements {
            // What it says until it is dead counts, too.
            writer.kill().unwrap();
        }
    }
    writer.wait().unwrap();
    assert!(acknowledged.iter().sum::<u64>() as usize >= acknowledgements);
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that another test kills"]
async fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let bench = sqlite_in(Path::new(&folder));
    let owner = bench.owner("a").await;
    futures_util::future::join_all((0..LOGS).map(|number| write_on(&bench, &owner, number))).await;
}

async fn write_on(bench: &Bench, owner: &store::OwnerId, number: usize) {
    let lease = bench.run(&format!("r{number}"), owner).await;
    for after in 0.. {
        bench.append(&lease, after, vec![delta("x".repeat(300))]).await.unwrap();
        // One whole line at a time, whatever else is printed.
        let line = format!("acknowledged {number} {}\n", after + 1);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
}
