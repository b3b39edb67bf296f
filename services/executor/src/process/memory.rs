//! Whether the kernel had to end processes because memory ran out.

use std::fs;

use super::Exit;

/// How often the kernel has ended a process for memory since this machine started. `None` where it does not say.
pub(super) fn kills() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Whether programs that ended like this, while the kernel ended processes for memory, were among these.
pub(super) fn explains(exits: &[Exit], kills_before: Option<u64>) -> bool {
    exits.iter().any(|exit| matches!(exit, Exit::Signalled(9) | Exit::Exited(137)))
        && kills_before.zip(kills()).is_some_and(|(before, now)| now > before)
}
