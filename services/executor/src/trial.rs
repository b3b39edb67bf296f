//! One program in the sandbox: for tests, benchmarks, and operators who want to see what a command sees.

use tokio_util::sync::CancellationToken;

use crate::{
    Config, Level, Unavailable,
    process::{Exit, Launcher, Spec, Watch},
    sandbox::{Network, View},
};

/// What a program sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Programs, libraries and its private directory.
    Private,
    /// The machine, to read, without secrets.
    Host,
    /// The same, to change: for what was approved.
    Approved,
    /// Everything: no sandbox, as for the operator's own programs.
    Everything,
}

/// What a program reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// No network.
    Nothing,
    /// One port, at which this process listens. It is the first argument after the program's own.
    Gate,
    /// Everything.
    Everything,
}

/// The sandbox of an executor with some configuration, without the executor.
#[derive(Clone, Debug)]
pub struct Trial {
    launcher: Launcher,
    output_bytes: usize,
}

/// What came of a program.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Its exit code; `None` if it did not exit by itself.
    pub code: Option<i32>,
    /// What it wrote, standard error last.
    pub output: String,
    /// Bytes that it wrote.
    pub bytes: u64,
    /// The sandbox that it had.
    pub level: Level,
    /// The layers of it.
    pub layers: Vec<&'static str>,
    /// Whether it ran out of memory.
    pub out_of_memory: bool,
}

impl Trial {
    /// Finds out what sandbox there can be.
    pub async fn new(config: &Config) -> Result<Self, Unavailable> {
        let (program, environment) = (config.launcher.clone(), config.environment.clone());
        let launcher = Launcher::probe(program, environment, config.sandbox(), config.start_time).await?;
        Ok(Self { launcher, output_bytes: config.output_bytes })
    }

    /// The sandbox that every command of a model has at least.
    pub fn level(&self) -> Level {
        self.launcher.sandbox.level()
    }

    /// Runs a program to its end, or until `stop`.
    pub async fn run(
        &self,
        sight: Sight,
        reach: Reach,
        arguments: &[&str],
        stop: &CancellationToken,
    ) -> Tried {
        let view = match sight {
            Sight::Private => View::Private,
            Sight::Host => View::Host,
            Sight::Approved => View::Approved,
            Sight::Everything => View::Operator,
        };
        let program =
            |arguments: &[&str]| Spec::program(arguments.iter().map(|it| (*it).to_owned()).collect());
        let outcome = match reach {
            Reach::Gate => match self.launcher.gate(view) {
                Ok(gate) => {
                    let port = gate.port.to_string();
                    let spec = program(&[arguments, &[&port]].concat()).confined(view, Network::Host);
                    let served =
                        gate.served_by(|listener| drop(std::thread::spawn(move || answer(&listener))));
                    let (watch, seen) = (Watch::default(), |_, _, _: &[u8]| {});
                    self.launcher.run_gated(&spec, served, self.output_bytes, stop, watch, seen).await
                }
                Err(error) => return Tried::failed(error.to_string()),
            },
            Reach::Nothing | Reach::Everything => {
                let network = if reach == Reach::Nothing { Network::None } else { Network::Host };
                let spec = program(arguments).confined(view, network);
                self.launcher.run(&spec, self.output_bytes, stop, |_, _, _| {}).await
            }
        };
        let (code, why) = match outcome.exits.first() {
            Some(Exit::Exited(code)) => (Some(*code), String::new()),
            Some(Exit::Signalled(_)) | None => (None, String::new()),
            Some(Exit::NotStarted(why)) => (None, why.clone()),
        };
        Tried {
            code,
            output: [outcome.stdout.text(), outcome.stderr.text(), why].concat(),
            bytes: outcome.stdout.total() + outcome.stderr.total(),
            level: outcome.level,
            layers: outcome.layers,
            out_of_memory: outcome.out_of_memory,
        }
    }
}

impl Tried {
    fn failed(why: String) -> Self {
        Self {
            code: None,
            output: why,
            bytes: 0,
            level: Level::None,
            layers: Vec::new(),
            out_of_memory: false,
        }
    }
}

/// Answers the first that comes through a gate.
fn answer(listener: &std::net::TcpListener) {
    if let Ok((mut stream, _)) = listener.accept() {
        // Whoever came may be gone.
        let _ = std::io::Write::write_all(&mut stream, b"welcome\n");
    }
}
