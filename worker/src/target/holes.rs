//! Holes in files that are to be read: reading one asks no storage for anything.
//!
//! `SEEK_HOLE` is believed only where the mount was seen to report a hole: file systems that know
//! none are allowed to say that a file is all data.

use std::{fs::File, os::fd::AsFd};

use iofleet_shared::{
    stats::HoleCheck,
    work::{EngineKind, FilePart, Files, OpKind, WorkerPlan},
};
use rustix::{
    fs::{AtFlags, Mode, OFlags, SeekFrom, fstat, openat, seek, unlinkat},
    io::{Errno, pwrite},
};

use super::{
    Targets,
    dataset::{Dataset, seen},
    error::TargetError,
    files,
};
use crate::host;

/// Where the probe has its data: beyond any block and record size of a file system.
const PROBE_AT: u64 = 4 << 20;
const PROBE_BYTES: usize = 64 << 10;

/// What a plan's files hold where its threads will read; none where it reads no file that was there
/// before. The first hole is an error, unless holes are allowed.
pub(super) fn look(
    targets: &Targets,
    dataset: &Dataset,
    plan: &WorkerPlan,
) -> Result<Option<HoleCheck>, TargetError> {
    let reads = plan.ops().contains(&OpKind::Read);
    let fresh = plan.create || plan.options.truncate;
    if !reads || fresh || plan.engine.kind == EngineKind::Null {
        return Ok(None);
    }
    let mut check: Option<HoleCheck> = None;
    for thread in &plan.threads {
        let (Files::Named(parts) | Files::Listed(parts)) = &thread.files else { continue };
        let listed = matches!(thread.files, Files::Listed(_));
        for part in parts {
            let check = check.get_or_insert_default();
            look_at(targets, dataset, plan, (part, listed), check)?;
        }
    }
    Ok(check)
}

fn look_at(
    targets: &Targets,
    dataset: &Dataset,
    plan: &WorkerPlan,
    (part, listed): (&FilePart, bool),
    check: &mut HoleCheck,
) -> Result<(), TargetError> {
    let file = files::to_look_at(targets, dataset, &part.file, listed)?;
    let shown = || if listed { part.file.clone() } else { dataset.shown_file(&part.file) };
    let tells = dataset.tells_holes(|| probe(dataset.dir())) && same_device(dataset, &file);
    if !tells {
        check.blind = true;
        return Ok(());
    }
    let block_bytes = plan.block_bytes().max(1);
    let find = || first_hole(&file, part, block_bytes);
    let hole = find().map_err(|error| TargetError::call("seek in", shown(), error))?;
    // What another client wrote may look like a hole for a while.
    let Some(hole) = hole.filter(|_| seen(|| matches!(find(), Ok(None)).then_some(())).is_none())
    else {
        return Ok(());
    };
    if !dataset.allows_holes() {
        return Err(TargetError::Hole { path: shown(), offset: hole });
    }
    check.files += 1;
    check.first.get_or_insert_with(|| format!("{} at offset {hole}", shown()));
    Ok(())
}

fn same_device(dataset: &Dataset, file: &File) -> bool {
    let device = |fd: std::os::fd::BorrowedFd<'_>| fstat(fd).map(|stat| stat.st_dev);
    device(dataset.dir().as_fd()).is_ok_and(|dir| device(file.as_fd()) == Ok(dir))
}

/// Offset of the first hole inside of a block of the part.
fn first_hole(file: &File, part: &FilePart, block_bytes: u64) -> Result<Option<u64>, Errno> {
    let stride = part.stride_bytes.max(block_bytes);
    for extent in &part.extents {
        let end = extent.offset + extent.length / block_bytes * block_bytes;
        let end = if stride > block_bytes { extent.offset + extent.length } else { end };
        let mut at = extent.offset;
        while at < end {
            let hole = match seek(file, SeekFrom::Hole(at)) {
                Ok(hole) => hole,
                // Beyond the end: what is missing there is another error.
                Err(Errno::NXIO) => break,
                Err(error) => return Err(error),
            };
            if hole >= end || hole >= u64::try_from(fstat(file)?.st_size).unwrap_or(0) {
                break;
            }
            let block = extent.offset + (hole - extent.offset) / stride * stride;
            if hole < block + block_bytes {
                return Ok(Some(hole));
            }
            // Between two blocks of the part: others' business.
            at = block + stride;
        }
    }
    Ok(None)
}

/// Whether the file system of a directory reports a hole that was just made.
fn probe(dir: impl AsFd) -> bool {
    let name = format!(".iofleet-holes-{:x}", host::random());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let Ok(file) = openat(&dir, &name, flags, Mode::from_raw_mode(0o600)) else { return false };
    let tells = tells_its_hole(&file.into());
    let _ = unlinkat(&dir, &name, AtFlags::empty());
    tells
}

fn tells_its_hole(file: &File) -> bool {
    let data = [1; PROBE_BYTES];
    let written = pwrite(file, &data, PROBE_AT) == Ok(PROBE_BYTES);
    let hole = seek(file, SeekFrom::Hole(0)) == Ok(0);
    let found = seek(file, SeekFrom::Data(0)).is_ok_and(|at| at > 0 && at <= PROBE_AT);
    let kept =
        seek(file, SeekFrom::Hole(PROBE_AT)).is_ok_and(|at| at >= PROBE_AT + PROBE_BYTES as u64);
    written && hole && found && kept
}

#[cfg(test)]
mod tests {
    use iofleet_shared::work::Extent;
    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;

    const BLOCK: u64 = PROBE_BYTES as u64;

    fn file(blocks: u64) -> File {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        for block in 0..blocks {
            assert_eq!(pwrite(&file, &[1; PROBE_BYTES], block * BLOCK), Ok(PROBE_BYTES));
        }
        file
    }

    fn part(offset: u64, length: u64, stride_bytes: u64) -> FilePart {
        FilePart { file: "f".to_owned(), extents: vec![Extent { offset, length }], stride_bytes }
    }

    fn punch(file: &File, block: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(file, flags, block * BLOCK, BLOCK).unwrap();
    }

    #[test]
    fn a_hole_is_found_where_it_is_and_only_where_threads_read() {
        let file = file(8);
        let find = |part: &FilePart| first_hole(&file, part, BLOCK).unwrap();
        assert_eq!(find(&part(0, 8 * BLOCK, 0)), None);
        punch(&file, 5);
        assert_eq!(find(&part(0, 8 * BLOCK, 0)), Some(5 * BLOCK));
        assert_eq!(find(&part(0, 5 * BLOCK, 0)), None);
        assert_eq!(find(&part(6 * BLOCK, 2 * BLOCK, 0)), None);
        // Every second block: 0, 2, 4, 6 are read, and 1, 3, 5, 7 by somebody else.
        assert_eq!(find(&part(0, 7 * BLOCK, 2 * BLOCK)), None);
        assert_eq!(find(&part(BLOCK, 7 * BLOCK, 2 * BLOCK)), Some(5 * BLOCK));
    }

    #[test]
    fn a_file_that_was_only_truncated_is_a_hole_from_its_start() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(4 * BLOCK).unwrap();
        assert_eq!(first_hole(&file, &part(0, 4 * BLOCK, 0), BLOCK), Ok(Some(0)));
        assert_eq!(first_hole(&file, &part(2 * BLOCK, BLOCK, 0), BLOCK), Ok(Some(2 * BLOCK)));
    }

    #[test]
    fn this_machines_memory_tells_its_holes() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        assert!(probe(File::open(dir.path()).unwrap()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
