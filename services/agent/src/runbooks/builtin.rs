//! The runbooks that come with the program.

use super::{Runbook, text};

macro_rules! files {
    ($($name:literal)*) => { [$(include_str!(concat!("../../runbooks/", $name, "/SKILL.md"))),*] };
}

const FILES: [&str; 11] = files![
    "certificate-expiry"
    "crash-loop"
    "dns-failure"
    "failed-rollout"
    "high-latency"
    "image-pull"
    "node-not-ready"
    "out-of-memory"
    "pending-pod"
    "service-without-endpoints"
    "storage"
];

pub(super) fn all() -> impl Iterator<Item = (String, Runbook)> {
    // That none is malformed, and none left out, is tested.
    FILES.into_iter().filter_map(|file| text::parse(file).ok())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Runbooks, folder};

    #[test]
    fn all_that_are_there_are_built_in() {
        let folder = folder::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks")).unwrap();
        let builtin = Runbooks::default();
        assert_eq!(*builtin.0, folder.into_iter().collect());
        for (id, runbook) in builtin.iter() {
            assert!(runbook.description.len() <= 200, "{id}: {}", runbook.description);
            assert!(runbook.text.len() <= 4000, "{id}: {} bytes", runbook.text.len());
        }
    }
}
