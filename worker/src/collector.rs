//! The thread that gathers what the I/O threads of a crew count.
//!
//! It looks at their queues from time to time and nobody waits for it, except for the end: the last
//! thread to end wakes it. Intervals that every thread has passed go out at once; the rest and the
//! report when all threads have ended, or those that have not are given up.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    thread,
    time::Duration,
};

use iofleet_shared::{
    stats::{ErrorCount, FirstEnd, NodeInterval, PointReport, ThreadReport},
    work::WorkerPlan,
};
use rustix::{process::setpriority_process, thread::gettid};
use tokio::sync::mpsc::{Sender, error::TrySendError};

use crate::{
    crew::CrewEvent,
    engine::Call,
    io_thread::{Account, Control, Issued, Taken, Timeline, Watch, Whereabouts},
    recorder::{FullLatency, Inlet, Rest, Totals, Units},
    stamp::StampClock,
};

pub use series::{Series, sums_of};
pub use watchdog::Watchdog;

mod series;
mod watchdog;

/// Longest time between two looks.
const PERIOD_MAX: Duration = Duration::from_millis(50);
/// Priority of the collector: behind a crowd of I/O threads it would come too late.
const PRIORITY: i32 = -10;

/// What the collector has of one I/O thread.
#[derive(Debug)]
pub struct Member {
    /// Where the thread is, and its account in the end.
    pub watch: Watch<Account>,
    /// Its queues.
    pub inlet: Inlet,
    /// How long its file took to open.
    pub open_ns: u64,
}

/// The collector of one crew.
#[derive(Debug)]
pub struct Collector {
    plan: Arc<WorkerPlan>,
    control: Arc<Control>,
    clock: StampClock,
    events: Sender<CrewEvent>,
    members: Vec<Gathered>,
    series: Series,
    /// Intervals that the channel had no room for yet.
    outbox: VecDeque<NodeInterval>,
    last_look_ns: u64,
}

#[derive(Debug)]
struct Gathered {
    member: Member,
    watchdog: Watchdog,
    /// The account of a thread that ended or was given up, with the call it was given up in.
    account: Option<(Taken<Account>, Option<Issued>)>,
}

impl Collector {
    /// A collector of `members`, in the order of the plan's threads.
    #[must_use]
    pub fn new(
        plan: Arc<WorkerPlan>,
        control: Arc<Control>,
        clock: StampClock,
        members: Vec<Member>,
        events: Sender<CrewEvent>,
    ) -> Self {
        let series = Series::new(members.len());
        let gathered = |member| Gathered { member, watchdog: Watchdog::default(), account: None };
        let members = members.into_iter().map(gathered).collect();
        let outbox = VecDeque::new();
        Self { plan, control, clock, events, members, series, outbox, last_look_ns: 0 }
    }

    /// Gathers to the end. Returns at once when the crew is dismissed.
    pub fn run(mut self) {
        // Without the right to it things go on as they are.
        let _ = setpriority_process(Some(gettid()), PRIORITY);
        let t0 = loop {
            if self.control.is_dismissed() {
                return;
            }
            if let Some(t0) = self.control.t0() {
                break Some(t0);
            }
            if self.control.is_stopped() {
                break None;
            }
            thread::park();
        };
        let timeline = Timeline::new(self.clock, t0.unwrap_or(0));
        let period = Duration::from_nanos(self.plan.interval_ns / 2).min(PERIOD_MAX);
        self.last_look_ns = self.clock.to_ns(self.clock.now());
        while !self.look(&timeline) {
            thread::park_timeout(period);
        }
        self.finish(t0.unwrap_or(0));
    }

    /// Takes what there is. Says whether that was all.
    fn look(&mut self, timeline: &Timeline) -> bool {
        let now = self.clock.now();
        let now_ns = self.clock.to_ns(now);
        let since_last = now_ns.saturating_sub(std::mem::replace(&mut self.last_look_ns, now_ns));
        let mut passed = u32::MAX;
        for (at, gathered) in self.members.iter_mut().enumerate() {
            passed = passed.min(gathered.look(at, &mut self.series, since_last));
        }
        self.give_up(timeline, now);
        let is_end = self.members.iter().all(|gathered| gathered.account.is_some());
        if !is_end && passed != u32::MAX {
            while let Some(interval) = self.series.next_before(passed) {
                self.outbox.push_back(interval);
            }
        }
        self.send_some();
        is_end
    }

    /// Gives up the threads that never return, once nobody else is at work.
    fn give_up(&mut self, timeline: &Timeline, now: u64) {
        let stuck_after = self.plan.stuck_after_ns;
        let waits_for_stuck = self
            .members
            .iter()
            .all(|gathered| gathered.account.is_some() || gathered.watchdog.is_stuck(stuck_after));
        if !waits_for_stuck {
            return;
        }
        for (at, gathered) in self.members.iter_mut().enumerate() {
            if gathered.account.is_some() {
                continue;
            }
            // None when it has returned just now; then there is another look.
            let seen = gathered.member.watch.whereabouts();
            if let Whereabouts::InCall(since) = seen
                && let Some(taken) = gathered.member.watch.take(seen)
            {
                let call = Issued { start: timeline.after_t0(since), end: timeline.after_t0(now) };
                gathered.close(at, &mut self.series, taken, Some(call));
            }
        }
    }

    /// Sends what the channel has room for; nothing here waits while threads are at work.
    fn send_some(&mut self) {
        while let Some(interval) = self.outbox.pop_front() {
            if let Err(TrySendError::Full(CrewEvent::Interval(interval))) =
                self.events.try_send(CrewEvent::Interval(interval))
            {
                self.outbox.push_front(interval);
                return;
            }
        }
    }

    fn finish(mut self, t0_worker_ns: u64) {
        while let Some(interval) = self.series.next_at_end() {
            self.outbox.push_back(interval);
        }
        // A send only fails when nobody listens any more.
        for interval in std::mem::take(&mut self.outbox) {
            let _ = self.events.blocking_send(CrewEvent::Interval(interval));
        }
        let (threads, sums) = self.reports();
        let errors = self.errors();
        let intervals = self.series.intervals();
        let totals = self.totals();
        let first_end = self.first_end();
        let Self { plan, clock, events, members, series, .. } = self;
        // The next crew may be armed as soon as this one has ended: its memory is free by then.
        drop(members);
        let ticks = series.into_ticks();
        let sums = sums.or_else(|| {
            let Totals { bytes, ops, .. } = totals;
            (sums_of(&ticks) != Some((bytes, ops)))
                .then(|| format!("the node's ticks do not sum to its threads' totals, {totals}"))
        });
        let report = Box::new(PointReport {
            point: plan.point,
            t0_worker_ns,
            threads,
            errors,
            intervals,
            ticks: ticks.len() as u64,
            syncfs_ns: None,
            cpu_share: None,
            stamp_residual_ns: clock.residual_ns(),
            first_end,
            sums,
        });
        let _ = events.blocking_send(CrewEvent::Ended { ticks, report });
    }

    /// The threads' reports, and the first thing that does not add up.
    fn reports(&self) -> (Vec<ThreadReport>, Option<String>) {
        let mut sums = None;
        let mut reports = Vec::with_capacity(self.members.len());
        for (at, (gathered, plan)) in self.members.iter().zip(&self.plan.threads).enumerate() {
            let Some((account, stuck)) = &gathered.account else {
                continue;
            };
            let differs =
                doubt(account, *stuck).or_else(|| self.series.differs_from(at, totals_of(account)));
            if let Some(differs) = differs {
                sums.get_or_insert_with(|| format!("thread {}: {differs}", plan.thread));
            }
            reports.push(account.report(plan.thread, gathered.member.open_ns, *stuck));
        }
        (reports, sums.or_else(|| self.series.node_differs_from(self.totals())))
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (account, _) in self.members.iter().filter_map(|gathered| gathered.account.as_ref()) {
            totals.add(totals_of(account));
        }
        totals
    }

    /// The node's payload up to the end of its first thread. A thread that was given up counts with
    /// what it had, and its own last completion is nobody's end.
    fn first_end(&self) -> Option<FirstEnd> {
        let at = self.control.first_ended()?;
        let mut units = Units::default();
        for (account, _) in self.members.iter().filter_map(|gathered| gathered.account.as_ref()) {
            units.add(account.recorder.up_to(at));
        }
        Some(FirstEnd { at_ns: at.cast_signed(), bytes: units.bytes, ops: units.ops })
    }

    /// Failed operations by kind, over all threads.
    fn errors(&self) -> Vec<ErrorCount> {
        let mut kinds: BTreeMap<(Call, i32), (u64, ErrorCount)> = BTreeMap::new();
        for (gathered, thread) in self.members.iter().zip(&self.plan.threads) {
            let Some((account, _)) = &gathered.account else {
                continue;
            };
            for kind in account.recorder.failures().kinds() {
                let one = ErrorCount {
                    op: self.plan.op,
                    call: kind.failure.call.name().to_owned(),
                    errno: kind.failure.errno,
                    count: kind.count,
                    file: thread.file.clone(),
                    offset: kind.first_offset,
                    sum_ns: kind.sum_ns,
                    max_ns: kind.max_ns,
                };
                kinds
                    .entry((kind.failure.call, kind.failure.errno))
                    .and_modify(|(first_ns, all)| {
                        let earlier = kind.first_ns < *first_ns;
                        *first_ns = kind.first_ns.min(*first_ns);
                        merge_errors(all, &one, earlier);
                    })
                    .or_insert((kind.first_ns, one));
            }
        }
        kinds.into_values().map(|(_, count)| count).collect()
    }
}

impl Gathered {
    /// Takes what the thread handed over, and its account if it has ended. Returns the first
    /// interval that it has not passed.
    fn look(&mut self, at: usize, series: &mut Series, since_last_ns: u64) -> u32 {
        if self.account.is_some() {
            return u32::MAX;
        }
        let seen = self.member.watch.whereabouts();
        if let Some(taken) = Some(seen)
            .filter(|seen| *seen == Whereabouts::Ended)
            .and_then(|seen| self.member.watch.take(seen))
        {
            self.close(at, series, taken, None);
            return u32::MAX;
        }
        let call = match seen {
            Whereabouts::InCall(since) => Some(since),
            Whereabouts::AtWork | Whereabouts::Ended | Whereabouts::Taken => None,
        };
        self.watchdog.look(call, since_last_ns);
        // What it handed over before it passed this interval is in the queues.
        let passed = self.member.inlet.passed();
        self.drain(at, series);
        passed
    }

    fn drain(&mut self, at: usize, series: &mut Series) {
        let inlet = &mut self.member.inlet;
        while let Some(entry) = inlet.counters() {
            series.counters(at, entry);
        }
        while let Some(run) = inlet.ticks() {
            series.ticks(at, run);
        }
        while let Some(FullLatency { k, counts }) = inlet.latency() {
            series.latency(k, &counts);
            inlet.give_back(counts);
        }
    }

    fn close(
        &mut self,
        at: usize,
        series: &mut Series,
        mut account: Taken<Account>,
        stuck: Option<Issued>,
    ) {
        self.drain(at, series);
        let Rest { counters, tick, latency } = account.recorder.close();
        if let Some(entry) = counters {
            series.counters(at, entry);
        }
        if let Some(run) = tick {
            series.ticks(at, run);
        }
        if let Some((k, counts)) = latency {
            series.latency(k, counts);
        }
        if account.issued() > 0 {
            series.reach(account.recorder.interval());
        }
        self.account = Some((account, stuck));
    }
}

fn totals_of(account: &Account) -> Totals {
    let mut totals = account.recorder.ramp();
    totals.add(account.recorder.measured());
    totals
}

/// Why a thread's account can't be trusted, whatever it says.
fn doubt(account: &Account, stuck: Option<Issued>) -> Option<String> {
    match account.recorder.lost() {
        0 if account.is_complete() || stuck.is_some() => None,
        0 => Some("it ended by a panic".to_owned()),
        lost => Some(format!("{lost} entries of its queues were not fetched in time and are lost")),
    }
}

fn merge_errors(all: &mut ErrorCount, one: &ErrorCount, one_is_earlier: bool) {
    let ErrorCount { op: _, call: _, errno: _, count, file, offset, sum_ns, max_ns } = one;
    all.count += count;
    all.sum_ns += sum_ns;
    all.max_ns = all.max_ns.max(*max_ns);
    if one_is_earlier {
        all.file.clone_from(file);
        all.offset = *offset;
    }
}
