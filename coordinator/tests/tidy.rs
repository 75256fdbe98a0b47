//! The rules of the tree that no lint knows: who may name whom, what pure means, how long a file
//! may be. Each check has a sample of its own that it must find fault with.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    path::{Path, PathBuf},
};

const LINES_MAX: usize = 600;
/// Modules that know no tokio, quinn, thread, clock or file, with what stands below them.
const PURE: &[&str] = &[
    "shared/src/wire",
    "shared/src/work",
    "shared/src/stats",
    "shared/src/facts",
    "shared/src/lifecycle",
    "shared/src/limits",
    "shared/src/ids",
    "shared/src/units",
    "worker/src/machine",
    "worker/src/pattern",
    "worker/src/recorder",
    "coordinator/src/conductor",
    "coordinator/src/barrier",
    "coordinator/src/plan",
    "coordinator/src/figures",
    "coordinator/src/aggregate",
    "coordinator/src/record",
    "coordinator/src/report",
    "coordinator/src/events",
];
const IMPURE: &[&str] =
    &["tokio::", "quinn::", "std::thread", "std::fs", "std::net", "monotonic_ns", "clock::wall"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All Rust files of the workspace, by their path below its root, with their text.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["shared", "worker", "coordinator"].iter().map(|name| root().join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// What is wrong with a file, in words.
fn faults(name: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let code = || text.lines().filter(|line| !line.trim_start().starts_with("//"));
    if !text.starts_with("//!") {
        faults.push("does not open with why it exists".to_owned());
    }
    if text.lines().count() > LINES_MAX {
        faults.push(format!("has more than {LINES_MAX} lines"));
    }
    if name.ends_with("/mod.rs") {
        faults.push("is a mod.rs: name it after its module".to_owned());
    }
    let is_pure = PURE.iter().any(|module| {
        name.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    });
    let is_test = name.contains("/tests") || name.contains("test");
    if is_pure && !is_test {
        let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
        let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
        let uses: Vec<&str> = lines
            .flat_map(|line| IMPURE.iter().filter(|word| line.contains(**word)))
            .copied()
            .collect();
        faults.extend(uses.iter().map(|word| format!("is a pure module and names {word}")));
    }
    let names_worker = code().any(|line| line.contains("iofleet_worker"));
    if name.starts_with("coordinator/src/") && name != "coordinator/src/local.rs" && names_worker {
        faults.push("names the worker crate: only local.rs may".to_owned());
    }
    let names_coordinator = code().any(|line| line.contains("iofleet_coordinator"));
    if !name.starts_with("coordinator/") && names_coordinator {
        faults.push("names the coordinator crate".to_owned());
    }
    faults
}

#[test]
fn every_file_keeps_the_rules() {
    let sources = sources();
    assert!(sources.len() > 100, "{} files", sources.len());
    let all: Vec<String> = sources
        .iter()
        .filter(|(name, _)| name != "coordinator/tests/tidy.rs")
        .flat_map(|(name, text)| {
            faults(name, text).into_iter().map(move |fault| format!("{name} {fault}"))
        })
        .collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn pure_modules_are_where_the_list_says() {
    for module in PURE {
        assert!(root().join(format!("{module}.rs")).exists(), "{module}");
    }
}

#[test]
fn each_rule_finds_its_fault() {
    let long = format!("//! Long.\n{}", "\n".repeat(LINES_MAX));
    for (name, text, fault) in [
        ("shared/src/ids.rs", "use std::fmt;\n", "does not open"),
        ("shared/src/ids.rs", long.as_str(), "more than"),
        ("worker/src/target/mod.rs", "//! X.\n", "mod.rs"),
        ("worker/src/machine/point.rs", "//! X.\nuse tokio::sync;\n", "names tokio::"),
        ("coordinator/src/cli/run.rs", "//! X.\nuse iofleet_worker::crew;\n", "only local.rs"),
        ("worker/src/crew.rs", "//! X.\nuse iofleet_coordinator::plan;\n", "coordinator crate"),
    ] {
        let found = faults(name, text);
        assert!(found.iter().any(|found| found.contains(fault)), "{name}: {found:?}");
    }
    assert!(faults("worker/src/machine/point.rs", "//! X.\n// tokio:: in words\n").is_empty());
}
