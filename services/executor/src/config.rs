//! What an executor is told when it starts.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, str::FromStr, time::Duration};

use grants::KeyRing;

use crate::{
    alerts::Alerts,
    cluster,
    policy::{BuiltinAllowlist, Lifts, Prefix, Rules},
    repl,
    sandbox::{SandboxError, Setting},
    source::Source,
    workspace,
};

/// Settings of an executor. Every limit has a default.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program that becomes a launcher when its first argument is [`crate::launcher::ARG`]. Default: the
    /// running program.
    pub launcher: PathBuf,
    /// bash, as a name or a path. Default `bash`.
    pub bash: String,
    /// kubectl, as a name or a path. Default `kubectl`. `SLEUTH_KUBECTL`.
    pub kubectl: String,
    /// jq, as a name or a path. Default `jq`. `SLEUTH_JQ`.
    pub jq: String,
    /// The whole environment of the commands. Default: of the executor's own, what names places and languages.
    /// `SLEUTH_EXECUTOR_PASS_ENV` names more variables to pass on, separated by commas.
    pub environment: Vec<(OsString, OsString)>,
    /// What the operator's own programs, such as MCP servers, get beside it. Default: what leads them to clusters.
    pub operator_environment: Vec<(OsString, OsString)>,
    /// How clusters are reached. Default: by `KUBECONFIG`, by `~/.kube/config`, or as the pod's service account;
    /// values of Secrets are masked, unless `SLEUTH_KUBERNETES_SECRETS` is `show`;
    /// `SLEUTH_KUBERNETES_IMPERSONATE=principal` asks API servers in the name of the caller.
    pub kubernetes: cluster::Settings,
    /// Bytes kept of each stream of a command, half of them from its end. Default 1 MiB.
    /// `SLEUTH_EXECUTOR_OUTPUT_BYTES`.
    pub output_bytes: usize,
    /// Time for a bash command that asks for none. Default 30 s. `SLEUTH_EXECUTOR_BASH_TIMEOUT`, in seconds.
    pub bash_timeout: Duration,
    /// Time for each use of kubectl. Default 60 s. `SLEUTH_EXECUTOR_KUBECTL_TIMEOUT`, in seconds.
    pub kubectl_timeout: Duration,
    /// The longest time that a command may ask for. Default 600 s. `SLEUTH_EXECUTOR_LONGEST_TIMEOUT`, in seconds.
    pub longest_timeout: Duration,
    /// The bash programs that run unasked. Default `extended`. `SLEUTH_BASH_ALLOWLIST`: `none`, `core` or `extended`.
    pub bash_allowlist: BuiltinAllowlist,
    /// Prefixes of bash commands that run unasked as well. Default: none. `SLEUTH_BASH_ALLOW`, separated by commas
    /// or newlines.
    pub bash_allow: Vec<String>,
    /// Prefixes of bash commands that never run. Default: none. `SLEUTH_BASH_DENY`, likewise.
    pub bash_deny: Vec<String>,
    /// How long calls may go on once the executor was asked to end. Default 20 s. `SLEUTH_EXECUTOR_DRAIN_TIME`.
    pub drain_time: Duration,
    /// Executions that run at the same time. Default 64. `SLEUTH_EXECUTOR_CONCURRENCY`.
    pub concurrency: usize,
    /// Executions that wait for a place; one more is refused. Default 256. `SLEUTH_EXECUTOR_QUEUE`.
    pub queue: usize,
    /// How long an execution runs on that nobody reads. Default 30 s. `SLEUTH_EXECUTOR_ORPHAN_GRACE`, in seconds.
    pub orphan_grace: Duration,
    /// How long an execution that has ended can be attached to. Default 5 min.
    pub kept_for: Duration,
    /// How many such executions are kept. Default 256.
    pub kept_executions: usize,
    /// How many bytes of their events are kept. Default 64 MiB.
    pub kept_bytes: usize,
    /// A file with more toolsets and MCP servers. None by default. `SLEUTH_TOOLSETS`.
    pub toolsets: Option<PathBuf>,
    /// How often their prerequisites are checked again. Default 300 s. `SLEUTH_EXECUTOR_TOOLSET_REFRESH`, in seconds.
    pub toolset_refresh: Duration,
    /// Where alerts are known, and metrics. None by default. `PROMETHEUS_URL` and `ALERTMANAGER_URL`, each with its
    /// `_AUTH_HEADER` if it wants one.
    pub alerts: AlertSources,
    /// A file with rules for secrets in output. None by default. `SLEUTH_REDACT`.
    pub redact: Option<PathBuf>,
    /// Keys of those whose permissions count. Default: none. `SLEUTH_GRANT_KEYS`, separated by commas.
    pub grant_keys: KeyRing,
    /// What a permission of a person may let run that the policy asks about. Default: all kinds. `SLEUTH_GRANT_LIFTS`:
    /// `none`, or any of `read`, `sensitive_read` and `mutation`, separated by commas.
    pub lifts: Lifts,
    /// The cluster as whom the executor joins an agent. Default: none.
    pub cluster: String,
    /// Where it is noted which calls were begun that may change something. Default: below the user's state folder.
    /// `SLEUTH_EXECUTOR_STATE`.
    pub state: PathBuf,
    /// Bytes that the files of one session may take. Default 256 MiB. `SLEUTH_WORKSPACE_BYTES`.
    pub workspace_bytes: u64,
    /// How long files of a session are kept that nobody uses. Default 3600 s. `SLEUTH_WORKSPACE_IDLE`, in seconds.
    pub workspace_idle: Duration,
    /// How long code of a model may work in one evaluation, without what it waits for. Default 30 s.
    /// `SLEUTH_REPL_TIME`, in seconds.
    pub repl_time: Duration,
    /// Bytes of memory of its interpreter. Default 384 MiB. `SLEUTH_REPL_MEMORY`.
    pub repl_memory: usize,
    /// How long an execution waits for a place. Default 60 s. `SLEUTH_EXECUTOR_QUEUE_TIME`, in seconds.
    pub queue_time: Duration,
    /// How long it may take until the programs of a command can begin. Default 20 s. `SLEUTH_EXECUTOR_START_TIME`, in
    /// seconds.
    pub start_time: Duration,
    /// How long a command may write nothing. Default 300 s. `SLEUTH_EXECUTOR_IDLE_TIMEOUT`, in seconds.
    pub idle_timeout: Duration,
    /// Bytes that an execution may write in all. Default 1 GiB. `SLEUTH_EXECUTOR_OUTPUT_LIMIT`.
    pub output_limit: u64,
    /// What commands may see, reach and use.
    pub sandbox: Setting,
    /// What its operator calls it, such as `cluster=prod`. Default: nothing. `SLEUTH_EXECUTOR_LABELS`, separated by
    /// commas.
    pub labels: BTreeMap<String, String>,
    /// How often an execution says that it still runs. Default 5 s.
    pub heartbeat: Duration,
}

/// Where alerts are known.
#[derive(Clone, Debug, Default)]
pub struct AlertSources(pub(crate) Option<Alerts>);

impl AlertSources {
    fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let source = |name, header: &str| {
            let Some(address) = get(name).filter(|address| !address.is_empty()) else { return Ok(None) };
            let header = get(header).filter(|header| !header.is_empty());
            Source::new(&address, header.as_deref()).map(Some).map_err(|wanted| {
                // The value may hold a password.
                ConfigError::Own { name, wanted, value: "something else".to_owned() }
            })
        };
        let prometheus = source("PROMETHEUS_URL", "PROMETHEUS_AUTH_HEADER")?;
        let alertmanager = source("ALERTMANAGER_URL", "ALERTMANAGER_AUTH_HEADER")?;
        Ok(Self(Alerts::new(prometheus, alertmanager)))
    }
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// One of the executor's own.
    #[error("{name} must be {wanted}, and is {value:?}")]
    Own {
        /// The variable.
        name: &'static str,
        /// What it must be.
        wanted: &'static str,
        /// What it is.
        value: String,
    },
    /// One of the sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// Variables that commands get. None of them holds a secret.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LC_COLLATE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "TZ",
];
/// Variables that lead to clusters. Commands reach these through the executor; the operator's programs, themselves.
const CLUSTER: &[&str] =
    &["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS"];
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Config {
    /// Reads the settings from variables, of which `get` knows the values.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let seconds = |name, default| number(get, name, default).map(Duration::from_secs);
        Ok(Self {
            launcher: PathBuf::from("/proc/self/exe"),
            bash: "bash".to_owned(),
            kubectl: get("SLEUTH_KUBECTL").unwrap_or_else(|| "kubectl".to_owned()),
            jq: get("SLEUTH_JQ").unwrap_or_else(|| "jq".to_owned()),
            environment: environment(get),
            operator_environment: operator_environment(get),
            kubernetes: kubernetes(get)?,
            output_bytes: number(get, "SLEUTH_EXECUTOR_OUTPUT_BYTES", 1 << 20)?,
            bash_timeout: seconds("SLEUTH_EXECUTOR_BASH_TIMEOUT", 30)?,
            kubectl_timeout: seconds("SLEUTH_EXECUTOR_KUBECTL_TIMEOUT", 60)?,
            longest_timeout: seconds("SLEUTH_EXECUTOR_LONGEST_TIMEOUT", 600)?,
            bash_allowlist: allowlist(get)?,
            bash_allow: prefixes(get, "SLEUTH_BASH_ALLOW"),
            bash_deny: prefixes(get, "SLEUTH_BASH_DENY"),
            concurrency: number(get, "SLEUTH_EXECUTOR_CONCURRENCY", 64)?,
            queue: number(get, "SLEUTH_EXECUTOR_QUEUE", 256)?,
            orphan_grace: seconds("SLEUTH_EXECUTOR_ORPHAN_GRACE", 30)?,
            kept_for: Duration::from_secs(300),
            kept_executions: 256,
            kept_bytes: 64 << 20,
            toolsets: get("SLEUTH_TOOLSETS").filter(|path| !path.is_empty()).map(PathBuf::from),
            toolset_refresh: seconds("SLEUTH_EXECUTOR_TOOLSET_REFRESH", 300)?,
            alerts: AlertSources::from_env(get)?,
            redact: get("SLEUTH_REDACT").filter(|path| !path.is_empty()).map(PathBuf::from),
            grant_keys: grant_keys(get)?,
            lifts: lifts(get)?,
            cluster: String::new(),
            state: state(get),
            workspace_bytes: number(get, "SLEUTH_WORKSPACE_BYTES", 256 << 20)?,
            workspace_idle: seconds("SLEUTH_WORKSPACE_IDLE", 3600)?,
            repl_time: seconds("SLEUTH_REPL_TIME", 30)?,
            repl_memory: number(get, "SLEUTH_REPL_MEMORY", 384 << 20)?,
            drain_time: seconds("SLEUTH_EXECUTOR_DRAIN_TIME", 20)?,
            queue_time: seconds("SLEUTH_EXECUTOR_QUEUE_TIME", 60)?,
            start_time: seconds("SLEUTH_EXECUTOR_START_TIME", 20)?,
            idle_timeout: seconds("SLEUTH_EXECUTOR_IDLE_TIMEOUT", 300)?,
            output_limit: number(get, "SLEUTH_EXECUTOR_OUTPUT_LIMIT", 1 << 30)?,
            sandbox: Setting::from_env(get)?,
            labels: labels(get)?,
            heartbeat: Duration::from_secs(5),
        })
    }

    /// What the policy is told by the operator.
    pub(crate) fn rules(&self) -> Rules {
        let read = |texts: &[String]| texts.iter().filter_map(|text| Prefix::new(text)).collect();
        Rules { builtin: self.bash_allowlist, allow: read(&self.bash_allow), deny: read(&self.bash_deny) }
    }

    /// The settings of the sandbox, with what this configuration adds to what is hidden.
    pub(crate) fn sandbox(&self) -> Setting {
        let mut setting = self.sandbox.clone();
        setting.hidden.extend(self.kubernetes.source.secrets());
        setting.hidden.extend(self.toolsets.iter().chain(&self.redact).chain([&self.state]).cloned());
        setting
    }

    /// What an evaluation may take.
    pub(crate) fn repl(&self) -> repl::Limits {
        /// More than the fastest code takes.
        const KILOSTEPS_A_SECOND: u64 = 1_000_000;
        let work_ms = u64::try_from(self.repl_time.as_millis()).unwrap_or(u64::MAX);
        let kilosteps = self.repl_time.as_secs().max(1).saturating_mul(KILOSTEPS_A_SECOND);
        repl::Limits { memory: self.repl_memory, work_ms, kilosteps }
    }

    /// What the files of sessions may take.
    pub(crate) fn workspaces(&self) -> workspace::Limits {
        /// More sessions than executions could run for.
        const MOST: usize = 1024;
        workspace::Limits { bytes: self.workspace_bytes, most: MOST, idle: self.workspace_idle }
    }
}

fn number<T: FromStr>(
    get: &dyn Fn(&str) -> Option<String>,
    name: &'static str,
    default: T,
) -> Result<T, ConfigError> {
    match get(name) {
        None => Ok(default),
        Some(value) => match value.parse() {
            Ok(number) => Ok(number),
            Err(_) => Err(ConfigError::Own { name, wanted: "a whole number", value }),
        },
    }
}

fn allowlist(get: &dyn Fn(&str) -> Option<String>) -> Result<BuiltinAllowlist, ConfigError> {
    const NAME: &str = "SLEUTH_BASH_ALLOWLIST";
    let Some(value) = get(NAME) else { return Ok(BuiltinAllowlist::default()) };
    value.parse().map_err(|()| ConfigError::Own { name: NAME, wanted: "`none`, `core` or `extended`", value })
}

fn lifts(get: &dyn Fn(&str) -> Option<String>) -> Result<Lifts, ConfigError> {
    const NAME: &str = "SLEUTH_GRANT_LIFTS";
    const WANTED: &str = "`none`, or some of `read`, `sensitive_read` and `mutation`, separated by commas";
    let Some(value) = get(NAME).filter(|value| !value.is_empty()) else { return Ok(Lifts::default()) };
    value.parse().map_err(|()| ConfigError::Own { name: NAME, wanted: WANTED, value })
}

fn grant_keys(get: &dyn Fn(&str) -> Option<String>) -> Result<KeyRing, ConfigError> {
    const NAME: &str = "SLEUTH_GRANT_KEYS";
    KeyRing::parse(&get(NAME).unwrap_or_default()).map_err(|_| ConfigError::Own {
        name: NAME,
        wanted: "public keys in base64, separated by commas",
        // It might be a private one.
        value: "something else".to_owned(),
    })
}

fn state(get: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let folder = |name: &str| get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    folder("SLEUTH_EXECUTOR_STATE").unwrap_or_else(|| {
        let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
        state.unwrap_or_else(std::env::temp_dir).join("sleuth/executor")
    })
}

fn prefixes(get: &dyn Fn(&str) -> Option<String>, name: &str) -> Vec<String> {
    let text = get(name).unwrap_or_default();
    let prefixes = text.split([',', '\n']).map(str::trim).filter(|prefix| !prefix.is_empty());
    prefixes.map(str::to_owned).collect()
}

fn labels(get: &dyn Fn(&str) -> Option<String>) -> Result<BTreeMap<String, String>, ConfigError> {
    const NAME: &str = "SLEUTH_EXECUTOR_LABELS";
    let pairs = prefixes(get, NAME).into_iter().map(|pair| match pair.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => Err(ConfigError::Own { name: NAME, wanted: "pairs KEY=VALUE", value: pair }),
    });
    pairs.collect()
}

fn environment(get: &dyn Fn(&str) -> Option<String>) -> Vec<(OsString, OsString)> {
    let more = get("SLEUTH_EXECUTOR_PASS_ENV").unwrap_or_default();
    let names = PASSED.iter().copied().chain(more.split(',').map(str::trim).filter(|name| !name.is_empty()));
    let mut environment: Vec<(OsString, OsString)> =
        names.filter_map(|name| Some((name.into(), get(name)?.into()))).collect();
    if get("PATH").is_none() {
        environment.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    // Preferences could give words of a command another meaning than the one that was judged.
    environment.push(("KUBERC".into(), "off".into()));
    environment
}

fn operator_environment(get: &dyn Fn(&str) -> Option<String>) -> Vec<(OsString, OsString)> {
    let kubeconfig = get("KUBECONFIG").and_then(|paths| absolute(&paths));
    let own = kubeconfig.map(|paths| ("KUBECONFIG".into(), paths));
    let cluster = CLUSTER.iter().filter_map(|name| Some((name.into(), get(name)?.into())));
    own.into_iter().chain(cluster).collect()
}

fn kubernetes(get: &dyn Fn(&str) -> Option<String>) -> Result<cluster::Settings, ConfigError> {
    Ok(cluster::Settings {
        source: cluster::Source::from_env(get),
        secrets: word(get, "SLEUTH_KUBERNETES_SECRETS", "`mask` or `show`")?,
        impersonate: word(get, "SLEUTH_KUBERNETES_IMPERSONATE", "`none` or `principal`")?,
    })
}

fn word<T: FromStr + Default>(
    get: &dyn Fn(&str) -> Option<String>,
    name: &'static str,
    wanted: &'static str,
) -> Result<T, ConfigError> {
    match get(name).filter(|value| !value.is_empty()) {
        None => Ok(T::default()),
        Some(value) => value.parse().map_err(|_| ConfigError::Own { name, wanted, value }),
    }
}

/// Programs run elsewhere than the executor, so that relative paths would miss.
fn absolute(paths: &str) -> Option<OsString> {
    let paths = std::env::split_paths(paths).filter_map(|path| std::path::absolute(path).ok());
    std::env::join_paths(paths).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_reach_commands() {
        let get = |name: &str| match name {
            "SLEUTH_EXECUTOR_PASS_ENV" => Some("AWS_PROFILE, MISSING".to_owned()),
            "KUBECONFIG" => Some("relative:/absolute".to_owned()),
            "OPENAI_API_KEY" | "AWS_PROFILE" | "HOME" => Some("value".to_owned()),
            _ => None,
        };
        let config = Config::from_env(&get).unwrap();
        let names: Vec<_> = config.environment.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(names, ["HOME", "AWS_PROFILE", "PATH", "KUBERC"]);
        let [(name, paths)] = &config.operator_environment[..] else { panic!("{config:?}") };
        assert_eq!(name, "KUBECONFIG");
        assert!(std::env::split_paths(paths).all(|path| path.is_absolute()));
    }

    #[test]
    fn a_wrong_word_names_its_variable() {
        let get = |name: &str| (name == "SLEUTH_KUBERNETES_SECRETS").then(|| "hide".to_owned());
        assert!(Config::from_env(&get).unwrap_err().to_string().contains("SLEUTH_KUBERNETES_SECRETS"));
    }

    #[test]
    fn a_wrong_number_names_its_variable() {
        let get = |name: &str| (name == "SLEUTH_EXECUTOR_QUEUE").then(|| "many".to_owned());
        assert!(Config::from_env(&get).unwrap_err().to_string().contains("SLEUTH_EXECUTOR_QUEUE"));
    }
}
