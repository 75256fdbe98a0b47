//! `iofleet run`: every point of a scenario over a fleet, its rows as they end, its record kept.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver},
};

use clap::Args;
use iofleet_shared::{
    clock,
    transport::{self, Identity, Role},
};

use super::{Failure, StoreArg, keys_dir, workload::WorkloadArgs};
use crate::{
    aggregate,
    campaign::{self, CampaignError, Watched},
    conductor::Config,
    events::RunEvent,
    exit::Exit,
    json,
    local::LocalFleet,
    plan::Plan,
    record::CampaignRecord,
    report,
    scenario::{self, Context, Override, Scenario, Source, WorkerAddress},
    store::{self, Store},
};

use reporter::{Outputs, Reporter};

pub(super) mod reporter;

/// Events that may wait for the reporter.
const REPORTS: usize = 4_096;
/// Workers of a local fleet.
pub(super) const LOCAL_MAX: i64 = 256;

const NO_FLEET: &str = "\
no fleet: say where the workers are, or try it on this machine

  iofleet run --local 4                        four workers inside this command, a quick ramp
  iofleet run --workers 'client[01-04]' --path /mnt/pfs/iofleet --file-size '1 GiB'
  iofleet run scenario.toml                    a scenario that names its fleet

Workers are daemons: start `iofleet-worker --root /mnt/pfs` on each client first.";

/// Arguments of `iofleet run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The scenario; without one, the built-in quick ramp.
    pub scenario: Option<PathBuf>,
    /// The fleet, as a host list: `client[01-04]`, `host:port`, `[fd00::1]:7737`, by commas.
    #[arg(long, value_name = "LIST", env = "IOFLEET_WORKERS", conflicts_with = "local")]
    pub workers: Option<String>,
    /// Start a fleet of N workers inside this command instead.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LOCAL_MAX))]
    pub local: Option<u32>,
    /// Folder with the coordinator's keys [env: IOFLEET_KEYS] [default: ~/.config/iofleet/keys]
    #[arg(long, value_name = "DIR", conflicts_with = "local")]
    pub keys: Option<PathBuf>,
    /// Write the record as JSON, anew after each point; `-`: to standard output, alone.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub store: StoreArg,
    /// Show GiB/s instead of GB/s.
    #[arg(long)]
    pub binary: bool,
    #[command(flatten)]
    pub workload: WorkloadArgs,
}

impl RunArgs {
    /// JSON goes to standard output, and nothing else does.
    pub(super) fn json_alone(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }
}

/// Runs it.
///
/// # Errors
/// Whatever ends it before the first point: usage, scenario, keys, files.
pub fn run(args: RunArgs) -> Result<Exit, Failure> {
    let names_workers = |change: &Override| change.argument().contains("fleet.workers");
    let named = args.workers.is_some() || args.workload.overrides.iter().any(names_workers);
    if args.scenario.is_none() && args.local.is_none() && !named {
        return Err(Failure { exit: Exit::Usage, text: NO_FLEET.to_owned() });
    }
    let context = Context { local: args.local.is_some(), workers_flag: args.workers.clone() };
    let scenario = load(args.scenario.as_deref(), &args.workload, &context)?;
    let started = clock::wall();
    let id = store::campaign_id(started, random());
    let outputs = outputs(&args)?;
    let fleet = Fleet::of(&args, &scenario, &id)?;
    let count = u32::try_from(fleet.workers.len()).unwrap_or(u32::MAX);
    let plan = Plan::new(&scenario, count).map_err(|error| Failure::new(Exit::Scenario, &error))?;
    let config = fleet.config(&id, &scenario, plan.clone());
    let record = aggregate::campaign(&id, &scenario, &hostname(), started);
    let reporter = Reporter::new(plan, &scenario, record, outputs);
    let reported = conduct(config, &fleet, move |events| reporter.run(events))?;
    say(&reported.record, &args)?;
    if let Some(left) = &reported.left {
        reporter::complain(left);
    }
    Ok(reported.exit)
}

/// Loads a scenario with all that the command line changes in it.
pub(super) fn load(
    path: Option<&Path>,
    workload: &WorkloadArgs,
    context: &Context,
) -> Result<Scenario, Failure> {
    let source = path.map_or_else(|| Ok(Source::quick()), Source::read);
    source.and_then(|source| scenario::load(&source, &workload.overrides, context)).map_err(
        |error| Failure {
            exit: Exit::Scenario,
            text: format!("the scenario is not valid\n{:?}", miette::Report::new(error)),
        },
    )
}

/// Who does the work, and how they are reached.
pub(super) struct Fleet {
    pub(super) workers: Vec<WorkerAddress>,
    watched: Watched,
    identity: Identity,
    /// The target of a local fleet for which none was named.
    scratch: Option<PathBuf>,
    /// Ends when the fleet is dropped.
    local: Option<LocalFleet>,
}

impl Fleet {
    pub(super) fn of(args: &RunArgs, scenario: &Scenario, id: &str) -> Result<Self, Failure> {
        let Some(count) = args.local else {
            let dir = keys_dir(args.keys.as_ref())?;
            let identity = Identity::load(&dir, Role::Coordinator)
                .map_err(|error| Failure::new(Exit::Fault, &error))?;
            let workers = scenario.fleet.workers.clone();
            let watched =
                Watched { hosts: scenario.fleet.observers.clone(), interfaces: Vec::new() };
            return Ok(Self { workers, watched, identity, scratch: None, local: None });
        };
        let here = std::env::current_dir().map_err(|error| Failure::new(Exit::Fault, &error))?;
        let scratch = here.join(format!("iofleet-local-{id}"));
        let root = match &scenario.target.path {
            None => here,
            // A local worker may touch what its user named: the parent must exist, as everywhere.
            Some(path) => local_root(path),
        };
        let local =
            LocalFleet::start(count, root).map_err(|error| Failure::new(Exit::Fault, &error))?;
        Ok(Self {
            workers: local.workers.clone(),
            watched: Watched::default(),
            identity: local.identity.clone(),
            scratch: scenario.target.path.is_none().then_some(scratch),
            local: Some(local),
        })
    }

    /// A campaign on it.
    pub(super) fn config(&self, id: &str, scenario: &Scenario, plan: Plan) -> Config {
        Config {
            campaign: id.to_owned(),
            holder: holder(),
            nodes: self.workers.iter().map(|worker| worker.name.clone()).collect(),
            paths: self.workers.iter().map(|worker| self.path_of(scenario, worker)).collect(),
            keep: scenario.target.keep,
            plan,
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn is_remote(&self) -> bool {
        self.local.is_none()
    }

    pub(super) fn path_of(&self, scenario: &Scenario, worker: &WorkerAddress) -> String {
        let scratch = || self.scratch.as_ref().map(|path| path.display().to_string());
        scenario.target.path_of(&worker.name).or_else(scratch).unwrap_or_default()
    }
}

/// The root of a local fleet: the nearest folder that exists at or above the target's parent. What
/// is missing below it is the worker's to refuse, in its own words.
fn local_root(path: &str) -> PathBuf {
    let fixed = path.split('{').next().unwrap_or(path);
    let mut root = Path::new(fixed);
    while let Some(parent) = root.parent() {
        root = parent;
        if root.is_dir() {
            break;
        }
    }
    root.to_owned()
}

pub(super) fn outputs(args: &RunArgs) -> Result<Outputs, Failure> {
    let fault = |error: &dyn std::error::Error| Failure::new(Exit::Fault, error);
    let json_alone = args.json_alone();
    let json = args.json.clone().filter(|_| !json_alone);
    if let Some(path) = &json {
        json::probe(path).map_err(|error| fault(&error))?;
    }
    let store = Store::open(&args.store.path()?).map_err(|error| fault(&error))?;
    Ok(Outputs {
        store,
        json,
        table: !json_alone,
        live: io::stderr().is_terminal(),
        binary: args.binary,
    })
}

/// Conducts a campaign; `report` takes its events in a thread of its own until there are no more.
pub(super) fn conduct<T: Send + 'static>(
    config: Config,
    fleet: &Fleet,
    report: impl FnOnce(&Receiver<RunEvent>) -> T + Send + 'static,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Fault, &error))?;
    let (events, reports) = mpsc::sync_channel(REPORTS);
    let reporting = std::thread::Builder::new()
        .name("reporter".to_owned())
        .spawn(move || report(&reports))
        .map_err(|error| Failure::new(Exit::Fault, &error))?;
    let conducted = runtime.block_on(async {
        // A socket for both families: host names may mean either.
        let endpoint = transport::client(&fleet.identity, fleet.is_remote())
            .map_err(|error| Failure::new(Exit::Fault, &error))?;
        campaign::conduct(config, &fleet.workers, &fleet.watched, &endpoint, &events).await.map_err(
            |error| {
                let exit = match error {
                    CampaignError::Observers(_) => Exit::Fleet,
                    CampaignError::Interrupted => Exit::Interrupted,
                    CampaignError::Signals(_) | CampaignError::Reporter => Exit::Fault,
                };
                Failure::new(exit, &error)
            },
        )
    });
    drop(events);
    // A name service that does not answer must not hold the command.
    runtime.shutdown_background();
    let reported = reporting.join().map_err(|_| Failure {
        exit: Exit::Fault,
        text: "the reporter failed; what it had stored by then is in the store".to_owned(),
    })?;
    conducted?;
    Ok(reported)
}

/// The sentences after the table, or the JSON alone.
fn say(record: &CampaignRecord, args: &RunArgs) -> Result<(), Failure> {
    let alone = args.json_alone();
    let text = if alone {
        json::to_string(record).map_err(|error| Failure::new(Exit::Fault, &error))?
    } else if record.points.is_empty() {
        return Ok(());
    } else {
        format!("\n{}", report::summary(record, args.binary))
    };
    reporter::print(&text)
}

/// Who holds a worker, as a second coordinator is told.
pub(super) fn holder() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user = user.unwrap_or_else(|_| format!("uid {}", rustix::process::getuid().as_raw()));
    format!("{user}@{}, pid {}", hostname(), std::process::id())
}

pub(super) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Tells campaigns apart that start in the same second: pid and clock are enough for that.
pub(super) fn random() -> u32 {
    let mixed = clock::monotonic_ns().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    u32::try_from(mixed >> 32).unwrap_or(0) ^ std::process::id()
}
