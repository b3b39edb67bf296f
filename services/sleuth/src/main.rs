//! The sleuth program.
//!
//! # Layout
//! * `cli`: what can be asked of it on a command line
//! * `settings`: the YAML file beside the flags and the environment
//! * `commands/`: one file per subcommand
//! * `services/`: how the services are put together
//! * `terminal/`: what a person sees

mod cli;
mod commands;
mod services;
mod settings;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // The launcher of a tool's process must be small and single-threaded: before anything else.
    if std::env::args_os().nth(1).is_some_and(|first| first == executor::launcher::ARG) {
        return executor::launcher::main();
    }
    commands::run(cli::Cli::parse())
}
