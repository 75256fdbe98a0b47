//! From a scenario as written to its meaning: sweeps expanded, defaults filled in, every rule
//! checked.

use std::path::Path;

use iofleet_shared::work::OpKind;

use super::{
    Context, FleetConfig, OnFault, Override, Params, PointSpec, Scenario, Source, TargetConfig,
    Threads, canon, check,
    error::{Origin, Problem, Problems, ScenarioError},
    file::{ScenarioFile, Setting, StageFile},
    hosts,
    keys::{Key, KeyId},
    value::{self, Raw, Value},
    words,
};

/// Most points of a scenario.
pub(super) const POINTS_MAX: u64 = 10_000;

/// A point on its way to its meaning: what was written for it, and what that means.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) view: View<'a>,
    pub(super) spec: PointSpec,
}

/// What a scenario says for one point: its stage, and which of the swept values it has.
#[derive(Debug, Clone)]
pub(super) struct View<'a> {
    file: &'a ScenarioFile,
    /// Place of its stage in the file.
    pub(super) place: usize,
    stage: &'a StageFile,
    chosen: Vec<usize>,
}

impl<'a> View<'a> {
    /// What was written for a key, if anything.
    pub(super) fn get(&self, id: KeyId) -> Option<&'a Setting> {
        let swept = || {
            let place = self.file.sweep.iter().position(|sweep| sweep.key == id)?;
            self.file.sweep[place].values.get(self.chosen[place])
        };
        self.stage.settings.get(&id).or_else(swept).or_else(|| self.file.workload.get(&id))
    }

    /// Where a key stands that was written for this point.
    pub(super) fn origin(&self, id: KeyId) -> Origin {
        self.get(id).map_or(Origin::Default, |setting| setting.origin.clone())
    }

    /// Section and name of a key, as people find it in the file.
    pub(super) fn path(&self, id: KeyId) -> String {
        let name = Key::of(id).name;
        if self.stage.settings.contains_key(&id) {
            format!("stage.{name}")
        } else if self.file.sweep.iter().any(|sweep| sweep.key == id) {
            format!("sweep.{name}")
        } else {
            format!("workload.{name}")
        }
    }

    /// The stage's own place.
    pub(super) fn stage_origin(&self) -> &'a Origin {
        &self.stage.origin
    }

    fn value(&self, id: KeyId) -> Option<Value> {
        match self.get(id) {
            Some(setting) => Some(setting.value.clone()),
            None => value::default(Key::of(id)),
        }
    }

    fn bytes(&self, id: KeyId) -> Option<u64> {
        let Value::Size(size) = self.value(id)? else {
            return None;
        };
        Some(size.bytes())
    }

    fn ns(&self, id: KeyId) -> Option<u64> {
        let Value::Time(time) = self.value(id)? else {
            return None;
        };
        Some(time.ns())
    }

    fn flag(&self, id: KeyId) -> Option<bool> {
        let Value::Flag(flag) = self.value(id)? else {
            return None;
        };
        Some(flag)
    }

    fn number(&self, id: KeyId) -> Option<u64> {
        let Value::Integer(number) = self.value(id)? else {
            return None;
        };
        Some(number)
    }

    fn word<T: Copy>(&self, id: KeyId, meanings: &words::Words<T>) -> Option<T> {
        let Value::Choice(word) = self.value(id)? else {
            return None;
        };
        words::meaning(meanings, word)
    }

    fn threads(&self) -> Threads {
        let count = |id| match self.get(id).map(|setting| &setting.value) {
            Some(Value::Count(count)) => Some(*count),
            _ => None,
        };
        match (count(KeyId::Threads), count(KeyId::ThreadsPerNode)) {
            (Some(threads), _) => Threads::Fleet(threads),
            (None, Some(threads)) => Threads::PerNode(threads),
            (None, None) => Threads::Fleet(1),
        }
    }

    /// The keys' meaning; none when one without a default was not written.
    fn params(&self) -> Option<Params> {
        let op = self.word(KeyId::Op, words::OPS)?;
        let duration_ns = self.ns(KeyId::Duration);
        let by_time = duration_ns.is_some();
        Some(Params {
            op,
            threads: self.threads(),
            layout: self.word(KeyId::Layout, words::LAYOUTS)?,
            file_bytes: self.bytes(KeyId::FileSize)?,
            block_bytes: self.bytes(KeyId::Block)?,
            pattern: self.word(KeyId::Pattern, words::PATTERNS)?,
            duration_ns,
            ramp_ns: if by_time { self.ns(KeyId::Ramp)? } else { 0 },
            interval_ns: self.ns(KeyId::Interval)?,
            repeat_range: by_time && self.flag(KeyId::Loop)?,
            direct: self.flag(KeyId::Direct)?,
            engine: self.word(KeyId::Engine, words::ENGINES)?,
            fsync: match op {
                OpKind::Write => self.word(KeyId::Fsync, words::FSYNCS)?,
                OpKind::Read => iofleet_shared::work::Fsync::None,
            },
            fresh: op == OpKind::Write && self.flag(KeyId::Fresh)?,
            seed: self.number(KeyId::Seed)?,
            on_fault: self.word::<OnFault>(KeyId::OnFault, words::ON_FAULTS)?,
            stuck_after_ns: self.ns(KeyId::StuckAfter)?,
        })
    }
}

/// Reads a scenario and works out its meaning. See [`super::load`].
pub(super) fn load(
    source: &Source,
    overrides: &[Override],
    context: &Context,
) -> Result<Scenario, ScenarioError> {
    let mut problems = Problems::new(&source.name, &source.text);
    let mut file = ScenarioFile::read(&source.text, &mut problems);
    if file.stages.is_empty() {
        file.stages.extend(["write", "read"].map(default_stage));
    }
    for change in overrides {
        file.apply(change, &mut problems);
    }
    let names = file.stage_names();
    check::stages(&file, &names, &mut problems);
    if problems.is_empty() {
        // Of a file that can't be read, nobody knows what it lacks.
        missing(&file, context, &mut problems);
    }
    let fleet = fleet(&file, context, &mut problems);
    let target = target(&file);
    let mut problems = problems.none()?;
    let drafts = expand(&file, &names, &mut problems);
    check::points(&file, &drafts, &target, &mut problems);
    problems.none()?;
    let resolved_toml = canon::toml(&file, &drafts, &names, &fleet);
    let points: Vec<PointSpec> = drafts.into_iter().map(|draft| draft.spec).collect();
    let id = canon::id(&points, &fleet, &target);
    let question = text(&file, KeyId::Question);
    let name = text(&file, KeyId::Name).unwrap_or_else(|| stem(&source.name));
    Ok(Scenario { name, question, fleet, target, points, resolved_toml, id })
}

fn default_stage(op: &'static str) -> StageFile {
    let setting = Setting { value: Value::Choice(op), origin: Origin::Default };
    StageFile { origin: Origin::Default, settings: [(KeyId::Op, setting)].into() }
}

fn stem(name: &str) -> String {
    Path::new(name).file_stem().map_or_else(|| name.to_owned(), |s| s.to_string_lossy().into())
}

/// Text of a key that stands once.
pub(super) fn text(file: &ScenarioFile, id: KeyId) -> Option<String> {
    match file.single.get(&id).map(|setting| &setting.value) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// `sweep.repeat`.
pub(super) fn repeat(file: &ScenarioFile) -> u32 {
    match file.single.get(&KeyId::Repeat).map(|setting| &setting.value) {
        Some(Value::Count(count)) => *count,
        _ => 1,
    }
}

/// What only a fleet on this machine can do without.
fn missing(file: &ScenarioFile, context: &Context, problems: &mut Problems) {
    if context.local {
        return;
    }
    if context.workers_flag.is_none() && !file.single.contains_key(&KeyId::Workers) {
        let help = "name the workers with `--workers client[01-04]` (or fleet.workers in the \
                    file), or start some on this machine with `--local 4`";
        problems.push(Problem::new("no workers are named").right(help));
    }
    if !file.single.contains_key(&KeyId::Path) {
        let help = "name a directory on the file system under test with `--path \
                    /mnt/beegfs/iofleet` (or target.path in the file)";
        problems.push(Problem::new("no target is named").right(help));
    }
}

fn fleet(file: &ScenarioFile, context: &Context, problems: &mut Problems) -> FleetConfig {
    let rate = |id: KeyId| match file.single.get(&id).map(|setting| &setting.value) {
        Some(Value::Rate(rate)) => Some(rate.bytes_per_s()),
        _ => None,
    };
    let mut fleet = FleetConfig {
        workers: Vec::new(),
        network_limit: rate(KeyId::NetworkLimit),
        link_speed: rate(KeyId::LinkSpeed),
    };
    let key = Key::of(KeyId::Workers);
    let flag = context.workers_flag.as_ref().map(|list| {
        let origin = Origin::Argument(format!("--workers {list}"));
        value::read(key, &Raw::Words(list.clone())).map(|value| Setting { value, origin })
    });
    let written = match flag {
        Some(Ok(setting)) => Some(setting),
        Some(Err(text)) => {
            let origin = Origin::Argument("--workers".to_owned());
            problems.push(Problem::at(&origin, key.path(), text));
            return fleet;
        }
        None => file.single.get(&KeyId::Workers).cloned(),
    };
    let Some(written) = written else { return fleet };
    match hosts::parse(&written.value.to_string()) {
        Ok(_) if context.local => {}
        Ok(workers) => fleet.workers = workers,
        Err(text) => problems.push(Problem::at(&written.origin, key.path(), text)),
    }
    fleet
}

fn target(file: &ScenarioFile) -> TargetConfig {
    let path = text(file, KeyId::Path);
    let keep = file.single.get(&KeyId::Keep).map(|setting| &setting.value);
    TargetConfig { path, keep: keep == Some(&Value::Flag(true)) }
}

/// All points in the order in which they run.
fn expand<'a>(file: &'a ScenarioFile, names: &[String], problems: &mut Problems) -> Vec<Draft<'a>> {
    let lengths: Vec<usize> = file.sweep.iter().map(|sweep| sweep.values.len()).collect();
    let repeat = repeat(file);
    let count = lengths
        .iter()
        .map(|length| *length as u64)
        .chain([u64::from(repeat), names.len() as u64])
        .fold(1_u64, u64::saturating_mul);
    if count > POINTS_MAX {
        let text = format!("{count} points, more than {POINTS_MAX}");
        let mut problem = Problem::new(text).right("sweep over fewer values, or repeat less often");
        for sweep in &file.sweep {
            problem = problem.and(&sweep.origin, format!("{} values", sweep.values.len()));
        }
        problems.push(problem);
        return Vec::new();
    }
    let mut drafts = Vec::new();
    let mut chosen = vec![0; lengths.len()];
    let mut group = 0;
    loop {
        for pass in 0..repeat {
            for (place, stage) in file.stages.iter().enumerate() {
                let view = View { file, place, stage, chosen: chosen.clone() };
                drafts.extend(draft(view, &names[place], pass, group, problems));
            }
            group += 1;
        }
        if !advance(&mut chosen, &lengths) {
            break;
        }
    }
    for (draft, index) in drafts.iter_mut().zip(0..) {
        draft.spec.index = index;
    }
    drafts
}

fn draft<'a>(
    view: View<'a>,
    stage: &str,
    repeat: u32,
    group: u32,
    problems: &mut Problems,
) -> Option<Draft<'a>> {
    let Some(params) = view.params() else {
        // All other keys have defaults, or were missed before.
        if view.get(KeyId::FileSize).is_none() {
            let help = "set workload.file_size (`--file-size 1GiB`): the size of each thread's \
                        file, or of the whole shared file";
            problems.push(Problem::new("file_size is missing").right(help));
        }
        return None;
    };
    let swept = view
        .file
        .sweep
        .iter()
        .zip(&view.chosen)
        .map(|(sweep, chosen)| {
            (Key::of(sweep.key).name.to_owned(), sweep.values[*chosen].value.to_string())
        })
        .collect();
    let stage = stage.to_owned();
    Some(Draft { view, spec: PointSpec { index: 0, stage, repeat, swept, group, params } })
}

/// The next combination, the last key the fastest; false after the last.
fn advance(chosen: &mut [usize], lengths: &[usize]) -> bool {
    for (place, length) in chosen.iter_mut().zip(lengths).rev() {
        *place += 1;
        if *place < *length {
            return true;
        }
        *place = 0;
    }
    false
}
