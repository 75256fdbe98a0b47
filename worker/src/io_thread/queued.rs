//! The loop of a thread with several operations in flight.
//!
//! One round chooses an operation for each free slot and fills its buffer, hands all of them to the
//! kernel with one call that also waits for completions, and counts what has completed. The two
//! stamps of a round stand around that call: an operation begins with the stamp before the call
//! that hands it over, and ends with the one after the call that finds it complete.

use std::time::Duration;

use iofleet_shared::stats::ThreadEnd;

use super::{
    Account, Bench, Gone, Issued, Seat, Timeline,
    fittings::{Due, Fittings},
    roll_call,
    steps::{Progress, see_first_end},
};
use crate::{
    engine::{Completion, Queue, Request},
    pattern::Source,
    stamp::Clock,
};

/// An operation in a slot.
#[derive(Debug, Clone, Copy)]
struct Slot {
    request: Request,
    /// Stamp.
    start: u64,
    intended: Option<u64>,
    in_flight: bool,
}

impl Slot {
    fn is_in_flight_since(&self, start: u64) -> bool {
        self.in_flight && self.start == start
    }
}

/// The slots of a queue.
#[derive(Debug)]
struct Flight {
    slots: Box<[Slot]>,
    free: Vec<u32>,
    /// Chosen and not handed over.
    chosen: Vec<u32>,
    /// In flight, in the order of issue; those that completed are still in it until they come to
    /// the front.
    order: Ring,
    in_flight: u32,
    done: Vec<Completion>,
}

/// Slots with the stamps of their issue, first in, first out; as many as a power of two.
#[derive(Debug)]
struct Ring {
    entries: Box<[(u32, u64)]>,
    first: usize,
    length: usize,
}

/// Issues operations until the job is done and nothing is in flight. Returns the account, why it
/// ended, and the last stamp.
///
/// # Errors
/// When the thread was given up meanwhile: its account is gone and it must leave.
#[inline]
pub(super) fn operate(
    mut seat: Seat<Account>,
    queue: &mut impl Queue,
    source: &mut impl Source,
    fittings: &mut Fittings,
    clock: impl Clock,
    bench: Bench<'_>,
) -> Result<(Seat<Account>, ThreadEnd, u64), Gone> {
    let Bench { job, timeline, control } = bench;
    let deadline = job.deadline_ns.map_or(u64::MAX, |ns| timeline.stamp_at(ns));
    let mut flight = Flight::new(queue.depth());
    let mut progress = Progress::default();
    let mut budget = job.blocks;
    let mut since = clock.now();
    let mut end = None;
    let mut is_first = true;
    loop {
        let mut due_in = None;
        if since >= deadline {
            end.get_or_insert(ThreadEnd::Deadline);
        }
        if end.is_none() {
            let now_ns = timeline.after_t0(since);
            match flight.choose(queue, source, fittings, &mut budget, now_ns, bench) {
                Choice::Full => {}
                Choice::Later(wait) => due_in = Some(wait),
                Choice::Ended(why) => end = Some(why),
            }
        }
        if let Some(why) = end {
            seat.account().cut(timeline.after_t0(since), why, job.deadline_ns);
        }
        if flight.is_idle() {
            match (end, due_in) {
                (Some(end), _) => return Ok((seat, end, since)),
                (None, _) => {
                    end = fittings.pacing.idle(clock, bench);
                    since = clock.now();
                }
            }
            continue;
        }
        seat.account().in_flight(flight.in_flight + flight.chosen_count());
        let oldest = flight.oldest().unwrap_or(since);
        let (back, (start, stop)) = seat.away(oldest, || {
            let start = clock.now();
            flight.hand_on(queue, fittings, start, start < deadline);
            if flight.in_flight > 0 {
                queue.submit(true, due_in, &mut flight.done);
            }
            (start, clock.now())
        })?;
        seat = back;
        if start >= deadline && end.is_none() {
            end = Some(ThreadEnd::Deadline);
            seat.account().cut(timeline.after_t0(since), ThreadEnd::Deadline, job.deadline_ns);
        }
        since = stop;
        let has_begun = is_first && flight.in_flight > 0;
        if has_begun {
            is_first = false;
            seat.account().begun(timeline.after_t0(start));
        }
        if flight.is_busy(progress.completed) || (!is_first && fittings.pacing.is_paced()) {
            seat.account().full(timeline.after_t0(start));
        }
        let stop_ns = timeline.after_t0(stop);
        let counting = Counting { timeline, stop_ns, progress: &mut progress };
        if !flight.count_done(queue, fittings, seat.account(), counting) {
            end.get_or_insert(ThreadEnd::Errors);
        }
        seat.show_bytes(progress.bytes);
        see_first_end(&mut seat, control, stop_ns);
        if has_begun && control.has_begun() {
            roll_call(clock, timeline, control);
            since = clock.now();
        }
    }
}

/// What completions are counted with.
struct Counting<'a> {
    timeline: &'a Timeline,
    /// When they were found complete, ns after T0.
    stop_ns: u64,
    progress: &'a mut Progress,
}

/// What came of choosing operations.
enum Choice {
    /// No slot is free.
    Full,
    /// The next one arrives so much later.
    Later(Duration),
    /// There will be no further one.
    Ended(ThreadEnd),
}

impl Flight {
    fn new(depth: u32) -> Self {
        let empty = Slot { request: Request::NOTHING, start: 0, intended: None, in_flight: false };
        let length = usize::try_from(depth).unwrap_or(usize::MAX);
        Self {
            slots: vec![empty; length].into_boxed_slice(),
            free: (0..depth).rev().collect(),
            chosen: Vec::with_capacity(length),
            order: Ring::new(length),
            in_flight: 0,
            done: Vec::with_capacity(length),
        }
    }

    /// The queue is full, with operations of all ages. One that has just been filled holds operations
    /// of one age; once each slot has been used ages are as they will be at the end, and shares of
    /// time on both edges of the window balance.
    fn is_busy(&self, completed: u64) -> bool {
        let depth = self.slots.len();
        self.in_flight as usize == depth && completed >= depth as u64
    }

    /// Nothing is in flight or about to be.
    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.chosen.is_empty()
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most the depth")]
    fn chosen_count(&self) -> u32 {
        self.chosen.len() as u32
    }

    /// Chooses an operation for each free slot, and fills its buffer.
    #[inline]
    fn choose(
        &mut self,
        queue: &mut impl Queue,
        source: &mut impl Source,
        fittings: &mut Fittings,
        budget: &mut u64,
        now_ns: u64,
        bench: Bench<'_>,
    ) -> Choice {
        while let Some(&slot) = self.free.last() {
            if bench.control.is_stopped() {
                return Choice::Ended(ThreadEnd::Stopped);
            }
            if *budget == 0 {
                return Choice::Ended(ThreadEnd::Finished);
            }
            let mut intended = None;
            if fittings.pacing.is_paced() {
                match fittings.pacing.due(now_ns, bench.job.deadline_ns) {
                    Due::Now(arrived) => intended = arrived,
                    Due::In(wait) => return Choice::Later(wait),
                    Due::Never => return Choice::Ended(ThreadEnd::Deadline),
                }
            }
            let Some(request) = source.next() else {
                return Choice::Ended(ThreadEnd::Finished);
            };
            *budget = budget.saturating_sub(u64::from(request.blocks));
            fittings.contents.before(slot, queue.buffer(slot), &request);
            self.slots[slot as usize] = Slot { request, start: 0, intended, in_flight: false };
            self.free.pop();
            self.chosen.push(slot);
        }
        Choice::Full
    }

    /// What was chosen is handed over, or back where the deadline has come.
    #[inline]
    fn hand_on(
        &mut self,
        queue: &mut impl Queue,
        fittings: &mut Fittings,
        start: u64,
        is_in_time: bool,
    ) {
        if is_in_time {
            self.hand_over(queue, start);
        } else {
            self.hand_back(fittings);
        }
    }

    /// Counts what has completed. Says whether it makes sense to go on.
    #[inline]
    fn count_done(
        &mut self,
        queue: &mut impl Queue,
        fittings: &mut Fittings,
        account: &mut Account,
        counting: Counting<'_>,
    ) -> bool {
        let Counting { timeline, stop_ns, progress } = counting;
        let mut goes_on = true;
        // Operations of one round have the same stamp.
        let (mut stamp, mut start_ns) = (0, 0);
        for Completion { slot, transfer } in self.done.drain(..) {
            let state = &mut self.slots[slot as usize];
            state.in_flight = false;
            self.in_flight -= 1;
            self.free.push(slot);
            let Slot { request, start, intended, .. } = state;
            if *start != stamp {
                (stamp, start_ns) = (*start, timeline.after_t0(*start));
            }
            let times = Issued { intended: *intended, start: start_ns, end: stop_ns };
            let block = queue.buffer(slot);
            if let Some(damage) = fittings.contents.after(slot, block, request, transfer.result) {
                account.damaged(request, damage);
            }
            goes_on &= progress.count(account, times, request, transfer);
            fittings.pacing.done(stop_ns);
        }
        goes_on
    }

    #[inline]
    fn hand_over(&mut self, queue: &mut impl Queue, start: u64) {
        for slot in self.chosen.drain(..) {
            let state = &mut self.slots[slot as usize];
            (state.start, state.in_flight) = (start, true);
            queue.queue(slot, &state.request);
            self.in_flight += 1;
            if self.order.is_full() {
                let slots = &self.slots;
                self.order.retain(|slot, start| slots[slot as usize].is_in_flight_since(start));
            }
            self.order.push(slot, start);
        }
    }

    /// The deadline came between choosing and issuing.
    #[cold]
    fn hand_back(&mut self, fittings: &mut Fittings) {
        for slot in self.chosen.drain(..) {
            fittings.contents.taken_back(&self.slots[slot as usize].request);
            self.free.push(slot);
        }
    }

    /// The issue of the oldest operation in flight.
    #[inline]
    fn oldest(&mut self) -> Option<u64> {
        while let Some((slot, start)) = self.order.first() {
            if self.slots[slot as usize].is_in_flight_since(start) {
                return Some(start);
            }
            self.order.pop();
        }
        None
    }
}

impl Ring {
    fn new(depth: usize) -> Self {
        // Entries of slots that completed stay until the ones before them do, or until there are
        // too many.
        let length = depth.saturating_mul(4).max(64).next_power_of_two();
        let entries = vec![(0, 0); length].into_boxed_slice();
        Self { entries, first: 0, length: 0 }
    }

    fn first(&self) -> Option<(u32, u64)> {
        (self.length > 0).then(|| self.entries[self.first])
    }

    fn pop(&mut self) {
        self.first = self.place(1);
        self.length -= 1;
    }

    fn push(&mut self, slot: u32, start: u64) {
        let at = self.place(self.length);
        self.entries[at] = (slot, start);
        self.length += 1;
    }

    /// The place so many after the first.
    #[inline]
    fn place(&self, after: usize) -> usize {
        (self.first + after) & (self.entries.len() - 1)
    }

    fn is_full(&self) -> bool {
        self.length == self.entries.len()
    }

    /// Drops the entries of which `keep` says no.
    #[cold]
    fn retain(&mut self, keep: impl Fn(u32, u64) -> bool) {
        for _ in 0..self.length {
            let (slot, start) = self.entries[self.first];
            self.pop();
            if keep(slot, start) {
                self.push(slot, start);
            }
        }
    }
}
