//! A bounded number of descriptors of very many files.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iofleet_shared::clock::monotonic_ns;
use rustix::{fs::OFlags, io::Errno};

use super::{Opening, Openings, Paths, close, sync};
use crate::engine::{Call, Failure};

/// No place.
const NONE: u32 = u32::MAX;
const NOTHING: Failure = Failure { call: Call::Open, errno: libc::EBADF };

/// Descriptors that are opened on demand.
#[derive(Debug)]
pub struct Cache {
    paths: Paths,
    opening: Opening,
    places: Vec<Place>,
    /// The first place of each chain; a file's chain is its number's low bits.
    chains: Vec<u32>,
    /// The place that the clock hand points to.
    hand: u32,
    /// The prepared file's place, or why there is none.
    at: Result<u32, Failure>,
    /// Files that were created, by bits; empty where none are.
    created: Vec<u64>,
    failure: Option<Failure>,
    openings: Openings,
}

#[derive(Debug)]
struct Place {
    file: u32,
    /// The next place of the chain.
    next: u32,
    /// Used since the hand came by.
    recent: bool,
    written: bool,
    opened_ns: u64,
    fd: Option<OwnedFd>,
}

impl Cache {
    pub(super) fn new(paths: Paths, opening: Opening) -> Self {
        let files = u32::try_from(paths.count()).unwrap_or(NONE);
        let capacity = opening.capacity.clamp(1, files.max(1));
        let place = |_| Place {
            file: NONE,
            next: NONE,
            recent: false,
            written: false,
            opened_ns: 0,
            fd: None,
        };
        let bits = if opening.create { (files as usize).div_ceil(64) } else { 0 };
        Self {
            paths,
            opening,
            places: (0..capacity).map(place).collect(),
            chains: vec![NONE; (capacity as usize).next_power_of_two()],
            hand: 0,
            at: Err(NOTHING),
            created: vec![0; bits],
            failure: None,
            openings: Openings::default(),
        }
    }

    #[inline]
    pub(super) fn prepare(&mut self, file: u32) -> Result<(), Failure> {
        if let Ok(at) = self.at
            && self.places[at as usize].file == file
        {
            return Ok(());
        }
        let mut at = self.chains[self.chain(file)];
        while at != NONE {
            let place = &mut self.places[at as usize];
            if place.file == file {
                place.recent = true;
                self.at = Ok(at);
                return Ok(());
            }
            at = place.next;
        }
        self.at = self.open(file);
        self.at.map(|_| ())
    }

    #[inline]
    pub(super) fn get(&self) -> Result<BorrowedFd<'_>, Failure> {
        let place = &self.places[self.at? as usize];
        place.fd.as_ref().map(AsFd::as_fd).ok_or(NOTHING)
    }

    #[inline]
    pub(super) fn mark_written(&mut self) {
        if let Ok(at) = self.at {
            self.places[at as usize].written = true;
        }
    }

    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        for place in &mut self.places {
            if place.written
                && let Some(fd) = &place.fd
            {
                let synced = sync(fd.as_fd());
                place.written = synced.is_err();
                result = result.and(synced);
            }
        }
        result
    }

    pub(super) fn close(&mut self) -> Result<(), Failure> {
        self.at = Err(NOTHING);
        // What was to be made durable was so by `flush`; who is told to stop does without.
        self.opening.sync_on_close = false;
        self.chains.fill(NONE);
        for at in 0..self.places.len() {
            self.close_place(at);
            self.places[at].file = NONE;
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn openings(&self) -> Openings {
        self.openings
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "no more chains than places, twice")]
    fn chain(&self, file: u32) -> usize {
        (file & (self.chains.len() as u32 - 1)) as usize
    }

    /// Opens a file and puts it into a place.
    #[cold]
    fn open(&mut self, file: u32) -> Result<u32, Failure> {
        let at = self.free_place();
        let first = self.is_first(file);
        let mut flags = self.opening.flags;
        if first {
            flags |= OFlags::CREATE | OFlags::EXCL;
        }
        let fd = match self.paths.open(file, flags) {
            Ok(fd) => fd,
            Err((call, error)) => {
                // The place stays as it is, and the hand finds it again.
                return Err(Failure { call, errno: error.raw_os_error() });
            }
        };
        if first {
            self.created[file as usize / 64] |= 1 << (file % 64);
        }
        self.openings.opens += 1;
        let chain = self.chain(file);
        self.places[at as usize] = Place {
            file,
            next: self.chains[chain],
            recent: false,
            written: false,
            opened_ns: monotonic_ns(),
            fd: Some(fd),
        };
        self.chains[chain] = at;
        Ok(at)
    }

    /// Whether the file is to be created by opening it.
    fn is_first(&self, file: u32) -> bool {
        self.created.get(file as usize / 64).is_some_and(|bits| bits >> (file % 64) & 1 == 0)
    }

    /// A place without a file: one that is empty, or that of the file that is closed for it.
    fn free_place(&mut self) -> u32 {
        loop {
            let at = self.hand;
            self.advance();
            if std::mem::take(&mut self.places[at as usize].recent) {
                continue;
            }
            self.unlink(at);
            self.close_place(at as usize);
            return at;
        }
    }

    fn advance(&mut self) {
        self.hand = if self.hand as usize + 1 == self.places.len() { 0 } else { self.hand + 1 };
    }

    /// Takes a place out of its chain.
    fn unlink(&mut self, at: u32) {
        let (file, next) = (self.places[at as usize].file, self.places[at as usize].next);
        if file == NONE {
            return;
        }
        let chain = self.chain(file);
        let mut before = self.chains[chain];
        if before == at {
            self.chains[chain] = next;
        }
        while before != NONE && before != at {
            let place = &mut self.places[before as usize];
            if place.next == at {
                place.next = next;
                break;
            }
            before = place.next;
        }
        self.places[at as usize].file = NONE;
    }

    /// Closes a place's file, and keeps what goes wrong.
    fn close_place(&mut self, at: usize) {
        let place = &mut self.places[at];
        let Some(fd) = place.fd.take() else {
            return;
        };
        let synced =
            if self.opening.sync_on_close && place.written { sync(fd.as_fd()) } else { Ok(()) };
        let failed = |(call, error): (Call, Errno)| Failure { call, errno: error.raw_os_error() };
        let closed = close(fd).map_err(failed);
        let held_ns = monotonic_ns().saturating_sub(place.opened_ns);
        self.openings.closes += 1;
        self.openings.held_ns += held_ns;
        self.openings.held_ns_max = self.openings.held_ns_max.max(held_ns);
        if let Err(failure) = synced.and(closed) {
            self.openings.failed_closes += 1;
            self.failure.get_or_insert(failure);
        }
    }
}
