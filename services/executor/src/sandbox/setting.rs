//! What the operator wants of the sandbox.

use std::{path::PathBuf, str::FromStr};

use super::{Layer, Layers, Level, cgroup::Limits};

/// The least that is good enough to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Minimum {
    /// No sandbox.
    Off,
    /// As much as the machine has and does not distort what commands see of it.
    #[default]
    Auto,
    /// This or better, for every command of a model.
    AtLeast(Level),
}

/// Settings of the sandbox.
#[derive(Clone, Debug)]
pub struct Setting {
    /// `SLEUTH_SANDBOX`: `auto` (default), `off`, or the level below which the executor does not start: `pod`,
    /// `full-noproc` or `full`.
    pub minimum: Minimum,
    /// Layers without which the executor does not start. `SLEUTH_SANDBOX_REQUIRE`, separated by commas.
    pub(super) required: Layers,
    /// Layers that are left out. `SLEUTH_SANDBOX_WITHOUT`, likewise.
    pub(super) without: Layers,
    /// More places that commands do not see. `SLEUTH_SANDBOX_HIDE`, separated by colons.
    pub hidden: Vec<PathBuf>,
    /// Whether bash commands see the machine (default), or only programs. `SLEUTH_SANDBOX_VIEW`: `host`, `private`.
    pub private_view: bool,
    /// A directory of the unified control group hierarchy that was delegated to the executor; by default groups are
    /// made in its own. `SLEUTH_SANDBOX_CGROUP`.
    pub cgroup: Option<PathBuf>,
    pub(super) limits: Limits,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{name} must be {wanted}, and is {value:?}")]
pub struct SandboxError {
    name: &'static str,
    wanted: String,
    value: String,
}

impl Setting {
    /// Reads the settings from variables, of which `get` knows the values.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, SandboxError> {
        let choice = |name: &'static str, values: &[&str]| {
            let value = get(name).unwrap_or_else(|| values[0].to_owned());
            values.iter().position(|own| *own == value).ok_or_else(|| SandboxError {
                name,
                wanted: format!("one of {}", values.join(", ")),
                value,
            })
        };
        let minimum = match choice("SLEUTH_SANDBOX", &["auto", "off", "pod", "full-noproc", "full"])? {
            0 => Minimum::Auto,
            1 => Minimum::Off,
            2 => Minimum::AtLeast(Level::Pod),
            3 => Minimum::AtLeast(Level::FullNoproc),
            _ => Minimum::AtLeast(Level::Full),
        };
        let paths =
            |name| get(name).map(|text| std::env::split_paths(&text).collect::<Vec<_>>()).unwrap_or_default();
        Ok(Self {
            minimum,
            required: layers(get, "SLEUTH_SANDBOX_REQUIRE")?,
            without: layers(get, "SLEUTH_SANDBOX_WITHOUT")?,
            // The other is of the services beside an executor, with the key that signs permissions.
            hidden: [paths("SLEUTH_SANDBOX_HIDE"), paths("SLEUTH_DATA_DIR")].concat(),
            private_view: choice("SLEUTH_SANDBOX_VIEW", &["host", "private"])? == 1,
            cgroup: get("SLEUTH_SANDBOX_CGROUP").map(PathBuf::from),
            limits: Limits {
                memory: number(get, "SLEUTH_SANDBOX_MEMORY_MB", 2048)? << 20,
                processes: number(get, "SLEUTH_SANDBOX_PROCESSES", 512)?,
                cpus: number(get, "SLEUTH_SANDBOX_CPUS", 2)?,
            },
        })
    }
}

fn number(
    get: &dyn Fn(&str) -> Option<String>,
    name: &'static str,
    default: u64,
) -> Result<u64, SandboxError> {
    let Some(value) = get(name) else { return Ok(default) };
    match value.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err(SandboxError { name, wanted: "a number from 1 to 1000000".to_owned(), value }),
    }
}

fn layers(get: &dyn Fn(&str) -> Option<String>, name: &'static str) -> Result<Layers, SandboxError> {
    let text = get(name).unwrap_or_default();
    let names = text.split(',').map(str::trim).filter(|own| !own.is_empty());
    let read = |own: &str| {
        Layer::from_str(own).map_err(|()| SandboxError {
            name,
            wanted: format!("some of {}", Layer::ALL.map(Layer::name).join(",")),
            value: own.to_owned(),
        })
    };
    names.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_named() {
        for (name, value) in [
            ("SLEUTH_SANDBOX", "most"),
            ("SLEUTH_SANDBOX_REQUIRE", "landlock,sechomp"),
            ("SLEUTH_SANDBOX_VIEW", "all"),
            ("SLEUTH_SANDBOX_MEMORY_MB", "0"),
        ] {
            let error = Setting::from_env(&|own| (own == name).then(|| value.to_owned())).unwrap_err();
            assert!(error.to_string().starts_with(name), "{error}");
        }
    }

    #[test]
    fn layers_are_listed_by_name() {
        let get = |name: &str| (name == "SLEUTH_SANDBOX_REQUIRE").then(|| "landlock, seccomp".to_owned());
        let setting = Setting::from_env(&get).unwrap();
        assert_eq!(setting.required, Layers::from([Layer::Landlock, Layer::Seccomp]));
        assert_eq!(setting.minimum, Minimum::Auto);
    }
}
