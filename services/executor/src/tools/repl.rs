//! `repl`: code that an interpreter runs, which keeps its variables from call to call; `exec`: what it may run.

use std::time::Duration;

use super::{Arguments, Decision, Evaluation, Parameter, Plan, Settings, Tool, Toolset, Work, workspace};
use crate::policy::Effect;

/// Characters of a line that says what the code is.
const SHOWN: usize = 100;
/// Time for a command of code that asks for none.
const EXEC_TIME: Duration = Duration::from_secs(10);

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "repl",
        toolset: Toolset::Repl,
        needs_jq: false,
        description: "Runs JavaScript as the body of an asynchronous function. Only what is put on `scope` stays. Answers \
                  with what the code printed.",
        parameters: &[Parameter::text("code", "The code.")],
        plan,
    },
    Tool {
        name: "exec",
        toolset: Toolset::Repl,
        needs_jq: false,
        description: "Runs a bash command in the workspace for code, and returns its exit code and what it wrote.",
        parameters: &[
            Parameter::text("command", "The command line."),
            Parameter::number("timeout", "Seconds after which the command is killed. 10 unless given.")
                .optional(),
            Parameter::text("cwd", "Where it starts: a directory of the workspace, which is made.")
                .optional(),
        ],
        plan: plan_exec,
    },
];

fn plan_exec(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    workspace::plan_command(settings, arguments, EXEC_TIME, arguments.text("cwd"))
}

/// What the code asks for beside its own work is judged where it is asked for.
fn plan(_: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let code = arguments.text("code").to_owned();
    let first = code.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let description = first.chars().take(SHOWN).collect();
    let decision = Decision::Allow(Work::Evaluate(Evaluation { code }));
    Ok(Plan { description, effect: Effect::Read, decision })
}
