use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\n---\nLook at {name}.")
}

#[test]
fn both_formats_are_read_and_everything_else_is_left_alone() {
    let folder = folder(&[
        ("kafka/SKILL.md", &skill("kafka")),
        ("kafka/references/more.md", "more"),
        (".hidden/SKILL.md", "not read"),
        ("README.md", "not read"),
        ("net/dns.md", "# DNS\nResolve."),
        (
            "catalog.json",
            r#"{"catalog": [{"id": "dns.md", "update_date": "2025-01-01", "description": "Names.", "link": "net/dns.md"}]}"#,
        ),
    ]);
    fs::create_dir(folder.path().join(".data")).unwrap();
    fs::create_dir(folder.path().join(".data/redis")).unwrap();
    fs::write(folder.path().join(".data/redis/SKILL.md"), skill("redis")).unwrap();
    symlink(".data/redis", folder.path().join("redis")).unwrap();

    let found = load(folder.path()).unwrap();
    let texts: Vec<_> = found.iter().map(|(id, runbook)| (id.as_str(), runbook.text.as_str())).collect();
    assert_eq!(
        texts,
        [("dns.md", "# DNS\nResolve."), ("kafka", "Look at kafka."), ("redis", "Look at redis.")]
    );
}

#[test]
fn a_folder_that_cannot_be_used_says_why() {
    let big = "x".repeat(MOST_BYTES as usize + 1);
    let list =
        |link: &str| format!(r#"{{"catalog": [{{"id": "a", "description": "d", "link": "{link}"}}]}}"#);
    for (files, why) in [
        (vec![], "no runbook in it"),
        (vec![("a.md", skill("a"))], "no runbook in it"),
        (vec![("a/SKILL.md", "text".into())], "a/SKILL.md: it does not begin with front matter"),
        (vec![("a/SKILL.md", skill("b"))], "its name is `b`"),
        (vec![("a/SKILL.md", big)], "larger than 64 KiB"),
        (vec![("catalog.json", "{".into())], "catalog.json: EOF"),
        (vec![("catalog.json", list("a.md"))], "cannot read"),
        (vec![("catalog.json", list("/etc/passwd"))], "leads to no file in this folder"),
        (vec![("catalog.json", list("../../../../../../etc/passwd"))], "leads to no file in this folder"),
        (
            vec![("catalog.json", list("a.md")), ("a.md", "x".into()), ("a/SKILL.md", skill("a"))],
            "two runbooks are called `a`",
        ),
    ] {
        let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let folder = folder(&files);
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
    let missing = load(Path::new("/no/such/folder")).unwrap_err();
    assert!(missing.to_string().contains("cannot read /no/such/folder"), "{missing}");
}

#[test]
fn there_may_not_be_too_many() {
    let names: Vec<_> = (0..=MOST).map(|at| (format!("r{at}/SKILL.md"), skill(&format!("r{at}")))).collect();
    let files: Vec<_> = names.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert!(matches!(load(folder(&files).path()), Err(RunbookError::TooMany(_))));
}
