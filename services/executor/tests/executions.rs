//! Executions over gRPC: results, limits, deadlines, cancelling, attaching.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]

mod rig;

use std::time::Duration;

use rig::{Rig, bash, config, finished, processes_with, request, rest, unique, until};
use serde_json::json;
use tonic::Code;
use wire::executor::{
    AnswerHostCallRequest, AttachRequest, Caller, CancelRequest, Ending, ExecuteEvent, Finished,
    ListToolsRequest, OutputPosition, OutputStream, PlanRequest, ToolStatus, ToolsetStatus, Verdict,
    execute_event::Kind,
};

fn output(events: &[ExecuteEvent]) -> Vec<u8> {
    let chunks = events.iter().filter_map(|event| match &event.kind {
        Some(Kind::Output(chunk)) => Some(chunk.data.to_vec()),
        _ => None,
    });
    chunks.flatten().collect()
}

fn attach(id: &str, after_sequence: u64) -> AttachRequest {
    AttachRequest { execution_id: id.to_owned(), after_sequence, ..AttachRequest::default() }
}

fn cancel(id: &str) -> CancelRequest {
    CancelRequest { execution_id: id.to_owned(), caller: None }
}

#[tokio::test]
async fn bash_answers_as_its_users_know_it() {
    let mut rig = Rig::new().await;
    for (command, status, data, error, code) in [
        ("echo r0t0", ToolStatus::Success, "echo r0t0\nr0t0", "", 0),
        ("echo -n", ToolStatus::NoData, "echo -n\n", "", 0),
        (
            "grep zzz /dev/null",
            ToolStatus::Error,
            "grep zzz /dev/null\n",
            "Error: Command \"grep zzz /dev/null\" returned non-zero exit status 1",
            1,
        ),
        (
            "echo one; echo two >&2; echo three",
            ToolStatus::Success,
            "echo one; echo two >&2; echo three\none\ntwo\nthree",
            "",
            0,
        ),
    ] {
        let end = rig.bash(command).await;
        assert_eq!((end.status(), end.data.as_str(), end.error.as_str()), (status, data, error), "{command}");
        assert_eq!(
            (end.ending(), end.exit_code, end.invocation.as_str()),
            (Ending::Exited, Some(code), command)
        );
        assert!(end.elapsed.is_some());
    }
}

#[tokio::test]
async fn what_is_refused_says_why_and_runs_nothing() {
    let mut rig = Rig::new().await;
    for (tool, arguments, verdict, reason) in [
        (
            "bash",
            json!({"command": "sudo id", "suggested_prefixes": ["sudo"]}),
            Verdict::Deny,
            "Command blocked:",
        ),
        ("bash", json!({"command": "rm -rf /tmp/x"}), Verdict::Ask, "refused: `rm`: it is not on the list"),
        ("bash", json!({"command": "ls", "suggested_prefixes": ["cat"]}), Verdict::Deny, "Invalid prefix:"),
        ("bash", json!({}), Verdict::Deny, "refused: the parameter `command` is missing"),
        (
            "bash",
            json!({"command": 1, "timeout": "soon"}),
            Verdict::Deny,
            "refused: the parameter `timeout` must be an integer",
        ),
        ("bash", json!([]), Verdict::Deny, "refused: the arguments are not a JSON object"),
        (
            "TodoWrite",
            json!({"todos": [{"id": "1", "content": "x", "status": "late"}]}),
            Verdict::Deny,
            "refused: `late` is no status",
        ),
    ] {
        let end = rig.run(tool, &arguments).await;
        assert_eq!((end.status(), end.ending(), end.exit_code), (ToolStatus::Error, Ending::Refused, None));
        assert!(end.error.starts_with(reason), "{arguments}: {}", end.error);
        let plan = PlanRequest {
            tool: tool.to_owned(),
            arguments_json: arguments.to_string(),
            ..PlanRequest::default()
        };
        let plan = rig.client.plan(plan).await.unwrap().into_inner();
        assert_eq!((plan.verdict(), plan.reason), (verdict, end.error));
    }
}

#[tokio::test]
async fn an_unknown_tool_is_not_found() {
    let mut rig = Rig::new().await;
    let planned =
        rig.client.plan(PlanRequest { tool: "no_such_tool".to_owned(), ..PlanRequest::default() }).await;
    assert_eq!(planned.unwrap_err().code(), Code::NotFound);
    assert_eq!(
        rig.execute(request(&unique(), "no_such_tool", &json!({}))).await.unwrap_err().code(),
        Code::NotFound
    );
    assert_eq!(rig.execute(bash("", "ls")).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn tools_of_missing_programs_are_not_listed() {
    let mut broken = config();
    broken.kubectl = "no-such-kubectl".to_owned();
    let mut rig = Rig::with(broken).await;
    let list = rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner();
    let names: Vec<_> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["bash", "TodoWrite"]);
    for toolset in &list.toolsets {
        let failed = toolset.name.starts_with("kubernetes/");
        assert_eq!(toolset.status() == ToolsetStatus::Failed, failed, "{}", toolset.name);
        assert_eq!(toolset.error.contains("no-such-kubectl"), failed);
    }
    for tool in list.tools {
        let schema: serde_json::Value = serde_json::from_str(&tool.parameters_json).unwrap();
        assert_eq!(schema["type"], "object");
    }
}

#[tokio::test]
async fn tasks_are_listed_by_status() {
    let todos = json!([
        {"id": "1", "content": "Look", "status": "in_progress"},
        {"id": "2", "content": "Report", "status": "pending"},
    ]);
    let end = Rig::new().await.run("TodoWrite", &json!({ "todos": todos })).await;
    assert_eq!(
        (end.status(), end.ending(), end.invocation.as_str()),
        (ToolStatus::Success, Ending::Answered, "")
    );
    assert!(
        end.data.contains("0 completed, 1 in progress, 1 pending\n\n[ ] [2] Report\n[~] [1] Look\n"),
        "{}",
        end.data
    );
}

#[tokio::test]
async fn output_is_shown_while_it_comes_and_characters_stay_whole() {
    let mut rig = Rig::new().await;
    let command = "printf 'a\\n\\303'; sleep 0.1; printf '\\251\\377\\n'; sleep 30";
    let mut events = rig.execute(bash(&unique(), command)).await.unwrap();
    let mut chunks = Vec::new();
    until(&mut events, |event| {
        if let Some(Kind::Output(chunk)) = &event.kind {
            chunks.push((chunk.offset, chunk.data.to_vec()));
        }
        chunks.last().is_some_and(|(_, data)| data.ends_with(b"\xff\n")).then_some(())
    })
    .await;
    assert_eq!(chunks, [(0, b"a\n".to_vec()), (2, "é".bytes().chain(*b"\xff\n").collect())]);
}

#[tokio::test]
async fn too_much_output_keeps_head_and_tail() {
    let mut small = config();
    small.output_bytes = 64;
    let mut rig = Rig::with(small).await;
    let events = rest(rig.execute(bash(&unique(), "seq 100000")).await.unwrap()).await;
    let end = finished(&events);
    assert_eq!(end.total_bytes, 588_895, "{end:?}");
    assert_eq!(end.omitted_bytes, 588_895 - 64);
    assert!(
        end.data.starts_with("seq 100000\n1\n2\n3\n") && end.data.ends_with("\n99999\n100000"),
        "{}",
        end.data
    );
    assert!(output(&events).len() <= 64);
}

#[tokio::test]
async fn endless_output_is_bounded_and_ended() {
    let mut small = config();
    small.output_bytes = 4 << 10;
    let mut rig = Rig::with(small).await;
    let command = json!({"command": "cat /dev/zero", "timeout": 1});
    let end = rig.run("bash", &command).await;
    assert_eq!(end.ending(), Ending::TimedOut);
    assert!(end.total_bytes > 64 << 10 && end.data.len() < 8 << 10);
}

#[tokio::test]
async fn the_earlier_deadline_counts_and_is_named() {
    let mut rig = Rig::new().await;
    let end = rig.run("bash", &json!({"command": "tail -f /dev/null", "timeout": 1})).await;
    assert_eq!(end.error, "Error: Command 'tail -f /dev/null' timed out after 1 seconds.");
    assert_eq!((end.status(), end.ending(), end.data.as_str()), (ToolStatus::Error, Ending::TimedOut, ""));

    let mut request = bash(&unique(), "echo partly; tail -f /dev/null");
    request.timeout_ms = 500;
    let end = finished(&rest(rig.execute(request).await.unwrap()).await);
    assert!(end.error.contains("the time of the whole run is up"), "{}", end.error);
    assert_eq!((end.ending(), end.exit_code), (Ending::TimedOut, None));
    assert_eq!(end.data, "echo partly; tail -f /dev/null\npartly");
}

#[tokio::test]
async fn cancelling_ends_all_processes_and_may_be_repeated() {
    let mut rig = Rig::new().await;
    let (id, mark) = (unique(), unique());
    let command = format!("echo started; tail -f /dev/null /dev/./null | grep {mark} | grep {mark}");
    let mut events = rig.execute(bash(&id, &command)).await.unwrap();
    until(&mut events, |event| matches!(event.kind, Some(Kind::Output(_))).then_some(())).await;
    assert!(rig.client.cancel(cancel(&id)).await.unwrap().into_inner().was_running);
    let end = finished(&rest(events).await);
    assert_eq!((end.status(), end.ending()), (ToolStatus::Error, Ending::Cancelled));
    assert_eq!(processes_with(&mark), Vec::<String>::new());
    assert!(!rig.client.cancel(cancel(&id)).await.unwrap().into_inner().was_running);
    assert_eq!(rig.client.cancel(cancel(&unique())).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn the_same_call_runs_once_and_another_is_refused() {
    let mut rig = Rig::new().await;
    let id = unique();
    let first = rest(rig.execute(bash(&id, "date +%N")).await.unwrap()).await;
    let again = rest(rig.execute(bash(&id, "date +%N")).await.unwrap()).await;
    assert_eq!(first, again);
    assert_eq!(rig.execute(bash(&id, "date +%s")).await.unwrap_err().code(), Code::AlreadyExists);
    let mut stranger = bash(&id, "date +%s");
    stranger.caller = Some(Caller { account: "other".to_owned(), principal: String::new() });
    assert_eq!(finished(&rest(rig.execute(stranger).await.unwrap()).await).status(), ToolStatus::Success);
}

#[tokio::test]
async fn attaching_gives_what_came_after() {
    let mut rig = Rig::new().await;
    let id = unique();
    let all = rest(rig.execute(bash(&id, "echo one; sleep 0.1; echo two")).await.unwrap()).await;
    let sequences: Vec<_> = all.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=all.len() as u64).collect::<Vec<_>>());
    for after in 0..=all.len() {
        let events = rest(rig.client.attach(attach(&id, after as u64)).await.unwrap().into_inner()).await;
        assert_eq!(events, all[after..]);
    }
    assert_eq!(rig.client.attach(attach(&unique(), 0)).await.unwrap_err().code(), Code::NotFound);
}

/// The output of an execution, stream by stream, as a reader has it that is interrupted again and again.
struct Half {
    streams: [Vec<u8>; 2],
    rng: fastrand::Rng,
}

impl Half {
    /// Reads from where it was, at most so many bytes. True at the end.
    async fn read(&mut self, rig: &mut Rig, id: &str, most: usize) -> Option<Finished> {
        let output = [OutputStream::Stdout, OutputStream::Stderr].into_iter().zip(&self.streams);
        let output = output.map(|(stream, bytes)| OutputPosition {
            stream: stream.into(),
            command: 0,
            offset: bytes.len() as u64,
        });
        let request = AttachRequest { output: output.collect(), ..attach(id, 0) };
        let mut events = rig.client.attach(request).await.unwrap().into_inner();
        let mut read = 0;
        while read < most {
            match events.message().await.unwrap()?.kind {
                Some(Kind::Output(chunk)) => {
                    let own = &mut self.streams[usize::from(chunk.stream() == OutputStream::Stderr)];
                    assert_eq!(chunk.offset, own.len() as u64, "nothing is lost or repeated");
                    // A reader that breaks off may have only a part of what was sent.
                    let part = self.rng.usize(..=chunk.data.len());
                    read += part.max(1);
                    own.extend(&chunk.data[..part]);
                    if part < chunk.data.len() {
                        return None;
                    }
                }
                Some(Kind::Finished(finished)) => return Some(finished),
                _ => {}
            }
        }
        None
    }
}

#[tokio::test]
async fn a_reader_that_comes_back_at_an_offset_loses_and_repeats_no_byte() {
    let mut rig = Rig::new().await;
    for seed in 0..12 {
        let id = unique();
        let command = "seq 1 4000; seq 1 3000 >&2; sleep 0.1; seq 1 2000; sleep 0.1; echo é; seq 1 900 >&2";
        let stream = rig.execute(bash(&id, command)).await.unwrap();
        let mut half = Half { streams: [Vec::new(), Vec::new()], rng: fastrand::Rng::with_seed(seed) };
        let mut stream = Some(stream);
        let end = loop {
            let most = half.rng.usize(1..8000);
            if let Some(end) = half.read(&mut rig, &id, most).await {
                break end;
            }
            stream.take();
        };
        let digests: Vec<_> =
            end.streams.iter().map(|stream| (stream.bytes, stream.sha256.to_vec())).collect();
        let own: Vec<_> =
            half.streams.iter().map(|own| (own.len() as u64, grants::sha256(own).to_vec())).collect();
        assert_eq!(own, digests, "seed {seed}");
    }
}

#[tokio::test]
async fn an_execution_outlives_its_stream_until_the_grace_ends() {
    let mut hasty = config();
    hasty.orphan_grace = Duration::from_millis(300);
    let mut rig = Rig::with(hasty).await;

    let id = unique();
    drop(rig.execute(bash(&id, "sleep 0.1; echo done")).await.unwrap());
    let events = rig.client.attach(attach(&id, 0)).await.unwrap().into_inner();
    assert_eq!(finished(&rest(events).await).status(), ToolStatus::Success);

    let (id, mark) = (unique(), unique());
    let mut events =
        rig.execute(bash(&id, &format!("echo up; tail -f /dev/null | grep {mark}"))).await.unwrap();
    until(&mut events, |event| matches!(event.kind, Some(Kind::Output(_))).then_some(())).await;
    drop(events);
    let gone = async {
        while !processes_with(&mark).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("the orphan to end");
    let events = rest(rig.client.attach(attach(&id, 0)).await.unwrap().into_inner()).await;
    let end = finished(&events);
    assert_eq!(end.ending(), Ending::Cancelled);
    assert!(end.error.contains("nobody had read"), "{}", end.error);
}

#[tokio::test]
async fn a_silent_execution_sends_heartbeats() {
    let mut lively = config();
    lively.heartbeat = Duration::from_millis(20);
    let mut rig = Rig::with(lively).await;
    let mut events = rig.execute(bash(&unique(), "tail -f /dev/null")).await.unwrap();
    let heartbeat =
        until(&mut events, |event| matches!(event.kind, Some(Kind::Heartbeat(_))).then(|| event.clone()))
            .await;
    assert_eq!(heartbeat.sequence, 0);
}

#[tokio::test]
async fn too_many_executions_wait_and_then_are_refused() {
    let mut narrow = config();
    (narrow.concurrency, narrow.queue) = (1, 1);
    let mut rig = Rig::with(narrow).await;
    let (first, second) = (unique(), unique());
    let mut running = rig.execute(bash(&first, "echo up; tail -f /dev/null")).await.unwrap();
    until(&mut running, |event| matches!(event.kind, Some(Kind::Output(_))).then_some(())).await;
    let waiting = rig.execute(bash(&second, "echo mine")).await.unwrap();
    let refused = rig.execute(bash(&unique(), "echo no")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    rig.client.cancel(cancel(&first)).await.unwrap();
    assert_eq!(finished(&rest(waiting).await).status(), ToolStatus::Success);
}

#[tokio::test]
async fn shutting_down_lets_calls_end_and_takes_no_more() {
    let mut rig = Rig::new().await;
    let mut events = rig.execute(bash(&unique(), "echo up; sleep 0.5; echo done")).await.unwrap();
    until(&mut events, |event| matches!(event.kind, Some(Kind::Output(_))).then_some(())).await;
    let mut client = rig.client.clone();
    let (ends, refused) = tokio::join!(rig.executor.shutdown(), async {
        loop {
            // It may be asked before the shutdown begins.
            let refused = client.execute(bash(&unique(), "ls")).await;
            if let Err(refused) = refused {
                break (refused, client.list_tools(ListToolsRequest::default()).await.unwrap_err());
            }
        }
    });
    let () = ends;
    assert_eq!((refused.0.code(), refused.1.code()), (Code::Unavailable, Code::Unavailable));
    let end = finished(&rest(events).await);
    assert_eq!((end.ending(), end.exit_code), (Ending::Exited, Some(0)), "{end:?}");
}

#[tokio::test]
async fn shutting_down_hands_back_what_does_not_end() {
    let mut hurried = config();
    hurried.drain_time = Duration::from_millis(100);
    let mut rig = Rig::with(hurried).await;
    let mark = unique();
    let mut events =
        rig.execute(bash(&unique(), &format!("echo up; tail -f /dev/null | grep {mark}"))).await.unwrap();
    until(&mut events, |event| matches!(event.kind, Some(Kind::Output(_))).then_some(())).await;
    rig.executor.shutdown().await;
    assert_eq!(processes_with(&mark), Vec::<String>::new());
    let end = finished(&rest(events).await);
    assert_eq!(end.ending(), Ending::Lost, "it only reads, and may begin again elsewhere");
    assert!(end.error.contains("shutting down"), "{}", end.error);
}

#[tokio::test]
async fn commands_see_no_key_of_the_executor() {
    let mut guarded = config();
    guarded.environment =
        vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("LANG".into(), "C".into())];
    let mut rig = Rig::with(guarded).await;
    if !rig::has("jq") {
        return;
    }
    let end = rig.bash("jq -nc '$ENV | del(.TMPDIR) | keys'").await;
    assert_eq!(end.data.lines().last().unwrap(), r#"["LANG","PATH","PWD","SHLVL","_"]"#);
    assert_eq!((end.sandbox.is_empty(), end.sandbox_layers.is_empty()), (false, false));
}

#[tokio::test]
async fn nobody_waits_for_a_host_call() {
    let mut rig = Rig::new().await;
    let id = unique();
    drop(rest(rig.execute(bash(&id, "ls")).await.unwrap()).await);
    let answer = AnswerHostCallRequest {
        execution_id: id,
        host_call_id: "x".to_owned(),
        ..AnswerHostCallRequest::default()
    };
    assert_eq!(rig.client.answer_host_call(answer).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn kubectl_tools_take_no_options_and_show_no_secrets() {
    if !rig::has("kubectl") {
        return;
    }
    let mut rig = Rig::new().await;
    for (tool, arguments, reason) in [
        ("kubectl_get_by_kind_in_cluster", json!({"kind": "secrets"}), "Secrets are not shown"),
        ("kubectl_get_by_kind_in_cluster", json!({"kind": "pods,Secret"}), "Secrets are not shown"),
        ("kubectl_get_yaml", json!({"kind": "secrets.v1.", "name": "x"}), "Secrets are not shown"),
        ("kubectl_get_yaml", json!({"kind": "secret/x", "name": "x"}), "`kind`"),
        ("kubectl_describe", json!({"kind": "--raw=/api", "name": "x"}), "`kind`"),
        ("kubectl_describe", json!({"kind": "pod", "name": "secret/x"}), "`name`"),
        ("kubectl_get_by_name", json!({"kind": "pod", "name": "--token=x"}), "`name`"),
        ("kubectl_get_by_name", json!({"kind": "pod", "name": "x; id"}), "`name`"),
        ("kubectl_get_by_kind_in_namespace", json!({"kind": "pod", "namespace": "-A"}), "`namespace`"),
        ("kubectl_events", json!({"resource_type": "pod", "resource_name": "$(id)"}), "`resource_name`"),
        ("kubectl_logs", json!({"pod_name": "-f", "namespace": "x"}), "`pod_name`"),
        ("fetch_pod_logs", json!({"pod_name": "x", "namespace": "x y"}), "`namespace`"),
        (
            "kubernetes_tabular_query",
            json!({"kind": "secret", "columns": "A:.data"}),
            "Secrets are not shown",
        ),
    ] {
        let end = rig.run(tool, &arguments).await;
        assert_eq!(end.ending(), Ending::Refused, "{tool} {arguments}");
        assert!(end.error.contains(reason), "{tool} {arguments}: {}", end.error);
    }
}

/// What stands in for kubectl prints a list and its arguments, whatever it is asked.
#[tokio::test]
async fn a_jq_expression_is_one_argument_of_jq() {
    use std::os::unix::fs::PermissionsExt as _;
    if !rig::has("jq") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kubectl = folder.path().join("kubectl");
    std::fs::write(&kubectl, "#!/bin/bash\necho '{\"items\": [1, 2, 3]}'\n").unwrap();
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut config = config();
    config.kubectl = kubectl.to_string_lossy().into_owned();
    let mut rig = Rig::with(config).await;
    for (expression, answer) in [
        (
            ".items[] | select(. > 1) # more",
            json!({"total_items_processed": 3, "matches_found": 2, "results": [2, 3]}),
        ),
        (
            "\"$(id) `id` 'x'\"",
            json!({"total_items_processed": 3, "matches_found": 1, "results": ["$(id) `id` 'x'"]}),
        ),
        ("-1", json!({"total_items_processed": 3, "matches_found": 1, "results": [-1]})),
        ("empty", json!({"total_items_processed": 3, "matches_found": 0, "results": []})),
    ] {
        let end = rig.run("kubernetes_jq_query", &json!({"kind": "pods", "jq_expr": expression})).await;
        assert_eq!(serde_json::from_str::<serde_json::Value>(&end.data).unwrap(), answer, "{}", end.error);
        let status = if answer["matches_found"] == 0 { ToolStatus::NoData } else { ToolStatus::Success };
        assert_eq!(end.status(), status);
    }
    let end = rig.run("kubernetes_jq_query", &json!({"kind": "pods", "jq_expr": ".items["})).await;
    assert_eq!((end.status(), end.exit_code), (ToolStatus::Error, Some(3)));
    let count = json!({"kind": "pods", "jq_expr": "range(25)"});
    let end = rig.run("kubernetes_count", &count).await;
    let data: serde_json::Value = serde_json::from_str(&end.data).unwrap();
    assert_eq!((&data["matches_found"], data["preview"].as_array().unwrap().len()), (&json!(25), 10));
}
