//! Scenarios from their text: what they mean, and what each fault is told.

use iofleet_shared::work::{Fsync, Layout, OpKind, Pattern};

use super::{keys::nearest, *};
use crate::plan::Plan;

const LOCAL: Context = Context {
    local: true,
    workers_flag: None,
};
const SIZE: &str = "[workload]\nfile_size = \"4 MiB\"\n";

fn source(text: &str) -> Source {
    Source {
        name: "s.toml".to_owned(),
        text: text.to_owned(),
    }
}

fn good(text: &str) -> Scenario {
    with(text, &[])
}

fn with(text: &str, overrides: &[Override]) -> Scenario {
    load(&source(text), overrides, &LOCAL).unwrap_or_else(|error| panic!("{:?}", error.lines()))
}

fn set(argument: &str) -> Override {
    Override::set(argument).unwrap()
}

fn flag(name: &str, value: &str) -> Override {
    Override::flag(
        KEYS.iter()
            .find(|key| key.flag && key.name == name)
            .unwrap(),
        value,
    )
}

/// Each fault in a line, its help behind an arrow.
fn faults(text: &str, overrides: &[Override], context: &Context) -> Vec<String> {
    use miette::Diagnostic;
    let error = load(&source(text), overrides, context).unwrap_err();
    let line = |diagnostic: &dyn Diagnostic| match diagnostic.help() {
        Some(help) => format!("{diagnostic} -> {help}"),
        None => diagnostic.to_string(),
    };
    let mut lines = vec![line(&error)];
    lines.extend(error.related().into_iter().flatten().map(line));
    lines
}

#[test]
fn defaults_are_those_of_the_table() {
    let scenario = good(SIZE);
    assert_eq!(scenario.name, "s");
    let stages: Vec<_> = scenario
        .points
        .iter()
        .map(|point| point.stage.as_str())
        .collect();
    assert_eq!(stages, ["write", "read"]);
    let expected = Params {
        op: OpKind::Write,
        threads: Threads::Fleet(1),
        layout: Layout::FilePerThread,
        file_bytes: 4 << 20,
        block_bytes: 1 << 20,
        pattern: Pattern::Sequential,
        duration_ns: None,
        ramp_ns: 0,
        interval_ns: 1_000_000_000,
        repeat_range: false,
        direct: true,
        engine: EngineKind::Sync,
        fsync: Fsync::End,
        fresh: true,
        seed: 1,
        on_fault: OnFault::Continue,
        stuck_after_ns: 60_000_000_000,
    };
    assert_eq!(scenario.points[0].params, expected);
    let read = Params {
        op: OpKind::Read,
        fsync: Fsync::None,
        fresh: false,
        ..expected
    };
    assert_eq!(scenario.points[1].params, read);
}

#[test]
fn sweeps_nest_as_written_then_repetitions_then_stages() {
    let scenario = good(&format!(
        "{SIZE}duration = \"1 s\"\n[sweep]\nblock = [\"1 MiB\", \"2 MiB\"]\nthreads = [1, 2]\nrepeat = 2\n"
    ));
    let shown: Vec<String> = scenario
        .points
        .iter()
        .map(|point| {
            let swept: Vec<_> = point
                .swept
                .iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect();
            format!(
                "{} {} {} {}",
                point.group,
                point.repeat,
                swept.join(" "),
                point.stage
            )
        })
        .collect();
    assert_eq!(shown.len(), 16);
    assert_eq!(shown[0], "0 0 block=1 MiB threads=1 write");
    assert_eq!(shown[1], "0 0 block=1 MiB threads=1 read");
    assert_eq!(shown[2], "1 1 block=1 MiB threads=1 write");
    assert_eq!(shown[4], "2 0 block=1 MiB threads=2 write");
    assert_eq!(shown[8], "4 0 block=2 MiB threads=1 write");
    assert_eq!(shown[15], "7 1 block=2 MiB threads=2 read");
    assert!(
        scenario
            .points
            .iter()
            .zip(0..)
            .all(|(point, index)| point.index == index)
    );
    assert!(scenario.points[0].params.repeat_range);
}

#[test]
fn stages_get_names() {
    let scenario = good(&format!(
        "{SIZE}[[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\nname = \"write-2\"\n\
         [[stage]]\nop = \"write\"\nfresh = false\n[[stage]]\nop = \"read\"\n"
    ));
    let stages: Vec<_> = scenario
        .points
        .iter()
        .map(|point| point.stage.as_str())
        .collect();
    assert_eq!(stages, ["write", "write-2", "write-3", "read"]);
    let inline = good("workload.file_size = \"1 MiB\"\nstage = [{ op = \"write\" }]\n");
    assert_eq!(inline.points.len(), 1);
}

#[test]
fn every_fault_of_a_file_is_told_at_its_place() {
    let cases: &[(&str, &[&str])] = &[
        (
            "name = ",
            &["s.toml:1: not TOML: string values must be quoted, expected literal string"],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\nfile_size = \"4 MiB\"\n",
            &["s.toml:3: not TOML: duplicate key"],
        ),
        (
            "threads = 4\n",
            &[
                "s.toml:1: threads: unknown key `threads` -> `threads` belongs in [workload], in a \
               [[stage]], or as a list in [sweep]",
            ],
        ),
        (
            "[stages]\n",
            &["s.toml:1: stages: unknown key `stages` -> did you mean `stage`?"],
        ),
        (
            "[workload]\nfile-size = \"4 MiB\"\nfoo_bar_baz = 1\n",
            &[
                "s.toml:2: workload.file-size: unknown key `file-size` -> did you mean \
                 `file_size`?",
                "s.toml:3: workload.foo_bar_baz: unknown key `foo_bar_baz` -> legal are threads, \
                 threads_per_node, layout, file_size, block, pattern, duration, ramp, interval, \
                 loop, direct, engine, fsync, fresh, seed, on_fault, stuck_after",
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
        (
            "workload = 4\n",
            &["s.toml:1: workload: write it as a section, [workload]"],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\nthreads = 0\n",
            &["s.toml:3: workload.threads: `0` is not a whole number from 1 to 65536"],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\nthreads = [1, 2]\n",
            &[
                "s.toml:3: workload.threads: a list is not a whole number from 1 to 65536; a list of \
               values belongs in [sweep], threads = …",
            ],
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
            "[workload]\nfile_size = \"0 B\"\nblock = \"2 GiB\"\nduration = \"0 s\"\n\
             interval = \"1 ms\"\n",
            &[
                "s.toml:2: workload.file_size: `0 B` is not a size from 1 B to 8388607 TiB",
                "s.toml:3: workload.block: `2 GiB` is not a size from 1 B to 1 GiB",
                "s.toml:4: workload.duration: `0 s` is not a time from 1 ms to 8760 h",
                "s.toml:5: workload.interval: `1 ms` is not a time from 10 ms to 1 h",
            ],
        ),
        (
            "[workload]\npattern = \"randomonce\"\nengine = \"io_uring\"\nlayout = true\n",
            &[
                "s.toml:2: workload.pattern: `randomonce` is not one of sequential, random, \
                 random-once; did you mean `random-once`?",
                "s.toml:3: workload.engine: `io_uring` is not built; there is only sync",
                "s.toml:4: workload.layout: `true` is not one of file-per-thread, shared-file",
            ],
        ),
        (
            "",
            &[
                "s.toml: file_size is missing -> set workload.file_size (`--file-size 1GiB`): the \
               size of each thread's file, or of the whole shared file",
            ],
        ),
        (
            "[workload]\nfile_size = \"10 MiB\"\nblock = \"3 MiB\"\n",
            &[
                "s.toml:2: workload.file_size: file_size 10 MiB is not a multiple of block 3 MiB -> \
               the nearest are 9 MiB and 12 MiB",
            ],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\n[sweep]\nblock = [\"1 MiB\", \"3 MiB\"]\n",
            &[
                "s.toml:2: workload.file_size: file_size 4 MiB is not a multiple of block 3 MiB -> \
               the nearest are 3 MiB and 6 MiB",
            ],
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
            &[
                "s.toml:7: stage.direct: `direct` is set in stage `write` and swept too -> leave one \
               of them out",
            ],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\nthreads = 2\nthreads_per_node = 2\n",
            &[
                "s.toml:4: workload.threads_per_node: `threads` and `threads_per_node` exclude each \
               other -> `threads` is of the whole fleet; leave one of them out",
            ],
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
            &[
                "s.toml:4: workload.interval: 8760 h in intervals of 10 ms are more than 10000000 \
               intervals",
            ],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"write\"\n[[stage]]\n\
             op = \"read\"\nfsync = \"none\"\nfresh = true\n",
            &[
                "s.toml:7: stage.fsync: `fsync` has no effect on reads -> leave it out, or set it \
                 in a stage that writes",
                "s.toml:8: stage.fresh: `fresh` has no effect on reads -> leave it out, or set it \
                 in a stage that writes",
            ],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\nlayout = \"shared-file\"\n[sweep]\n\
             threads = [4, 8]\n",
            &[
                "s.toml:5: sweep.threads: 8 threads share a file of 4 blocks: each needs one at \
               least",
            ],
        ),
        (
            "[target]\npath = \"/mnt/{node}\"\n[workload]\nfile_size = \"4 MiB\"\n\
             layout = \"shared-file\"\n",
            &[
                "s.toml:5: workload.layout: a shared file needs one directory for all nodes, but \
               target.path has `{node}`",
            ],
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
            &[
                "s.toml:3: stage.name: `a b` is not letters, digits, `-` and `_`, at most 64; unique",
            ],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"read\"\n",
            &[
                "s.toml:4: stage `read` reads what no earlier stage wrote -> put a write stage \
               of the same layout before it",
            ],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"write\"\nfresh = false\n",
            &[
                "s.toml:5: stage.fresh: stage `write` rewrites what no earlier stage wrote -> put a \
               write stage of the same layout before it",
            ],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"write\"\nthreads = 2\n[[stage]]\n\
             op = \"read\"\nthreads = 3\n",
            &[
                "s.toml:8: stage.threads: stage `read` reads the files of 3 threads, but only 2 were \
               written -> read with as many threads as the write stage, or fewer",
            ],
        ),
        (
            "[[stage]]\nop = \"write\"\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"read\"\n\
             file_size = \"8 MiB\"\n",
            &[
                "s.toml:6: stage.file_size: stage `read` reads 8 MiB of a file of which only 4 MiB \
               were written -> set file_size to 4 MiB at most",
            ],
        ),
        (
            "[workload]\nfile_size = \"4 MiB\"\n[[stage]]\nop = \"write\"\npattern = \"random\"\n\
             [[stage]]\nop = \"read\"\n",
            &[
                "s.toml:7: stage `read` reads whole files, but they were written at random \
               with repetition, which leaves gaps -> write with `random-once`, or give the read \
               stage a duration",
            ],
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
                "s.toml:4: fleet.link_speed: `0 bit/s` is not a rate above 0, as in `100 Gbit/s`",
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
            &[
                "s.toml:4: 22000 points, more than 10000 -> sweep over fewer values, or repeat less \
               often",
            ],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(faults(text, &[], &LOCAL), *expected, "{text}");
    }
}

#[test]
fn what_a_fleet_needs_is_asked_for() {
    let remote = Context::default();
    assert_eq!(
        faults(SIZE, &[], &remote),
        [
            "s.toml: no workers are named -> name the workers with `--workers client[01-04]` (or \
         fleet.workers in the file), or start some on this machine with `--local 4`",
            "s.toml: no target is named -> name a directory on the file system under test with `--path \
         /mnt/beegfs/iofleet` (or target.path in the file)",
        ]
    );
    let bad = Context {
        workers_flag: Some("a,,b".to_owned()),
        ..remote
    };
    assert_eq!(
        faults(SIZE, &[flag("path", "/x")], &bad),
        ["--workers a,,b: `a,,b`: nothing between two commas"]
    );
    let text =
        format!("[fleet]\nworkers = \"n[1-2]\"\n[target]\npath = \"/m/{{role}}/{{node}}\"\n{SIZE}");
    let context = Context {
        local: false,
        workers_flag: None,
    };
    let scenario = load(&source(&text), &[], &context).unwrap();
    assert_eq!(hosts::show(&scenario.fleet.workers), "n1,n2");
    assert_eq!(
        scenario.target.path_of("n1").as_deref(),
        Some("/m/client/n1")
    );
    let flag = Context {
        local: false,
        workers_flag: Some("x:9".to_owned()),
    };
    let scenario = load(&source(&text), &[], &flag).unwrap();
    assert_eq!(hosts::show(&scenario.fleet.workers), "x:9");
    assert!(good(&text).fleet.workers.is_empty());
}

#[test]
fn the_last_override_wins_and_takes_the_place_of_the_file() {
    let text = format!(
        "{SIZE}block = \"1 MiB\"\n[sweep]\nthreads = [1, 2]\ninterval = [\"1 s\", \"2 s\"]\n\
         [[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\ndirect = false\n"
    );
    let swept = |overrides: &[Override]| -> Vec<(String, String)> {
        with(&text, overrides).points.last().unwrap().swept.clone()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(swept(&[]), [pair("threads", "2"), pair("interval", "2 s")]);
    // A sweep keeps its place in the nesting, also for its alternative.
    assert_eq!(
        swept(&[set("sweep.threads=3,4")]),
        [pair("threads", "4"), pair("interval", "2 s")]
    );
    assert_eq!(
        swept(&[set("sweep.threads_per_node= 3, 4")]),
        [pair("threads_per_node", "4"), pair("interval", "2 s")]
    );
    // A single value takes the place of a sweep, and the other way round.
    assert_eq!(swept(&[flag("threads", "8")]), [pair("interval", "2 s")]);
    assert_eq!(
        swept(&[flag("threads_per_node", "8")]),
        [pair("interval", "2 s")]
    );
    let last = swept(&[
        set("workload.threads=8"),
        flag("block", "1MiB,4 MiB"),
        flag("threads", "1,2"),
    ]);
    assert_eq!(
        last,
        [
            pair("interval", "2 s"),
            pair("block", "4 MiB"),
            pair("threads", "2")
        ]
    );
    // --set changes one place, a flag the key wherever it stands.
    let direct = |overrides: &[Override]| -> Vec<bool> {
        with(&text, overrides).points[..2]
            .iter()
            .map(|point| point.params.direct)
            .collect()
    };
    assert_eq!(direct(&[]), [true, false]);
    assert_eq!(direct(&[set("stage.write.direct=false")]), [false, false]);
    assert_eq!(
        direct(&[set("workload.direct=false"), set("stage.read.direct=true")]),
        [false, true]
    );
    assert_eq!(direct(&[flag("direct", "true")]), [true, true]);
    let scenario = with(
        &text,
        &[
            set("name=n"),
            set("fleet.network_limit=80Mbit/s"),
            set("sweep.repeat=2"),
            flag("keep", "true"),
            flag("path", "/p"),
        ],
    );
    assert_eq!(scenario.name, "n");
    assert_eq!(scenario.fleet.network_limit, Some(10_000_000.0));
    assert_eq!(scenario.points.len(), 16);
    assert_eq!(
        scenario.target,
        TargetConfig {
            path: Some("/p".to_owned()),
            keep: true
        }
    );
    // Default stages can be changed too.
    assert!(
        !with(SIZE, &[set("stage.read.direct=false")]).points[1]
            .params
            .direct
    );
}

#[test]
fn every_fault_of_an_argument_is_told_at_it() {
    let block = Key::of(KeyId::Block);
    let cases: &[(Override, &str)] = &[
        (
            set("workload.block=4q"),
            "--set workload.block=4q: `4q`: `q` is not a unit of a size; legal are B, kB, MB, GB, \
             TB, KiB, MiB, GiB, TiB",
        ),
        (
            flag("threads", "0"),
            "--threads 0: `0` is not a whole number from 1 to 65536",
        ),
        (
            flag("threads", "1,x"),
            "--threads 1,x: `x` is not a whole number from 1 to 65536",
        ),
        (
            Override::environment(block, "3 MiB"),
            "IOFLEET_BLOCK=3 MiB: file_size 4 MiB is not a multiple of block 3 MiB -> the nearest \
             are 3 MiB and 6 MiB",
        ),
        (
            set("workload.threads=1,2"),
            "--set workload.threads=1,2: `1,2` is not a whole number from 1 to 65536; a list of \
             values belongs in sweep.threads",
        ),
        (
            set("sweep.layout="),
            "--set sweep.layout=: an empty list: name at least one value",
        ),
        (
            set("threads=4"),
            "--set threads=4: there is no key `threads` -> write workload.threads, sweep.threads \
             or stage.NAME.threads; this one is a whole number from 1 to 65536",
        ),
        (
            set("workload.thread=4"),
            "--set workload.thread=4: unknown key `thread` -> did you mean `threads`?",
        ),
        (
            set("stage.reed.direct=true"),
            "--set stage.reed.direct=true: no stage is named `reed` -> the stages are write, read",
        ),
        (
            set("a.b.c.d=1"),
            "--set a.b.c.d=1: there is no key `a.b.c.d` -> write workload.KEY, sweep.KEY, \
             stage.NAME.KEY, fleet.KEY or target.KEY; docs/scenarios.md lists the keys",
        ),
        (
            set("path=/x"),
            "--set path=/x: there is no key `path` -> write target.path",
        ),
        (
            flag("loop", "false"),
            "--loop false: `loop` has no effect without `duration` -> set a duration, or leave it \
             out: by size each thread does its share once",
        ),
        (
            set("stage.read.fsync=end"),
            "--set stage.read.fsync=end: `fsync` has no effect on reads -> leave it out, or set it \
             in a stage that writes",
        ),
        (
            flag("direct", "yes"),
            "--direct yes: `yes` is not true or false",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(
            faults(SIZE, std::slice::from_ref(change), &LOCAL),
            [*expected]
        );
    }
    let error = Override::set("workload.block").unwrap_err();
    assert_eq!(
        error.to_string(),
        "--set workload.block: write KEY=VALUE, as in `--set workload.block=4MiB`"
    );
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

#[test]
fn covered_reads_are_accepted() {
    let texts = [
        // Fewer threads and less of a file than were written.
        "[[stage]]\nop = \"write\"\nthreads = 4\n[[stage]]\nop = \"read\"\nthreads = 2\nblock = \"512 KiB\"\n",
        // A shared file is covered whatever the threads are.
        "[[stage]]\nop = \"write\"\nlayout = \"shared-file\"\n[[stage]]\nop = \"read\"\nthreads = 4\nlayout = \"shared-file\"\n",
        // Random with repetition is no matter where the read takes what there is.
        "[[stage]]\nop = \"write\"\npattern = \"random\"\n[[stage]]\nop = \"read\"\nduration = \"1 s\"\n",
        // A rewrite of everything fills the gaps.
        "[[stage]]\nop = \"write\"\npattern = \"random\"\n[[stage]]\nop = \"write\"\nfresh = false\n[[stage]]\nop = \"read\"\n",
        // A fresh write with fewer threads leaves the files of the others.
        "[[stage]]\nop = \"write\"\nthreads = 4\n[[stage]]\nop = \"write\"\nthreads = 1\n[[stage]]\nop = \"read\"\nthreads = 4\n",
    ];
    for text in texts {
        good(&format!("{SIZE}{text}"));
    }
    let partly = "[[stage]]\nop = \"write\"\nthreads = 4\n[[stage]]\nop = \"write\"\n\
                  threads = 1\nfile_size = \"2 MiB\"\n[[stage]]\nop = \"read\"\nthreads = 4\n";
    let told = faults(&format!("{SIZE}{partly}"), &[], &LOCAL);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("reads 4 MiB of a file of which only 2 MiB were written"),
        "{told:?}"
    );
}

#[test]
fn the_resolved_form_means_the_same() {
    let texts = [
        SIZE.to_owned(),
        format!("notes = \"a\\n\\\"b\\\"\"\nquestion = \"q?\"\n{SIZE}threads_per_node = 3\n"),
        format!(
            "[fleet]\nworkers = \"n[1-2]:7,[fd00::1]\"\nnetwork_limit = \"1 GiB/s\"\n[target]\n\
             path = \"/p\"\nkeep = true\n{SIZE}duration = \"2 s\"\nramp = \"1 s\"\nloop = false\n\
             [sweep]\nthreads = [1, 2]\nlayout = [\"shared-file\", \"file-per-thread\"]\n\
             direct = [false, true]\nrepeat = 2\n"
        ),
        "[[stage]]\nop = \"write\"\nfile_size = \"1 MiB\"\nthreads = 2\n[[stage]]\nop = \"read\"\n\
         file_size = \"1 MiB\"\nthreads_per_node = 1\nduration = \"1 s\"\nname = \"r\"\n"
            .to_owned(),
        Source::quick().text,
        include_str!("../../../scenarios/ramp.toml").to_owned(),
    ];
    for text in texts {
        for local in [true, false] {
            let workers_flag = (!local).then(|| "m[1-3]".to_owned());
            let first = Context {
                local,
                workers_flag,
            };
            let overrides = if local {
                vec![]
            } else {
                vec![flag("path", "/q")]
            };
            let scenario = load(&source(&text), &overrides, &first).unwrap();
            let again = source(&scenario.resolved_toml);
            let second = Context {
                local,
                workers_flag: None,
            };
            let resolved = load(&again, &[], &second)
                .unwrap_or_else(|error| panic!("{:?}\n{}", error.lines(), again.text));
            assert_eq!(resolved, scenario);
        }
    }
}

#[test]
fn the_id_is_of_the_meaning() {
    let id = |text: &str| good(text).id;
    let base = id(SIZE);
    assert_eq!(base.len(), 64);
    let same = [
        format!("name = \"other\"\nquestion = \"?\"\nnotes = \"n\"\n{SIZE}"),
        format!("[target]\npath = \"/elsewhere\"\n{SIZE}"),
        format!("{SIZE}block = \"1024 KiB\"\n[sweep]\nthreads = [1]\nrepeat = 1\n"),
        format!("{SIZE}[[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n"),
    ];
    for text in same {
        assert_eq!(id(&text), base, "{text}");
    }
    let other = [
        format!("{SIZE}seed = 2\n"),
        format!("[fleet]\nnetwork_limit = \"1 Gbit/s\"\n{SIZE}"),
        format!("{SIZE}[sweep]\nrepeat = 2\n"),
        format!("{SIZE}threads_per_node = 1\n"),
        format!("{SIZE}[[stage]]\nop = \"write\"\nname = \"w\"\n[[stage]]\nop = \"read\"\n"),
    ];
    for text in other {
        assert_ne!(id(&text), base, "{text}");
    }
}

#[test]
fn shipped_scenarios_are_what_they_were() {
    let quick = load(&Source::quick(), &[], &LOCAL).unwrap();
    let ramp_text = include_str!("../../../scenarios/ramp.toml");
    let ramp_source = Source {
        name: "scenarios/ramp.toml".to_owned(),
        text: ramp_text.to_owned(),
    };
    let ramp = load(&ramp_source, &[], &Context::default()).unwrap();
    for (scenario, text) in [(&quick, Source::quick().text.as_str()), (&ramp, ramp_text)] {
        let question = scenario.question.as_deref().unwrap();
        assert_eq!(text.lines().next(), Some(format!("# {question}").as_str()));
        assert!(text.lines().any(|line| line.starts_with("# Cost: ")));
    }
    assert_eq!(quick.points.len(), 8);
    let plan = Plan::new(&quick, 4).unwrap();
    assert_eq!((plan.space_bytes, plan.files), (128 << 20, 8));
    let plan = Plan::new(&ramp, 4).unwrap();
    assert_eq!(plan.points.len(), 18);
    assert_eq!((plan.space_bytes, plan.files), (4 << 40, 256));
    let bytes: u64 = plan.points.iter().filter_map(|point| point.bytes).sum();
    assert_eq!(bytes, 2 * 511 * (16 << 30));
    // Changes only when the meaning of the file or of the language changes.
    assert_eq!(
        quick.id,
        "20f12ee8d675cb8479e87886972cf314715e4df04d9f2c36d08ae8a8f952f2cf"
    );
    assert_eq!(
        ramp.id,
        "e494e741f7f65dc7cd3cb4075d08412cebc501ae9f947ceea82e220d54bd289f"
    );
}

#[test]
fn the_documents_are_those_of_the_table() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let update = std::env::var_os("IOFLEET_UPDATE").is_some();
    let schema = format!("{:#}\n", json_schema());
    let page = std::fs::read_to_string(docs.join("scenarios.md")).unwrap();
    let (before, rest) = page.split_once(TABLE_BEGINS).unwrap();
    let (_, after) = rest.split_once(TABLE_ENDS).unwrap();
    let fresh = format!("{before}{TABLE_BEGINS}\n{}{TABLE_ENDS}{after}", key_table());
    if update {
        std::fs::write(docs.join("scenario.schema.json"), &schema).unwrap();
        std::fs::write(docs.join("scenarios.md"), &fresh).unwrap();
    }
    let hint = "IOFLEET_UPDATE=1 cargo test -p iofleet-coordinator documents writes it anew";
    let stored = std::fs::read_to_string(docs.join("scenario.schema.json")).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(parsed, json_schema(), "{hint}");
    let page = std::fs::read_to_string(docs.join("scenarios.md")).unwrap();
    assert_eq!(page, fresh, "{hint}");
}

#[test]
fn the_schema_takes_what_the_parser_takes() {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    let json = |text: &str| -> serde_json::Value {
        serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
    };
    let ramp = include_str!("../../../scenarios/ramp.toml");
    let resolved = good(&format!("{SIZE}duration = \"1.5 min\"\n")).resolved_toml;
    for text in [Source::quick().text.as_str(), ramp, &resolved] {
        let errors: Vec<String> = validator
            .iter_errors(&json(text))
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{text}");
    }
    let wrong = [
        "threads = 4",
        "[workload]\nthreads = 0",
        "[workload]\nblock = 4096",
        "[workload]\nblock = \"4 KB\"",
        "[workload]\nlayout = \"shared\"",
        "[sweep]\nthreads = []",
        "[sweep]\nthreads = 4",
        "[[stage]]\nname = \"a\"",
        "[target]\npath = \"x\"",
    ];
    for text in wrong {
        assert!(!validator.is_valid(&json(text)), "{text}");
    }
}

/// All that a run takes from a scenario: its parts, and every worker's plans.
fn outcome(scenario: &Scenario) -> String {
    let nodes = 2;
    let plan = Plan::new(scenario, nodes).unwrap();
    let workers = crate::plan::tests::run(&plan);
    // What differs only in the record is not taken from it: the resolved text tells that.
    format!(
        "{:?} {:?} {:?} {:?} {workers:?} {} {:?}",
        scenario.name,
        scenario.question,
        scenario.fleet,
        scenario.target,
        plan.space_bytes,
        plan.points
            .iter()
            .map(|point| (
                &point.spec.stage,
                point.spec.repeat,
                point.spec.params.on_fault
            ))
            .collect::<Vec<_>>(),
    )
}

#[test]
fn every_key_changes_what_is_run() {
    let base = "workload.file_size = \"8 MiB\"\nworkload.duration = \"2 s\"\n\
                target.path = \"/p\"\nfleet.workers = \"a,b\"\n";
    for key in KEYS {
        // A line before or after the base that gives the key one value, and another.
        let (one, other) = match key.id {
            KeyId::Name | KeyId::Question | KeyId::Notes => ("\"a\"", "\"b\""),
            KeyId::Workers => ("\"a,b\"", "\"a,c\""),
            KeyId::NetworkLimit | KeyId::LinkSpeed => ("\"1 Gbit/s\"", "\"2 Gbit/s\""),
            KeyId::Path => ("\"/p\"", "\"/q\""),
            KeyId::Keep | KeyId::Loop | KeyId::Direct => ("true", "false"),
            // A rewrite needs a write before it, as the stages below have.
            KeyId::Fresh => ("true", "false"),
            KeyId::Repeat | KeyId::Threads | KeyId::ThreadsPerNode | KeyId::Seed => ("1", "2"),
            KeyId::Op => ("\"write\"", "\"read\""),
            KeyId::StageName => ("\"a\"", "\"b\""),
            KeyId::Layout => ("\"file-per-thread\"", "\"shared-file\""),
            KeyId::FileSize => ("\"4 MiB\"", "\"8 MiB\""),
            KeyId::Block => ("\"1 MiB\"", "\"2 MiB\""),
            KeyId::Pattern => ("\"random\"", "\"random-once\""),
            KeyId::Duration => ("\"2 s\"", "\"3 s\""),
            KeyId::Ramp => ("\"1 s\"", "\"2 s\""),
            KeyId::Interval => ("\"1 s\"", "\"500 ms\""),
            KeyId::Fsync => ("\"none\"", "\"each\""),
            KeyId::OnFault => ("\"continue\"", "\"abort\""),
            KeyId::StuckAfter => ("\"5 s\"", "\"6 s\""),
            KeyId::Engine => {
                // It has only one value as yet, which the plan carries.
                assert!(matches!(key.kind, Kind::Choice([_])));
                continue;
            }
        };
        let text = |value: &str| {
            let name = key.name;
            let path = key.path();
            let base: String = base
                .lines()
                .filter(|line| !line.starts_with(&path))
                .map(|l| format!("{l}\n"))
                .collect();
            let first = "[[stage]]\nop = \"write\"\nname = \"first\"\n";
            match key.place {
                Place::Stage if key.id == KeyId::Op => {
                    format!("{base}{first}[[stage]]\nname = \"second\"\nop = {value}\n")
                }
                Place::Stage => {
                    format!("{base}{first}[[stage]]\nop = \"write\"\n{name} = {value}\n")
                }
                Place::Workload if key.id == KeyId::Fresh => {
                    format!("{base}{first}[[stage]]\nop = \"write\"\n{name} = {value}\n")
                }
                _ => format!("{path} = {value}\n{base}"),
            }
        };
        let load = |value: &str| {
            load(&source(&text(value)), &[], &Context::default())
                .unwrap_or_else(|error| panic!("{}: {:?}", key.name, error.lines()))
        };
        let (one, other) = (load(one), load(other));
        if key.id == KeyId::Notes {
            assert_ne!(one.resolved_toml, other.resolved_toml);
        } else {
            assert_ne!(outcome(&one), outcome(&other), "{}", key.name);
        }
    }
}

#[test]
fn legal_words_are_near_to_their_misspellings() {
    assert_eq!(
        nearest("contine", ["continue", "abort"].into_iter()),
        Some("continue")
    );
}

const TABLE_BEGINS: &str = "<!-- The table of keys, written by a test. -->";
const TABLE_ENDS: &str = "<!-- End of the table of keys. -->";
