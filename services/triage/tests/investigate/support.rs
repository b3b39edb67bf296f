//! Runs an investigation: asks the model, runs the commands that it asks for, gives it what they printed.

use std::{
    process::{Command, Stdio},
    sync::Arc,
};

use domain::{CallId, Message, Role, ToolCall, ToolResult, ToolStatus};
use futures_util::StreamExt;
use model::{Delta, Model, Reply, Request, ToolSpec};
use serde_json::{Value, json};
use triage::Triage;

/// An investigation and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) answer: String,
    pub(crate) commands: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) messages: Vec<Message>,
}

/// What stands for the tools: a command line in; what the model is told about it out.
pub(crate) type Shell<'a> = &'a dyn Fn(&str) -> String;

/// Asks a question with `bash` as the only tool.
pub(crate) fn ask(question: &str, earlier: &[Message], shell: Shell<'_>) -> Run {
    let tools: Arc<[ToolSpec]> =
        [ToolSpec { name: "bash".into(), description: String::new(), parameters: json!({}) }].into();
    let mut run = Run { messages: earlier.to_vec(), ..Run::default() };
    run.messages.push(Message::text(Role::User, question));
    loop {
        let reply =
            call(Request { messages: run.messages.clone(), tools: tools.clone(), ..Request::default() });
        run.messages.push(reply.message.clone());
        if reply.message.tool_calls.is_empty() {
            run.answer = reply.message.joined_text();
            return run;
        }
        run.rounds += 1;
        assert!(run.rounds <= 8, "it does not come to an end");
        for ToolCall { id, name, arguments } in reply.message.tool_calls {
            let read: Value = serde_json::from_str(&arguments).expect("arguments are JSON");
            let command = read["command"].as_str().expect("a command");
            assert!(!run.commands.iter().any(|earlier| earlier == command), "asked twice: {command}");
            run.commands.push(command.to_owned());
            run.messages.push(result(id, &name, &arguments, &shell(command)));
        }
    }
}

/// One call of the model; its deltas must add up to its message.
pub(crate) fn call(request: Request) -> Reply {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut deltas = Triage::new().call(request).await.expect("it answers");
        let mut text = String::new();
        while let Some(delta) = deltas.next().await {
            match delta.expect("no error") {
                Delta::Text(more) => text.push_str(&more),
                Delta::Thinking(_) => {}
                Delta::Done(reply) => {
                    assert_eq!(text, reply.message.joined_text());
                    return *reply;
                }
            }
        }
        panic!("no end");
    })
}

/// A tool message as the agent composes it.
pub(crate) fn result(id: CallId, tool: &str, arguments: &str, body: &str) -> Message {
    let call = ToolCall { id, name: tool.to_owned(), arguments: arguments.to_owned() };
    let result = ToolResult {
        status: ToolStatus::Success,
        data: body.to_owned(),
        error: None,
        ..ToolResult::error("")
    };
    domain::Run::tool_message(&call, &result)
}

/// Runs a command line here, and says what came of it in the words of the `bash` tool.
pub(crate) fn bash(command: &str, environment: &[(&str, &str)]) -> String {
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("{{ {command}; }} 2>&1")])
        .stdin(Stdio::null())
        .envs(environment.iter().copied());
    let output = bash.output().expect("bash runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let body = format!("{command}\n{}", text.trim_end());
    if output.status.success() {
        return body;
    }
    let code = output.status.code().unwrap_or(-1);
    format!("Error: Command \"{command}\" returned non-zero exit status {code}:\n\n{body}")
}
