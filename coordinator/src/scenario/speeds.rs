//! Speeds of the clients' links: one for all, and others for some nodes.

use std::fmt;

use iofleet_shared::units::Rate;

/// As it has to be written.
const FORM: &str = "a rate as in `100 Gbit/s`, with others for some nodes as in \
                    `100 Gbit/s, client03 25 Gbit/s`";

/// What the scenario says of the links' speeds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkSpeeds {
    /// Of each node that is not named; none: the kernel's.
    pub all: Option<Rate>,
    /// By name of the node.
    pub by_node: Vec<(String, Rate)>,
}

impl LinkSpeeds {
    /// One for all, in bits per second.
    #[must_use]
    pub fn of_all(bits_per_s: u64) -> Self {
        Self { all: Some(Rate::from_bits_per_s(bits_per_s)), by_node: Vec::new() }
    }

    /// Of a node, bytes per second in each direction; none where nothing is said of it.
    #[must_use]
    pub fn of(&self, node: &str) -> Option<f64> {
        let named = self.by_node.iter().find(|(name, _)| name == node).map(|(_, rate)| *rate);
        named.or(self.all).map(Rate::bytes_per_s)
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.by_node.is_empty()
    }

    /// Reads `100 Gbit/s, client03 25 Gbit/s`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}`: {why}; write {FORM}");
        let mut speeds = Self::default();
        for part in text.split(',').map(str::trim) {
            if part.starts_with(|first: char| first.is_ascii_digit())
                && let Ok(rate) = part.parse::<Rate>()
            {
                if speeds.all.replace(above_0(rate).ok_or_else(|| wrong("a rate of 0"))?).is_some()
                {
                    return Err(wrong("two rates for all nodes"));
                }
                continue;
            }
            let (node, rate) = part.split_once(' ').ok_or_else(|| wrong("no rate"))?;
            let rate: Rate = rate.trim().parse().map_err(|_| match part.parse::<Rate>() {
                Err(error) if part.starts_with(|c: char| c.is_ascii_digit()) => error.to_string(),
                _ => wrong(&format!("`{rate}` is no rate")),
            })?;
            if speeds.by_node.iter().any(|(known, _)| known == node) {
                return Err(wrong(&format!("{node} stands twice")));
            }
            let rate = above_0(rate).ok_or_else(|| wrong("a rate of 0"))?;
            speeds.by_node.push((node.to_owned(), rate));
        }
        Ok(speeds)
    }
}

fn above_0(rate: Rate) -> Option<Rate> {
    (rate.bits_per_s() > 0).then_some(rate)
}

impl fmt::Display for LinkSpeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.iter().map(Rate::to_string);
        let nodes = self.by_node.iter().map(|(node, rate)| format!("{node} {rate}"));
        f.write_str(&all.chain(nodes).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_for_all_and_others_for_some() {
        let speeds = LinkSpeeds::parse("200 Mbit/s, c4 50 Mbit/s").unwrap();
        assert_eq!((speeds.of("c1"), speeds.of("c4")), (Some(25e6), Some(6.25e6)));
        assert_eq!(LinkSpeeds::parse(&speeds.to_string()), Ok(speeds));
        let some = LinkSpeeds::parse("c4 50 Mbit/s").unwrap();
        assert_eq!((some.of("c1"), some.of("c4")), (None, Some(6.25e6)));
        assert_eq!(LinkSpeeds::parse("100Gbit/s"), Ok(LinkSpeeds::of_all(100_000_000_000)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("1 Gbit/s, 2 Gbit/s", "two rates for all"),
            ("c1 1 Gbit/s, c1 2 Gbit/s", "c1 stands twice"),
            ("c1", "no rate"),
            ("c1 fast", "`fast` is no rate"),
            ("0 bit/s", "a rate of 0"),
            ("", "no rate"),
        ] {
            let error = LinkSpeeds::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(LinkSpeeds::parse("400 Gb/s").unwrap_err().contains("Gbit/s"));
    }
}
