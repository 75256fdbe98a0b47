//! What each machine's counters said between two samples. Pure.

use iofleet_shared::{
    facts::NetworkFacts,
    stats::{CpuCounters, HostSample},
};

use super::{signed_seconds, to_f64};
use crate::{
    figures::HostWire,
    record::{CpuShares, NodeSample},
};

/// From T0 to the last sample, each pair of neighbours one entry.
pub(super) fn between(samples: &[HostSample], facts: Option<&NetworkFacts>) -> Vec<NodeSample> {
    let links = facts.map_or(0, |facts| facts.links.len());
    let wire = HostWire::new(samples, 0..links);
    let pairs = samples.windows(2).filter(|pair| pair[1].at_ns > pair[0].at_ns.max(0));
    pairs
        .map(|pair| {
            let [before, after] = pair else { return NodeSample::default() };
            let begin = before.at_ns.max(0);
            let moved = wire.between(begin, after.at_ns).filter(|_| links > 0);
            let moved = moved.map(|moved| moved.per(after.at_ns - begin));
            NodeSample {
                from_s: signed_seconds(begin),
                to_s: signed_seconds(after.at_ns),
                tx_bytes_per_s: moved.map(|moved| moved.tx),
                rx_bytes_per_s: moved.map(|moved| moved.rx),
                cpu: before.cpu.zip(after.cpu).and_then(|(before, after)| shares(before, after)),
                busiest_core: after.busiest_core_milli.map(|milli| f64::from(milli) / 1000.0),
                run_delay_ns: before
                    .run_delay_ns
                    .zip(after.run_delay_ns)
                    .and_then(|(before, after)| after.checked_sub(before)),
            }
        })
        .collect()
}

/// Shares of all CPUs' time; none where none has passed. The kernel's own sums may go back by a tick.
fn shares(before: CpuCounters, after: CpuCounters) -> Option<CpuShares> {
    let part = |of: fn(&CpuCounters) -> u64| to_f64(of(&after).saturating_sub(of(&before)));
    let (user, system) = (part(|cpu| cpu.user_ns), part(|cpu| cpu.system_ns));
    let (softirq, iowait) = (part(|cpu| cpu.softirq_ns), part(|cpu| cpu.iowait_ns));
    let (idle, steal) = (part(|cpu| cpu.idle_ns), part(|cpu| cpu.steal_ns));
    let all = user + system + softirq + iowait + idle + steal;
    (all > 0.0).then(|| CpuShares {
        user: user / all,
        system: system / all,
        softirq: softirq / all,
        iowait: iowait / all,
        steal: steal / all,
    })
}

#[cfg(test)]
mod tests {
    use iofleet_shared::{
        facts::{LinkFacts, LinkKind, LinkRule},
        stats::LinkCounters,
    };

    use super::*;

    const S: i64 = 1_000_000_000;

    fn facts() -> NetworkFacts {
        let link = LinkFacts {
            name: "eth0".to_owned(),
            kind: LinkKind::Ethernet,
            bits_per_s: None,
            speed_source: String::new(),
            mtu: None,
            driver: String::new(),
        };
        let (rule, reason) = (LinkRule::Physical, String::new());
        NetworkFacts { rule, reason, links: vec![link], others: Vec::new() }
    }

    fn sample(at_ns: i64, tx_bytes: u64, user_ns: u64, idle_ns: u64, delay: u64) -> HostSample {
        HostSample {
            at_ns,
            links: vec![Some(LinkCounters { rx_bytes: 0, tx_bytes })],
            cpu: Some(CpuCounters { user_ns, idle_ns, ..CpuCounters::default() }),
            busiest_core_milli: Some(700),
            run_delay_ns: Some(delay),
        }
    }

    /// 100 bytes in 2 s, a quarter of all CPUs' time in programs; what lies before T0 is in none.
    #[test]
    fn each_pair_is_an_entry_by_hand() {
        let samples = [
            sample(-2 * S, 0, 0, 0, 0),
            sample(-S, 5, 1, 1, 0),
            sample(0, 10, 10, 100, 7),
            sample(2 * S, 110, 60, 250, 9),
        ];
        let [only] = &between(&samples, Some(&facts()))[..] else { panic!("one pair after T0") };
        assert_eq!((only.from_s, only.to_s), (0.0, 2.0));
        assert_eq!((only.tx_bytes_per_s, only.rx_bytes_per_s), (Some(50.0), Some(0.0)));
        assert_eq!((only.busiest_core, only.run_delay_ns), (Some(0.7), Some(2)));
        let cpu = only.cpu.unwrap();
        assert!((cpu.user - 0.25).abs() < 1e-12 && cpu.system == 0.0);
        let blind = between(&samples, None);
        assert_eq!(blind[0].tx_bytes_per_s, None);
    }
}
