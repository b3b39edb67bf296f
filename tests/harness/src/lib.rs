//! The test harness: what the tests share.
//!
//! # Layout
//! * [`browser`]: pages in a real browser
//! * [`client`]: an HTTP client that reads event streams
//! * [`collector`]: an OTLP collector that keeps what it gets
//! * [`components`]: what a machine may lack
//! * [`link`]: a way to servers that breaks when a test wants it to
//! * [`models`]: scripted model servers
//! * [`papers`]: certificates of a test's own
//! * [`postgres`]: a PostgreSQL server of a test's own
//! * [`process`]: real sleuth processes
//! * [`sessions`]: a client of the session dialect

pub mod browser;
pub mod client;
pub mod collector;
pub mod components;
pub mod link;
pub mod models;
pub mod papers;
pub mod postgres;
pub mod process;
pub mod sessions;
