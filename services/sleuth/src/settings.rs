//! The YAML file beside the flags and the environment: same names, and each key counts where neither says
//! anything.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    path::PathBuf,
    time::Duration,
};

use anyhow::Context as _;
use domain::{Labels, Limits, Subagents};
use grants::SigningKey;
use runtime::{auth::ApiKey, place, telemetry};
use store::{Budget, Retention};

use crate::{
    cli::{Access, Administer, Answering, Data, General, Grpc, Http, Links, LogFormat, Rates, Storage},
    services::Place,
};

/// What the file may say.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct File {
    http: Option<String>,
    grpc: Option<String>,
    listen: Option<String>,
    metrics: Option<String>,
    agent: Option<String>,
    executor: Option<String>,
    executor_selector: Option<Labels>,
    cors_origins: Option<Vec<String>>,
    allowed_hosts: Option<Vec<String>>,
    pass_headers: Option<Vec<String>>,
    model_list: Option<PathBuf>,
    cluster_name: Option<String>,
    runbooks: Option<PathBuf>,
    toolsets: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    enabled_prompts: Option<Vec<String>>,
    max_steps: Option<u32>,
    max_cost: Option<f64>,
    max_tokens: Option<u64>,
    max_seconds: Option<u64>,
    decision_seconds: Option<u64>,
    subagents: Option<u32>,
    compaction: Option<bool>,
    compaction_percent: Option<u64>,
    max_runs: Option<usize>,
    max_account_runs: Option<usize>,
    default_daily_tokens: Option<u64>,
    default_daily_cost: Option<f64>,
    client_tool_seconds: Option<u64>,
    error_disclosure: Option<String>,
    stream_seconds: Option<u64>,
    max_key_runs: Option<usize>,
    name_clusters: Option<bool>,
    advertise: Option<String>,
    advertise_ip: Option<IpAddr>,
    link_seconds: Option<u64>,
    require_keys: Option<bool>,
    key_rate: Option<NonZeroU32>,
    account_rate: Option<NonZeroU32>,
    model_list_as_string: bool,
    unknown_model_falls_back: bool,
    store: Option<String>,
    keep_days: Option<u32>,
    keep_gib: Option<u32>,
    disconnect_grace: Option<u64>,
    log: Option<String>,
    log_format: Option<LogFormat>,
}

/// A folder for what outlives the process.
#[derive(Debug)]
pub(crate) struct DataDir {
    pub(crate) path: PathBuf,
    /// Without it being named, doing without is better than not starting.
    pub(crate) named: bool,
}

/// A variable of the environment, if it is set to something.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl File {
    /// The file that was named; nothing if none was.
    pub(crate) fn load(general: &General) -> anyhow::Result<Self> {
        let Some(path) = &general.config else { return Ok(Self::default()) };
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_saphyr::from_str(&text)
            .with_context(|| format!("cannot read the settings in {}", path.display()))
    }

    /// Logs, traces and metrics of a process. `filter` is what is logged if nobody says otherwise.
    pub(crate) fn telemetry(
        &self,
        general: &General,
        service: &'static str,
        filter: &str,
    ) -> telemetry::Config {
        let format = match general.log_format.or(self.log_format).unwrap_or(LogFormat::Text) {
            LogFormat::Text => telemetry::LogFormat::Text,
            LogFormat::Json => telemetry::LogFormat::Json,
        };
        let filter = general.log.clone().or_else(|| self.log.clone()).unwrap_or_else(|| filter.to_owned());
        telemetry::Config { service, format, filter, export: telemetry::wants_export(variable) }
    }

    /// Where to listen for HTTP.
    pub(crate) fn http_address(&self, http: &Http) -> String {
        first(http.http.as_deref(), self.http.as_deref(), "127.0.0.1:8080")
    }

    /// Where to listen for gRPC.
    pub(crate) fn grpc_address(&self, grpc: &Grpc) -> String {
        first(grpc.grpc.as_deref(), self.grpc.as_deref(), "127.0.0.1:50051")
    }

    /// Where an executor listens.
    pub(crate) fn listen_address(&self, flag: Option<&str>) -> String {
        first(flag, self.listen.as_deref(), "127.0.0.1:50052")
    }

    /// Where an agent is.
    pub(crate) fn agent_url(&self, flag: Option<&str>) -> String {
        first(flag, self.agent.as_deref(), "http://127.0.0.1:50051")
    }

    /// Where an executor is.
    pub(crate) fn executor_url(&self, flag: Option<&str>) -> String {
        first(flag, self.executor.as_deref(), "http://127.0.0.1:50052")
    }

    /// Where the executors of a server are that is to start none itself.
    pub(crate) fn executor_elsewhere(&self, flag: Option<String>) -> Option<String> {
        flag.or_else(|| self.executor.clone())
    }

    /// The labels that executors must have.
    pub(crate) fn executor_selector(&self, flag: Option<Vec<(String, String)>>) -> Labels {
        let named = flag.map(|labels| labels.into_iter().collect());
        named.or_else(|| self.executor_selector.clone()).unwrap_or_default()
    }

    /// The file with more toolsets, if there is one.
    pub(crate) fn toolsets(&self, flag: Option<PathBuf>) -> Option<PathBuf> {
        flag.or_else(|| self.toolsets.clone())
    }

    /// The folder for what outlives the process, if there can be one, and whether somebody named it.
    pub(crate) fn data_dir(&self, flags: &Data) -> Option<DataDir> {
        let named = flags.data_dir.clone().or_else(|| self.data_dir.clone());
        let home = || variable("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let usual = || variable("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
        match named {
            Some(path) => Some(DataDir { path, named: true }),
            None => usual().map(|state| DataDir { path: state.join("sleuth"), named: false }),
        }
    }

    /// Where runs are kept.
    pub(crate) fn place(&self, flags: &Storage, data: &Data) -> anyhow::Result<Place> {
        let url = flags.store.as_deref().or(self.store.as_deref()).unwrap_or("sqlite:");
        Place::parse(url, self.data_dir(data).map(|data| data.path))
    }

    /// How long they are kept.
    pub(crate) fn retention(&self, flags: &Storage) -> Retention {
        let days = flags.keep_days.or(self.keep_days).unwrap_or(30);
        let gib = flags.keep_gib.or(self.keep_gib).unwrap_or(10);
        Retention {
            age: Some(Duration::from_secs(u64::from(days) * 24 * 3600)),
            logs: None,
            bytes: Some(u64::from(gib) << 30),
        }
    }

    /// How long a run goes on without a reader. One that comes back later finds it only where runs are kept.
    pub(crate) fn disconnect_grace(&self, flags: &Storage, lasts: bool) -> Duration {
        let usual = if lasts { 60 } else { 0 };
        let seconds = flags.disconnect_grace.or(self.disconnect_grace).unwrap_or(usual);
        Duration::from_secs(seconds).min(LONGEST)
    }

    /// Where accounts are.
    pub(crate) fn accounts_place(&self, at: &Administer) -> anyhow::Result<Place> {
        let url = at.store.as_deref().or(self.store.as_deref()).unwrap_or("sqlite:");
        Place::parse(url, self.data_dir(&Data { data_dir: at.data_dir.clone() }).map(|data| data.path))
    }

    /// Whether every caller is asked for a key, whatever the address.
    pub(crate) fn needs_key(&self, flags: &Access) -> bool {
        flags.require_keys.or(self.require_keys).unwrap_or(false)
    }

    /// How often keys may be used.
    pub(crate) fn rates(&self, flags: &Rates) -> accounts::Rates {
        let usual = accounts::Rates::default();
        accounts::Rates {
            key: flags.key_rate.or(self.key_rate).unwrap_or(usual.key),
            account: flags.account_rate.or(self.account_rate).unwrap_or(usual.account),
        }
    }

    /// Where metrics are served, if anywhere.
    pub(crate) fn metrics_address(&self, flag: Option<&str>) -> Option<String> {
        flag.map(str::to_owned).or_else(|| self.metrics.clone())
    }

    /// The gateway's settings.
    pub(crate) fn gateway(
        &self,
        http: &Http,
        access: &Access,
        signing_key: SigningKey,
        metrics: gateway::MetricsText,
    ) -> anyhow::Result<gateway::Config> {
        let origins = http.cors_origins.clone().or_else(|| self.cors_origins.clone()).unwrap_or_default();
        let origins = origins.iter().map(|origin| origin.parse()).collect::<Result<_, _>>();
        let usual = gateway::Config::default();
        let passed = http.pass_headers.clone().or_else(|| self.pass_headers.clone()).unwrap_or_default();
        let passed = passed.iter().map(|name| name.parse()).collect::<Result<_, _>>();
        Ok(gateway::Config {
            passed_headers: passed.context("--pass-headers")?,
            api_key: api_key(),
            needs_key: self.needs_key(access),
            stream_time: http
                .stream_seconds
                .or(self.stream_seconds)
                .map_or(usual.stream_time, |seconds| Duration::from_secs(seconds.max(1)))
                .min(LONGEST),
            signing_key: Some(signing_key),
            allowed_hosts: http
                .allowed_hosts
                .clone()
                .or_else(|| self.allowed_hosts.clone())
                .unwrap_or_default(),
            allowed_origins: origins.context("--cors-origins")?,
            model_list_as_string: self.model_list_as_string,
            unknown_model_falls_back: self.unknown_model_falls_back,
            metrics,
            ..gateway::Config::default()
        })
    }

    /// The agent's settings.
    pub(crate) fn agent(&self, flags: &Answering) -> anyhow::Result<agent::Config> {
        let most = Limits::default();
        let wall_time = flags.max_seconds.or(self.max_seconds).map_or(most.wall_time, Duration::from_secs);
        let decision = flags.decision_seconds.or(self.decision_seconds);
        let default = agent::Config::default();
        let runbooks = match flags.runbooks.as_ref().or(self.runbooks.as_ref()) {
            Some(folder) => default.runbooks.with_folder(folder).context("--runbooks")?,
            None => default.runbooks,
        };
        let prompts = flags.enabled_prompts.as_ref().or(self.enabled_prompts.as_ref());
        let prompts = prompts.into_iter().flatten().map(String::as_str);
        Ok(agent::Config {
            limits: Limits {
                steps: flags.max_steps.or(self.max_steps).unwrap_or(most.steps).max(1),
                tokens: flags.max_tokens.or(self.max_tokens),
                cost_usd: flags.max_cost.or(self.max_cost),
                wall_time: wall_time.min(LONGEST),
                decision_time: decision.map_or(most.decision_time, Duration::from_secs).min(LONGEST),
                compaction_percent: self.compaction_percent(flags),
                ..most
            },
            subagents: flags
                .subagents
                .or(self.subagents)
                .map_or(default.subagents, |number| Subagents { number, ..default.subagents }),
            max_runs: flags.max_runs.or(self.max_runs).unwrap_or(default.max_runs),
            max_account_runs: flags
                .max_account_runs
                .or(self.max_account_runs)
                .unwrap_or(default.max_account_runs),
            default_budget: Budget {
                tokens: flags.default_daily_tokens.or(self.default_daily_tokens).filter(|most| *most > 0),
                cost_usd: flags.default_daily_cost.or(self.default_daily_cost).filter(|most| *most > 0.0),
            },
            client_tool_time: flags
                .client_tool_seconds
                .or(self.client_tool_seconds)
                .map_or(default.client_tool_time, Duration::from_secs)
                .min(LONGEST),
            error_disclosure: self.error_disclosure(flags)?.unwrap_or(default.error_disclosure),
            max_key_runs: flags.max_key_runs.or(self.max_key_runs).unwrap_or(default.max_key_runs),
            cluster_name: self.cluster_name(flags),
            enabled_prompts: agent::EnabledPrompts::parse(prompts),
            runbooks,
            fast_model: variable("FAST_MODEL"),
            ..default
        })
    }

    fn error_disclosure(&self, flags: &Answering) -> anyhow::Result<Option<agent::Disclosure>> {
        let Some(name) = flags.error_disclosure.as_deref().or(self.error_disclosure.as_deref()) else {
            return Ok(None);
        };
        let named = agent::Disclosure::named(name);
        named
            .map(Some)
            .with_context(|| format!("--error-disclosure: `{name}` is not generic, standard or detailed"))
    }

    /// The agent's settings, where clusters are linked to it.
    pub(crate) fn hub(&self, flags: &Answering, links: &Links) -> anyhow::Result<agent::Config> {
        let usual = self.agent(flags)?;
        let age = links.link_seconds.or(self.link_seconds).map(Duration::from_secs);
        let address = self.advertised(links)?;
        let name_clusters = links.name_clusters.or(self.name_clusters).unwrap_or(usual.name_clusters);
        let link_age = age.unwrap_or(usual.link_age).clamp(SHORTEST_LINK, LONGEST_LINK);
        Ok(agent::Config { address, link_age, name_clusters, ..usual })
    }

    /// Where other agents reach this one.
    fn advertised(&self, links: &Links) -> anyhow::Result<Option<place::Place>> {
        let Some(address) = links.advertise.as_ref().or(self.advertise.as_ref()) else { return Ok(None) };
        let place = place::Place::of(address).context("--advertise")?;
        let Some(ip) = links.advertise_ip.or(self.advertise_ip) else { return Ok(Some(place)) };
        let (_, port) = place.name().context("--advertise-ip needs a name in --advertise")?;
        Ok(Some(place.at(SocketAddr::new(ip, port))))
    }

    /// Name of the cluster that the tools see.
    pub(crate) fn cluster_name(&self, flags: &Answering) -> Option<String> {
        flags.cluster_name.clone().or_else(|| self.cluster_name.clone())
    }

    fn compaction_percent(&self, flags: &Answering) -> Option<u64> {
        let wanted = flags.compaction.or(self.compaction).unwrap_or(true);
        let percent = flags.compaction_percent.or(self.compaction_percent);
        percent.or(Limits::default().compaction_percent).filter(|_| wanted)
    }

    /// The text of the model list, if there is one.
    pub(crate) fn model_list(&self, flag: Option<&PathBuf>) -> anyhow::Result<Option<String>> {
        let Some(path) = flag.or(self.model_list.as_ref()) else { return Ok(None) };
        let text = std::fs::read_to_string(path);
        text.map(Some).with_context(|| format!("cannot read the model list {}", path.display()))
    }
}

/// No link is replaced sooner, whatever is configured.
const SHORTEST_LINK: Duration = Duration::from_secs(1);
/// And none later: an executor presents the key of its cluster with each link, and one that was exchanged for a fresh one
/// counts for an hour.
const LONGEST_LINK: Duration = Duration::from_secs(50 * 60);
/// No run may take longer, whatever is configured.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

fn first(flag: Option<&str>, file: Option<&str>, default: &str) -> String {
    flag.or(file).unwrap_or(default).to_owned()
}

/// The key that callers must present, and that this program presents to servers. Never read from a file or a
/// flag: those are seen by others.
pub(crate) fn api_key() -> Option<ApiKey> {
    variable("SLEUTH_API_KEY").or_else(|| variable("HOLMES_API_KEY")).map(ApiKey::new)
}
