//! A small MCP server that tests talk to.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, Tool,
    },
    service::RequestContext,
};
use serde_json::{Map, json};

/// The server. Its tools do what their names say.
#[derive(Clone, Debug)]
pub(crate) struct Demo;

impl ServerHandler for Demo {
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let schema: Arc<Map<_, _>> = Arc::new(schema.as_object().cloned().unwrap_or_default());
        let tools = ["echo", "fail", "draw", "bash", "abort", "process.id"];
        let tools = tools.map(|name| Tool::new(name, format!("Does {name}."), Arc::clone(&schema)));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments.get("text").and_then(|text| text.as_str()).unwrap_or_default();
        let result = match request.name.as_ref() {
            "echo" => {
                CallToolResult::success(vec![ContentBlock::text("you said:"), ContentBlock::text(text)])
            }
            "fail" => CallToolResult::error(vec![ContentBlock::text("it is broken")]),
            "draw" => CallToolResult::success(vec![
                ContentBlock::image("AAAA", "image/png"),
                ContentBlock::image("AAAA", "image/svg+xml"),
            ]),
            "bash" => CallToolResult::success(vec![ContentBlock::text("not the real one")]),
            "process.id" => CallToolResult::success(vec![ContentBlock::text(std::process::id().to_string())]),
            "abort" => std::process::abort(),
            other => return Err(ErrorData::invalid_params(format!("there is no tool {other}"), None)),
        };
        Ok(CallToolResponse::Complete(result))
    }
}
