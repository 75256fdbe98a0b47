//! `iofleet plan`: says in words and numbers what a scenario would run. Asks no worker.

use std::{fmt::Write, io, path::PathBuf};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use iofleet_shared::{
    units::{Time, format_count, format_duration_ns, format_size},
    work::OpKind,
};

use super::{Failure, printed, run, workload::WorkloadArgs};
use crate::{
    exit::Exit,
    plan::{Plan, PointPlan},
    scenario::{self, Context, OnFault, PointSpec, Scenario},
};

mod stage;

/// Arguments of `iofleet plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The scenario; without one, the built-in quick ramp.
    pub scenario: Option<PathBuf>,
    /// The fleet, as a host list; only its size matters.
    #[arg(long, value_name = "LIST", env = "IOFLEET_WORKERS", conflicts_with = "local")]
    pub workers: Option<String>,
    /// Plan for a local fleet of N workers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=run::LOCAL_MAX))]
    pub local: Option<u32>,
    #[command(flatten)]
    pub workload: WorkloadArgs,
}

/// Says what would run.
///
/// # Errors
/// When the scenario is not valid or does not fit the fleet.
pub fn run(args: &PlanArgs, out: &mut dyn io::Write) -> Result<Exit, Failure> {
    let context = Context { local: args.local.is_some(), workers_flag: args.workers.clone() };
    let scenario = run::load(args.scenario.as_deref(), &args.workload, &context)?;
    let workers = u32::try_from(scenario.fleet.workers.len()).unwrap_or(u32::MAX);
    let plan = Plan::new(&scenario, args.local.unwrap_or(workers))
        .map_err(|error| Failure::new(Exit::Scenario, &error))?;
    printed(write!(out, "{}", describe(&scenario, &plan)))
}

/// What would run: question, fleet, target, stages in words, points, totals.
#[must_use]
pub fn describe(scenario: &Scenario, plan: &Plan) -> String {
    let mut text = format!("Scenario {}", scenario.name);
    if let Some(question) = &scenario.question {
        let _ = write!(text, ": {question}");
    }
    text.push_str("\n\n");
    text.push_str(&fleet(scenario, plan));
    text.push_str("\nStages\n");
    for point in one_of_each_stage(plan) {
        let words = stage::sentence(point).replace('\n', "\n    ");
        let _ = writeln!(text, "  {}: {words}", point.spec.stage);
    }
    text.push_str(&policy(plan));
    let _ = writeln!(text, "\n{}", points(plan));
    text.push_str(&totals(scenario, plan));
    text
}

fn fleet(scenario: &Scenario, plan: &Plan) -> String {
    let nodes = count(u64::from(plan.nodes), "node", "nodes");
    let names: Vec<&str> =
        scenario.fleet.workers.iter().map(|worker| worker.name.as_str()).collect();
    let mut text = match names.as_slice() {
        [] => format!("Fleet    {nodes} on this machine\n"),
        names if names.len() <= NAMES_MAX => {
            format!("Fleet    {nodes}: {}\n", names.join(", "))
        }
        [first, .., last] => format!("Fleet    {nodes}: {first} … {last}\n"),
        [one] => format!("Fleet    {nodes}: {one}\n"),
    };
    let path = scenario.target.path.as_deref().unwrap_or("a fresh directory below this one");
    let files = if scenario.target.keep {
        "files are kept at the end"
    } else {
        "files are removed at the end"
    };
    let _ = writeln!(text, "Target   {path}; {files}");
    if let Some(limit) = scenario.fleet.network_limit {
        let _ = writeln!(text, "Network  at most {} in one direction", scenario::rate(limit));
    }
    if !scenario.fleet.link_speed.is_empty() {
        let _ = writeln!(text, "Links    {} for each node", scenario.fleet.link_speed);
    }
    if !scenario.fleet.observers.is_empty() {
        let names = scenario.fleet.observers.iter().map(|host| host.name.as_str());
        let names: Vec<&str> = names.collect();
        let _ = writeln!(text, "Watched  {}", names.join(", "));
    }
    for demand in &scenario.require {
        let _ = writeln!(text, "Demands  {demand}");
    }
    if let Some(limit) = scenario.fleet.storage_limit {
        let _ = writeln!(text, "Storage  at most {} in one direction", scenario::rate(limit));
    }
    text
}

/// The first point of each stage.
fn one_of_each_stage(plan: &Plan) -> impl Iterator<Item = &PointPlan> {
    plan.points.iter().take_while(|point| point.spec.group == 0)
}

/// What else holds for all points, where it is the same for all.
fn policy(plan: &Plan) -> String {
    let Some(first) = plan.points.first() else {
        return String::new();
    };
    let params = &first.spec.params;
    let same = |same: &dyn Fn(&PointSpec) -> bool| plan.points.iter().all(|p| same(&p.spec));
    let mut text = String::new();
    if same(&|point| point.params.on_fault == params.on_fault) {
        text.push_str(match params.on_fault {
            OnFault::Continue => "When a worker is lost, later points run without it.\n",
            OnFault::Abort => "When a worker is lost, the campaign ends.\n",
        });
    }
    if same(&|point| point.params.interval_ns == params.interval_ns)
        && same(&|point| point.params.stuck_after_ns == params.stuck_after_ns)
        && same(&|point| point.params.seed == params.seed)
    {
        let _ = writeln!(
            text,
            "The series has intervals of {}; an operation that takes longer than {} is given up; \
             seed {}.",
            Time::from_ns(params.interval_ns),
            Time::from_ns(params.stuck_after_ns),
            params.seed
        );
    }
    text
}

fn points(plan: &Plan) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let repeated = plan.points.iter().any(|point| point.spec.repeat > 0);
    let mut header = vec!["point", "stage"];
    if repeated {
        header.push("repeat");
    }
    header.extend(["threads", "nodes", "swept", "bytes", "operations", "time"]);
    table.set_header(header);
    for point in &plan.points {
        let spec = &point.spec;
        let swept: Vec<String> = spec
            .swept
            .iter()
            .filter(|(key, _)| key != "threads")
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let mut row = vec![spec.index.to_string(), spec.stage.clone()];
        if repeated {
            row.push((spec.repeat + 1).to_string());
        }
        row.extend([
            point.threads.to_string(),
            point.active.len().to_string(),
            if swept.is_empty() { "–".to_owned() } else { swept.join(" ") },
            point.bytes.map_or_else(|| open(point), format_size),
            point.ops.map_or_else(|| open(point), format_count),
            time_ns(point).map_or_else(|| BY_SIZE.to_owned(), |ns| Time::from_ns(ns).to_string()),
        ]);
        table.add_row(row);
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        let left = place == 1 || column_is_swept(place, repeated);
        column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
    }
    table
}

/// What stands for a figure that is not known beforehand.
fn open(point: &PointPlan) -> String {
    let by_size = point.spec.params.duration_ns.is_none();
    if by_size { BY_MIX.to_owned() } else { BY_TIME.to_owned() }
}

fn column_is_swept(place: usize, repeated: bool) -> bool {
    place == if repeated { 5 } else { 4 }
}

/// Length of a point by time.
fn time_ns(point: &PointPlan) -> Option<u64> {
    let params = &point.spec.params;
    params.duration_ns.map(|duration| duration.saturating_add(params.ramp_ns))
}

fn totals(scenario: &Scenario, plan: &Plan) -> String {
    let timed = |point: &&PointPlan| point.spec.params.duration_ns.is_some();
    let by_time = plan.points.iter().filter(timed).count() as u64;
    let by_size = plan.points.len() as u64 - by_time;
    let mut text = format!("\n{}.\n", count(plan.points.len() as u64, "point", "points"));
    if by_size > 0 {
        let sum = |of: &dyn Fn(&PointPlan) -> Option<u64>| {
            plan.points.iter().filter_map(of).fold(0_u64, u64::saturating_add)
        };
        let only = |point: &PointPlan, op| point.spec.params.ops.iter().all(|s| s.op == op);
        let bytes = |op| sum(&|point| point.bytes.filter(|_| only(point, op)));
        let mixed = sum(&|point| point.bytes.filter(|_| point.spec.params.is_mix()));
        let mixed = if mixed > 0 { format!("{} in mixes, ", exact(mixed)) } else { String::new() };
        let _ = writeln!(
            text,
            "{}: {} written, {} read, {mixed}{}.",
            if by_time > 0 { "By size" } else { "All in all" },
            exact(bytes(OpKind::Write)),
            exact(bytes(OpKind::Read)),
            count(sum(&|point| point.ops), "operation", "operations")
        );
        let open = plan.points.iter().filter(|point| !timed(point) && point.ops.is_none()).count();
        if open > 0 {
            let _ = writeln!(
                text,
                "{} by size; how much they do is drawn, or depends on what stages before leave.",
                count(open as u64, "point is", "points are")
            );
        }
    }
    if by_time > 0 {
        let _ = writeln!(
            text,
            "{} by time; how much is moved is known once they ran.",
            count(by_time, "point is", "points are")
        );
    }
    let _ = writeln!(
        text,
        "Greatest space: {} in {}.",
        format_size(plan.space_bytes),
        count(plan.files, "file", "files")
    );
    text.push_str(&least_time(scenario, plan, by_size));
    text
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes over a rate above zero; what does not fit saturates"
)]
fn least_time(scenario: &Scenario, plan: &Plan, by_size: u64) -> String {
    let timed = plan.points.iter().filter_map(time_ns).fold(0_u64, u64::saturating_add);
    if by_size == 0 {
        return format!(
            "Least time: {}, and what lies between points.\n",
            format_duration_ns(timed)
        );
    }
    let Some(limit) = scenario.fleet.network_limit else {
        let known = if timed > 0 {
            format!("{} for the points by time, and ", format_duration_ns(timed))
        } else {
            String::new()
        };
        return format!(
            "Least time: {known}as long as it takes for the {} by size; with a network limit \
             (`--network-limit 400Gbit/s`) it could be told.\n",
            if by_size == 1 { "point" } else { "points" }
        );
    };
    let bytes: f64 = plan.points.iter().filter_map(|point| point.bytes).map(|b| b as f64).sum();
    let moving = (bytes / limit * 1e9) as u64;
    format!(
        "Least time: {} at the network's limit, and what lies between points.\n",
        format_duration_ns(timed.saturating_add(moving))
    )
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", format_count(number), if number == 1 { one } else { many })
}

/// As many names of nodes are listed; of more, the first and the last.
const NAMES_MAX: usize = 8;
const BY_TIME: &str = "by time";
/// By size, and yet not known: sizes are drawn, or what there is depends on the stage before.
const BY_MIX: &str = "open";
const BY_SIZE: &str = "by size";

/// `7 GiB (7,516,192,768 bytes)`.
fn exact(bytes: u64) -> String {
    format!("{} ({} bytes)", format_size(bytes), format_count(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Context, Source, load};

    fn described(text: &str, nodes: u32, context: &Context) -> String {
        let source = Source { name: "s.toml".to_owned(), text: text.to_owned() };
        let scenario = load(&source, &[], context).unwrap();
        let text = describe(&scenario, &Plan::new(&scenario, nodes).unwrap());
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_ramp_by_size() {
        let text = "name = \"ramp\"\nquestion = \"How fast?\"\n[fleet]\nworkers = \"client[01-02]\"\n\
                    network_limit = \"8 Gbit/s\"\n[target]\npath = \"/mnt/x\"\n[workload]\n\
                    file_size = \"1 GiB\"\n[sweep]\nthreads = [1, 2, 4]\n";
        insta::assert_snapshot!(described(text, 2, &Context::default()), @r"
    Scenario ramp: How fast?

    Fleet    2 nodes: client01, client02
    Target   /mnt/x; files are removed at the end
    Network  at most 8 Gbit/s in one direction

    Stages
      write: each thread writes a file of its own of 1 GiB in blocks of 1 MiB,
        in ascending order, with direct I/O; each block once; fsync after its last operation; files are made anew.
      read: each thread reads a file of its own of 1 GiB in blocks of 1 MiB,
        in ascending order, with direct I/O; each block once.
    When a worker is lost, later points run without it.
    The series has intervals of 1 s; an operation that takes longer than 60 s is given up; seed 1.

     point  stage  threads  nodes  swept  bytes  operations     time
         0  write        1      1  –      1 GiB       1,024  by size
         1  read         1      1  –      1 GiB       1,024  by size
         2  write        2      2  –      2 GiB       2,048  by size
         3  read         2      2  –      2 GiB       2,048  by size
         4  write        4      2  –      4 GiB       4,096  by size
         5  read         4      2  –      4 GiB       4,096  by size

    6 points.
    All in all: 7 GiB (7,516,192,768 bytes) written, 7 GiB (7,516,192,768 bytes) read, 14,336 operations.
    Greatest space: 4 GiB in 4 files.
    Least time: 15.0 s at the network's limit, and what lies between points.
    ");
    }

    /// The sentences of all stages, each on a line.
    fn stages(text: &str) -> String {
        let local = Context { local: true, workers_flag: None };
        let told = described(text, 2, &local);
        let (_, rest) = told.split_once("Stages\n").unwrap();
        let (stages, _) = rest.split_once("When a worker").unwrap();
        stages.replace("\n    ", " ")
    }

    #[test]
    fn what_a_stage_does_in_words() {
        let text = "[workload]\nlayout = \"tree\"\ndirs = 2\nfiles = 1000\nthreads_per_node = 2\n\
                    [[stage]]\nop = \"create\"\n[[stage]]\nop = \"mix\"\nduration = \"5 s\"\n\
                    mix = \"stat 2, open 1\"\nrate = \"5000 op/s\"\nrate_per = \"node\"\n\
                    [[stage]]\nop = \"write\"\nfresh = false\nfile_size = \"4 KiB 3, 8 KiB 1\"\n\
                    block = \"4 KiB\"\nfsync = \"none\"\n";
        insta::assert_snapshot!(stages(text), @r#"
        create: each of 2 threads on each node creates files in a tree of its own of 2 directories with 1,000 files in each, each name once; the tree is begun anew.
        mix: each of 2 threads on each node does a mix of operations on names in a tree of its own of 2 directories with 1,000 files in each, for 5 s, again from the start when it comes to the end; 66.7 % stat, 33.3 % open of operations; operations arrive at 5000 op/s of each node with even gaps.
        write: each of 2 threads on each node rewrites a tree of its own of 2 directories with 1,000 files in each, of 4 KiB (75 %) or 8 KiB (25 %), in blocks of 4 KiB, in ascending order, with direct I/O; each block once; no fsync.
        "#);
        let text = "[workload]\nfile_size = \"1 GiB\"\nverify = \"no-stale\"\nengine = \"io_uring\"\n\
                    [[stage]]\nop = \"write\"\nblock = \"64 KiB\"\nthink = \"1 ms\"\nburst = 4\n\
                    depth = 1\n[[stage]]\nop = \"mix\"\nmix = \"read 70, write 30\"\n\
                    pattern = \"zipf\"\nduration = \"1 min\"\nsqpoll = true\ndepth = 16\n\
                    [[stage]]\nop = \"read\"\nengine = \"mmap\"\nadvice = \"random\"\n\
                    duration = \"1 s\"\npattern = \"normal\"\n";
        insta::assert_snapshot!(stages(text), @r#"
        write: one thread writes a file of its own of 1 GiB in blocks of 64 KiB, in ascending order, with direct I/O; each block once; io_uring with 1 operation in flight; a pause of 1 ms after 4 operations; fsync after its last operation; what is written can be verified; files are made anew.
        mix: one thread does a mix of operations on a file of its own of 1 GiB in blocks of 1 MiB, at random by Zipf's law (theta 1.2), with direct I/O; for 60 s; 30 % write, 70 % read of operations; io_uring with 16 operations in flight; the kernel polls for submissions; fsync after its last operation; what is read is verified, but not whether it is stale; files stay.
        read: one thread reads a file of its own of 1 GiB in blocks of 1 MiB, at random around the middle (standard deviation 0.1 of the range), through a mapping of the file; for 1 s; the kernel is told of random accesses; what is read is verified, but not whether it is stale.
        "#);
    }

    #[test]
    fn points_by_time_with_repetitions() {
        let text = "[workload]\nfile_size = \"64 MiB\"\nthreads = 2\nlayout = \"shared-file\"\n\
                    [target]\nkeep = true\n[sweep]\nblock = [\"4 KiB\", \"1 MiB\"]\nrepeat = 2\n\
                    [[stage]]\nop = \"write\"\nfsync = \"none\"\n[[stage]]\nop = \"read\"\n\
                    duration = \"10 s\"\nramp = \"2 s\"\npattern = \"random\"\ndirect = false\n";
        let local = Context { local: true, workers_flag: None };
        insta::assert_snapshot!(described(text, 1, &local), @r"
    Scenario s

    Fleet    1 node on this machine
    Target   a fresh directory below this one; files are kept at the end

    Stages
      write: each of 2 threads writes its part of one shared file of 64 MiB in blocks of the swept size,
        in ascending order, with direct I/O; each block once; no fsync; files are made anew.
      read: each of 2 threads reads its part of one shared file of 64 MiB in blocks of the swept size,
        at random, with repetition, through the page cache; for 10 s after 2 s of warm-up.
    When a worker is lost, later points run without it.
    The series has intervals of 1 s; an operation that takes longer than 60 s is given up; seed 1.

     point  stage  repeat  threads  nodes  swept          bytes  operations     time
         0  write       1        2      1  block=4 KiB   64 MiB      16,384  by size
         1  read        1        2      1  block=4 KiB  by time     by time     12 s
         2  write       2        2      1  block=4 KiB   64 MiB      16,384  by size
         3  read        2        2      1  block=4 KiB  by time     by time     12 s
         4  write       1        2      1  block=1 MiB   64 MiB          64  by size
         5  read        1        2      1  block=1 MiB  by time     by time     12 s
         6  write       2        2      1  block=1 MiB   64 MiB          64  by size
         7  read        2        2      1  block=1 MiB  by time     by time     12 s

    8 points.
    By size: 256 MiB (268,435,456 bytes) written, 0 B (0 bytes) read, 32,896 operations.
    4 points are by time; how much is moved is known once they ran.
    Greatest space: 64 MiB in 1 file.
    Least time: 48.0 s for the points by time, and as long as it takes for the points by size; with a network limit (`--network-limit 400Gbit/s`) it could be told.
    ");
    }
}
