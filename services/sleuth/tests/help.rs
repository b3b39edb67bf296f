//! The program runs, and its help teaches.

use std::process::Command;

#[test]
fn help_names_every_subcommand_and_shows_an_example() {
    let output = Command::new(env!("CARGO_BIN_EXE_sleuth")).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for word in [
        "serve",
        "agent",
        "executor",
        "gateway",
        "ask",
        "models",
        "tools",
        "clusters",
        "runs",
        "accounts",
        "keys",
        "audit",
        "Examples:",
        "curl -N",
    ] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let output = Command::new(env!("CARGO_BIN_EXE_sleuth")).arg("--no-such-flag").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
