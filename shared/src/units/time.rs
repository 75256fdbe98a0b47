//! Lengths of time.

use std::{fmt, str::FromStr};

use super::{Kind, Unit, UnitError, pad};

/// A length of time in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// From nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// In nanoseconds.
    #[must_use]
    pub fn ns(self) -> u64 {
        self.0
    }

    /// Legal units, in the order in which people are told.
    pub fn units() -> impl Iterator<Item = &'static str> {
        KIND.units.iter().map(|unit| unit.name)
    }
}

impl FromStr for Time {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        KIND.parse(text).map(Self)
    }
}

/// The shortest exact form; it parses back to the same time.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return pad(f, "0 s");
        }
        pad(f, &KIND.shortest(self.0, KIND.units))
    }
}

static KIND: Kind = Kind {
    what: "time",
    example: "10 s",
    base: "nanoseconds",
    units: &[
        unit("ns", 1, "nanoseconds", &["nsec", "nanosecond", "nanoseconds"]),
        unit("us", 1_000, "microseconds", &["µs", "μs", "usec", "u", "microseconds"]),
        unit("ms", 1_000_000, "milliseconds", &["m", "msec", "millisecond", "milliseconds"]),
        unit("s", 1_000_000_000, "seconds", &["sec", "secs", "second", "seconds"]),
        unit("min", 60_000_000_000, "minutes", &["m", "mins", "minute", "minutes"]),
        unit("h", 3_600_000_000_000, "hours", &["hr", "hrs", "hour", "hours"]),
    ],
};

const fn unit(
    name: &'static str,
    factor: u64,
    meaning: &'static str,
    aliases: &'static [&'static str],
) -> Unit {
    Unit { name, factor, meaning, aliases }
}
