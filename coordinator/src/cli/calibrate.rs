//! `iofleet calibrate`: what the generator itself can do on each node, by engine and threads. A
//! campaign like any other, of a scenario that is made here.
//!
//! A fleet refuses a campaign of which a node lacks an engine, so each engine is asked for first, by
//! a campaign of one tiny point that is kept nowhere: what is refused is told in the node's words and
//! left out. The first of them also tells the cores.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::mpsc::Receiver,
};

use clap::{Args, ValueEnum};
use iofleet_shared::clock;

use super::{
    Failure, StoreArg,
    run::{self, Fleet, RunArgs, reporter},
    workload::WorkloadArgs,
};
use crate::{
    aggregate,
    events::RunEvent,
    exit::Exit,
    json,
    plan::Plan,
    report,
    scenario::{self, Context, Override, Scenario, Source},
    store,
};

const NAME: &str = "calibration";
const TIMES: &str = "duration = \"500 ms\"\nramp = \"100 ms\"\n";
const NO_FLEET: &str = "\
no fleet: `iofleet calibrate --local 1` for this machine, or `--workers LIST --path DIR`, DIR below a
root of the workers, in memory where there is one";
/// Bytes of each thread's file.
const FILE_BYTES: u64 = 16 << 20;
/// `f_type` of a file system in memory.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;
const MEMORY: &str = "/dev/shm";

/// Arguments of `iofleet calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// The fleet, as a host list: `client[01-04]`, `host:port`, `[fd00::1]:7737`, by commas.
    #[arg(long, value_name = "LIST", env = "IOFLEET_WORKERS", conflicts_with = "local")]
    pub workers: Option<String>,
    /// Start a fleet of N workers inside this command instead.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=run::LOCAL_MAX))]
    pub local: Option<u32>,
    /// Directory for the files, which should lie in memory [default with --local: one in /dev/shm]
    #[arg(long, value_name = "DIR")]
    pub path: Option<String>,
    /// Folder with the coordinator's keys [env: IOFLEET_KEYS] [default: ~/.config/iofleet/keys]
    #[arg(long, value_name = "DIR", conflicts_with = "local")]
    pub keys: Option<PathBuf>,
    /// Threads of each node, by commas [default: 1 and the cores of the smallest node; with --local,
    /// shared out]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub threads: Vec<u32>,
    /// Engines, by commas; one that a node can't do is named and left out.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "null,sync,io_uring,libaio,mmap"
    )]
    pub engines: Vec<EngineName>,
    /// Write the record as JSON, anew after each point; `-`: to standard output, alone.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub store: StoreArg,
    /// Change one place of the scenario, as with `run`; stages are `prepare`, the engines and `fill`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// An engine, by the name that scenarios have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum EngineName {
    /// Nothing at all: the ceiling.
    Null,
    /// pread.
    Sync,
    /// `io_uring`.
    IoUring,
    /// Linux AIO.
    Libaio,
    /// Loads from a mapping.
    Mmap,
}

impl EngineName {
    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Sync => "sync",
            Self::IoUring => "io_uring",
            Self::Libaio => "libaio",
            Self::Mmap => "mmap",
        }
    }

    /// Operations in flight, for engines with a queue.
    fn depth(self) -> &'static str {
        match self {
            Self::Null | Self::Sync | Self::Mmap => "",
            Self::IoUring | Self::Libaio => "depth = 32\n",
        }
    }
}

impl CalibrateArgs {
    /// The same as arguments of `run`, which fleet and outputs are made from.
    fn as_run(&self) -> RunArgs {
        RunArgs {
            scenario: None,
            workers: self.workers.clone(),
            local: self.local,
            keys: self.keys.clone(),
            json: self.json.clone(),
            store: StoreArg { store: self.store.store.clone() },
            binary: false,
            workload: WorkloadArgs::default(),
        }
    }
}

/// Runs it.
///
/// # Errors
/// Whatever ends it before the first point: usage, keys, files, a fleet that is not ready.
pub fn run(args: CalibrateArgs) -> Result<Exit, Failure> {
    if args.local.is_none() && args.workers.is_none() {
        return Err(Failure { exit: Exit::Usage, text: NO_FLEET.to_owned() });
    }
    let started = clock::wall();
    let id = store::campaign_id(started, run::random());
    let loader = Loader::new(&args, &id)?;
    let run_args = args.as_run();
    let outputs = reporter::Outputs { table: false, ..run::outputs(&run_args)? };
    let fleet = Fleet::of(&run_args, &loader.load(&text(&[1], &args.engines))?, &id)?;
    let (engines, cores) = possible(&args.engines, &fleet, &loader)?;
    let threads = match args.threads.as_slice() {
        [] => default_threads(cores, args.local),
        told => told.to_vec(),
    };
    let scenario = loader.load(&text(&threads, &engines))?;
    let plan = plan(&scenario, &fleet)?;
    let record = aggregate::campaign(&id, &scenario, &run::hostname(), started);
    let config = fleet.config(&id, &scenario, plan.clone());
    let reporter = reporter::Reporter::new(plan, &scenario, record, outputs);
    let reported = run::conduct(config, &fleet, move |events| reporter.run(events))?;
    if run_args.json_alone() {
        let json = json::to_string(&reported.record);
        reporter::print(&json.map_err(|error| Failure::new(Exit::Fault, &error))?)?;
    } else if !reported.record.points.is_empty() {
        reporter::print(&report::calibration(&reported.record))?;
    }
    reported.left.iter().for_each(|left| reporter::complain(left));
    Ok(reported.exit)
}

fn plan(scenario: &Scenario, fleet: &Fleet) -> Result<Plan, Failure> {
    let count = u32::try_from(fleet.workers.len()).unwrap_or(u32::MAX);
    Plan::new(scenario, count).map_err(|error| Failure::new(Exit::Scenario, &error))
}

/// Makes scenarios from texts, with what the command line says of them.
struct Loader {
    context: Context,
    target: Option<Override>,
    set: Vec<Override>,
}

impl Loader {
    fn new(args: &CalibrateArgs, id: &str) -> Result<Self, Failure> {
        let changed = |change: &String| {
            Override::set(change).map_err(|error| Failure::new(Exit::Usage, &error))
        };
        let target = target(args, id).map(|path| changed(&format!("target.path={path}")));
        Ok(Self {
            context: Context { local: args.local.is_some(), workers_flag: args.workers.clone() },
            target: target.transpose()?,
            set: args.set.iter().map(changed).collect::<Result<_, _>>()?,
        })
    }

    fn load(&self, text: &str) -> Result<Scenario, Failure> {
        self.load_with(text, &self.set)
    }

    fn load_with(&self, text: &str, set: &[Override]) -> Result<Scenario, Failure> {
        let source = Source { name: NAME.to_owned(), text: text.to_owned() };
        let changes: Vec<Override> = self.target.iter().chain(set).cloned().collect();
        scenario::load(&source, &changes, &self.context).map_err(|error| Failure {
            exit: Exit::Scenario,
            text: format!("the calibration is not valid\n{:?}", miette::Report::new(error)),
        })
    }
}

/// Where the files go, if that is not left to the fleet; says which place was chosen.
fn target(args: &CalibrateArgs, id: &str) -> Option<String> {
    if args.path.is_some() || args.local.is_none() {
        return args.path.clone();
    }
    let most = args.threads.iter().copied().max().unwrap_or_else(own_cores);
    let threads = u64::from(most).saturating_mul(u64::from(args.local.unwrap_or(1)));
    // Twice the files: those of a pass go only when the next one's are made.
    let needed = threads.saturating_mul(2 * FILE_BYTES);
    if has_room_in_memory(Path::new(MEMORY), needed) {
        let path = format!("{MEMORY}/iofleet-calibration-{id}");
        reporter::complain(&format!("the files lie in memory, in {path}"));
        return Some(path);
    }
    reporter::complain(
        "the files lie in the working directory, for /dev/shm is no tmpfs or has no room; what is \
         below it is measured too unless it lies in memory (--path)",
    );
    None
}

fn has_room_in_memory(path: &Path, needed: u64) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| {
        let unit = u64::try_from(found.f_bsize).unwrap_or(0);
        found.f_type == TMPFS && found.f_bavail.saturating_mul(unit) >= needed
    })
}

/// Cores that this process may use.
fn own_cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(u32::MAX)
}

/// One thread, and one for each core of the smallest node; local workers share one machine's.
fn default_threads(cores: u32, local: Option<u32>) -> Vec<u32> {
    let most = (cores / local.unwrap_or(1).max(1)).max(1);
    if most == 1 { vec![1] } else { vec![1, most] }
}

/// Engines that every node can do, and the fewest cores of a node.
fn possible(
    engines: &[EngineName],
    fleet: &Fleet,
    loader: &Loader,
) -> Result<(Vec<EngineName>, u32), Failure> {
    let ask = |engine| -> Result<Result<u32, (Exit, String)>, Failure> {
        let scenario = loader.load_with(&question(engine), &[])?;
        let plan = plan(&scenario, fleet)?;
        let id = store::campaign_id(clock::wall(), run::random());
        run::conduct(fleet.config(&id, &scenario, plan), fleet, answer)
    };
    // Every node has the engine null: what fails with it is no matter of engines.
    let cores = ask(EngineName::Null)?.map_err(|(exit, text)| Failure { exit, text })?;
    let mut kept: Vec<EngineName> = Vec::new();
    for engine in engines.iter().copied() {
        if kept.contains(&engine) {
            continue;
        }
        match ask(engine)? {
            Ok(_) => kept.push(engine),
            Err((Exit::Interrupted, text)) => {
                return Err(Failure { exit: Exit::Interrupted, text });
            }
            Err((_, why)) => reporter::complain(&left_out(engine, &why)),
        }
    }
    Ok((kept, cores))
}

fn left_out(engine: EngineName, why: &str) -> String {
    format!("the engine {} is left out: {why}", engine.name())
}

/// What a campaign that only asks came to: the fewest cores of a node, or why it did not run.
fn answer(events: &Receiver<RunEvent>) -> Result<u32, (Exit, String)> {
    let (mut cores, mut why) = (None, None);
    let mut exit = Exit::Fleet;
    while let Ok(event) = events.recv() {
        match event {
            RunEvent::FleetReady(nodes) => cores = nodes.iter().map(|node| node.host.cpus).min(),
            RunEvent::PointEnded(outcome) => {
                let lost = outcome.nodes.values().find_map(|node| node.lost.clone());
                why = why.or_else(|| outcome.failed.clone()).or(lost);
            }
            RunEvent::PointSkipped { why: text, .. } => why = why.or(Some(text)),
            RunEvent::Ended(ending) => {
                if ending.exit != Exit::Done {
                    exit = ending.exit;
                    why = ending.message.or(why).or_else(|| Some("it did not run".to_owned()));
                }
            }
            RunEvent::PointArming { .. }
            | RunEvent::PointStarted { .. }
            | RunEvent::Progress { .. }
            | RunEvent::Warning(_)
            | RunEvent::Cleaned(_) => {}
        }
    }
    match (why, cores) {
        (None, Some(cores)) => Ok(cores),
        (why, _) => Err((exit, why.unwrap_or_else(|| "no node answered".to_owned()))),
    }
}

/// A tiny campaign with an engine.
fn question(engine: EngineName) -> String {
    format!(
        "name = \"{NAME}\"\n[workload]\nfile_size = \"4 KiB\"\nblock = \"4 KiB\"\ndirect = false\n\
         threads_per_node = 1\nfsync = \"none\"\n[[stage]]\nop = \"write\"\nengine = \"{}\"\n{}",
        engine.name(),
        engine.depth()
    )
}

/// The calibration itself: files, random reads by each engine, then the filling of fresh data.
fn text(threads: &[u32], engines: &[EngineName]) -> String {
    let threads: Vec<String> = threads.iter().map(u32::to_string).collect();
    let mut text = format!(
        "name = \"{NAME}\"\n\
         question = \"What can the generator itself do on each node, and what does an operation cost?\"\n\
         [workload]\nfile_size = \"16 MiB\"\ndirect = false\ninterval = \"100 ms\"\n\
         [sweep]\nthreads_per_node = [{}]\n\
         [[stage]]\nname = \"prepare\"\nop = \"write\"\nblock = \"1 MiB\"\n",
        threads.join(", ")
    );
    for engine in engines {
        let _ = write!(
            text,
            "[[stage]]\nname = \"{}\"\nop = \"read\"\nengine = \"{}\"\npattern = \"random\"\n\
             block = \"4 KiB\"\n{TIMES}{}",
            engine.name(),
            engine.name(),
            engine.depth()
        );
    }
    if engines.contains(&EngineName::Null) {
        let _ = write!(
            text,
            "[[stage]]\nname = \"fill\"\nop = \"write\"\nengine = \"null\"\nblock = \"1 MiB\"\n{TIMES}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        let context = Context { local: true, workers_flag: None };
        let loader = Loader { context, target: None, set: Vec::new() };
        loader.load(text).unwrap_or_else(|failure| panic!("{}\n{text}", failure.text))
    }

    #[test]
    fn each_engine_has_a_stage_for_each_number_of_threads() {
        let all = EngineName::value_variants();
        let plan = Plan::new(&scenario(&text(&[1, 3], all)), 2).unwrap();
        let stages: Vec<&str> = plan.points.iter().map(|p| p.spec.stage.as_str()).collect();
        let pass = ["prepare", "null", "sync", "io_uring", "libaio", "mmap", "fill"];
        assert_eq!(stages, [pass, pass].concat());
        let depths: Vec<u32> = plan.points.iter().map(|p| p.spec.params.engine.depth).collect();
        assert_eq!(depths[..7], [1, 1, 1, 32, 32, 1, 1]);
        assert_eq!((plan.points[0].threads, plan.points[7].threads), (2, 6));
        assert_eq!(plan.points[7].bytes, Some(6 * FILE_BYTES));
        let few = Plan::new(&scenario(&text(&[1], &[EngineName::Sync])), 1).unwrap();
        assert_eq!(few.points.len(), 2, "filling is of the engine null");
        for engine in all {
            assert_eq!(scenario(&question(*engine)).points.len(), 1);
        }
    }

    #[test]
    fn threads_are_those_of_the_smallest_node() {
        assert_eq!(default_threads(16, None), [1, 16]);
        assert_eq!(default_threads(16, Some(3)), [1, 5]);
        assert_eq!(default_threads(2, Some(4)), [1]);
    }

    #[test]
    fn what_a_fleet_refuses_is_told_in_its_words() {
        let answer_of = |events: Vec<RunEvent>| {
            let (sender, receiver) = std::sync::mpsc::channel();
            events.into_iter().for_each(|event| sender.send(event).unwrap());
            drop(sender);
            answer(&receiver)
        };
        let ended = |exit, message: Option<&str>| {
            RunEvent::Ended(crate::events::Ending { exit, message: message.map(str::to_owned) })
        };
        let why = "client02: engine = \"mmap\" on /p: the file system makes no shared mapping";
        let refused = answer_of(vec![ended(Exit::Fleet, Some(why))]).unwrap_err();
        assert_eq!(refused, (Exit::Fleet, why.to_owned()));
        let said = left_out(EngineName::Mmap, &refused.1);
        assert_eq!(said, format!("the engine mmap is left out: {why}"));
        assert_eq!(answer_of(vec![]).unwrap_err().1, "no node answered");
    }

    #[test]
    fn memory_without_room_is_not_taken() {
        assert!(!has_room_in_memory(Path::new(MEMORY), u64::MAX));
        assert!(!has_room_in_memory(Path::new("/proc"), 0));
    }
}
