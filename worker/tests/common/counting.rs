//! The system's allocator, with a count of each thread's calls and the times of the first of them.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use iofleet_shared::clock::monotonic_ns;

/// Calls of which the times are kept.
const KEPT: usize = 256;

/// See the module.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static TIMES: [Cell<u64>; KEPT] = const { [const { Cell::new(0) }; KEPT] };
}

/// Calls of this thread since its count was set to 0.
pub(crate) fn calls() -> usize {
    CALLS.get()
}

/// Sets this thread's count: to 0, or back to what it was before calls that are not to count.
pub(crate) fn count_from(calls: usize) {
    CALLS.set(calls);
}

/// Calls of this thread between two times of the monotonic clock, since its count was set to 0.
pub(crate) fn calls_between(from_ns: u64, to_ns: u64) -> usize {
    assert!(CALLS.get() <= KEPT, "{} calls", CALLS.get());
    let is_between = |time: &&Cell<u64>| (from_ns..to_ns).contains(&time.get());
    TIMES.with(|times| times[..CALLS.get()].iter().filter(is_between).count())
}

fn count() {
    let at = CALLS.replace(CALLS.get() + 1);
    TIMES.with(|times| {
        if let Some(time) = times.get(at) {
            time.set(monotonic_ns());
        }
    });
}

// SAFETY: every call is passed on as it came; counting touches only numbers of this thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
