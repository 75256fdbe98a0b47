//! The canonical forms of a scenario: TOML for the record, and the hash of its meaning.

use std::fmt::Write;

use iofleet_shared::{
    units::Rate,
    work::{Content, Pattern, SizeShare},
};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::{
    DirSharing, FleetConfig, Offer, OfferedRate, Params, PointSpec, TargetConfig, Threads, Verify,
    check,
    file::ScenarioFile,
    hosts,
    keys::{self, KEYS, Key, KeyId, Place},
    require::Requirement,
    resolve::MIN_FREE_MILLI,
    resolve::{Draft, repeat},
    thresholds::Thresholds,
    value::{self, Value, quoted},
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
            None => value::default(key).or_else(|| resolved(key.id, drafts.iter().filter(takes))),
        };
        if let Some(value) = value.filter(|_| used) {
            lines.push(format!("{} = {}", key.name, value.toml()));
        }
    }
    lines
}

/// The value of a key whose default depends on others, where it is the same in all points.
fn resolved<'a>(id: KeyId, mut drafts: impl Iterator<Item = &'a Draft<'a>>) -> Option<Value> {
    let value = |draft: &Draft<'_>| {
        let params = &draft.spec.params;
        if id == KeyId::Direct {
            return Some(Value::Flag(params.options.direct));
        }
        (id == KeyId::Depth).then_some(Value::Count(params.engine.depth))
    };
    let first = value(drafts.next()?)?;
    drafts.all(|draft| value(draft).as_ref() == Some(&first)).then_some(first)
}

/// SHA-256, in hex, of the canonical JSON of the meaning: without name, question, notes, workers
/// and path, and without the way in which it was written.
pub(super) fn id(
    points: &[PointSpec],
    fleet: &FleetConfig,
    target: &TargetConfig,
    (require, thresholds): &(Vec<Requirement>, Thresholds),
) -> String {
    let bits = |limit: Option<f64>| limit.map(|limit| rate(limit).bits_per_s());
    let mut meaning = json!({
        "fleet": {
            "network_limit_bits_per_s": bits(fleet.network_limit),
            "link_speed_bits_per_s": fleet.link_speed.all.map(Rate::bits_per_s),
        },
        "target": { "keep": target.keep },
        "points": points.iter().map(point).collect::<Vec<_>>(),
    });
    // Later keys stand in it only where they are set, so that older ids stay what they are.
    if let Some(limit) = bits(fleet.storage_limit) {
        meaning["fleet"]["storage_limit_bits_per_s"] = json!(limit);
    }
    if *thresholds != Thresholds::default() {
        meaning["thresholds"] = json!(format!("{thresholds:?}"));
    }
    if !require.is_empty() {
        let demands: Vec<String> = require.iter().map(Requirement::to_string).collect();
        meaning["require"] = json!(demands);
    }
    if !fleet.link_speed.by_node.is_empty() {
        let of = |(node, rate): &(String, Rate)| json!({ "node": node, "bits_per_s": rate.bits_per_s() });
        meaning["fleet"]["link_speeds"] = fleet.link_speed.by_node.iter().map(of).collect();
    }
    if !fleet.observers.is_empty() {
        let names: Vec<&str> = fleet.observers.iter().map(|host| host.name.as_str()).collect();
        meaning["fleet"]["observers"] = json!(names);
    }
    if target.allow_holes {
        meaning["target"]["allow_holes"] = json!(true);
    }
    if target.min_free_milli != MIN_FREE_MILLI {
        meaning["target"]["min_free_milli"] = json!(target.min_free_milli);
    }
    if !fleet.interfaces.is_empty() {
        meaning["fleet"]["interfaces"] = json!(fleet.interfaces);
    }
    if let Some(milli) = fleet.expected_wire_milli {
        meaning["fleet"]["expected_wire_per_payload_milli"] = json!(milli);
    }
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
    let mut meaning = json!({
        "stage": point.stage,
        "repeat": point.repeat,
        "group": point.group,
        "op": params.op_word(),
        "threads": threads,
        "threads_are_per_node": per_node,
        "layout": words::layout(params.layout),
        "file_bytes": params.file_bytes(),
        "block_bytes": params.block_bytes(),
        "pattern": words::pattern(params.pattern),
        "duration_ns": params.duration_ns,
        "ramp_ns": params.ramp_ns,
        "interval_ns": params.interval_ns,
        "loop": params.repeat_range,
        "direct": params.options.direct,
        "engine": words::engine(params.engine.kind),
        "fsync": words::fsync(params.fsync),
        "fresh": params.fresh,
        "seed": params.seed,
        "on_fault": words::on_fault(params.on_fault),
        "stuck_after_ns": params.stuck_after_ns,
    });
    if let Some(map) = meaning.as_object_mut() {
        map.extend(particulars(params).into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    meaning
}

/// What is not as in a plain write or read. What is left out there keeps the id of a scenario that
/// does not use it.
fn particulars(params: &Params) -> Vec<(&'static str, Json)> {
    let plain = Params::default();
    let mut all: Vec<(&'static str, bool, Json)> = vec![
        (
            "mix",
            params.is_mix(),
            json!(params.ops.iter().map(|s| (s.op.name(), s.weight)).collect::<Vec<_>>()),
        ),
        ("cold", params.cold, json!(true)),
        ("nodes", params.nodes.is_some(), json!(params.nodes)),
        ("mix_by_thread", params.mix_by != plain.mix_by, json!(true)),
        (
            "tree",
            params.tree != plain.tree,
            json!([params.tree.dirs, params.tree.files, params.tree.sharing == DirSharing::Shared]),
        ),
        ("listed", !params.listed.is_empty(), json!(params.listed.len())),
        ("file_sizes", params.file_sizes.len() > 1, sizes(&params.file_sizes)),
        ("blocks", params.blocks.len() > 1, sizes(&params.blocks)),
        (
            "pattern_set_to",
            pattern_value(params.pattern).is_some(),
            json!(pattern_value(params.pattern)),
        ),
        ("depth", params.engine.depth != 1, json!(params.engine.depth)),
        ("sqpoll", params.engine.sqpoll, json!(true)),
        ("iopoll", params.engine.iopoll, json!(true)),
        ("high_priority", params.engine.high_priority, json!(true)),
        ("dsync", params.options.dsync, json!(true)),
        ("append", params.options.append, json!(true)),
        ("preallocate", params.options.preallocate, json!(true)),
        ("truncate", params.options.truncate, json!(true)),
        ("advice", params.options.advice.is_some(), json!(words::advice(params.options.advice))),
        ("lock", params.options.lock, json!(true)),
        ("offer", params.offer != plain.offer, offer(params.offer)),
        ("zeros", params.content == Content::Zero, json!(true)),
        ("compress_milli", params.compress_milli() != 1000, json!(params.compress_milli())),
        ("dedupe_milli", params.dedupe_milli() != 1000, json!(params.dedupe_milli())),
        ("refresh", !params.refresh, json!(false)),
        ("verify", params.verify != Verify::Off, json!(words::verify(params.verify))),
        ("cores", params.placement.cores.is_some(), json!(params.placement.cores)),
        ("numa_nodes", params.placement.numa_nodes.is_some(), json!(params.placement.numa_nodes)),
        ("huge_pages", params.placement.huge_pages, json!(true)),
    ];
    all.retain(|(_, said, _)| *said);
    all.into_iter().map(|(name, _, value)| (name, value)).collect()
}

fn sizes(sizes: &[SizeShare]) -> Json {
    json!(sizes.iter().map(|share| (share.bytes, share.weight)).collect::<Vec<_>>())
}

fn pattern_value(pattern: Pattern) -> Option<u64> {
    match pattern {
        Pattern::Sequential | Pattern::Backward | Pattern::Random | Pattern::RandomOnce => None,
        Pattern::Strided { step } => Some(step),
        Pattern::Zipf { theta_milli } => Some(theta_milli.into()),
        Pattern::Pareto { h_milli } => Some(h_milli.into()),
        Pattern::Normal { deviation_milli } => Some(deviation_milli.into()),
    }
}

fn offer(offer: Offer) -> Json {
    match offer {
        Offer::Closed { think_ns, burst } => json!({ "think_ns": think_ns, "burst": burst }),
        Offer::Open { rate, per, exponential } => json!({
            "rate": match rate {
                OfferedRate::Operations(per_1000_s) => json!({ "per_1000_s": per_1000_s }),
                OfferedRate::Bytes(rate) => json!({ "bits_per_s": rate.bits_per_s() }),
            },
            "per": words::rate_per(per),
            "exponential": exponential,
        }),
    }
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
