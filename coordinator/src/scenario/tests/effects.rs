//! No key without an effect: two values of each make two runs.

use super::*;

/// Two values of a key, and what else must stand in the workload for them to matter.
#[expect(clippy::too_many_lines, reason = "a line for each key")]
fn values(id: KeyId) -> (&'static str, &'static str, &'static str) {
    const TREE: &str = "layout = \"tree\"\nfiles = 4\n";
    const URING: &str = "engine = \"io_uring\"\n";
    const RATE: &str = "rate = \"100 op/s\"\n";
    match id {
        KeyId::Name | KeyId::Question | KeyId::Notes | KeyId::StageName => ("\"a\"", "\"b\"", ""),
        KeyId::MinFree => ("\"5 %\"", "\"7.5 %\"", ""),
        KeyId::Thresholds => ("\"core 0.9\"", "\"core 0.8\"", ""),
        KeyId::Require => (
            "[\"first.common >= 1 GB/s\"]",
            "[\"first.common >= 2 GB/s\", \"first.p99 <= 5 ms\"]",
            "",
        ),
        KeyId::Workers => ("\"a,b\"", "\"a,c\"", ""),
        KeyId::NetworkLimit | KeyId::LinkSpeed | KeyId::StorageLimit => {
            ("\"1 Gbit/s\"", "\"2 Gbit/s\"", "")
        }
        KeyId::Observers => ("\"s1\"", "\"s1,s2\"", ""),
        KeyId::Interfaces => ("\"eth0\"", "\"eth0, eth1\"", ""),
        KeyId::ExpectedWire => ("1.25", "2", ""),
        KeyId::Path => ("\"/p\"", "\"/q\"", ""),
        KeyId::TargetFiles => ("[\"/a\"]", "[\"/a\", \"/b\"]", "layout = \"file-list\"\n"),
        KeyId::TargetDevices => ("[\"/dev/a\"]", "[\"/dev/b\"]", "layout = \"device\"\n"),
        KeyId::Op => ("\"write\"", "\"read\"", ""),
        KeyId::Mix => ("\"read 70, write 30\"", "\"read 60, write 40\"", ""),
        KeyId::MixBy => ("\"operation\"", "\"thread\"", "threads = 2\n"),
        KeyId::Repeat | KeyId::Threads | KeyId::ThreadsPerNode | KeyId::Seed => ("1", "2", ""),
        KeyId::Layout => ("\"file-per-thread\"", "\"shared-file\"", ""),
        KeyId::Dirs => ("2", "3", TREE),
        KeyId::Files => ("4", "5", "layout = \"tree\"\n"),
        KeyId::DirSharing => ("\"own\"", "\"shared\"", TREE),
        KeyId::FileSize => ("\"4 MiB\"", "\"8 MiB\"", ""),
        KeyId::Block => ("\"1 MiB\"", "\"1 MiB 1, 2 MiB 2\"", ""),
        KeyId::Pattern => ("\"random\"", "\"backward\"", ""),
        KeyId::Step => ("2", "3", "pattern = \"strided\"\n"),
        KeyId::ZipfTheta => ("1.1", "1.25", "pattern = \"zipf\"\n"),
        KeyId::ParetoH => ("0.7", "0.9", "pattern = \"pareto\"\n"),
        KeyId::NormalDeviation => ("0.2", "1", "pattern = \"normal\"\n"),
        KeyId::Duration => ("\"2 s\"", "\"3 s\"", ""),
        KeyId::Ramp => ("\"1 s\"", "\"2 s\"", ""),
        KeyId::Interval => ("\"1 s\"", "\"500 ms\"", ""),
        KeyId::Engine => ("\"sync\"", "\"libaio\"", ""),
        KeyId::Depth => ("4", "5", URING),
        KeyId::Sqpoll | KeyId::Iopoll => ("true", "false", URING),
        KeyId::Rate => ("\"100 op/s\"", "\"200 MB/s\"", ""),
        KeyId::RatePer => ("\"fleet\"", "\"node\"", "rate = \"100 op/s\"\nthreads = 2\n"),
        KeyId::Arrivals => ("\"even\"", "\"exponential\"", RATE),
        KeyId::Think => ("\"1 ms\"", "\"2 ms\"", ""),
        KeyId::Burst => ("2", "3", "think = \"1 ms\"\n"),
        KeyId::Content => ("\"random\"", "\"zero\"", ""),
        KeyId::Compress | KeyId::Dedupe => ("1.5", "2", ""),
        KeyId::Verify => ("\"off\"", "\"no-stale\"", ""),
        KeyId::Fsync => ("\"none\"", "\"each\"", ""),
        KeyId::Append => ("true", "false", "loop = false\n"),
        // These need a write before them, as the stages below have.
        KeyId::Truncate => ("true", "false", "fresh = false\n"),
        KeyId::Advice => ("\"willneed\"", "\"random\"", ""),
        KeyId::Cores => ("\"0-3\"", "\"0-3,8\"", ""),
        KeyId::NumaNodes => ("\"0\"", "1", ""),
        KeyId::OnFault => ("\"continue\"", "\"abort\"", ""),
        KeyId::Cold => ("true", "false", ""),
        KeyId::Nodes => ("1", "2", "threads = 2\n"),
        KeyId::StuckAfter => ("\"5 s\"", "\"6 s\"", ""),
        KeyId::DestroysData => ("true", "true", ""),
        KeyId::Keep
        | KeyId::AllowHoles
        | KeyId::Loop
        | KeyId::Direct
        | KeyId::HighPriority
        | KeyId::Refresh
        | KeyId::Dsync
        | KeyId::Preallocate
        | KeyId::Lock
        | KeyId::HugePages
        | KeyId::Fresh => ("true", "false", ""),
    }
}

const FIRST: &str = "[[stage]]\nop = \"write\"\nname = \"first\"\n";

/// A scenario in which a key has a value.
fn text(key: &Key, value: &str, with: &str) -> String {
    let mut target = String::from("path = \"/p\"\n");
    let mut fleet = String::from("workers = \"a,b\"\n");
    let mut top = String::new();
    let mut sweep = String::new();
    let mut workload = format!("duration = \"2 s\"\nfile_size = \"8 MiB\"\n{with}");
    let line = format!("{} = {value}\n", key.name);
    let mut stages = FIRST.to_owned();
    match key.place {
        Place::Top => top = line,
        Place::Fleet if key.id == KeyId::Workers => fleet = line,
        Place::Fleet => fleet.push_str(&line),
        Place::Target if key.id == KeyId::Path => target = line,
        Place::Target => target.push_str(&line),
        Place::Sweep => sweep = format!("[sweep]\n{line}"),
        Place::Stage if key.id == KeyId::Op => {
            stages.push_str(&format!("[[stage]]\nname = \"second\"\n{line}"));
        }
        Place::Stage => stages.push_str(&format!("[[stage]]\nop = \"write\"\n{line}")),
        Place::Workload if matches!(key.id, KeyId::Mix | KeyId::MixBy) => {
            let mix = if key.id == KeyId::Mix { "" } else { "mix = \"read 70, write 30\"\n" };
            stages.push_str(&format!("[[stage]]\nop = \"mix\"\n{mix}{line}"));
        }
        Place::Workload if key.id == KeyId::Cold => {
            stages.push_str(&format!("[[stage]]\nop = \"read\"\n{line}"));
        }
        Place::Workload if matches!(key.id, KeyId::Fresh | KeyId::Truncate) => {
            workload = workload.replace(with, "");
            stages.push_str(&format!("[[stage]]\nop = \"write\"\n{with}{line}"));
        }
        Place::Workload => {
            let name = format!("{} = ", key.name);
            workload = workload
                .lines()
                .filter(|l| !l.starts_with(&name))
                .fold(String::new(), |all, kept| format!("{all}{kept}\n"));
            workload.push_str(&line);
        }
    }
    if matches!(key.id, KeyId::TargetFiles | KeyId::TargetDevices) {
        stages = stages.replace("write", "read");
    }
    format!("{top}[fleet]\n{fleet}[target]\n{target}[workload]\n{workload}{sweep}{stages}")
}

#[test]
fn every_key_changes_what_is_run() {
    for key in KEYS {
        if key.id == KeyId::DestroysData {
            continue;
        }
        let (one, other, with) = values(key.id);
        let load = |value: &str| {
            let text = text(key, value, with);
            load(&source(&text), &[], &Context::default())
                .unwrap_or_else(|error| panic!("{}: {:?}\n{text}", key.name, error.lines()))
        };
        let (one, other) = (load(one), load(other));
        for scenario in [&one, &other] {
            let again = super::load(&source(&scenario.resolved_toml), &[], &Context::default());
            let again =
                again.unwrap_or_else(|e| panic!("{:?}\n{}", e.lines(), scenario.resolved_toml));
            assert_eq!(again, *scenario, "{}", key.name);
        }
        if key.id == KeyId::Notes {
            assert_ne!(one.resolved_toml, other.resolved_toml);
        } else {
            assert_ne!(outcome(&one), outcome(&other), "{}", key.name);
        }
        // What makes another run makes another scenario, but for names and places.
        let told = matches!(
            key.id,
            KeyId::Name
                | KeyId::Question
                | KeyId::Notes
                | KeyId::Workers
                | KeyId::Path
                | KeyId::TargetDevices
        );
        assert_eq!(one.id == other.id, told, "{}", key.name);
    }
}

#[test]
fn only_with_consent_is_anything_overwritten_that_was_there() {
    let key = Key::of(KeyId::DestroysData);
    let base = |consent: &str| {
        format!(
            "[target]\nfiles = [\"/a\"]\n{consent}[workload]\nlayout = \"file-list\"\n\
             file_size = \"1 MiB\"\n[[stage]]\nop = \"write\"\n"
        )
    };
    let consent = format!("{} = true\n", key.name);
    let plan = Plan::new(&good(&base(&consent)), 1).unwrap();
    assert!(crate::plan::tests::target(&plan).destroys_data);
    let told = faults::told(&base(""), &[], &LOCAL);
    assert!(told[0].contains("overwrites what listed files hold"), "{told:?}");
}

/// All that a run takes from a scenario: its parts, and every worker's plans.
fn outcome(scenario: &Scenario) -> String {
    let nodes = 2;
    let plan = Plan::new(scenario, nodes).unwrap();
    let workers = crate::plan::tests::run(&plan);
    format!(
        "{:?} {:?} {:?} {:?} {:?} {workers:?} {} {:?}",
        scenario.name,
        scenario.question,
        (&scenario.require, scenario.thresholds),
        scenario.fleet,
        scenario.target,
        plan.space_bytes,
        plan.points
            .iter()
            .map(|point| (&point.spec.stage, point.spec.repeat, point.spec.params.on_fault))
            .collect::<Vec<_>>(),
    )
}
