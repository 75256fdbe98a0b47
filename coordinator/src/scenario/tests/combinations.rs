//! Which keys do not go together, what is told of them, and what is accepted.

use iofleet_shared::work::{Content, EngineKind, Pattern};

use super::{super::legal, faults::told, *};

#[test]
fn what_does_not_go_together_is_told_at_its_keys() {
    for (text, expected) in REFUSED {
        let told = told(text, &[], &LOCAL);
        assert_eq!(told, [*expected], "{text}");
    }
}

#[test]
fn what_goes_together_is_accepted() {
    let tree = "[workload]\nlayout = \"tree\"\nfiles = 4\n";
    let stages = |ops: &[&str]| -> String {
        ops.iter().map(|op| format!("[[stage]]\nop = \"{op}\"\n")).collect()
    };
    let texts = [
        format!("{tree}{}", stages(&["create", "stat", "unlink", "create"])),
        format!("{tree}{}", stages(&["mkdir", "create", "open", "readdir", "unlink", "rmdir"])),
        format!("{tree}file_size = \"1 MiB\"\n{}", stages(&["write", "read", "rename", "unlink"])),
        format!(
            "{tree}file_size = \"1 MiB\"\n{}[[stage]]\nop = \"write\"\nfresh = false\n",
            stages(&["create"])
        ),
        format!(
            "{tree}[[stage]]\nop = \"mix\"\nmix = \"create 50, stat 30, unlink 20\"\n{}",
            stages(&["stat"])
        ),
        format!(
            "{SIZE}[[stage]]\nop = \"write\"\n[[stage]]\nop = \"mix\"\nmix = \"read 1, write 1\"\n"
        ),
        format!(
            "{tree}{}duration = \"1 s\"\n{}",
            stages(&["create", "rename"]),
            stages(&["unlink"])
        ),
        format!("{SIZE}verify = \"all\"\n"),
        format!("{SIZE}verify = \"no-stale\"\nduration = \"1 s\"\n"),
        format!("{SIZE}verify = \"all\"\nduration = \"1 s\"\nloop = false\n"),
        format!(
            "{SIZE}[[stage]]\nop = \"write\"\n[[stage]]\nop = \"write\"\nfresh = false\n\
             truncate = true\npreallocate = true\n"
        ),
        format!(
            "{SIZE}engine = \"mmap\"\nduration = \"1 s\"\n[sweep]\npattern = [\"zipf\", \"strided\", \"random\"]\n"
        ),
        // Keys of one engine in a sweep over several.
        format!(
            "{SIZE}depth = 8\nhigh_priority = true\n[sweep]\nengine = [\"sync\", \"libaio\"]\n"
        ),
    ];
    for text in texts {
        let scenario = good(&text);
        let again = good(&scenario.resolved_toml);
        assert_eq!(again, scenario, "{text}\n{}", scenario.resolved_toml);
    }
}

#[test]
fn defaults_follow_the_engine_and_the_operation() {
    let first = |text: &str| good(text).points[0].params.clone();
    let direct = |engine: &str| {
        let params = first(&format!("{SIZE}engine = \"{engine}\"\n"));
        (params.options.direct, params.engine.depth)
    };
    assert_eq!(direct("sync"), (true, 1));
    assert_eq!(direct("io_uring"), (true, 32));
    assert_eq!(direct("libaio"), (true, 32));
    assert_eq!(direct("mmap"), (false, 1));
    assert_eq!(direct("null"), (false, 1));
    let names = first("[workload]\nlayout = \"tree\"\nfiles = 2\n[[stage]]\nop = \"create\"\n");
    assert!(!names.options.direct && !names.fresh && names.file_bytes() == 0);
    let zero = first(&format!("{SIZE}content = \"zero\"\npattern = \"strided\"\nstep = 4\n"));
    assert_eq!((zero.content, zero.pattern), (Content::Zero, Pattern::Strided { step: 4 }));
    assert_eq!(first(&format!("{SIZE}engine = \"null\"\n")).engine.kind, EngineKind::Null);
}

#[test]
fn values_with_commas_are_swept_by_semicolons() {
    let swept = |flag: &Override| -> Vec<String> {
        let text = format!("{SIZE}[[stage]]\nop = \"write\"\n[[stage]]\nop = \"mix\"\n");
        let all = [set("workload.mix=read 50, write 50"), flag.clone()];
        let scenario = with(&text, &all);
        scenario
            .points
            .iter()
            .step_by(2)
            .map(|p| p.swept.iter().map(|s| s.1.clone()).collect())
            .collect()
    };
    assert_eq!(swept(&flag("mix", "read 70, write 30")), [""]);
    let mixes = flag("mix", "read 70, write 30; read 1, write 2");
    assert_eq!(swept(&mixes), ["write 30, read 70", "write 2, read 1"]);
    assert_eq!(swept(&flag("block", "1MiB,2MiB")), ["1 MiB", "2 MiB"]);
    assert_eq!(swept(&flag("block", "1MiB 3, 2MiB 1")), [""]);
    assert_eq!(swept(&set("sweep.cores=0-3;4,5")), ["0-3", "4-5"]);
    let files = Override::flag(Key::of(KeyId::TargetFiles), "/a,/b");
    let list = format!("{SIZE}layout = \"file-list\"\n[[stage]]\nop = \"read\"\n");
    assert_eq!(with(&list, &[files]).target.files.len(), 2);
}

#[test]
fn the_page_of_workloads_has_the_table() {
    const BEGINS: &str = "<!-- The table of combinations, written by a test. -->";
    const ENDS: &str = "<!-- End of the table of combinations. -->";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/workloads.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGINS).unwrap();
    let (_, after) = rest.split_once(ENDS).unwrap();
    let fresh = format!("{before}{BEGINS}\n{}{ENDS}{after}", legal::table());
    if std::env::var_os("IOFLEET_UPDATE").is_some() {
        std::fs::write(&path, &fresh).unwrap();
        return;
    }
    let hint = "IOFLEET_UPDATE=1 cargo test -p iofleet-coordinator workloads writes it anew";
    assert_eq!(page, fresh, "{hint}");
}

/// A file's text, and the one fault that is told of it.
const REFUSED: &[(&str, &str)] = &[
    (
        "[workload]\nfile_size = \"1 MiB\"\nblock = \"4 KiB\"\nengine = \"io_uring\"\niopoll = true\nfsync = \"each\"\n[[stage]]\nop = \"write\"\n",
        "s.toml:5: workload.iopoll: `iopoll` polls for reads and writes, and fsync = \"each\" is neither -> set fsync = \"end\" or dsync = true, or leave iopoll out",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\nengine = \"null\"\nfsync = \"each\"\n[[stage]]\nop = \"write\"\n",
        "s.toml:4: workload.fsync: fsync = \"each\" is a call, and the engine `null` makes none -> leave fsync out, or set another engine",
    ),
    (
        "[target]\ndevices = [\"/dev/sdx\"]\ndestroys_data = true\n[workload]\nfile_size = \"1 MiB\"\nlayout = \"device\"\nlock = true\n[[stage]]\nop = \"write\"\n",
        "s.toml:7: workload.lock: `lock` is of open files, and all threads of a worker share one of a device -> leave lock out, or set another layout",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\nlayout = \"shared-file\"\nengine = \"mmap\"\n[[stage]]\nop = \"write\"\n[[stage]]\nop = \"write\"\nfresh = false\ntruncate = true\n",
        "s.toml:10: stage.truncate: `truncate` of a file that others have just mapped takes it away from them -> set fresh = true in place of truncate, or another engine",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\nfile_size = \"1 MiB\"\n[[stage]]\nop = \"write\"\n\
         [[stage]]\nop = \"mix\"\nmix = \"write 1, rename 1\"\n",
        "s.toml:9: stage.mix: a thread that reads or writes a tree's files can mix that with stat, open and readdir only: other operations on names would take its files away -> set mix_by = \"thread\", or mix with stat, open or readdir",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\nfile_size = \"1 MiB\"\n[[stage]]\nop = \"write\"\n\
         [[stage]]\nop = \"mix\"\nmix = \"read 1, stat 1\"\nlock = true\n",
        "s.toml:9: stage.mix: a thread that mixes operations on data and on names has neither fsync = \"each\" nor `lock` nor `high_priority` -> leave them out, or set mix_by = \"thread\"",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\nfile_size = \"1 MiB 1, 0 B 1\"\n[[stage]]\nop = \"write\"\n",
        "s.toml:4: workload.file_size: an empty file has no block to read or write: file_size is 0 B -> set file_size to a block at least, or make empty files by op = \"create\"",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\nfile_size = \"1 MiB\"\nadvice = \"random\"\n[[stage]]\nop = \"write\"\n",
        "s.toml:5: workload.advice: `advice` is given while arming, and files of a tree are opened as they come -> leave advice out, or set another layout",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\nengine = \"mmap\"\ndsync = true\n[[stage]]\nop = \"write\"\n",
        "s.toml:4: workload.dsync: `dsync` is about write calls, which the engines `mmap` and `null` do not make -> set fsync = \"each\" with `mmap`, or another engine",
    ),
    (
        "[workload]\nfile_size = \"10000 B\"\nblock = \"1000 B\"\ndedupe = 2\n[[stage]]\nop = \"write\"\n",
        "s.toml:4: workload.dedupe: `dedupe` repeats units of 4 KiB, and a block is not a multiple of that -> set block to a multiple of 4 KiB, or leave dedupe out",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\nengine = \"null\"\nadvice = \"random\"\n[[stage]]\nop = \"write\"\n",
        "s.toml:4: workload.advice: `advice` is about accesses, and the engine `null` makes none -> leave advice out, or set another engine",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\nengine = \"mmap\"\ndirect = true\n",
        "s.toml:3: workload.engine: engine `mmap` works in the page cache, which `direct` \
         bypasses -> set direct = false, or another engine",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\nlayout = \"tree\"\n",
        "s.toml:3: `layout` needs workload.files, which is missing -> set files: how many \
         each thread has in each directory",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\nlayout = \"tree\"\nfiles = 2\nengine = \"libaio\"\n",
        "s.toml:3: workload.layout: layout `tree` opens and closes files as it goes, which \
         only the engines `sync` and `null` do -> set engine = \"sync\", or another layout",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\n[[stage]]\nop = \"mix\"\n",
        "s.toml:4: `op` needs workload.mix, which is missing -> set mix, as in `mix = \"read \
         70, write 30\"`: kinds of operation with their shares",
    ),
    (
        "[workload]\nfile_size = \"1 MiB\"\nmix = \"read 1, write 1\"\n",
        "s.toml:3: workload.mix: `mix` has no effect without op = \"mix\" -> leave it out, \
         or set op = \"mix\" in the stage",
    ),
    (
        "[workload]\n[[stage]]\nop = \"stat\"\n",
        "s.toml:3: stage.op: operations on names need the layout `tree` -> set layout = \
         \"tree\" and files, or op = \"write\" or \"read\"",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\n[[stage]]\nop = \"stat\"\n",
        "s.toml:5: stage `stat` works on files (stat) that no earlier stage made, or that \
         were removed again -> put a stage with op = \"create\" or \"write\" before it",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\n[[stage]]\nop = \"create\"\n[[stage]]\n\
         op = \"rmdir\"\n",
        "s.toml:7: stage `rmdir` removes directories that still have files in them -> put an \
         unlink stage before it",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\n[[stage]]\nop = \"create\"\n[[stage]]\n\
         op = \"stat\"\nfiles = 3\n",
        "s.toml:8: stage.files: stage `stat` works on a tree with files = 3, but it was made \
         with files = 2 -> set files to the same in all stages of a tree",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\ndir_sharing = \"shared\"\n[[stage]]\n\
         op = \"mkdir\"\n",
        "s.toml:4: workload.dir_sharing: directories that all threads share are made before \
         the start and are nobody's to make or remove -> set dir_sharing = \"own\", or \
         another op",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\nblock = \"4 KiB\"\n[[stage]]\nop = \"create\"\n",
        "s.toml:4: workload.block: `block` has no effect on operations that work on names \
         alone -> leave it out, or set it in a stage that reads or writes",
    ),
    (
        "[workload]\nfile_size = \"0 B\"\n",
        "s.toml:2: workload.file_size: only files of a tree can be empty: file_size is 0 B \
         -> set file_size to a block at least",
    ),
    (
        "[workload]\nfile_size = \"8 KiB\"\nblock = \"2 KiB 1, 3 KiB 1\"\n",
        "s.toml:3: workload.block: 3 KiB is not a multiple of 2 KiB, the smallest block of \
         the mix",
    ),
    (
        "[workload]\nfile_size = \"8 KiB\"\nblock = \"2 KiB 1, 16 KiB 1\"\n",
        "s.toml:2: workload.file_size: file_size 8 KiB is less than the largest block, 16 KiB",
    ),
    (
        "[workload]\nfile_size = \"8 KiB\"\nblock = \"2 KiB 1, 4 KiB 1\"\npattern = \"random-once\"\n",
        "s.toml:4: workload.pattern: pattern `random-once` takes each block once, which \
         needs one block size -> set one block, or pattern = \"random\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nappend = true\npattern = \"backward\"\n",
        "s.toml:3: workload.append: `append` lets the kernel choose offsets: they ascend -> \
         set pattern = \"sequential\", or leave append out",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nengine = \"io_uring\"\nthink = \"1 ms\"\n",
        "s.toml:4: workload.think: `think` is a pause after an operation, and with a depth \
         above 1 others are in flight -> set depth = 1, or leave think out",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nrate = \"5 op/s\"\nthink = \"1 ms\"\n",
        "s.toml:4: workload.think: `rate` and `think` exclude each other -> operations that \
         arrive at a rate do not wait for a thread; leave one of them out",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nburst = 4\n",
        "s.toml:3: workload.burst: `burst` has no effect without `think` -> leave it out, or \
         set think",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\ncontent = \"zero\"\ndedupe = 2\n",
        "s.toml:4: workload.dedupe: `dedupe` has no effect where no random data is written \
         -> leave it out, or set it in a stage that writes with content = \"random\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\ndepth = 4\n",
        "s.toml:3: workload.depth: `depth` has no effect on an engine without a queue -> \
         leave it out, or set engine = \"io_uring\" or engine = \"libaio\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\ndirect = false\nhigh_priority = true\n",
        "s.toml:4: workload.high_priority: `high_priority` needs direct I/O -> set direct = \
         true, or leave high_priority out",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\npattern = \"zipf\"\nzipf_theta = 1\n[[stage]]\nop = \"write\"\n",
        "s.toml:4: workload.zipf_theta: zipf_theta can't be 1 -> set it to 0.999 or 1.001",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nstep = 4\n",
        "s.toml:3: workload.step: `step` has no effect on other patterns -> leave it out, or \
         set pattern = \"strided\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nverify = \"all\"\nduration = \"1 s\"\n",
        "s.toml:3: workload.verify: stage `read` can't tell stale data, since which write \
         left it is not known: it was written for a time with loop = true -> set verify = \
         \"no-stale\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\n[[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n\
         verify = \"all\"\n",
        "s.toml:7: stage.verify: stage `read` verifies what no earlier stage wrote with \
         `verify` -> set verify in the stage that writes it too",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nverify = \"all\"\ncompress = 2\n",
        "s.toml:3: workload.verify: `verify` needs units that are all different and random, \
         which `compress` makes them not -> leave compress out, or set verify = \"off\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nlayout = \"device\"\n[[stage]]\nop = \"read\"\n",
        "s.toml:3: `layout` needs target.devices, which is missing -> set target.devices \
         (`--devices /dev/nvme1n1`): block devices to use",
    ),
    (
        "[target]\ndevices = [\"/dev/x\"]\n[workload]\nfile_size = \"8 MiB\"\n",
        "s.toml:2: target.devices: `devices` has no effect without layout = \"device\" -> \
         leave it out",
    ),
    (
        "[target]\ndevices = [\"/dev/x\"]\n[workload]\nfile_size = \"8 MiB\"\nlayout = \"device\"\n\
         fresh = false\n[[stage]]\nop = \"read\"\n",
        "s.toml:6: workload.fresh: `fresh` has no effect where no file of the campaign is \
         written, and only written -> leave it out, or set it in a stage that writes",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\n[[stage]]\nop = \"write\"\n[[stage]]\nop = \"mix\"\n\
         mix = \"read 1, write 1\"\nmix_by = \"thread\"\n",
        "s.toml:8: stage.mix_by: mix_by = \"thread\" needs a thread at least for each kind \
         of the mix -> use more threads, or set mix_by = \"operation\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\ntruncate = true\n",
        "s.toml:3: workload.truncate: `truncate` needs files that are there, and `fresh` \
         makes them anew -> set fresh = false, or leave truncate out",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nverify = \"all\"\n[[stage]]\nop = \"write\"\n[[stage]]\n\
         op = \"mix\"\nmix = \"read 1, write 1\"\n[[stage]]\nop = \"read\"\n",
        "s.toml:3: workload.verify: stage `read` can't tell stale data, since which write \
         left it is not known: it was written by a mix -> set verify = \"no-stale\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nverify = \"all\"\n[[stage]]\nop = \"write\"\n\
         threads = 2\n[[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\nthreads = 2\n",
        "s.toml:3: workload.verify: stage `read` can't tell stale data, since which write \
         left it is not known: some of its files were last written by an earlier stage than \
         others -> set verify = \"no-stale\"",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nverify = \"all\"\n[[stage]]\nop = \"write\"\n[[stage]]\n\
         op = \"write\"\nfresh = false\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"read\"\n",
        "s.toml:3: workload.verify: stage `read` can't tell stale data, since which write \
         left it is not known: it was rewritten in part -> set verify = \"no-stale\"",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\nfile_size = \"4 KiB\"\nblock = \"4 KiB\"\n\
         [[stage]]\nop = \"create\"\n[[stage]]\nop = \"read\"\n",
        "s.toml:9: stage `read` reads what no earlier stage wrote -> put a write stage of \
         the same layout before it",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\nblock = \"4 KiB\"\n[[stage]]\nop = \"write\"\n\
         file_size = \"8 KiB\"\n[[stage]]\nop = \"read\"\nfile_size = \"4 KiB\"\n",
        "s.toml:10: stage.file_size: stage `read` works on files of another file_size than \
         they were written with -> set it to the same in all stages",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\n[[stage]]\nop = \"create\"\n[[stage]]\n\
         op = \"stat\"\nthreads = 2\n",
        "s.toml:8: stage.threads: stage `stat` works on the names of 2 threads, but only 1 \
         have made any -> use as many threads as the stage that makes them, or fewer",
    ),
    (
        "[target]\npath = \"/m/{node}\"\n[workload]\nlayout = \"tree\"\nfiles = 2\n\
         dir_sharing = \"shared\"\n[[stage]]\nop = \"create\"\n",
        "s.toml:4: workload.layout: shared directories need one directory for all nodes, but \
         target.path has `{node}`",
    ),
    (
        "[workload]\nlayout = \"tree\"\nfiles = 2\nduration = \"1 s\"\nloop = false\n[[stage]]\n\
         op = \"create\"\n",
        "s.toml:5: workload.loop: `loop` has no effect where names are used up -> leave it out: \
         each name is made or removed once",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\ncores = \"3-1\"\n",
        "s.toml:3: workload.cores: `3-1` is not numbers from 0 to 65535 and ranges, as in \
         `0-3,8`",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\npattern = \"pareto\"\npareto_h = 0.4\n",
        "s.toml:4: workload.pareto_h: `0.4` is not a decimal number from 0.501 to 0.999",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nrate = \"5000\"\n",
        "s.toml:3: workload.rate: `5000`: a rate needs a unit, as in `100 Gbit/s`; or \
         operations, as in `5000 op/s`",
    ),
    (
        "[workload]\nfile_size = \"8 MiB\"\nblock = \"4 KiB 1, 8 KiB\"\n",
        "s.toml:3: workload.block: `8 KiB` has no weight: write a mix as `4 KiB 70, 64 KiB \
         30`",
    ),
    (
        "[target]\nfiles = \"a\"\n[workload]\nfile_size = \"8 MiB\"\n",
        "s.toml:2: target.files: `a` is not an absolute path: it must begin with `/`",
    ),
];
