//! What the command line and the environment change in a scenario as written.

use iofleet_shared::units::{Size, Time};

use super::{
    error::Problems,
    error::{Origin, Problem, ScenarioError},
    file::{ScenarioFile, Setting, Sweep, checked, unknown},
    keys::{self, KEYS, Key, KeyId, Kind, Place, nearest},
    value::{self, Raw},
};

/// One change. Later ones win over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    source: Source,
    key: String,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// `--set K=V`: one place of the file.
    Set,
    /// A flag: the key, wherever it stands.
    Flag,
    /// A variable of the environment: as a flag.
    Environment,
}

impl Override {
    /// Of `--set K=V`.
    ///
    /// # Errors
    /// When there is no `=` or nothing before it.
    pub fn set(argument: &str) -> Result<Self, ScenarioError> {
        match argument.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok(Self {
                source: Source::Set,
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            }),
            _ => {
                let origin = Origin::Argument(format!("--set {argument}"));
                let text = "write KEY=VALUE, as in `--set workload.block=4MiB`";
                Err(ScenarioError::one(Problem::new(text).and(&origin, "")))
            }
        }
    }

    /// Of a key's flag.
    #[must_use]
    pub fn flag(key: &Key, value: &str) -> Self {
        let value = value.trim().to_owned();
        Self { source: Source::Flag, key: key.flag_name().replace('-', "_"), value }
    }

    /// Of a key's variable of the environment.
    #[must_use]
    pub fn environment(key: &Key, value: &str) -> Self {
        let value = value.trim().to_owned();
        Self { source: Source::Environment, key: key.flag_name().replace('-', "_"), value }
    }

    /// As people wrote it.
    #[must_use]
    pub fn argument(&self) -> String {
        match self.source {
            Source::Set => format!("--set {}={}", self.key, self.value),
            Source::Flag => format!("--{} {}", self.key.replace('_', "-"), self.value),
            Source::Environment => format!("IOFLEET_{}={}", self.key.to_uppercase(), self.value),
        }
    }

    fn origin(&self) -> Origin {
        Origin::Argument(self.argument())
    }

    fn setting(&self, key: &Key, text: &str, problems: &mut Problems) -> Option<Setting> {
        match value::read(key, &Raw::Words(text.trim().to_owned())) {
            Ok(value) => Some(Setting { value, origin: self.origin() }),
            Err(text) => {
                problems.push(Problem::at(&self.origin(), key.path(), text));
                None
            }
        }
    }
}

impl ScenarioFile {
    /// Makes one change. What can't be made is told.
    pub(super) fn apply(&mut self, change: &Override, problems: &mut Problems) {
        let parts: Vec<&str> = change.key.split('.').collect();
        match (change.source, parts.as_slice()) {
            (Source::Flag | Source::Environment, _) => self.apply_flag(change, problems),
            (_, ["workload", name]) => match keys::find(name, &[Place::Workload]) {
                Some(key) => self.set_workload(key, change, problems),
                None => problems.push(unknown(name, Place::Workload, &change.origin())),
            },
            (_, ["sweep", "repeat"]) => self.set_single(Key::of(KeyId::Repeat), change, problems),
            (_, ["sweep", name]) => match keys::find(name, &[Place::Workload]) {
                Some(key) => self.set_sweep(key, change, problems),
                None => problems.push(unknown(name, Place::Sweep, &change.origin())),
            },
            (_, ["stage", stage, name]) => self.set_stage(stage, name, change, problems),
            (_, ["fleet", name]) => self.set_named(name, Place::Fleet, change, problems),
            (_, ["target", name]) => self.set_named(name, Place::Target, change, problems),
            (_, [name]) => self.set_named(name, Place::Top, change, problems),
            _ => problems.push(no_such_place(change)),
        }
    }

    /// A flag of a workload key takes the key out of everywhere else; a list is a sweep.
    fn apply_flag(&mut self, change: &Override, problems: &mut Problems) {
        let Some(key) =
            KEYS.iter().find(|key| key.flag && key.flag_name() == change.key.replace('_', "-"))
        else {
            problems.push(no_such_place(change));
            return;
        };
        if key.place != Place::Workload {
            self.set_single(key, change, problems);
            return;
        }
        for stage in &mut self.stages {
            for id in same_place(key.id) {
                stage.settings.remove(id);
            }
        }
        if key.pieces(&change.value).len() > 1 {
            self.set_sweep(key, change, problems);
        } else {
            self.set_workload(key, change, problems);
        }
    }

    fn set_named(&mut self, name: &str, place: Place, change: &Override, problems: &mut Problems) {
        match keys::find(name, &[place]) {
            Some(key) => self.set_single(key, change, problems),
            None if place == Place::Top => problems.push(no_such_place(change)),
            None => problems.push(unknown(name, place, &change.origin())),
        }
    }

    fn set_single(&mut self, key: &Key, change: &Override, problems: &mut Problems) {
        let setting = change.setting(key, &change.value, problems);
        self.single.extend(setting.map(|setting| (key.id, setting)));
    }

    fn set_workload(&mut self, key: &Key, change: &Override, problems: &mut Problems) {
        let Some(setting) = change.setting(key, &change.value, problems) else {
            return;
        };
        for id in same_place(key.id) {
            self.workload.remove(id);
            self.sweep.retain(|sweep| sweep.key != *id);
        }
        self.workload.insert(key.id, setting);
    }

    fn set_sweep(&mut self, key: &Key, change: &Override, problems: &mut Problems) {
        let values: Vec<Setting> = key
            .pieces(&change.value)
            .into_iter()
            .filter(|text| !change.value.trim().is_empty() || !text.is_empty())
            .filter_map(|text| change.setting(key, text, problems))
            .collect();
        let empty = change.value.trim().is_empty();
        let sweep = Sweep { key: key.id, origin: change.origin(), values };
        let Some(sweep) = checked(sweep, empty, problems) else {
            return;
        };
        let same = same_place(key.id);
        for id in same {
            self.workload.remove(id);
        }
        // A key that was swept keeps its place in the nesting.
        let place = self.sweep.iter().position(|known| same.contains(&known.key));
        self.sweep.retain(|known| !same.contains(&known.key));
        self.sweep.insert(place.unwrap_or(self.sweep.len()).min(self.sweep.len()), sweep);
    }

    fn set_stage(&mut self, stage: &str, name: &str, change: &Override, problems: &mut Problems) {
        let names = self.stage_names();
        let Some(place) = names.iter().position(|known| known == stage) else {
            let text = format!("no stage is named `{stage}`");
            let help = format!("the stages are {}", names.join(", "));
            problems.push(Problem::new(text).and(&change.origin(), "").right(help));
            return;
        };
        let Some(key) = keys::find(name, &[Place::Stage, Place::Workload]) else {
            problems.push(unknown(name, Place::Stage, &change.origin()));
            return;
        };
        if let Some(setting) = change.setting(key, &change.value, problems) {
            let settings = &mut self.stages[place].settings;
            for id in same_place(key.id) {
                settings.remove(id);
            }
            settings.insert(key.id, setting);
        }
    }
}

/// Keys of which only one can hold: a new value takes out the others.
pub(super) fn same_place(id: KeyId) -> &'static [KeyId] {
    const THREADS: &[KeyId] = &[KeyId::Threads, KeyId::ThreadsPerNode];
    if THREADS.contains(&id) {
        return THREADS;
    }
    // The table's order is that of the ids.
    std::slice::from_ref(&KEYS[id as usize].id)
}

fn no_such_place(change: &Override) -> Problem {
    let name = change.key.rsplit('.').next().unwrap_or(&change.key);
    let problem =
        Problem::new(format!("there is no key `{}`", change.key)).and(&change.origin(), "");
    let key = KEYS.iter().find(|key| key.name == name).or_else(|| {
        let near = nearest(name, KEYS.iter().map(|key| key.name))?;
        KEYS.iter().find(|key| key.name == near)
    });
    match key {
        Some(key) if key.place == Place::Workload => problem.right(format!(
            "write workload.{0}, sweep.{0} or stage.NAME.{0}; this one is {1}",
            key.name,
            example(key)
        )),
        Some(key) if key.place == Place::Stage => {
            problem.right(format!("write stage.NAME.{}", key.name))
        }
        Some(key) => problem.right(format!("write {}", key.path())),
        None => problem.right(
            "write workload.KEY, sweep.KEY, stage.NAME.KEY, fleet.KEY or target.KEY; \
             docs/scenarios.md lists the keys",
        ),
    }
}

fn example(key: &Key) -> String {
    let units: Vec<&str> = match key.kind {
        Kind::Sizes(..) => Size::units().collect(),
        Kind::Time(..) => Time::units().collect(),
        Kind::Rate
        | Kind::Count(..)
        | Kind::Integer
        | Kind::Decimal(..)
        | Kind::Offered
        | Kind::Flag
        | Kind::Choice(_)
        | Kind::Mix
        | Kind::Numbers
        | Kind::Paths
        | Kind::Percent
        | Kind::Speeds
        | Kind::Requirements
        | Kind::StageName
        | Kind::Text
        | Kind::Path
        | Kind::Hosts => return key.legal(),
    };
    format!("{} ({})", key.legal(), units.join(", "))
}
