//! The engine `mmap`: blocks are copied between the thread's buffer and a shared mapping of the
//! file; the kernel reads and writes pages behind it.
//!
//! An access that the kernel can't serve (the file was cut off, a page can't be read, there is no
//! space for it) is SIGBUS, and comes back as [`Call::MapRead`] or [`Call::MapWrite`] with errno 0:
//! the signal says the same for all of these. The rest of the page that a file ends in reads as
//! zeros, so that up to a page beyond the end is no error.

use std::{ffi::c_void, fs::File, io, ptr, sync::Arc};

use iofleet_shared::work::{Advice, OpKind};
use rustix::{
    fs::fsync,
    io::Errno,
    mm::{MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap},
    param::page_size,
};

use super::{Call, Engine, Failure, Request, Transfer};
use crate::{fault::Guard, payload::Buffer};

/// Copies blocks from and to mappings.
#[derive(Debug)]
pub struct Mmap {
    maps: Vec<Map>,
    buffer: Buffer,
    guard: Guard,
    page: usize,
    writable: bool,
    fsync_each: bool,
}

/// The first bytes of a file, mapped.
#[derive(Debug)]
struct Map {
    file: Arc<File>,
    start: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, and an address means the same in every thread.
unsafe impl Send for Map {}

impl Mmap {
    /// Maps of each of `files` as many bytes as `lengths` says, from 0: regular files must be that
    /// long already (no access makes them longer), and be open for reading, with `writable` for
    /// both. With `fsync_each` each write is made durable as part of its operation.
    ///
    /// # Errors
    /// When the processor is one that this was not written for, a file is too short, or the kernel
    /// does not map it.
    pub fn new(
        files: Vec<Arc<File>>,
        lengths: Vec<u64>,
        writable: bool,
        buffer: Buffer,
        fsync_each: bool,
    ) -> io::Result<Self> {
        if files.len() != lengths.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let guard = Guard::install()?;
        let maps = files
            .into_iter()
            .zip(lengths)
            .map(|(file, length)| Map::new(file, length, writable))
            .collect::<io::Result<_>>()?;
        Ok(Self { maps, buffer, guard, page: page_size(), writable, fsync_each })
    }

    /// Tells the kernel what accesses to expect (`madvise`), while arming. `DontNeed` empties the
    /// mappings only: pages stay in the cache unless `posix_fadvise` was told the same before.
    ///
    /// # Errors
    /// What `madvise` says.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        use rustix::mm::Advice as Told;
        let told = match advice {
            Advice::Sequential => Told::Sequential,
            Advice::Random => Told::Random,
            Advice::WillNeed => Told::WillNeed,
            Advice::DontNeed => Told::LinuxDontNeed,
        };
        for map in self.maps.iter().filter(|map| map.length > 0) {
            // SAFETY: this is a shared mapping of a file, whose bytes no reference ever points to:
            // none of the four changes what a later access finds.
            unsafe { madvise(map.start.cast(), map.length, told)? };
        }
        Ok(())
    }

    #[inline]
    fn read(&mut self, request: &Request) -> Result<u64, Failure> {
        let (_, from) = place(&self.maps, request).ok_or_else(|| outside(Call::MapRead))?;
        let buffer = self.buffer.bytes_mut();
        let block =
            buffer.get_mut(..request.bytes as usize).ok_or_else(|| outside(Call::MapRead))?;
        // SAFETY: the block is inside the mapping, which is readable, and the buffer is elsewhere.
        let copied = unsafe { self.guard.copy(block.as_mut_ptr(), from, block.len()) };
        match copied {
            Ok(()) => Ok(u64::from(request.bytes)),
            Err(_) => Err(unserved(Call::MapRead)),
        }
    }

    #[inline]
    fn write(&mut self, request: &Request) -> Result<u64, Failure> {
        if !self.writable {
            return Err(closed(Call::MapWrite));
        }
        let (map, to) = place(&self.maps, request).ok_or_else(|| outside(Call::MapWrite))?;
        let buffer = self.buffer.bytes();
        let block = buffer.get(..request.bytes as usize).ok_or_else(|| outside(Call::MapWrite))?;
        // SAFETY: the block is inside the mapping, which is writable, and the buffer is elsewhere.
        let copied = unsafe { self.guard.copy(to, block.as_ptr(), block.len()) };
        if copied.is_err() {
            return Err(unserved(Call::MapWrite));
        }
        if self.fsync_each {
            let before = to.addr() % self.page;
            map.sync(to.wrapping_sub(before), block.len() + before)?;
        }
        Ok(u64::from(request.bytes))
    }
}

impl Engine for Mmap {
    #[inline]
    fn buffer(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    #[inline]
    fn perform(&mut self, request: &Request) -> Transfer {
        let result = match request.op {
            OpKind::Read => self.read(request),
            OpKind::Write => self.write(request),
            OpKind::Mkdir
            | OpKind::Create
            | OpKind::Stat
            | OpKind::Open
            | OpKind::Readdir
            | OpKind::Rename
            | OpKind::Unlink
            | OpKind::Rmdir => Err(Failure { call: Call::Other, errno: libc::EOPNOTSUPP }),
        };
        Transfer { shorts: 0, result }
    }

    /// `msync` of all that is mapped, then `fsync`: the former writes out the data and reports what
    /// became of each mapped page, but is an `fdatasync` of the range and leaves the file's times
    /// behind, while all engines promise the same of a flush.
    fn flush(&mut self) -> Result<(), Failure> {
        if !self.writable {
            return Ok(());
        }
        for map in &self.maps {
            map.sync(map.start, map.length)?;
            retried(|| fsync(&map.file)).map_err(|error| failure(Call::Fsync, error))?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.maps.clear();
        Ok(())
    }
}

impl Map {
    fn new(file: Arc<File>, length: u64, writable: bool) -> io::Result<Self> {
        let attributes = file.metadata()?;
        if attributes.is_file() && attributes.len() < length {
            let text =
                format!("the file has {} bytes, and {length} are to be mapped", attributes.len());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
        if length == 0 {
            return Ok(Self { file, start: ptr::null_mut(), length });
        }
        let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing.
        let start = unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0) };
        match start {
            Ok(start) => Ok(Self { file, start: start.cast(), length }),
            Err(error) => Err(unmapped(error)),
        }
    }

    /// Makes whole pages of the mapping durable.
    fn sync(&self, start: *mut u8, length: usize) -> Result<(), Failure> {
        if length == 0 {
            return Ok(());
        }
        let start: *mut c_void = start.cast();
        // SAFETY: the range is inside this mapping, and msync changes no memory.
        retried(|| unsafe { msync(start, length, MsyncFlags::SYNC) })
            .map_err(|error| failure(Call::Msync, error))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: this is the mapping that `new` made, whole, and nothing refers to it any
            // more. Failure would mean that it was not mapped; nothing is to be done about it.
            let _ = unsafe { munmap(self.start.cast(), self.length) };
        }
    }
}

/// The mapping and the address of an operation's block, if it lies inside.
#[inline]
fn place<'a>(maps: &'a [Map], request: &Request) -> Option<(&'a Map, *mut u8)> {
    let map = maps.get(request.file as usize)?;
    let end = request.offset.checked_add(u64::from(request.bytes))?;
    // What is no more than the length of the mapping is a usize.
    (end <= map.length as u64)
        .then(|| (map, map.start.wrapping_add(usize::try_from(request.offset).unwrap_or(0))))
}

fn retried(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

fn unmapped(error: Errno) -> io::Error {
    let hint = match error {
        Errno::NOMEM => " (too little address space, or more mappings than vm.max_map_count)",
        Errno::NODEV => " (this file system has no memory mapping)",
        Errno::ACCESS => " (the file is not open for reading, or not for writing)",
        _ => "",
    };
    io::Error::new(io::Error::from(error).kind(), format!("mmap: {error}{hint}"))
}

#[cold]
fn failure(call: Call, error: Errno) -> Failure {
    Failure { call, errno: error.raw_os_error() }
}

#[cold]
fn unserved(call: Call) -> Failure {
    Failure { call, errno: 0 }
}

/// Not mapped: closed, no such file, or not so long.
#[cold]
fn outside(call: Call) -> Failure {
    Failure { call, errno: libc::ENXIO }
}

#[cold]
fn closed(call: Call) -> Failure {
    Failure { call, errno: libc::EBADF }
}

#[cfg(test)]
mod tests;
