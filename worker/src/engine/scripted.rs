//! An engine for tests: it does what a script says, in the script's own time.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::Receiver,
    },
};

use super::{Engine, Failure, Transfer};
use crate::stamp::Clock;

/// One step of a script.
#[derive(Debug)]
pub(crate) enum Step {
    /// Time goes on by this much and the block has moved.
    Moves(u64),
    /// The same in several goes.
    MovesShort(u64, u32),
    /// Time goes on by this much and the operation has failed.
    Fails(u64, Failure),
    /// The call does not return before the test lets go of the other end.
    Blocks(Receiver<()>),
}

/// A clock that the script moves, and each reading by `tick`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptClock<'a> {
    pub(crate) time: &'a AtomicU64,
    pub(crate) tick: u64,
}

impl Clock for ScriptClock<'_> {
    fn now(&self) -> u64 {
        self.time.fetch_add(self.tick, Ordering::Relaxed)
    }
}

/// The engine.
#[derive(Debug)]
pub struct Scripted {
    steps: VecDeque<Step>,
    flush: (u64, Result<(), Failure>),
    block_bytes: u64,
    time: Arc<AtomicU64>,
    offsets: Vec<u64>,
}

impl Scripted {
    pub(crate) fn new(block_bytes: u64, time: &Arc<AtomicU64>, steps: Vec<Step>) -> Self {
        Self {
            steps: steps.into(),
            flush: (0, Ok(())),
            block_bytes,
            time: Arc::clone(time),
            offsets: Vec::new(),
        }
    }

    pub(crate) fn flushes(mut self, takes: u64, result: Result<(), Failure>) -> Self {
        self.flush = (takes, result);
        self
    }

    /// The offsets that were asked for.
    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    fn pass(&self, ns: u64) {
        self.time.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Engine for Scripted {
    fn transfer(&mut self, offset: u64) -> Transfer {
        self.offsets.push(offset);
        let (takes, shorts, result) = match self.steps.pop_front() {
            Some(Step::Moves(takes)) => (takes, 0, Ok(self.block_bytes)),
            Some(Step::MovesShort(takes, shorts)) => (takes, shorts, Ok(self.block_bytes)),
            Some(Step::Fails(takes, failure)) => (takes, 0, Err(failure)),
            Some(Step::Blocks(released)) => {
                // An error says that the other end is gone, which lets go as well.
                let _ = released.recv();
                (0, 0, Ok(self.block_bytes))
            }
            None => panic!("the script is at its end"),
        };
        self.pass(takes);
        Transfer { shorts, result }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.pass(self.flush.0);
        self.flush.1
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
