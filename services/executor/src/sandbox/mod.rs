//! What a command may see, reach and use: layers of the kernel around each one, applied by its launcher.
//!
//! * `level`: the layers, and how much they come to
//! * `setting`, `probe`: what the operator wants, and what this machine can do
//! * `confinement`: what one command gets of it; `enter`: the order in which it is applied
//! * `namespaces`, `gate`, `mounts`, `root`, `hidden`, `landlock`, `seccomp`, `rlimits`, `privileges`, `cgroup`:
//!   one mechanism each

mod cgroup;
mod confinement;
mod enter;
mod gate;
mod hidden;
mod landlock;
mod level;
mod mounts;
mod namespaces;
mod privileges;
mod probe;
mod rlimits;
mod root;
mod seccomp;
mod setting;

pub(crate) use cgroup::Group;
pub(crate) use confinement::{Access, Confinement, Network, Placed, Variable, View};
pub(crate) use enter::{Place, Refused, enter, join, open_gate, separate};
pub(crate) use gate::receive;
pub use level::Level;
pub(crate) use level::{Layer, Layers};
pub use probe::Unavailable;
pub(crate) use probe::{Prepared, Sandbox};
pub use setting::{Minimum, SandboxError, Setting};
