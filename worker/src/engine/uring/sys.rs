//! `io_uring_enter` with the ring registered, which the crate can't do for a ring that it does not
//! borrow all the time, and the wait for a kernel that takes no timeout.

use std::{io, os::fd::RawFd, ptr, time::Duration};

/// `IORING_ENTER_GETEVENTS`: takes completions that wait for this thread to come by.
pub(super) const GETEVENTS: u32 = 1;
/// `IORING_ENTER_SQ_WAKEUP`.
pub(super) const SQ_WAKEUP: u32 = 1 << 1;
const EXT_ARG: u32 = 1 << 3;
const REGISTERED_RING: u32 = 1 << 4;

const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct Update {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
struct Arguments {
    signals: u64,
    signals_bytes: u32,
    least_wait_us: u32,
    time: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
struct Time {
    seconds: i64,
    ns: i64,
}

/// The way into a ring.
#[derive(Debug)]
pub(super) struct Door {
    ring: RawFd,
    /// What the calls name the ring by: its registered index, or `ring`.
    name: i64,
    flags: u32,
}

impl Door {
    /// Registers the ring with the calling thread, which saves a look-up per call (Linux 5.18).
    pub(super) fn new(ring: RawFd) -> Self {
        let mut update =
            Update { offset: u32::MAX, reserved: 0, data: u64::from(ring.cast_unsigned()) };
        if register(ring, REGISTER_RING_FDS, &mut update) == 1 {
            Self { ring, name: i64::from(update.offset), flags: REGISTERED_RING }
        } else {
            Self { ring, name: i64::from(ring), flags: 0 }
        }
    }

    /// Takes the registration back: it would keep the ring.
    pub(super) fn close(&mut self) {
        if self.flags & REGISTERED_RING != 0
            && let Ok(offset) = u32::try_from(self.name)
        {
            register(self.ring, UNREGISTER_RING_FDS, &mut Update { offset, reserved: 0, data: 0 });
        }
        (self.name, self.flags) = (-1, 0);
    }

    /// Hands over `count` submissions and waits for `want` completions; how many were taken.
    #[inline]
    pub(super) fn enter(&self, count: u32, want: u32, flags: u32) -> Result<u32, i32> {
        self.call(count, want, flags, ptr::null(), 0)
    }

    /// The same, waiting at most `at_most`.
    pub(super) fn enter_timed(
        &self,
        count: u32,
        want: u32,
        flags: u32,
        at_most: Duration,
    ) -> Result<u32, i32> {
        let time = Time {
            seconds: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            ns: i64::from(at_most.subsec_nanos()),
        };
        let arguments = Arguments {
            signals: 0,
            signals_bytes: 0,
            least_wait_us: 0,
            time: (&raw const time).addr() as u64,
        };
        let bytes = size_of::<Arguments>();
        self.call(count, want, flags | EXT_ARG, &raw const arguments, bytes)
    }

    #[inline]
    fn call(
        &self,
        count: u32,
        want: u32,
        flags: u32,
        arguments: *const Arguments,
        bytes: usize,
    ) -> Result<u32, i32> {
        // SAFETY: `arguments` is null or points to `bytes` bytes that live through the call, and
        // so does the time that it points to. What the submissions point to is the ring's affair.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.name,
                count,
                want,
                flags | self.flags,
                arguments,
                bytes,
            )
        };
        u32::try_from(result).map_err(|_| errno())
    }

    /// Waits until a completion is there, at most `at_most`.
    #[cold]
    pub(super) fn poll(&self, at_most: Duration) {
        let mut ring = libc::pollfd { fd: self.ring, events: libc::POLLIN, revents: 0 };
        let time = libc::timespec {
            tv_sec: libc::time_t::try_from(at_most.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        // SAFETY: both structs live through the call. An error is as good as a timeout.
        let _ = unsafe { libc::ppoll(&raw mut ring, 1, &raw const time, ptr::null()) };
    }
}

fn register(ring: RawFd, operation: u32, update: &mut Update) -> i64 {
    // SAFETY: the struct is the one that both operations take, once.
    unsafe {
        libc::syscall(libc::SYS_io_uring_register, ring, operation, ptr::from_mut(update), 1_u32)
    }
}

/// Why the last call failed.
#[cold]
fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
