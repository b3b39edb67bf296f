//! Asks one question here and prints the answer: for a person who works on rules.
//!
//! `TRIAGE_ASK="what is wrong?" cargo nextest run -p triage --test investigate -E "test(=ask::ask)" --run-ignored all --no-capture`

#[test]
#[ignore = "for a person to read: it asks about the machine that it runs on"]
fn ask() {
    let question = std::env::var("TRIAGE_ASK").expect("TRIAGE_ASK holds a question");
    let run = crate::support::ask(&question, &[], &|command| crate::support::bash(command, &[]));
    println!("{} rounds\n{}\n\n{}", run.rounds, run.commands.join("\n"), run.answer);
}
