//! The rules that a scenario must keep, with what to say where it does not.

use iofleet_shared::{
    units::{Size, Time},
    work::Layout,
};

use super::{
    DirSharing, Params, PointSpec, TargetConfig, Threads, coverage,
    error::{Problem, Problems},
    file::{ScenarioFile, Setting},
    keys::{self, Key, KeyId},
    legal::{Illegal, illegal, off_grid},
    resolve::{Draft, View},
    value::Value,
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
        rate_or_think(&draft.view, problems);
        if combinations(draft, problems) {
            whole_blocks(draft, problems);
            enough_blocks(draft, problems);
        }
        whole_intervals(draft, problems);
        one_directory(draft, target, problems);
        consent(draft, target, problems);
    }
    effects(file, drafts, problems);
    listed(file, drafts, problems);
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

fn rate_or_think(view: &View<'_>, problems: &mut Problems) {
    let thinks = |setting: &&Setting| setting.value.to_string() != "0 s";
    let (Some(rate), Some(think)) = (view.get(KeyId::Rate), view.get(KeyId::Think).filter(thinks))
    else {
        return;
    };
    let text = "`rate` and `think` exclude each other";
    let problem = Problem::at(&think.origin, view.path(KeyId::Think), text)
        .and(&rate.origin, "and here")
        .right("operations that arrive at a rate do not wait for a thread; leave one of them out");
    problems.push(problem);
}

/// Whether all of its keys go together.
fn combinations(draft: &Draft<'_>, problems: &mut Problems) -> bool {
    let found = illegal(&draft.spec.params);
    for Illegal { keys: (first, second), text, help, .. } in &found {
        problems.push(pair(&draft.view, *first, *second, (*text).to_owned()).right(*help));
    }
    found.is_empty()
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
    let params = &draft.spec.params;
    if !params.moves_data() {
        return;
    }
    let block = params.block_bytes();
    if let Some(bytes) = off_grid(&params.blocks) {
        let text = format!(
            "{} is not a multiple of {}, the smallest block of the mix",
            Size::from_bytes(bytes),
            Size::from_bytes(block)
        );
        let origin = draft.view.origin(KeyId::Block);
        problems.push(Problem::at(&origin, draft.view.path(KeyId::Block), text));
    }
    let broken = params.file_sizes.iter().find(|size| !size.bytes.is_multiple_of(block));
    let Some(file) = broken.map(|size| size.bytes) else {
        let most = params.block_bytes_max();
        let sizes = params.file_sizes.iter().map(|size| size.bytes);
        if let Some(bytes) = sizes.filter(|bytes| *bytes > 0 && *bytes < most).min() {
            let text = format!(
                "file_size {} is less than the largest block, {}",
                Size::from_bytes(bytes),
                Size::from_bytes(most)
            );
            problems.push(pair(&draft.view, KeyId::FileSize, KeyId::Block, text));
        }
        return;
    };
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

fn enough_blocks(draft: &Draft<'_>, problems: &mut Problems) {
    let params = &draft.spec.params;
    let (Threads::Fleet(threads) | Threads::PerNode(threads)) = params.threads;
    let (blocks, sharers) = if params.is_shared() {
        (params.file_bytes() / params.block_bytes_max().max(1), threads)
    } else if params.is_listed() {
        let files = u32::try_from(params.listed.len()).unwrap_or(u32::MAX).max(1);
        (params.file_bytes() / params.block_bytes_max().max(1), threads.div_ceil(files))
    } else {
        return;
    };
    if blocks < u64::from(sharers) {
        let text = format!(
            "{sharers} threads share a file of {blocks} {}: each needs one at least",
            if blocks == 1 { "block" } else { "blocks" }
        );
        let key = match params.threads {
            Threads::Fleet(_) => KeyId::Threads,
            Threads::PerNode(_) => KeyId::ThreadsPerNode,
        };
        problems.push(pair(&draft.view, key, KeyId::FileSize, text));
    }
}

/// What is of all threads lies in one place.
fn one_directory(draft: &Draft<'_>, target: &TargetConfig, problems: &mut Problems) {
    let params = &draft.spec.params;
    let what = if params.is_shared() {
        "a shared file needs"
    } else if params.tree.sharing == DirSharing::Shared {
        "shared directories need"
    } else {
        return;
    };
    if target.path.as_ref().is_some_and(|path| path.contains("{node}")) {
        let text = format!("{what} one directory for all nodes, but target.path has `{{node}}`");
        let origin = draft.view.origin(KeyId::Layout);
        problems.push(Problem::at(&origin, draft.view.path(KeyId::Layout), text));
    }
}

/// What was there before is overwritten only with consent.
fn consent(draft: &Draft<'_>, target: &TargetConfig, problems: &mut Problems) {
    let params = &draft.spec.params;
    if target.destroys_data || !params.is_listed() || !params.writes() {
        return;
    }
    let what = if params.layout == Layout::Device { "devices" } else { "listed files" };
    let text = format!("stage `{}` overwrites what {what} hold", draft.spec.stage);
    let origin = draft.view.origin(KeyId::Layout);
    let origin = origin.or(draft.view.stage_origin());
    let help = "set target.destroys_data = true if nothing on them is needed, or only read";
    problems.push(Problem::new(text).and(origin, "here").right(help));
}

/// Lists and consent that no point uses.
fn listed(file: &ScenarioFile, drafts: &[Draft<'_>], problems: &mut Problems) {
    let any = |wanted: &dyn Fn(&Params) -> bool| {
        drafts.is_empty() || drafts.iter().any(|draft| wanted(&draft.spec.params))
    };
    let rules: [(KeyId, bool, &str); 3] = [
        (
            KeyId::TargetFiles,
            any(&|params| params.layout == Layout::FileList),
            "without layout = \"file-list\"",
        ),
        (
            KeyId::TargetDevices,
            any(&|params| params.layout == Layout::Device),
            "without layout = \"device\"",
        ),
        (
            KeyId::DestroysData,
            any(&|params| params.is_listed() && params.writes()),
            "without a stage that writes to listed files or devices",
        ),
    ];
    for (id, used, why) in rules {
        if let Some(setting) =
            file.single.get(&id).filter(|setting| !used && setting.value != Value::Flag(false))
        {
            let key = Key::of(id);
            let text = format!("`{}` has no effect {why}", key.name);
            problems.push(Problem::at(&setting.origin, key.path(), text).right("leave it out"));
        }
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
    let (mut any, mut by_time) = (false, false);
    for point in points {
        any = true;
        by_time |= point.spec.params.duration_ns.is_some();
        if has_effect(key, &point.spec) {
            return;
        }
    }
    if !any {
        return;
    }
    let Some((why, help)) = key.effect.missing(by_time) else { return };
    let text = format!("`{}` has no effect {why}", key.name);
    let path = format!("{section}.{}", key.name);
    problems.push(Problem::at(&setting.origin, path, text).right(help));
}

/// Whether a key changes anything in a point.
pub(super) fn has_effect(key: &Key, point: &PointSpec) -> bool {
    key.effect.holds(&point.params)
}

/// Reads and rewrites need earlier writes of the same pass.
fn covered(pass: &[Draft<'_>], problems: &mut Problems) {
    let specs: Vec<&PointSpec> = pass.iter().map(|draft| &draft.spec).collect();
    let per_node = |spec: &PointSpec| matches!(spec.params.threads, Threads::PerNode(_));
    // Where both are used, only the plan knows how many threads there are.
    if specs.iter().any(|spec| per_node(spec)) && !specs.iter().all(|spec| per_node(spec)) {
        return;
    }
    if specs.iter().any(|spec| per_node(spec) && spec.params.nodes.is_some()) {
        return;
    }
    let count = |params: &Params| match params.threads {
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
