//! The engine `io_uring`: reads and writes that the kernel carries out while others are queued.
//!
//! One system call hands over all that was queued and waits for the first completion; whatever is
//! complete by then is taken without another. Buffers, files and the ring itself are registered
//! where the kernel lets them be. Of the setup flags that lower the cost the kernel's best are
//! taken. A ring belongs to the thread that made it, which the type holds to (it is not `Send`).
//!
//! Reads of what the page cache has are complete when the system call that queued them is. With
//! `sqpoll` the work is done by a kernel thread, whose CPU time is not this thread's.

use std::{
    fmt, mem,
    os::fd::AsRawFd,
    sync::atomic::{Ordering, fence},
    time::Duration,
};

use io_uring::{IoUring, opcode, squeue, types};
use iofleet_shared::clock::monotonic_ns;

pub use setup::probe;

use super::{
    Completion, EngineError, Failure, Queue, QueueSetup, Request,
    slots::{Ask, AskKind, Slots},
};

mod setup;
mod sys;
#[cfg(test)]
mod tests;

/// How often the kernel is asked again that has no memory for a request, with none in flight whose
/// end would free some.
const TRIES: u32 = 1_000;

/// What the kernel registered: without it each operation costs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// Buffers, which otherwise are looked up (and with direct I/O pinned) for each operation.
    pub buffers: bool,
    /// Files, which otherwise are looked up for each operation.
    pub files: bool,
}

/// Reads and writes through `io_uring`.
pub struct Uring {
    slots: Slots,
    ring: Option<IoUring>,
    door: sys::Door,
    registered: Registered,
    sqpoll: bool,
    iopoll: bool,
    /// The kernel takes a timeout with the wait (5.11).
    timed: bool,
    /// In the submission queue.
    pending: u32,
    /// Taken by the kernel, completion not seen yet.
    in_flight: u32,
    /// The errno of a call that should not fail; nothing works after it.
    broken: Option<i32>,
}

impl Registered {
    /// What people should know of it; none where all is registered.
    #[must_use]
    pub fn remark(self) -> Option<String> {
        let what = match (self.buffers, self.files) {
            (true, true) => return None,
            (false, true) => "buffers",
            (true, false) => "files",
            (false, false) => "buffers and files",
        };
        Some(format!(
            "io_uring: the kernel did not register {what} (limit of locked memory?), which costs \
             some CPU time per operation"
        ))
    }
}

impl Uring {
    /// A queue of the calling thread, which alone may use it.
    ///
    /// # Errors
    /// When the kernel has no `io_uring` or forbids it, when an option can't be had, or when there
    /// is no memory.
    pub fn new(setup: QueueSetup) -> Result<Self, EngineError> {
        setup::check(&setup)?;
        let slots = Slots::new(&setup)?;
        let ring = setup::open(setup.depth, setup.sqpoll, setup.iopoll)?;
        setup::check_operations(&ring)?;
        let registered = Registered {
            buffers: setup::register_buffers(&ring, &slots),
            files: setup::register_files(&ring, slots.files()),
        };
        if setup.sqpoll && !registered.files && !ring.params().is_feature_sqpoll_nonfixed() {
            return Err(EngineError::Sqpoll {
                source: std::io::Error::other("no file registered"),
            });
        }
        let mut queue = Self {
            door: sys::Door::new(ring.as_raw_fd()),
            registered,
            sqpoll: setup.sqpoll,
            iopoll: setup.iopoll,
            timed: ring.params().is_feature_ext_arg(),
            ring: Some(ring),
            slots,
            pending: 0,
            in_flight: 0,
            broken: None,
        };
        if setup.iopoll {
            queue.try_poll(setup.alignment)?;
        }
        Ok(queue)
    }

    /// What the kernel registered.
    #[must_use]
    pub fn registered(&self) -> Registered {
        self.registered
    }

    /// As where the kernel takes no timeout.
    #[cfg(test)]
    pub(crate) fn without_timeout(&mut self) {
        self.timed = false;
    }

    /// Puts what a slot needs next into the submission queue.
    #[inline]
    fn put(
        slots: &Slots,
        registered: Registered,
        queue: &mut squeue::SubmissionQueue<'_>,
        slot: u32,
    ) -> bool {
        let Some(ask) = slots.ask(slot) else {
            return false;
        };
        let entry = entry(&ask, slots, registered, slot);
        // SAFETY: the buffer stays mapped and the file open until `drain` has seen the completion
        // of everything that was queued.
        unsafe { queue.push(&entry) }.is_ok()
    }

    /// Takes what is complete.
    #[inline]
    fn reap(&mut self, done: &mut Vec<Completion>) {
        let Some(ring) = &mut self.ring else {
            return;
        };
        let (_, mut submissions, completions) = ring.split();
        for completion in completions {
            self.in_flight = self.in_flight.saturating_sub(1);
            let Ok(slot) = u32::try_from(completion.user_data()) else {
                continue;
            };
            let mut transfer = self.slots.answer(slot, i64::from(completion.result()));
            if transfer.is_none() {
                if Self::put(&self.slots, self.registered, &mut submissions, slot) {
                    self.pending += 1;
                } else {
                    transfer = self.slots.answer(slot, -i64::from(libc::EBUSY));
                }
            }
            if let Some(transfer) = transfer {
                done.push(Completion { slot, transfer });
            }
        }
    }

    /// Hands over what is pending and waits for `want` completions (0 or 1).
    #[inline]
    fn enter(&mut self, want: u32, at_most: Option<Duration>) -> Result<(), i32> {
        let mut flags = sys::GETEVENTS;
        if self.sqpoll {
            // Order this thread's new tail before the flag that the kernel thread sets before it
            // looks at the tail for the last time.
            fence(Ordering::SeqCst);
            let asleep = self
                .ring
                .as_mut()
                .is_some_and(|ring| ring.submission().need_wakeup_after_intermittent_seqcst());
            if asleep {
                flags |= sys::SQ_WAKEUP;
            } else if want == 0 && !self.iopoll {
                self.taken(self.pending);
                return Ok(());
            }
        }
        let taken = match at_most.filter(|_| want > 0) {
            None => self.door.enter(self.pending, want, flags)?,
            Some(at_most) if self.timed && !self.iopoll => {
                self.door.enter_timed(self.pending, want, flags, at_most)?
            }
            Some(at_most) => {
                let taken = self.door.enter(self.pending, 0, flags)?;
                // A polled ring tells nobody: the caller comes again.
                if !self.iopoll
                    && taken == self.pending
                    && self.ring.as_mut().is_some_and(|ring| ring.completion().is_empty())
                {
                    self.door.poll(at_most);
                    // What ended meanwhile may wait for this thread to come by.
                    self.door.enter(0, 0, flags)?;
                }
                taken
            }
        };
        self.taken(taken);
        Ok(())
    }

    #[inline]
    fn taken(&mut self, count: u32) {
        let count = count.min(self.pending);
        self.pending -= count;
        self.in_flight += count;
    }

    /// Gives up: every operation failed with `errno`, and those to come will.
    #[cold]
    fn break_down(&mut self, errno: i32, done: &mut Vec<Completion>) {
        self.slots.fail_all(errno, done);
        self.broken = Some(errno);
        self.in_flight += mem::take(&mut self.pending);
    }

    /// The kernel has no room for requests at the moment: waits until one is complete, if any is
    /// in flight. False when there is no use in trying again.
    #[cold]
    fn make_room(&mut self, tries: &mut u32, wait: bool, at_most: Option<Duration>) -> bool {
        *tries += 1;
        if self.in_flight == 0 {
            rustix::thread::sched_yield();
            return *tries < TRIES;
        }
        let pending = mem::take(&mut self.pending);
        // Whatever is wrong shows when the rest is handed over.
        let _ = self.enter(u32::from(wait), at_most);
        self.pending = pending;
        true
    }

    /// Waits for all that the kernel has. What it has not been told of is dropped.
    fn drain(&mut self) {
        let in_kernel = if self.sqpoll { mem::take(&mut self.pending) } else { 0 };
        self.in_flight += in_kernel;
        self.pending = 0;
        while self.in_flight > 0 && self.broken.is_none() {
            match self.enter(1, None) {
                Ok(()) | Err(libc::EINTR | libc::EAGAIN | libc::EBUSY) => {}
                Err(errno) => self.broken = Some(errno),
            }
            if let Some(ring) = &mut self.ring {
                for _ in ring.completion() {
                    self.in_flight = self.in_flight.saturating_sub(1);
                }
            }
        }
        if self.in_flight > 0 {
            // The kernel may still write into the buffers.
            self.slots.leak();
        }
    }

    /// Whether the first file can be polled at all, found by asking for as little as possible.
    fn try_poll(&mut self, alignment: usize) -> Result<(), EngineError> {
        let Some(ask) = setup::least(&self.slots, alignment) else {
            return Ok(());
        };
        let call = |errno| EngineError::Call {
            call: "io_uring_enter",
            source: std::io::Error::from_raw_os_error(errno),
        };
        let entry = entry(&ask, &self.slots, self.registered, 0);
        let Some(ring) = &mut self.ring else {
            return Ok(());
        };
        // SAFETY: as in `put`; the completion is waited for below, or in `drain`.
        let pushed = unsafe { ring.submission().push(&entry) };
        pushed.map_err(|_| call(libc::EBUSY))?;
        self.pending += 1;
        loop {
            match self.enter(1, None) {
                Ok(()) | Err(libc::EINTR | libc::EAGAIN) => {}
                Err(errno) => return Err(call(errno)),
            }
            let answer = self.ring.as_mut().and_then(|ring| ring.completion().next());
            if let Some(answer) = answer {
                self.in_flight = 0;
                return if answer.result() == -libc::EOPNOTSUPP {
                    Err(EngineError::IopollUnsupported)
                } else {
                    Ok(())
                };
            }
        }
    }
}

impl Queue for Uring {
    fn depth(&self) -> u32 {
        self.slots.depth()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.slots.buffer(slot)
    }

    #[inline]
    fn queue(&mut self, slot: u32, request: &Request) {
        let Some(ring) = self.ring.as_mut().filter(|_| self.broken.is_none()) else {
            self.slots.refuse(slot, request, self.broken.unwrap_or(libc::EBADF));
            return;
        };
        if !self.slots.take(slot, request) {
            return;
        }
        if Self::put(&self.slots, self.registered, &mut ring.submission(), slot) {
            self.pending += 1;
        } else {
            self.slots.answer(slot, -i64::from(libc::EBUSY));
            self.slots.refuse(slot, request, libc::EBUSY);
        }
    }

    /// With nothing in flight it returns at once, unless `at_most` is given: then it waits for
    /// that time.
    #[inline]
    fn submit(&mut self, wait: bool, at_most: Option<Duration>, done: &mut Vec<Completion>) {
        self.slots.give_refused(done);
        let mut wait = wait;
        let mut tries = 0;
        let until = at_most.filter(|_| self.iopoll).map_or(0, later);
        loop {
            let want = wait && done.is_empty();
            let idle = self.pending == 0 && self.in_flight == 0;
            if self.broken.is_some() || (idle && !(want && at_most.is_some())) {
                return;
            }
            let result = self.enter(u32::from(want), at_most);
            self.reap(done);
            match result {
                Ok(()) | Err(libc::EINTR | libc::ETIME) => {}
                Err(libc::EAGAIN | libc::EBUSY) => {
                    let want = want && done.is_empty();
                    if !self.make_room(&mut tries, want, at_most) {
                        self.break_down(libc::EAGAIN, done);
                        return;
                    }
                    self.reap(done);
                    if !wait || !done.is_empty() || at_most.is_some() {
                        return;
                    }
                }
                Err(errno) => {
                    self.break_down(errno, done);
                    return;
                }
            }
            if at_most.is_some() && (until == 0 || monotonic_ns() >= until) {
                wait = false;
            }
            if self.pending == 0 && !(wait && done.is_empty()) {
                return;
            }
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.slots.flush()
    }

    fn close(&mut self) {
        self.drain();
        if let Some(ring) = self.ring.take() {
            // Files that are registered when a ring goes away are let go of some time later.
            if self.registered.files {
                let _ = ring.submitter().unregister_files();
            }
            self.door.close();
        }
        self.slots.close();
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Uring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Uring")
            .field("depth", &self.slots.depth())
            .field("registered", &self.registered)
            .field("pending", &self.pending)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

/// The submission for what a slot needs next.
#[inline]
fn entry(ask: &Ask, slots: &Slots, registered: Registered, slot: u32) -> squeue::Entry {
    let Ask { kind, buffer, bytes, offset, .. } = *ask;
    let file = types::Fd(if registered.files {
        ask.file.cast_signed()
    } else {
        slots.files().get(ask.file as usize).map_or(-1, AsRawFd::as_raw_fd)
    });
    // A queue has fewer slots than that; this one could not be registered otherwise.
    let index = u16::try_from(slot).unwrap_or(u16::MAX);
    let entry = match (kind, registered.buffers) {
        (AskKind::Read, true) => {
            opcode::ReadFixed::new(file, buffer, bytes, index).offset(offset).build()
        }
        (AskKind::Read, false) => opcode::Read::new(file, buffer, bytes).offset(offset).build(),
        (AskKind::Write, true) => {
            opcode::WriteFixed::new(file, buffer, bytes, index).offset(offset).build()
        }
        (AskKind::Write, false) => opcode::Write::new(file, buffer, bytes).offset(offset).build(),
        (AskKind::Fsync, _) => opcode::Fsync::new(file).build(),
    };
    let entry = entry.user_data(slot.into());
    if registered.files { entry.flags(squeue::Flags::FIXED_FILE) } else { entry }
}

/// `CLOCK_MONOTONIC` in `time` from now, ns.
fn later(time: Duration) -> u64 {
    monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
