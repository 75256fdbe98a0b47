//! Memory of buffers: where it lies (a NUMA node) and in which pages.

use std::{ffi::c_void, io, ptr};

use iofleet_shared::work::Placement;
use rustix::{
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap_anonymous, munmap},
};

use crate::fault::Guard;

/// Least alignment of a buffer, and the step in which it is touched.
pub(crate) const PAGE: usize = 4_096;

/// A huge page: the size that all supported processors have.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// NUMA nodes that can be named, which is what kernels are built for at most.
const NODES_MAX: u32 = 1_024;

/// Where a buffer is to lie. By default, where the kernel likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryPlace {
    /// In reserved huge pages (of 2 MiB), each buffer in its own.
    pub huge_pages: bool,
    /// On this NUMA node alone.
    pub numa_node: Option<u32>,
}

impl MemoryPlace {
    /// Where the buffers of the thread with this place on its worker (from 0) are to lie.
    #[must_use]
    pub fn of(placement: &Placement, index: usize) -> Self {
        let nodes = placement.numa_nodes.as_deref().unwrap_or_default();
        let numa_node = index.checked_rem(nodes.len()).and_then(|at| nodes.get(at)).copied();
        Self { huge_pages: placement.huge_pages, numa_node }
    }

    /// Size of its pages in bytes.
    const fn page(&self) -> usize {
        if self.huge_pages { HUGE_PAGE } else { PAGE }
    }

    /// Bytes that are mapped for a buffer, whole pages; none where the sizes make no sense:
    /// `length` is 0, `alignment` is not a power of two, or both together are too much.
    pub(crate) fn mapped(&self, length: usize, alignment: usize) -> Option<usize> {
        let slack = if alignment > self.page() { alignment } else { 0 };
        length
            .checked_add(slack)
            .filter(|_| length > 0 && alignment.is_power_of_two())?
            .checked_next_multiple_of(self.page())
    }
}

/// Private memory of its owner, zeros at first.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut c_void,
    length: usize,
}

impl Mapping {
    /// `length` bytes at `place`, whole pages of it. Huge pages are in memory already; others are
    /// still to be touched.
    ///
    /// # Errors
    /// When the kernel gives no such memory; the text says what is missing.
    pub(crate) fn new(length: usize, place: &MemoryPlace) -> io::Result<Self> {
        let mut flags = MapFlags::PRIVATE;
        if place.huge_pages {
            flags |= MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        }
        // SAFETY: a new private mapping at an address of the kernel's choice touches nothing.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags)
        };
        let mapping = Self { start: start.map_err(|error| refused(error, place))?, length };
        if let Some(node) = place.numa_node {
            // Before any page is there, since pages do not move afterwards.
            mapping.bind(node)?;
        }
        if place.huge_pages {
            mapping.populate(place)?;
        }
        Ok(mapping)
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.cast()
    }

    /// `mbind` to one node.
    fn bind(&self, node: u32) -> io::Result<()> {
        let mut nodes = [0_u64; NODES_MAX as usize / 64];
        let word = nodes.get_mut((node / 64) as usize).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (node % 64);
        // The kernel takes one bit fewer than it is told.
        let bits = libc::c_ulong::from(NODES_MAX) + 1;
        // SAFETY: the range is this mapping, and the mask has as many bits as are read.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.start,
                self.length,
                libc::c_long::from(libc::MPOL_BIND),
                nodes.as_ptr(),
                bits,
                0 as libc::c_long,
            )
        };
        if result == 0 { Ok(()) } else { Err(unbound(&io::Error::last_os_error(), node)) }
    }

    /// Touches each huge page. A node or a control group may have none left though the kernel has
    /// promised them; that is SIGBUS.
    fn populate(&self, place: &MemoryPlace) -> io::Result<()> {
        let guard = Guard::install()?;
        for offset in (0..self.length).step_by(HUGE_PAGE) {
            // SAFETY: one byte of this mapping, which nothing refers to yet.
            let touched =
                unsafe { guard.copy(self.start().wrapping_add(offset), &raw const ZERO, 1) };
            touched.map_err(|_| refused(Errno::NOMEM, place))?;
        }
        Ok(())
    }
}

static ZERO: u8 = 0;

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, whole, and nothing refers to it any more.
        // Failure would mean that it was not mapped; there is nothing to be done about it.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}

fn refused(error: Errno, place: &MemoryPlace) -> io::Error {
    let error = io::Error::from(error);
    let text = match (place.huge_pages, place.numa_node) {
        (true, None) => format!("no memory in huge pages of 2 MiB (see vm.nr_hugepages): {error}"),
        (true, Some(node)) => {
            format!("no memory in huge pages of 2 MiB on NUMA node {node}: {error}")
        }
        (false, _) => return error,
    };
    io::Error::new(error.kind(), text)
}

fn unbound(error: &io::Error, node: u32) -> io::Error {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => " (containers need CAP_SYS_NICE, or a seccomp profile that allows it)",
        Some(libc::EINVAL) => " (not a node with memory that this process may use)",
        Some(libc::ENOSYS) => " (this kernel was built without NUMA)",
        _ => "",
    };
    let text = format!("can't bind memory to NUMA node {node}: mbind: {error}{hint}");
    io::Error::new(error.kind(), text)
}

/// The node that the page at an address is on, which must be in memory.
#[cfg(test)]
pub(crate) fn node_of(address: *const u8) -> io::Result<i32> {
    let page = address.map_addr(|address| address & !(PAGE - 1));
    let mut status = -1_i32;
    let nowhere: *const i32 = ptr::null();
    // SAFETY: without nodes nothing is moved: the kernel reads one address and writes one status.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0_u64,
            1_u64,
            &raw const page,
            nowhere,
            &raw mut status,
            0_u64,
        )
    };
    match (result, status) {
        (0, 0..) => Ok(status),
        (0, errno) => Err(io::Error::from_raw_os_error(-errno)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests;
