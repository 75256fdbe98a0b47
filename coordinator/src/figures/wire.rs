//! Bytes on the wire between two instants, from the counters that a network host sampled.
//!
//! Counters are read at their own times and not at the edges of a window, so that what a window holds
//! is interpolated: within the time between two samples bytes are taken to flow evenly. Where a
//! counter is missing, or went backward (a driver was loaded again, a port was reset), there is no
//! figure.

use std::ops::Range;

use iofleet_shared::stats::{HostSample, LinkCounters};

/// Shortest time before T0 over which an idle rate is taken.
const IDLE_NS_MIN: i64 = 20_000_000;

/// Largest packet of Ethernet where nobody says otherwise.
pub const MTU_USUAL: u32 = 1_500;

/// Share of an Ethernet link's rate that is payload of TCP in packets of this size: of each, 20 bytes
/// are IP, 20 TCP and 12 its time stamps; 14 more go before it on the link.
#[must_use]
pub fn framing(mtu: u32) -> f64 {
    let mtu = f64::from(mtu.max(MTU_MIN));
    (mtu - 52.0) / (mtu + 14.0)
}

/// No packet of IP may be shorter.
const MTU_MIN: u32 = 576;

/// Bytes by direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WireBytes {
    /// Sent.
    pub tx: f64,
    /// Received.
    pub rx: f64,
}

impl WireBytes {
    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { tx: self.tx + other.tx, rx: self.rx + other.rx }
    }

    /// Less what flows in so many ns at a rate per second, and not below 0.
    #[must_use]
    pub fn less(self, rate: Self, ns: i64) -> Self {
        let seconds = seconds(ns);
        Self {
            tx: (self.tx - rate.tx * seconds).max(0.0),
            rx: (self.rx - rate.rx * seconds).max(0.0),
        }
    }

    /// Bytes per second.
    #[must_use]
    pub fn per(self, ns: i64) -> Self {
        let seconds = seconds(ns);
        Self { tx: self.tx / seconds, rx: self.rx / seconds }
    }
}

/// The samples of one network host, as far as they are of some of its links.
#[derive(Debug, Clone)]
pub struct HostWire<'a> {
    samples: &'a [HostSample],
    links: Range<usize>,
}

impl<'a> HostWire<'a> {
    /// Samples in order of time; `links` are those of them that count.
    #[must_use]
    pub fn new(samples: &'a [HostSample], links: Range<usize>) -> Self {
        Self { samples, links }
    }

    /// Bytes between two instants, ns after T0. None outside of what was sampled, and where a
    /// counter is missing or went backward.
    #[must_use]
    pub fn between(&self, from_ns: i64, to_ns: i64) -> Option<WireBytes> {
        self.inside(from_ns, to_ns)?;
        let mut sum = WireBytes::default();
        for pair in self.samples.windows(2) {
            let [before, after] = pair else { continue };
            let begin = from_ns.max(before.at_ns);
            let end = to_ns.min(after.at_ns);
            if begin < end {
                let share = ratio(end - begin, after.at_ns - before.at_ns);
                let moved = self.moved(before, after)?;
                sum = sum.plus(WireBytes { tx: moved.tx * share, rx: moved.rx * share });
            }
        }
        Some(sum)
    }

    /// When it was sampled last.
    #[must_use]
    pub fn last_ns(&self) -> Option<i64> {
        self.samples.last().map(|sample| sample.at_ns)
    }

    /// Bytes per second while the point was armed and T0 had not come. None where that was too
    /// short to tell.
    #[must_use]
    pub fn idle(&self) -> Option<WireBytes> {
        let first = self.samples.first()?.at_ns;
        let last = self.samples.iter().rev().find(|sample| sample.at_ns <= 0)?.at_ns;
        let length = last - first;
        if length < IDLE_NS_MIN {
            return None;
        }
        Some(self.between(first, last)?.per(length))
    }

    fn inside(&self, from_ns: i64, to_ns: i64) -> Option<()> {
        let (first, last) = self.samples.first().zip(self.samples.last())?;
        (first.at_ns <= from_ns && from_ns <= to_ns && to_ns <= last.at_ns).then_some(())
    }

    fn moved(&self, before: &HostSample, after: &HostSample) -> Option<WireBytes> {
        let mut sum = WireBytes::default();
        for link in self.links.clone() {
            let (before, after) = (counters(before, link)?, counters(after, link)?);
            sum.tx += to_f64(after.tx_bytes.checked_sub(before.tx_bytes)?);
            sum.rx += to_f64(after.rx_bytes.checked_sub(before.rx_bytes)?);
        }
        Some(sum)
    }
}

fn counters(sample: &HostSample, link: usize) -> Option<LinkCounters> {
    sample.links.get(link).copied().flatten()
}

fn seconds(ns: i64) -> f64 {
    ratio(ns, 1_000_000_000)
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of a time are enough")]
fn ratio(part: i64, whole: i64) -> f64 {
    part as f64 / whole as f64
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of a count are enough")]
fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: i64 = 1_000_000_000;

    /// One link whose counters stand at these values: (at in ns, sent, received).
    fn samples(of: &[(i64, u64, u64)]) -> Vec<HostSample> {
        let link = |tx_bytes, rx_bytes| Some(LinkCounters { rx_bytes, tx_bytes });
        of.iter()
            .map(|&(at_ns, tx, rx)| HostSample {
                at_ns,
                links: vec![link(tx, rx)],
                cpu: None,
                busiest_core_milli: None,
                run_delay_ns: None,
            })
            .collect()
    }

    #[test]
    fn framing_by_hand() {
        assert!((framing(1_500) - 1_448.0 / 1_514.0).abs() < 1e-12);
        assert!((framing(9_000) - 8_948.0 / 9_014.0).abs() < 1e-12);
        assert!((framing(0) - framing(576)).abs() < 1e-12);
    }

    /// 1,000 bytes in the first second, 3,000 in the second: from 0.5 to 1.5 s half of each.
    #[test]
    fn a_window_takes_its_share_of_each_pair_of_samples() {
        let samples = samples(&[(0, 500, 7), (S, 1_500, 7), (2 * S, 4_500, 107)]);
        let wire = HostWire::new(&samples, 0..1);
        assert_eq!(wire.between(S / 2, S + S / 2), Some(WireBytes { tx: 2_000.0, rx: 50.0 }));
        assert_eq!(wire.between(0, 2 * S), Some(WireBytes { tx: 4_000.0, rx: 100.0 }));
        assert_eq!(wire.between(S, S), Some(WireBytes::default()));
    }

    #[test]
    fn outside_of_the_samples_nothing_is_known() {
        let samples = samples(&[(0, 0, 0), (S, 1, 1)]);
        let wire = HostWire::new(&samples, 0..1);
        assert_eq!(wire.between(-1, S), None);
        assert_eq!(wire.between(0, S + 1), None);
        assert_eq!(HostWire::new(&[], 0..1).between(0, 0), None);
    }

    /// The port was reset between 1 and 2 s: what holds that has no figure, what lies before has.
    #[test]
    fn counters_that_go_backward_give_none() {
        let samples = samples(&[(0, 100, 0), (S, 200, 0), (2 * S, 5, 0), (3 * S, 9, 0)]);
        let wire = HostWire::new(&samples, 0..1);
        assert_eq!(wire.between(0, S), Some(WireBytes { tx: 100.0, rx: 0.0 }));
        assert_eq!(wire.between(S / 2, 2 * S), None);
        assert_eq!(wire.between(2 * S, 3 * S), Some(WireBytes { tx: 4.0, rx: 0.0 }));
    }

    #[test]
    fn a_link_that_could_not_be_read_gives_none() {
        let mut samples = samples(&[(0, 0, 0), (S, 1, 1)]);
        samples[1].links[0] = None;
        assert_eq!(HostWire::new(&samples, 0..1).between(0, S), None);
        assert_eq!(HostWire::new(&samples, 1..2).between(0, S), None);
    }

    /// 50 bytes in the half second before T0 are 100 a second; those after T0 don't count.
    #[test]
    fn the_idle_rate_is_of_the_time_before_t0() {
        let armed = samples(&[(-S / 2, 0, 0), (-1_000, 50, 25), (S, 9_000, 0)]);
        let idle = HostWire::new(&armed, 0..1).idle().unwrap();
        assert!((idle.tx - 100.0).abs() < 0.001 && (idle.rx - 50.0).abs() < 0.001, "{idle:?}");
        let short = samples(&[(-1_000_000, 0, 0), (-1, 50, 0), (S, 60, 0)]);
        assert_eq!(HostWire::new(&short, 0..1).idle(), None);
    }

    #[test]
    fn what_is_idle_is_taken_off_and_no_more() {
        let rate = WireBytes { tx: 10.0, rx: 10.0 };
        let left = WireBytes { tx: 100.0, rx: 5.0 }.less(rate, 2 * S);
        assert_eq!(left, WireBytes { tx: 80.0, rx: 0.0 });
    }

    proptest! {
        /// A time that is cut in two holds in its parts what it holds as a whole.
        #[test]
        fn parts_add_up(
            steps in prop::collection::vec((1_i64..5 * S, 0_u64..1 << 40, 0_u64..1 << 40), 2..12),
            cuts in prop::array::uniform3(0.0_f64..1.0),
        ) {
            let mut all = Vec::new();
            let (mut at, mut tx, mut rx) = (-S, 0, 0);
            for (ns, sent, received) in steps {
                at += ns;
                tx += sent;
                rx += received;
                all.push((at, tx, rx));
            }
            let samples = samples(&all);
            let wire = HostWire::new(&samples, 0..1);
            let (first, last) = (all[0].0, all[all.len() - 1].0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                reason = "any instant will do"
            )]
            let mut cuts = cuts.map(|cut| first + ((last - first) as f64 * cut) as i64);
            cuts.sort_unstable();
            let [a, b, c] = cuts;
            let whole = wire.between(a, c).unwrap();
            let parts = wire.between(a, b).unwrap().plus(wire.between(b, c).unwrap());
            prop_assert!((whole.tx - parts.tx).abs() <= 1e-6 * whole.tx.max(1.0));
            prop_assert!((whole.rx - parts.rx).abs() <= 1e-6 * whole.rx.max(1.0));
        }
    }
}
