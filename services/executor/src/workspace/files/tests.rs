//! Changes, guarded; and ways out, closed.

use std::{fs, os::unix::fs::symlink};

use super::*;
use crate::workspace::patch;

const ALL: Range = Range { offset: 0, limit: 2000 };

/// A workspace with a neighbour that nobody may reach.
struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    files: Files,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("inside"), folder.path().join("outside"));
        for path in [&root, &outside] {
            fs::create_dir(path).unwrap();
        }
        fs::write(outside.join("secret"), "SECRET\n").unwrap();
        let files = Files::new(&root, 1 << 20).unwrap();
        Self { _folder: folder, root, outside, files }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.root.join(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }

    fn read(&self, path: &str) -> Result<View, Refused> {
        self.files.read(path, ALL)
    }

    fn patch(&self, text: &str) -> Result<String, String> {
        let mut last = String::new();
        for change in patch::parse(text).unwrap() {
            last = self.files.change(&change).map_err(|refused| refused.to_string())?.line;
        }
        Ok(last)
    }
}

#[test]
fn nothing_outside_can_be_read_or_changed() {
    let place = Place::new();
    symlink(&place.outside, place.root.join("away")).unwrap();
    symlink("../outside/secret", place.root.join("link")).unwrap();
    symlink("/proc/self/environ", place.root.join("environ")).unwrap();
    let absolute = place.outside.join("secret").display().to_string();
    let roundabout = place.root.join("../outside/secret").display().to_string();
    for path in [
        "../outside/secret",
        "away/secret",
        "link",
        "environ",
        "./x/../../outside/secret",
        &absolute,
        &roundabout,
        "/etc/passwd",
    ] {
        assert!(place.read(path).is_err(), "{path}");
        for patch in [
            format!("*** Delete File: {path}"),
            format!("*** Update File: {path}\n@@\n-SECRET\n+mine"),
            format!("*** Add File: {path}\n+mine"),
        ] {
            assert!(place.patch(&patch).is_err(), "{patch}");
        }
    }
    for path in ["../new", "away/new", &place.outside.join("new").display().to_string()] {
        assert!(place.patch(&format!("*** Add File: {path}\n+mine")).is_err(), "{path}");
    }
    assert_eq!(fs::read_dir(&place.outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(place.outside.join("secret")).unwrap(), "SECRET\n");
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let place = Place::new();
    fs::create_dir(place.root.join("folder")).unwrap();
    let pipe = place.root.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    for path in ["folder", "pipe"] {
        assert!(matches!(place.read(path), Err(Refused::NoFile(_))), "{path}");
    }
    assert!(matches!(place.read("nowhere"), Err(Refused::Missing(_))));
    assert!(matches!(place.read(""), Err(Refused::Outside(_))));
}

#[test]
fn a_file_is_changed_only_as_it_was_read() {
    let place = Place::new();
    place.write("a", "one\ntwo\n");
    let update = "*** Update File: a\n@@\n-one\n+1";
    assert_eq!(place.patch(update).unwrap_err(), "a must be read before it is changed");
    place.read("a").unwrap();
    place.write("a", "one\ntwo\nthree\n");
    assert_eq!(place.patch(update).unwrap_err(), "a has changed since it was read: read it again");
    place.read("./a").unwrap();
    assert_eq!(place.patch(update).unwrap(), "Updated a");
    // What was changed here counts as read.
    assert_eq!(place.patch("*** Update File: a\n@@\n two\n-three\n+3").unwrap(), "Updated a");
    assert_eq!(place.text("a"), "1\ntwo\n3\n");
    assert_eq!(
        place.patch("*** Update File: a\n@@\n-four\n+4").unwrap_err(),
        "the lines of hunk 1 do not stand in a"
    );
    assert_eq!(place.patch("*** Delete File: a").unwrap(), "Deleted a");
    assert_eq!(place.patch("*** Delete File: a").unwrap_err(), "a does not exist");
}

#[test]
fn a_new_file_brings_its_directories_and_replaces_nothing() {
    let place = Place::new();
    assert_eq!(
        place.patch("*** Add File: x/y/z\n+1\n*** Update File: x/y/z\n@@\n-1\n+2").unwrap(),
        "Updated x/y/z"
    );
    assert_eq!(place.text("x/y/z"), "2\n");
    assert_eq!(place.patch("*** Add File: x/y/z\n+1").unwrap_err(), "x/y/z exists already");
    let absolute = place.root.join("x/new").display().to_string();
    assert_eq!(place.patch(&format!("*** Add File: {absolute}")).unwrap(), format!("Added {absolute}"));
    assert_eq!(fs::read_dir(place.root.join("x/y")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_link_within_stays_and_what_it_leads_to_changes() {
    let place = Place::new();
    place.write("target", "1\n");
    symlink("target", place.root.join("link")).unwrap();
    place.read("link").unwrap();
    assert_eq!(place.patch("*** Update File: link\n@@\n-1\n+2").unwrap(), "Updated link");
    assert!(place.root.join("link").is_symlink());
    assert_eq!(place.text("target"), "2\n");
}

#[test]
fn a_full_workspace_takes_nothing_more() {
    let place = Place::new();
    place.write("big", &"x".repeat(2 << 20));
    assert!(place.patch("*** Add File: a\n+1").unwrap_err().starts_with("the workspace holds more than"));
    place.read("big").unwrap();
    assert_eq!(place.patch("*** Delete File: big").unwrap(), "Deleted big");
    assert_eq!(place.patch("*** Add File: a\n+1").unwrap(), "Added a");
}
