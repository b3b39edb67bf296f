//! What is asked of each gRPC request before a service sees it.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use runtime::{
    auth::{ApiKey, is_authorized, presented},
    scope::{Scope, Scopes},
    token::Token,
};
use tonic::{Status, body::Body};
use tower::{Layer, Service};
use wire::agent::Caller;

use crate::{Denied, Known, Registry};

/// A layer that lets requests in by their keys. For whom a request with a key of the store is made is then in its
/// extensions, as [`Caller`] and [`Scopes`]; whoever has the server's own key may speak for others, and then nothing is.
#[derive(Clone, Debug)]
pub struct Gate {
    key: Option<ApiKey>,
    open: bool,
    registry: Registry,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// Any key.
    AnyKey,
    Scope(Scope),
    /// The server's own key.
    Trust,
}

impl Gate {
    /// `key` is the server's own. Where the gate is `open`, whoever presents no key has it, too.
    pub fn new(key: Option<ApiKey>, open: bool, registry: Registry) -> Self {
        Self { open: open && key.is_none(), key, registry }
    }

    async fn admit<B>(&self, request: &mut Request<B>) -> Result<(), Status> {
        let need = need(request.uri().path());
        if need == Need::Nothing || self.key.as_ref().is_some_and(|key| is_authorized(request.headers(), key))
        {
            return Ok(());
        }
        let Some(token) = presented(request.headers()).find_map(Token::read) else {
            return if self.open { Ok(()) } else { Err(Denied::Unknown.into()) };
        };
        let Known { caller, scopes } = self.registry.admit(token.id(), &token.digest()).await?;
        match need {
            Need::Nothing | Need::AnyKey => {}
            Need::Scope(scope) if scopes.allow(scope) => {}
            Need::Scope(scope) => return Err(Denied::Scope(scope).into()),
            Need::Trust => return Err(Denied::NotForThis.into()),
        }
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(scopes);
        Ok(())
    }
}

/// What is not listed needs the server's own key.
fn need(path: &str) -> Need {
    let Some((service, method)) = path.trim_start_matches('/').split_once('/') else { return Need::Trust };
    match (service, method) {
        // Clusters have keys of another kind, which that service checks by itself.
        ("grpc.health.v1.Health" | "sleuth.cluster.v1.ClusterLink", _) => Need::Nothing,
        // So have agents that share a store, for each other's executors.
        ("sleuth.executor.v1.ToolExecutor", _) => Need::Nothing,
        ("grpc.reflection.v1.ServerReflection" | "grpc.reflection.v1alpha.ServerReflection", _) => {
            Need::AnyKey
        }
        ("sleuth.agent.v1.Agent", "Chat" | "NameCluster" | "CancelRun" | "Decide" | "Steer") => {
            Need::Scope(Scope::Ask)
        }
        (
            "sleuth.agent.v1.Agent",
            "Watch" | "ListModels" | "ListTools" | "ListRuns" | "ListClusters" | "GetRun" | "GetReadiness",
        ) => Need::Scope(Scope::Read),
        (
            "sleuth.session.v1.Sessions",
            "GetSession" | "ListSessions" | "ListMessages" | "ListEvents" | "Watch" | "GetAgent"
            | "ListAgents" | "GetImage",
        ) => Need::Scope(Scope::Read),
        ("sleuth.session.v1.Sessions", _) => Need::Scope(Scope::Ask),
        ("sleuth.account.v1.Accounts", "Authenticate") => Need::Trust,
        ("sleuth.account.v1.Accounts", "Audit") => Need::Scope(Scope::Audit),
        ("sleuth.account.v1.Accounts", _) => Need::Scope(Scope::Admin),
        _ => Need::Trust,
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { gate: self.clone(), inner }
    }
}

/// A service behind a [`Gate`].
#[derive(Clone, Debug)]
pub struct Gated<S> {
    gate: Gate,
    inner: S,
}

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let gate = self.gate.clone();
        // The one that is ready goes with the request.
        let spare = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, spare);
        Box::pin(async move {
            // Only this gate says for whom a request is made.
            request.extensions_mut().remove::<Caller>();
            request.extensions_mut().remove::<Scopes>();
            match gate.admit(&mut request).await {
                Ok(()) => inner.call(request).await,
                Err(status) => Ok(status.into_http()),
            }
        })
    }
}
