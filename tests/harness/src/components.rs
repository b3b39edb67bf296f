//! Real components that a machine may lack. A test that needs one asks here first.
//!
//! What is missing is left out and said: on standard error, and in the file named by `SLEUTH_TEST_SKIPS`, which
//! the test command prints at its end. Components listed in `SLEUTH_TEST_REQUIRE` (separated by commas) must be
//! there: without them the test fails.

use std::{io::Write as _, path::PathBuf};

/// Whether a component is there. Panics if it is required and is not.
#[expect(clippy::panic, clippy::print_stderr, reason = "this is how a test says that it cannot run")]
pub fn has(component: &str, is_there: bool) -> bool {
    if is_there {
        return true;
    }
    let required = std::env::var("SLEUTH_TEST_REQUIRE").unwrap_or_default();
    if required.split(',').any(|required| required.trim() == component) {
        panic!("{component} is missing, and SLEUTH_TEST_REQUIRE asks for it");
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("{test}: left out, because {component} is missing");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("SLEUTH_TEST_SKIPS") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        // The line is on standard error too.
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
    false
}

/// Whether a program is on the path.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    has(name, std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// The read-only kubeconfig of the seeded test cluster, if there is one (`tests/run` starts it).
pub fn cluster() -> Option<PathBuf> {
    let path = std::env::var_os("SLEUTH_TEST_KUBECONFIG").map(PathBuf::from).filter(|path| path.is_file());
    has("cluster", path.is_some()).then_some(path).flatten()
}
