//! A trail is found however much else there is beside it.

#![cfg(test)]

use std::sync::Arc;

use accounts::{Rates, Registry};
use domain::{
    AgentId, ContextSize, Event, EventKind, LogId, Message, Role, RunId, RunSetup, RunStarted, Subagents,
    Timestamp,
};
use futures_util::TryStreamExt as _;
use prost_types::Timestamp as Time;
use runtime::clock;
use store::{Kind, Memory, Meta, NewLog, OwnerId, Retention, Store};
use wire::account::{AuditRequest, accounts_client::AccountsClient, audit_entry::What};

/// Runs there are, more than are looked for at a time. Of every hundredth, somebody else has asked.
const RUNS: u32 = 1300;

fn run(number: u32) -> String {
    format!("run_{number}")
}

fn began(number: u32) -> NewLog {
    let principal = if number.is_multiple_of(100) { "rare" } else { "busy" };
    let started = RunStarted {
        model: "m".into(),
        messages: vec![Message::text(Role::User, number.to_string())],
        overhead: ContextSize::default(),
        context_window: 1,
        max_output_tokens: 1,
        structured: false,
        client_tools: Vec::new(),
        runbooks: Vec::new(),
        approvals: false,
        waits: false,
        subagents: Subagents::default(),
        rlm: None,
        call: None,
        question: None,
        setup: Box::new(RunSetup::default()),
        account: "acme".into(),
        principal: principal.into(),
    };
    let event = Event {
        run: RunId::new(run(number)),
        position: 1,
        time: Timestamp(clock::unix_nanos()),
        agent: AgentId::main(),
        parent: None,
        kind: EventKind::RunStarted(started),
    };
    let meta = Meta { account: "acme".into(), kind: Kind::Run, title: String::new(), details: Vec::new() };
    let (id, owner) = (LogId::new(run(number)), OwnerId::new("o"));
    NewLog { id, owner, meta, idempotency: None, events: vec![event] }
}

#[tokio::test]
async fn what_is_rare_is_found_behind_what_is_not_and_read_on_from_any_run() {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Retention::default()));
    for number in 0..RUNS {
        store.create(began(number)).await.unwrap();
    }
    let service = Registry::new(store, Rates::default()).service();
    let asked = async |request: AuditRequest| -> Vec<String> {
        let mut client = AccountsClient::new(service.clone());
        let wanted = AuditRequest { account: "acme".to_owned(), ..request };
        let entries = client.audit(wanted).await.unwrap().into_inner();
        let entries: Vec<_> = entries.try_collect().await.unwrap();
        let question = |what| match what {
            Some(What::Asked(asked)) => asked.question,
            other => panic!("{other:?}"),
        };
        entries.into_iter().map(|entry| question(entry.what)).collect()
    };
    let of_rare = |runs, before: &str| AuditRequest {
        runs,
        principal: "rare".to_owned(),
        before_run_id: before.to_owned(),
        ..AuditRequest::default()
    };
    assert_eq!(asked(of_rare(0, "")).await.len(), 13);
    assert_eq!(asked(of_rare(2, "")).await, ["1200", "1100"]);
    assert_eq!(asked(of_rare(2, &run(1100))).await, ["1000", "900"]);
    assert_eq!(asked(of_rare(2, &run(50))).await, ["0"]);

    let (mut all, mut last) = (Vec::new(), String::new());
    loop {
        let page = AuditRequest { runs: 500, before_run_id: last, ..AuditRequest::default() };
        let page = asked(page).await;
        let Some(oldest) = page.last() else { break };
        last = run(oldest.parse().unwrap());
        all.extend(page);
    }
    assert_eq!(all, (0..RUNS).rev().map(|number| number.to_string()).collect::<Vec<_>>());

    let at = |text: &str| -> Option<Time> { Some(text.parse().unwrap()) };
    let old = AuditRequest { until: at("2020-01-01T00:00:00Z"), ..AuditRequest::default() };
    assert_eq!(asked(old).await, [""; 0]);
    let ahead = AuditRequest { since: at("2120-01-01T00:00:00Z"), ..AuditRequest::default() };
    assert_eq!(asked(ahead).await, [""; 0]);
}
