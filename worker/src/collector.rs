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
    stats::{ErrorCount, FirstEnd, NodeInterval, Offered, PointReport, ThreadReport, Tick},
    work::{Amount, OpKind, ThreadPlan, WorkerPlan},
};
use rustix::{process::setpriority_process, thread::gettid};
use tokio::sync::mpsc::{Sender, error::TrySendError};

use crate::{
    arrivals::ArrivalQueue,
    crew::CrewEvent,
    engine::Call,
    io_thread::{Account, Control, Issued, Taken, Timeline, Watch, Whereabouts},
    recorder::{FailedKind, FullLatency, Inlet, Recorder, Rest, Totals, Units},
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
    /// Its queues, by kind of operation.
    pub inlets: Vec<Inlet>,
    /// How long its files took to open.
    pub open_ns: u64,
    /// What is to be known of how its engine runs.
    pub remarks: Vec<String>,
}

/// The collector of one crew.
#[derive(Debug)]
pub struct Collector {
    plan: Arc<WorkerPlan>,
    control: Arc<Control>,
    clock: StampClock,
    events: Sender<CrewEvent>,
    members: Vec<Gathered>,
    /// By kind of operation.
    series: Vec<Series>,
    /// Under an offered load: what its threads take from.
    arrivals: Option<Arc<ArrivalQueue>>,
    /// What is to be known of how the engines run.
    remarks: Vec<String>,
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
        arrivals: Option<Arc<ArrivalQueue>>,
        events: Sender<CrewEvent>,
    ) -> Self {
        let series = plan.ops().into_iter().map(|op| Series::new(op, members.len())).collect();
        let mut remarks: Vec<String> = Vec::new();
        for remark in members.iter().flat_map(|member: &Member| &member.remarks) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
        let gathered = |member| Gathered { member, watchdog: Watchdog::default(), account: None };
        let members = members.into_iter().map(gathered).collect();
        let outbox = VecDeque::new();
        Self {
            plan,
            control,
            clock,
            events,
            members,
            series,
            arrivals,
            remarks,
            outbox,
            last_look_ns: 0,
        }
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
            for series in &mut self.series {
                self.outbox.extend(std::iter::from_fn(|| series.next_before(passed)));
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
                let (start, end) = (timeline.after_t0(since), timeline.after_t0(now));
                let call = Issued { intended: None, start, end };
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
        for series in &mut self.series {
            self.outbox.extend(std::iter::from_fn(|| series.next_at_end()));
        }
        // A send only fails when nobody listens any more.
        for interval in std::mem::take(&mut self.outbox) {
            let _ = self.events.blocking_send(CrewEvent::Interval(interval));
        }
        let (threads, sums) = self.reports();
        let errors = self.errors();
        let intervals = self.series.iter().map(Series::intervals).sum();
        let offered = self.offered();
        let totals = self.totals();
        let first_end = self.first_end();
        let Self { plan, clock, events, members, series, remarks, .. } = self;
        // The next crew may be armed as soon as this one has ended: its memory is free by then.
        drop(members);
        let ticks: Vec<(OpKind, Vec<Tick>)> =
            series.into_iter().map(|series| (series.op(), series.into_ticks())).collect();
        let sums = sums.or_else(|| ticks_differ_from(&ticks, totals));
        let report = Box::new(PointReport {
            point: plan.point,
            t0_worker_ns,
            threads,
            errors,
            intervals,
            ticks: ticks.iter().map(|(_, ticks)| ticks.len() as u64).sum(),
            samples: 0,
            syncfs_ns: None,
            cpu_share: None,
            stamp_residual_ns: clock.residual_ns(),
            first_end,
            offered,
            remarks,
            cold: None,
            holes: None,
            stopped: None,
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
            let differs = doubt(account, *stuck).or_else(|| {
                let mut lanes = self.series.iter().zip(account.lanes());
                lanes.find_map(|(series, lane)| series.differs_from(at, totals_of(lane)))
            });
            if let Some(differs) = differs {
                sums.get_or_insert_with(|| format!("thread {}: {differs}", plan.thread));
            }
            let file_of = |file| plan.file_name(file);
            reports.push(account.report(plan.thread, gathered.member.open_ns, *stuck, file_of));
        }
        (reports, sums.or_else(|| self.node_differs()))
    }

    /// Compares the intervals that left with the totals of all threads, by kind of operation.
    fn node_differs(&self) -> Option<String> {
        let mut series = self.series.iter().enumerate();
        series.find_map(|(lane, series)| {
            let mut totals = Totals::default();
            self.accounts().for_each(|account| totals.add(totals_of(&account.lanes()[lane])));
            series.node_differs_from(totals)
        })
    }

    fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.members
            .iter()
            .filter_map(|gathered| gathered.account.as_ref())
            .map(|(account, _)| &**account)
    }

    /// What an offered load came to. Each arrival is taken by one thread, and one that is not
    /// issued was not taken, or came too late.
    fn offered(&self) -> Option<Offered> {
        let arrivals = self.arrivals.as_ref()?;
        let last = self.accounts().map(Account::last_end).max().unwrap_or(0);
        let cut_short = self.control.is_stopped() || self.accounts().all(Account::is_finished);
        let end = match self.plan.amount {
            Amount::Time { duration_ns, .. } => {
                let deadline = self.plan.ramp_ns.saturating_add(duration_ns);
                if cut_short { deadline.min(last) } else { deadline }
            }
            Amount::Share => last,
        };
        let issued: u64 = self.accounts().map(Account::issued).sum();
        let by_size = self.plan.amount == Amount::Share;
        let all = arrivals.count_between(0, end);
        Some(Offered {
            // By size no more arrive than there is to do.
            arrived: match by_size {
                true => issued,
                false => arrivals.count_between(self.plan.ramp_ns.min(end), end),
            },
            not_issued: if by_size { 0 } else { all.saturating_sub(issued) },
            backlog_max: self
                .accounts()
                .map(|account| account.offered_totals().backlog_max)
                .max()
                .unwrap_or(0),
        })
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.accounts().for_each(|account| totals.add(account.totals()));
        totals
    }

    /// The node's payload up to the end of its first thread. A thread that was given up counts with
    /// what it had, and its own last completion is nobody's end.
    fn first_end(&self) -> Option<FirstEnd> {
        let at = self.control.first_ended()?;
        let mut units = Units::default();
        self.accounts().for_each(|account| units.add(account.up_to(at)));
        Some(FirstEnd { at_ns: at.cast_signed(), bytes: units.bytes, ops: units.ops })
    }

    /// Failed operations by kind, over all threads.
    fn errors(&self) -> Vec<ErrorCount> {
        let mut kinds: BTreeMap<(OpKind, Call, i32), (u64, ErrorCount)> = BTreeMap::new();
        let ops = self.plan.ops();
        for (gathered, thread) in self.members.iter().zip(&self.plan.threads) {
            let Some((account, _)) = &gathered.account else {
                continue;
            };
            for (op, lane) in ops.iter().zip(account.lanes()) {
                for kind in lane.failures().kinds() {
                    let one = error_count(*op, kind, thread);
                    kinds
                        .entry((*op, kind.failure.call, kind.failure.errno))
                        .and_modify(|(first_ns, all)| {
                            let earlier = kind.first_ns < *first_ns;
                            *first_ns = kind.first_ns.min(*first_ns);
                            merge_errors(all, &one, earlier);
                        })
                        .or_insert((kind.first_ns, one));
                }
            }
        }
        kinds.into_values().map(|(_, count)| count).collect()
    }
}

impl Gathered {
    /// Takes what the thread handed over, and its account if it has ended. Returns the first
    /// interval that it has not passed.
    fn look(&mut self, at: usize, series: &mut [Series], since_last_ns: u64) -> u32 {
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
        let passed = self.member.inlets.iter().map(Inlet::passed).min().unwrap_or(u32::MAX);
        self.drain(at, series);
        passed
    }

    fn drain(&mut self, at: usize, series: &mut [Series]) {
        for (inlet, series) in self.member.inlets.iter_mut().zip(series) {
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
    }

    fn close(
        &mut self,
        at: usize,
        series: &mut [Series],
        mut account: Taken<Account>,
        stuck: Option<Issued>,
    ) {
        self.drain(at, series);
        let has_issued = account.issued() > 0;
        for (lane, series) in account.lanes_mut().iter_mut().zip(series) {
            let Rest { counters, latency } = lane.close(|run| series.ticks(at, run));
            if let Some(entry) = counters {
                series.counters(at, entry);
            }
            if let Some((k, counts)) = latency {
                series.latency(k, counts);
            }
            if has_issued {
                series.reach(lane.interval());
            }
        }
        self.account = Some((account, stuck));
    }
}

fn totals_of(lane: &Recorder) -> Totals {
    let mut totals = lane.ramp();
    totals.add(lane.measured());
    totals
}

/// Compares the spread series with the totals of all threads; says what differs.
fn ticks_differ_from(ticks: &[(OpKind, Vec<Tick>)], totals: Totals) -> Option<String> {
    let sums: Option<Vec<_>> = ticks.iter().map(|(_, ticks)| sums_of(ticks)).collect();
    let sum = sums.map(|sums| sums.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1)));
    (sum != Some((totals.bytes, totals.ops)))
        .then(|| format!("the node's ticks do not sum to its threads' totals, {totals}"))
}

fn error_count(op: OpKind, kind: &FailedKind, thread: &ThreadPlan) -> ErrorCount {
    ErrorCount {
        op,
        call: kind.failure.call.name().to_owned(),
        errno: kind.failure.errno,
        count: kind.count,
        file: thread.file_name(kind.first_file),
        offset: kind.first_offset,
        sum_ns: kind.sum_ns,
        max_ns: kind.max_ns,
    }
}

/// Why a thread's account can't be trusted, whatever it says.
fn doubt(account: &Account, stuck: Option<Issued>) -> Option<String> {
    match account.lanes().iter().map(Recorder::lost).sum::<u64>() {
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
