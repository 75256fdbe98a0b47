//! The JSON schema of scenario files and the key table of the docs page, from the table of keys.

use iofleet_shared::{
    units::{Rate, Size, Time},
    work::OpKind,
};
use serde_json::{Map, Value as Json, json};

use super::{
    keys::{KEYS, Key, Kind, Place},
    value::{self, Value},
};

/// The schema of scenario files (as JSON: TOML has the same shapes).
#[must_use]
pub fn json_schema() -> Json {
    let top = |key: &Key| key.place == Place::Top;
    let mut properties = properties(top);
    for place in [Place::Fleet, Place::Target, Place::Workload] {
        let section = object(self::properties(|key| key.place == place));
        properties.insert(place.section().unwrap_or_default().to_owned(), section);
    }
    let mut sweep = self::properties(|key| key.place == Place::Sweep);
    for key in KEYS.iter().filter(|key| key.place == Place::Workload) {
        let list = json!({
            "type": "array",
            "minItems": 1,
            "uniqueItems": true,
            "items": schema_of(key),
        });
        sweep.insert(key.name.to_owned(), list);
    }
    properties.insert("sweep".to_owned(), object(sweep));
    let mut stage =
        object(self::properties(|key| matches!(key.place, Place::Stage | Place::Workload)));
    stage["required"] = json!(["op"]);
    properties.insert("stage".to_owned(), json!({ "type": "array", "items": stage }));
    let mut schema = object(properties);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Scenario of iofleet");
    schema
}

/// The key table of the docs page, in Markdown.
#[must_use]
pub fn key_table() -> String {
    let mut text =
        String::from("| key | flag | legal | default | what it does |\n|---|---|---|---|---|\n");
    for key in KEYS {
        let path = match key.place {
            Place::Workload => format!("`{}`", key.name),
            Place::Top | Place::Fleet | Place::Target | Place::Sweep | Place::Stage => {
                format!("`{}`", key.path())
            }
        };
        let flag = if key.flag { format!("`--{}`", key.flag_name()) } else { String::new() };
        let legal = if let Kind::Choice(words) = key.kind {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        } else {
            key.legal()
        };
        let default = match key.default {
            Some(default) => format!("`{default}`"),
            None => key.otherwise.to_owned(),
        };
        text.push_str(&format!("| {path} | {flag} | {legal} | {default} | {} |\n", key.help));
    }
    text
}

fn properties(wanted: impl Fn(&Key) -> bool) -> Map<String, Json> {
    KEYS.iter().filter(|key| wanted(key)).map(|key| (key.name.to_owned(), schema_of(key))).collect()
}

fn object(properties: Map<String, Json>) -> Json {
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn schema_of(key: &Key) -> Json {
    let mut schema = match key.kind {
        Kind::Count(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Integer => json!({ "type": "integer", "minimum": 0 }),
        Kind::Decimal(least, most) => json!({
            "type": "number",
            "minimum": f64::from(least) / 1000.0,
            "maximum": f64::from(most) / 1000.0,
        }),
        Kind::Sizes(..) => {
            let size = unit_pattern(Size::units());
            let pattern = format!("^{size}$|^{size}\\s+[0-9]+\\s*(,{size}\\s+[0-9]+\\s*)+$");
            json!({ "type": "string", "pattern": pattern })
        }
        Kind::Time(..) => quantity(Time::units()),
        Kind::Rate => quantity(Rate::units()),
        Kind::Offered => quantity(Rate::units().chain(["op/s"])),
        Kind::Mix => {
            let words: Vec<&str> = OpKind::ALL.into_iter().map(OpKind::name).collect();
            let share = format!("\\s*({})\\s+[0-9]+\\s*", words.join("|"));
            json!({ "type": "string", "pattern": format!("^{share}(,{share})+$") })
        }
        Kind::Numbers => json!({
            "type": ["string", "integer"],
            "minimum": 0,
            "pattern": "^\\s*[0-9]+\\s*(-\\s*[0-9]+\\s*)?(,\\s*[0-9]+\\s*(-\\s*[0-9]+\\s*)?)*$",
        }),
        Kind::Paths => json!({
            "type": "array",
            "minItems": 1,
            "uniqueItems": true,
            "items": { "type": "string", "pattern": "^/" },
        }),
        Kind::Speeds => speeds(),
        Kind::Percent => json!({ "type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9])?\\s*%\\s*$" }),
        Kind::Requirements => json!({
            "type": "array",
            "minItems": 1,
            "items": { "type": "string", "pattern": "^[^.]+\\.[a-z0-9_]+\\s*(>=|<=).+$" },
        }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::StageName => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        Kind::Path => json!({ "type": "string", "pattern": "^/" }),
        Kind::Text | Kind::Hosts => json!({ "type": "string" }),
    };
    schema["description"] = json!(key.help);
    if let Some(default) = value::default(key) {
        schema["default"] = match default {
            Value::Count(count) => json!(count),
            Value::Integer(number) => json!(number),
            Value::Decimal(milli) => json!(f64::from(milli) / 1000.0),
            Value::Flag(flag) => json!(flag),
            Value::Sizes(_)
            | Value::Time(_)
            | Value::Rate(_)
            | Value::Offered(_)
            | Value::Mix(_)
            | Value::Numbers(_)
            | Value::Paths(_)
            | Value::Percent(_)
            | Value::Speeds(_)
            | Value::Requirements(_)
            | Value::Choice(_)
            | Value::Text(_) => json!(default.to_string()),
        };
    }
    schema
}

fn speeds() -> Json {
    let rate = format!("([^\\s,]+\\s+)?{}", unit_pattern(Rate::units()));
    json!({ "type": "string", "pattern": format!("^\\s*{rate}(,\\s*{rate})*$") })
}

fn quantity(units: impl Iterator<Item = &'static str>) -> Json {
    json!({ "type": "string", "pattern": format!("^{}$", unit_pattern(units)) })
}

fn unit_pattern(units: impl Iterator<Item = &'static str>) -> String {
    let units: Vec<&str> = units.collect();
    format!("\\s*[0-9]+(\\.[0-9]+)?\\s*({})\\s*", units.join("|"))
}
