//! The four system calls of Linux AIO, and the ring of completions that they share with a process.

use std::{
    io, mem, ptr,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// `IOCB_CMD_PREAD`.
pub(super) const PREAD: u16 = 0;
/// `IOCB_CMD_PWRITE`.
pub(super) const PWRITE: u16 = 1;
/// `IOCB_CMD_FSYNC` (4.18): what `fsync` does.
pub(super) const FSYNC: u16 = 2;

/// `AIO_RING_MAGIC`.
const MAGIC: u32 = 0xa10a_10a1;

/// `struct iocb`. The two fields that change places with the byte order are both 0.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Iocb {
    pub(super) data: u64,
    pub(super) key: u32,
    pub(super) flags_of_call: u32,
    pub(super) opcode: u16,
    pub(super) priority: i16,
    pub(super) file: i32,
    pub(super) buffer: u64,
    pub(super) bytes: u64,
    pub(super) offset: i64,
    pub(super) reserved: u64,
    pub(super) flags: u32,
    pub(super) eventfd: u32,
}

/// `struct io_event`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Event {
    pub(super) data: u64,
    iocb: u64,
    /// Bytes moved, or a negative errno.
    pub(super) result: i64,
    result2: i64,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<Event>() == 32);

/// `struct aio_ring`, which the events follow.
#[repr(C)]
struct Ring {
    id: u32,
    events: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_bytes: u32,
}

/// An `aio_context_t`.
#[derive(Debug)]
pub(super) struct Context {
    /// 0: none.
    id: libc::c_ulong,
    /// Null where the ring is not to be touched.
    ring: *const Ring,
    /// Events that the ring has room for.
    events: u32,
}

impl Context {
    /// Room for `depth` operations in flight.
    pub(super) fn new(depth: u32) -> Result<Self, i32> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes the id and nothing else.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut id) };
        if result != 0 {
            return Err(errno());
        }
        let mut context = Self { id, ring: ptr::null(), events: 0 };
        #[expect(clippy::cast_possible_truncation, reason = "as wide as an address on Linux")]
        let ring: *const Ring = ptr::with_exposed_provenance(id as usize);
        // SAFETY: an id is the address of the ring, which is mapped as long as there is the
        // context; this is what the C library relies upon. The fields read here never change.
        let (known, events) = unsafe {
            let known = (*ring).magic == MAGIC
                && (*ring).incompatible == 0
                && (*ring).header_bytes as usize == size_of::<Ring>();
            (known, (*ring).events)
        };
        if known && events > 0 {
            (context.ring, context.events) = (ring, events);
        }
        Ok(context)
    }

    /// Whether completions can be taken from the ring.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        !self.ring.is_null()
    }

    /// From now on completions are taken by system calls alone.
    #[cfg(test)]
    pub(super) fn unshare(&mut self) {
        self.ring = ptr::null();
    }

    /// Hands over requests; how many of them were taken. An error is about the first.
    #[inline]
    pub(super) fn submit(&self, requests: &mut [*mut Iocb]) -> Result<u32, i32> {
        // SAFETY: each pointer leads to a request that lives through the call, and the kernel
        // keeps none of them. Their buffers live until `destroy` has returned.
        let result = unsafe {
            libc::syscall(libc::SYS_io_submit, self.id, requests.len(), requests.as_mut_ptr())
        };
        match u32::try_from(result) {
            Ok(0) => Err(libc::EIO),
            Ok(count) => Ok(count),
            Err(_) => Err(errno()),
        }
    }

    /// The next completion in the ring.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Event> {
        if self.ring.is_null() {
            return None;
        }
        // SAFETY: the ring is mapped until `destroy`, which makes it null. Only this thread moves
        // the head; the kernel has written all events before the tail that it has published.
        unsafe {
            let head = (*self.ring).head.load(Ordering::Relaxed);
            if head >= self.events || head == (*self.ring).tail.load(Ordering::Acquire) {
                return None;
            }
            let events: *const Event = self.ring.add(1).cast();
            let event = events.add(head as usize).read();
            let next = if head + 1 == self.events { 0 } else { head + 1 };
            // The kernel may write into the place only after the event was read.
            (*self.ring).head.store(next, Ordering::Release);
            Some(event)
        }
    }

    /// Takes at least `least` completions, or fewer after `at_most`; how many there are.
    pub(super) fn events(
        &self,
        least: u32,
        events: &mut [Event],
        at_most: Option<Duration>,
    ) -> Result<usize, i32> {
        let time = at_most.map(|time| libc::timespec {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        // SAFETY: the kernel writes as many events as there is room for, and reads the time.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.id,
                libc::c_long::from(least),
                events.len(),
                events.as_mut_ptr(),
                time.as_ref().map_or(ptr::null(), ptr::from_ref),
            )
        };
        usize::try_from(result).map(|count| count.min(events.len())).map_err(|_| errno())
    }

    /// Waits until nothing is in flight, and gives the context back.
    pub(super) fn destroy(&mut self) {
        self.ring = ptr::null();
        let id = mem::take(&mut self.id);
        if id != 0 {
            // SAFETY: the context is there and its ring is not looked at any more. There is
            // nothing to be done about a failure, which would mean that it is not there.
            let _ = unsafe { libc::syscall(libc::SYS_io_destroy, id) };
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.destroy();
    }
}

/// Why the last call failed.
#[cold]
fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
