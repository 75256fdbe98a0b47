//! Values of keys: from what TOML or the command line says to what they mean.

use std::fmt;

use iofleet_shared::units::{Rate, Size, Time};

use super::keys::{Key, KeyId, Kind, nearest};

/// A legal value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of `Kind::Count`.
    Count(u32),
    /// Of `Kind::Integer`.
    Integer(u64),
    /// Of `Kind::Size`.
    Size(Size),
    /// Of `Kind::Time`.
    Time(Time),
    /// Of `Kind::Rate`.
    Rate(Rate),
    /// Of `Kind::Flag`.
    Flag(bool),
    /// Of `Kind::Choice`.
    Choice(&'static str),
    /// Of all other kinds.
    Text(String),
}

/// A value as written, before anything is known of its key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Raw {
    Integer(i64),
    Flag(bool),
    Text(String),
    /// Words of the command line: what they are follows from the key.
    Words(String),
    /// Anything else that TOML knows, by its name.
    Other(&'static str),
}

impl Value {
    /// As in a TOML file.
    #[must_use]
    pub fn toml(&self) -> String {
        match self {
            Self::Count(_) | Self::Integer(_) | Self::Flag(_) => self.to_string(),
            Self::Size(_) | Self::Time(_) | Self::Rate(_) | Self::Choice(_) | Self::Text(_) => {
                quoted(&self.to_string())
            }
        }
    }
}

/// As on the command line.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Size(value) => value.fmt(f),
            Self::Time(value) => value.fmt(f),
            Self::Rate(value) => value.fmt(f),
            Self::Flag(value) => value.fmt(f),
            Self::Choice(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// The meaning of a raw value for a key, or what is wrong with it and what would be right.
pub(super) fn read(key: &Key, raw: &Raw) -> Result<Value, String> {
    let value = match key.kind {
        Kind::Count(least, most) => {
            let number = whole(key, raw)?;
            let count = u32::try_from(number).ok().filter(|count| (least..=most).contains(count));
            Value::Count(count.ok_or_else(|| outside(key, raw))?)
        }
        Kind::Integer => {
            Value::Integer(u64::try_from(whole(key, raw)?).map_err(|_| outside(key, raw))?)
        }
        Kind::Size(least, most) => {
            let size: Size = unit_text(raw).parse().map_err(say)?;
            Value::Size(within(key, raw, size, least, most)?)
        }
        Kind::Time(least, most) => {
            let time: Time = unit_text(raw).parse().map_err(say)?;
            Value::Time(within(key, raw, time, least, most)?)
        }
        Kind::Rate => {
            let rate: Rate = unit_text(raw).parse().map_err(say)?;
            Value::Rate(within(key, raw, rate, Rate::from_bits_per_s(1), RATE_MAX)?)
        }
        Kind::Flag => match raw {
            Raw::Flag(flag) => Value::Flag(*flag),
            Raw::Words(words) if words == "true" => Value::Flag(true),
            Raw::Words(words) if words == "false" => Value::Flag(false),
            Raw::Text(text) if text == "true" || text == "false" => {
                return Err(format!("write {text} without quotes"));
            }
            Raw::Integer(_) | Raw::Text(_) | Raw::Words(_) | Raw::Other(_) => {
                return Err(outside(key, raw));
            }
        },
        Kind::Choice(words) => choice(key, words, raw)?,
        Kind::StageName | Kind::Text | Kind::Path | Kind::Hosts => Value::Text(text(key, raw)?),
    };
    Ok(value)
}

/// What the default in the table means.
pub(super) fn default(key: &Key) -> Option<Value> {
    let text = key.default?;
    read(key, &Raw::Words(text.to_owned())).ok()
}

/// What is longer than this is no name, no path and no host list.
const TEXT_MAX: usize = 16 << 10;
/// Above it, arithmetic on rates would no longer be exact.
const RATE_MAX: Rate = Rate::from_bits_per_s(1 << 53);

fn say(error: impl fmt::Display) -> String {
    error.to_string()
}

fn shown(raw: &Raw) -> String {
    match raw {
        Raw::Integer(number) => format!("`{number}`"),
        Raw::Flag(flag) => format!("`{flag}`"),
        Raw::Text(text) | Raw::Words(text) => format!("`{text}`"),
        Raw::Other(kind) => format!("a {kind}"),
    }
}

fn outside(key: &Key, raw: &Raw) -> String {
    let hint = if matches!(raw, Raw::Words(words) if words.contains(',')) {
        format!("; a list of values belongs in sweep.{}", key.name)
    } else if *raw == Raw::Other("list") {
        format!("; a list of values belongs in [sweep], {} = …", key.name)
    } else {
        String::new()
    };
    format!("{} is not {}{hint}", shown(raw), key.legal())
}

fn whole(key: &Key, raw: &Raw) -> Result<i64, String> {
    match raw {
        Raw::Integer(number) => Ok(*number),
        Raw::Words(words) => words.trim().parse().map_err(|_| outside(key, raw)),
        Raw::Text(text) if text.trim().parse::<i64>().is_ok() => {
            Err(format!("write {} without quotes", text.trim()))
        }
        Raw::Flag(_) | Raw::Text(_) | Raw::Other(_) => Err(outside(key, raw)),
    }
}

/// A quantity with its unit; what is not text fails there, with a hint at the unit.
fn unit_text(raw: &Raw) -> String {
    match raw {
        Raw::Integer(number) => number.to_string(),
        Raw::Flag(flag) => flag.to_string(),
        Raw::Text(text) | Raw::Words(text) => text.clone(),
        Raw::Other(kind) => format!("a {kind}"),
    }
}

fn within<T: PartialOrd>(key: &Key, raw: &Raw, value: T, least: T, most: T) -> Result<T, String> {
    if value < least || value > most {
        return Err(outside(key, raw));
    }
    Ok(value)
}

fn choice(key: &Key, words: &[&'static str], raw: &Raw) -> Result<Value, String> {
    let (Raw::Text(text) | Raw::Words(text)) = raw else {
        return Err(format!("{} is not one of {}", shown(raw), words.join(", ")));
    };
    if let Some(word) = words.iter().find(|word| *word == text) {
        return Ok(Value::Choice(word));
    }
    if text.contains(',') {
        return Err(outside(key, raw));
    }
    let hint = match nearest(text, words.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    };
    let one_of = if words.len() == 1 { "not built; there is only" } else { "not one of" };
    Err(format!("`{text}` is {one_of} {}{hint}", words.join(", ")))
}

fn text(key: &Key, raw: &Raw) -> Result<String, String> {
    let (Raw::Text(text) | Raw::Words(text)) = raw else {
        return Err(format!("{} is not {}", shown(raw), key.legal()));
    };
    let lines = key.id == KeyId::Notes;
    if text.chars().any(|c| c.is_control() && !(lines && (c == '\n' || c == '\t'))) {
        return Err("it holds a control character".to_owned());
    }
    if text.len() > TEXT_MAX {
        return Err(format!("longer than {TEXT_MAX} bytes"));
    }
    if key.kind == Kind::StageName {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text.is_empty() || text.len() > 64 || !text.chars().all(legal) {
            return Err(outside(key, raw));
        }
    }
    if key.kind == Kind::Path {
        path(text)?;
    }
    if key.id == KeyId::Name && text.trim().is_empty() {
        return Err("an empty name".to_owned());
    }
    Ok(text.clone())
}

fn path(text: &str) -> Result<(), String> {
    if !text.starts_with('/') {
        return Err(format!("`{text}` is not an absolute path: it must begin with `/`"));
    }
    let rest = text.replace("{node}", "").replace("{role}", "");
    if rest.contains(['{', '}']) {
        return Err(format!("`{text}`: only `{{node}}` and `{{role}}` expand"));
    }
    Ok(())
}

/// A TOML string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::keys::KEYS;
    use super::*;

    #[test]
    fn every_default_of_the_table_is_legal() {
        for key in KEYS {
            assert_eq!(default(key).is_some(), key.default.is_some(), "{}", key.name);
        }
    }

    proptest! {
        #[test]
        fn quoted_text_is_toml(text in "\\PC{0,40}|[\\n\\t\"\\\\a]{0,10}") {
            let parsed: toml::Table = format!("text = {}", quoted(&text)).parse().unwrap();
            prop_assert_eq!(parsed["text"].as_str(), Some(text.as_str()));
        }
    }
}
