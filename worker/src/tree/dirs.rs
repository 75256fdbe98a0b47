//! Descriptors of a tree's directories, a bounded number at a time.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::name::Name;

/// A place of its own to stand on: no rights to list are needed, and links are not followed.
pub(super) const HOLD: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Each directory has one place, which it shares with those a power of two further on. Threads go
/// through directories in order, or at random through more than can be held: in neither case would
/// a choice of the one to give up find better ones.
#[derive(Debug)]
pub(super) struct Dirs {
    places: Vec<Held>,
    mask: u32,
    name: Name,
}

#[derive(Debug)]
struct Held {
    dir: u32,
    fd: Option<OwnedFd>,
}

impl Dirs {
    /// Holds up to `bound` of `dirs` directories: the next lower power of two, at least 1.
    pub(super) fn new(dirs: u32, bound: u32, name: Name) -> Self {
        let bound = 1 << bound.clamp(1, 1 << 20).ilog2();
        let count = dirs.clamp(1, bound).next_power_of_two();
        let places = (0..count).map(|dir| Held { dir, fd: None }).collect();
        Self { places, mask: count - 1, name }
    }

    /// The directory's descriptor, if it is held.
    #[inline]
    pub(super) fn get(&self, dir: u32) -> Option<BorrowedFd<'_>> {
        let place = self.places.get((dir & self.mask) as usize)?;
        if place.dir == dir { place.fd.as_ref().map(AsFd::as_fd) } else { None }
    }

    /// Opens the directory, in place of another one.
    #[cold]
    pub(super) fn open(&mut self, parent: BorrowedFd<'_>, dir: u32) -> Result<(), Errno> {
        let Some(place) = self.places.get_mut((dir & self.mask) as usize) else {
            return Err(Errno::BADF);
        };
        place.fd = None;
        self.name.set(u64::from(dir), false);
        let fd = rustix::fs::openat(parent, self.name.as_c_str(), HOLD, Mode::empty())?;
        *place = Held { dir, fd: Some(fd) };
        Ok(())
    }

    /// Lets go of the directory.
    pub(super) fn forget(&mut self, dir: u32) {
        if let Some(place) = self.places.get_mut((dir & self.mask) as usize)
            && place.dir == dir
        {
            place.fd = None;
        }
    }
}
