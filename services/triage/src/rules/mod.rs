//! The rules: each looks at a snapshot and tells what is wrong.
//!
//! A rule is one file with one constant, `RULE`, and one line in the list below. The order is the order of
//! precedence: what an earlier rule explained, a later one does not explain again.

mod crash;
mod pod;

use crate::{finding::Finding, look::Look, snapshot::Snapshot};

/// A rule.
#[derive(Debug)]
pub(crate) struct Rule {
    /// What else it needs to see, given what was seen.
    pub(crate) wants: fn(&Snapshot<'_>) -> Vec<Look>,
    /// What is wrong.
    pub(crate) check: fn(&Snapshot<'_>) -> Vec<Finding>,
}

macro_rules! rules {
    ($($topic:ident: $($rule:ident),+;)+) => {
        $(mod $topic {
            $(pub(super) mod $rule;)+
        })+

        /// All rules, in order of precedence.
        pub(crate) const ALL: &[Rule] = &[$($($topic::$rule::RULE),+),+];
    };
}

rules! {
    k8s: node, pending_claim, image_pull, missing_config, out_of_memory, init_container, probe, crash_loop,
        unschedulable, volume, terminating, failed_job, rollout, service, unexplained;
    host: disk, memory, load, killed, unit;
}

/// For rules that need nothing else.
fn nothing(_: &Snapshot<'_>) -> Vec<Look> {
    Vec::new()
}
