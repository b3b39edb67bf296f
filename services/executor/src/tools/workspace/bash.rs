//! `bash`: a command in the workspace, judged like every other.

use std::{
    path::{Component, Path},
    sync::Arc,
    time::Duration,
};

use serde_json::json;

use crate::{
    policy::{Effect, Footprint, Judgement},
    process::{Capture, Exit, Outcome, Spec},
    sandbox::{Access, Network, View},
    tools::{Arguments, Ask, Decision, Plan, Presentation, Run, Settings, Work},
};

/// Time for a command that asks for none.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of each stream that a model is shown.
const SHOWN: usize = 32 << 10;

pub(super) fn plan(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    plan_command(settings, arguments, TIMEOUT, "")
}

/// Plans a command that has this time unless it asks for another, and starts in a directory of the workspace.
pub(in crate::tools) fn plan_command(
    settings: &Settings,
    arguments: &Arguments,
    usual: Duration,
    directory: &str,
) -> Result<Plan, String> {
    if !Path::new(directory).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    {
        return Err("the parameter `cwd` must be a path within the workspace".to_owned());
    }
    let directory = directory.to_owned();
    let command = arguments.text("command").trim().to_owned();
    let timeout = match arguments.number("timeout") {
        None => usual,
        Some(seconds) if seconds > 0.0 => {
            let longest = settings.longest_timeout;
            Duration::try_from_secs_f64(seconds).map_or(longest, |time| time.min(longest))
        }
        Some(_) => return Err("the parameter `timeout` must be more than 0".to_owned()),
    };
    let workspace = settings.site.open()?;
    if let Some(quota) = workspace.overflow() {
        return Err(format!(
            "the workspace holds more than {quota} bytes: delete what is not needed with `patch`"
        ));
    }
    let judgement = settings.policy.judge(&command, &[], &settings.saved.commands);
    let effect = judgement.effect();
    let work = |script: String, footprint: &Footprint| {
        let names_kubectl = || effect > Effect::Read && command.contains("kubectl");
        let clusters = footprint.programs.contains("kubectl") || names_kubectl();
        let access = Access {
            view: if settings.view == View::Private { View::Private } else { View::Host },
            network: if footprint.may_reach_out() && !clusters { Network::Host } else { Network::None },
            workspace: Some(workspace.path().to_owned()),
            ..Access::default()
        };
        Work::Run(Run {
            specs: vec![Spec {
                pipeline: vec![started_in(&settings.bash, &directory, script)],
                merge_stderr: false,
                access,
            }],
            clusters,
            workspace: Some(Arc::clone(&workspace)),
            timeout,
            present: Box::new(present),
            invocation: command.clone(),
        })
    };
    let decision = match judgement {
        Judgement::Allow { script, footprint } => Decision::Allow(work(script, &footprint)),
        Judgement::Ask { reason, prefixes, footprint } => {
            let refusal = format!(
                "refused: {reason} It would need the approval of a person, which is not available here. It was not run \
                 and waits for nobody."
            );
            Decision::Ask(Ask { reason, refusal, prefixes, work: work(command.clone(), &footprint) })
        }
        Judgement::Deny { reason } => Decision::Deny(reason),
    };
    Ok(Plan { description: command, effect, decision })
}

/// A command that starts in the workspace, or in a directory of it.
fn started_in(bash: &str, directory: &str, script: String) -> Vec<String> {
    const THERE: &str = r#"mkdir -p -- "$1" && cd -- "$1" && exec "$0" -c "$2""#;
    let bash = || bash.to_owned();
    match directory {
        "" => vec![bash(), "-c".to_owned(), script],
        there => vec![bash(), "-c".to_owned(), THERE.to_owned(), bash(), there.to_owned(), script],
    }
}

/// `{exitCode, stdout, stderr}`; a code of -1 says that it did not exit by itself.
fn present(outcomes: &[Outcome]) -> Presentation {
    let Some(outcome) = outcomes.first() else { return Presentation::NoData(String::new()) };
    let code = match outcome.exits.first() {
        Some(Exit::Exited(code)) => *code,
        Some(Exit::Signalled(_)) | None => -1,
        Some(Exit::NotStarted(why)) => {
            let error = format!("Error: The command could not be started: {why}");
            return Presentation::Error { data: String::new(), error };
        }
    };
    let (stdout, stderr) = (shown(&outcome.stdout), shown(&outcome.stderr));
    Presentation::Success(json!({"exitCode": code, "stdout": stdout, "stderr": stderr}).to_string())
}

fn shown(stream: &Capture) -> String {
    let mut cut = Capture::new(SHOWN);
    cut.push(stream.text().as_bytes());
    cut.text()
}
