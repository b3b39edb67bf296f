//! Asks one question here and prints the answer: for a person who works on rules.
//!
//! `TRIAGE_ASK="what is wrong?" cargo test -p triage --test investigate -- --ignored --nocapture`
//!
//! With `TRIAGE_RECORD` set to a path, what the commands printed is recorded there, as a start for a fixture.

use std::fmt::Write;

use crate::support::{ask, bash};

#[test]
#[ignore = "for a person to read: it asks about the machine that it runs on"]
fn a_question() {
    let question = std::env::var("TRIAGE_ASK").expect("TRIAGE_ASK holds a question");
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let stated = format!("{question}\n\nThe current UTC date and time are {now}+00:00.");
    let record = std::cell::RefCell::new(format!("# ask: {question}\n# now: {now}\n"));
    let run = ask(&stated, &[], &|command| {
        let said = bash(command, &[]);
        let output = said.strip_prefix(command).map_or(said.as_str(), |rest| rest.trim_start_matches('\n'));
        writeln!(record.borrow_mut(), "$ {command}\n{output}").expect("text can be written");
        said
    });
    if let Ok(path) = std::env::var("TRIAGE_RECORD") {
        std::fs::write(path, record.into_inner()).expect("the recording can be written");
    }
    println!("{} rounds\n{}\n\n{}", run.rounds, run.commands.join("\n"), run.answer);
}
