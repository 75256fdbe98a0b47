//! The worker daemon's process: arguments in, exit code out.

use std::process::ExitCode;

use clap::Parser;
use iofleet_worker::cli::{Args, run};

#[expect(clippy::print_stderr, reason = "the one place where the daemon's last word is printed")]
fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("iofleet-worker: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
