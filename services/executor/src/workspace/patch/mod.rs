//! `patch`: files added, deleted and changed by a text that says which lines go and which come.

mod apply;
mod parse;

pub(crate) use parse::{Change, parse};

#[cfg(test)]
use parse::Malformed;

#[cfg(test)]
mod tests;
