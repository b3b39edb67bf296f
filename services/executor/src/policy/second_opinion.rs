//! Another parser of bash sees the same programs in what is allowed.

use std::collections::BTreeSet;

use tree_sitter::{Node, Parser};

use super::{Judgement, Policy, parse, tests::cases};

#[test]
fn another_parser_sees_the_same_programs_in_what_is_allowed() {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).unwrap();
    let mut compared = 0;
    for (_, command) in cases() {
        if !matches!(Policy::default().judge(&command, &[], &[]), Judgement::Allow { .. }) {
            continue;
        }
        let script = parse::script(&command).unwrap();
        let ours: BTreeSet<_> = script.commands().map(|command| command.program.clone()).collect();
        let tree = parser.parse(&command, None).unwrap();
        let mut theirs = BTreeSet::new();
        names(tree.root_node(), &command, &mut theirs);
        assert!(!tree.root_node().has_error(), "{command:?} is no bash to the other parser");
        assert_eq!(ours, theirs, "{command:?}");
        compared += 1;
    }
    assert!(compared >= 90, "{compared}");
}

fn names(node: Node<'_>, text: &str, found: &mut BTreeSet<String>) {
    let name = match node.kind() {
        "command_name" => Some(node),
        // `[` is a program as well.
        "test_command" => node.child(0),
        _ => None,
    };
    if let Some(name) = name {
        found.insert(name.utf8_text(text.as_bytes()).unwrap().replace(['\'', '"', '\\'], ""));
    }
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        names(child, text, found);
    }
}
