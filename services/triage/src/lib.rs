//! A deterministic investigator behind the model trait: reasons by rules, and needs no key.
//!
//! [`Triage`] is a pure function of the request. It reads what the tools returned in this run, decides what is
//! still to be looked at, and asks for that, all at once; when nothing is left to look at, it writes the answer.
//!
//! # Layout
//! * `triage`: the model; `transcript` and `question` read the request
//! * `look`: the commands that it may ask for; `case`: which of them a question needs
//! * `evidence`: what came of them; `table`, `manifest`, `excerpt`, `logs`, `time`: how to read that
//! * `snapshot`: the evidence, typed
//! * `rules`: what is wrong, one file for each rule; `correlate`: causes and consequences
//! * `answer`, `show` and `unseen`: the markdown; `form`: the same as JSON, where a schema asks for it; `quote`: how text of others gets into it

mod answer;
mod case;
mod correlate;
mod evidence;
mod excerpt;
mod finding;
mod form;
mod logs;
mod look;
mod manifest;
mod name;
mod question;
mod quote;
mod rules;
mod show;
mod similar;
mod snapshot;
mod table;
mod time;
mod transcript;
mod triage;
mod unseen;
mod words;

pub use triage::Triage;
