//! Numbers of bytes.

use std::{fmt, str::FromStr};

use super::{Kind, Unit, UnitError, pad};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

impl Size {
    /// From a count of bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// As a count of bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// Legal units, in the order in which people are told.
    pub fn units() -> impl Iterator<Item = &'static str> {
        KIND.units.iter().map(|unit| unit.name)
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        KIND.parse(text).map(Self)
    }
}

/// The shortest exact form; it parses back to the same size.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pad(f, &KIND.shortest(self.0, KIND.units))
    }
}

static KIND: Kind = Kind {
    what: "size",
    example: "4 KiB",
    base: "bytes",
    units: &[
        unit("B", 1, "bytes", &["byte", "bytes"]),
        unit("kB", 1_000, "1000", &["k", "kb", "kbyte", "kbytes"]),
        unit("MB", 1_000_000, "1000²", &["m", "mb", "mbyte", "mbytes"]),
        unit("GB", 1_000_000_000, "1000³", &["g", "gb", "gbyte", "gbytes"]),
        unit("TB", 1_000_000_000_000, "1000⁴", &["t", "tb", "tbyte", "tbytes"]),
        unit("KiB", 1 << 10, "1024", &["k", "kb", "ki", "kib"]),
        unit("MiB", 1 << 20, "1024²", &["m", "mb", "mi", "mib"]),
        unit("GiB", 1 << 30, "1024³", &["g", "gb", "gi", "gib"]),
        unit("TiB", 1 << 40, "1024⁴", &["t", "tb", "ti", "tib"]),
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
