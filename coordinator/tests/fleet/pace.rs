//! The time that the observer takes to answer transfers: so many servers, each with one transfer at
//! a time for a fixed time, all of them at rest for a while once. What waits is served in the order
//! of arrival, so that the highest rate is known: servers over service time, whatever the threads do.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::mpsc::{Sender, channel},
    time::Duration,
};

use fuser::{ReplyData, ReplyWrite};
use iofleet_shared::clock::monotonic_ns;

/// An answer to a transfer that succeeded.
#[derive(Debug)]
pub(crate) enum Answer {
    Read(ReplyData, Vec<u8>),
    Written(ReplyWrite, u32),
}

impl Answer {
    pub(crate) fn give(self) {
        match self {
            Self::Read(reply, data) => reply.data(&data),
            Self::Written(reply, bytes) => reply.written(bytes),
        }
    }
}

/// A time in which nothing is served, from so long after the first transfer on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stall {
    pub(crate) after_ns: u64,
    pub(crate) for_ns: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pace {
    schedule: Schedule,
    /// Answers in the order in which they are due, to a thread that gives them.
    answers: Sender<(u64, Answer)>,
}

impl Pace {
    pub(crate) fn new(servers: usize, service_ns: u64, stall: Option<Stall>) -> Self {
        let (answers, due) = channel::<(u64, Answer)>();
        std::thread::spawn(move || {
            for (due_ns, answer) in due {
                std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(monotonic_ns())));
                answer.give();
            }
        });
        Self { schedule: Schedule::new(servers, service_ns, stall), answers }
    }

    /// Gives an answer to a transfer that arrived at `now_ns`, when it is due.
    pub(crate) fn answer(&mut self, now_ns: u64, answer: Answer) {
        // The thread lives as long as this.
        let _ = self.answers.send((self.schedule.due(now_ns), answer));
    }
}

/// When servers are done.
#[derive(Debug)]
struct Schedule {
    service_ns: u64,
    stall: Option<Stall>,
    first_ns: Option<u64>,
    /// When each server is free.
    free: BinaryHeap<Reverse<u64>>,
}

impl Schedule {
    fn new(servers: usize, service_ns: u64, stall: Option<Stall>) -> Self {
        Self { service_ns, stall, first_ns: None, free: vec![Reverse(0); servers].into() }
    }

    fn due(&mut self, now_ns: u64) -> u64 {
        let first = *self.first_ns.get_or_insert(now_ns);
        let free = self.free.pop().map_or(0, |Reverse(free)| free);
        let mut begin = free.max(now_ns);
        let mut due = begin + self.service_ns;
        if let Some(Stall { after_ns, for_ns }) = self.stall {
            let (from, to) = (first + after_ns, first + after_ns + for_ns);
            if due > from && begin < to {
                begin = begin.max(from);
                due = to + (due - begin).min(self.service_ns);
            }
        }
        self.free.push(Reverse(due));
        due
    }
}

#[test]
fn servers_are_busy_one_transfer_at_a_time_and_rest_once() {
    let stall = Stall { after_ns: 100, for_ns: 1_000 };
    let mut schedule = Schedule::new(2, 10, Some(stall));
    // Two at once, the third and fourth when those are done.
    assert_eq!([0, 0, 0, 1, 50].map(|at| schedule.due(5 + at)), [15, 15, 25, 25, 65]);
    // The stall is from 105 to 1105: one has 6 left at its begin, one arrives in it.
    assert_eq!([101 - 5, 200, 300].map(|at| schedule.due(5 + at)), [1_111, 1_115, 1_121]);
}
