//! Scenarios from their text: what they mean, and what each fault is told.

use iofleet_shared::work::{Fsync, OpKind, OpShare, SizeShare};

use super::{keys::nearest, *};
use crate::plan::Plan;

mod combinations;
mod effects;
mod faults;

const LOCAL: Context = Context { local: true, workers_flag: None };
const SIZE: &str = "[workload]\nfile_size = \"4 MiB\"\n";

fn source(text: &str) -> Source {
    Source { name: "s.toml".to_owned(), text: text.to_owned() }
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
    Override::flag(KEYS.iter().find(|key| key.flag && key.name == name).unwrap(), value)
}

#[test]
fn defaults_are_those_of_the_table() {
    let scenario = good(SIZE);
    assert_eq!(scenario.name, "s");
    let stages: Vec<_> = scenario.points.iter().map(|point| point.stage.as_str()).collect();
    assert_eq!(stages, ["write", "read"]);
    let expected =
        Params { file_sizes: vec![SizeShare { bytes: 4 << 20, weight: 1 }], ..Params::default() };
    assert_eq!(scenario.points[0].params, expected);
    let ops = vec![OpShare { op: OpKind::Read, weight: 1 }];
    let read = Params { ops, fsync: Fsync::None, fresh: false, ..expected };
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
            let swept: Vec<_> = point.swept.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("{} {} {} {}", point.group, point.repeat, swept.join(" "), point.stage)
        })
        .collect();
    assert_eq!(shown.len(), 16);
    assert_eq!(shown[0], "0 0 block=1 MiB threads=1 write");
    assert_eq!(shown[1], "0 0 block=1 MiB threads=1 read");
    assert_eq!(shown[2], "1 1 block=1 MiB threads=1 write");
    assert_eq!(shown[4], "2 0 block=1 MiB threads=2 write");
    assert_eq!(shown[8], "4 0 block=2 MiB threads=1 write");
    assert_eq!(shown[15], "7 1 block=2 MiB threads=2 read");
    assert!(scenario.points.iter().zip(0..).all(|(point, index)| point.index == index));
    assert!(scenario.points[0].params.repeat_range);
}

#[test]
fn stages_get_names() {
    let scenario = good(&format!(
        "{SIZE}[[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\nname = \"write-2\"\n\
         [[stage]]\nop = \"write\"\nfresh = false\n[[stage]]\nop = \"read\"\n"
    ));
    let stages: Vec<_> = scenario.points.iter().map(|point| point.stage.as_str()).collect();
    assert_eq!(stages, ["write", "write-2", "write-3", "read"]);
    let inline = good("workload.file_size = \"1 MiB\"\nstage = [{ op = \"write\" }]\n");
    assert_eq!(inline.points.len(), 1);
}

/// Swept keys, and a stage with a value of its own.
fn swept_text() -> String {
    format!(
        "{SIZE}block = \"1 MiB\"\n[sweep]\nthreads = [1, 2]\ninterval = [\"1 s\", \"2 s\"]\n\
         [[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\ndirect = false\n"
    )
}

#[test]
fn the_last_override_wins_and_takes_the_place_of_the_file() {
    let swept = |overrides: &[Override]| -> Vec<(String, String)> {
        with(&swept_text(), overrides).points.last().unwrap().swept.clone()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(swept(&[]), [pair("threads", "2"), pair("interval", "2 s")]);
    // A sweep keeps its place in the nesting, also for its alternative.
    assert_eq!(swept(&[set("sweep.threads=3,4")]), [pair("threads", "4"), pair("interval", "2 s")]);
    assert_eq!(
        swept(&[set("sweep.threads_per_node= 3, 4")]),
        [pair("threads_per_node", "4"), pair("interval", "2 s")]
    );
    // A single value takes the place of a sweep, and the other way round.
    assert_eq!(swept(&[flag("threads", "8")]), [pair("interval", "2 s")]);
    assert_eq!(swept(&[flag("threads_per_node", "8")]), [pair("interval", "2 s")]);
    let last =
        swept(&[set("workload.threads=8"), flag("block", "1MiB,4 MiB"), flag("threads", "1,2")]);
    assert_eq!(last, [pair("interval", "2 s"), pair("block", "4 MiB"), pair("threads", "2")]);
}

#[test]
fn a_flag_changes_more_than_a_set() {
    let text = swept_text();
    // --set changes one place, a flag the key wherever it stands.
    let direct = |overrides: &[Override]| -> Vec<bool> {
        with(&text, overrides).points[..2].iter().map(|point| point.params.options.direct).collect()
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
            keep: true,
            min_free_milli: 100,
            ..TargetConfig::default()
        }
    );
    // Default stages can be changed too.
    assert!(!with(SIZE, &[set("stage.read.direct=false")]).points[1].params.options.direct);
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
    let told = faults::told(&format!("{SIZE}{partly}"), &[], &LOCAL);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("reads 4 MiB of a file of which only 2 MiB were written"), "{told:?}");
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
            let first = Context { local, workers_flag };
            let overrides = if local { vec![] } else { vec![flag("path", "/q")] };
            let scenario = load(&source(&text), &overrides, &first).unwrap();
            let again = source(&scenario.resolved_toml);
            let second = Context { local, workers_flag: None };
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
    let ramp_source = Source { name: "scenarios/ramp.toml".to_owned(), text: ramp_text.to_owned() };
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
    assert_eq!(quick.id, "20f12ee8d675cb8479e87886972cf314715e4df04d9f2c36d08ae8a8f952f2cf");
    assert_eq!(ramp.id, "e494e741f7f65dc7cd3cb4075d08412cebc501ae9f947ceea82e220d54bd289f");
}

#[test]
fn examples_say_what_they_ask_and_fit_their_fleet() {
    let examples = [
        (include_str!("../../../scenarios/metadata.toml"), 5),
        (include_str!("../../../scenarios/load.toml"), 12),
        (include_str!("../../../scenarios/verify.toml"), 4),
    ];
    for (text, points) in examples {
        let scenario = load(&source(text), &[], &Context::default()).unwrap();
        let question = scenario.question.as_deref().unwrap();
        assert_eq!(text.lines().next(), Some(format!("# {question}").as_str()));
        assert!(text.lines().any(|line| line.starts_with("# Cost: ")));
        assert_eq!(Plan::new(&scenario, 4).unwrap().points.len(), points);
    }
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
        let errors: Vec<String> =
            validator.iter_errors(&json(text)).map(|error| error.to_string()).collect();
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

#[test]
fn legal_words_are_near_to_their_misspellings() {
    assert_eq!(nearest("contine", ["continue", "abort"].into_iter()), Some("continue"));
}

const TABLE_BEGINS: &str = "<!-- The table of keys, written by a test. -->";
const TABLE_ENDS: &str = "<!-- End of the table of keys. -->";
