//! Failed operations by kind: a small table of fixed size, since a thread must not allocate.

use crate::engine::{Call, Failure, Request};

/// Kinds that have a row of their own.
const KINDS_MAX: usize = 8;

/// Failed operations of one kind of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedKind {
    /// What failed; `Call::Other` in the row of all further kinds.
    pub failure: Failure,
    /// How many.
    pub count: u64,
    /// When the first one failed, in ns after T0.
    pub first_ns: u64,
    /// File of the first one, by its place among the thread's files.
    pub first_file: u32,
    /// Offset of the first one.
    pub first_offset: u64,
    /// Sum of their service times in ns.
    pub sum_ns: u64,
    /// Longest of them.
    pub max_ns: u64,
}

/// Failed operations of one thread.
#[derive(Debug)]
pub struct Failures {
    kinds: Vec<FailedKind>,
}

impl Default for Failures {
    fn default() -> Self {
        Self { kinds: Vec::with_capacity(KINDS_MAX + 1) }
    }
}

impl Failures {
    /// Counts one that was issued at `start` and failed at `end` (ns after T0).
    #[cold]
    pub fn add(&mut self, failure: Failure, start: u64, end: u64, request: &Request) {
        let known = self.kinds.iter().position(|kind| kind.failure == failure);
        let other = Failure { call: Call::Other, errno: 0 };
        let failure = if known.is_some() || self.kinds.len() < KINDS_MAX { failure } else { other };
        let service = end - start;
        match self.kinds.iter_mut().find(|kind| kind.failure == failure) {
            Some(kind) => {
                kind.count += 1;
                kind.sum_ns += service;
                kind.max_ns = kind.max_ns.max(service);
            }
            None => self.kinds.push(FailedKind {
                failure,
                count: 1,
                first_ns: end,
                first_file: request.file,
                first_offset: request.offset,
                sum_ns: service,
                max_ns: service,
            }),
        }
    }

    /// The rows, in the order in which the kinds first came.
    #[must_use]
    pub fn kinds(&self) -> &[FailedKind] {
        &self.kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_kinds_share_a_row() {
        let at = |offset| Request { file: 3, offset, ..Request::NOTHING };
        let mut failures = Failures::default();
        for errno in 1..=10 {
            failures.add(Failure { call: Call::Read, errno }, 10, 30, &at(4_096));
        }
        failures.add(Failure { call: Call::Read, errno: 2 }, 100, 105, &at(0));
        assert_eq!(failures.kinds().len(), 9);
        let second = failures.kinds()[1];
        assert_eq!((second.count, second.sum_ns, second.max_ns), (2, 25, 20));
        assert_eq!((second.first_ns, second.first_file, second.first_offset), (30, 3, 4_096));
        let other = failures.kinds()[8];
        assert_eq!((other.failure.call, other.count), (Call::Other, 2));
    }
}
