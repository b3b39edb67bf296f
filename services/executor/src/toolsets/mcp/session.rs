//! The connection to an MCP server: made when it is needed, made again when it broke.

use std::{error::Error, sync::Arc, time::Duration};

use http::HeaderMap;
use rmcp::{
    RoleClient,
    model::CallToolRequestParams,
    service::{ClientInitializeError, RunningService, ServiceError, serve_client},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};
use serde_json::{Map, Value};
use tokio::{sync::Mutex, time::timeout};

use super::{McpTool, Server, Transport, result::present, stdio::Process};
use crate::{
    process::Launcher,
    tools::{Presentation, RequestHeaders},
};

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

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        headers: &RequestHeaders,
    ) -> Presentation {
        let called = async {
            let session = self.session_for(headers).await?;
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

    /// The session of a call. Where headers depend on whoever asks, it is its own.
    async fn session_for(&self, request: &RequestHeaders) -> Result<Arc<Session>, String> {
        match &self.server.transport {
            Transport::Http { headers, .. } if !headers.are_fixed() => {
                let opened = within(self.open(headers.render(request)?)).await?;
                Ok(Arc::new(opened))
            }
            Transport::Http { .. } | Transport::Stdio { .. } => self.session().await,
        }
    }

    async fn session(&self) -> Result<Arc<Session>, String> {
        let mut session = self.session.lock().await;
        if let Some(open) = session.as_ref().filter(|open| !open.client.is_closed()) {
            return Ok(Arc::clone(open));
        }
        *session = None;
        let headers = match &self.server.transport {
            Transport::Http { headers, .. } => headers.fixed(),
            Transport::Stdio { .. } => HeaderMap::new(),
        };
        let opened = within(self.open(headers)).await?;
        Ok(Arc::clone(session.insert(Arc::new(opened))))
    }

    async fn open(&self, headers: HeaderMap) -> Result<Session, String> {
        match &self.server.transport {
            Transport::Http { url, .. } => {
                // The headers may hold keys: they go to the server that was named, and nowhere else.
                let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(
                    headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect(),
                );
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

async fn within(opening: impl Future<Output = Result<Session, String>>) -> Result<Session, String> {
    let late = || format!("it could not be reached in {} s", CONNECT_TIME.as_secs());
    timeout(CONNECT_TIME, opening).await.unwrap_or_else(|_| Err(late()))
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
