//! All that one I/O thread knows of its point, and the report made of it.

use std::sync::Arc;

use iofleet_shared::{
    stats::{ThreadEnd, ThreadReport, Written},
    work::OpKind,
};

use super::Order;
use crate::{
    engine::Failure,
    pattern::Coverage,
    recorder::{Recorder, Totals},
};

/// When an operation was issued and when it was over, in ns after T0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    /// Its first stamp.
    pub start: u64,
    /// Its second.
    pub end: u64,
}

/// One thread's own account of a point.
#[derive(Debug)]
pub struct Account {
    /// Its counts.
    pub recorder: Recorder,
    coverage: Coverage,
    first_issue: Option<u64>,
    busy_end: Option<u64>,
    flush: Option<Issued>,
    short_transfers: u64,
    issued: u64,
    end: Option<ThreadEnd>,
    written: Option<Written>,
}

impl Account {
    /// An empty account, with all the memory that it will need.
    #[must_use]
    pub fn new(recorder: Recorder, order: &Order, op: OpKind) -> Self {
        Self {
            recorder,
            coverage: Coverage::new(Arc::clone(&order.blocks), op, order.pattern),
            first_issue: None,
            busy_end: None,
            flush: None,
            short_transfers: 0,
            issued: 0,
            end: None,
            written: None,
        }
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

    /// An operation moved its block in one go.
    #[inline]
    pub fn succeeded(&mut self, times: Issued, number: u64, bytes: u64) {
        self.issued += 1;
        self.recorder.completed(times.start, times.end, bytes);
        self.coverage.succeeded(number, 1);
    }

    /// An operation moved its block in several goes, or failed.
    #[cold]
    pub fn uncommon(
        &mut self,
        times: Issued,
        number: u64,
        offset: u64,
        shorts: u32,
        result: Result<u64, Failure>,
    ) {
        self.short_transfers += u64::from(shorts);
        match result {
            Ok(bytes) => self.succeeded(times, number, bytes),
            Err(failure) => {
                self.issued += 1;
                self.recorder.failed(times.start, times.end, failure, offset);
                self.coverage.failed(number, 1);
            }
        }
    }

    /// No further operation will be issued.
    ///
    /// A thread that its deadline cut off between two operations was not out of work: it was busy
    /// up to the deadline, and the time for which it was not running shows in the busy share.
    pub fn finished(&mut self, end: ThreadEnd, deadline_ns: Option<u64>) {
        self.end = Some(end);
        let last = self.recorder.last_end();
        self.busy_end = match (end, deadline_ns) {
            (ThreadEnd::Deadline, Some(deadline)) => Some(last.max(deadline)),
            _ => Some(last),
        };
    }

    /// The final fsync returned.
    pub fn flushed(&mut self, start: u64, end: u64, result: Result<(), Failure>) {
        self.flush = Some(Issued { start, end });
        match result {
            Ok(()) => self.recorder.pass(end),
            Err(failure) => self.recorder.failed(start, end, failure, 0),
        }
    }

    /// The last completion or the return of the fsync, ns after T0; none if nothing completed.
    #[must_use]
    pub fn ended(&self) -> Option<u64> {
        let completed = self.recorder.measured().ops + self.recorder.ramp().ops > 0;
        let last = || self.flush.map_or_else(|| self.recorder.last_end(), |flush| flush.end);
        completed.then(last)
    }

    /// Works out what takes some time, so that the collector need not.
    pub fn seal(&mut self) {
        self.written = Some(self.written_of_file());
    }

    fn written_of_file(&self) -> Written {
        self.coverage.written().pop().map_or(Written::Nothing, |part| part.written)
    }

    /// The thread never started.
    pub fn not_run(&mut self) {
        self.end = Some(ThreadEnd::Stopped);
        self.written = Some(Written::Nothing);
    }

    /// Whether the thread came to an orderly end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    /// The report of a thread that ended or, if `stuck`, was given up inside a call which began
    /// at the first of these times and had not returned at the second (ns after T0).
    #[must_use]
    pub fn report(&self, thread: u32, open_ns: u64, stuck: Option<Issued>) -> ThreadReport {
        let Totals { bytes, ops, errors } = self.recorder.measured();
        let ramp = self.recorder.ramp();
        let ended = self.ended();
        let in_first = stuck.filter(|_| self.issued == 0).map(|call| call.start);
        let first_issue = self.first_issue.or(in_first);
        ThreadReport {
            thread,
            end: match stuck {
                Some(_) => ThreadEnd::Stuck,
                // Only a panic leaves an account without an end.
                None => self.end.unwrap_or(ThreadEnd::Errors),
            },
            bytes,
            ops,
            errors,
            ramp_bytes: ramp.bytes,
            ramp_ops: ramp.ops,
            ramp_errors: ramp.errors,
            short_transfers: self.short_transfers,
            first_issue_ns: first_issue.map(u64::cast_signed),
            begin_ns: first_issue
                .map(|first| first.max(self.recorder.measured_from()).cast_signed()),
            ended_ns: ended.map(u64::cast_signed),
            busy_end_ns: ended
                .map(|_| self.busy_end.unwrap_or_else(|| self.recorder.last_end()).cast_signed()),
            fsync_ns: self.flush.map(|flush| flush.end - flush.start),
            open_ns,
            bytes_touched: self.coverage.bytes_touched().unwrap_or(0),
            passes_milli: self.coverage.passes_milli(),
            unfinished_ns: stuck.map(|call| call.end.saturating_sub(call.start)),
            written: self.written.clone().unwrap_or_else(|| self.written_of_file()),
        }
    }
}
