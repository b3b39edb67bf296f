//! Sessions that are deleted by agents that die over it.

use store::{Kind, Query};
use tokio::time::{sleep, timeout};
use wire::session::{ContentPart, Details, Message, SessionSettings, SessionStatus, content_part::Part};

use super::*;

#[test]
fn a_session_whose_deletion_breaks_off_is_deleted_whole_by_the_next_try() {
    let world = World::new(&[]);
    let life = world.live();
    let sessions = life.sessions();
    let hints_json = r#"{"files":true}"#.to_owned();
    let settings = Some(SessionSettings { hints_json, ..SessionSettings::default() });
    let id = life.until(sessions.create("a", Details { settings, ..Details::default() }, None)).unwrap().id;
    let content = vec![ContentPart { part: Some(Part::Text("Hi".to_owned())) }];
    life.until(sessions.say(&id, "a", "", Message { content, ..Message::default() }, "")).unwrap();
    life.until(async {
        while sessions.get(&id, "a").await.unwrap().status() != SessionStatus::Idle {
            sleep(TWITCH).await;
        }
    });
    assert!(world.hands.closed().sessions.is_empty(), "its files stay for the next turn");

    world.hands.closed().silent = true;
    let deletion = life.until(async { timeout(TWITCH, sessions.delete(&id, "a")).await });
    assert!(deletion.is_err(), "it has ended");
    drop((sessions, life));
    let before = std::mem::take(&mut *world.hands.closed()).sessions;
    assert!(matches!(before.as_slice(), [one] if *one == id), "{before:?}");

    let next = world.live();
    next.until(next.sessions().delete(&id, "a")).unwrap();
    assert!(world.hands.closed().sessions.contains(&id));
    for kind in [Kind::Session, Kind::Run] {
        let query = Query { account: "a".to_owned(), kind, before: None, limit: NonZeroUsize::MIN };
        assert_eq!(world.now(world.store.list(query)).unwrap(), [], "{kind:?}");
    }
}
