//! What every service needs around it, and nothing of what a service does.
//!
//! # Layout
//! * [`address`]: where to listen and whom to call, TCP or Unix socket
//! * [`auth`]: API keys
//! * [`clock`]: the time
//! * `dial`: ways to a service, tried in turn
//! * [`grpc`]: serving on either kind of address
//! * [`place`]: one process of a service
//! * [`propagation`]: W3C trace context in and out
//! * [`scope`]: what a key may be used for; [`token`]: the text of keys that are kept in a store
//! * [`tunnel`]: a connection inside a stream of messages
//! * [`signals`]: the wish of the operating system that the process ends
//! * [`telemetry`]: logs, traces and metrics
//! * [`tls`]: who both ends of a connection are

pub mod address;
pub mod auth;
pub mod clock;
mod dial;
pub mod grpc;
pub mod place;
pub mod propagation;
pub mod scope;
pub mod signals;
pub mod telemetry;
pub mod tls;
pub mod token;
pub mod tunnel;
