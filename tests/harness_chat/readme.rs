//! The examples of the README, as they are printed.

use std::process::Stdio;

use harness::{
    components::has_program,
    models::{Script, ScriptedOpenAi},
    process::program,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::bench::{Bench, SOON, bash, call, list};

/// The blocks of commands of the README in which there is this, in order.
fn blocks(of: &str) -> Vec<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.contains(of)).map(str::to_owned).collect()
}

/// Those that ask the harness API, one by one.
fn examples() -> Vec<String> {
    let commands = |block: String| {
        let commands = block.split("\ncurl ").map(|one| format!("curl {}", one.trim_start_matches("curl ")));
        commands.collect::<Vec<_>>()
    };
    blocks("localhost:8080/chat").into_iter().flat_map(commands).collect()
}

fn shell(bench: &Bench, example: &str) -> Command {
    let here = bench.sleuth.address("http").unwrap().to_string();
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(example.replace("localhost:8080", &here)).stderr(Stdio::null()).kill_on_drop(true);
    shell
}

fn says(bench: &Bench, script: Value) {
    bench.openai.say_by_default(serde_json::from_value::<Script>(script).unwrap());
}

/// A stream as an example gets it.
struct Following {
    _asking: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The id of the last frame, and the event in it.
    id: String,
    event: Value,
    said: String,
}

impl Following {
    fn start(bench: &Bench, example: &str) -> Self {
        let mut asking = shell(bench, example).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(asking.stdout.take().unwrap()).lines();
        Self { _asking: asking, lines, id: String::new(), event: Value::Null, said: String::new() }
    }

    /// Reads a frame. False at the end.
    async fn next(&mut self) -> bool {
        while let Some(line) = timeout(SOON, self.lines.next_line()).await.expect("a line").unwrap() {
            if let Some(data) = line.strip_prefix("data: ") {
                self.event = serde_json::from_str(data).unwrap();
                self.said.push_str(self.event["content"].as_str().unwrap_or_default());
            } else if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut self.id);
            } else if line.is_empty() {
                return true;
            }
        }
        false
    }
}

async fn printed(bench: &Bench, example: &str) -> String {
    let output = timeout(SOON, shell(bench, example).output()).await.expect("an answer").unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_examples_of_the_readme_work_as_printed() {
    if !has_program("curl") {
        return;
    }
    let bench = Bench::start().await;
    let [models, chat, relay, code, again] = &examples()[..] else { panic!("{:?}", examples()) };
    let listed = printed(&bench, models).await;
    assert!(listed.starts_with(r#"{"models":["gpt","#) && listed.contains("defaultModel"), "{listed}");

    says(&bench, json!({"steps": [[bash("mkdir report")]], "answer": "It is there."}));
    let mut asked = Following::start(&bench, chat);
    let (mut session, mut waits) = (String::new(), String::new());
    while waits.is_empty() && asked.next().await {
        match asked.event["type"].as_str() {
            Some("connected") => asked.event["sessionId"].as_str().unwrap().clone_into(&mut session),
            Some("relay") => asked.event["id"].as_str().unwrap().clone_into(&mut waits),
            _ => {}
        }
    }
    let id = std::mem::take(&mut asked.id);
    drop(asked);
    let mut back = Following::start(&bench, &again.replace("run_01a2024c…:6", &id));
    let answer = relay.replacen("ID", &waits, 1).replacen("\"ID\"", &format!("\"{session}\""), 1);
    assert_eq!(printed(&bench, &answer).await, r#"{"success":true}"#);
    while back.next().await {}
    assert_eq!((back.said.as_str(), &back.event["type"]), ("It is there.", &json!("harness_end")));

    says(&bench, json!({"steps": [[call("repl", json!({"code": "FINAL(context.slice(0, 6))"}))]]}));
    let seen = printed(&bench, code).await;
    assert!(seen.contains(r#""content":"a text""#), "{seen}");
}

#[tokio::test]
async fn the_command_of_the_readme_works_as_printed() {
    let [command] = &blocks("--mode rlm")[..] else { panic!("{:?}", blocks("--mode rlm")) };
    let (openai, folder) = (ScriptedOpenAi::start().await.unwrap(), tempfile::tempdir().unwrap());
    let code = json!({"steps": [[call("repl", json!({"code": "FINAL(context.slice(-11, -1))"}))]]});
    openai.say_by_default(serde_json::from_value::<Script>(code).unwrap());
    let within = |name: &str| folder.path().join(name);
    std::fs::write(within("huge.log"), "sda: fine\n".repeat(100_000) + "sdb failed\n").unwrap();
    std::fs::write(within("models.yaml"), list(&openai)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program().unwrap().parent().unwrap().display());
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(command).env_clear().env("PATH", path).env("HOME", folder.path());
    shell.env("MODEL_LIST_FILE_LOCATION", within("models.yaml")).env("SLEUTH_DATA_DIR", within("data"));
    let output = shell.current_dir(folder.path()).kill_on_drop(true).output();
    let output = timeout(SOON, output).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("sdb failed"), "{output:?}");
}
