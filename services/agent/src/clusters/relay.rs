//! Calls of other agents for executors that are linked to this one: passed on as they are, with what comes back.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, header::AUTHORIZATION};
use runtime::auth::{self, ApiKey};
use tonic::{Status, body::Body, server::NamedService};
use tower::{Service, ServiceExt as _};
use wire::{Transport, executor::tool_executor_server, transport};

use super::{Clusters, Joined};
use crate::tools::executors::{passed_on, unsent};

const ACCOUNT: HeaderName = HeaderName::from_static("sleuth-account");
const CLUSTER: HeaderName = HeaderName::from_static("sleuth-cluster");
const EXECUTOR: HeaderName = HeaderName::from_static("sleuth-executor");

/// The executors that are linked to this agent, for other agents, which know its key from the store that they share.
#[derive(Clone, Debug)]
pub struct Relay {
    clusters: Clusters,
    key: ApiKey,
}

impl Relay {
    pub(super) fn new(clusters: Clusters, key: ApiKey) -> Self {
        Self { clusters, key }
    }

    /// The way to the executor that a request names.
    fn find(&self, headers: &HeaderMap) -> Result<Transport, Status> {
        if !auth::is_authorized(headers, &self.key) {
            return Err(Status::unauthenticated(
                "only agents that share a store call each other's executors",
            ));
        }
        let text = |name: &HeaderName| {
            let value = headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
            value.map(str::to_owned).ok_or_else(|| Status::invalid_argument(format!("{name}: it is missing")))
        };
        let cluster = Joined { account: text(&ACCOUNT)?, cluster: text(&CLUSTER)? };
        let executor = text(&EXECUTOR)?;
        let linked = self.clusters.linked(&cluster, &executor);
        linked.ok_or_else(|| unsent("the executor is not linked to this agent any more"))
    }
}

/// The way to an executor that is linked to another agent.
pub(super) fn through(agent: Transport, key: &ApiKey, at: &Joined, executor: &str) -> Option<Transport> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", key.expose())).ok()?;
    bearer.set_sensitive(true);
    let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).ok();
    let headers = [
        (AUTHORIZATION, bearer),
        (ACCOUNT, value(&at.account)?),
        (CLUSTER, value(&at.cluster)?),
        (EXECUTOR, value(executor)?),
    ];
    Some(transport(agent.map_request(move |mut request: Request<Body>| {
        request.headers_mut().extend(headers.iter().cloned());
        request
    })))
}

impl NamedService for Relay {
    const NAME: &'static str = tool_executor_server::SERVICE_NAME;
}

impl Service<Request<Body>> for Relay {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let found = self.find(request.headers());
        Box::pin(async move {
            let passed = match found {
                Ok(executor) => executor
                    .oneshot(onward(request))
                    .await
                    .map_err(|error| passed_on(&Status::from_error(Box::new(error)))),
                Err(refused) => Err(refused),
            };
            Ok(passed.unwrap_or_else(Status::into_http))
        })
    }
}

/// A request as the executor gets it: the call, without what was for this agent.
fn onward(mut request: Request<Body>) -> Request<Body> {
    for name in [AUTHORIZATION, ACCOUNT, CLUSTER, EXECUTOR] {
        request.headers_mut().remove(name);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
    request
}
