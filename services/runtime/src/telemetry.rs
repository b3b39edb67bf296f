//! Logs, traces and metrics.
//!
//! Logs go to standard error: for people by default, as JSON on request. Spans go to an OTLP collector
//! when the standard variables name one. No log line and no span holds a secret or the output of a tool.

use std::io::IsTerminal as _;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing_subscriber::{EnvFilter, Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Upper bounds of the latency histograms, in seconds.
const BUCKETS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0];

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// What the telemetry of a process is called and how it looks.
#[derive(Clone, Debug)]
pub struct Config {
    /// `service.name` of its spans, unless `OTEL_SERVICE_NAME` says otherwise.
    pub service: &'static str,
    /// How log lines look.
    pub format: LogFormat,
    /// Which lines are logged, in the syntax of `tracing_subscriber::EnvFilter`.
    pub filter: String,
    /// Whether the standard variables ask for spans to be exported; see [`wants_export`].
    pub export: bool,
}

/// Why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter cannot be read.
    #[error("cannot read the log filter: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The exporter of spans cannot be built.
    #[error("cannot export spans: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// Something else of the process has taken the place.
    #[error("telemetry was started twice")]
    Twice,
}

/// Running telemetry. Dropping it sends what is left.
#[derive(Debug)]
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
    metrics: PrometheusHandle,
}

impl Telemetry {
    /// Starts the telemetry of this process.
    ///
    /// # Errors
    /// If the configuration cannot be used, or telemetry has been started before.
    pub fn start(config: &Config) -> Result<Self, Error> {
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        let provider = if config.export { Some(provider(config.service)?) } else { None };
        let spans = provider.as_ref().map(|provider| {
            // Spans of the exporter's own traffic would feed on themselves.
            let own = EnvFilter::new("info,h2=off,hyper=off,tonic=off,opentelemetry=off,tower=off");
            tracing_opentelemetry::layer().with_tracer(provider.tracer("sleuth")).with_filter(own)
        });
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines = match config.format {
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
            LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).boxed(),
        };
        let filter = EnvFilter::try_new(&config.filter)?;
        tracing_subscriber::registry()
            .with(spans)
            .with(lines.with_filter(filter))
            .try_init()
            .map_err(|_| Error::Twice)?;
        let metrics = PrometheusBuilder::new()
            .set_buckets(&BUCKETS)
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|_| Error::Twice)?;
        Ok(Self { provider, metrics })
    }

    /// Renders the metrics of this process for Prometheus.
    pub fn metrics(&self) -> impl Fn() -> String + Clone + Send + Sync + 'static {
        let handle = self.metrics.clone();
        move || {
            handle.run_upkeep();
            handle.render()
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = &self.provider {
            // Nobody is left to tell.
            let _ = provider.shutdown();
        }
    }
}

/// Whether the standard OpenTelemetry variables ask for spans to be exported.
pub fn wants_export(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let disabled = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || set("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    let endpoint =
        set("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")).is_some();
    endpoint && !disabled
}

fn provider(service: &'static str) -> Result<SdkTracerProvider, Error> {
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_tonic().build()?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name(service);
    }
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build())
}

/// Counts in a gauge for as long as it lives.
#[derive(Debug)]
pub struct Counted(metrics::Gauge);

impl Counted {
    /// One more in a gauge.
    pub fn new(gauge: &'static str) -> Self {
        let gauge = metrics::gauge!(gauge);
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
