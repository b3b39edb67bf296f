//! Accounts: whom everything belongs to, the keys that act for them, who may do what, and what was done.
//!
//! # Layout
//! * [`Registry`]: accounts and keys of clients, made, listed and ended
//! * `entry`: whose key it is that somebody presents; `limits`: and whether it comes too often
//! * `clusters`: tokens to join, and the keys of clusters
//! * [`Gate`]: what is asked of each gRPC request before a service sees it
//! * [`Service`], the gRPC service of `sleuth.account.v1`
//! * `audit`: what was asked and done, read from the logs of runs

mod audit;
mod clusters;
mod convert;
mod entry;
mod gate;
mod limits;
mod registry;
mod rpc;
mod secret;

pub use clusters::Cluster;
pub use entry::{Denied, Known};
pub use gate::Gate;
pub use limits::Rates;
pub use registry::{Error, NewKey, Registry, Secret};
pub use rpc::Service;
