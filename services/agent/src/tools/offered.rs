//! What executors have together, as models see it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use model::ToolSpec;
use wire::executor::{self, ListToolsResponse, Tool, Toolset, ToolsetStatus};

use super::{Offer, Summarize};

/// What all of them have: of two tools with one name, the first; of two toolsets, one that works.
pub(super) fn union(lists: &[Arc<ListToolsResponse>]) -> Offer {
    let mut names = HashSet::new();
    let tools = lists.iter().flat_map(|list| &list.tools).filter(|tool| names.insert(tool.name.as_str()));
    let tools: Vec<_> = tools.collect();
    let (specs, toolsets): (Vec<_>, Vec<_>) = tools.iter().copied().filter_map(tool).unzip();
    let instructions = instructions(lists.iter().flat_map(|list| &list.toolsets));
    Offer {
        specs: specs.into(),
        toolsets: toolsets.into(),
        summarize: Arc::new(tools.iter().copied().filter_map(summarize).collect()),
        restricted: tools.iter().filter(|tool| tool.restricted).map(|tool| tool.name.clone()).collect(),
        instructions: instructions.into(),
    }
}

fn summarize(tool: &Tool) -> Option<(String, Summarize)> {
    let executor::Summarize { input_threshold, prompt, model } = tool.summarize.clone()?;
    Some((tool.name.clone(), Summarize { threshold: input_threshold, prompt, model }))
}

fn tool(tool: &Tool) -> Option<(ToolSpec, String)> {
    let Tool { name, description, parameters_json, toolset, .. } = tool.clone();
    match serde_json::from_str(&parameters_json) {
        Ok(parameters) => Some((ToolSpec { name, description, parameters }, toolset)),
        Err(error) => {
            tracing::error!(tool = name, %error, "the schema of a tool is not JSON");
            None
        }
    }
}

/// How to use toolsets, in the order in which they are named first.
fn instructions<'a>(toolsets: impl Iterator<Item = &'a Toolset>) -> Vec<(String, String)> {
    let mut best: Vec<&Toolset> = Vec::new();
    let mut places = HashMap::new();
    for toolset in toolsets {
        let at = *places.entry(toolset.name.as_str()).or_insert(best.len());
        match best.get_mut(at) {
            None => best.push(toolset),
            Some(known) if rank(toolset) > rank(known) => *known = toolset,
            Some(_) => {}
        }
    }
    best.into_iter().filter_map(instruction).collect()
}

fn rank(toolset: &Toolset) -> u8 {
    match toolset.status() {
        ToolsetStatus::Enabled => 2,
        ToolsetStatus::Failed => 1,
        ToolsetStatus::Disabled | ToolsetStatus::Unspecified => 0,
    }
}

fn instruction(toolset: &Toolset) -> Option<(String, String)> {
    let text = match toolset.status() {
        ToolsetStatus::Enabled => Some(toolset.instructions.clone()).filter(|text| !text.is_empty()),
        ToolsetStatus::Failed => Some(format!("Not available: {}", toolset.error)),
        ToolsetStatus::Disabled | ToolsetStatus::Unspecified => None,
    };
    text.map(|text| (toolset.name.clone(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tools: &[(&str, &str)], toolsets: &[(&str, ToolsetStatus, &str)]) -> Arc<ListToolsResponse> {
        let tools = tools.iter().map(|(name, description)| Tool {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            parameters_json: "{}".to_owned(),
            toolset: "set".to_owned(),
            ..Tool::default()
        });
        let toolsets = toolsets.iter().map(|(name, status, text)| Toolset {
            name: (*name).to_owned(),
            status: (*status).into(),
            instructions: (*text).to_owned(),
            error: (*text).to_owned(),
            ..Toolset::default()
        });
        let (tools, toolsets) = (tools.collect(), toolsets.collect());
        Arc::new(ListToolsResponse { tools, toolsets, ..ListToolsResponse::default() })
    }

    #[test]
    fn what_works_somewhere_is_on_offer() {
        use ToolsetStatus::{Disabled, Enabled, Failed};
        let one = list(&[("bash", "one"), ("x", "")], &[("a", Failed, "no a"), ("b", Enabled, "use b")]);
        let other = list(
            &[("bash", "other"), ("y", "")],
            &[("b", Failed, "no b"), ("a", Enabled, "use a"), ("c", Disabled, ""), ("d", Failed, "no d")],
        );
        let offer = union(&[one, other]);
        let names: Vec<_> =
            offer.specs.iter().map(|spec| (spec.name.as_str(), spec.description.as_str())).collect();
        assert_eq!(names, [("bash", "one"), ("x", ""), ("y", "")]);
        assert_eq!(offer.toolsets.len(), 3);
        let said: Vec<_> =
            offer.instructions.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(said, [("a", "use a"), ("b", "use b"), ("d", "Not available: no d")]);
    }
}
