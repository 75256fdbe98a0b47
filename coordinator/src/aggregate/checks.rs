//! What an offered load came to, how long files were open, and what verification found. Pure.

use iofleet_shared::{
    stats::{self, FileTimes},
    work::OpKind,
};

use super::{Point, to_f64};
use crate::{
    record::{Damage, Files, Offered, Verification},
    scenario::Verify,
};

impl Point<'_> {
    /// Null without an offered load.
    pub(super) fn offered(&self) -> Option<Offered> {
        let (per_s, _) = self.plan.offered()?;
        let of_workers: Vec<stats::Offered> =
            self.reports.iter().filter_map(|(_, _, report)| report.offered).collect();
        let sum = |part: fn(&stats::Offered) -> u64| of_workers.iter().map(part).sum::<u64>();
        Some(Offered {
            per_s,
            achieved_per_s: self.figures.iops.common.or(self.figures.iops.span),
            arrived: sum(|offered| offered.arrived),
            not_issued: sum(|offered| offered.not_issued),
            // The workers' greatest backlogs need not have been at one time.
            backlog_max: of_workers.iter().map(|offered| offered.backlog_max).max().unwrap_or(0),
        })
    }

    /// Null where threads opened and closed no files.
    pub(super) fn files(&self) -> Option<Files> {
        let all = self.threads().fold(FileTimes::default(), |sum, thread| FileTimes {
            count: sum.count + thread.files.count,
            sum_ns: sum.sum_ns.saturating_add(thread.files.sum_ns),
            max_ns: sum.max_ns.max(thread.files.max_ns),
        });
        let FileTimes { count, sum_ns, max_ns } = all;
        (count > 0).then(|| Files { count, mean_ns: to_f64(sum_ns) / to_f64(count), max_ns })
    }

    /// Null where it was not asked for. What was found is told even then.
    pub(super) fn verification(&self) -> Option<Verification> {
        let damages: Vec<Damage> = self.damages().collect();
        let mut counts = self.threads().flat_map(|thread| &thread.counts);
        let read =
            counts.any(|counts| counts.op == OpKind::Read && counts.ops + counts.ramp_ops > 0);
        let asked = self.plan.spec.params.verify != Verify::Off || !damages.is_empty();
        asked.then_some(Verification { checked: read, damages })
    }

    /// Each node's damages of one kind are one entry, with the first thread's first place.
    fn damages(&self) -> impl Iterator<Item = Damage> {
        self.reports.iter().flat_map(|(index, _, report)| {
            let mut of_node: Vec<Damage> = Vec::new();
            for found in report.threads.iter().flat_map(|thread| &thread.damages) {
                let kind = found.kind.name();
                match of_node.iter_mut().find(|damage| damage.kind == kind) {
                    Some(damage) => damage.units += found.units,
                    None => of_node.push(Damage {
                        node: self.name(*index),
                        kind: kind.to_owned(),
                        units: found.units,
                        file: found.file.clone(),
                        offset: found.offset,
                        found: found.found.clone(),
                    }),
                }
            }
            of_node
        })
    }
}
