//! What direct I/O needs on a target: asked of the file system where it answers
//! (`STATX_DIOALIGN`, Linux 6.1), otherwise found by trying on a scratch file.

use std::{
    fs::File,
    os::{fd::AsFd, unix::fs::FileExt},
};

use iofleet_shared::{
    facts::{AlignmentSource, DirectAlignment},
    limits::BLOCK_BYTES_MAX,
};
use rustix::{
    fs::{AtFlags, Mode, OFlags, StatxFlags},
    io::Errno,
};

use super::{dataset::Dataset, error::TargetError};
use crate::host::random;

/// Alignments that are tried, the smallest first.
const TRIED: [u32; 3] = [512, 4096, 65_536];
/// Buffers are aligned to this where the file system does not say: a page.
const PAGE: u32 = 4096;

/// Finds the alignment, and checks that all of `blocks` fit it.
pub(super) fn alignment(dataset: &Dataset, blocks: &[u64]) -> Result<DirectAlignment, TargetError> {
    let scratch = Scratch::make(dataset)?;
    match scratch.asked()? {
        Some(said) => {
            check_multiples(dataset, blocks, u64::from(said.offset))?;
            Ok(said)
        }
        None => scratch.probed(blocks),
    }
}

fn check_multiples(dataset: &Dataset, blocks: &[u64], alignment: u64) -> Result<(), TargetError> {
    match blocks.iter().find(|block| **block % alignment != 0) {
        Some(&block) => Err(TargetError::Alignment { path: dataset.shown(), block, alignment }),
        None => Ok(()),
    }
}

/// A file in the dataset's directory that is gone as soon as it is open.
struct Scratch<'a> {
    dataset: &'a Dataset,
    file: File,
    /// The same, open for direct I/O; none where the file system refused.
    direct: Option<File>,
}

impl<'a> Scratch<'a> {
    fn make(dataset: &'a Dataset) -> Result<Self, TargetError> {
        let name = format!(".iofleet-probe-{:016x}", random());
        let failed = |error| TargetError::call("create a scratch file in", dataset.shown(), error);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = flags | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::from_raw_mode(0o600);
        let file = rustix::fs::openat(dataset.dir(), &name, new, mode).map_err(failed)?;
        let direct = rustix::fs::openat(dataset.dir(), &name, flags | OFlags::DIRECT, mode);
        let gone = rustix::fs::unlinkat(dataset.dir(), &name, AtFlags::empty());
        if gone.is_err() {
            // It is removed with the rest at the end.
            dataset.note(&name);
        }
        let direct = match direct {
            Ok(fd) => Some(fd.into()),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { dataset, file: file.into(), direct })
    }

    /// What the file system says; none where it says nothing.
    fn asked(&self) -> Result<Option<DirectAlignment>, TargetError> {
        let statx =
            rustix::fs::statx(self.file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
        let said = statx.ok().filter(|statx| {
            StatxFlags::from_bits_retain(statx.stx_mask).contains(StatxFlags::DIOALIGN)
        });
        match said {
            Some(statx) if statx.stx_dio_offset_align == 0 => Err(self.no_direct()),
            Some(statx) => Ok(Some(DirectAlignment {
                memory: statx.stx_dio_mem_align.max(1),
                offset: statx.stx_dio_offset_align,
                source: AlignmentSource::Statx,
            })),
            None => Ok(None),
        }
    }

    fn probed(&self, blocks: &[u64]) -> Result<DirectAlignment, TargetError> {
        let mut smallest = None;
        for alignment in TRIED {
            if self.takes(u64::from(alignment))? {
                smallest = Some(alignment);
                break;
            }
        }
        let Some(offset) = smallest else {
            return Err(self.no_direct());
        };
        for &block in blocks {
            if block == 0 || block > BLOCK_BYTES_MAX || !self.takes(block)? {
                let (path, alignment) = (self.dataset.shown(), u64::from(offset));
                return Err(TargetError::Alignment { path, block, alignment });
            }
        }
        Ok(DirectAlignment { memory: PAGE, offset, source: AlignmentSource::Probe })
    }

    /// Whether one block goes through at an offset of one block.
    fn takes(&self, block: u64) -> Result<bool, TargetError> {
        let Some(direct) = &self.direct else {
            return Err(self.no_direct());
        };
        let length = usize::try_from(block).unwrap_or(usize::MAX);
        let page = PAGE as usize;
        let room = vec![0_u8; length + page];
        let start = room.as_ptr().align_offset(page).min(page);
        let result = direct.write_at(&room[start..start + length], block);
        match result.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) => Ok(true),
            Err((Some(errno), _)) if errno == Errno::INVAL.raw_os_error() => Ok(false),
            Err((_, source)) => Err(TargetError::Call {
                call: "write a block of direct I/O in",
                path: self.dataset.shown(),
                source,
            }),
        }
    }

    fn no_direct(&self) -> TargetError {
        TargetError::NoDirect { path: self.dataset.shown() }
    }
}
