//! `repl`: code that an interpreter runs, which keeps its variables from call to call.

use super::{Arguments, Decision, Evaluation, Parameter, Plan, Settings, Tool, Toolset, Work};
use crate::policy::Effect;

/// Characters of a line that says what the code is.
const SHOWN: usize = 100;

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "repl",
    toolset: Toolset::Repl,
    needs_jq: false,
    description: "Runs JavaScript as the body of an asynchronous function. Only what is put on `scope` stays. Answers \
                  with what the code printed.",
    parameters: &[Parameter::text("code", "The code.")],
    plan,
}];

/// What the code asks for beside its own work is judged where it is asked for.
fn plan(_: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let code = arguments.text("code").to_owned();
    let first = code.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let description = first.chars().take(SHOWN).collect();
    let decision = Decision::Allow(Work::Evaluate(Evaluation { code }));
    Ok(Plan { description, effect: Effect::Read, decision })
}
