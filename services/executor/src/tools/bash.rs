//! `bash`: commands that the policy lets through.

use std::time::Duration;

use super::{
    Arguments, Ask, Decision, Plan, Presentation, Run, Settings, Tool, Toolset, Work, parameters::Parameter,
    present,
};
use crate::{
    policy::{Effect, Footprint, Judgement},
    process::{Outcome, Spec},
    sandbox::{Access, Network, View},
};

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "bash",
    toolset: Toolset::Bash,
    needs_jq: false,
    description: "Runs a read-only bash command and returns its output, standard error included.",
    parameters: &[
        Parameter::text("command", "The command line."),
        Parameter::texts(
            "suggested_prefixes",
            "For each program of the command, the beginning that identifies it, such as `kubectl get` or `grep`.",
        )
        .optional(),
        Parameter::integer("timeout", "Seconds after which the command is killed. 30 unless given.").optional(),
    ],
    plan,
}];

fn plan(settings: &Settings, arguments: &Arguments) -> Result<Plan, String> {
    let command = arguments.text("command").trim().to_owned();
    let suggested: Vec<_> = arguments.texts("suggested_prefixes").collect();
    let timeout = timeout(settings, arguments)?;
    let judgement = settings.policy.judge(&command, &suggested, &settings.saved.commands);
    let effect = judgement.effect();
    let run = |script: String, access: Access, clusters: bool| {
        Work::Run(Run {
            specs: vec![Spec {
                pipeline: vec![vec![settings.bash.clone(), "-c".to_owned(), script]],
                merge_stderr: true,
                access,
            }],
            clusters,
            timeout,
            workspace: None,
            present: presenter(command.clone()),
            invocation: command.clone(),
        })
    };
    let decision = match judgement {
        Judgement::Allow { script, footprint } => {
            // What does more than read may run kubectl in ways that the policy does not see.
            let clusters = effect > Effect::Read || footprint.programs.contains("kubectl");
            Decision::Allow(run(script, access(settings, &footprint), clusters))
        }
        // What a person allows is what they were shown, to the letter.
        Judgement::Ask { reason, prefixes, footprint } => {
            let refusal = unavailable(&reason);
            let work = run(command.clone(), access(settings, &footprint), true);
            Decision::Ask(Ask { reason, refusal, prefixes, work })
        }
        Judgement::Deny { reason } => Decision::Deny(reason),
    };
    Ok(Plan { description: command, effect, decision })
}

/// What a command needs. One that changes this machine was allowed to by the operator or by a person. What changes
/// clusters does so through the proxy.
fn access(settings: &Settings, footprint: &Footprint) -> Access {
    if footprint.on_machine > Effect::SensitiveRead {
        return Access { view: View::Approved, ..Access::default() };
    }
    Access {
        view: settings.view,
        network: Network::None,
        local_sockets: footprint.programs.contains("systemctl"),
        ..Access::default()
    }
}

/// What the model is told while nobody can be asked.
fn unavailable(reason: &str) -> String {
    format!(
        "refused: {reason} It would need the approval of a person, which is not available here. It was not run and \
         waits for nobody. Only read-only commands run on this server: programs such as kubectl (get, describe, \
         logs, top, events), grep, jq, cat, ls, find, ps, df, ss, journalctl and systemctl status, joined by |, &&, \
         || and ;, without substitutions, variables, loops or redirections to files."
    )
}

fn timeout(settings: &Settings, arguments: &Arguments) -> Result<Duration, String> {
    match arguments.integer("timeout").map(u64::try_from) {
        None => Ok(settings.bash_timeout),
        Some(Ok(seconds @ 1..)) => Ok(Duration::from_secs(seconds).min(settings.longest_timeout)),
        Some(_) => Err("the parameter `timeout` must be at least 1".to_owned()),
    }
}

fn presenter(command: String) -> super::Present {
    Box::new(move |outcomes: &[Outcome]| {
        let Some(outcome) = outcomes.first() else { return Presentation::NoData(String::new()) };
        let output = present::both(outcome);
        let output = output.trim();
        let data = format!("{command}\n{output}");
        match present::failure(&command, outcome) {
            Some(error) => Presentation::Error { data, error },
            None if output.is_empty() => Presentation::NoData(data),
            None => Presentation::Success(data),
        }
    })
}
