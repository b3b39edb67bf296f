//! Several gateways, agents and executors over one PostgreSQL: any serves any session, and each of them may go.

#![cfg(test)]

#[path = "replicas/chaos.rs"]
mod chaos;
#[path = "replicas/fleet.rs"]
mod fleet;
#[path = "replicas/sharing.rs"]
mod sharing;
