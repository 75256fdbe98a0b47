//! Values of keys: from what TOML or the command line says to what they mean.

use std::fmt;

use iofleet_shared::{
    units::{Rate, Size, Time},
    work::{OpShare, SizeShare},
};

use super::{
    OfferedRate,
    keys::{Key, KeyId, Kind, nearest},
    require::Requirement,
    speeds::LinkSpeeds,
};

pub(super) use lists::milli;

mod lists;

/// A legal value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of `Kind::Count`.
    Count(u32),
    /// Of `Kind::Integer`.
    Integer(u64),
    /// Of `Kind::Decimal`, in 1/1000.
    Decimal(u32),
    /// Of `Kind::Sizes`: one, or a mix.
    Sizes(Vec<SizeShare>),
    /// Of `Kind::Time`.
    Time(Time),
    /// Of `Kind::Rate`.
    Rate(Rate),
    /// Of `Kind::Offered`.
    Offered(OfferedRate),
    /// Of `Kind::Flag`.
    Flag(bool),
    /// Of `Kind::Mix`.
    Mix(Vec<OpShare>),
    /// Of `Kind::Numbers`: sorted, each once.
    Numbers(Vec<u32>),
    /// Of `Kind::Paths`.
    Paths(Vec<String>),
    /// Of `Kind::Speeds`.
    Speeds(LinkSpeeds),
    /// Of `Kind::Percent`, in 1/1000.
    Percent(u32),
    /// Of `Kind::Requirements`.
    Requirements(Vec<Requirement>),
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
    /// A decimal number of TOML.
    Decimal(String),
    /// A list of texts of TOML.
    Texts(Vec<String>),
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
            Self::Count(_) | Self::Integer(_) | Self::Decimal(_) | Self::Flag(_) => {
                self.to_string()
            }
            Self::Paths(paths) => {
                let paths: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
                format!("[{}]", paths.join(", "))
            }
            Self::Requirements(demands) => {
                let demands: Vec<String> =
                    demands.iter().map(|demand| quoted(&demand.to_string())).collect();
                format!("[{}]", demands.join(", "))
            }
            Self::Sizes(_)
            | Self::Percent(_)
            | Self::Speeds(_)
            | Self::Time(_)
            | Self::Rate(_)
            | Self::Offered(_)
            | Self::Choice(_)
            | Self::Mix(_)
            | Self::Numbers(_)
            | Self::Text(_) => quoted(&self.to_string()),
        }
    }
}

/// As on the command line.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Decimal(value) => f.write_str(&milli(*value)),
            Self::Sizes(value) => f.write_str(&lists::show_sizes(value)),
            Self::Time(value) => value.fmt(f),
            Self::Rate(value) => value.fmt(f),
            Self::Offered(value) => f.write_str(&lists::show_offered(*value)),
            Self::Flag(value) => value.fmt(f),
            Self::Mix(value) => f.write_str(&lists::show_mix(value)),
            Self::Numbers(value) => f.write_str(&lists::show_numbers(value)),
            Self::Paths(value) => f.write_str(&value.join(",")),
            Self::Speeds(speeds) => speeds.fmt(f),
            Self::Percent(milli) => {
                let (whole, tenth) = (milli / 10, milli % 10);
                if tenth == 0 { write!(f, "{whole} %") } else { write!(f, "{whole}.{tenth} %") }
            }
            Self::Requirements(demands) => {
                let demands: Vec<String> = demands.iter().map(Requirement::to_string).collect();
                f.write_str(&demands.join(","))
            }
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
        Kind::Decimal(least, most) => {
            let text = decimal_text(key, raw)?;
            let milli = lists::decimal(&text)?.filter(|milli| (least..=most).contains(milli));
            Value::Decimal(milli.ok_or_else(|| format!("`{text}` is not {}", key.legal()))?)
        }
        Kind::Sizes(least, most) => Value::Sizes(sizes(key, raw, least, most)?),
        Kind::Time(least, most) => {
            let time: Time = unit_text(raw).parse().map_err(say)?;
            Value::Time(within(key, raw, time, least, most)?)
        }
        Kind::Rate => {
            let rate: Rate = unit_text(raw).parse().map_err(say)?;
            Value::Rate(within(key, raw, rate, Rate::from_bits_per_s(1), RATE_MAX)?)
        }
        Kind::Offered => {
            Value::Offered(lists::offered(&unit_text(raw))?.ok_or_else(|| outside(key, raw))?)
        }
        Kind::Mix => Value::Mix(lists::mix(&listed_text(key, raw)?)?),
        Kind::Numbers => {
            let numbers = lists::numbers(&listed_text(key, raw)?);
            Value::Numbers(numbers.ok_or_else(|| outside(key, raw))?)
        }
        Kind::Paths => Value::Paths(paths(key, raw)?),
        Kind::Speeds => Value::Speeds(LinkSpeeds::parse(&unit_text(raw))?),
        Kind::Percent => {
            let text = unit_text(raw);
            Value::Percent(percent(&text).ok_or_else(|| outside(key, raw))?)
        }
        Kind::Requirements => Value::Requirements(requirements(key, raw)?),
        Kind::Flag => match raw {
            Raw::Flag(flag) => Value::Flag(*flag),
            Raw::Words(words) if words == "true" => Value::Flag(true),
            Raw::Words(words) if words == "false" => Value::Flag(false),
            Raw::Text(text) if text == "true" || text == "false" => {
                return Err(format!("write {text} without quotes"));
            }
            Raw::Integer(_)
            | Raw::Text(_)
            | Raw::Words(_)
            | Raw::Decimal(_)
            | Raw::Texts(_)
            | Raw::Other(_) => return Err(outside(key, raw)),
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
        Raw::Decimal(_) => "a decimal number".to_owned(),
        Raw::Texts(_) => "a list".to_owned(),
        Raw::Integer(number) => format!("`{number}`"),
        Raw::Flag(flag) => format!("`{flag}`"),
        Raw::Text(text) | Raw::Words(text) => format!("`{text}`"),
        Raw::Other(kind) => format!("a {kind}"),
    }
}

fn outside(key: &Key, raw: &Raw) -> String {
    let hint = if matches!(raw, Raw::Words(words) if words.contains(',')) {
        format!("; a list of values belongs in sweep.{}", key.name)
    } else if matches!(raw, Raw::Texts(_) | Raw::Other("list")) {
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
        Raw::Flag(_) | Raw::Text(_) | Raw::Decimal(_) | Raw::Texts(_) | Raw::Other(_) => {
            Err(outside(key, raw))
        }
    }
}

fn decimal_text(key: &Key, raw: &Raw) -> Result<String, String> {
    match raw {
        Raw::Integer(number) => Ok(number.to_string()),
        Raw::Decimal(text) | Raw::Words(text) => Ok(text.clone()),
        Raw::Text(text) if text.trim().parse::<f64>().is_ok() => {
            Err(format!("write {} without quotes", text.trim()))
        }
        Raw::Flag(_) | Raw::Text(_) | Raw::Texts(_) | Raw::Other(_) => Err(outside(key, raw)),
    }
}

fn sizes(key: &Key, raw: &Raw, least: Size, most: Size) -> Result<Vec<SizeShare>, String> {
    if matches!(raw, Raw::Texts(_) | Raw::Other("list")) {
        return Err(outside(key, raw));
    }
    let sizes = lists::sizes(&unit_text(raw))?;
    for size in &sizes {
        within(key, raw, Size::from_bytes(size.bytes), least, most)?;
    }
    Ok(sizes)
}

/// Text that lists something.
fn listed_text(key: &Key, raw: &Raw) -> Result<String, String> {
    match raw {
        Raw::Text(text) | Raw::Words(text) => Ok(text.clone()),
        Raw::Integer(number) if key.kind == Kind::Numbers => Ok(number.to_string()),
        Raw::Integer(_) | Raw::Flag(_) | Raw::Decimal(_) | Raw::Texts(_) | Raw::Other(_) => {
            Err(outside(key, raw))
        }
    }
}

/// 1/1000 of what `10 %` or `2.5%` says.
fn percent(text: &str) -> Option<u32> {
    let number = text.trim().strip_suffix('%')?.trim_end();
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if tenth.len() != 1 || !digits(whole) || !digits(tenth) {
        return None;
    }
    let milli = whole.parse::<u32>().ok()?.checked_mul(10)? + tenth.parse::<u32>().ok()?;
    (milli <= 1000).then_some(milli)
}

fn requirements(key: &Key, raw: &Raw) -> Result<Vec<Requirement>, String> {
    let demands = texts(key, raw)?;
    demands.iter().map(|demand| Requirement::parse(demand)).collect()
}

/// A list of TOML, or by commas.
fn texts(key: &Key, raw: &Raw) -> Result<Vec<String>, String> {
    let texts: Vec<String> = match raw {
        Raw::Texts(paths) => paths.clone(),
        Raw::Text(text) | Raw::Words(text) => {
            text.split(',').map(|path| path.trim().to_owned()).collect()
        }
        Raw::Integer(_) | Raw::Flag(_) | Raw::Decimal(_) | Raw::Other(_) => {
            return Err(outside(key, raw));
        }
    };
    if texts.is_empty() {
        return Err("an empty list: name at least one".to_owned());
    }
    Ok(texts)
}

fn paths(key: &Key, raw: &Raw) -> Result<Vec<String>, String> {
    let paths = texts(key, raw)?;
    for (place, path) in paths.iter().enumerate() {
        if path.len() > TEXT_MAX || path.chars().any(char::is_control) {
            return Err("a path that is too long or holds a control character".to_owned());
        }
        if !path.starts_with('/') {
            return Err(format!("`{path}` is not an absolute path: it must begin with `/`"));
        }
        if paths[..place].contains(path) {
            return Err(format!("`{path}` stands twice"));
        }
    }
    Ok(paths)
}

/// A quantity with its unit; what is not text fails there, with a hint at the unit.
fn unit_text(raw: &Raw) -> String {
    match raw {
        Raw::Integer(number) => number.to_string(),
        Raw::Flag(flag) => flag.to_string(),
        Raw::Text(text) | Raw::Words(text) | Raw::Decimal(text) => text.clone(),
        Raw::Texts(_) => "a list".to_owned(),
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
