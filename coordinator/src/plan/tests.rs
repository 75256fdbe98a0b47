//! Plans of small scenarios, with answers worked out by hand.

use iofleet_shared::{
    ids::PointId,
    stats::{CpuTime, FileTimes, NamesLeft, ThreadEnd, ThreadReport, Written, WrittenPart},
    work::{Extent, FilePart, Files, OpKind, Pattern, ThreadPlan, TreePart, WorkerPlan},
};
use proptest::prelude::*;

use super::*;
use crate::scenario::{Context, Source, load};

mod kinds;

const MIB: u64 = 1 << 20;

pub(crate) fn scenario(text: &str) -> Scenario {
    let source = Source { name: "test.toml".to_owned(), text: text.to_owned() };
    let context = Context { local: true, workers_flag: None };
    load(&source, &[], &context).unwrap_or_else(|error| panic!("{:?}", error.lines()))
}

fn dir() -> DatasetDir {
    DatasetDir { path: "/t".to_owned(), name: "d".to_owned(), campaign: "c".to_owned() }
}

/// What the first worker must know.
pub(crate) fn target(plan: &Plan) -> TargetSpec {
    plan.target_spec(NodeIndex(0), dir())
}

fn report(thread: u32, written: Written) -> ThreadReport {
    ThreadReport {
        thread,
        end: ThreadEnd::Finished,
        counts: Vec::new(),
        cpu: CpuTime::default(),
        short_transfers: 0,
        first_issue_ns: None,
        begin_ns: None,
        ended_ns: None,
        busy_begin_ns: None,
        busy_end_ns: None,
        fsync_ns: None,
        open_ns: 0,
        files: FileTimes::default(),
        bytes_touched: None,
        passes_milli: 0,
        unfinished: 0,
        unfinished_ns: None,
        written: vec![WrittenPart { file: 0, written }],
        names: None,
        damages: Vec::new(),
    }
}

/// The one part of a file that a thread has.
fn part(thread: &ThreadPlan) -> &FilePart {
    match &thread.files {
        Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => {
            assert_eq!(parts.len(), 1);
            &parts[0]
        }
        Files::Tree(_) => panic!("a tree"),
    }
}

fn tree(thread: &ThreadPlan) -> &TreePart {
    match &thread.files {
        Files::Tree(tree) => tree,
        Files::Named(_) | Files::Listed(_) | Files::Devices(_) => panic!("no tree"),
    }
}

/// What a thread that did all of its operations leaves of its names.
fn names_left(thread: &ThreadPlan) -> Option<NamesLeft> {
    let Files::Tree(tree) = &thread.files else { return None };
    let mut left = NamesLeft { names: tree.existing, renamed: Some(tree.renamed) };
    for share in &thread.ops {
        let names = &mut left.names;
        match share.op {
            OpKind::Mkdir => names.dirs = tree.dirs,
            OpKind::Create | OpKind::Write => {
                (names.dirs, names.files) = (tree.dirs, tree.files());
            }
            OpKind::Unlink => names.gone = names.files,
            OpKind::Rmdir => names.dirs = 0,
            OpKind::Rename => left.renamed = Some(!tree.renamed),
            OpKind::Read | OpKind::Stat | OpKind::Open | OpKind::Readdir => {}
        }
    }
    Some(left)
}

/// All worker plans of a run in which every write does all of its share.
pub(crate) fn run(plan: &Plan) -> Vec<Vec<WorkerPlan>> {
    let mut manifest = Manifest::default();
    plan.points.iter().map(|point| step(point, plan.nodes, &mut manifest, Written::All)).collect()
}

fn did(thread: &ThreadPlan, written: &Written) -> ThreadReport {
    let writes = thread.ops.iter().any(|share| share.op == OpKind::Write);
    let written = if writes { written.clone() } else { Written::Nothing };
    ThreadReport { names: names_left(thread), ..report(thread.thread, written) }
}

fn step(
    point: &PointPlan,
    nodes: u32,
    manifest: &mut Manifest,
    written: Written,
) -> Vec<WorkerPlan> {
    let plans: Vec<WorkerPlan> = (0..nodes)
        .filter_map(|node| point.worker_plan(NodeIndex(node), dir(), manifest, 0).unwrap())
        .collect();
    for plan in &plans {
        manifest.begin(plan);
    }
    for plan in &plans {
        let reports: Vec<_> = plan.threads.iter().map(|thread| did(thread, &written)).collect();
        manifest.record(plan, &reports);
    }
    plans
}

#[test]
fn threads_keep_their_node_and_file_through_a_ramp() {
    let scenario = scenario("[workload]\nfile_size = \"4 MiB\"\n[sweep]\nthreads = [1, 2, 3, 7]\n");
    let plan = Plan::new(&scenario, 3).unwrap();
    assert_eq!(plan.points.len(), 8);
    for (point, worker_plans) in plan.points.iter().zip(run(&plan)) {
        let mut seen = 0;
        for (node, worker) in point.active.iter().zip(&worker_plans) {
            let threads: Vec<u32> = worker.threads.iter().map(|thread| thread.thread).collect();
            assert_eq!(threads, point.threads_of(*node).collect::<Vec<_>>());
            assert_eq!(threads.len(), point.threads_on(*node) as usize);
            for thread in &worker.threads {
                assert_eq!(thread.thread % 3, node.0);
                assert_eq!(part(thread).file, format!("t{:05}", thread.thread));
                assert_eq!(part(thread).extents, [Extent { offset: 0, length: 4 * MIB }]);
                assert_eq!(thread.operations, 4);
                seen += 1;
            }
        }
        assert_eq!(seen, point.threads);
        assert_eq!(worker_plans.len(), point.active.len());
    }
    assert_eq!(plan.points[2].active, [NodeIndex(0), NodeIndex(1)]);
    assert_eq!(plan.points[2].threads_on(NodeIndex(2)), 0);
    let standby = plan.points[2].worker_plan(NodeIndex(2), dir(), &Manifest::default(), 0);
    assert_eq!(standby, Ok(None));
    assert_eq!(plan.points[6].threads_of(NodeIndex(0)).collect::<Vec<_>>(), [0, 3, 6]);
    assert_eq!(plan.points[6].bytes, Some(28 * MIB));
    assert_eq!(plan.points[6].ops, Some(28));
    assert_eq!((plan.space_bytes, plan.files), (28 * MIB, 7));
}

#[test]
fn a_shared_file_is_dealt_by_blocks_and_made_anew() {
    let scenario = scenario(
        "[workload]\nlayout = \"shared-file\"\nfile_size = \"10 MiB\"\n[sweep]\nthreads = [2, 4]\n",
    );
    let plan = Plan::new(&scenario, 2).unwrap();
    let runs = run(&plan);
    let files: Vec<&str> =
        runs.iter().map(|plans| part(&plans[0].threads[0]).file.as_str()).collect();
    assert_eq!(files, ["shared-0", "shared-0", "shared-1", "shared-1"]);
    assert!(runs[0][0].create && !runs[1][0].create);
    assert_eq!(runs[0][0].remove, Vec::<String>::new());
    assert_eq!(runs[2][0].remove, ["shared-0"]);
    assert_eq!(runs[2][1].remove, Vec::<String>::new());
    // Ten blocks among four threads: 3, 3, 2, 2, and node 0 has threads 0 and 2.
    let of = |worker: &WorkerPlan| -> Vec<(u64, u64)> {
        let extents = worker.threads.iter().flat_map(|thread| &part(thread).extents);
        extents.map(|extent| (extent.offset / MIB, extent.length / MIB)).collect()
    };
    assert_eq!(of(&runs[3][0]), [(0, 3), (6, 2)]);
    assert_eq!(of(&runs[3][1]), [(3, 3), (8, 2)]);
    assert_eq!(plan.points[3].bytes, Some(10 * MIB));
    assert_eq!((plan.space_bytes, plan.files), (10 * MIB, 1));
}

#[test]
fn a_shared_file_whose_point_was_skipped_is_removed_later() {
    let scenario = scenario(
        "[workload]\nlayout = \"shared-file\"\nfile_size = \"4 MiB\"\n[sweep]\nrepeat = 3\n",
    );
    let plan = Plan::new(&scenario, 1).unwrap();
    let mut manifest = Manifest::default();
    step(&plan.points[0], 1, &mut manifest, Written::All);
    // Points 2 and 3 never ran; shared-0 is still there.
    let last = step(&plan.points[4], 1, &mut manifest, Written::All);
    assert_eq!(last[0].remove, ["shared-0", "shared-1"]);
    assert_eq!(part(&last[0].threads[0]).file, "shared-2");
    assert!(!manifest.holds("shared-0"));
}

#[test]
fn what_is_tried_again_is_made_under_another_name() {
    for (layout, first, later) in [
        ("layout = \"shared-file\"", "shared-0", "shared-0.1"),
        ("layout = \"tree\"\nfiles = 2", "tree-0", "tree-0.1"),
    ] {
        let text = format!("[workload]\nfile_size = \"4 MiB\"\n{layout}\n[sweep]\nrepeat = 2\n");
        let plan = Plan::new(&scenario(&text), 1).unwrap();
        let name = |plan: &WorkerPlan| match &plan.threads[0].files {
            Files::Tree(tree) => tree.base.clone(),
            Files::Named(_) | Files::Listed(_) | Files::Devices(_) => {
                part(&plan.threads[0]).file.clone()
            }
        };
        let mut manifest = Manifest::default();
        let mut begun = |at: usize, attempt: u32| {
            let worker = plan.points[at].worker_plan(NodeIndex(0), dir(), &manifest, attempt);
            let worker = worker.unwrap().unwrap();
            manifest.begin(&worker);
            let names = iofleet_shared::work::Names { dirs: 1, files: 2, gone: 0 };
            let left = Some(NamesLeft { names, renamed: Some(false) });
            let report = ThreadReport { names: left, ..report(0, Written::All) };
            // The first attempt to write was taken back.
            if (at, attempt) != (0, 0) {
                manifest.record(&worker, &[report]);
            }
            (name(&worker), worker.remove)
        };
        assert_eq!(begun(0, 0), (first.to_owned(), vec![]));
        assert_eq!(begun(0, 1), (later.to_owned(), vec![first.to_owned()]));
        // It is read by that name, whatever the attempt, and removed by it in the next pass.
        assert_eq!(begun(1, 0), (later.to_owned(), vec![]));
        assert_eq!(begun(1, 1), (later.to_owned(), vec![]));
        assert!(begun(2, 0).1.contains(&later.to_owned()));
    }
}

#[test]
fn fresh_files_and_rewrites() {
    let scenario = scenario(
        "[workload]\nfile_size = \"2 MiB\"\nthreads = 2\n\
         [[stage]]\nop = \"write\"\n[[stage]]\nop = \"write\"\nfresh = false\n",
    );
    let plan = Plan::new(&scenario, 1).unwrap();
    let runs = run(&plan);
    assert_eq!(runs[0][0].remove, ["t00000", "t00001"]);
    assert!(runs[0][0].create);
    assert!(runs[1][0].remove.is_empty() && !runs[1][0].create);
    let error = plan.points[1].worker_plan(NodeIndex(0), dir(), &Manifest::default(), 0);
    assert!(error.unwrap_err().starts_with("t00000: there is nothing to rewrite"));
    // The retry is the same plan but for its number.
    let again = plan.points[0].worker_plan(NodeIndex(0), dir(), &Manifest::default(), 1);
    let again = again.unwrap().unwrap();
    assert_eq!(again.point, PointId { index: 0, attempt: 1 });
    assert_eq!(again.threads, runs[0][0].threads);
}

#[test]
fn reads_take_what_was_written() {
    let by_size = scenario(
        "[workload]\nfile_size = \"8 MiB\"\n\
         [[stage]]\nop = \"write\"\nduration = \"1 s\"\n[[stage]]\nop = \"read\"\n",
    );
    let by_time = scenario("[workload]\nfile_size = \"8 MiB\"\nduration = \"1 s\"\n");
    let written = Written::Ranges(vec![Extent { offset: 0, length: 3 * MIB }]);
    for (scenario, fits) in [(by_size, false), (by_time, true)] {
        let plan = Plan::new(&scenario, 1).unwrap();
        let mut manifest = Manifest::default();
        step(&plan.points[0], 1, &mut manifest, written.clone());
        let read = plan.points[1].worker_plan(NodeIndex(0), dir(), &manifest, 0);
        if fits {
            let thread = &read.unwrap().unwrap().threads[0];
            assert_eq!(part(thread).extents, [Extent { offset: 0, length: 3 * MIB }]);
            assert_eq!(thread.operations, 3);
        } else {
            let error = read.unwrap_err();
            assert!(error.starts_with("t00000: only 3 MiB of 8 MiB was written"), "{error}");
        }
        // Nothing was written at all.
        let mut manifest = Manifest::default();
        step(&plan.points[0], 1, &mut manifest, Written::Nothing);
        assert!(plan.points[1].worker_plan(NodeIndex(0), dir(), &manifest, 0).is_err());
    }
}

#[test]
fn files_of_a_descending_ramp_stay() {
    let scenario = scenario(
        "[workload]\nfile_size = \"1 MiB\"\nlayout = \"file-per-thread\"\n\
         [sweep]\nthreads = [4, 1]\n[[stage]]\nop = \"write\"\n",
    );
    let plan = Plan::new(&scenario, 2).unwrap();
    assert_eq!((plan.space_bytes, plan.files), (4 * MIB, 4));
    let text = "[sweep]\nfile_size = [\"1 MiB\", \"4 MiB\"]\nthreads = [3, 1]\n";
    let plan = Plan::new(&self::scenario(text), 2).unwrap();
    // 3 x 1; t0 again; 3 x 4; t0 again.
    assert_eq!((plan.space_bytes, plan.files), (12 * MIB, 3));
    let text = "[sweep]\nfile_size = [\"8 MiB\", \"4 MiB\"]\nthreads = [1, 3]\n\
                layout = [\"shared-file\", \"file-per-thread\"]\n";
    let plan = Plan::new(&self::scenario(text), 2).unwrap();
    // Shared 8, own 8, shared 8 (t0 stays), own 3 x 8 beside the shared 8: 32 MiB, 4 files.
    assert_eq!((plan.space_bytes, plan.files), (32 * MIB, 4));
}

#[test]
fn what_a_worker_must_know_is_the_greatest() {
    let scenario = scenario(
        "[workload]\nfile_size = \"8 MiB\"\n[sweep]\nblock = [\"4 KiB\", \"2 MiB\"]\nthreads = [1, 6]\n\
         [[stage]]\nop = \"write\"\ndirect = false\n[[stage]]\nop = \"read\"\n",
    );
    let plan = Plan::new(&scenario, 4).unwrap();
    let first = plan.target_spec(NodeIndex(0), dir());
    assert_eq!(first.direct_blocks, [4096, 2 * MIB]);
    assert!(first.direct && first.writes);
    assert_eq!((first.threads, first.buffer_bytes), (2, 4 * MIB));
    assert_eq!((first.bytes, first.files), (48 * MIB, 6));
    let last = plan.target_spec(NodeIndex(3), dir());
    assert_eq!((last.threads, last.buffer_bytes), (1, 2 * MIB));
    let alone = Plan::new(&scenario, 9).unwrap().target_spec(NodeIndex(8), dir());
    assert!(!alone.direct && alone.threads == 0 && alone.buffer_bytes == 0);
}

#[test]
fn what_does_not_fit_the_fleet_is_refused() {
    let per_node = "[workload]\nfile_size = \"2 MiB\"\nthreads_per_node = 1000\n";
    let scenario = scenario(per_node);
    let error = |nodes| Plan::new(&scenario, nodes).unwrap_err().to_string();
    assert_eq!(error(0), "a fleet of no nodes: name at least one worker");
    assert_eq!(error(5000), "5000 nodes, more than 4096");
    assert_eq!(error(66), "stage `write`: 1000 threads on each of 66 nodes are more than 65536");
    assert_eq!(Plan::new(&scenario, 65).unwrap().points[0].threads, 65_000);
    let shared = format!("{per_node}layout = \"shared-file\"\n").replace("1000", "2");
    let shared = self::scenario(&shared);
    assert!(Plan::new(&shared, 1).is_ok());
    assert_eq!(
        Plan::new(&shared, 2).unwrap_err().to_string(),
        "stage `write`: 4 threads share a file of 2 blocks: each needs one at least, so make \
         file_size larger"
    );
    let mixed = self::scenario(
        "[workload]\nfile_size = \"2 MiB\"\n[[stage]]\nop = \"write\"\nthreads = 4\n\
         [[stage]]\nop = \"read\"\nthreads_per_node = 2\n",
    );
    assert!(Plan::new(&mixed, 2).is_ok());
    assert_eq!(
        Plan::new(&mixed, 3).unwrap_err().to_string(),
        "stage `read` reads the files of 6 threads, but only 4 were written: read with as many \
         threads as the write stage, or fewer"
    );
    let huge = self::scenario("[workload]\nfile_size = \"4194304 TiB\"\nthreads = 4\n");
    assert_eq!(
        Plan::new(&huge, 1).unwrap_err().to_string(),
        "stage `write`: 4 threads with files of this size are more than 2^64 bytes"
    );
}

#[test]
fn random_patterns_have_seeds_of_their_own() {
    let text = "[workload]\nfile_size = \"4 MiB\"\nthreads = 2\npattern = \"random-once\"\n";
    let runs = run(&Plan::new(&scenario(text), 1).unwrap());
    assert_eq!(runs[0][0].pattern, Pattern::RandomOnce);
    let seeds: BTreeSet<u64> =
        runs.iter().flatten().flat_map(|plan| &plan.threads).map(|thread| thread.seed).collect();
    assert_eq!(seeds.len(), 4);
    let other = run(&Plan::new(&scenario(&format!("{text}seed = 2\n")), 1).unwrap());
    assert_ne!(other[0][0].threads[0].seed, runs[0][0].threads[0].seed);
}

proptest! {
    #[test]
    fn parts_sum_to_the_whole_and_never_overlap(
        threads in 1_u32..200, nodes in 1_u32..20, spare in 0_u64..500, shared: bool,
    ) {
        let blocks = u64::from(threads) + spare;
        let layout = if shared { "shared-file" } else { "file-per-thread" };
        let scenario = scenario(&format!(
            "[workload]\nthreads = {threads}\nlayout = \"{layout}\"\nblock = \"4 KiB\"\n\
             file_size = \"{} KiB\"\n", blocks * 4
        ));
        let plan = Plan::new(&scenario, nodes).unwrap();
        let runs = run(&plan);
        prop_assert_eq!(&runs, &run(&Plan::new(&scenario, nodes).unwrap()), "same seed, same plan");
        for (point, workers) in plan.points.iter().zip(&runs) {
            let mut all: Vec<(&str, Extent)> = Vec::new();
            let mut ops = 0;
            let mut counts = Vec::new();
            for thread in workers.iter().flat_map(|worker| &worker.threads) {
                ops += thread.operations;
                counts.push(thread.operations);
                let part = part(thread);
                all.extend(part.extents.iter().map(|extent| (part.file.as_str(), *extent)));
            }
            prop_assert_eq!(counts.len(), threads as usize);
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            all.sort();
            for pair in all.windows(2) {
                let [(left_file, left), (right_file, right)] = pair else { unreachable!() };
                let apart = left.offset + left.length <= right.offset;
                prop_assert!(left_file != right_file || apart);
            }
            let size = point.spec.params.file_bytes();
            prop_assert!(all.iter().all(|(_, extent)| extent.offset + extent.length <= size));
            let bytes: u64 = all.iter().map(|(_, extent)| extent.length).sum();
            prop_assert_eq!(Some(bytes), point.bytes);
            prop_assert_eq!(Some(ops), point.ops);
            prop_assert_eq!(bytes, point.working_set_bytes);
        }
    }
}

/// Six threads on two of three nodes, then on all of them: the first of the list take part, and the
/// others have nothing to do.
#[test]
fn so_many_nodes_take_part_as_are_asked_for() {
    let text = "[workload]\nfile_size = \"2 MiB\"\nthreads = 6\n[sweep]\nnodes = [2, 3]\n";
    let plan = Plan::new(&scenario(text), 3).unwrap();
    let counts = |point: usize| [0, 1, 2].map(|n| plan.points[point].threads_on(NodeIndex(n)));
    assert_eq!(plan.points[0].active.len(), 2);
    assert_eq!((counts(0), counts(2)), ([3, 3, 0], [2, 2, 2]));
    let of =
        |point: usize, node| plan.points[point].threads_of(NodeIndex(node)).collect::<Vec<_>>();
    assert_eq!((of(0, 1), of(0, 2), of(2, 2)), (vec![1, 3, 5], vec![], vec![2, 5]));
    let runs = run(&plan);
    assert_eq!((runs[0].len(), runs[2].len()), (2, 3));
    let error = Plan::new(&scenario(text), 2).unwrap_err().to_string();
    assert_eq!(error, "stage `write`: nodes = 3, and the fleet has 2");
    let per_node = "[workload]\nfile_size = \"2 MiB\"\nthreads_per_node = 4\nnodes = 2\n";
    assert_eq!(Plan::new(&scenario(per_node), 3).unwrap().points[0].threads, 8);
}

#[test]
fn files_that_lie_with_their_nodes_need_the_same_nodes() {
    let text = "[target]\npath = \"/p/{node}\"\n[workload]\nfile_size = \"2 MiB\"\nthreads = 4\n\
                [[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\nnodes = 1\n";
    let error = Plan::new(&scenario(text), 2).unwrap_err().to_string();
    assert!(error.starts_with("stage `read`: with {node} in target.path"), "{error}");
    let same = text.replace("nodes = 1\n", "").replace("threads = 4\n", "threads = 4\nnodes = 1\n");
    assert!(Plan::new(&scenario(&same), 2).is_ok());
}

/// Written by the node of each thread, and read by the next, in the cold read after that by the one
/// after it; with one node there is no other.
#[test]
fn cold_reads_are_other_nodes_doing() {
    let text = "[workload]\nfile_size = \"2 MiB\"\nthreads = 4\n[[stage]]\nop = \"write\"\n\
                [[stage]]\nop = \"read\"\ncold = true\n\
                [[stage]]\nname = \"again\"\nop = \"read\"\ncold = true\n";
    let of = |nodes: u32, point: usize| {
        let plan = Plan::new(&scenario(text), nodes).unwrap();
        let point = &plan.points[point];
        (0..nodes)
            .map(|node| point.threads_of(NodeIndex(node)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(3, 0), [vec![0, 3], vec![1], vec![2]]);
    assert_eq!(of(3, 1), [vec![2], vec![0, 3], vec![1]]);
    assert_eq!(of(3, 2), [vec![1], vec![2], vec![0, 3]]);
    assert_eq!(of(1, 1), [[0, 1, 2, 3]]);
    let plan = Plan::new(&scenario(text), 3).unwrap();
    assert!(run(&plan)[1].iter().all(|worker| worker.cold && !worker.create));
}
