//! Whole investigations: a question in, tools that answer, a report out.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed step fails the test, and a skipped test says so"
)]

mod ask;
mod cluster;
mod fixtures;
mod support;
mod transcript;
