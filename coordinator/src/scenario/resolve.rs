//! From a scenario as written to its meaning: sweeps expanded, defaults filled in, every rule
//! checked.

use std::{path::Path, sync::Arc};

use super::{
    Context, FleetConfig, Override, PointSpec, Scenario, Source, TargetConfig, WorkerAddress,
    canon, check,
    error::{Origin, Problem, Problems, ScenarioError},
    file::{ScenarioFile, Setting, StageFile},
    hosts,
    keys::{Key, KeyId},
    require::Requirement,
    speeds::LinkSpeeds,
    thresholds::Thresholds,
    value::{self, Raw, Value},
};

mod view;

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
    let require = requirements(&file, &names, &mut problems);
    let thresholds = thresholds(&file, &mut problems);
    if problems.is_empty() {
        // Of a file that can't be read, nobody knows what it lacks.
        missing(&file, context, &mut problems);
    }
    let fleet = fleet(&file, context, &mut problems);
    let target = target(&file);
    let mut problems = problems.none()?;
    let drafts = expand(&file, &names, &target, &mut problems);
    check::points(&file, &drafts, &target, &mut problems);
    problems.none()?;
    let resolved_toml = canon::toml(&file, &drafts, &names, &fleet);
    let points: Vec<PointSpec> = drafts.into_iter().map(|draft| draft.spec).collect();
    let id = canon::id(&points, &fleet, &target, &(require.clone(), thresholds));
    let question = text(&file, KeyId::Question);
    let name = text(&file, KeyId::Name).unwrap_or_else(|| stem(&source.name));
    Ok(Scenario { name, question, require, thresholds, fleet, target, points, resolved_toml, id })
}

/// Each is of a stage that there is.
fn requirements(
    file: &ScenarioFile,
    names: &[String],
    problems: &mut Problems,
) -> Vec<Requirement> {
    let Some(setting) = file.single.get(&KeyId::Require) else { return Vec::new() };
    let Value::Requirements(demands) = &setting.value else { return Vec::new() };
    for demand in demands.iter().filter(|demand| !names.contains(&demand.stage)) {
        let text = format!("`{demand}`: there is no stage `{}`", demand.stage);
        let help = format!("the stages are {}", names.join(", "));
        problems.push(Problem::at(&setting.origin, "require", text).right(help));
    }
    demands.clone()
}

fn thresholds(file: &ScenarioFile, problems: &mut Problems) -> Thresholds {
    let Some(text) = text(file, KeyId::Thresholds) else { return Thresholds::default() };
    Thresholds::parse(&text).unwrap_or_else(|why| {
        if let Some(setting) = file.single.get(&KeyId::Thresholds) {
            problems.push(Problem::at(&setting.origin, "thresholds", why));
        }
        Thresholds::default()
    })
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
        link_speed: match file.single.get(&KeyId::LinkSpeed).map(|setting| &setting.value) {
            Some(Value::Speeds(speeds)) => speeds.clone(),
            _ => LinkSpeeds::default(),
        },
        storage_limit: rate(KeyId::StorageLimit),
        observers: observers(file, context, problems),
        interfaces: interfaces(file),
        expected_wire_milli: match file.single.get(&KeyId::ExpectedWire).map(|s| &s.value) {
            Some(Value::Decimal(milli)) => Some(*milli).filter(|milli| *milli != 1000),
            _ => None,
        },
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

/// A local fleet has none.
fn observers(
    file: &ScenarioFile,
    context: &Context,
    problems: &mut Problems,
) -> Vec<WorkerAddress> {
    let Some(setting) = file.single.get(&KeyId::Observers).filter(|_| !context.local) else {
        return Vec::new();
    };
    hosts::parse(&setting.value.to_string()).unwrap_or_else(|why| {
        problems.push(Problem::at(&setting.origin, Key::of(KeyId::Observers).path(), why));
        Vec::new()
    })
}

/// 10 %, as in the table of keys.
pub(super) const MIN_FREE_MILLI: u32 = 100;

fn target(file: &ScenarioFile) -> TargetConfig {
    let path = text(file, KeyId::Path);
    let flag =
        |id: KeyId| file.single.get(&id).is_some_and(|setting| setting.value == Value::Flag(true));
    let paths = |id: KeyId| match file.single.get(&id).map(|setting| &setting.value) {
        Some(Value::Paths(paths)) => paths.clone().into(),
        _ => Arc::default(),
    };
    TargetConfig {
        path,
        keep: flag(KeyId::Keep),
        min_free_milli: match file.single.get(&KeyId::MinFree).map(|setting| &setting.value) {
            Some(Value::Percent(milli)) => *milli,
            _ => MIN_FREE_MILLI,
        },
        allow_holes: flag(KeyId::AllowHoles),
        files: paths(KeyId::TargetFiles),
        devices: paths(KeyId::TargetDevices),
        destroys_data: flag(KeyId::DestroysData),
    }
}

/// By commas; blanks around them don't matter.
fn interfaces(file: &ScenarioFile) -> Vec<String> {
    let Some(Value::Text(names)) = file.single.get(&KeyId::Interfaces).map(|s| &s.value) else {
        return Vec::new();
    };
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// All points in the order in which they run.
fn expand<'a>(
    file: &'a ScenarioFile,
    names: &[String],
    target: &TargetConfig,
    problems: &mut Problems,
) -> Vec<Draft<'a>> {
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
                drafts.extend(draft(view, &names[place], pass, group, target, problems));
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
    target: &TargetConfig,
    problems: &mut Problems,
) -> Option<Draft<'a>> {
    let params = match view.params(target) {
        Ok(params) => params,
        Err(missing) => {
            problems.push(missing.problem(&view));
            return None;
        }
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
