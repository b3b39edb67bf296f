//! Tools that the client runs: their definitions, and the results with which a client comes back.

use http::StatusCode;
use serde_json::value::RawValue;
use wire::agent::{ClientResult, ClientTool};

use crate::problem::Problem;

use super::{
    fields::Fields,
    invalid::{Kind, Loc},
    raw::{Members, Type},
};

const TOOLS: &str = "frontend_tools";
const RESULTS: &str = "frontend_tool_results";

/// The tools that the client offers.
pub(super) fn tools(fields: &mut Fields<'_>) -> Vec<ClientTool> {
    let items = fields.list(TOOLS).into_iter().enumerate();
    items.map(|(index, item)| Item::open(fields, TOOLS, index, item).tool()).collect()
}

/// The results of tools that an earlier run waits for.
pub(super) fn results(fields: &mut Fields<'_>) -> Vec<ClientResult> {
    let items = fields.list(RESULTS).into_iter().enumerate();
    items
        .map(|(index, item)| {
            let mut item = Item::open(fields, RESULTS, index, item);
            // The agent knows which tool was called.
            item.required("tool_name");
            ClientResult { call_id: item.required("tool_call_id"), result: item.required("result") }
        })
        .collect()
}

/// A client that does not read a stream cannot come back to one.
pub(super) fn check(tools: &[ClientTool], stream: bool) -> Result<(), Problem> {
    let pausing = tools.iter().find(|tool| tool.noop_response.is_none());
    match pausing {
        Some(tool) if !stream => {
            let text = format!(
                "The frontend tool '{}' has mode 'pause', which needs a stream: set \"stream\": true, or use mode \
                 'noop'",
                tool.name
            );
            Err(Problem::new(StatusCode::BAD_REQUEST, &text))
        }
        Some(_) | None => Ok(()),
    }
}

/// An item of one of the two lists.
struct Item<'f, 'a> {
    fields: &'f mut Fields<'a>,
    path: [Loc; 2],
    whole: &'a RawValue,
    members: Members<'a>,
}

impl<'f, 'a> Item<'f, 'a> {
    fn open(fields: &'f mut Fields<'a>, list: &'static str, index: usize, whole: &'a RawValue) -> Self {
        let path = [Loc::Key(list), Loc::Index(index)];
        let is_object = Type::of(whole) == Type::Object;
        let members = fields.members(whole, Kind::Object, &path);
        // What is not an object has been reported as such, and nothing is missing in it.
        let members = if is_object { members } else { None };
        Self { fields, path, whole, members: members.unwrap_or_default() }
    }

    fn at(&self, name: &'static str) -> Vec<Loc> {
        [&self.path[..], &[Loc::Key(name)]].concat()
    }

    fn required(&mut self, name: &'static str) -> String {
        let at = self.at(name);
        match self.members.get(name).copied() {
            Some(value) => self.fields.text(value, &at),
            None => {
                if Type::of(self.whole) == Type::Object {
                    self.fields.errors.add(Kind::Missing, &at, self.whole);
                }
                String::new()
            }
        }
    }

    fn optional(&mut self, name: &'static str) -> Option<String> {
        let value = self.members.get(name).copied().filter(|value| Type::of(value) != Type::Null)?;
        let at = self.at(name);
        Some(self.fields.text(value, &at))
    }

    fn tool(mut self) -> ClientTool {
        let (name, description) = (self.required("name"), self.required("description"));
        let (parameters_json, mode) = (self.parameters(), self.optional("mode"));
        let response = self.optional("noop_response").unwrap_or_default();
        let noop_response = match mode.as_deref() {
            None | Some("pause") => None,
            Some("noop") => Some(response),
            Some(_) => {
                let at = self.at("mode");
                self.fields.errors.add_value("Input should be 'pause' or 'noop'", &at, self.whole);
                None
            }
        };
        ClientTool { name, description, parameters_json, noop_response }
    }

    fn parameters(&mut self) -> String {
        let Some(value) = self.members.get("parameters").copied() else { return String::new() };
        let at = self.at("parameters");
        match Type::of(value) {
            Type::Null => String::new(),
            Type::Object => value.get().to_owned(),
            Type::Array | Type::String | Type::Bool | Type::Number => {
                self.fields.errors.add(Kind::Dict, &at, value);
                String::new()
            }
        }
    }
}
