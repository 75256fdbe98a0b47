//! `iofleet netbench`: what the network carries, without a file system.

use std::{
    fmt::Write as _,
    fs::File,
    io::{Read, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use iofleet_shared::{
    clock,
    transport::{self, Identity, Role},
    units,
};
use serde::Serialize;

use super::{Failure, keys_dir, printed, run};
use crate::{
    asking::{AskError, Asking},
    exit::Exit,
    netbench::{self, NodeResult, PhaseResult, Settings},
    scenario::hosts,
    store,
};

/// Schema of the JSON.
const SCHEMA: &str = "iofleet.netbench/1";

/// Arguments of `iofleet netbench`.
#[derive(Debug, Args)]
pub struct NetbenchArgs {
    /// The clients, as a host list: `client[01-04]`, `host:port`, `[fd00::1]:7737`, by commas.
    #[arg(long, value_name = "LIST", env = "IOFLEET_WORKERS")]
    pub workers: String,
    /// Hosts to measure against, such as storage hosts, that run a worker too [default: the clients
    /// measure against each other]
    #[arg(long, value_name = "LIST")]
    pub against: Option<String>,
    /// Folder with the coordinator's keys [env: IOFLEET_KEYS] [default: ~/.config/iofleet/keys]
    #[arg(long, value_name = "DIR")]
    pub keys: Option<PathBuf>,
    /// TCP streams from each sender to each of its receivers.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub streams: u32,
    /// Seconds that each of the three phases counts, after one that does not.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    streams: u32,
    seconds: u32,
    phases: &'a [PhaseResult],
}

/// Runs it.
///
/// # Errors
/// Host lists that can't be read, keys, a fleet that is not ready.
pub fn run(args: &NetbenchArgs, out: &mut impl Write) -> Result<Exit, Failure> {
    let settings = settings(args)?;
    let dir = keys_dir(args.keys.as_ref())?;
    let identity = Identity::load(&dir, Role::Coordinator)
        .map_err(|error| Failure::new(Exit::Fault, &error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Fault, &error))?;
    let measured = runtime.block_on(measure(&settings, &identity, args.json, out));
    runtime.shutdown_background();
    let phases = measured?;
    if args.json {
        let document = Document {
            schema: SCHEMA,
            streams: args.streams,
            seconds: args.seconds,
            phases: &phases,
        };
        let text = serde_json::to_string_pretty(&document)
            .map_err(|error| Failure::new(Exit::Fault, &error))?;
        return printed(writeln!(out, "{text}"));
    }
    Ok(Exit::Done)
}

fn settings(args: &NetbenchArgs) -> Result<Settings, Failure> {
    let parse = |list: &str, flag: &str| {
        hosts::parse(list)
            .map_err(|text| Failure { exit: Exit::Usage, text: format!("{flag} {list}: {text}") })
    };
    let mut workers = parse(&args.workers, "--workers")?;
    let clients = workers.len();
    if let Some(list) = &args.against {
        let others = parse(list, "--against")?;
        if let Some(twice) = others.iter().find(|other| workers.contains(other)) {
            let text = format!("{} is in --workers and in --against", twice.name);
            return Err(Failure { exit: Exit::Usage, text });
        }
        workers.extend(others);
    } else if clients < 2 {
        let text = "one client has nobody to measure against: name more, or hosts by --against";
        return Err(Failure { exit: Exit::Usage, text: text.to_owned() });
    }
    Ok(Settings {
        workers,
        clients,
        streams: args.streams,
        warm: Duration::from_secs(1),
        window: Duration::from_secs(u64::from(args.seconds)),
    })
}

async fn measure(
    settings: &Settings,
    identity: &Identity,
    quiet: bool,
    out: &mut impl Write,
) -> Result<Vec<PhaseResult>, Failure> {
    let endpoint =
        transport::client(identity, true).map_err(|error| Failure::new(Exit::Fault, &error))?;
    let id = store::campaign_id(clock::wall(), run::random());
    let token = token().map_err(|error| Failure::new(Exit::Fault, &error))?;
    let claimed = Asking::claim(&settings.workers, &endpoint, &id, &run::holder()).await;
    let mut asking = claimed.map_err(failure)?;
    let phases = netbench::run(&mut asking, settings, token, |phase| {
        if !quiet {
            // With standard output gone there is nobody to tell.
            let _ = out.write_all(table(phase).as_bytes());
        }
    })
    .await;
    asking.leave().await;
    phases.map_err(failure)
}

fn failure(error: AskError) -> Failure {
    let exit = match error {
        AskError::Nodes(_) => Exit::Fleet,
        AskError::Interrupted => Exit::Interrupted,
        AskError::Signals(_) => Exit::Fault,
    };
    Failure::new(exit, &error)
}

/// What senders have to show: nobody else knows it.
fn token() -> std::io::Result<[u8; 16]> {
    let mut token = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut token)?;
    Ok(token)
}

fn table(phase: &PhaseResult) -> String {
    let mut text = format!("{}: {}\n", phase.phase, units::format_rate(phase.bytes_per_s, false));
    let width = phase.nodes.iter().map(|node| node.node.chars().count()).max().unwrap_or(0);
    for NodeResult { node, tx_bytes_per_s, rx_bytes_per_s } in &phase.nodes {
        let rate = |rate: Option<f64>| {
            rate.map_or_else(|| "–".to_owned(), |rate| units::format_rate(rate, false))
        };
        let (tx, rx) = (rate(*tx_bytes_per_s), rate(*rx_bytes_per_s));
        let _ = writeln!(text, "  {node:width$}  tx {tx:>14}  rx {rx:>14}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(workers: &str, against: Option<&str>) -> NetbenchArgs {
        NetbenchArgs {
            workers: workers.to_owned(),
            against: against.map(str::to_owned),
            keys: None,
            streams: 4,
            seconds: 5,
            json: false,
        }
    }

    #[test]
    fn fleets_that_can_not_be_measured_are_refused() {
        let text = |args: &NetbenchArgs| settings(args).unwrap_err().text;
        assert!(text(&args("a", None)).contains("nobody to measure against"));
        assert!(text(&args("a,b", Some("b"))).contains("b is in --workers and in --against"));
        assert!(text(&args("a", Some("b["))).contains("--against"));
        let good = settings(&args("a,b", Some("c"))).unwrap();
        assert_eq!((good.clients, good.workers.len()), (2, 3));
    }

    #[test]
    fn a_phase_is_a_line_and_a_line_for_each_node() {
        let node = |name: &str, tx, rx| NodeResult {
            node: name.to_owned(),
            tx_bytes_per_s: tx,
            rx_bytes_per_s: rx,
        };
        let phase = PhaseResult {
            phase: "clients send".to_owned(),
            bytes_per_s: 23.9e6,
            nodes: vec![node("c1", Some(23.9e6), None), node("s", None, Some(23.9e6))],
        };
        let text = table(&phase);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("  c1  tx") && lines[1].ends_with('–'), "{text}");
    }
}
