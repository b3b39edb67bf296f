//! The connection to an MCP server: made when it is needed, made again when it broke.

use std::{error::Error, sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, CallToolResult, ContentBlock, ResourceContents},
    service::{ClientInitializeError, RunningService, ServiceError, serve_client},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};
use serde_json::{Map, Value};
use tokio::{sync::Mutex, time::timeout};

use super::{McpTool, Server, Transport, stdio::Process};
use crate::{process::Launcher, tools::Presentation};

/// How long a server may take to be reached, and to list its tools.
const CONNECT_TIME: Duration = Duration::from_secs(20);

/// A server, and the session with it if there is one.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) server: Server,
    bash: String,
    launcher: Launcher,
    session: Mutex<Option<Arc<Session>>>,
}

#[derive(Debug)]
struct Session {
    client: RunningService<RoleClient, ()>,
    /// The server's process, if it runs here. Ends with the session.
    _process: Option<Process>,
}

impl Connection {
    pub(crate) fn new(server: Server, bash: String, launcher: Launcher) -> Arc<Self> {
        Arc::new(Self { server, bash, launcher, session: Mutex::default() })
    }

    /// The tools that the server offers now.
    pub(crate) async fn tools(self: &Arc<Self>) -> Result<Vec<Arc<McpTool>>, String> {
        let session = self.session().await?;
        let listed = timeout(CONNECT_TIME, session.client.list_all_tools()).await;
        let tools = match listed {
            Ok(Ok(tools)) => tools,
            Ok(Err(error)) => return Err(self.broken(&session, &error).await),
            Err(_) => {
                self.forget(&session).await;
                return Err(format!("it did not list its tools in {} s", CONNECT_TIME.as_secs()));
            }
        };
        let own = tools.into_iter().map(|tool| {
            Arc::new(McpTool {
                description: tool.description.unwrap_or_default().into_owned(),
                connection: Arc::clone(self),
                name: tool.name.into_owned(),
                schema: Value::Object(Map::clone(&tool.input_schema)),
            })
        });
        Ok(own.collect())
    }

    pub(super) async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Presentation {
        let called = async {
            let session = self.session().await?;
            let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
            match session.client.call_tool(request).await {
                Ok(result) => Ok(present(result)),
                Err(error) => Err(self.broken(&session, &error).await),
            }
        };
        called.await.unwrap_or_else(|error: String| Presentation::Error {
            data: String::new(),
            error: format!("MCP server `{}`: {error}", self.server.name),
        })
    }

    async fn session(&self) -> Result<Arc<Session>, String> {
        let mut session = self.session.lock().await;
        if let Some(open) = session.as_ref().filter(|open| !open.client.is_closed()) {
            return Ok(Arc::clone(open));
        }
        *session = None;
        let opened = timeout(CONNECT_TIME, self.open()).await;
        let opened =
            opened.map_err(|_| format!("it could not be reached in {} s", CONNECT_TIME.as_secs()))??;
        Ok(Arc::clone(session.insert(Arc::new(opened))))
    }

    async fn open(&self) -> Result<Session, String> {
        match &self.server.transport {
            Transport::Http { url, headers } => {
                // The headers may hold keys: they go to the server that was named, and nowhere else.
                let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.clone());
                let http = http.map_err(|error| cause(&error))?;
                let transport = StreamableHttpClientTransport::with_client(http, config);
                let client = serve_client((), transport).await.map_err(|error| refused(&error))?;
                Ok(Session { client, _process: None })
            }
            Transport::Stdio { command, environment } => {
                let (process, output, input) =
                    Process::start(&self.bash, &self.launcher, command, environment)?;
                match serve_client((), (output, input)).await {
                    Ok(client) => Ok(Session { client, _process: Some(process) }),
                    Err(error) => Err(process.last_words().await.unwrap_or_else(|| refused(&error))),
                }
            }
        }
    }

    /// What went wrong. A session that can no longer be used is forgotten.
    async fn broken(&self, session: &Arc<Session>, error: &ServiceError) -> String {
        match error {
            ServiceError::McpError(error) => error.message.to_string(),
            other => {
                self.forget(session).await;
                match other {
                    ServiceError::TransportSend(error) => cause(error.error.as_ref()),
                    other => cause(other),
                }
            }
        }
    }

    async fn forget(&self, session: &Arc<Session>) {
        let mut current = self.session.lock().await;
        if current.as_ref().is_some_and(|own| Arc::ptr_eq(own, session)) {
            *current = None;
        }
    }
}

/// Why no session came about.
fn refused(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => cause(error.error.as_ref()),
        other => cause(other),
    }
}

/// The innermost error, which says most. The transport's own hides what it wraps.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    loop {
        let wrapped: Option<&(dyn Error + 'static)> = match innermost.downcast_ref() {
            Some(StreamableHttpError::<reqwest::Error>::Client(error)) => Some(error),
            Some(_) | None => innermost.source(),
        };
        match wrapped {
            Some(wrapped) => innermost = wrapped,
            None => return innermost.to_string(),
        }
    }
}

fn present(result: CallToolResult) -> Presentation {
    let parts = result.content.into_iter().map(text).collect::<Vec<_>>();
    let text = match (parts.is_empty(), result.structured_content) {
        (true, Some(structured)) => structured.to_string(),
        (true, None) | (false, _) => parts.join("\n"),
    };
    if result.is_error == Some(true) {
        return Presentation::Error { error: text, data: String::new() };
    }
    if text.trim().is_empty() { Presentation::NoData(text) } else { Presentation::Success(text) }
}

const UNKNOWN_PART: &str = "[a part of an unknown kind is left out]";

fn text(part: ContentBlock) -> String {
    match part {
        ContentBlock::Text(part) => part.text,
        ContentBlock::Image(part) => format!("[an image ({}) is left out]", part.mime_type),
        ContentBlock::Audio(part) => format!("[a recording ({}) is left out]", part.mime_type),
        ContentBlock::Resource(part) => match part.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, .. } => format!("[the data of {uri} is left out]"),
            _ => UNKNOWN_PART.to_owned(),
        },
        ContentBlock::ResourceLink(link) => link.uri,
        _ => UNKNOWN_PART.to_owned(),
    }
}
