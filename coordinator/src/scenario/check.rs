//! The rules that a scenario must keep, with what to say where it does not.

use iofleet_shared::{
    units::{Size, Time},
    work::{Layout, OpKind},
};

use super::{
    PointSpec, TargetConfig, Threads, coverage,
    error::{Problem, Problems},
    file::{ScenarioFile, Setting},
    keys::{self, Effect, Key, KeyId},
    resolve::{Draft, View},
};

/// Rules about what stands where in the file.
pub(super) fn stages(file: &ScenarioFile, names: &[String], problems: &mut Problems) {
    for (place, stage) in file.stages.iter().enumerate() {
        if !stage.settings.contains_key(&KeyId::Op) {
            let text = "a stage without `op`";
            let help = "set op = \"write\" or op = \"read\"";
            problems.push(Problem::new(text).and(&stage.origin, "here").right(help));
        }
        if names[..place].contains(&names[place]) {
            let origin = stage.settings.get(&KeyId::StageName).map_or(&stage.origin, |s| &s.origin);
            let text = format!("two stages are named `{}`", names[place]);
            problems.push(Problem::at(origin, "stage.name", text));
        }
        for sweep in &file.sweep {
            if let Some(setting) = stage.settings.get(&sweep.key) {
                let name = Key::of(sweep.key).name;
                let text = format!("`{name}` is set in stage `{}` and swept too", names[place]);
                let problem = Problem::at(&setting.origin, format!("stage.{name}"), text)
                    .and(&sweep.origin, "swept here")
                    .right("leave one of them out");
                problems.push(problem);
            }
        }
    }
}

/// Rules about points.
pub(super) fn points(
    file: &ScenarioFile,
    drafts: &[Draft<'_>],
    target: &TargetConfig,
    problems: &mut Problems,
) {
    for draft in drafts {
        one_kind_of_threads(&draft.view, problems);
        whole_blocks(draft, problems);
        whole_intervals(draft, problems);
        shared_file(draft, target, problems);
    }
    effects(file, drafts, problems);
    let mut start = 0;
    while start < drafts.len() {
        let group = drafts[start].spec.group;
        let length = drafts[start..].iter().take_while(|draft| draft.spec.group == group).count();
        covered(&drafts[start..start + length], problems);
        start += length;
    }
}

fn one_kind_of_threads(view: &View<'_>, problems: &mut Problems) {
    let (Some(threads), Some(per_node)) =
        (view.get(KeyId::Threads), view.get(KeyId::ThreadsPerNode))
    else {
        return;
    };
    let text = "`threads` and `threads_per_node` exclude each other";
    let path = view.path(KeyId::ThreadsPerNode);
    let problem = Problem::at(&per_node.origin, path, text)
        .and(&threads.origin, "and here")
        .right("`threads` is of the whole fleet; leave one of them out");
    problems.push(problem);
}

/// A fault of two keys that do not go together, at the one that somebody wrote.
fn pair(view: &View<'_>, first: KeyId, second: KeyId, text: String) -> Problem {
    let written = if view.get(first).is_some() { first } else { second };
    // What nobody wrote belongs to the stage.
    let stage = view.stage_origin();
    let (here, there) = (view.origin(written), view.origin(second));
    Problem::at(here.or(stage), view.path(written), text).and(there.or(stage), "and here")
}

fn whole_blocks(draft: &Draft<'_>, problems: &mut Problems) {
    let (file, block) = (draft.spec.params.file_bytes, draft.spec.params.block_bytes);
    if file.is_multiple_of(block) {
        return;
    }
    let text = format!(
        "file_size {} is not a multiple of block {}",
        Size::from_bytes(file),
        Size::from_bytes(block)
    );
    let below = Size::from_bytes(file / block * block);
    let above = file.div_ceil(block).checked_mul(block).map(Size::from_bytes);
    let help = match above {
        Some(above) if below.bytes() > 0 => format!("the nearest are {below} and {above}"),
        Some(above) => format!("the nearest is {above}"),
        None => format!("the nearest is {below}"),
    };
    problems.push(pair(&draft.view, KeyId::FileSize, KeyId::Block, text).right(help));
}

fn whole_intervals(draft: &Draft<'_>, problems: &mut Problems) {
    let params = &draft.spec.params;
    let interval = Time::from_ns(params.interval_ns);
    if !params.ramp_ns.is_multiple_of(params.interval_ns) {
        let ramp = Time::from_ns(params.ramp_ns);
        let text = format!("ramp {ramp} is not a whole number of intervals of {interval}");
        problems.push(pair(&draft.view, KeyId::Ramp, KeyId::Interval, text));
    }
    let length = params.duration_ns.unwrap_or(0).saturating_add(params.ramp_ns);
    if length / params.interval_ns > INTERVALS_MAX {
        let text = format!(
            "{} in intervals of {interval} are more than {INTERVALS_MAX} intervals",
            Time::from_ns(length)
        );
        problems.push(pair(&draft.view, KeyId::Interval, KeyId::Duration, text));
    }
}

fn shared_file(draft: &Draft<'_>, target: &TargetConfig, problems: &mut Problems) {
    let params = &draft.spec.params;
    if params.layout != Layout::SharedFile {
        return;
    }
    let blocks = params.file_bytes / params.block_bytes;
    let (Threads::Fleet(threads) | Threads::PerNode(threads)) = params.threads;
    if blocks < u64::from(threads) {
        let text = format!(
            "{threads} threads share a file of {blocks} {}: each needs one at least",
            if blocks == 1 { "block" } else { "blocks" }
        );
        let key = match params.threads {
            Threads::Fleet(_) => KeyId::Threads,
            Threads::PerNode(_) => KeyId::ThreadsPerNode,
        };
        problems.push(pair(&draft.view, key, KeyId::FileSize, text));
    }
    if target.path.as_ref().is_some_and(|path| path.contains("{node}")) {
        let text = "a shared file needs one directory for all nodes, but target.path has `{node}`";
        let origin = draft.view.origin(KeyId::Layout);
        problems.push(Problem::at(&origin, draft.view.path(KeyId::Layout), text));
    }
}

/// What a key that was written must change in one of its points at least.
fn effects(file: &ScenarioFile, drafts: &[Draft<'_>], problems: &mut Problems) {
    if drafts.is_empty() {
        return;
    }
    for id in keys::workload().map(|key| key.id) {
        let swept = file.sweep.iter().any(|sweep| sweep.key == id);
        for (place, stage) in file.stages.iter().enumerate() {
            if let Some(setting) = stage.settings.get(&id) {
                let own = drafts.iter().filter(|draft| draft.view.place == place);
                effect(id, "stage", setting, own, problems);
            }
        }
        let sweep = file.sweep.iter().find(|sweep| sweep.key == id);
        if let Some(first) = sweep.and_then(|sweep| sweep.values.first()) {
            effect(id, "sweep", first, drafts.iter(), problems);
        }
        let Some(setting) = file.workload.get(&id) else {
            continue;
        };
        let taken = |draft: &&Draft<'_>| {
            draft.view.get(id).is_some_and(|taken| std::ptr::eq(taken, setting))
        };
        if drafts.iter().any(|draft| taken(&draft)) {
            effect(id, "workload", setting, drafts.iter().filter(taken), problems);
            continue;
        }
        let name = Key::of(id).name;
        let why = if swept { "it is swept" } else { "every stage sets it" };
        let text = format!("`{name}` has no effect here: {why}");
        let problem = Problem::at(&setting.origin, format!("workload.{name}"), text);
        problems.push(match sweep {
            Some(sweep) => problem.and(&sweep.origin, "swept here"),
            None => problem,
        });
    }
}

fn effect<'a>(
    id: KeyId,
    section: &str,
    setting: &Setting,
    points: impl Iterator<Item = &'a Draft<'a>>,
    problems: &mut Problems,
) {
    let key = Key::of(id);
    let mut any = false;
    for point in points {
        any = true;
        if has_effect(key, &point.spec) {
            return;
        }
    }
    if !any {
        return;
    }
    let (why, help) = match key.effect {
        Effect::Always => return,
        Effect::ByDuration => (
            "without `duration`",
            "set a duration, or leave it out: by size each thread does its share once",
        ),
        Effect::Writes => ("on reads", "leave it out, or set it in a stage that writes"),
    };
    let text = format!("`{}` has no effect {why}", key.name);
    let path = format!("{section}.{}", key.name);
    problems.push(Problem::at(&setting.origin, path, text).right(help));
}

/// Whether a key changes anything in a point.
pub(super) fn has_effect(key: &Key, point: &PointSpec) -> bool {
    match key.effect {
        Effect::Always => true,
        Effect::ByDuration => point.params.duration_ns.is_some(),
        Effect::Writes => point.params.op == OpKind::Write,
    }
}

/// Reads and rewrites need earlier writes of the same pass.
fn covered(pass: &[Draft<'_>], problems: &mut Problems) {
    let specs: Vec<&PointSpec> = pass.iter().map(|draft| &draft.spec).collect();
    let per_node = |spec: &PointSpec| matches!(spec.params.threads, Threads::PerNode(_));
    // Where both are used, only the plan knows how many threads there are.
    if specs.iter().any(|spec| per_node(spec)) && !specs.iter().all(|spec| per_node(spec)) {
        return;
    }
    let count = |threads: Threads| match threads {
        Threads::Fleet(count) | Threads::PerNode(count) => count,
    };
    let Err(uncovered) = coverage::check(&specs, count) else {
        return;
    };
    let view = &pass[uncovered.at].view;
    let origin = view.origin(uncovered.key);
    let origin = origin.or(view.stage_origin());
    let problem = match view.get(uncovered.key) {
        Some(_) if uncovered.key != KeyId::Op => {
            Problem::at(origin, view.path(uncovered.key), uncovered.text)
        }
        _ => Problem::new(uncovered.text).and(origin, "here"),
    };
    problems.push(problem.right(uncovered.help));
}

/// Intervals are counted in 32 bits, and each is a row of the results.
const INTERVALS_MAX: u64 = 10_000_000;
