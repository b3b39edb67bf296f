//! The interpreter: what stays in it, what it asks its host for, and that nothing gets out of it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]
#![expect(dead_code, reason = "not every test needs all of the rig")]

mod rig;

use std::time::Duration;

use rig::{Rig, config, finished, request, rest, unique, until};
use serde_json::{Value, json};
use tokio_stream::iter;
use tonic::Code;
use wire::executor::{
    AnswerHostCallRequest, CancelRequest, CloseSessionRequest, Ending, ExecuteEvent, ExecuteRequest,
    HostCall, Interpreter, OutputStream, PutBlobRequest, answer_host_call_request::Answer,
    execute_event::Kind,
};

/// An executor with one interpreter in use.
struct World {
    rig: Rig,
    begun: bool,
    context: Vec<u8>,
}

impl World {
    async fn new() -> Self {
        Self::with(Duration::from_secs(1)).await
    }

    async fn with(repl_time: Duration) -> Self {
        let mut config = config();
        config.repl_time = repl_time;
        config.repl_memory = 256 << 20;
        Self { rig: Rig::with(config).await, begun: false, context: Vec::new() }
    }

    fn request(&mut self, code: &str) -> ExecuteRequest {
        let begins = !std::mem::replace(&mut self.begun, true);
        ExecuteRequest {
            session: "session".to_owned(),
            profile: "rlm".to_owned(),
            interpreter: Some(Interpreter {
                name: "run/main".to_owned(),
                begins,
                context_sha256: self.context.clone().into(),
            }),
            ..request(&unique(), "repl", &json!({"code": code}))
        }
    }

    async fn run(&mut self, code: &str) -> Value {
        let request = self.request(code);
        result(&rest(self.rig.execute(request).await.unwrap()).await)
    }

    /// What code prints, or its error.
    async fn says(&mut self, code: &str) -> String {
        let end = self.run(code).await;
        match end["error"].as_str() {
            Some(error) => error.to_owned(),
            None => end["stdout"].as_str().unwrap().trim_end().to_owned(),
        }
    }

    async fn put(&mut self, pieces: Vec<Vec<u8>>) {
        let piece =
            |data: Vec<u8>| PutBlobRequest { caller: None, session: "session".to_owned(), data: data.into() };
        let kept = self.rig.client.put_blob(iter(pieces.into_iter().map(piece))).await.unwrap().into_inner();
        self.context = kept.sha256.to_vec();
    }

    async fn answer(&mut self, execution: &str, call: &HostCall, answer: Answer) -> Result<(), Code> {
        let request = AnswerHostCallRequest {
            caller: None,
            execution_id: execution.to_owned(),
            host_call_id: call.host_call_id.clone(),
            answer: Some(answer),
        };
        self.rig.client.answer_host_call(request).await.map(drop).map_err(|status| status.code())
    }
}

fn result(events: &[ExecuteEvent]) -> Value {
    let end = finished(events);
    assert_eq!(end.ending(), Ending::Answered, "{}", end.error);
    serde_json::from_str(&end.data).unwrap()
}

fn host_call(event: &ExecuteEvent) -> Option<HostCall> {
    match &event.kind {
        Some(Kind::HostCall(call)) => Some(call.clone()),
        _ => None,
    }
}

#[tokio::test]
async fn code_prints_keeps_and_answers() {
    let mut world = World::new().await;
    for (code, stdout, error, answer) in [
        ("console.log('a', 1, {b: [2]}, null, undefined)", "a 1 {\"b\":[2]} null undefined\n", None, None),
        ("console.error('x'); print(new Error('y'))", "x\nError: y\n", None, None),
        ("scope.n = 20; var lost = 1", "", None, None),
        (
            "scope.n++; print(scope.n, typeof lost, typeof context, context.length)",
            "21 undefined string 0\n",
            None,
            None,
        ),
        ("print(await Promise.resolve(3)); return 4; print(5)", "3\n", None, None),
        ("FINAL('done'); print('still here')", "still here\n", None, Some("done")),
        ("scope.a = {b: 1}; FINAL_VAR('a')", "", None, Some("{\"b\":1}")),
        ("FINAL(1); throw new RangeError('no')", "", Some("RangeError: no"), None),
        ("print(1); nothing()", "1\n", Some("ReferenceError: nothing is not defined"), None),
        ("throw 'plain'", "", Some("plain"), None),
        (
            "await new Promise(() => {})",
            "",
            Some("the code waits for something that will never happen"),
            None,
        ),
        ("print('\\ud800ü€😀')", "\u{fffd}ü€😀\n", None, None),
        ("print(scope.n)", "21\n", None, None),
    ] {
        let end = world.run(code).await;
        assert_eq!(
            end,
            json!({"stdout": stdout, "error": error, "answer": answer, "truncated": false, "lost": false}),
            "{code}"
        );
    }
    let wrong = world.says("let = ;").await;
    assert!(wrong.starts_with("SyntaxError: "), "{wrong}");
}

#[tokio::test]
async fn output_is_seen_as_it_comes_and_without_secrets() {
    let mut world = World::new().await;
    let call =
        world.request("print('one'); console.warn('password=hunter22hunter22'); print('x'.repeat(200000))");
    let events = rest(world.rig.execute(call).await.unwrap()).await;
    let chunks: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            Some(Kind::Output(chunk)) => {
                Some((chunk.stream(), String::from_utf8(chunk.data.to_vec()).unwrap()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(chunks[0], (OutputStream::Stdout, "one\n".to_owned()));
    assert!(chunks.iter().any(|(stream, _)| *stream == OutputStream::Stderr));
    let end = result(&events);
    assert!(!format!("{chunks:?}{end}").contains("hunter22"));
    assert_eq!(end["truncated"], true);
    let end = finished(&events);
    assert!(end.redacted_spans > 0 && end.total_bytes > 200_000, "{end:?}");
    assert!(!end.sandbox.is_empty() && end.sandbox_layers.iter().any(|it| it == "seccomp"), "{end:?}");
}

#[tokio::test]
async fn nothing_gets_out() {
    let mut world = World::new().await;
    let nothing = [
        "typeof require",
        "typeof process",
        "typeof fetch",
        "typeof setTimeout",
        "typeof native",
        "typeof std",
        "typeof os",
        "typeof Deno",
        "typeof WebAssembly",
        "typeof module",
        "typeof load",
        "typeof __host",
        "typeof this.constructor.constructor('return globalThis.process')()",
        "typeof Function('return this')().native",
        "await llm_query.constructor('return typeof native')()",
    ];
    // What can be reached is the code itself, and functions as it can write them.
    let own = ["typeof arguments.callee", "typeof llm_query.constructor('return native')"];
    let expected = nothing.map(|code| (code, "undefined")).into_iter();
    for (code, word) in expected.chain(own.map(|code| (code, "function"))) {
        assert_eq!(world.says(&format!("print({code})")).await, word, "{code}");
    }
    for code in [
        "await import('fs')",
        "await import('/etc/passwd')",
        "await import('data:text/javascript,1')",
        "print(arguments.callee.caller)",
        "new Worker('x')",
        "importScripts('x')",
        "new XMLHttpRequest()",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        "Object.defineProperty(globalThis, 'FINAL', {value: 1})",
        "'use strict'; FINAL = 1",
        "console.log = 1; print(console.log === 1)",
        "llm_query.call.call(1)",
    ] {
        let said = world.says(code).await;
        assert!(said.contains("Error") || said == "false" || said == "null", "{code}: {said}");
    }
    // What is done to the language is done to oneself.
    for code in [
        "Object.prototype.toString = () => { throw 1 }; JSON.stringify = () => '\"'; Array.prototype.map = null",
        "String.prototype.slice = () => 7; Promise.prototype.then = null; Error.prototype.name = 7",
        "throw {get message() { while (true); }, get name() { throw 1 }, toString() { throw 2 }}",
        "Object.defineProperty(Object.prototype, 'then', {get() { throw 3 }, configurable: true}); throw 4",
    ] {
        world.begun = false;
        world.says(code).await;
        world.says("print(1)").await;
        world.begun = false;
        assert_eq!(world.says("print(1)").await, "1", "{code}");
    }
}

#[tokio::test]
async fn what_never_ends_is_ended_and_variables_stay() {
    let mut world = World::new().await;
    world.says("scope.kept = 'here'").await;
    for code in [
        "while (true) {}",
        "for (;;) { try { while (true) {} } catch {} finally { while (true) {} } }",
        "await null; while (true) {}",
        "const f = async () => { while (true) await null }; await f()",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "const spin = () => Promise.resolve().then(spin); spin(); await new Promise(() => {})",
        "[1].forEach(function again() { [1].forEach(again) }); while (1);",
        "({ toString() { while (true) {} } }) + ''",
        "for (const x of (function* () { while (true) yield 1 })()) {}",
    ] {
        let said = world.says(code).await;
        assert!(
            said.starts_with("the code worked for longer than") || said.contains("RangeError"),
            "{code}: {said}"
        );
        assert_eq!(world.says("print(scope.kept)").await, "here", "{code}");
    }
}

#[tokio::test]
async fn what_takes_too_much_is_a_clean_error() {
    let mut world = World::with(Duration::from_secs(4)).await;
    for code in [
        "let s = 'x'; while (true) s += s",
        "'x'.repeat(2 ** 30 - 1)",
        "const a = []; while (true) a.push(new Uint8Array(1 << 20).fill(1))",
        "const a = []; while (true) a.push({a: [1, 2, 3]})",
        "const f = () => f() + 1; f()",
        "let a = []; for (let i = 0; i < 200000; i++) a = [a]; JSON.stringify(a)",
        "eval('('.repeat(500000))",
        "new Array(2 ** 32 - 1).fill(0)",
        "const all = []; while (true) all.push(new Promise(() => {}))",
        "let n = 3n; while (true) n *= n",
        "await Promise.all(Array.from({length: 5000}, () => Promise.reject(new Error('flood'))))",
        "print('x'.repeat(50000000)); throw new Error('printed')",
    ] {
        let said = world.says(code).await;
        assert!(!said.is_empty() && said.len() < 300, "{code}: {said}");
        // Those that had to be ended from outside have lost their variables, and say so.
        let next = world.says("print(1)").await;
        assert_eq!(next, "1", "{code}: {said}");
    }
}

#[tokio::test]
async fn one_that_cannot_be_interrupted_is_ended_from_outside() {
    let mut world = World::new().await;
    world.says("scope.kept = 1").await;
    let said =
        world.says("const s = 'a'.repeat(2e7), t = 'a'.repeat(1e6) + 'b'; while (true) s.indexOf(t)").await;
    assert!(said.contains("is lost, and its variables with it: it did not stop after"), "{said}");
    assert_eq!(world.says("print(scope.kept)").await, "undefined");
}

#[tokio::test]
async fn it_asks_its_host() {
    let mut world = World::new().await;
    let call = world.request(
        "const all = await Promise.all([llm_query('one', 'text'), llm_query('two').catch(e => e.message), exec('ls', 3)]);
         print(all)",
    );
    let id = call.execution_id.clone();
    let mut events = world.rig.execute(call).await.unwrap();
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(until(&mut events, host_call).await);
    }
    // They are asked side by side, in no order.
    calls.sort_by_key(|call| call.arguments_json.clone());
    let seen: Vec<_> = calls
        .iter()
        .map(|call| (call.operation.as_str(), call.arguments_json.as_str(), call.context.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            ("exec", "{\"command\":\"ls\",\"timeout\":3}", None),
            ("llm_query", "{\"prompt\":\"one\"}", Some("text")),
            ("llm_query", "{\"prompt\":\"two\"}", None),
        ]
    );
    let answers = [
        Answer::ResultJson("{\"exitCode\":0}".into()),
        Answer::ResultJson("\"eins\"".into()),
        Answer::Error("no".into()),
    ];
    for (call, answer) in calls.iter().zip(answers).rev() {
        assert_eq!(world.answer(&id, call, answer.clone()).await, Ok(()));
        assert_eq!(world.answer(&id, call, answer).await, Err(Code::NotFound));
    }
    assert_eq!(result(&rest(events).await)["stdout"], "[\"eins\",\"no\",{\"exitCode\":0}]\n");
    for wrong in ["llm_query(7)", "llm_query('x'.repeat(10001))", "exec()", "exec('ls', -1)"] {
        let said = world.says(&format!("await {wrong}")).await;
        assert!(said.contains("Error: "), "{wrong}: {said}");
    }
}

#[tokio::test]
async fn many_questions_wait_for_their_turn_and_too_many_are_refused() {
    let mut world = World::new().await;
    let call = world.request("await Promise.all(Array.from({length: 1000}, (_, i) => llm_query('' + i)))");
    let id = call.execution_id.clone();
    let mut events = world.rig.execute(call).await.unwrap();
    let first = until(&mut events, host_call).await;
    for _ in 1..16 {
        until(&mut events, host_call).await;
    }
    world.answer(&id, &first, Answer::ResultJson("1".into())).await.unwrap();
    assert_eq!(until(&mut events, host_call).await.arguments_json, "{\"prompt\":\"16\"}");
    world.rig.client.cancel(CancelRequest { execution_id: id, caller: None }).await.unwrap();
    let others = rest(events).await.into_iter().filter(|event| event.sequence > 0).count();
    assert_eq!(others, 1, "nothing but the end comes after sixteen open questions");

    let flood = "let refused = 0; for (let i = 0; i < 1010; i++) llm_query('x').catch(() => refused++);
                 for (let i = 0; i < 9; i++) await null; print(refused)";
    assert_eq!(world.says(flood).await, "10");
}

#[tokio::test]
async fn a_cancelled_evaluation_loses_its_interpreter() {
    let mut world = World::new().await;
    let call = world.request("scope.a = 1; await llm_query('x')");
    let id = call.execution_id.clone();
    let mut events = world.rig.execute(call).await.unwrap();
    let asked = until(&mut events, host_call).await;
    world.rig.client.cancel(CancelRequest { execution_id: id.clone(), caller: None }).await.unwrap();
    assert_eq!(finished(&rest(events).await.split_off(0)).ending(), Ending::Cancelled);
    assert_eq!(world.answer(&id, &asked, Answer::ResultJson("1".into())).await, Err(Code::NotFound));
    assert_eq!(world.says("print(scope.a)").await, "undefined");
}

#[tokio::test]
async fn a_lost_interpreter_says_so() {
    let mut world = World::new().await;
    world.begun = true;
    assert_eq!(world.says("print(1)").await, "the interpreter is lost, and its variables with it");
    world.begun = false;
    assert_eq!(world.says("print(1)").await, "1");
    let close = CloseSessionRequest { session: "session".to_owned(), ..CloseSessionRequest::default() };
    let one = |name: &str| CloseSessionRequest { interpreter: name.to_owned(), ..close.clone() };
    world.rig.client.close_session(one("run/other")).await.unwrap();
    assert_eq!(world.says("print(1)").await, "1");
    for close in [one("run/main"), close.clone()] {
        world.begun = false;
        world.says("print(1)").await;
        world.rig.client.close_session(close).await.unwrap();
        assert_eq!(world.says("print(1)").await, "the interpreter is lost, and its variables with it");
    }
}

#[tokio::test]
async fn a_long_context_is_a_variable() {
    let mut world = World::with(Duration::from_secs(30)).await;
    let line = b"2026-11-22T07:00:00Z INFO request served in 12 ms\n".repeat(20_000);
    let mut pieces = vec![line; 50];
    pieces.insert(0, Vec::new());
    pieces.insert(31, b"ERROR needle 4711\n".to_vec());
    let size: usize = pieces.iter().map(Vec::len).sum();
    world.put(pieces).await;
    assert_eq!(world.says("print(context.length)").await, size.to_string());
    let found = "const at = context.indexOf('ERROR'); FINAL(context.slice(at, context.indexOf('\\n', at)))";
    assert_eq!(world.run(found).await["answer"], "ERROR needle 4711");
    // A text that is too long for a message is named instead.
    let call = world.request("await llm_query('look', context)");
    let id = call.execution_id.clone();
    let mut events = world.rig.execute(call).await.unwrap();
    let asked = until(&mut events, host_call).await;
    assert_eq!((asked.context, asked.context_characters), (None, size as u64));
    assert_eq!((asked.context_sha256.to_vec(), asked.context_prefix.len()), (world.context.clone(), 200));
    world.rig.client.cancel(CancelRequest { execution_id: id, caller: None }).await.unwrap();
    rest(events).await;

    world.context = vec![1; 32];
    world.begun = false;
    let call = world.request("1");
    let end = finished(&rest(world.rig.execute(call).await.unwrap()).await);
    assert_eq!((end.ending(), end.error.as_str()), (Ending::Refused, "refused: its context is not here"));
}
