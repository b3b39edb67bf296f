//! The wire: generated messages and services of `proto/`, and their conversion to and from the domain.
//!
//! Nothing else in Sleuth converts between the two. No HTTP dialect is known here.

// Generated code is documented by the comments in `proto/`.
#[allow(missing_docs, clippy::all, clippy::pedantic, clippy::allow_attributes, unreachable_pub)]
mod generated {
    // The packages name each other by these paths.
    pub mod account {
        pub mod v1 {
            tonic::include_proto!("sleuth.account.v1");
        }
    }
    pub mod agent {
        pub mod v1 {
            tonic::include_proto!("sleuth.agent.v1");
        }
    }
    pub mod cluster {
        pub mod v1 {
            tonic::include_proto!("sleuth.cluster.v1");
        }
    }
    pub mod executor {
        pub mod v1 {
            tonic::include_proto!("sleuth.executor.v1");
        }
    }
    pub mod session {
        pub mod v1 {
            tonic::include_proto!("sleuth.session.v1");
        }
    }
}

mod convert;
mod names;
mod transport;

pub use convert::{AuditReader, Malformed, kept_trail, parameters, time, timestamp};
pub use generated::{
    account::v1 as account, agent::v1 as agent, cluster::v1 as cluster, executor::v1 as executor,
    session::v1 as session,
};
pub use names::{AUDIT_KINDS, SESSION_EVENTS};
pub use transport::{Transport, Unreachable, transport};

/// All file descriptors with their imports, for gRPC reflection and for the compatibility test.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Response metadata key that carries the id of the run that a `Chat` started.
pub const RUN_ID: &str = "sleuth-run-id";

/// Response metadata key that says after how many seconds a request that came too soon may come again.
pub const RETRY_AFTER: &str = "retry-after";

/// Response metadata key of an UNAVAILABLE whose message is for whoever asked: the agent was reached, and says why not.
pub const FOR_THE_ASKER: &str = "sleuth-for-the-asker";

/// The harness that every session runs in.
pub const HARNESS_ID: &str = "harness_01970000000070008000000000000001";

/// The agent that answers in it.
pub const AGENT_ID: &str = "agent_01970000000070008000000000000001";
