//! The policy as a table, and as properties over random text.

use proptest::prelude::*;

use super::*;

const TABLE: &str = include_str!("../../tests/data/commands.tsv");

fn cases() -> impl Iterator<Item = (Verdict, String)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (verdict, command) = line.split_once('\t').expect("a tab");
        let verdict = match verdict {
            "allow" => Verdict::Allow,
            "deny" => Verdict::Deny,
            other => panic!("{other} is no verdict"),
        };
        (verdict, command.replace("\\\\\\n", "\\\n").replace("\\n", "\n").replace("\\r", "\r"))
    })
}

#[test]
fn every_command_of_the_table_is_judged_as_it_says() {
    let policy = Policy::default();
    let wrong: Vec<_> = cases()
        .map(|(verdict, command)| (verdict, policy.judge_bash(&command), command))
        .filter(|(verdict, judgement, _)| *verdict != judgement.verdict)
        .map(|(verdict, judgement, command)| {
            format!("{command:?} should be {verdict:?}: {}", judgement.reason)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases().count() >= 300);
}

#[test]
fn a_denial_says_why_and_an_allowance_what_runs() {
    let policy = Policy::default();
    for (_, command) in cases() {
        let judgement = policy.judge_bash(&command);
        assert_eq!(judgement.verdict == Verdict::Allow, judgement.script.is_some(), "{command}");
        assert_eq!(judgement.verdict == Verdict::Allow, judgement.reason.is_empty(), "{command}");
    }
}

#[test]
fn root_is_blocked_however_it_is_written() {
    for command in ["sudo id", "SU -", "'su'do id", "/usr/bin/sudo id", "ls | sudo tee x", "(sudo id)"] {
        let reason = Policy::default().judge_bash(command).reason;
        assert!(reason.starts_with("Command blocked:"), "{command}: {reason}");
    }
}

#[test]
fn what_runs_is_quoted_and_is_judged_the_same() {
    let policy = Policy::default();
    for (command, script) in [
        ("echo a\\ b \"c's\" | wc -l", r"'echo' 'a b' 'c'\''s' | 'wc' '-l'"),
        ("ls ~/x* 2>/dev/null; df>/dev/null 2>&1", "'ls' ~/'x'* 2>/dev/null; 'df' >/dev/null 2>&1"),
        ("ls ~ && echo '' || ls / |& wc", "'ls' ~ && 'echo' '' || 'ls' '/' 2>&1 | 'wc'"),
    ] {
        let once = policy.judge_bash(command).script.expect(command);
        assert_eq!(once, script);
        assert_eq!(policy.judge_bash(&once).script.as_deref(), Some(script));
    }
}

#[test]
fn the_kubeconfig_is_not_read() {
    let policy = Policy { kubeconfigs: vec![PathBuf::from("/srv/cluster.yaml")] };
    assert_eq!(policy.judge_bash("cat /srv/./cluster.yaml").verdict, Verdict::Deny);
    assert_eq!(policy.judge_bash("cat /srv/other.yaml").verdict, Verdict::Allow);
}

#[test]
fn what_could_break_the_parser_is_refused_at_once() {
    let shapes: [(&str, &str); 12] = [
        ("(", ""),
        ("{ ", ""),
        ("$(", ""),
        ("${x:-", ""),
        ("$[", ""),
        ("[[ ! ", ""),
        ("if ", ""),
        ("coproc ", ""),
        ("`", ""),
        ("<(", ""),
        ("echo '(' \"$(", ""),
        ("case a in ", "esac"),
    ];
    let started = std::time::Instant::now();
    for (open, close) in shapes {
        for times in [64, 1000, 3000] {
            let command = format!("{}ls{}", open.repeat(times), close.repeat(times));
            assert_eq!(Policy::default().judge_bash(&command).verdict, Verdict::Deny, "{open} x {times}");
        }
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn long_commands_of_allowed_shapes_are_judged() {
    for shape in ["echo a | ", "echo a && ", "echo a; "] {
        let command = format!("{}echo a", shape.repeat(1000));
        assert_eq!(Policy::default().judge_bash(&command).verdict, Verdict::Allow, "{shape}");
    }
    assert_eq!(Policy::default().judge_bash(&"echo a;".repeat(3000)).verdict, Verdict::Deny);
}

/// Pieces that, put together, often make commands.
fn fragment() -> impl Strategy<Value = String> {
    let known = [
        "ls",
        "rm",
        "cat",
        "kubectl",
        "get",
        "delete",
        "secrets",
        "sudo",
        "find",
        "-exec",
        "-o",
        "--output=x",
        "|",
        "||",
        "&&",
        "&",
        ";",
        "\n",
        ">",
        "<",
        "<<",
        ">&",
        "2>",
        "/dev/null",
        "$",
        "(",
        ")",
        "{",
        "}",
        "[[",
        "]]",
        "`",
        "'",
        "\"",
        "\\",
        "#",
        "!",
        "if",
        "then",
        "fi",
        "do",
        "done",
        "A=1",
        "~",
        "*",
        "?",
        "x",
        "/etc/shadow",
        "=",
        ",",
    ];
    prop_oneof![
        4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        2 => Just(" ".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever is allowed: its text is a chain of listed programs, in quotes that nothing leaves.
    #[test]
    fn nothing_unlisted_is_ever_allowed(fragments in prop::collection::vec(fragment(), 0..24), spaced: bool) {
        let command = fragments.join(if spaced { " " } else { "" });
        let judgement = Policy::default().judge_bash(&command);
        if let Some(script) = judgement.script {
            let programs = unquoted_programs(&script);
            prop_assert!(!programs.is_empty());
            for program in programs {
                prop_assert!(programs::find(&program).is_some(), "{command:?} runs {program:?} by {script:?}");
            }
        }
    }

    #[test]
    fn any_text_is_judged(text in any::<String>()) {
        let judgement = Policy::default().judge_bash(&text);
        prop_assert_eq!(judgement.verdict == Verdict::Allow, judgement.script.is_some());
    }
}

/// The words that a shell would run, read by the simplest rules that cover what scripts look like.
fn unquoted_programs(script: &str) -> Vec<String> {
    let mut programs = Vec::new();
    let (mut word, mut quoted, mut expects_program) = (String::new(), false, true);
    let mut symbols = script.chars().chain([' ']);
    while let Some(symbol) = symbols.next() {
        match symbol {
            '\'' => quoted = !quoted,
            _ if quoted => word.push(symbol),
            '\\' => word.extend(symbols.next()),
            ' ' | ';' | '|' => {
                if expects_program && !word.is_empty() {
                    programs.push(std::mem::take(&mut word));
                    expects_program = false;
                }
                let joins = matches!(word.as_str(), "&&") || matches!(symbol, ';' | '|');
                expects_program |= joins;
                word.clear();
            }
            _ => word.push(symbol),
        }
    }
    programs
}
