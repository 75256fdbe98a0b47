//! An offered load shared out over workers: the sum is exact, and even arrivals interleave.

use iofleet_shared::{
    ids::NodeIndex,
    limits::ARRIVALS_PER_1000_S_MAX,
    work::{Arrivals, Load, SizeShare},
};

use super::{PointPlan, split};
use crate::scenario::{Offer, OfferedRate, RatePer};

impl PointPlan {
    /// Operations per second that are offered to the fleet, and whether their gaps are drawn; none
    /// where each operation follows the one before.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn offered(&self) -> Option<(f64, bool)> {
        let mut all = None;
        for node in &self.active {
            if let Some(Load::Open(arrivals)) = self.load_of(*node) {
                let (sum, _) = all.unwrap_or((0.0, arrivals.exponential));
                all = Some((sum + arrivals.per_1000_s as f64 / 1_000.0, arrivals.exponential));
            }
        }
        all
    }

    /// The load of a node's worker; none when a node that has threads would have nothing, or the
    /// rate can't be counted.
    pub(super) fn load_of(&self, node: NodeIndex) -> Option<Load> {
        let params = &self.spec.params;
        let (rate, per, exponential) = match params.offer {
            Offer::Closed { think_ns, burst } => return Some(Load::Closed { think_ns, burst }),
            Offer::Open { rate, per, exponential } => (rate, per, exponential),
        };
        let each = per_1000_s(rate, &params.blocks)?;
        let nodes = u32::try_from(self.active.len()).unwrap_or(u32::MAX).max(1);
        // A node that stands by asks for the last one's.
        let place = self.place(node).unwrap_or(nodes - 1);
        let rate_of = |place: u32| match per {
            RatePer::Fleet => Some(split::share(each, nodes, place).1),
            RatePer::Node => Some(each),
            RatePer::Thread => {
                let node = self.active.get(place as usize).copied().unwrap_or(node);
                each.checked_mul(u64::from(self.threads_on(node)))
            }
        };
        let own = rate_of(place).filter(|rate| (1..=ARRIVALS_PER_1000_S_MAX).contains(rate))?;
        let rates: Option<Vec<u64>> = (0..nodes).map(rate_of).collect();
        let rates = rates?;
        let all: u128 = rates.iter().copied().map(u128::from).sum();
        let before: u128 = rates.iter().take(place as usize).copied().map(u128::from).sum();
        // The fleet's arrivals are spaced evenly where all nodes have the same rate: node k's lie
        // k/N of a gap later than the first node's.
        let phase_ns = if exponential || all == 0 {
            0
        } else {
            u64::try_from(THOUSAND_S_NS * before / (u128::from(own) * all)).ok()?
        };
        let seed = split::seed(params.seed ^ ARRIVALS, self.spec.index, node.0);
        Some(Load::Open(Arrivals { per_1000_s: own, exponential, phase_ns, seed }))
    }
}

/// Operations in 1000 s; bytes are those of the mean block.
fn per_1000_s(rate: OfferedRate, blocks: &[SizeShare]) -> Option<u64> {
    match rate {
        OfferedRate::Operations(per_1000_s) => Some(per_1000_s),
        OfferedRate::Bytes(rate) => {
            let weights: u128 = blocks.iter().map(|block| u128::from(block.weight)).sum();
            let bytes: u128 =
                blocks.iter().map(|block| u128::from(block.weight) * u128::from(block.bytes)).sum();
            // Bits in a second are 125 bytes in 1000 s.
            let payload = u128::from(rate.bits_per_s()) * 125;
            let rate = payload.checked_mul(weights)?.checked_div(bytes)?;
            u64::try_from(rate).ok().filter(|rate| *rate > 0)
        }
    }
}

const THOUSAND_S_NS: u128 = 1_000_000_000_000;
/// Keeps the seeds of arrivals apart from those of threads.
const ARRIVALS: u64 = 0x6172_7269_7661_6C73;
