//! Runs whose model works by code, over inputs that it never reads.

#![cfg(test)]

use std::io::Write as _;

use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use wire::agent::{ChatRequest, Event, RlmMode, agent_client::AgentClient, event::Kind};

struct Bench {
    openai: ScriptedOpenAi,
    sleuth: Sleuth,
}

impl Bench {
    async fn start() -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let sleuth = Start::serve().models(&list(&openai)).unwrap().start().await.unwrap();
        Self { openai, sleuth }
    }

    async fn events(&self, question: String, rlm: RlmMode) -> Vec<Event> {
        let mut client = AgentClient::connect(self.sleuth.grpc().unwrap()).await.unwrap();
        let request = ChatRequest { question, rlm: Some(rlm), ..ChatRequest::default() };
        let mut stream = client.chat(request).await.unwrap().into_inner();
        let mut events = Vec::new();
        while let Some(event) = stream.message().await.unwrap() {
            events.push(event);
        }
        events
    }

    /// The bodies that the model was sent.
    fn requests(&self) -> Vec<String> {
        self.openai.requests().into_iter().map(|request| request.body.to_string()).collect()
    }
}

fn list(openai: &ScriptedOpenAi) -> String {
    format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url())
}

/// A question to a model that writes these pieces of code. The last mark of a script counts, so that code which asks
/// with one has to take it apart.
fn coding(pieces: &[&str]) -> String {
    let steps: Vec<_> = pieces.iter().map(|code| json!([{"name": "repl", "args": {"code": code}}])).collect();
    format!("What went wrong? FAKE_LLM{}", json!({"steps": steps, "answer": "I do not know."}))
}

fn answer(events: &[Event]) -> (String, String) {
    match events.last().and_then(|event| event.kind.clone()) {
        Some(Kind::RunFinished(finished)) => (finished.answer, finished.finish_reason),
        other => panic!("{other:?}"),
    }
}

/// What happened, in short.
fn told(events: &[Event]) -> Vec<String> {
    let of = |event: &Event| {
        let what = match event.kind.as_ref()? {
            Kind::RunStarted(started) => format!("begins {}", started.rlm.as_ref()?.depth),
            Kind::ReplInput(input) => format!("code {}", input.iteration),
            Kind::ReplProgress(progress) => format!("prints {}", progress.text.trim()),
            Kind::ReplOutput(output) => match (&output.error, &output.answer) {
                (Some(error), _) => format!("error {error}"),
                (None, Some(answer)) => format!("answer {answer}"),
                (None, None) => "done".to_owned(),
            },
            Kind::RunFinished(finished) => format!("ends {}", finished.finish_reason),
            _ => return None,
        };
        Some(format!("{}: {what}", event.agent_id))
    };
    events.iter().filter_map(of).collect()
}

#[tokio::test]
async fn a_needle_is_found_in_a_long_log_that_no_model_reads() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let mut log = tempfile::NamedTempFile::new().unwrap();
    for part in 0..50 {
        let line = format!("2026-11-22T07:{part:02}:00Z INFO request served in 12 ms\n");
        log.write_all(line.repeat((1 << 20) / line.len()).as_bytes()).unwrap();
        if part == 31 {
            log.write_all(b"2026-11-22T07:31:07Z ERROR disk sdb1 is full, code 4711\n").unwrap();
        }
    }
    let question = coding(&[
        "scope.at = context.indexOf(' ERROR '); console.log(context.length, scope.at > 0)",
        "const line = context.slice(context.lastIndexOf('\\n', scope.at) + 1, context.indexOf('\\n', scope.at));
         const why = await llm_query('Say why. FAKE' + '_LLM{\"answer\": \"The disk is full.\"}', line);
         FINAL(`${why} ${line.slice(-9)}`)",
    ]);
    let path = log.path().display().to_string();
    let asked =
        Start::new(["ask", &question, "--json", "--mode", "rlm", "--max-depth", "0", "--context", &path]);
    let output = asked.models(&list(&openai)).unwrap().command().unwrap().output().await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(report["answer"], "The disk is full. code 4711");
    assert_eq!(report["finish_reason"], "final");
    let requests: Vec<_> = openai.requests().into_iter().map(|request| request.body.to_string()).collect();
    assert_eq!(requests.len(), 3, "two pieces of code and one question");
    assert!(requests.iter().all(|request| request.len() < 20_000), "a model was sent the input");
}

#[tokio::test]
async fn agents_ask_agents_down_to_the_depth() {
    let bench = Bench::start().await;
    let below = json!({"steps": [[{"name": "repl", "args": {"code":
        "print(context); FINAL((await llm_query('FAKE' + '_LLM{\"answer\": \"deepest\"}')) + context.length)"}}]]});
    let asks =
        format!("FINAL(await llm_query('FAKE' + '_LLM' + {}, 'twelve chars'))", json!(below.to_string()));
    let events = bench
        .events(coding(&[&asks]), RlmMode { context: "x".into(), max_depth: Some(1), ..RlmMode::default() })
        .await;
    assert_eq!(answer(&events), ("deepest12".to_owned(), "final".to_owned()), "{:?}", told(&events));
    assert_eq!(
        told(&events),
        [
            "main: begins 0",
            "main: code 1",
            "a1: begins 1",
            "a1: code 1",
            "a1: prints twelve chars",
            "a1: answer deepest12",
            "a1: ends final",
            "main: answer deepest12",
            "main: ends final",
        ]
    );
    let answered: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            Some(Kind::QuestionAnswered(answered)) => Some((event.agent_id.as_str(), answered)),
            _ => None,
        })
        .collect();
    let [("a1", answered)] = answered[..] else { panic!("{answered:?}") };
    assert_eq!(
        (answered.prompt.as_str(), answered.answer.as_str()),
        ("FAKE_LLM{\"answer\": \"deepest\"}", "deepest")
    );
    assert!(answered.context_sha256.is_empty() && !answered.question_id.is_empty(), "{answered:?}");
    let child = events.iter().find(|event| event.agent_id == "a1").unwrap();
    assert_eq!(child.parent_agent_id, "main");
    assert!(bench.requests()[1].contains("`context` has 12 characters"));
    let Some(Kind::UsageReported(usage)) = events
        .iter()
        .filter(|event| event.agent_id == "a1")
        .filter_map(|event| event.kind.clone())
        .rfind(|kind| matches!(kind, Kind::UsageReported(_)))
    else {
        panic!("no usage");
    };
    assert_eq!(usage.totals.unwrap().model_calls, 2, "its own call, and the one that its code made");
}

#[tokio::test]
async fn mistakes_are_told_and_ceilings_hold() {
    let bench = Bench::start().await;
    let rlm = RlmMode {
        context: "x".into(),
        max_depth: Some(0),
        max_iterations: 3,
        max_model_calls: 4,
        ..RlmMode::default()
    };
    let question = coding(&[
        "console.log('x'.repeat(9000)); nothing()",
        "const said = await Promise.allSettled(['a', 'b', 'c'].map(() => llm_query('FAKE' + '_LLM{\"answer\": \"y\"}')));
         console.log(said.map(it => it.value ?? it.reason.message).join())",
        "await exec('rm -rf /tmp/x').catch(e => console.log(e.message)); console.log((await exec('echo hi')).stdout)",
        "console.log('never')",
    ]);
    let events = bench.events(question, rlm).await;
    let told = told(&events);
    assert!(told.contains(&"main: error ReferenceError: nothing is not defined".to_owned()), "{told:?}");
    assert!(told.iter().any(|line| line.contains("models were asked 4 times")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("exec denied: `rm`")), "{told:?}");
    assert!(told.contains(&"main: prints hi".to_owned()), "{told:?}");
    assert_eq!(answer(&events).1, "step_limit", "{told:?}");
    let after_the_first = &bench.requests()[1];
    assert!(
        after_the_first.len() < 12_000 && after_the_first.contains("more bytes"),
        "{}",
        after_the_first.len()
    );
}

#[tokio::test]
async fn code_in_a_fence_is_code_and_plain_text_is_the_answer() {
    let bench = Bench::start().await;
    let fenced = json!({"answer": "Look:\n```js\nFINAL(context.toUpperCase())\n```"});
    let rlm = RlmMode { context: "found".into(), ..RlmMode::default() };
    let events = bench.events(format!("FAKE_LLM{fenced}"), rlm.clone()).await;
    assert_eq!(answer(&events), ("FOUND".to_owned(), "final".to_owned()));
    let events = bench.events("FAKE_LLM{\"answer\": \"nothing to do\"}".to_owned(), rlm).await;
    assert_eq!(answer(&events).0, "nothing to do");
}
