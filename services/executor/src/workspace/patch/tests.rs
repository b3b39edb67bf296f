//! The grammar, as a table.

use super::{parse::Hunk, *};

fn add(path: &str, lines: &[&str]) -> Change {
    Change::Add { path: path.to_owned(), lines: lines.iter().map(|line| (*line).to_owned()).collect() }
}

fn hunk(old: &[&str], new: &[&str]) -> Hunk {
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    Hunk { old: own(old), new: own(new) }
}

fn update(path: &str, hunks: &[Hunk]) -> Change {
    Change::Update { path: path.to_owned(), hunks: hunks.to_vec() }
}

#[test]
fn what_is_a_patch_is_read_as_it_is_meant() {
    let delete = |path: &str| Change::Delete { path: path.to_owned() };
    for (text, changes) in [
        (
            "*** Begin Patch\n*** Add File: a b.txt\n+one\n+\n++two\n*** End Patch",
            vec![add("a b.txt", &["one", "", "+two"])],
        ),
        ("\n*** Begin Patch  \n*** Delete File: x\n*** End Patch\n\n", vec![delete("x")]),
        ("*** Delete File:x\n\n*** Delete File: y", vec![delete("x"), delete("y")]),
        ("*** Add File: x\none\n+two\n", vec![add("x", &["one", "+two"])]),
        ("*** Add File: x\n*** Add File: y\n+1", vec![add("x", &[]), add("y", &["1"])]),
        (
            "*** Update File: x\n@@ fn main\n a\n-b\n+c\n\n@@\n+top",
            vec![update("x", &[hunk(&["a", "b", ""], &["a", "c", ""]), hunk(&[], &["top"])])],
        ),
        ("*** Update File: x\n@@\n--- \n+é", vec![update("x", &[hunk(&["-- "], &["é"])])]),
    ] {
        assert_eq!(parse(text), Ok(changes), "{text}");
    }
}

#[test]
fn what_is_no_patch_says_where_it_is_wrong() {
    for (text, error) in [
        ("", Malformed::Empty),
        ("*** Begin Patch\n*** End Patch", Malformed::Empty),
        ("*** Begin Patch\n*** Delete File: x", Malformed::Open),
        ("*** Begin Patch", Malformed::Open),
        ("hello", Malformed::Stray(1)),
        ("*** Move File: x", Malformed::Stray(1)),
        ("*** Add File:  ", Malformed::Nameless(1)),
        ("*** Update File: x\n-a\n+b", Malformed::NoHunk(2)),
        ("*** Update File: x\n@@\n-a\nb", Malformed::Line(4)),
        ("*** Update File: x\n@@\n-a\nüb", Malformed::Line(4)),
        ("*** Update File: x\n@@\n a", Malformed::NoChange("x".to_owned())),
        ("*** Update File: x", Malformed::NoChange("x".to_owned())),
        ("*** Delete File: x\n-a", Malformed::AfterDelete { path: "x".to_owned(), line: 2 }),
    ] {
        assert_eq!(parse(text), Err(error), "{text}");
    }
}

#[test]
fn a_hunk_takes_the_first_place_that_is_the_same_to_the_letter() {
    for (text, hunk, after) in [
        ("a\nb\na\nb\n", hunk(&["a", "b"], &["c"]), Some("c\na\nb\n")),
        ("a\nb", hunk(&["b"], &["c", "d"]), Some("a\nc\nd")),
        ("a\nb\n", hunk(&["a", "b"], &[]), Some("")),
        ("", hunk(&[], &["a"]), Some("a\n")),
        ("b\n", hunk(&[], &["a"]), Some("a\nb\n")),
        ("a\n\n", hunk(&["a", ""], &["x"]), Some("x\n")),
        ("a \n", hunk(&["a"], &["b"]), None),
        ("a\n", hunk(&["a", ""], &["b"]), None),
        ("a\r\n", hunk(&["a"], &["b"]), None),
        ("ab\n", hunk(&["a"], &["b"]), None),
        ("a\n", hunk(&["a", "b", "c"], &["d"]), None),
    ] {
        assert_eq!(hunk.apply(text).as_deref(), after, "{text:?} {hunk:?}");
    }
}
