//! `docs/result.schema.json` is made from the record's types, and records comply with it.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{
    CampaignRecord, CampaignStatus, Headline, IntervalPhase, PointRecord, PointStatus, SCHEMA,
    example,
};

fn schema() -> Value {
    let mut schema = serde_json::to_value(schemars::schema_for!(CampaignRecord)).unwrap();
    require_all(&mut schema);
    schema["properties"]["schema"]["const"] = json!(SCHEMA);
    schema
}

/// All keys are always there: what is optional in Rust is null, not absent.
fn require_all(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                let mut keys: Vec<_> = properties.keys().cloned().collect();
                keys.sort();
                object.insert("required".to_owned(), json!(keys));
            }
            object.values_mut().for_each(require_all);
        }
        Value::Array(values) => values.iter_mut().for_each(require_all),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "docs", "result.schema.json"].iter().collect()
}

fn published() -> Value {
    if std::env::var_os("IOFLEET_UPDATE").is_some_and(|value| value == "1") {
        let text = serde_json::to_string_pretty(&schema()).unwrap();
        fs::write(file(), text + "\n").unwrap();
    }
    serde_json::from_str(&fs::read_to_string(file()).unwrap()).unwrap()
}

fn minimal() -> CampaignRecord {
    let mut record = example::campaign();
    record.tool.commit = None;
    (record.campaign.question, record.campaign.ended, record.campaign.message) = (None, None, None);
    record.nodes.clear();
    record.repetitions.clear();
    record.points = vec![example::skipped(0)];
    record
}

/// Paths of all values within a document.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = format!("{at}/{key}");
                paths(value, &path, found);
                found.push(path);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                paths(value, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    assert!(
        published() == schema(),
        "docs/result.schema.json differs from the types: run this test with IOFLEET_UPDATE=1"
    );
}

#[test]
fn full_and_minimal_records_comply() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for record in [example::campaign(), minimal()] {
        let document = serde_json::to_value(&record).unwrap();
        let errors: Vec<_> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn no_key_may_be_missing_and_none_be_new() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for record in [example::campaign(), minimal()] {
        let document = serde_json::to_value(&record).unwrap();
        let mut all = Vec::new();
        paths(&document, "", &mut all);
        assert!(all.len() > 60, "{}", all.len());
        for path in all {
            let (parent, key) = path.rsplit_once('/').unwrap();
            let mut changed = document.clone();
            let object = changed.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            let value = object.remove(key).unwrap();
            assert!(!validator.is_valid(&changed), "without {path}");
            let object = changed.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            object.insert(key.to_owned(), value);
            object.insert("unheard_of".to_owned(), json!(1));
            assert!(!validator.is_valid(&changed), "with a new key beside {path}");
        }
    }
}

#[test]
fn integers_stay_integers() {
    let text = serde_json::to_string(&example::full(0)).unwrap();
    assert!(text.contains(r#""seed":18446744073709551615"#));
    assert_eq!(serde_json::from_str::<PointRecord>(&text).unwrap(), example::full(0));
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let mut document = serde_json::to_value(example::campaign()).unwrap();
    document["points"][0]["bytes"] = json!(1.5);
    assert!(!validator.is_valid(&document));
}

/// Tables and the store use the words of the document.
#[test]
fn words_are_those_of_the_document() {
    let same = |word: &str, value: Value| assert_eq!(json!(word), value);
    use CampaignStatus::{Complete, Interrupted, Running};
    for status in [Running, Complete, CampaignStatus::Partial, Interrupted] {
        same(status.word(), json!(status));
    }
    for phase in [IntervalPhase::Ramp, IntervalPhase::Measure, IntervalPhase::Drain] {
        same(phase.word(), json!(phase));
    }
    for headline in [Headline::Common, Headline::Span] {
        same(headline.word(), json!(headline));
    }
    use PointStatus::{Failed, Ok, Partial, Skipped};
    for status in [Ok, Partial, Failed, Skipped] {
        same(status.word(), json!(status));
    }
}
