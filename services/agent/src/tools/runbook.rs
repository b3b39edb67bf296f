//! `fetch_runbook`: gives the model a runbook of the catalogue to follow.

use std::time::Duration;

use domain::{ToolCall, ToolPlan, ToolResult, ToolStatus, ToolVerdict};
use model::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use crate::runbooks::{Runbook, Runbooks};

pub(super) const TOOLSET: &str = "runbook";
pub(super) const NAME: &str = "fetch_runbook";

/// The tool, if there is any runbook.
#[derive(Clone, Debug)]
pub(super) struct FetchRunbook(Runbooks);

#[derive(Deserialize)]
struct Arguments {
    runbook_id: String,
}

impl FetchRunbook {
    pub(super) fn new(runbooks: Runbooks) -> Self {
        Self(runbooks)
    }

    /// As models see it.
    pub(super) fn spec(&self) -> Option<ToolSpec> {
        (!self.0.is_empty()).then(|| ToolSpec {
            name: NAME.to_owned(),
            description:
                "Returns a runbook: the steps to investigate a known kind of problem, to be followed."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "runbook_id": {"type": "string", "description": "The id that the catalogue gives it."},
                },
                "required": ["runbook_id"],
                "additionalProperties": false,
            }),
        })
    }

    pub(super) fn owns(&self, call: &ToolCall) -> bool {
        call.name == NAME && !self.0.is_empty()
    }

    pub(super) fn plan(&self, call: &ToolCall) -> ToolPlan {
        let (description, verdict) = match self.find(call) {
            Ok((id, _)) => (format!("Read runbook {id}"), ToolVerdict::Allow),
            Err(why) => ("Read a runbook".to_owned(), ToolVerdict::Refuse(why)),
        };
        ToolPlan::own(call, description, Some(TOOLSET), verdict)
    }

    pub(super) fn run(&self, call: &ToolCall) -> ToolResult {
        match self.find(call) {
            Ok((id, runbook)) => ToolResult {
                status: ToolStatus::Success,
                data: wrapped(&id, &runbook.text),
                error: None,
                elapsed: Some(Duration::ZERO),
                ..ToolResult::error("")
            },
            Err(why) => ToolResult::error(why),
        }
    }

    fn find(&self, call: &ToolCall) -> Result<(String, &Runbook), String> {
        let ids = || self.0.iter().map(|(id, _)| id).collect::<Vec<_>>().join(", ");
        let Arguments { runbook_id: id } = serde_json::from_str(&call.arguments)
            .map_err(|_| format!("`runbook_id` is missing. These runbooks exist: {}", ids()))?;
        match self.0.get(&id) {
            Some(runbook) => Ok((id, runbook)),
            None => Err(format!("There is no runbook {id:?}. These exist: {}", ids())),
        }
    }
}

fn wrapped(id: &str, text: &str) -> String {
    format!(
        "<runbook id=\"{id}\">\n{text}\n</runbook>\n\nFollow this runbook: take the steps that apply, in an order \
         that suits what you know already, with the tools that you have. Where a step cannot be taken, say so in \
         the answer. It is advice from experience: where the evidence disagrees, the evidence counts."
    )
}

#[cfg(test)]
mod tests {
    use domain::CallId;

    use super::*;

    fn call(arguments: &str) -> ToolCall {
        ToolCall { id: CallId::new("c1"), name: NAME.into(), arguments: arguments.into() }
    }

    #[test]
    fn a_runbook_is_given_with_its_name() {
        let tool = FetchRunbook::new(Runbooks::default());
        let call = call(r#"{"runbook_id":"dns-failure"}"#);
        let plan = tool.plan(&call);
        assert_eq!(
            (plan.verdict, plan.description.as_str()),
            (ToolVerdict::Allow, "Read runbook dns-failure")
        );
        let result = tool.run(&call);
        assert!(result.data.starts_with("<runbook id=\"dns-failure\">\n# DNS failures\n"), "{}", result.data);
        assert!(result.elapsed.is_some() && result.error.is_none());
    }

    #[test]
    fn what_is_not_in_the_catalogue_is_refused_with_what_is() {
        let tool = FetchRunbook::new(Runbooks::default());
        for arguments in [
            r#"{"runbook_id":"../../../../etc/passwd"}"#,
            r#"{"runbook_id":""}"#,
            r#"{"runbook_id":7}"#,
            "{}",
            "[]",
            "not json",
        ] {
            let call = call(arguments);
            let ToolVerdict::Refuse(why) = tool.plan(&call).verdict else { panic!("{arguments} is allowed") };
            assert!(why.contains("crash-loop, dns-failure"), "{arguments}: {why}");
            assert_eq!(tool.run(&call), ToolResult::error(why));
        }
    }
}
