//! The engine `libaio`: Linux AIO by its system calls, without the C library.
//!
//! One system call hands over all that was queued. Completions are taken from the ring that the
//! kernel shares, where it has the known layout; only waiting for one takes another call.
//!
//! Without direct I/O the kernel carries reads and writes out inside the call that hands them over,
//! one after the other: see [`Libaio::is_asynchronous`].

use std::{io, os::fd::AsRawFd, time::Duration};

use sys::{Context, Event, Iocb};

use super::{
    Completion, EngineError, Failure, Queue, QueueSetup, Request,
    slots::{Ask, AskKind, Slots},
};

mod sys;
#[cfg(test)]
mod tests;

/// How often the kernel is asked again that has no room for a request, with none in flight whose
/// end would make some.
const TRIES: u32 = 1_000;

/// What the kernel said about what it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// Each request was taken or has failed.
    All,
    /// There is room for the rest once something is complete.
    Some,
}

/// Reads and writes through Linux AIO.
#[derive(Debug)]
pub struct Libaio {
    context: Context,
    slots: Slots,
    /// By slot.
    iocbs: Box<[Iocb]>,
    /// Slots to be handed over, in the order in which they were queued, and their requests.
    pending: Vec<u32>,
    requests: Vec<*mut Iocb>,
    /// Where `io_getevents` puts what is complete.
    events: Box<[Event]>,
    in_flight: u32,
    /// Why nothing works any more: it was closed, or a call failed that should not.
    broken: Option<i32>,
}

/// Whether the kernel has Linux AIO, and room for one more queue of `depth`.
///
/// # Errors
/// What is in the way, and what would be right.
pub fn probe(depth: u32) -> Result<(), EngineError> {
    let context = Context::new(depth);
    context.map(|mut context| context.destroy()).map_err(|errno| refusal(errno, depth))
}

impl Libaio {
    /// A queue of the calling thread.
    ///
    /// # Errors
    /// When the kernel has no Linux AIO or no room for another queue, when an option can't be had,
    /// or when there is no memory.
    pub fn new(setup: QueueSetup) -> Result<Self, EngineError> {
        for (asked, option) in [(setup.sqpoll, "sqpoll"), (setup.iopoll, "iopoll")] {
            if asked {
                return Err(EngineError::Option { option, engine: "libaio" });
            }
        }
        let slots = Slots::new(&setup)?;
        let depth = setup.depth as usize;
        let context = Context::new(setup.depth).map_err(|errno| refusal(errno, setup.depth))?;
        let mut queue = Self {
            context,
            slots,
            iocbs: vec![Iocb::default(); depth].into(),
            pending: Vec::with_capacity(depth),
            requests: Vec::with_capacity(depth),
            events: vec![Event::default(); depth].into(),
            in_flight: 0,
            broken: None,
        };
        if setup.fsync_each {
            queue.try_fsync()?;
        }
        Ok(queue)
    }

    /// Whether operations are in flight beside each other. Without direct I/O each is complete
    /// before the next is begun, all of them while they are handed over, and the depth decides on
    /// nothing but the number of calls.
    #[must_use]
    pub fn is_asynchronous(direct: bool) -> bool {
        direct
    }

    /// Whether completions are taken without a system call.
    #[cfg(test)]
    pub(crate) fn reaps_in_user_space(&self) -> bool {
        self.context.is_shared()
    }

    /// As where the ring is not known.
    #[cfg(test)]
    pub(crate) fn unshare(&mut self) {
        self.context.unshare();
    }

    /// Puts what a slot needs next to what is to be handed over.
    #[inline]
    fn put(&mut self, slot: u32) {
        let Some(ask) = self.slots.ask(slot) else {
            return;
        };
        let Some(iocb) = self.iocbs.get_mut(slot as usize) else {
            return;
        };
        *iocb = request(&ask, &self.slots, slot);
        // Both have room for each slot once, and a slot has one request at a time.
        self.pending.push(slot);
        self.requests.push(iocb);
    }

    /// Hands over what is pending. What the kernel would not take has failed.
    #[inline]
    fn hand_over(&mut self, done: &mut Vec<Completion>) -> Given {
        let mut given = 0;
        let mut tries = 0;
        while given < self.requests.len() {
            match self.context.submit(&mut self.requests[given..]) {
                Ok(count) => {
                    given += count as usize;
                    self.in_flight += count;
                }
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) if self.in_flight > 0 => break,
                Err(libc::EAGAIN) if tries < TRIES => {
                    tries += 1;
                    rustix::thread::sched_yield();
                }
                Err(errno) => {
                    // The kernel stopped at the first one, which it did not take.
                    let slot = self.pending[given];
                    given += 1;
                    if let Some(transfer) = self.slots.answer(slot, -i64::from(errno)) {
                        done.push(Completion { slot, transfer });
                    }
                }
            }
        }
        if given == self.requests.len() {
            self.pending.clear();
            self.requests.clear();
            return Given::All;
        }
        self.pending.drain(..given);
        self.requests.drain(..given);
        Given::Some
    }

    #[inline]
    fn complete(&mut self, event: Event, done: &mut Vec<Completion>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Ok(slot) = u32::try_from(event.data) else {
            return;
        };
        match self.slots.answer(slot, event.result) {
            Some(transfer) => done.push(Completion { slot, transfer }),
            None => self.put(slot),
        }
    }

    /// Takes what is complete.
    #[inline]
    fn reap(&mut self, done: &mut Vec<Completion>) {
        if !self.context.is_shared() {
            if self.in_flight > 0 {
                self.get_events(0, Some(Duration::ZERO), done);
            }
            return;
        }
        while let Some(event) = self.context.next() {
            self.complete(event, done);
        }
    }

    /// Takes what is complete once that is at least `least`, or `at_most` has passed.
    fn get_events(&mut self, least: u32, at_most: Option<Duration>, done: &mut Vec<Completion>) {
        match self.context.events(least, &mut self.events, at_most) {
            Ok(count) => {
                for at in 0..count {
                    self.complete(self.events[at], done);
                }
            }
            Err(libc::EINTR) => {}
            Err(errno) => {
                self.slots.fail_all(errno, done);
                self.pending.clear();
                self.requests.clear();
                self.broken = Some(errno);
            }
        }
    }

    /// Whether the kernel takes an fsync for the first file, found by asking for one.
    fn try_fsync(&mut self) -> Result<(), EngineError> {
        let Some(file) = self.slots.files().first() else {
            return Ok(());
        };
        let error = |errno| EngineError::AioFsync { source: io::Error::from_raw_os_error(errno) };
        let mut iocb = Iocb { opcode: sys::FSYNC, file: file.as_raw_fd(), ..Iocb::default() };
        self.context.submit(&mut [&raw mut iocb]).map_err(error)?;
        loop {
            match self.context.events(1, &mut self.events, None) {
                Ok(0) | Err(libc::EINTR) => {}
                Ok(_) => break,
                Err(errno) => return Err(error(errno)),
            }
        }
        match i32::try_from(self.events[0].result) {
            Ok(errno) if errno < 0 => Err(error(-errno)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl Queue for Libaio {
    fn depth(&self) -> u32 {
        self.slots.depth()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.slots.buffer(slot)
    }

    #[inline]
    fn queue(&mut self, slot: u32, request: &Request) {
        if let Some(errno) = self.broken {
            self.slots.refuse(slot, request, errno);
        } else if self.slots.take(slot, request) {
            self.put(slot);
        }
    }

    /// With nothing in flight it returns at once, unless `at_most` is given: then it waits for
    /// that time.
    #[inline]
    fn submit(&mut self, wait: bool, at_most: Option<Duration>, done: &mut Vec<Completion>) {
        self.slots.give_refused(done);
        let mut wait = wait;
        while self.broken.is_none() {
            let given = self.hand_over(done);
            self.reap(done);
            if given == Given::All && !self.pending.is_empty() {
                continue;
            }
            if !(wait && done.is_empty()) || (self.in_flight == 0 && at_most.is_none()) {
                return;
            }
            self.get_events(1, at_most, done);
            wait &= at_most.is_none();
            if self.pending.is_empty() && !(wait && done.is_empty()) {
                return;
            }
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.slots.flush()
    }

    /// Waits for what is in flight.
    fn close(&mut self) {
        self.context.destroy();
        self.pending.clear();
        self.requests.clear();
        self.broken = Some(libc::EBADF);
        self.slots.close();
    }
}

impl Drop for Libaio {
    fn drop(&mut self) {
        self.close();
    }
}

/// The kernel's form of what a slot needs next.
#[inline]
fn request(ask: &Ask, slots: &Slots, slot: u32) -> Iocb {
    let file = slots.files().get(ask.file as usize).map_or(-1, AsRawFd::as_raw_fd);
    let iocb = Iocb { data: slot.into(), file, ..Iocb::default() };
    let opcode = match ask.kind {
        AskKind::Read => sys::PREAD,
        AskKind::Write => sys::PWRITE,
        AskKind::Fsync => return Iocb { opcode: sys::FSYNC, ..iocb },
    };
    Iocb {
        opcode,
        buffer: ask.buffer.expose_provenance() as u64,
        bytes: ask.bytes.into(),
        offset: ask.offset.cast_signed(),
        ..iocb
    }
}

/// Why there is no queue for `depth` operations.
fn refusal(errno: i32, depth: u32) -> EngineError {
    let setting = |name: &str| {
        let text = std::fs::read_to_string(name).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    match errno {
        libc::EAGAIN => {
            let (limit, used) =
                (setting("/proc/sys/fs/aio-max-nr"), setting("/proc/sys/fs/aio-nr"));
            EngineError::AioLimit { depth, limit, used, needed: used + u64::from(depth) }
        }
        libc::ENOSYS => EngineError::NoAio,
        _ => EngineError::Call { call: "io_setup", source: io::Error::from_raw_os_error(errno) },
    }
}
