//! `iofleet calibrate`: the generator measures itself.

use std::{fs, process::Output};

use serde_json::Value;

use crate::support::{Scratch, iofleet, stderr, text};

fn calibrate(scratch: &Scratch, more: &[&str]) -> Output {
    let mut command = iofleet();
    command.args(["calibrate", "--store"]).arg(scratch.path("store.sqlite")).args(more);
    command.current_dir(scratch.folder("work")).output().unwrap()
}

#[test]
fn a_row_for_each_node_engine_and_number_of_threads() {
    let scratch = Scratch::in_memory();
    let json = scratch.path("result.json");
    let shown = json.to_str().unwrap();
    let output = calibrate(
        &scratch,
        &["--local", "2", "--threads", "1", "--engines", "null,sync", "--json", shown],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    let rows: Vec<String> = table
        .lines()
        .skip(1)
        .take(6)
        .map(|line| line.split_whitespace().take(7).collect::<Vec<_>>().join(" "))
        .collect();
    let stages = ["null null 4 KiB 1 1", "sync sync 4 KiB 1 1", "fill null 1 MiB 1 1"];
    let expected: Vec<String> = stages
        .iter()
        .flat_map(|stage| ["local1", "local2"].map(|node| format!("{node} {stage}")))
        .collect();
    assert_eq!(rows, expected, "{table}");
    for node in ["local1", "local2"] {
        assert!(table.contains(&format!("{node}: the generator's ceiling (null)")), "{table}");
    }
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/result.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(&record).map(|e| e.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(record["campaign"]["name"], "calibration");
    for point in record["points"].as_array().unwrap() {
        assert_eq!(point["status"], "ok", "{point}");
        let sum = |key: &str| -> u64 {
            let nodes = point["nodes"].as_array().unwrap().iter();
            nodes.map(|node| node[key].as_u64().unwrap()).sum()
        };
        assert_eq!(sum("ops"), point["ops"].as_u64().unwrap());
        let cpu = &point["cpu"];
        let all = cpu["user_ns"].as_u64().unwrap() + cpu["system_ns"].as_u64().unwrap();
        assert_eq!(sum("cpu_ns"), all);
    }
    // What only asked is not kept, and nothing is left.
    let list = iofleet().arg("list").arg("--store").arg(scratch.path("store.sqlite")).output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    assert_eq!(list.lines().filter(|line| line.contains("calibration")).count(), 1, "{list}");
    assert_eq!(list.lines().count(), 2, "{list}");
    assert_eq!(fs::read_dir(scratch.path("work")).unwrap().count(), 0);
}

#[test]
fn bad_calls_say_what_to_do() {
    let scratch = Scratch::new();
    for (more, code, word) in [
        (vec![], 2, "--local 1"),
        (vec!["--local", "1", "--engines", "uring"], 2, "io_uring"),
        (vec!["--local", "1", "--threads", "0"], 2, "--threads"),
        (vec!["--local", "1", "--set", "stage.null.blok=1 KiB"], 3, "blok"),
        (vec!["--local", "1", "--path", "/proc/iofleet"], 4, "/proc"),
    ] {
        let output = calibrate(&scratch, &more);
        assert_eq!(output.status.code(), Some(code), "{more:?} {}", text(&output));
        assert!(stderr(&output).contains(word), "{more:?} {}", text(&output));
    }
}
