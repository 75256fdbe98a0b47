//! What verdicts compare with.

/// What numbers are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Reads: wire over expected wire below which a cache answered.
    pub served: f64,
    /// Buffered writes: wire over expected wire, up to the last end, below which a cache took them.
    pub absorbed: f64,
    /// A node's rate per thread over the median below which it is a straggler.
    pub straggler: f64,
    /// Wire share of the achievable rate from which the network bounds.
    pub network: f64,
    /// The same on the plateau of a ramp, where the storage side does more.
    pub plateau: f64,
    /// Storage side over limit from which it does more.
    pub storage: f64,
    /// Share of the greatest rate of a ramp from which a point is on its plateau.
    pub on_plateau: f64,
    /// Busy share of the busiest core from which the client bounds.
    pub core: f64,
    /// Time that threads were ready and did not run, over their time, from which it does.
    pub run_delay: f64,
    /// Busy share of the threads below which it does.
    pub busy: f64,
    /// Gain by half the threads again below which the servers bound.
    pub gain: f64,
    /// Growth of latency with it from which they do.
    pub latency: f64,
    /// Share of the clients' links below which they do.
    pub links: f64,
    /// Gain by twice the threads from which nothing is saturated.
    pub doubling: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            served: 0.5,
            absorbed: 0.9,
            straggler: 0.5,
            network: 0.90,
            plateau: 0.80,
            storage: 1.2,
            on_plateau: 0.95,
            core: 0.95,
            run_delay: 0.20,
            busy: 0.95,
            gain: 0.05,
            latency: 1.5,
            links: 0.8,
            doubling: 0.10,
        }
    }
}

impl Thresholds {
    /// Their names, as in a scenario.
    const NAMES: [&str; 14] = [
        "served",
        "absorbed",
        "straggler",
        "network",
        "plateau",
        "storage",
        "on-plateau",
        "core",
        "run-delay",
        "busy",
        "gain",
        "latency",
        "links",
        "doubling",
    ];

    /// The usual ones, but for those that a text such as `network 0.85, core 0.9` has.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for part in text.split(',').map(str::trim) {
            let form = "write `NAME VALUE` by commas, as in `network 0.85, core 0.9`";
            let (name, value) =
                part.split_once(' ').ok_or_else(|| format!("`{part}` has no value: {form}"))?;
            let value: f64 = value
                .trim()
                .parse()
                .ok()
                .filter(|value: &f64| value.is_finite() && *value > 0.0)
                .ok_or_else(|| format!("`{value}` is no number above 0: {form}"))?;
            let place = Self::NAMES.iter().position(|known| *known == name);
            let place = place.ok_or_else(|| {
                format!("there is no threshold `{name}`, but {}", Self::NAMES.join(", "))
            })?;
            *all.places()[place] = value;
        }
        Ok(all)
    }

    /// In the order of their names.
    fn places(&mut self) -> [&mut f64; 14] {
        let Self {
            served,
            absorbed,
            straggler,
            network,
            plateau,
            storage,
            on_plateau,
            core,
            run_delay,
            busy,
            gain,
            latency,
            links,
            doubling,
        } = self;
        [
            served, absorbed, straggler, network, plateau, storage, on_plateau, core, run_delay,
            busy, gain, latency, links, doubling,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of one changes that one, and what does not exist is told with what does.
    #[test]
    fn each_is_set_by_its_name() {
        let set = Thresholds::parse("network 0.5, run-delay 0.3").unwrap();
        let expected = Thresholds { network: 0.5, run_delay: 0.3, ..Thresholds::default() };
        assert_eq!(set, expected);
        for (text, why) in [
            ("network", "has no value"),
            ("network x", "no number above 0"),
            ("network 0", "no number above 0"),
            ("speed 1", "no threshold `speed`, but served, absorbed"),
        ] {
            assert!(Thresholds::parse(text).unwrap_err().contains(why), "{text}");
        }
        // Each name sets a place of its own.
        for (place, name) in Thresholds::NAMES.iter().enumerate() {
            let mut set = Thresholds::parse(&format!("{name} 0.123")).unwrap();
            assert_eq!(*set.places()[place], 0.123);
            *set.places()[place] = *Thresholds::default().places()[place];
            assert_eq!(set, Thresholds::default(), "{name}");
        }
    }
}
