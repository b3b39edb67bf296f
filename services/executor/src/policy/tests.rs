//! The policy as a table, and as properties over random text.

use proptest::prelude::*;

use super::*;

const TABLE: &str = include_str!("../../tests/data/commands.tsv");

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Allow,
    Ask,
    Deny,
}

fn verdict(judgement: &Judgement) -> Verdict {
    match judgement {
        Judgement::Allow { .. } => Verdict::Allow,
        Judgement::Ask { .. } => Verdict::Ask,
        Judgement::Deny { .. } => Verdict::Deny,
    }
}

/// The verdict and the reason, as the table names them.
fn label(judgement: &Judgement) -> (&'static str, &'static str) {
    let effect = match judgement.effect() {
        Effect::Read => "read",
        Effect::SensitiveRead => "sensitive",
        Effect::Mutation => "change",
    };
    match judgement {
        Judgement::Allow { .. } => ("allow", effect),
        Judgement::Ask { reason, .. } if reason.contains("could not be parsed") => ("ask", "unparsed"),
        Judgement::Ask { .. } => ("ask", effect),
        Judgement::Deny { reason } if reason.starts_with("Command blocked: ") => ("deny", "root"),
        Judgement::Deny { .. } => ("deny", "limit"),
    }
}

fn judge(command: &str) -> Judgement {
    Policy::default().judge(command, &[], &[])
}

fn with(builtin: BuiltinAllowlist, allow: &[&str], deny: &[&str]) -> Policy {
    let prefixes = |texts: &[&str]| texts.iter().filter_map(|text| Prefix::new(text)).collect();
    Policy { rules: Rules { builtin, allow: prefixes(allow), deny: prefixes(deny) }, ..Policy::default() }
}

fn script(judgement: &Judgement) -> Option<&str> {
    match judgement {
        Judgement::Allow { script, .. } => Some(script),
        Judgement::Ask { .. } | Judgement::Deny { .. } => None,
    }
}

pub(super) fn cases() -> impl Iterator<Item = ((&'static str, &'static str), String)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.splitn(3, '\t');
        let mut next = || columns.next().expect("three columns");
        let label = (next(), next());
        (label, next().replace("\\\\\\n", "\\\n").replace("\\n", "\n").replace("\\r", "\r"))
    })
}

#[test]
fn every_command_of_the_table_is_judged_as_it_says() {
    for (expected, command) in cases() {
        let judgement = judge(&command);
        assert_eq!(label(&judgement), expected, "{command:?}: {judgement:?}");
    }
    assert!(cases().count() >= 300);
}

#[test]
fn root_is_blocked_however_it_is_written() {
    for command in
        ["sudo id", "SU -", "'su'do id", "(sudo id)", "echo $(s\\udo id)", "bash -c 'sudo id'", "sudo ("]
    {
        let judgement = judge(command);
        let blocked =
            matches!(&judgement, Judgement::Deny { reason } if reason.starts_with("Command blocked:"));
        assert!(blocked, "{command}: {judgement:?}");
    }
    assert_eq!(verdict(&judge("grep su /etc/hosts")), Verdict::Allow);
}

#[test]
fn what_runs_is_quoted_and_is_judged_the_same() {
    for (command, quoted) in [
        ("echo a\\ b \"c's\" | wc -l", r"'echo' 'a b' 'c'\''s' | 'wc' '-l'"),
        ("ls ~/x* 2>/dev/null; df>/dev/null 2>&1", "'ls' ~/'x'* 2>/dev/null; 'df' >/dev/null 2>&1"),
        ("ls ~ && echo '' || ls / |& wc", "'ls' ~ && 'echo' '' || 'ls' '/' 2>&1 | 'wc'"),
    ] {
        assert_eq!(script(&judge(command)), Some(quoted));
        assert_eq!(script(&judge(quoted)), Some(quoted));
    }
}

#[test]
fn the_kubeconfig_is_not_read_unasked() {
    let policy = Policy { kubeconfigs: vec![PathBuf::from("/srv/cluster.yaml")], ..Policy::default() };
    assert_eq!(verdict(&policy.judge("cat /srv/./cluster.yaml", &[], &[])), Verdict::Ask);
    assert_eq!(verdict(&policy.judge("cat /srv/other.yaml", &[], &[])), Verdict::Allow);
}

#[test]
fn the_operator_allows_by_prefix() {
    use BuiltinAllowlist::{Core, Extended, None};
    for (builtin, allow, command, expected) in [
        (None, "", "ls", Verdict::Ask),
        (None, "ls /tmp", "ls /tmp/x", Verdict::Allow),
        (None, "ls /tmp", "ls /tmp/../etc", Verdict::Ask),
        (None, "ls /tmp", "ls /tmpx", Verdict::Ask),
        (None, "kubectl get", "kubectl get secrets", Verdict::Ask),
        (None, "kubectl get secrets", "kubectl get secrets -A", Verdict::Allow),
        (None, "kubectl", "kubectl delete pod x", Verdict::Ask),
        (None, "kubectl delete pod", "kubectl delete pod x", Verdict::Allow),
        (Core, "", "kubectl get pods | grep x", Verdict::Allow),
        (Core, "", "cat /etc/hosts", Verdict::Ask),
        (Extended, "mkdir", "mkdir $(id)", Verdict::Ask),
        (Extended, "find", "find / -delete", Verdict::Ask),
        (Extended, "sudo", "sudo id", Verdict::Deny),
    ] {
        let judgement = with(builtin, &[allow], &[]).judge(command, &[], &[]);
        assert_eq!(verdict(&judgement), expected, "{builtin:?} {allow:?} {command}: {judgement:?}");
    }
}

#[test]
fn the_operator_denies_by_prefix() {
    for (deny, command, denied) in [
        ("kubectl get secret", "kubectl get secrets", true),
        ("kubectl get secret", "kubectl -n x get -o wide 'sec'ret/x", true),
        ("kubectl get pod", "kubectl get podmonitors", false),
        ("rm", "/bin/rm x", true),
        ("rm", "ls | xargs rm", true),
        ("rm", "echo $(rm x)", true),
        ("rm", "ls; rm (", true),
        ("rm", "echo rm", false),
    ] {
        let judgement = with(BuiltinAllowlist::Extended, &["rm"], &[deny]).judge(command, &[], &[]);
        assert_eq!(verdict(&judgement) == Verdict::Deny, denied, "{deny:?} {command}: {judgement:?}");
    }
}

#[test]
fn prefixes_to_save_are_those_that_would_help() {
    for (command, suggested, saved, expected) in [
        ("mkdir -p x && echo made", vec!["mkdir", "echo", "mkdir"], "", Some(vec!["mkdir"])),
        ("mkdir x && rmdir x", vec!["mkdir", "rmdir"], "mkdir", Some(vec!["rmdir"])),
        ("kubectl get secret x", vec!["kubectl get"], "", Some(vec![])),
        ("for i in a; do mkdir $i; done", vec!["mkdir"], "mkdir", Some(vec![])),
        ("kubectl delete pod x", vec![], "kubectl delete", None),
        ("kubectl delete pod x --context b", vec!["kubectl delete"], "kubectl delete", Some(vec![])),
        ("kubectl delete pod x -s https://b", vec![], "kubectl delete", Some(vec![])),
        ("kubectl delete pod x -As=https://b", vec![], "kubectl delete", Some(vec![])),
        ("mkdir x", vec!["mkdir"], "mkdir", None),
        ("mkdir x", vec!["rmdir"], "mkdir", None),
    ] {
        let saved: Vec<_> = Prefix::new(saved).into_iter().collect();
        let found = match Policy::default().judge(command, &suggested, &saved) {
            Judgement::Ask { prefixes, .. } => Some(prefixes),
            Judgement::Allow { .. } => None,
            Judgement::Deny { reason } => {
                assert!(reason.starts_with("Invalid prefix:"), "{command}: {reason}");
                None
            }
        };
        assert_eq!(found, expected.map(|own| own.into_iter().map(str::to_owned).collect()), "{command}");
    }
}

#[test]
fn only_what_does_more_on_this_machine_than_read_needs_more_of_it() {
    for (command, effect, on_machine) in [
        ("kubectl get pods | head", Effect::Read, Effect::Read),
        ("kubectl delete pod web", Effect::Mutation, Effect::Read),
        ("kubectl get secrets -o yaml | head", Effect::SensitiveRead, Effect::Read),
        ("for i in a b; do kubectl delete pod $i; done", Effect::Mutation, Effect::Read),
        ("for i in a b; do kubectl get pod web; done", Effect::Read, Effect::Read),
        ("kubectl get pods > pods", Effect::Mutation, Effect::Mutation),
        ("kubectl delete pod web; touch it", Effect::Mutation, Effect::Mutation),
        ("kubectl get pods | xargs $X", Effect::Mutation, Effect::Mutation),
        ("systemctl restart web", Effect::Mutation, Effect::Mutation),
        ("cat ~/.ssh/id_rsa", Effect::SensitiveRead, Effect::SensitiveRead),
    ] {
        let (Judgement::Allow { footprint, .. } | Judgement::Ask { footprint, .. }) = judge(command) else {
            panic!("{command} is denied");
        };
        assert_eq!((footprint.effect, footprint.on_machine), (effect, on_machine), "{command}");
    }
}

#[test]
fn what_could_break_the_parser_is_refused_at_once() {
    let shapes: [(&str, &str); 14] = [
        ("(", ""),
        ("{ ", ""),
        ("$(", ""),
        ("${x:-", ""),
        ("$[", ""),
        ("[[ ! ", ""),
        ("[[ a && ", ""),
        ("[[ a||", " ]]"),
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
            assert_eq!(verdict(&judge(&command)), Verdict::Deny, "{open} x {times}");
        }
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn long_commands_of_allowed_shapes_are_judged() {
    for shape in ["echo a | ", "echo a && ", "echo a; "] {
        let command = format!("{}echo a", shape.repeat(1000));
        assert_eq!(verdict(&judge(&command)), Verdict::Allow, "{shape}");
    }
    assert_eq!(verdict(&judge(&"echo a;".repeat(3000))), Verdict::Deny);
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
        if let Some(script) = script(&judge(&command)) {
            let programs = unquoted_programs(script);
            prop_assert!(!programs.is_empty());
            for program in programs {
                prop_assert!(programs::find(&program).is_some(), "{command:?} runs {program:?} by {script:?}");
            }
        }
    }

    /// A command that goes along with another one never makes it look better.
    #[test]
    fn more_commands_are_never_judged_less_strictly(
        first in prop::sample::select(whole_commands()),
        second in prop::sample::select(whole_commands()),
        second_first: bool,
    ) {
        let (a, b) = if second_first { (&second, &first) } else { (&first, &second) };
        let both = verdict(&judge(&format!("{a}\n{b}")));
        prop_assert!(both >= verdict(&judge(a)).max(verdict(&judge(b))), "{a:?} and {b:?}: {both:?}");
    }

    #[test]
    fn any_text_is_judged(text in any::<String>()) {
        let deny = with(BuiltinAllowlist::Extended, &[], &["ls", "kubectl get", "a"]);
        prop_assert!(verdict(&deny.judge(&text, &[], &[])) >= verdict(&judge(&text)));
    }
}

/// Commands of the table that end where their text ends, whatever follows.
fn whole_commands() -> Vec<String> {
    let ends = |command: &String| {
        !command.ends_with('\\')
            && !command.contains("<<")
            && !matches!(label(&judge(command)).1, "unparsed" | "limit")
    };
    cases().map(|(_, command)| command).filter(ends).collect()
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
