//! No key without an effect: two values of each make two runs.

use super::*;

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
                Place::Top | Place::Fleet | Place::Target | Place::Sweep | Place::Workload => {
                    format!("{path} = {value}\n{base}")
                }
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

/// All that a run takes from a scenario: its parts, and every worker's plans.
fn outcome(scenario: &Scenario) -> String {
    let nodes = 2;
    let plan = Plan::new(scenario, nodes).unwrap();
    let workers = crate::plan::tests::run(&plan);
    format!(
        "{:?} {:?} {:?} {:?} {workers:?} {} {:?}",
        scenario.name,
        scenario.question,
        scenario.fleet,
        scenario.target,
        plan.space_bytes,
        plan.points
            .iter()
            .map(|point| (&point.spec.stage, point.spec.repeat, point.spec.params.on_fault))
            .collect::<Vec<_>>(),
    )
}
