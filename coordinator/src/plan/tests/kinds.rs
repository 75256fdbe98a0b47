//! Plans of mixes, trees, strided and listed files, and offered loads.

use iofleet_shared::work::{Arrivals, Load, Names, OpShare};

use super::*;

fn refused(text: &str, nodes: u32) -> String {
    Plan::new(&scenario(text), nodes).unwrap_err().to_string()
}

#[test]
fn strided_shares_make_a_whole_file_once_all_threads_have_written() {
    let text = "[workload]\nlayout = \"shared-strided\"\nfile_size = \"5 MiB\"\nthreads = 2\n\
                [[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n[[stage]]\nop = \"read\"\n\
                layout = \"shared-file\"\n";
    let plan = Plan::new(&scenario(text), 2).unwrap();
    let runs = run(&plan);
    let extents = |k: usize, node: usize| {
        let part = part(&runs[k][node].threads[0]);
        (part.extents[0].offset / MIB, part.extents[0].length / MIB, part.stride_bytes / MIB)
    };
    // Blocks 0, 2, 4 and 1, 3.
    assert_eq!((extents(0, 0), extents(0, 1)), ((0, 5, 2), (1, 3, 2)));
    assert_eq!((extents(1, 0), extents(1, 1)), ((0, 5, 2), (1, 3, 2)));
    assert_eq!((extents(2, 0), extents(2, 1)), ((0, 3, 0), (3, 2, 0)));
    assert_eq!(runs[0][0].threads[0].operations + runs[0][1].threads[0].operations, 5);
    // Of one thread's share alone nothing is whole, and yet that thread can read it.
    let mut manifest = Manifest::default();
    for worker in &runs[0] {
        manifest.begin(worker);
    }
    manifest.record(&runs[0][0], &[did(&runs[0][0].threads[0], &Written::All)]);
    assert!(plan.points[1].worker_plan(NodeIndex(0), dir(), &manifest, 0).is_ok());
    let other = plan.points[1].worker_plan(NodeIndex(1), dir(), &manifest, 0).unwrap_err();
    assert!(other.starts_with("shared-0: only 0 B of 2 MiB was written"), "{other}");
    assert!(plan.points[2].worker_plan(NodeIndex(0), dir(), &manifest, 0).is_err());
}

#[test]
fn a_strided_read_by_time_takes_its_blocks_of_what_there_is() {
    let text = "[workload]\nfile_size = \"12 MiB\"\nthreads = 2\nduration = \"1 s\"\n\
                [[stage]]\nop = \"write\"\nlayout = \"shared-file\"\n\
                [[stage]]\nop = \"read\"\nlayout = \"shared-strided\"\n";
    let plan = Plan::new(&scenario(text), 1).unwrap();
    let mut manifest = Manifest::default();
    let write = plan.points[0].worker_plan(NodeIndex(0), dir(), &manifest, 0).unwrap().unwrap();
    manifest.begin(&write);
    let wrote =
        |from, length| Written::Ranges(vec![Extent { offset: from * MIB, length: length * MIB }]);
    let reports = [report(0, wrote(0, 3)), report(1, wrote(7, 4))];
    manifest.record(&write, &reports);
    let read = plan.points[1].worker_plan(NodeIndex(0), dir(), &manifest, 0).unwrap().unwrap();
    let of = |k: usize| -> Vec<(u64, u64)> {
        let extents = &part(&read.threads[k]).extents;
        extents.iter().map(|extent| (extent.offset / MIB, extent.length / MIB)).collect()
    };
    // Blocks 0 to 2 and 7 to 10 are there: 0, 2, 8, 10 are even and 1, 7, 9 are odd.
    assert_eq!(of(0), [(0, 3), (8, 3)]);
    assert_eq!(of(1), [(1, 1), (7, 3)]);
    assert_eq!((read.threads[0].operations, read.threads[1].operations), (4, 3));
}

#[test]
fn a_tree_from_its_first_name_to_its_last() {
    let text = "[workload]\nlayout = \"tree\"\ndirs = 2\nfiles = 3\nthreads = 2\n[sweep]\nrepeat = 2\n\
                [[stage]]\nop = \"mkdir\"\n[[stage]]\nop = \"create\"\n[[stage]]\nop = \"stat\"\n\
                [[stage]]\nop = \"rename\"\n[[stage]]\nop = \"unlink\"\n[[stage]]\nop = \"rmdir\"\n";
    let plan = Plan::new(&scenario(text), 2).unwrap();
    let runs = run(&plan);
    let first = |k: usize| &runs[k][0].threads[0];
    let existing: Vec<Names> = (0..6).map(|k| tree(first(k)).existing).collect();
    let names = |dirs, files, gone| Names { dirs, files, gone };
    assert_eq!(
        existing,
        [
            names(0, 0, 0),
            names(2, 0, 0),
            names(2, 6, 0),
            names(2, 6, 0),
            names(2, 6, 0),
            names(2, 6, 6),
        ]
    );
    let operations: Vec<u64> = (0..6).map(|k| first(k).operations).collect();
    assert_eq!(operations, [2, 6, 6, 6, 6, 2]);
    assert_eq!(
        plan.points.iter().map(|point| point.ops).collect::<Vec<_>>()[..6],
        [Some(4), Some(12), Some(12), Some(12), Some(12), Some(4),]
    );
    assert!(!tree(first(3)).renamed && tree(first(4)).renamed);
    assert_eq!(tree(first(5)).base, "tree-0");
    // The second pass makes a tree of its own and removes the first.
    assert_eq!(tree(first(6)).base, "tree-1");
    assert_eq!(runs[6][0].remove, ["tree-0"]);
    assert_eq!(runs[6][1].remove, Vec::<String>::new());
    assert!(runs[0][0].remove.is_empty() && runs[7][0].remove.is_empty());
    assert_eq!(tree(first(0)).sizes_seed, tree(first(5)).sizes_seed);
    // Two threads with two directories and their own each, six files each, and the tree's own.
    assert_eq!((plan.space_bytes, plan.files), (0, 2 * 3 + 2 * 6 + 1));
    let alone = plan.points[2].worker_plan(NodeIndex(0), dir(), &Manifest::default(), 0);
    assert!(alone.unwrap_err().contains("has no names to stat"));
    let target = plan.target_spec(NodeIndex(0), dir());
    assert!(target.writes && !target.direct && target.buffer_bytes == 0);
}

#[test]
fn files_of_a_tree_are_read_as_far_as_they_were_written() {
    let text = "[workload]\nlayout = \"tree\"\nfiles = 8\nfile_size = \"8 KiB\"\nblock = \"4 KiB\"\n\
                [[stage]]\nop = \"write\"\nduration = \"1 s\"\nloop = false\n\
                [[stage]]\nop = \"read\"\nduration = \"1 s\"\n[[stage]]\nop = \"read\"\n";
    let plan = Plan::new(&scenario(text), 1).unwrap();
    assert_eq!(plan.space_bytes, 64 << 10);
    let write = plan.points[0].worker_plan(NodeIndex(0), dir(), &Manifest::default(), 0);
    let write = write.unwrap().unwrap();
    assert!(write.create && write.options.direct);
    assert_eq!(write.threads[0].operations, 16);
    let after = |files: u64, written: Written| {
        let mut manifest = Manifest::default();
        manifest.begin(&write);
        let names = Names { dirs: 1, files, gone: 0 };
        let left = Some(NamesLeft { names, renamed: Some(false) });
        let report = ThreadReport { names: left, ..report(0, written) };
        manifest.record(&write, &[report]);
        manifest
    };
    let some = after(3, Written::Nothing);
    let read = plan.points[1].worker_plan(NodeIndex(0), dir(), &some, 0).unwrap().unwrap();
    assert_eq!(tree(&read.threads[0]).existing.files, 3);
    assert_eq!(read.threads[0].operations, 6);
    let all = after(8, Written::All);
    let read = plan.points[2].worker_plan(NodeIndex(0), dir(), &all, 0).unwrap().unwrap();
    assert_eq!(read.threads[0].operations, 16);
    let none = after(0, Written::Nothing);
    let error = plan.points[1].worker_plan(NodeIndex(0), dir(), &none, 0).unwrap_err();
    assert!(error.contains("no names to read"), "{error}");
}

#[test]
fn threads_of_a_mix_do_one_kind_each() {
    let text = "[workload]\nfile_size = \"4 MiB\"\nthreads = 4\n[[stage]]\nop = \"write\"\n\
                [[stage]]\nop = \"mix\"\nmix = \"read 70, write 30\"\nmix_by = \"thread\"\n\
                [[stage]]\nop = \"mix\"\nmix = \"read 70, write 30\"\n";
    let plan = Plan::new(&scenario(text), 2).unwrap();
    let runs = run(&plan);
    let kinds = |k: usize, node: usize| -> Vec<Vec<OpShare>> {
        runs[k][node].threads.iter().map(|thread| thread.ops.clone()).collect()
    };
    let only = |op| vec![OpShare { op, weight: 1 }];
    // 1.2 and 2.8 threads: one writes, three read.
    assert_eq!(kinds(1, 0), [only(OpKind::Write), only(OpKind::Read)]);
    assert_eq!(kinds(1, 1), [only(OpKind::Read), only(OpKind::Read)]);
    let both =
        vec![OpShare { op: OpKind::Write, weight: 30 }, OpShare { op: OpKind::Read, weight: 70 }];
    assert_eq!(kinds(2, 1), [both.clone(), both]);
    assert_eq!((plan.points[2].bytes, plan.points[2].ops), (Some(16 * MIB), Some(16)));
    assert!(!runs[2][0].create);
    let generations: Vec<u32> = runs.iter().map(|plans| plans[0].data.generation).collect();
    assert_eq!(generations, [1, 2, 3]);
    let per_node = text.replace("threads = 4\n", "threads_per_node = 1\n");
    assert_eq!(
        refused(&per_node, 1),
        "stage `mix`: 2 kinds of operation need as many threads, but there are 1: use more, or set \
         mix_by = \"operation\""
    );
}

fn arrivals(text: &str, nodes: u32) -> Vec<Arrivals> {
    let text = format!("[workload]\nfile_size = \"4 MiB\"\n{text}[[stage]]\nop = \"write\"\n");
    let runs = run(&Plan::new(&scenario(&text), nodes).unwrap());
    let of = |plan: &WorkerPlan| match plan.load {
        Load::Open(arrivals) => arrivals,
        Load::Closed { .. } => panic!("a closed loop"),
    };
    runs[0].iter().map(of).collect()
}

#[test]
fn a_rate_is_shared_out_exactly_and_evenly() {
    let all = arrivals("threads = 3\nrate = \"10 op/s\"\n", 3);
    let rates: Vec<u64> = all.iter().map(|one| one.per_1000_s).collect();
    assert_eq!(rates, [3334, 3333, 3333]);
    let all = arrivals("threads = 4\nrate = \"100 op/s\"\n", 4);
    // Each node has a gap of 40 ms, and the fleet one of 10 ms.
    let phases: Vec<u64> = all.iter().map(|one| one.phase_ns).collect();
    assert_eq!(phases, [0, 10_000_000, 20_000_000, 30_000_000]);
    let seeds: BTreeSet<u64> = all.iter().map(|one| one.seed).collect();
    assert_eq!(seeds.len(), 4);
    let per = |per: &str| -> Vec<u64> {
        let text = format!("threads = 3\nrate = \"10 op/s\"\nrate_per = \"{per}\"\n");
        arrivals(&text, 2).iter().map(|one| one.per_1000_s).collect()
    };
    assert_eq!(per("node"), [10_000, 10_000]);
    assert_eq!(per("thread"), [20_000, 10_000]);
    // 16 MB/s in blocks of 1 MB and 3 MB, half of each: 8 operations in a second.
    let bytes = "file_size = \"12 MB\"\nblock = \"1 MB 1, 3 MB 1\"\nrate = \"16 MB/s\"\n";
    let text = format!("[workload]\n{bytes}[[stage]]\nop = \"write\"\n");
    let runs = run(&Plan::new(&scenario(&text), 1).unwrap());
    assert!(matches!(runs[0][0].load, Load::Open(Arrivals { per_1000_s: 8000, .. })));
    let slow = "[workload]\nfile_size = \"4 MiB\"\nthreads = 4\nrate = \"0.002 op/s\"\n";
    assert!(refused(slow, 4).starts_with("stage `write`: its rate is less than an operation"));
}

#[test]
fn listed_files_are_there_and_stay() {
    let text = "[target]\nfiles = [\"/d/a\", \"/d/b\", \"/d/c\"]\ndestroys_data = true\n[workload]\n\
                layout = \"file-list\"\nfile_size = \"4 MiB\"\nthreads = 2\n\
                [[stage]]\nop = \"read\"\n[[stage]]\nop = \"write\"\n";
    let plan = Plan::new(&scenario(text), 1).unwrap();
    let runs = run(&plan);
    assert_eq!((plan.space_bytes, plan.files), (0, 0));
    let Files::Listed(parts) = &runs[0][0].threads[0].files else { panic!("not listed") };
    let names: Vec<&str> = parts.iter().map(|part| part.file.as_str()).collect();
    assert_eq!(names, ["/d/a", "/d/c"]);
    assert_eq!(runs[0][0].threads[0].operations, 8);
    assert!(!runs[1][0].create && runs[1][0].remove.is_empty());
    let target = plan.target_spec(NodeIndex(0), dir());
    assert_eq!(target.listed, ["/d/a", "/d/b", "/d/c"]);
    assert!(target.destroys_data && target.devices.is_empty());
    assert_eq!(plan.points[0].bytes, Some(12 * MIB));
}

/// Blocks of a thread's files, by file and number.
fn blocks_of(thread: &ThreadPlan, block: u64) -> Vec<(String, u64)> {
    let (Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts)) = &thread.files else {
        panic!("a tree")
    };
    let mut blocks = Vec::new();
    for part in parts {
        let step = if part.stride_bytes == 0 { block } else { part.stride_bytes };
        for extent in &part.extents {
            let end = extent.offset + extent.length;
            let mut at = extent.offset;
            while at + block <= end {
                blocks.push((part.file.clone(), at / block));
                at += step;
            }
        }
    }
    blocks
}

proptest! {
    #[test]
    fn every_block_is_one_thread_s(
        layout in proptest::sample::select(vec![
            "file-per-thread", "shared-file", "shared-strided", "file-list",
        ]),
        threads in 1_u32..30, nodes in 1_u32..8, spare in 0_u64..40, files in 1_usize..12,
        mixed: bool,
    ) {
        let blocks = u64::from(threads) + spare;
        let names: Vec<String> = (0..files).map(|n| format!("\"/f{n}\"")).collect();
        let listed = layout == "file-list";
        let target = if listed {
            format!("[target]\ndestroys_data = true\nfiles = [{}]\n", names.join(","))
        } else {
            String::new()
        };
        let second = if mixed {
            "[[stage]]\nop = \"mix\"\nmix = \"read 2, write 1\"\n"
        } else {
            "[[stage]]\nop = \"read\"\n"
        };
        let scenario = scenario(&format!(
            "{target}[workload]\nthreads = {threads}\nlayout = \"{layout}\"\nblock = \"4 KiB\"\n\
             file_size = \"{} KiB\"\n[[stage]]\nop = \"write\"\n{second}", blocks * 4
        ));
        let plan = Plan::new(&scenario, nodes).unwrap();
        for (point, workers) in plan.points.iter().zip(run(&plan)) {
            let threads = || workers.iter().flat_map(|worker| &worker.threads);
            let mut all: Vec<(String, u64)> = Vec::new();
            for thread in threads() {
                let own = blocks_of(thread, 4096);
                prop_assert_eq!(own.len() as u64, thread.operations);
                prop_assert!(thread.operations > 0);
                all.extend(own);
            }
            let operations: u64 = threads().map(|thread| thread.operations).sum();
            prop_assert_eq!(Some(operations), point.ops);
            prop_assert_eq!(point.bytes, Some(operations * 4096));
            prop_assert_eq!(point.working_set_bytes, operations * 4096);
            let count = all.len();
            all.sort();
            all.dedup();
            prop_assert_eq!(all.len(), count);
        }
    }

    #[test]
    fn loads_of_nodes_sum_to_the_rate(
        threads in 1_u32..40, nodes in 1_u32..20, rate in 50_000_u64..10_000_000,
    ) {
        let text = format!("threads = {threads}\nrate = \"{}.{:03} op/s\"\n", rate / 1000, rate % 1000);
        let all = arrivals(&text, nodes);
        prop_assert_eq!(all.iter().map(|one| one.per_1000_s).sum::<u64>(), rate);
        let gap = 1_000_000_000_000 / all[0].per_1000_s;
        for pair in all.windows(2) {
            prop_assert!(pair[0].phase_ns < pair[1].phase_ns && pair[1].phase_ns <= gap);
        }
    }
}

#[test]
fn generations_of_what_outlives_a_pass_go_on() {
    let text = "[target]\nfiles = [\"/a\"]\ndestroys_data = true\n[workload]\nfile_size = \"1 MiB\"\n\
                verify = \"all\"\n[sweep]\nrepeat = 2\n[[stage]]\nop = \"write\"\n\
                layout = \"file-list\"\n[[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n\
                layout = \"file-list\"\n[[stage]]\nop = \"read\"\n";
    let runs = run(&Plan::new(&scenario(text), 1).unwrap());
    let generations: Vec<u32> = runs.iter().map(|plans| plans[0].data.generation).collect();
    assert_eq!(generations, [1, 1, 1, 1, 2, 1, 2, 1]);
    assert!(runs.iter().all(|plans| plans[0].data.verify && plans[0].data.generation_known));
    let datasets: BTreeSet<u64> = runs.iter().map(|plans| plans[0].data.dataset).collect();
    assert_eq!(datasets.len(), 1);
}

#[test]
fn what_is_drawn_has_room_in_each_share() {
    let text = "[workload]\nblock = \"4 KiB 70, 64 KiB 30\"\nfile_size = \"256 KiB\"\n\
                layout = \"shared-file\"\nthreads_per_node = 4\n[[stage]]\nop = \"write\"\n";
    let plan = Plan::new(&scenario(text), 1).unwrap();
    let runs = run(&plan);
    assert!(runs[0][0].threads.iter().all(|thread| part(thread).extents[0].length == 64 << 10));
    assert_eq!(runs[0][0].threads[0].operations, 16);
    assert_eq!((plan.points[0].bytes, plan.points[0].ops), (None, None));
    assert!(refused(text, 2).contains("8 threads share a file of 4 blocks"));
    let target = plan.target_spec(NodeIndex(0), dir());
    assert_eq!(target.buffer_bytes, 4 * (64 << 10));
    assert_eq!(target.direct_blocks, [4 << 10, 64 << 10]);
    let deep = text.replace("layout = \"shared-file\"\n", "engine = \"libaio\"\ndepth = 8\n");
    let target = Plan::new(&scenario(&deep), 1).unwrap().target_spec(NodeIndex(0), dir());
    assert_eq!(target.buffer_bytes, 4 * 8 * (64 << 10));
    assert_eq!((target.engines.len(), target.engines[0].depth), (1, 8));
}
