//! What each fault of a file and of an argument is told.

use miette::Diagnostic;

use super::*;

#[test]
fn every_fault_of_a_file_is_told_at_its_place() {
    for (text, expected) in FILES {
        assert_eq!(told(text, &[], &LOCAL), *expected, "{text}");
    }
}

#[test]
fn every_fault_of_an_argument_is_told_at_it() {
    for (argument, expected) in ARGUMENTS {
        let change = change(argument);
        assert_eq!(change.argument(), *argument);
        assert_eq!(told(SIZE, &[change], &LOCAL), [*expected]);
    }
    let error = Override::set("workload.block").unwrap_err();
    assert_eq!(
        error.to_string(),
        "--set workload.block: write KEY=VALUE, as in `--set workload.block=4MiB`"
    );
}

fn change(argument: &str) -> Override {
    if let Some(set) = argument.strip_prefix("--set ") {
        return Override::set(set).unwrap();
    }
    let (name, value) = argument.split_once([' ', '=']).unwrap();
    let key = |name: &str| KEYS.iter().find(|key| key.flag && key.name == name).unwrap();
    match name.strip_prefix("IOFLEET_") {
        Some(name) => Override::environment(key(&name.to_lowercase()), value),
        None => Override::flag(key(name.trim_start_matches("--")), value),
    }
}

#[test]
fn what_a_fleet_needs_is_asked_for() {
    let remote = Context::default();
    assert_eq!(
        told(SIZE, &[], &remote),
        [
            "s.toml: no workers are named -> name the workers with `--workers client[01-04]` (or \
         fleet.workers in the file), or start some on this machine with `--local 4`",
            "s.toml: no target is named -> name a directory on the file system under test with `--path \
         /mnt/beegfs/iofleet` (or target.path in the file)",
        ]
    );
    // What can't be read is not missed as well.
    assert_eq!(told("[target]\npath = 4\n", &[], &remote).len(), 1);
    assert_eq!(told("[fleet\n", &[], &remote).len(), 1);
    let bad = Context { workers_flag: Some("a,,b".to_owned()), ..remote };
    assert_eq!(
        told(SIZE, &[flag("path", "/x")], &bad),
        ["--workers a,,b: `a,,b`: nothing between two commas"]
    );
    let text =
        format!("[fleet]\nworkers = \"n[1-2]\"\n[target]\npath = \"/m/{{role}}/{{node}}\"\n{SIZE}");
    let context = Context { local: false, workers_flag: None };
    let scenario = load(&source(&text), &[], &context).unwrap();
    assert_eq!(hosts::show(&scenario.fleet.workers), "n1,n2");
    assert_eq!(scenario.target.path_of("n1").as_deref(), Some("/m/client/n1"));
    let flag = Context { local: false, workers_flag: Some("x:9".to_owned()) };
    let scenario = load(&source(&text), &[], &flag).unwrap();
    assert_eq!(hosts::show(&scenario.fleet.workers), "x:9");
    assert!(good(&text).fleet.workers.is_empty());
}

#[test]
fn a_fault_shows_the_line_of_the_file() {
    let error = load(&source("[workload]\nfile_size = \"4 KB\"\n"), &[], &LOCAL).unwrap_err();
    let mut shown = String::new();
    miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
        .with_width(200)
        .render_report(&mut shown, &error)
        .unwrap();
    assert!(shown.contains("s.toml:2:13"), "{shown}");
    assert!(shown.contains("2 │ file_size = \"4 KB\""), "{shown}");
}

/// Each fault in a line, its help behind an arrow.
pub(super) fn told(text: &str, overrides: &[Override], context: &Context) -> Vec<String> {
    let error = load(&source(text), overrides, context).unwrap_err();
    let line = |diagnostic: &dyn Diagnostic| match diagnostic.help() {
        Some(help) => format!("{diagnostic} -> {help}"),
        None => diagnostic.to_string(),
    };
    let mut lines = vec![line(&error)];
    lines.extend(error.related().into_iter().flatten().map(line));
    lines
}

/// A file's text, and what is told of it.
const FILES: &[(&str, &[&str])] = &[
    ("name = ", &["s.toml:1: not TOML: string values must be quoted, expected literal string"]),
    (
        "[workload]\nfile_size = \"4 MiB\"\nfile_size = \"4 MiB\"\n",
        &["s.toml:3: not TOML: duplicate key"],
    ),
    (
        "threads = 4\n",
        &["s.toml:1: threads: unknown key `threads` -> `threads` belongs in [workload], in a \
               [[stage]], or as a list in [sweep]"],
    ),
    ("[stages]\n", &["s.toml:1: stages: unknown key `stages` -> did you mean `stage`?"]),
    (
        "[workload]\nfile-size = \"4 MiB\"\nfoo_bar_baz = 1\n",
        &[
            "s.toml:2: workload.file-size: unknown key `file-size` -> did you mean \
                 `file_size`?",
            "s.toml:3: workload.foo_bar_baz: unknown key `foo_bar_baz` -> legal are mix, mix_by, \
                 threads, threads_per_node, nodes, layout, dirs, files, dir_sharing, file_size, block, \
                 pattern, step, zipf_theta, pareto_h, normal_deviation, duration, ramp, interval, \
                 loop, direct, engine, depth, sqpoll, iopoll, high_priority, rate, rate_per, \
                 arrivals, think, burst, content, compress, dedupe, refresh, verify, fsync, dsync, \
                 append, preallocate, truncate, lock, advice, cores, numa_nodes, huge_pages, fresh, \
                 cold, seed, on_fault, stuck_after",
        ],
    ),
    (
        "[fleet]\npath = \"/x\"\n",
        &["s.toml:2: fleet.path: unknown key `path` -> `path` belongs in [target]"],
    ),
    (
        "[stage]\nop = \"write\"\n",
        &["s.toml:1: stage: each stage is a section of its own, in two brackets: [[stage]]"],
    ),
    ("workload = 4\n", &["s.toml:1: workload: write it as a section, [workload]"]),
    (
        "[workload]\nfile_size = \"4 MiB\"\nthreads = 0\n",
        &["s.toml:3: workload.threads: `0` is not a whole number from 1 to 65536"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nthreads = [1, 2]\n",
        &["s.toml:3: workload.threads: a list is not a whole number from 1 to 65536; a list of \
               values belongs in [sweep], threads = …"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nthreads = \"4\"\nseed = 1.5\ndirect = \"true\"\n",
        &[
            "s.toml:3: workload.threads: write 4 without quotes",
            "s.toml:4: workload.seed: a decimal number is not a whole number from 0 up",
            "s.toml:5: workload.direct: write true without quotes",
        ],
    ),
    (
        "[workload]\nfile_size = 4096\nblock = \"4 KB\"\n",
        &[
            "s.toml:2: workload.file_size: `4096`: a size needs a unit, as in `4 KiB`",
            "s.toml:3: workload.block: `4 KB`: `KB` is not a unit of a size; did you mean kB \
                 (1000) or KiB (1024)?",
        ],
    ),
    (
        "[workload]\nfile_size = \"8388608 TiB\"\nblock = \"2 GiB\"\nduration = \"0 s\"\n\
             interval = \"1 ms\"\n",
        &[
            "s.toml:2: workload.file_size: `8388608 TiB` is not a size from 0 B to \
                 8388607 TiB, or a mix as in `4 KiB 70, 64 KiB 30`",
            "s.toml:3: workload.block: `2 GiB` is not a size from 1 B to 1 GiB, or a mix \
                 as in `4 KiB 70, 64 KiB 30`",
            "s.toml:4: workload.duration: `0 s` is not a time from 1 ms to 8760 h",
            "s.toml:5: workload.interval: `1 ms` is not a time from 10 ms to 1 h",
        ],
    ),
    (
        "[workload]\npattern = \"randomonce\"\nengine = \"io-uring\"\nlayout = true\n",
        &[
            "s.toml:2: workload.pattern: `randomonce` is not one of sequential, backward, \
                 strided, random, random-once, zipf, pareto, normal; did you mean `random-once`?",
            "s.toml:3: workload.engine: `io-uring` is not one of sync, io_uring, libaio, \
                 mmap, null; did you mean `io_uring`?",
            "s.toml:4: workload.layout: `true` is not one of file-per-thread, shared-file, \
                 shared-strided, tree, file-list, device",
        ],
    ),
    (
        "",
        &["s.toml: file_size is missing -> set workload.file_size (`--file-size 1GiB`): the \
               size of each thread's file, or of the whole shared file"],
    ),
    (
        "[workload]\nfile_size = \"10 MiB\"\nblock = \"3 MiB\"\n",
        &["s.toml:2: workload.file_size: file_size 10 MiB is not a multiple of block 3 MiB -> \
               the nearest are 9 MiB and 12 MiB"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[sweep]\nblock = [\"1 MiB\", \"3 MiB\"]\n",
        &["s.toml:2: workload.file_size: file_size 4 MiB is not a multiple of block 3 MiB -> \
               the nearest are 3 MiB and 6 MiB"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nthreads = 2\n[sweep]\nthreads = [1, 2]\n",
        &["s.toml:3: workload.threads: `threads` has no effect here: it is swept"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nblock = \"1 MiB\"\n[[stage]]\nop = \"write\"\n\
             block = \"2 MiB\"\n",
        &["s.toml:3: workload.block: `block` has no effect here: every stage sets it"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[sweep]\ndirect = [true, false]\n[[stage]]\n\
             op = \"write\"\ndirect = true\n",
        &["s.toml:7: stage.direct: `direct` is set in stage `write` and swept too -> leave one \
               of them out"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nthreads = 2\nthreads_per_node = 2\n",
        &["s.toml:4: workload.threads_per_node: `threads` and `threads_per_node` exclude each \
               other -> `threads` is of the whole fleet; leave one of them out"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nramp = \"1 s\"\nloop = false\n",
        &[
            "s.toml:3: workload.ramp: `ramp` has no effect without `duration` -> set a \
                 duration, or leave it out: by size each thread does its share once",
            "s.toml:4: workload.loop: `loop` has no effect without `duration` -> set a \
                 duration, or leave it out: by size each thread does its share once",
        ],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nduration = \"5 s\"\nramp = \"1500 ms\"\n",
        &["s.toml:4: workload.ramp: ramp 1.5 s is not a whole number of intervals of 1 s"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nduration = \"8760 h\"\ninterval = \"10 ms\"\n",
        &["s.toml:4: workload.interval: 8760 h in intervals of 10 ms are more than 10000000 \
               intervals"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"write\"\n[[stage]]\n\
             op = \"read\"\nfsync = \"none\"\nfresh = true\n",
        &[
            "s.toml:7: stage.fsync: `fsync` has no effect where nothing is written -> leave it \
                 out, or set it in a stage that writes",
            "s.toml:8: stage.fresh: `fresh` has no effect where no file of the campaign is \
                 written, and only written -> leave it out, or set it in a stage that writes",
        ],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\nlayout = \"shared-file\"\n[sweep]\n\
             threads = [4, 8]\n",
        &["s.toml:5: sweep.threads: 8 threads share a file of 4 blocks: each needs one at \
               least"],
    ),
    (
        "[target]\npath = \"/mnt/{node}\"\n[workload]\nfile_size = \"4 MiB\"\n\
             layout = \"shared-file\"\n",
        &["s.toml:5: workload.layout: a shared file needs one directory for all nodes, but \
               target.path has `{node}`"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nname = \"a\"\n[[stage]]\n\
             op = \"write\"\nname = \"a\"\n",
        &[
            "s.toml:3: a stage without `op` -> set op = \"write\" or op = \"read\"",
            "s.toml:7: stage.name: two stages are named `a`",
        ],
    ),
    (
        "[[stage]]\nop = \"write\"\nname = \"a b\"\n",
        &["s.toml:3: stage.name: `a b` is not letters, digits, `-` and `_`, at most 64; unique"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"read\"\n",
        &["s.toml:4: stage `read` reads what no earlier stage wrote -> put a write stage \
               of the same layout before it"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"write\"\nfresh = false\n",
        &["s.toml:5: stage.fresh: stage `write` rewrites what no earlier stage wrote -> put a \
               write stage of the same layout before it"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"write\"\nthreads = 2\n[[stage]]\n\
             op = \"read\"\nthreads = 3\n",
        &["s.toml:8: stage.threads: stage `read` reads the files of 3 threads, but only 2 were \
               written -> read with as many threads as the write stage, or fewer"],
    ),
    (
        "[[stage]]\nop = \"write\"\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"read\"\n\
             file_size = \"8 MiB\"\n",
        &["s.toml:6: stage.file_size: stage `read` reads 8 MiB of a file of which only 4 MiB \
               were written -> set file_size to 4 MiB at most"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"write\"\npattern = \"random\"\n\
             [[stage]]\nop = \"read\"\n",
        &["s.toml:7: stage `read` reads whole files, but they were written at random \
               with repetition, which leaves gaps -> write with `random-once`, or give the read \
               stage a duration"],
    ),
    (
        "[sweep]\nthreads = 4\nblock = []\ndirect = [true, true]\nrepeat = 0\n",
        &[
            "s.toml:2: sweep.threads: a list of values is needed; each is a whole number from \
                 1 to 65536",
            "s.toml:3: sweep.block: an empty list: name at least one value",
            "s.toml:4: sweep.direct: `true` stands twice -> to run points more than once, set \
                 sweep.repeat",
            "s.toml:5: sweep.repeat: `0` is not a whole number from 1 to 1000",
        ],
    ),
    (
        "[fleet]\nworkers = \"n[4-1]\"\nnetwork_limit = \"400 Gb/s\"\nlink_speed = \"0 bit/s\"\n\
             [target]\npath = \"mnt/x\"\nkeep = 1\n",
        &[
            "s.toml:3: fleet.network_limit: `400 Gb/s`: `Gb/s` is not a unit of a rate; did \
                 you mean Gbit/s (bits) or GB/s (bytes) or GiB/s (bytes, 1024³)?",
            "s.toml:4: fleet.link_speed: `0 bit/s`: a rate of 0; write a rate as in `100 Gbit/s`, with \
             others for some nodes as in `100 Gbit/s, client03 25 Gbit/s`",
            "s.toml:6: target.path: `mnt/x` is not an absolute path: it must begin with `/`",
            "s.toml:7: target.keep: `1` is not true or false",
            "s.toml:2: fleet.workers: `n[4-1]`: the range `4-1` runs backwards",
        ],
    ),
    (
        "[target]\npath = \"/mnt/{host}\"\n[workload]\nfile_size = \"1 MiB\"\n",
        &["s.toml:2: target.path: `/mnt/{host}`: only `{node}` and `{role}` expand"],
    ),
    (
        "[workload]\nfile_size = \"4 MiB\"\n[sweep]\nseed = [1,2,3,4,5,6,7,8,9,10,11]\n\
             repeat = 1000\n",
        &["s.toml:4: 22000 points, more than 10000 -> sweep over fewer values, or repeat less \
               often"],
    ),
];

/// An argument or a variable, and what is told of it behind its own text.
const ARGUMENTS: &[(&str, &str)] = &[
    (
        "--set workload.block=4q",
        "--set workload.block=4q: `4q`: `q` is not a unit of a size; legal are B, kB, MB, GB, \
             TB, KiB, MiB, GiB, TiB",
    ),
    ("--threads 0", "--threads 0: `0` is not a whole number from 1 to 65536"),
    ("--threads 1,x", "--threads 1,x: `x` is not a whole number from 1 to 65536"),
    (
        "IOFLEET_BLOCK=3 MiB",
        "IOFLEET_BLOCK=3 MiB: file_size 4 MiB is not a multiple of block 3 MiB -> the nearest \
             are 3 MiB and 6 MiB",
    ),
    (
        "--set workload.threads=1,2",
        "--set workload.threads=1,2: `1,2` is not a whole number from 1 to 65536; a list of \
             values belongs in sweep.threads",
    ),
    ("--set sweep.layout=", "--set sweep.layout=: an empty list: name at least one value"),
    (
        "--set threads=4",
        "--set threads=4: there is no key `threads` -> write workload.threads, sweep.threads \
             or stage.NAME.threads; this one is a whole number from 1 to 65536",
    ),
    (
        "--set workload.thread=4",
        "--set workload.thread=4: unknown key `thread` -> did you mean `threads`?",
    ),
    (
        "--set stage.reed.direct=true",
        "--set stage.reed.direct=true: no stage is named `reed` -> the stages are write, read",
    ),
    (
        "--set a.b.c.d=1",
        "--set a.b.c.d=1: there is no key `a.b.c.d` -> write workload.KEY, sweep.KEY, \
             stage.NAME.KEY, fleet.KEY or target.KEY; docs/scenarios.md lists the keys",
    ),
    ("--set path=/x", "--set path=/x: there is no key `path` -> write target.path"),
    (
        "--loop false",
        "--loop false: `loop` has no effect without `duration` -> set a duration, or leave it \
             out: by size each thread does its share once",
    ),
    (
        "--set stage.read.fsync=end",
        "--set stage.read.fsync=end: `fsync` has no effect where nothing is written -> leave it \
             out, or set it in a stage that writes",
    ),
    ("--direct yes", "--direct yes: `yes` is not true or false"),
];

/// A line that nobody can read is named and not shown.
#[test]
fn an_endless_line_is_not_shown() {
    let shown = |text: &str| {
        let source = Source { name: "s.toml".to_owned(), text: text.to_owned() };
        let context = Context { local: true, workers_flag: None };
        let error = load(&source, &[], &context).unwrap_err();
        format!("{:?}", miette::Report::new(error))
    };
    let endless = shown(&format!("x = {}", "[".repeat(10_000)));
    assert!(endless.contains("s.toml:1") && endless.len() < 1_000, "{endless}");
    assert!(shown("[workload]\nblok = 1\n").contains("blok = 1"));
}
