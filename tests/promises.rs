//! The table of guarantees: each row names tests that exist.

#![cfg(test)]

use std::{fs, path::Path};

const DOCUMENT: &str = "docs/delivery.md";
/// Folders whose code is not ours.
const OTHERS: [&str; 2] = ["target", ".git"];

/// All Rust code below a folder.
fn code(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !OTHERS.contains(&name) {
            code(&path, text);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// What is in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_guarantee_names_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code_of_all = String::new();
    code(root, &mut code_of_all);
    let document = fs::read_to_string(root.join(DOCUMENT)).unwrap();
    let (_, table) = document.split_once("| when | then | tested by |").unwrap();
    let rows: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        let tests: Vec<_> = quoted(row.rsplit('|').nth(1).unwrap()).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let there =
                [format!("fn {test}("), format!("    {test};\n")].iter().any(|it| code_of_all.contains(it));
            assert!(there, "{test} does not exist: {row}");
        }
    }
}
