//! The command line: one file a command. Only this floor prints.

use std::{
    io::{self, ErrorKind, Write},
    path::PathBuf,
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use etcetera::BaseStrategy;
use iofleet_shared::log;

use crate::{exit::Exit, store::Store};

pub mod calibrate;
pub mod check;
pub mod keys;
pub mod list;
pub mod netbench;
pub mod plan;
pub mod run;
pub mod show;
pub mod workload;

const EXAMPLES: &str = "\
Examples:
  iofleet run --local 4                                  try it: 4 workers on this machine, a quick ramp
  iofleet run --local 4 --path /mnt/nfs/test --threads 1,4,16 --duration '5 s'
  iofleet plan scenarios/ramp.toml                       what would run, in words and numbers
  iofleet run scenarios/ramp.toml --workers 'client[01-04]' --json result.json
  iofleet calibrate --local 1                            what the generator itself can do here
  iofleet show last                                      the table again

Exit codes: 0 done, 1 a fault of iofleet or a local file, 2 usage, 3 scenario not valid, 4 fleet not
ready, 5 a point partial, failed or skipped, 6 I/O errors, 7 interrupted, 8 a demand not met.";

/// Measures how fast a mounted parallel file system is from many clients at once.
#[derive(Debug, Parser)]
#[command(name = "iofleet", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// What is logged on standard error: a level (error, warn, info, debug, trace) or a filter.
    #[arg(long, global = true, value_name = "FILTER", env = "IOFLEET_LOG", default_value = "warn")]
    log: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every point of a scenario (without one: a quick ramp), print a row as each ends, store it.
    Run(Box<run::RunArgs>),
    /// Measure the generator itself: what each engine and thread count can reach on each node, and
    /// what one operation costs. Stored as a campaign named `calibration`.
    Calibrate(Box<calibrate::CalibrateArgs>),
    /// Ask every worker whether a scenario could run, and say what stands in the way.
    Check(Box<check::CheckArgs>),
    /// Measure the network alone, memory to memory over TCP, between clients or against other hosts.
    Netbench(netbench::NetbenchArgs),
    /// Say in words and numbers what would run. Asks no worker.
    Plan(Box<plan::PlanArgs>),
    /// Campaigns in the results store.
    List(list::ListArgs),
    /// The table and sentences of a stored campaign, or its JSON.
    Show(show::ShowArgs),
    /// Certificates of the fleet.
    #[command(subcommand)]
    Keys(keys::KeysCommand),
}

/// Where results are kept.
#[derive(Debug, clap::Args)]
pub struct StoreArg {
    /// The results store (SQLite) [default: $XDG_DATA_HOME/iofleet/campaigns.sqlite]
    #[arg(long, value_name = "FILE", env = "IOFLEET_STORE")]
    pub store: Option<PathBuf>,
}

impl StoreArg {
    /// The file that is meant.
    ///
    /// # Errors
    /// When none is given and there is no home directory.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        match &self.store {
            Some(path) => Ok(path.clone()),
            None => Store::default_path().map_err(|error| Failure::new(Exit::Fault, &error)),
        }
    }
}

/// An error that ends a command: what to say, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// For people, whole.
    pub text: String,
}

impl Failure {
    /// From an error and its sources, in one sentence each.
    pub fn new(exit: Exit, error: &dyn std::error::Error) -> Self {
        Self { exit, text: iofleet_shared::transport::error_chain(error) }
    }
}

/// The folder with the coordinator's keys: as told, else as `IOFLEET_KEYS` says, else
/// `~/.config/iofleet/keys`. (A variable that clap reads would conflict with `--local`.)
fn keys_dir(told: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let said = std::env::var_os("IOFLEET_KEYS").filter(|dir| !dir.is_empty());
    if let Some(dir) = told.cloned().or_else(|| said.map(PathBuf::from)) {
        return Ok(dir);
    }
    etcetera::choose_base_strategy()
        .map(|strategy| strategy.config_dir().join("iofleet/keys"))
        .map_err(|error| Failure::new(Exit::Fault, &error))
}

/// A reader that has seen enough, as `head` has, is no failure.
fn printed(result: io::Result<()>) -> Result<Exit, Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure {
            exit: Exit::Fault,
            text: format!("can't write to standard output: {error}"),
        }),
        _ => Ok(Exit::Done),
    }
}

/// Runs the command line and returns its exit code.
#[must_use]
pub fn main() -> Exit {
    let cli = match Cli::command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches))
    {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no failures; a closed pipe is none either.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    match log::init(&cli.log)
        .map_err(|error| Failure::new(Exit::Usage, &error))
        .and_then(|()| dispatch(cli.command))
    {
        Ok(exit) => exit,
        Err(failure) => {
            // With standard error gone there is nobody to tell.
            let _ = writeln!(io::stderr().lock(), "iofleet: {}", failure.text);
            failure.exit
        }
    }
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    let mut out = io::stdout().lock();
    match command {
        Command::Run(args) => {
            drop(out);
            run::run(*args)
        }
        Command::Calibrate(args) => {
            drop(out);
            calibrate::run(*args)
        }
        Command::Check(args) => check::run(*args, &mut out),
        Command::Netbench(args) => netbench::run(&args, &mut out),
        Command::Plan(args) => plan::run(&args, &mut out),
        Command::List(args) => list::run(&args, &mut out),
        Command::Show(args) => show::run(&args, &mut out),
        Command::Keys(command) => keys::run(&command, &mut out),
    }
}
