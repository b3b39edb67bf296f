//! What every log promises.

use std::{num::NonZeroUsize, sync::Arc};

use domain::{AgentId, Event, EventKind, MessageId, RunId, Timestamp};
use futures_util::{StreamExt as _, TryStreamExt as _, future::join_all};
use store::{Error, EventLog, Memory, Retention, tail};

const ALL: NonZeroUsize = NonZeroUsize::MAX;

fn event(run: &RunId, position: u64, kind: EventKind) -> Event {
    Event { run: run.clone(), position, time: Timestamp(0), agent: AgentId::main(), parent: None, kind }
}

fn delta(run: &RunId, position: u64) -> Event {
    event(run, position, EventKind::TextDelta { message: MessageId::new("m"), text: position.to_string() })
}

fn end(run: &RunId, position: u64) -> Event {
    event(run, position, EventKind::RunCancelled { reason: "done".into() })
}

#[tokio::test]
async fn appends_at_the_wrong_position_are_refused() {
    let log = Memory::default();
    let run = RunId::new("r");
    log.append(&run, 0, vec![delta(&run, 1), delta(&run, 2)]).await.unwrap();
    let conflict = log.append(&run, 1, vec![delta(&run, 2)]).await.unwrap_err();
    assert_eq!(conflict, Error::Conflict { run: run.clone(), expected: 1, found: 2 });
    assert_eq!(log.read(&run, 0, ALL).await.unwrap().len(), 2);
    assert_eq!(log.read(&run, 2, ALL).await.unwrap().len(), 0);
    let unknown = RunId::new("nobody");
    assert_eq!(log.read(&unknown, 0, ALL).await.unwrap_err(), Error::UnknownRun(unknown));
}

#[tokio::test]
async fn readers_that_start_anywhere_at_any_time_see_each_event_once() {
    const LAST: u64 = 500;
    let log: Arc<dyn EventLog> = Arc::new(Memory::default());
    let run = RunId::new("r");
    log.append(&run, 0, vec![delta(&run, 1)]).await.unwrap();
    let writer = async {
        for position in 2..LAST {
            log.append(&run, position - 1, vec![delta(&run, position)]).await.unwrap();
            if position % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
        log.append(&run, LAST - 1, vec![end(&run, LAST)]).await.unwrap();
    };
    let readers = [0, 1, 17, LAST - 1].map(|after| {
        let events = tail(Arc::clone(&log), run.clone(), after).map_ok(|event| event.position);
        async move { (after, events.try_collect::<Vec<_>>().await.unwrap()) }
    });
    let ((), read) = tokio::join!(writer, join_all(readers));
    for (after, positions) in read {
        assert!(positions.iter().copied().eq(after + 1..=LAST), "a reader after {after} saw {positions:?}");
    }
}

#[tokio::test]
async fn ended_runs_are_forgotten_oldest_first_and_running_ones_never() {
    let log = Memory::new(Retention { runs: 2, bytes: usize::MAX });
    let running = RunId::new("running");
    log.append(&running, 0, vec![delta(&running, 1)]).await.unwrap();
    for number in 0..5 {
        let run = RunId::new(number.to_string());
        log.append(&run, 0, vec![end(&run, 1)]).await.unwrap();
    }
    let kept = |id: &str| {
        let run = RunId::new(id);
        let log = &log;
        async move { log.read(&run, 0, ALL).await.is_ok() }
    };
    assert!(kept("running").await && kept("3").await && kept("4").await);
    assert!(!kept("2").await);
}

#[tokio::test]
async fn a_tail_of_an_ended_run_ends() {
    let log: Arc<dyn EventLog> = Arc::new(Memory::default());
    let run = RunId::new("r");
    log.append(&run, 0, vec![end(&run, 1)]).await.unwrap();
    assert_eq!(tail(Arc::clone(&log), run, 0).count().await, 1);
}
