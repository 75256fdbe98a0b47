//! What a result has to reach: `read.common >= 45 GB/s`.

use std::fmt;

use iofleet_shared::units::{Rate, Time};

/// As it has to be written.
const FORM: &str = "`STAGE.FIGURE >= VALUE`, as in `read.common >= 45 GB/s`, `read.iops >= 100000` or \
                    `read.p99 <= 5 ms`";

/// A demand on the points of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Name of the stage.
    pub stage: String,
    /// Which figure.
    pub figure: Figure,
    /// What it has to be at least or, of a latency, at most.
    pub bound: Bound,
}

/// A figure that can be demanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Bandwidth in the common window.
    Common,
    /// Bandwidth over the span.
    Span,
    /// Sum of the threads' own bandwidths.
    ThreadSum,
    /// Bandwidth up to the first end.
    FirstDone,
    /// Bandwidth of the slowest thread's time.
    LastDone,
    /// Operations per second of the headline.
    Iops,
    /// Median service time.
    P50,
    /// Its 99th percentile.
    P99,
}

impl Figure {
    const ALL: [(&'static str, Self); 8] = [
        ("common", Self::Common),
        ("span", Self::Span),
        ("thread_sum", Self::ThreadSum),
        ("first_done", Self::FirstDone),
        ("last_done", Self::LastDone),
        ("iops", Self::Iops),
        ("p50", Self::P50),
        ("p99", Self::P99),
    ];

    /// As in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, figure)| *figure == self);
        found.map_or("", |(name, _)| name)
    }
}

/// What is demanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// At least so many bytes per second.
    Bandwidth(Rate),
    /// At least so many operations per second.
    Ops(u64),
    /// At most so long.
    Latency(Time),
}

impl Requirement {
    /// Reads a demand.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}`: {why}; write {FORM}");
        let (left, least, right) = match (text.split_once(">="), text.split_once("<=")) {
            (Some((left, right)), None) => (left, true, right),
            (None, Some((left, right))) => (left, false, right),
            _ => return Err(wrong("there is no `>=` or `<=`")),
        };
        let (stage, figure) =
            left.trim().rsplit_once('.').ok_or_else(|| wrong("no stage is named"))?;
        let known = Figure::ALL.iter().find(|(name, _)| *name == figure);
        let (_, figure) = *known.ok_or_else(|| {
            let names: Vec<&str> = Figure::ALL.iter().map(|(name, _)| *name).collect();
            wrong(&format!("there is no figure `{figure}`, but {}", names.join(", ")))
        })?;
        let right = right.trim();
        let bound = match figure {
            Figure::P50 | Figure::P99 if least => return Err(wrong("a latency has to be `<=`")),
            Figure::P50 | Figure::P99 => {
                Bound::Latency(right.parse::<Time>().map_err(|error| wrong(&error.to_string()))?)
            }
            _ if !least => return Err(wrong("a rate has to be `>=`")),
            Figure::Iops => {
                Bound::Ops(right.parse().map_err(|_| wrong("operations are a whole number"))?)
            }
            Figure::Common
            | Figure::Span
            | Figure::ThreadSum
            | Figure::FirstDone
            | Figure::LastDone => {
                Bound::Bandwidth(right.parse::<Rate>().map_err(|error| wrong(&error.to_string()))?)
            }
        };
        Ok(Self { stage: stage.to_owned(), figure, bound })
    }
}

/// As in a scenario.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, figure, bound } = self;
        let name = figure.name();
        match bound {
            Bound::Bandwidth(rate) => write!(f, "{stage}.{name} >= {rate}"),
            Bound::Ops(ops) => write!(f, "{stage}.{name} >= {ops}"),
            Bound::Latency(time) => write!(f, "{stage}.{name} <= {time}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_come_back_as_they_are_meant() {
        for text in ["read.common >= 45 GB/s", "a-b_c.iops >= 100000", "read.p99 <= 5 ms"] {
            let parsed = Requirement::parse(text).unwrap();
            assert_eq!(Requirement::parse(&parsed.to_string()), Ok(parsed), "{text}");
        }
        let tight = Requirement::parse("read.span>=1 Gbit/s").unwrap();
        assert_eq!((tight.stage.as_str(), tight.figure), ("read", Figure::Span));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("read.common > 45 GB/s", "no `>=`"),
            ("common >= 45 GB/s", "no stage"),
            ("read.mean >= 45 GB/s", "no figure `mean`, but common, span"),
            ("read.common >= 45", "45"),
            ("read.common <= 45 GB/s", "a rate has to be `>=`"),
            ("read.p99 >= 5 ms", "a latency has to be `<=`"),
            ("read.iops >= 1e5", "a whole number"),
            ("", "no `>=`"),
        ] {
            let error = Requirement::parse(text).unwrap_err();
            assert!(error.contains(why) && error.contains("write `STAGE"), "{text}: {error}");
        }
    }
}
