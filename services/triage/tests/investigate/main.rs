//! Whole investigations: a question in, tools that answer, a report out.

mod ask;
mod cluster;
mod fixtures;
mod support;
mod transcript;
