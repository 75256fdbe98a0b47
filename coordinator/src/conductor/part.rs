//! One worker's part of a point that is under way: how far it is, and what it has delivered.

use iofleet_shared::{
    clock::ClockMap,
    stats::{NodeInterval, PointReport, Tick},
    wire::{Content, Delivery},
    work::WorkerPlan,
};

/// One worker's part of it.
#[derive(Debug)]
pub(super) struct NodeRun {
    pub(super) plan: WorkerPlan,
    pub(super) answer: Answer,
    pub(super) map: ClockMap,
    pub(super) next_number: u64,
    pub(super) intervals: Vec<NodeInterval>,
    pub(super) ticks: Vec<Tick>,
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
            ticks: Vec::new(),
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
            Content::Interval(interval) => {
                let due = u32::try_from(self.intervals.len()).unwrap_or(u32::MAX);
                if interval.k != due {
                    return Err(format!("interval {} came where {due} was due", interval.k));
                }
                self.intervals.push(interval);
            }
            Content::Ticks { first, ticks } => {
                if first != self.ticks.len() as u64 {
                    return Err(format!("tick {first} came where {} was due", self.ticks.len()));
                }
                self.ticks.extend(ticks);
            }
            Content::Report(report) => {
                let complete = report.intervals as usize == self.intervals.len()
                    && report.ticks == self.ticks.len() as u64;
                if !complete {
                    return Err("its report speaks of more than it delivered".to_owned());
                }
                self.report = Some(report);
            }
        }
        Ok(())
    }
}
