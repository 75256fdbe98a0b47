//! The command `iofleet`.

use std::process::ExitCode;

fn main() -> ExitCode {
    iofleet_coordinator::cli::main().into()
}
