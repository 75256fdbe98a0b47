//! One worker's part of a point that is under way: how far it is, and what it has delivered.

use std::collections::BTreeMap;

use iofleet_shared::{
    clock::ClockMap,
    stats::{HostSample, NodeInterval, PointReport, Tick},
    wire::{Content, Delivery},
    work::{OpKind, WorkerPlan},
};

/// One worker's part of it.
#[derive(Debug)]
pub(super) struct NodeRun {
    pub(super) plan: WorkerPlan,
    pub(super) answer: Answer,
    pub(super) map: ClockMap,
    pub(super) next_number: u64,
    pub(super) intervals: Vec<NodeInterval>,
    /// Number of the interval that is due, by kind of operation.
    due: BTreeMap<OpKind, u32>,
    pub(super) ticks: BTreeMap<OpKind, Vec<Tick>>,
    pub(super) samples: Vec<HostSample>,
    pub(super) report: Option<PointReport>,
    pub(super) lost: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    None,
    Armed,
    Ready,
    NotStarted,
}

impl NodeRun {
    pub(super) fn new(plan: WorkerPlan) -> Self {
        Self {
            plan,
            answer: Answer::None,
            map: ClockMap::IDENTITY,
            next_number: 0,
            intervals: Vec::new(),
            due: BTreeMap::new(),
            ticks: BTreeMap::new(),
            samples: Vec::new(),
            report: None,
            lost: None,
        }
    }

    pub(super) fn is_out(&self) -> bool {
        self.report.is_some() || self.lost.is_some()
    }

    /// Takes a delivery in its turn; tells what is wrong with one out of turn.
    pub(super) fn take(&mut self, delivery: Delivery) -> Result<(), String> {
        if delivery.number < self.next_number {
            return Ok(());
        }
        if delivery.number > self.next_number {
            return Err(format!(
                "delivery {} came where {} was due",
                delivery.number, self.next_number
            ));
        }
        self.next_number += 1;
        match delivery.content {
            Content::Interval(interval) => self.take_interval(interval),
            Content::Ticks { op, first, ticks } => self.take_ticks(op, first, ticks),
            Content::Samples(samples) => {
                self.samples.extend(samples);
                Ok(())
            }
            Content::Report(report) => self.take_report(report),
        }
    }

    fn take_interval(&mut self, interval: NodeInterval) -> Result<(), String> {
        let Some(op) = interval.op else {
            return Err(format!("interval {} is of no kind of operation", interval.k));
        };
        let due = self.due.entry(op).or_default();
        if interval.k != *due {
            let name = op.name();
            return Err(format!("interval {} of `{name}` came where {due} was due", interval.k));
        }
        *due += 1;
        self.intervals.push(interval);
        Ok(())
    }

    fn take_ticks(&mut self, op: OpKind, first: u64, ticks: Vec<Tick>) -> Result<(), String> {
        let series = self.ticks.entry(op).or_default();
        if first != series.len() as u64 {
            let (due, name) = (series.len(), op.name());
            return Err(format!("tick {first} of `{name}` came where {due} was due"));
        }
        series.extend(ticks);
        Ok(())
    }

    fn take_report(&mut self, report: PointReport) -> Result<(), String> {
        let ticks: u64 = self.ticks.values().map(|series| series.len() as u64).sum();
        if report.intervals as usize != self.intervals.len()
            || report.ticks != ticks
            || report.samples as usize != self.samples.len()
        {
            return Err("its report speaks of more than it delivered".to_owned());
        }
        self.report = Some(report);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use iofleet_shared::{ids::PointId, work::Placement};

    use super::*;

    const POINT: PointId = PointId { index: 0, attempt: 0 };

    /// What a worker delivers is taken whatever its plan says.
    fn run() -> NodeRun {
        use iofleet_shared::work::{
            Amount, Content as Bytes, Data, DatasetDir, EngineKind, EngineSpec, FileOptions, Fsync,
            Load, Pattern,
        };
        let text = String::new;
        NodeRun::new(WorkerPlan {
            point: POINT,
            dir: DatasetDir { path: text(), name: text(), campaign: text() },
            remove: Vec::new(),
            engine: EngineSpec {
                kind: EngineKind::Null,
                depth: 1,
                sqpoll: false,
                iopoll: false,
                high_priority: false,
            },
            pattern: Pattern::Sequential,
            blocks: Vec::new(),
            options: FileOptions::default(),
            fsync: Fsync::None,
            file_bytes: 0,
            cold: false,
            create: false,
            data: Data {
                content: Bytes::Zero,
                refresh: false,
                verify: false,
                generation: 1,
                generation_known: false,
                dataset: 0,
            },
            load: Load::Closed { think_ns: 0, burst: 1 },
            placement: Placement::default(),
            amount: Amount::Share,
            ramp_ns: 0,
            interval_ns: 1,
            stuck_after_ns: 1,
            threads: Vec::new(),
        })
    }

    fn take(run: &mut NodeRun, content: Content) -> Result<(), String> {
        let number = run.next_number;
        run.take(Delivery { point: POINT, number, content })
    }

    fn interval(k: u32, op: Option<OpKind>) -> Content {
        Content::Interval(NodeInterval::empty(k, op))
    }

    fn ticks(op: OpKind, first: u64, count: usize) -> Content {
        Content::Ticks { op, first, ticks: vec![Tick::default(); count] }
    }

    fn report(intervals: u32, ticks: u64) -> Content {
        Content::Report(PointReport {
            point: POINT,
            t0_worker_ns: 0,
            threads: Vec::new(),
            errors: Vec::new(),
            intervals,
            ticks,
            samples: 0,
            syncfs_ns: None,
            cpu_share: None,
            stamp_residual_ns: 0,
            first_end: None,
            offered: None,
            remarks: Vec::new(),
            cold: None,
            holes: None,
            stopped: None,
            sums: None,
        })
    }

    #[test]
    fn each_kind_has_its_own_order_and_the_report_counts_all() {
        use OpKind::{Read, Write};
        let mut run = run();
        for (k, op) in [(0, Write), (0, Read), (1, Write)] {
            take(&mut run, interval(k, Some(op))).unwrap();
        }
        take(&mut run, ticks(Write, 0, 3)).unwrap();
        take(&mut run, ticks(Read, 0, 5)).unwrap();
        take(&mut run, ticks(Write, 3, 1)).unwrap();
        // A delivery that comes again changes nothing.
        run.take(Delivery { point: POINT, number: 2, content: interval(1, Some(Write)) }).unwrap();
        assert_eq!(run.intervals.len(), 3);
        take(&mut run, report(3, 9)).unwrap();
        assert!(run.report.is_some());
    }

    #[test]
    fn gaps_within_a_kind_and_too_few_deliveries_are_told() {
        let fails = |content| take(&mut run(), content).unwrap_err();
        let due = "interval 1 of `read` came where 0 was due";
        assert_eq!(fails(interval(1, Some(OpKind::Read))), due);
        assert_eq!(fails(interval(0, None)), "interval 0 is of no kind of operation");
        let due = "tick 4 of `stat` came where 0 was due";
        assert_eq!(fails(ticks(OpKind::Stat, 4, 1)), due);
        let more = "its report speaks of more than it delivered";
        assert_eq!((fails(report(1, 0)).as_str(), fails(report(0, 1)).as_str()), (more, more));
        let gap = Delivery { point: POINT, number: 1, content: interval(0, Some(OpKind::Read)) };
        assert_eq!(run().take(gap), Err("delivery 1 came where 0 was due".to_owned()));
    }
}
