//! Engines for tests: they do what a script says, in the script's own time.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::Receiver,
    },
    time::Duration,
};

use super::{Completion, Engine, Failure, Queue, Request, Transfer};
use crate::{io_thread::Control, stamp::Clock};

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
    closes: Result<(), Failure>,
    block_bytes: u64,
    time: Arc<AtomicU64>,
    offsets: Vec<u64>,
    buffer: Vec<u8>,
}

impl Scripted {
    pub(crate) fn new(block_bytes: u64, time: &Arc<AtomicU64>, steps: Vec<Step>) -> Self {
        Self {
            steps: steps.into(),
            flush: (0, Ok(())),
            closes: Ok(()),
            block_bytes,
            time: Arc::clone(time),
            offsets: Vec::new(),
            buffer: vec![0; usize::try_from(block_bytes).unwrap()],
        }
    }

    pub(crate) fn flushes(mut self, takes: u64, result: Result<(), Failure>) -> Self {
        self.flush = (takes, result);
        self
    }

    pub(crate) fn closes(mut self, result: Result<(), Failure>) -> Self {
        self.closes = result;
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
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn perform(&mut self, request: &Request) -> Transfer {
        self.offsets.push(request.offset);
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
        self.closes
    }
}

/// So that a test can look at it afterwards.
impl Engine for &mut Scripted {
    fn buffer(&mut self) -> &mut [u8] {
        (**self).buffer()
    }

    fn perform(&mut self, request: &Request) -> Transfer {
        (**self).perform(request)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        (**self).flush()
    }

    fn close(&mut self) -> Result<(), Failure> {
        (**self).close()
    }
}

/// What a queue does when it is waited for.
#[derive(Debug)]
pub(crate) enum Wave {
    /// After so many ns these operations have moved their blocks, by the order in which they were
    /// handed over, from 0.
    Done(u64, Vec<usize>),
    /// After so many ns one operation has failed.
    Fails(u64, usize, Failure),
    /// Meanwhile the crew is stopped.
    Stopped(Arc<Control>, Box<Self>),
    /// Nothing is complete before the test lets go of the other end; then all is.
    Blocks(Receiver<()>),
}

/// A queue whose operations complete in an order and at times that the script gives.
#[derive(Debug)]
pub struct ScriptedQueue {
    waves: VecDeque<Wave>,
    depth: u32,
    time: Arc<AtomicU64>,
    buffer: Vec<u8>,
    /// All that were put in, by their order, until they complete.
    flying: Vec<Option<(u32, Request)>>,
    /// All that were put in.
    pub(crate) handed: Vec<Request>,
    /// How many were in flight at each wait.
    pub(crate) in_flight: Vec<usize>,
    /// For how long it was waited at most.
    pub(crate) waits: Vec<Option<Duration>>,
}

impl ScriptedQueue {
    pub(crate) fn new(depth: u32, time: &Arc<AtomicU64>, waves: Vec<Wave>) -> Self {
        Self {
            waves: waves.into(),
            depth,
            time: Arc::clone(time),
            buffer: vec![0; 4_096],
            flying: Vec::new(),
            handed: Vec::new(),
            in_flight: Vec::new(),
            waits: Vec::new(),
        }
    }

    fn complete(&mut self, order: usize, failure: Option<Failure>, done: &mut Vec<Completion>) {
        let (slot, request) = self.flying[order].take().expect("it is in flight");
        let result = failure.map_or_else(|| Ok(u64::from(request.bytes)), Err);
        done.push(Completion { slot, transfer: Transfer { shorts: 0, result } });
    }
}

impl Queue for ScriptedQueue {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.buffer
    }

    fn queue(&mut self, slot: u32, request: &Request) {
        let is_free = !self.flying.iter().flatten().any(|(taken, _)| *taken == slot);
        assert!(is_free && slot < self.depth, "slot {slot}");
        self.flying.push(Some((slot, *request)));
        self.handed.push(*request);
    }

    fn submit(&mut self, wait: bool, at_most: Option<Duration>, done: &mut Vec<Completion>) {
        assert!(wait && done.is_empty());
        self.in_flight.push(self.flying.iter().flatten().count());
        self.waits.push(at_most);
        let mut wave = self.waves.pop_front();
        if let Some(Wave::Stopped(control, then)) = wave {
            control.stop();
            wave = Some(*then);
        }
        let pass = |ns| self.time.fetch_add(ns, Ordering::Relaxed);
        match wave {
            Some(Wave::Stopped(..)) => panic!("stopped twice"),
            Some(Wave::Done(takes, orders)) => {
                pass(takes);
                orders.into_iter().for_each(|order| self.complete(order, None, done));
            }
            Some(Wave::Fails(takes, order, failure)) => {
                pass(takes);
                self.complete(order, Some(failure), done);
            }
            Some(Wave::Blocks(released)) => {
                // An error says that the other end is gone, which lets go as well.
                let _ = released.recv();
                for order in 0..self.flying.len() {
                    if self.flying[order].is_some() {
                        self.complete(order, None, done);
                    }
                }
            }
            None => panic!("the script is at its end"),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(&mut self) {}
}

/// So that a test can look at it afterwards.
impl Queue for &mut ScriptedQueue {
    fn depth(&self) -> u32 {
        (**self).depth()
    }

    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        (**self).buffer(slot)
    }

    fn queue(&mut self, slot: u32, request: &Request) {
        (**self).queue(slot, request);
    }

    fn submit(&mut self, wait: bool, at_most: Option<Duration>, done: &mut Vec<Completion>) {
        (**self).submit(wait, at_most, done);
    }

    fn flush(&mut self) -> Result<(), Failure> {
        (**self).flush()
    }

    fn close(&mut self) {
        (**self).close();
    }
}
