//! All that one I/O thread knows of its point, and the report made of it.

use iofleet_shared::{
    stats::{
        CpuTime, DamageCount, FileTimes, NamesLeft, OpCounts, ThreadEnd, ThreadReport, Written,
        WrittenPart,
    },
    work::{Names, OpKind},
};

use super::fittings::{Damages, OfferedTotals};
use crate::{
    engine::{Failure, Request},
    pattern::Coverage,
    payload::Damage,
    recorder::{Recorder, Totals, Units},
};

/// When an operation was issued and when it was over, in ns after T0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    /// Under an offered load: when it arrived.
    pub intended: Option<u64>,
    /// Its first stamp.
    pub start: u64,
    /// Its second.
    pub end: u64,
}

/// What an account is made of.
#[derive(Debug)]
pub struct AccountSpec {
    /// The kinds of operation of the point, each with its recorder.
    pub lanes: Vec<(OpKind, Recorder)>,
    /// Which blocks the operations of one of the kinds have touched.
    pub coverage: Option<(OpKind, Coverage)>,
    /// The files are those of a tree with so many directories.
    pub tree_dirs: Option<u32>,
}

/// One thread's own account of a point.
#[derive(Debug)]
pub struct Account {
    lanes: Vec<Recorder>,
    ops: Vec<OpKind>,
    coverage: Option<(OpKind, Coverage)>,
    tree_dirs: Option<u32>,
    /// The interval that all lanes are in.
    interval: u32,
    first_issue: Option<u64>,
    busy_begin: Option<u64>,
    busy_end: Option<u64>,
    flush: Option<Issued>,
    /// When it had ended, where something failed afterwards.
    ended_before: Option<u64>,
    short_transfers: u64,
    issued: u64,
    in_flight: u32,
    end: Option<ThreadEnd>,
    damages: Damages,
    offered: OfferedTotals,
    cpu: CpuTime,
    names: Option<NamesLeft>,
    files: FileTimes,
    sealed: Option<Sealed>,
}

/// What takes some time to work out.
#[derive(Debug, Clone, Default)]
struct Sealed {
    written: Vec<WrittenPart>,
    names: Option<NamesLeft>,
}

impl Account {
    /// An empty account, with all the memory that it will need.
    #[must_use]
    pub fn new(spec: AccountSpec) -> Self {
        let AccountSpec { lanes, coverage, tree_dirs } = spec;
        let (ops, lanes) = lanes.into_iter().unzip();
        Self {
            lanes,
            ops,
            coverage,
            tree_dirs,
            interval: 0,
            first_issue: None,
            busy_begin: None,
            busy_end: None,
            flush: None,
            ended_before: None,
            short_transfers: 0,
            issued: 0,
            in_flight: 0,
            end: None,
            damages: Damages::default(),
            offered: OfferedTotals::default(),
            cpu: CpuTime::default(),
            names: None,
            files: FileTimes::default(),
            sealed: None,
        }
    }

    /// Its counts, by the point's kinds of operation.
    #[must_use]
    pub fn lanes(&self) -> &[Recorder] {
        &self.lanes
    }

    /// The same, to be closed.
    pub fn lanes_mut(&mut self) -> &mut [Recorder] {
        &mut self.lanes
    }

    /// Operations that came to an end.
    #[must_use]
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// The first operation was issued.
    pub fn begun(&mut self, start: u64) {
        self.first_issue = Some(start);
    }

    /// All of its operations that may be in flight are, from then on. Only the first call counts.
    #[inline]
    pub fn full(&mut self, start: u64) {
        if self.busy_begin.is_none() {
            self.busy_begin = Some(start);
        }
    }

    /// So many operations are in flight while the thread is away.
    #[inline]
    pub fn in_flight(&mut self, count: u32) {
        self.in_flight = count;
    }

    /// Nothing is issued from the completion at `at` on, though operations may be in flight. Only
    /// the first call counts.
    ///
    /// A thread that its deadline cut off between two operations was not out of work: it was busy
    /// up to the deadline, and the time for which it was not running shows in the busy share.
    pub fn cut(&mut self, at: u64, end: ThreadEnd, deadline_ns: Option<u64>) {
        let at = match (end, deadline_ns) {
            (ThreadEnd::Deadline, Some(deadline)) => at.max(deadline),
            _ => at,
        };
        self.busy_end.get_or_insert(at);
    }

    /// An operation moved its block in one go.
    #[inline(always)]
    pub fn succeeded(&mut self, times: Issued, request: &Request, bytes: u64) {
        self.issued += 1;
        let lane = &mut self.lanes[request.lane as usize];
        match times.intended {
            None => lane.completed(times.start, times.end, bytes),
            Some(intended) => lane.answered(intended, times.start, times.end, bytes),
        }
        if lane.interval() != self.interval {
            self.interval = lane.interval();
            self.keep_up(times.end);
        }
        if let Some((op, coverage)) = &mut self.coverage
            && *op == request.op
        {
            coverage.succeeded(request.number, u64::from(request.blocks));
        }
    }

    /// An operation moved its block in several goes, or failed.
    #[cold]
    pub fn uncommon(
        &mut self,
        times: Issued,
        request: &Request,
        shorts: u32,
        result: Result<u64, Failure>,
    ) {
        self.short_transfers += u64::from(shorts);
        match result {
            Ok(bytes) => self.succeeded(times, request, bytes),
            Err(failure) => {
                self.issued += 1;
                let lane = &mut self.lanes[request.lane as usize];
                lane.failed(times.start, times.end, failure, request);
                self.interval = lane.interval();
                self.keep_up(times.end);
                if let Some((op, coverage)) = &mut self.coverage
                    && *op == request.op
                {
                    coverage.failed(request.number, u64::from(request.blocks));
                }
            }
        }
    }

    /// What was read is not what was written.
    #[cold]
    pub fn damaged(&mut self, request: &Request, damage: Damage) {
        self.damages.add(request.file, damage);
    }

    /// The crew's first thread has ended, at `first_end`, before the last operation did.
    #[inline]
    pub fn first_end_passed(&mut self, first_end: u64) {
        for lane in &mut self.lanes {
            lane.first_end_passed(first_end);
        }
    }

    /// No further operation will be issued, and none is in flight.
    pub fn finished(&mut self, end: ThreadEnd, deadline_ns: Option<u64>) {
        self.end = Some(end);
        self.in_flight = 0;
        self.cut(self.last_end(), end, deadline_ns);
    }

    /// The CPU time that it took.
    pub fn spent(&mut self, cpu: CpuTime) {
        self.cpu = cpu;
    }

    /// What came of an offered load.
    pub fn offered(&mut self, totals: OfferedTotals) {
        self.offered = totals;
    }

    /// Where the names stand that it worked on.
    pub fn names_left(&mut self, names: Option<NamesLeft>) {
        self.names = names;
    }

    /// The final fsync returned.
    pub fn flushed(&mut self, start: u64, end: u64, result: Result<(), Failure>) {
        self.flush = Some(Issued { intended: None, start, end });
        if let Err(failure) = result {
            self.failed_after(start, end, failure);
        }
        self.keep_up(end);
    }

    /// Files could not be closed at the end, which is an error and no part of the thread's work: it
    /// has ended before.
    pub fn failed_late(&mut self, at: u64, failure: Failure) {
        self.ended_before = self.ended();
        self.failed_after(at, at, failure);
        self.keep_up(at);
    }

    /// Something failed that belongs to no operation: it counts among the writes.
    fn failed_after(&mut self, start: u64, end: u64, failure: Failure) {
        let of_writes = self.ops.iter().position(|op| *op == OpKind::Write).unwrap_or(0);
        if let Some(lane) = self.lanes.get_mut(of_writes) {
            lane.failed(start, end, failure, &Request::NOTHING);
        }
    }

    /// The last completion or the return of the fsync, ns after T0; none if nothing completed.
    #[must_use]
    pub fn ended(&self) -> Option<u64> {
        if self.ended_before.is_some() {
            return self.ended_before;
        }
        let completed = self.lanes.iter().any(|lane| lane.measured().ops + lane.ramp().ops > 0);
        let last = || self.flush.map_or_else(|| self.last_end(), |flush| flush.end);
        completed.then(last)
    }

    /// Payload of the measured phase up to `first_end`, over all kinds.
    #[must_use]
    pub fn up_to(&self, first_end: u64) -> Units {
        let mut units = Units::default();
        self.lanes.iter().for_each(|lane| units.add(lane.up_to(first_end)));
        units
    }

    /// All totals, of all kinds and phases.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for lane in &self.lanes {
            totals.add(lane.ramp());
            totals.add(lane.measured());
        }
        totals
    }

    /// What came of an offered load.
    #[must_use]
    pub fn offered_totals(&self) -> OfferedTotals {
        self.offered
    }

    /// The files are closed. Works out what takes some time, so that the collector need not.
    pub fn closed(&mut self, files: FileTimes) {
        self.files = files;
        self.sealed = Some(self.work_out());
    }

    /// The thread never started.
    pub fn not_run(&mut self) {
        self.end = Some(ThreadEnd::Stopped);
        self.sealed = Some(Sealed::default());
    }

    /// Whether the thread did all that there was to do.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.end == Some(ThreadEnd::Finished)
    }

    /// Whether the thread came to an orderly end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    /// The report of a thread that ended or, if `stuck`, was given up inside a call which began
    /// at the first of these times and had not returned at the second (ns after T0). `file_of`
    /// names its files.
    #[must_use]
    pub fn report(
        &self,
        thread: u32,
        open_ns: u64,
        stuck: Option<Issued>,
        file_of: impl Fn(u32) -> String,
    ) -> ThreadReport {
        let ended = self.ended();
        let in_first = stuck.filter(|_| self.issued == 0).map(|call| call.start);
        let first_issue = self.first_issue.or(in_first);
        let measured_from = self.lanes.iter().map(Recorder::measured_from).min().unwrap_or(0);
        let counted = |begin: u64| begin.max(measured_from).cast_signed();
        let Sealed { written, names } = self.sealed.clone().unwrap_or_else(|| self.work_out());
        ThreadReport {
            thread,
            end: match stuck {
                Some(_) => ThreadEnd::Stuck,
                // Only a panic leaves an account without an end.
                None => self.end.unwrap_or(ThreadEnd::Errors),
            },
            counts: self.counts(),
            cpu: self.cpu,
            short_transfers: self.short_transfers,
            first_issue_ns: first_issue.map(u64::cast_signed),
            begin_ns: first_issue.map(counted),
            ended_ns: ended.map(u64::cast_signed),
            busy_begin_ns: self.busy_begin.map(counted),
            busy_end_ns: ended
                .map(|_| self.busy_end.unwrap_or_else(|| self.last_end()).cast_signed()),
            fsync_ns: self.flush.map(|flush| flush.end - flush.start),
            open_ns,
            files: self.files,
            bytes_touched: self.bytes_touched(),
            passes_milli: self.coverage.as_ref().map_or(0, |(_, kept)| kept.passes_milli()),
            unfinished: stuck.map_or(0, |_| self.in_flight.max(1)),
            unfinished_ns: stuck.map(|call| call.end.saturating_sub(call.start)),
            written,
            names,
            damages: self.damage_counts(file_of),
        }
    }

    fn counts(&self) -> Vec<OpCounts> {
        let counts = |(op, lane): (&OpKind, &Recorder)| {
            let Totals { bytes, ops, errors } = lane.measured();
            let ramp = lane.ramp();
            OpCounts {
                op: *op,
                bytes,
                ops,
                errors,
                ramp_bytes: ramp.bytes,
                ramp_ops: ramp.ops,
                ramp_errors: ramp.errors,
            }
        };
        self.ops.iter().zip(&self.lanes).map(counts).collect()
    }

    /// Of a thread that draws from several kinds only the writes' blocks are known.
    fn bytes_touched(&self) -> Option<u64> {
        let did = |lane: &&Recorder| lane.ramp().ops + lane.measured().ops > 0;
        let (_, coverage) = self.coverage.as_ref()?;
        (self.lanes.iter().filter(did).count() <= 1).then(|| coverage.bytes_touched()).flatten()
    }

    fn damage_counts(&self, file_of: impl Fn(u32) -> String) -> Vec<DamageCount> {
        self.damages.counts(file_of)
    }

    fn work_out(&self) -> Sealed {
        let of_writes = self.coverage.as_ref().filter(|(op, _)| *op == OpKind::Write);
        let written = |(_, coverage): &(OpKind, Coverage)| {
            // Operations that were given up in flight may or may not have taken effect.
            if self.in_flight > 0 { coverage.unknown() } else { coverage.written() }
        };
        let Some(written) = of_writes.map(written) else {
            return Sealed { written: Vec::new(), names: self.names };
        };
        match self.tree_dirs {
            None => Sealed { written, names: self.names },
            Some(dirs) => of_tree(&written, dirs, self.files_of_tree()),
        }
    }

    fn files_of_tree(&self) -> u64 {
        self.coverage.as_ref().map_or(0, |(_, coverage)| coverage.files())
    }

    /// The last completion, ns after T0.
    #[must_use]
    pub fn last_end(&self) -> u64 {
        self.lanes.iter().map(Recorder::last_end).max().unwrap_or(0)
    }

    /// All kinds go on to the interval that one has entered: nobody waits for a kind of which there
    /// is no operation.
    #[cold]
    fn keep_up(&mut self, end: u64) {
        self.lanes.iter_mut().for_each(|lane| lane.pass(end));
    }
}

/// Of the files of a tree, those written whole are told by their number, from the first one on.
fn of_tree(written: &[WrittenPart], dirs: u32, files: u64) -> Sealed {
    let is_whole =
        |(file, part): &(u32, &WrittenPart)| part.file == *file && part.written == Written::All;
    let whole = (0..).zip(written).take_while(is_whole).count() as u64;
    let names = Names { dirs, files: whole, gone: 0 };
    let all = WrittenPart { file: 0, written: Written::All };
    Sealed {
        written: if whole == files { vec![all] } else { Vec::new() },
        names: Some(NamesLeft { names, renamed: Some(false) }),
    }
}
