//! A launcher that is nothing else, for programs that cannot run themselves as one.

use std::process::ExitCode;

fn main() -> ExitCode {
    executor::launcher::main()
}
