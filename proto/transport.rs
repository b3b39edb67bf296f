use tonic::{body::Body, codegen::StdError};
use tower::{Service, ServiceExt as _, util::BoxCloneSyncService};

/// Anything that a generated client can speak through: a network channel, or a service in the same process.
pub type Transport = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, Unreachable>;

/// What a transport leads to could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(#[source] StdError);

/// Boxes a channel or a service as a [`Transport`].
pub fn transport<S>(service: S) -> Transport
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + Sync + 'static,
    S::Error: Into<StdError>,
    S::Future: Send + 'static,
{
    BoxCloneSyncService::new(service.map_err(|error| Unreachable(error.into())))
}
