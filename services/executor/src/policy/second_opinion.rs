//! Another parser of bash sees the same programs, with the same words, in what is allowed, and none that is not surveyed
//! in what is asked about.

use std::collections::BTreeSet;

use tree_sitter::{Node, Parser, Tree};

use super::{
    Judgement, Policy, parse,
    survey::{self, Invocation},
    tests::cases,
};

/// What the other parser takes for programs, and bash does not.
const KEYWORDS: [&str; 4] = ["", "!", "coproc", "time"];

/// A program and its arguments, without quotes.
type Words = Vec<String>;

fn tree(command: &str) -> Tree {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).unwrap();
    parser.parse(command, None).unwrap()
}

#[test]
fn another_parser_sees_the_same_commands_in_what_is_allowed() {
    let mut compared = 0;
    for (_, command) in cases() {
        if !matches!(Policy::default().judge(&command, &[], &[]), Judgement::Allow { .. }) {
            continue;
        }
        let script = parse::script(&command).unwrap();
        let words = |of: &super::script::Simple| -> Words {
            let arguments = of.arguments.iter().map(super::script::Word::text);
            std::iter::once(of.program.clone()).chain(arguments).map(|word| plain(&word)).collect()
        };
        let ours: BTreeSet<_> = script.commands().map(words).collect();
        let tree = tree(&command);
        let mut theirs = BTreeSet::new();
        commands(tree.root_node(), &command, &mut theirs);
        assert!(!tree.root_node().has_error(), "{command:?} is no bash to the other parser");
        assert_eq!(ours, theirs, "{command:?}");
        compared += 1;
    }
    assert!(compared >= 90, "{compared}");
}

#[test]
fn another_parser_sees_no_program_that_is_not_surveyed() {
    let (mut compared, mut missed) = (0, Vec::new());
    for (_, command) in cases() {
        let Ok(survey) = survey::survey(&command) else { continue };
        let tree = tree(&command);
        if tree.root_node().has_error() {
            continue;
        }
        let name = |of: &Invocation| of.words.first().cloned().flatten().map(|word| plain(&word.text()));
        let names: BTreeSet<_> = survey.invocations.iter().map(name).collect();
        let mut theirs = BTreeSet::new();
        commands(tree.root_node(), &command, &mut theirs);
        let programs = theirs.into_iter().filter_map(|words| words.into_iter().next());
        for program in programs.filter(|program| !KEYWORDS.contains(&program.as_str())) {
            // What is expanded is known to nobody.
            let expands = program.contains(['$', '`', '*', '?', '~']) && names.contains(&None);
            if !expands && !names.contains(&Some(program.clone())) {
                missed.push(format!("{command:?}: {program}"));
            }
        }
        compared += 1;
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(compared >= 200, "{compared}");
}

fn plain(word: &str) -> String {
    word.replace(['\'', '"', '\\', '\n'], "")
}

/// Every command below a node, at any depth.
fn commands(node: Node<'_>, text: &str, found: &mut BTreeSet<Words>) {
    let said = |node: Node<'_>| plain(node.utf8_text(text.as_bytes()).unwrap());
    let mut cursor = node.walk();
    match node.kind() {
        "command" => {
            let name = node.child_by_field_name("name").map(said);
            let arguments = node.children_by_field_name("argument", &mut cursor).map(said);
            found.insert(name.into_iter().chain(arguments).collect());
        }
        // `[` is a program as well.
        "test_command" if node.child(0).is_some_and(|bracket| bracket.kind() == "[") => {
            let words = node.utf8_text(text.as_bytes()).unwrap().split_whitespace();
            found.insert(words.map(plain).collect());
        }
        _ => {}
    }
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        commands(child, text, found);
    }
}
