//! The canonical forms of a scenario: TOML for the record, and the hash of its meaning.

use std::fmt::Write;

use iofleet_shared::units::Rate;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::{
    FleetConfig, PointSpec, TargetConfig, Threads, check,
    file::ScenarioFile,
    hosts,
    keys::{self, KEYS, Key, KeyId, Place},
    resolve::{Draft, repeat},
    value::{self, quoted},
    words,
};

/// The resolved scenario as TOML: all that has an effect, defaults too, in the table's order. It
/// parses to the same scenario.
pub(super) fn toml(
    file: &ScenarioFile,
    drafts: &[Draft<'_>],
    names: &[String],
    fleet: &FleetConfig,
) -> String {
    let mut text = String::new();
    singles(&mut text, file, Place::Top, fleet);
    for place in [Place::Fleet, Place::Target] {
        singles(&mut text, file, place, fleet);
    }
    section(&mut text, "[workload]", &workload(file, drafts));
    let mut sweep: Vec<String> = file
        .sweep
        .iter()
        .map(|sweep| {
            let values: Vec<String> = sweep.values.iter().map(|s| s.value.toml()).collect();
            format!("{} = [{}]", Key::of(sweep.key).name, values.join(", "))
        })
        .collect();
    sweep.push(format!("repeat = {}", repeat(file)));
    section(&mut text, "[sweep]", &sweep);
    for (stage, name) in file.stages.iter().zip(names) {
        let mut lines = Vec::new();
        for key in KEYS {
            match stage.settings.get(&key.id) {
                _ if key.id == KeyId::StageName => lines.push(format!("name = {}", quoted(name))),
                Some(setting) => lines.push(format!("{} = {}", key.name, setting.value.toml())),
                None => {}
            }
        }
        section(&mut text, "[[stage]]", &lines);
    }
    text
}

fn section(text: &mut String, header: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    if !header.is_empty() {
        text.push_str(header);
        text.push('\n');
    }
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
}

fn singles(text: &mut String, file: &ScenarioFile, place: Place, fleet: &FleetConfig) {
    let mut lines = Vec::new();
    for key in KEYS.iter().filter(|key| key.place == place) {
        let value = match file.single.get(&key.id) {
            _ if key.id == KeyId::Workers => {
                let workers = hosts::show(&fleet.workers);
                (!workers.is_empty()).then(|| quoted(&workers))
            }
            Some(setting) => Some(setting.value.toml()),
            None => value::default(key).map(|value| value.toml()),
        };
        lines.extend(value.map(|value| format!("{} = {value}", key.name)));
    }
    let header = place.section().map_or_else(String::new, |name| format!("[{name}]"));
    section(text, &header, &lines);
}

/// Keys that some point takes from `[workload]` or from their defaults, and that change it.
fn workload(file: &ScenarioFile, drafts: &[Draft<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    for key in keys::workload() {
        if file.sweep.iter().any(|sweep| sweep.key == key.id) {
            continue;
        }
        let takes = |draft: &&Draft<'_>| {
            let own = &file.stages[draft.view.place].settings;
            !own.contains_key(&key.id) && check::has_effect(key, &draft.spec)
        };
        let per_node = |draft: &Draft<'_>| draft.view.get(KeyId::ThreadsPerNode).is_some();
        let used =
            drafts.iter().filter(takes).any(|draft| key.id != KeyId::Threads || !per_node(draft));
        let value = match file.workload.get(&key.id) {
            Some(setting) => Some(setting.value.clone()),
            // A default beside threads_per_node would exclude it.
            None if key.id == KeyId::Threads && drafts.iter().any(per_node) => None,
            None => value::default(key),
        };
        if let Some(value) = value.filter(|_| used) {
            lines.push(format!("{} = {}", key.name, value.toml()));
        }
    }
    lines
}

/// SHA-256, in hex, of the canonical JSON of the meaning: without name, question, notes, workers
/// and path, and without the way in which it was written.
pub(super) fn id(points: &[PointSpec], fleet: &FleetConfig, target: &TargetConfig) -> String {
    let bits = |limit: Option<f64>| limit.map(|limit| rate(limit).bits_per_s());
    let meaning = json!({
        "fleet": {
            "network_limit_bits_per_s": bits(fleet.network_limit),
            "link_speed_bits_per_s": bits(fleet.link_speed),
        },
        "target": { "keep": target.keep },
        "points": points.iter().map(point).collect::<Vec<_>>(),
    });
    let mut text = String::new();
    canonical(&mut text, &meaning);
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn point(point: &PointSpec) -> Json {
    let params = &point.params;
    let (threads, per_node) = match params.threads {
        Threads::Fleet(count) => (count, false),
        Threads::PerNode(count) => (count, true),
    };
    json!({
        "stage": point.stage,
        "repeat": point.repeat,
        "group": point.group,
        "op": words::op(params.op),
        "threads": threads,
        "threads_are_per_node": per_node,
        "layout": words::layout(params.layout),
        "file_bytes": params.file_bytes,
        "block_bytes": params.block_bytes,
        "pattern": words::pattern(params.pattern),
        "duration_ns": params.duration_ns,
        "ramp_ns": params.ramp_ns,
        "interval_ns": params.interval_ns,
        "loop": params.repeat_range,
        "direct": params.direct,
        "engine": words::engine(params.engine),
        "fsync": words::fsync(params.fsync),
        "fresh": params.fresh,
        "seed": params.seed,
        "on_fault": words::on_fault(params.on_fault),
        "stuck_after_ns": params.stuck_after_ns,
    })
}

/// JSON with sorted keys and no blanks.
fn canonical(text: &mut String, value: &Json) {
    match value {
        Json::Object(map) => {
            let mut names: Vec<&String> = map.keys().collect();
            names.sort();
            text.push('{');
            for (place, name) in names.into_iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                text.push_str(&Json::from(name.as_str()).to_string());
                text.push(':');
                canonical(text, &map[name]);
            }
            text.push('}');
        }
        Json::Array(list) => {
            text.push('[');
            for (place, item) in list.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                canonical(text, item);
            }
            text.push(']');
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

/// A rate as people write it, from bytes per second as the scenario holds it.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates of scenarios are whole bits per second below 2^53"
)]
pub fn rate(bytes_per_s: f64) -> Rate {
    Rate::from_bits_per_s((bytes_per_s * 8.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_is_sorted_and_tight() {
        let mut text = String::new();
        let inner: Json =
            serde_json::from_str(r#"{"b": [1, {"z": null, "a": "x\"y"}], "a": true}"#).unwrap();
        canonical(&mut text, &inner);
        assert_eq!(text, r#"{"a":true,"b":[1,{"a":"x\"y","z":null}]}"#);
    }
}
