//! `read` and `patch`: files of the session.

use std::{sync::Arc, time::Duration};

use crate::{
    policy::Effect,
    tools::{Arguments, Ask, Decision, Plan, Presentation, Remote, Settings, Work},
    workspace::{
        Range, Refused, View, Workspace,
        patch::{self, Change},
    },
};

/// How long the disk may take.
const TIME: Duration = Duration::from_secs(10);
/// Lines that are read unless something else is asked for.
const LINES: usize = 2000;

pub(super) fn plan_read(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let path = arguments.text("filePath").to_owned();
    let number = |name: &str, default| match arguments.integer(name).map(usize::try_from) {
        None => Ok(default),
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => Err(format!("the parameter `{name}` must not be negative")),
    };
    let range = Range { offset: number("offset", 0)?, limit: number("limit", LINES)?.max(1) };
    let description = format!("read {path}");
    let read = move |workspace: &Workspace| match workspace.files.read(&path, range) {
        Ok(View::Text(text) | View::Media(text)) => Presentation::Success(text),
        Err(refused) => Presentation::Error { data: String::new(), error: failure(&refused) },
    };
    let work = work(settings, description.clone(), read)?;
    Ok(Plan { description, effect: Effect::Read, decision: Decision::Allow(work) })
}

pub(super) fn plan_patch(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let changes = patch::parse(arguments.text("patch")).map_err(|malformed| malformed.to_string())?;
    let description = changes.iter().map(intent).collect::<Vec<_>>().join(", ");
    let work = work(settings, description.clone(), move |workspace| apply(workspace, &changes))?;
    let decision = if settings.saved.whole {
        Decision::Allow(work)
    } else {
        let reason = "`patch` changes files of the workspace.".to_owned();
        let refusal = format!(
            "refused: {reason} It would need the approval of a person, which is not available here. It was not run and \
             waits for nobody."
        );
        Decision::Ask(Ask { reason, refusal, prefixes: vec![PATCH.to_owned()], work })
    };
    Ok(Plan { description, effect: Effect::Mutation, decision })
}

/// The name by which a person allows all of it.
const PATCH: &str = "patch";

fn intent(change: &Change) -> String {
    match change {
        Change::Add { path, .. } => format!("add {path}"),
        Change::Delete { path } => format!("delete {path}"),
        Change::Update { path, .. } => format!("update {path}"),
    }
}

/// Makes the changes in order, up to the first that fails.
fn apply(workspace: &Workspace, changes: &[Change]) -> Presentation {
    let (mut lines, mut written, mut error) = (Vec::new(), Vec::new(), None);
    for change in changes {
        match workspace.files.change(change) {
            Ok(done) => {
                lines.push(done.line);
                written.extend(done.written);
            }
            Err(refused) => {
                error = Some(failure(&refused));
                break;
            }
        }
    }
    Presentation::Files { data: lines.join("\n"), error, written }
}

fn failure(refused: &Refused) -> String {
    format!("Error: {refused}.")
}

/// Work on the disk, where blocking is fine.
fn work(
    settings: &Settings,
    invocation: String,
    job: impl FnOnce(&Workspace) -> Presentation + Send + 'static,
) -> Result<Work, String> {
    let workspace: Arc<Workspace> = settings.site.open()?;
    let answer = async move {
        let done = tokio::task::spawn_blocking(move || job(&workspace)).await;
        done.unwrap_or_else(|error| {
            let error = format!("Error: The files could not be worked on: {error}");
            Presentation::Error { data: String::new(), error }
        })
    };
    Ok(Work::Remote(Remote { invocation, timeout: TIME, answer: Box::pin(answer) }))
}
