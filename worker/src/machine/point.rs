//! One point, from its plan to the acknowledgement of its report.

use iofleet_shared::{
    ids::{PeerId, PointId},
    lifecycle::{Phase, Trigger},
    limits::{FRAME_BYTES_MAX, TICKS_PER_FRAME},
    stats::{HostSample, NodeInterval, PointReport, ThreadEnd, Tick, Written, WrittenPart},
    wire::{Content, Delivery, Notice, Refusal, RefusalKind},
    work::{DatasetDir, Extent, OpKind, WorkerPlan},
};

use super::{COMMIT_AHEAD_NS, DELIVERIES_KEPT_MAX, Effect, Machine, Ticket, check};

/// Written ranges that one report may list: half a frame of them.
const RANGES_PER_REPORT_MAX: usize = FRAME_BYTES_MAX as usize / 2 / size_of::<Extent>();

/// Samples of the machine's counters that go in one frame.
const SAMPLES_PER_FRAME: usize = 1_024;

/// The point that a worker is at.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) id: PointId,
    /// Of its arming, and so of its crew.
    pub(super) ticket: Ticket,
    /// The plan, as long as an earlier arming has to return first.
    pub(super) queued: Option<Box<WorkerPlan>>,
    dir: DatasetDir,
    writes: bool,
    /// T0 on the worker's clock.
    pub(super) t0_ns: Option<u64>,
    /// It was told to stop.
    stopped: bool,
    next_number: u64,
    /// When its crew ended.
    pub(super) ended_ns: Option<u64>,
    /// What waits for the flush of the file system and the last sample.
    unsettled: Option<Unsettled>,
    /// Number of its last delivery.
    report_number: Option<u64>,
}

#[derive(Debug)]
struct Unsettled {
    ticket: Ticket,
    /// It waits for a flush, and not for the sample alone.
    flushes: bool,
    ticks: Vec<(OpKind, Vec<Tick>)>,
    report: Box<PointReport>,
}

impl Machine {
    pub(super) fn on_arm(&mut self, peer: PeerId, plan: Box<WorkerPlan>) {
        let id = plan.point;
        if self.phase != Phase::Claimed || self.inspection.is_some() {
            let text = if self.phase == Phase::Claimed {
                format!("point {id} can't be armed before the target's inspection has ended")
            } else {
                format!("point {id} can't be armed by a worker that is {}", self.phase)
            };
            return self.refuse(peer, RefusalKind::Phase, Some(id), text);
        }
        if let Err(flaw) = check::plan(&plan) {
            let text = format!("the plan of point {id} makes no sense: {flaw}");
            return self.refuse(peer, RefusalKind::Internal, Some(id), text);
        }
        self.must_go(Trigger::Arm);
        let ticket = self.ticket();
        let mut point = Point {
            id,
            ticket,
            queued: None,
            dir: plan.dir.clone(),
            writes: plan.writes(),
            t0_ns: None,
            stopped: false,
            next_number: 0,
            ended_ns: None,
            unsettled: None,
            report_number: None,
        };
        if self.dismissed.is_some() {
            point.queued = Some(plan);
        } else {
            self.effects.push(Effect::Arm { ticket, plan });
        }
        self.point = Some(point);
    }

    pub(super) fn on_armed(&mut self, ticket: Ticket, result: Result<u64, Refusal>) {
        if self.dismissed == Some(ticket) {
            return self.on_dismissed(ticket, result.is_ok());
        }
        let waits = self.phase == Phase::Arming;
        match (self.point.as_ref().filter(|point| waits && point.ticket == ticket), result) {
            (Some(point), Ok(took_ns)) => {
                let notice = Notice::Armed { point: point.id, took_ns };
                self.must_go(Trigger::Armed);
                self.notify(notice);
            }
            (Some(point), Err(refusal)) => {
                let refusal = Refusal { point: Some(point.id), ..refusal };
                self.end_point(Trigger::Failed);
                self.notify(Notice::Refused(refusal));
            }
            (None, Ok(_)) if !self.has_crew(ticket) => {
                self.effects.push(Effect::DropCrew { ticket });
            }
            (None, Ok(_) | Err(_)) => {}
        }
    }

    /// An arming that nobody waited for any more has returned.
    fn on_dismissed(&mut self, ticket: Ticket, with_crew: bool) {
        self.dismissed = None;
        if with_crew {
            self.effects.push(Effect::DropCrew { ticket });
        }
        self.on_left(ticket);
        if let Some(point) = &mut self.point
            && let Some(plan) = point.queued.take()
        {
            self.effects.push(Effect::Arm { ticket: point.ticket, plan });
        }
    }

    /// `t0_ns` is none where T0 would lie before the worker's boot.
    pub(super) fn on_start(&mut self, peer: PeerId, id: PointId, t0_ns: Option<u64>, now_ns: u64) {
        if self.phase != Phase::Armed || !self.is_at(id) {
            return self.refuse_point(peer, id, "started");
        }
        let ahead_ns = t0_ns.and_then(|t0| t0.checked_sub(now_ns)).filter(|ahead| *ahead > 0);
        let (Some(t0_worker_ns), Some(ahead_ns)) = (t0_ns, ahead_ns) else {
            let late_ns = now_ns.saturating_sub(t0_ns.unwrap_or(0));
            let late_ms = late_ns / 1_000_000;
            return self.not_started(
                Trigger::Stop,
                format!("T0 was past by {late_ms} ms when it became known here"),
            );
        };
        self.must_go(Trigger::Start);
        if let Some(point) = &mut self.point {
            point.t0_ns = t0_ns;
            let ticket = point.ticket;
            self.effects.push(Effect::SetStart { ticket, t0_worker_ns });
        }
        self.notify(Notice::Ready { point: id, t0_worker_ns, ahead_ns });
    }

    pub(super) fn on_commit(&mut self, peer: PeerId, id: PointId, now_ns: u64) {
        let done = matches!(self.phase, Phase::Waiting | Phase::Running | Phase::Draining);
        if self.has_left(id) || (done && self.is_at(id)) {
            return;
        }
        if self.phase != Phase::Ready || !self.is_at(id) {
            return self.refuse_point(peer, id, "committed");
        }
        let Some(&Point { ticket, t0_ns: Some(t0_ns), .. }) = self.point.as_ref() else {
            return;
        };
        if t0_ns < now_ns.saturating_add(COMMIT_AHEAD_NS) {
            let why = "the commit came less than 1 ms before T0".to_owned();
            return self.not_started(Trigger::Stop, why);
        }
        self.must_go(Trigger::Commit);
        self.effects.push(Effect::CommitCrew { ticket });
    }

    /// The daemon was held up for so long that its crew has gone without the commit.
    pub(super) fn on_commit_late(&mut self, ticket: Ticket) {
        if self.phase == Phase::Waiting && self.has_crew(ticket) {
            let why = "T0 was past when the commit reached the threads".to_owned();
            self.not_started(Trigger::Stop, why);
        }
    }

    /// T0 is now or was a moment ago.
    pub(super) fn on_t0(&mut self) {
        match self.phase {
            Phase::Ready => {
                self.not_started(Trigger::T0, "no commit came before T0".to_owned());
            }
            Phase::Waiting => {
                self.must_go(Trigger::T0);
                if let Some(&Point { ticket, stopped, .. }) = self.point.as_ref() {
                    self.effects.push(Effect::Began { ticket });
                    if stopped {
                        self.effects.push(Effect::StopCrew { ticket });
                    }
                }
            }
            Phase::Idle
            | Phase::Claimed
            | Phase::Arming
            | Phase::Armed
            | Phase::Running
            | Phase::Draining
            | Phase::Cleaning => {}
        }
    }

    pub(super) fn on_stop(&mut self, peer: PeerId, id: PointId, now_ns: u64) {
        if self.has_left(id) {
            return;
        }
        if !self.is_at(id) {
            return self.refuse_point(peer, id, "stopped");
        }
        let Some(point) = &mut self.point else {
            return;
        };
        match self.phase {
            Phase::Waiting if point.t0_ns.unwrap_or(0) < now_ns.saturating_add(COMMIT_AHEAD_NS) => {
                // Threads may be at their first operation by the time they are told: let T0 come,
                // so that what they did is in a report.
                point.stopped = true;
            }
            Phase::Running if point.stopped => {}
            Phase::Running => {
                point.stopped = true;
                self.effects.push(Effect::StopCrew { ticket: point.ticket });
            }
            Phase::Draining => {
                // A flush may take minutes; who stops does not want to wait for it, but for the last
                // sample of the machine's counters.
                let dir = point.dir.clone();
                let ticket = self.ticket();
                let unsettled = self.point.as_mut().and_then(|point| point.unsettled.as_mut());
                if let Some(unsettled) = unsettled.filter(|unsettled| unsettled.flushes) {
                    (unsettled.ticket, unsettled.flushes) = (ticket, false);
                    self.effects.push(Effect::Settle { ticket, dir, flush: false });
                }
            }
            Phase::Arming | Phase::Armed | Phase::Ready | Phase::Waiting => {
                self.not_started(Trigger::Stop, "stopped by the coordinator".to_owned());
            }
            Phase::Idle | Phase::Claimed | Phase::Cleaning => {}
        }
    }

    pub(super) fn on_interval(&mut self, ticket: Ticket, interval: NodeInterval) {
        if self.phase != Phase::Running || !self.has_crew(ticket) {
            return;
        }
        self.deliver(Content::Interval(interval));
        let full = self.outbox.len() > DELIVERIES_KEPT_MAX;
        if let Some(point) = self.point.as_mut().filter(|point| full && !point.stopped) {
            point.stopped = true;
            self.effects.push(Effect::StopCrew { ticket });
        }
    }

    pub(super) fn on_ended(
        &mut self,
        ticket: Ticket,
        ticks: Vec<(OpKind, Vec<Tick>)>,
        report: Box<PointReport>,
        now_ns: u64,
    ) {
        if self.phase == Phase::Cleaning {
            self.effects.push(Effect::DropCrew { ticket });
            return self.on_left(ticket);
        }
        if !self.has_crew(ticket) {
            return;
        }
        match self.phase {
            Phase::Running => {
                self.must_go(Trigger::Ended);
                self.effects.push(Effect::DropCrew { ticket });
                self.drain(ticks, report, now_ns);
            }
            Phase::Armed | Phase::Ready | Phase::Waiting => {
                self.not_started(Trigger::Stop, "its threads ended before T0".to_owned());
            }
            Phase::Idle | Phase::Claimed | Phase::Arming | Phase::Draining | Phase::Cleaning => {}
        }
    }

    pub(super) fn on_settled(
        &mut self,
        ticket: Ticket,
        took_ns: Option<u64>,
        samples: Vec<HostSample>,
    ) {
        let unsettled = self
            .point
            .as_mut()
            .and_then(|point| point.unsettled.take_if(|unsettled| unsettled.ticket == ticket));
        if let Some(Unsettled { ticks, report, .. }) = unsettled {
            self.deliver_end(&ticks, *report, took_ns, &samples);
        }
    }

    pub(super) fn on_acknowledge(&mut self, peer: PeerId, id: PointId, through: u64) {
        if self.has_left(id) {
            return;
        }
        if !self.is_at(id) {
            return self.refuse_point(peer, id, "acknowledged");
        }
        let report_number = self.point.as_ref().and_then(|point| point.report_number);
        if report_number.is_some_and(|number| number <= through) {
            self.outbox.clear();
            self.end_point(Trigger::Delivered);
        }
    }

    fn drain(&mut self, ticks: Vec<(OpKind, Vec<Tick>)>, report: Box<PointReport>, now_ns: u64) {
        let stuck = report.threads.iter().any(|thread| thread.end == ThreadEnd::Stuck);
        let ticket = self.ticket();
        let Some(point) = &mut self.point else {
            return;
        };
        point.ended_ns = Some(now_ns);
        // Where a thread is stuck, the flush would be too.
        let flush = point.writes && !stuck;
        let dir = point.dir.clone();
        point.unsettled = Some(Unsettled { ticket, flushes: flush, ticks, report });
        self.effects.push(Effect::Settle { ticket, dir, flush });
    }

    fn deliver_end(
        &mut self,
        ticks: &[(OpKind, Vec<Tick>)],
        report: PointReport,
        took_ns: Option<u64>,
        samples: &[HostSample],
    ) {
        for (op, ticks) in ticks {
            let mut first = 0;
            for chunk in ticks.chunks(TICKS_PER_FRAME) {
                self.deliver(Content::Ticks { op: *op, first, ticks: chunk.to_vec() });
                first += chunk.len() as u64;
            }
        }
        for chunk in samples.chunks(SAMPLES_PER_FRAME) {
            self.deliver(Content::Samples(chunk.to_vec()));
        }
        let samples = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        let mut report = PointReport { syncfs_ns: took_ns, samples, ..report };
        make_fit(&mut report);
        let number = self.deliver(Content::Report(report));
        if let Some(point) = &mut self.point {
            point.report_number = number;
        }
    }

    fn deliver(&mut self, content: Content) -> Option<u64> {
        let point = self.point.as_mut()?;
        let number = point.next_number;
        point.next_number += 1;
        self.outbox.push_back(Delivery { point: point.id, number, content });
        Some(number)
    }

    /// Dismisses the crew, wherever it is before T0.
    fn not_started(&mut self, trigger: Trigger, why: String) {
        let phase = self.phase;
        let Some(point) = self.end_point(trigger) else {
            return;
        };
        if phase != Phase::Arming {
            self.effects.push(Effect::DropCrew { ticket: point.ticket });
        } else if point.queued.is_none() {
            self.dismissed = Some(point.ticket);
        }
        self.notify(Notice::NotStarted { point: point.id, why });
    }

    fn end_point(&mut self, trigger: Trigger) -> Option<Point> {
        self.must_go(trigger);
        let point = self.point.take()?;
        self.last = Some(point.id);
        Some(point)
    }

    fn refuse_point(&mut self, peer: PeerId, id: PointId, what: &str) {
        let text = match &self.point {
            Some(point) if point.id != id => format!(
                "point {id} can't be {what}: the worker is {} with point {}",
                self.phase, point.id
            ),
            Some(_) | None => {
                format!("point {id} can't be {what} by a worker that is {}", self.phase)
            }
        };
        self.refuse(peer, RefusalKind::Phase, Some(id), text);
    }

    fn is_at(&self, id: PointId) -> bool {
        self.point.as_ref().is_some_and(|point| point.id == id)
    }

    /// A command about a point that has just ended crossed its end on the wire.
    fn has_left(&self, id: PointId) -> bool {
        self.last == Some(id) && !self.is_at(id)
    }

    fn has_crew(&self, ticket: Ticket) -> bool {
        self.point.as_ref().is_some_and(|point| point.ticket == ticket)
    }
}

/// A report must fit into a frame whatever its threads have written: where all written ranges
/// together would not, they count as too scattered to list.
fn make_fit(report: &mut PointReport) {
    let ranges = |part: &WrittenPart| match &part.written {
        Written::Ranges(ranges) => ranges.len(),
        Written::Nothing | Written::All | Written::Scattered => 0,
    };
    let all: usize = report.threads.iter().flat_map(|thread| &thread.written).map(ranges).sum();
    if all <= RANGES_PER_REPORT_MAX {
        return;
    }
    let parts = report.threads.iter_mut().flat_map(|thread| &mut thread.written);
    for part in parts.filter(|part| ranges(part) > 0) {
        part.written = Written::Scattered;
    }
}
