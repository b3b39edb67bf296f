//! `TodoWrite`: the list of tasks of an investigation. Nothing is kept; the model sends the whole list each time.

use serde_json::Value;

use super::{Arguments, Decision, Plan, Presentation, Settings, Tool, Toolset, Work, parameters::Parameter};
use crate::policy::Effect;

/// Each status, its mark, in the order in which tasks are shown.
const STATUSES: &[(&str, &str)] =
    &[("pending", "[ ]"), ("in_progress", "[~]"), ("completed", "[✓]"), ("failed", "[✗]")];

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "TodoWrite",
    toolset: Toolset::CoreInvestigation,
    needs_jq: false,
    description: "Writes down the tasks of the investigation and their status. Replaces the whole list.",
    parameters: &[Parameter::records(
        "todos",
        &["id", "content", "status"],
        &["pending", "in_progress", "completed", "failed"],
        "All tasks, each with an id, what is to be done, and how far it is.",
    )],
    plan,
}];

fn plan(_: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let tasks = arguments.records("todos").iter().map(Task::read).collect::<Result<Vec<_>, _>>()?;
    Ok(Plan {
        description: "Update investigation tasks".to_owned(),
        effect: Effect::Read,
        decision: Decision::Allow(Work::Answer(Presentation::Success(show(&tasks)))),
    })
}

struct Task<'a> {
    id: String,
    content: &'a str,
    status: usize,
}

impl<'a> Task<'a> {
    fn read(todo: &'a Value) -> Result<Self, String> {
        let id = match &todo["id"] {
            Value::String(id) => id.clone(),
            Value::Number(id) => id.to_string(),
            _ => return Err("each of `todos` needs an `id`".to_owned()),
        };
        let content = todo["content"].as_str().ok_or("each of `todos` needs a `content`")?;
        let status = todo["status"].as_str().unwrap_or("pending");
        let status = STATUSES.iter().position(|(name, _)| *name == status).ok_or_else(|| {
            format!("`{status}` is no status of a task; use pending, in_progress, completed or failed")
        })?;
        Ok(Self { id, content, status })
    }
}

fn show(tasks: &[Task<'_>]) -> String {
    let count = |status: usize| tasks.iter().filter(|task| task.status == status).count();
    let lines = (0..STATUSES.len())
        .flat_map(|status| tasks.iter().filter(move |task| task.status == status))
        .map(|task| format!("{} [{}] {}", STATUSES[task.status].1, task.id, task.content));
    format!(
        "✅ The plan has {} tasks now.\n\n# CURRENT INVESTIGATION TASKS\n\n**Task Status**: {} completed, {} in \
         progress, {} pending\n\n{}\n\nSend the whole list again with TodoWrite whenever a task starts, is completed \
         or fails.",
        tasks.len(),
        count(2),
        count(1),
        count(0),
        lines.collect::<Vec<_>>().join("\n"),
    )
}
