//! A scenario as written: everything optional, every value with the place where it stands.

use std::collections::BTreeMap;

use toml_edit::{Document, Item, TableLike, Value as Toml};

use super::{
    error::{Origin, Problem, Problems},
    keys::{self, KEYS, Key, KeyId, Place, nearest},
    value::{self, Raw, Value},
};

/// A scenario as written.
#[derive(Debug, Clone, Default)]
pub struct ScenarioFile {
    /// Keys that stand once: those of the top, `[fleet]`, `[target]`, and `sweep.repeat`.
    pub(super) single: BTreeMap<KeyId, Setting>,
    /// `[workload]`.
    pub(super) workload: BTreeMap<KeyId, Setting>,
    /// `[sweep]`, in order.
    pub(super) sweep: Vec<Sweep>,
    /// `[[stage]]`, in order.
    pub(super) stages: Vec<StageFile>,
}

/// A value and where it comes from.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// A swept key.
#[derive(Debug, Clone)]
pub(super) struct Sweep {
    pub(super) key: KeyId,
    pub(super) origin: Origin,
    pub(super) values: Vec<Setting>,
}

/// A stage.
#[derive(Debug, Clone)]
pub(super) struct StageFile {
    pub(super) origin: Origin,
    pub(super) settings: BTreeMap<KeyId, Setting>,
}

impl ScenarioFile {
    /// Reads a file's text. What can't be read is told and left out.
    pub(super) fn read(text: &str, problems: &mut Problems) -> Self {
        let mut file = Self::default();
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                let text = format!("not TOML: {}", error.message().trim().replace('\n', "; "));
                let problem = Problem::new(text).and(&Origin::File(span), "here");
                problems.push(problem);
                return file;
            }
        };
        for (name, item) in document.iter() {
            let key_origin = key_origin(document.as_table(), name);
            match name {
                "fleet" => file.section(Place::Fleet, item, &key_origin, problems),
                "target" => file.section(Place::Target, item, &key_origin, problems),
                "workload" => file.section(Place::Workload, item, &key_origin, problems),
                "sweep" => file.section(Place::Sweep, item, &key_origin, problems),
                "stage" => file.stages(item, &key_origin, problems),
                _ => match keys::find(name, &[Place::Top]) {
                    Some(key) => {
                        let setting = setting(key, name, item, &key_origin, problems);
                        file.single.extend(setting.map(|setting| (key.id, setting)));
                    }
                    None => problems.push(unknown(name, Place::Top, &key_origin)),
                },
            }
        }
        file
    }

    /// Names of the stages: as written, else the operation, with a number where that is taken.
    pub(super) fn stage_names(&self) -> Vec<String> {
        let written = |stage: &StageFile| match stage.settings.get(&KeyId::StageName) {
            Some(Setting { value: Value::Text(name), .. }) => Some(name.clone()),
            _ => None,
        };
        let taken: Vec<String> = self.stages.iter().filter_map(written).collect();
        let mut names: Vec<String> = Vec::new();
        for stage in &self.stages {
            let name = written(stage).unwrap_or_else(|| {
                let op = match stage.settings.get(&KeyId::Op) {
                    Some(op) => op.value.to_string(),
                    None => "stage".to_owned(),
                };
                let free = |name: &String| !taken.contains(name) && !names.contains(name);
                let numbered = (2..).map(|number: u64| format!("{op}-{number}"));
                std::iter::once(op.clone()).chain(numbered).find(free).unwrap_or_default()
            });
            names.push(name);
        }
        names
    }

    fn section(&mut self, place: Place, item: &Item, origin: &Origin, problems: &mut Problems) {
        let section = place.section().unwrap_or_default();
        let Some(table) = item.as_table_like() else {
            let text = format!("write it as a section, [{section}]");
            problems.push(Problem::at(origin, section, text));
            return;
        };
        for (name, item) in table.iter() {
            let key_origin = key_origin(table, name);
            let path = format!("{section}.{name}");
            if place == Place::Sweep
                && let Some(key) = keys::find(name, &[Place::Workload])
            {
                self.sweep.extend(sweep(key, &path, item, &key_origin, problems));
                continue;
            }
            let Some(key) = keys::find(name, &[place]) else {
                problems.push(unknown(name, place, &key_origin));
                continue;
            };
            let setting = setting(key, &path, item, &key_origin, problems);
            let settings =
                if place == Place::Workload { &mut self.workload } else { &mut self.single };
            settings.extend(setting.map(|setting| (key.id, setting)));
        }
    }

    fn stages(&mut self, item: &Item, origin: &Origin, problems: &mut Problems) {
        if let Some(tables) = item.as_array_of_tables() {
            for table in tables {
                let origin = table.span().map_or_else(|| origin.clone(), Origin::File);
                self.stage(table, origin, problems);
            }
            return;
        }
        let inline = item.as_array().filter(|list| list.iter().all(Toml::is_inline_table));
        let Some(list) = inline else {
            let text = "each stage is a section of its own, in two brackets: [[stage]]";
            problems.push(Problem::at(origin, "stage", text));
            return;
        };
        for table in list.iter().filter_map(Toml::as_inline_table) {
            let origin = table.span().map_or_else(|| origin.clone(), Origin::File);
            self.stage(table, origin, problems);
        }
    }

    fn stage(&mut self, table: &dyn TableLike, origin: Origin, problems: &mut Problems) {
        let mut settings = BTreeMap::new();
        for (name, item) in table.iter() {
            let key_origin = key_origin(table, name);
            match keys::find(name, &[Place::Stage, Place::Workload]) {
                Some(key) => {
                    let path = format!("stage.{name}");
                    let setting = setting(key, &path, item, &key_origin, problems);
                    settings.extend(setting.map(|setting| (key.id, setting)));
                }
                None => problems.push(unknown(name, Place::Stage, &key_origin)),
            }
        }
        self.stages.push(StageFile { origin, settings });
    }
}

/// A key that is not in the table, or not in this part of it.
pub(super) fn unknown(name: &str, place: Place, origin: &Origin) -> Problem {
    let path = match place.section() {
        Some(section) => format!("{section}.{name}"),
        None => name.to_owned(),
    };
    let problem = Problem::at(origin, path, format!("unknown key `{name}`"));
    let here: Vec<&str> = legal_names(place).collect();
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return problem.right(match key.place {
            Place::Workload => {
                format!("`{name}` belongs in [workload], in a [[stage]], or as a list in [sweep]")
            }
            Place::Stage => format!("`{name}` belongs in a [[stage]]"),
            Place::Top => format!("`{name}` belongs at the top, before any section"),
            Place::Fleet | Place::Target | Place::Sweep => {
                format!("`{name}` belongs in [{}]", key.place.section().unwrap_or_default())
            }
        });
    }
    match nearest(name, here.iter().copied()) {
        Some(near) => problem.right(format!("did you mean `{near}`?")),
        None => problem.right(format!("legal are {}", here.join(", "))),
    }
}

fn legal_names(place: Place) -> impl Iterator<Item = &'static str> {
    let sections: &[&str] =
        if place == Place::Top { &["fleet", "target", "workload", "sweep", "stage"] } else { &[] };
    let here = move |key: &&Key| {
        let shared = matches!(place, Place::Stage | Place::Sweep) && key.place == Place::Workload;
        key.place == place || shared
    };
    KEYS.iter().filter(here).map(|key| key.name).chain(sections.iter().copied())
}

fn key_origin(table: &dyn TableLike, name: &str) -> Origin {
    match table.get_key_value(name) {
        Some((key, item)) => {
            key.span().or_else(|| item.span()).map_or(Origin::Default, Origin::File)
        }
        None => Origin::Default,
    }
}

fn setting(
    key: &Key,
    path: &str,
    item: &Item,
    key_origin: &Origin,
    problems: &mut Problems,
) -> Option<Setting> {
    let origin = item.span().map_or_else(|| key_origin.clone(), Origin::File);
    let raw = match item {
        Item::Value(value) => raw(value),
        Item::Table(_) | Item::ArrayOfTables(_) => Raw::Other("section"),
        Item::None => return None,
    };
    match value::read(key, &raw) {
        Ok(value) => Some(Setting { value, origin }),
        Err(text) => {
            problems.push(Problem::at(&origin, path, text));
            None
        }
    }
}

fn sweep(
    key: &Key,
    path: &str,
    item: &Item,
    key_origin: &Origin,
    problems: &mut Problems,
) -> Option<Sweep> {
    let origin = item.span().map_or_else(|| key_origin.clone(), Origin::File);
    let Some(list) = item.as_array() else {
        let text = format!("a list of values is needed; each is {}", key.legal());
        problems.push(Problem::at(&origin, path, text));
        return None;
    };
    let mut values = Vec::new();
    for value in list {
        let origin = value.span().map_or_else(|| origin.clone(), Origin::File);
        match value::read(key, &raw(value)) {
            Ok(value) => values.push(Setting { value, origin }),
            Err(text) => problems.push(Problem::at(&origin, path, text)),
        }
    }
    checked(Sweep { key: key.id, origin, values }, list.is_empty(), problems)
}

/// A sweep that has values, none of them twice.
pub(super) fn checked(sweep: Sweep, empty: bool, problems: &mut Problems) -> Option<Sweep> {
    let path = format!("sweep.{}", Key::of(sweep.key).name);
    if empty {
        problems.push(Problem::at(&sweep.origin, path, "an empty list: name at least one value"));
        return None;
    }
    for (place, setting) in sweep.values.iter().enumerate() {
        if sweep.values[..place].iter().any(|earlier| earlier.value == setting.value) {
            let text = format!("`{}` stands twice", setting.value);
            let help = "to run points more than once, set sweep.repeat";
            problems.push(Problem::at(&setting.origin, &path, text).right(help));
        }
    }
    Some(sweep)
}

fn raw(value: &Toml) -> Raw {
    match value {
        Toml::String(text) => Raw::Text(text.value().clone()),
        Toml::Integer(number) => Raw::Integer(*number.value()),
        Toml::Boolean(flag) => Raw::Flag(*flag.value()),
        Toml::Float(number) => Raw::Decimal(number.display_repr().into_owned()),
        Toml::Datetime(_) => Raw::Other("date"),
        Toml::Array(list) => {
            let texts: Option<Vec<String>> =
                list.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            texts.filter(|texts| !texts.is_empty()).map_or(Raw::Other("list"), Raw::Texts)
        }
        Toml::InlineTable(_) => Raw::Other("table"),
    }
}
