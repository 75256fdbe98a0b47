//! Bare loops of the same calls.

use std::{
    fs::{File, OpenOptions},
    hint::black_box,
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{Arc, Barrier},
    thread,
};

use iofleet_shared::{clock::monotonic_ns, work::Extent};
use iofleet_worker::{
    files::own_table,
    pattern::{Blocks, Cursor, Random, Sequential},
    payload::Buffer,
    stamp::{Clock, Tsc},
};
use rustix::io::{pread, pwrite};

use crate::{
    Fallible,
    usage::{Round, Usage},
};

/// A loop that has all that it needs.
pub(crate) type Ready = Box<dyn FnOnce() -> io::Result<()>>;
/// Makes the loop of a thread, on that thread.
pub(crate) type Body = Arc<dyn Fn(u32) -> io::Result<Ready> + Send + Sync>;

/// Runs it in so many threads that do so many operations together.
pub(crate) fn run(threads: u32, operations: u64, body: &Body) -> Fallible<Round> {
    let parties = usize::try_from(threads)? + 1;
    let (ready, start) = (Arc::new(Barrier::new(parties)), Arc::new(Barrier::new(parties)));
    let handles: Vec<_> = (0..threads)
        .map(|thread| {
            let (ready, start, body) = (Arc::clone(&ready), Arc::clone(&start), Arc::clone(body));
            thread::spawn(move || -> io::Result<(u64, u64)> {
                let made = body(thread);
                ready.wait();
                start.wait();
                let made = made?;
                let began = monotonic_ns();
                made()?;
                Ok((began, monotonic_ns()))
            })
        })
        .collect();
    ready.wait();
    let usage = Usage::now()?;
    start.wait();
    let (mut began, mut ended) = (u64::MAX, 0);
    for handle in handles {
        let (begin, end) = handle.join().map_err(|_| "a thread panicked")??;
        (began, ended) = (began.min(begin), ended.max(end));
    }
    let used = Usage::now()?.since(usage);
    Ok(used.per(operations, ended - began))
}

/// A file, or one that is read past the page cache.
pub(crate) fn open(path: &Path, direct: bool) -> io::Result<File> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// The blocks of a file.
pub(crate) fn blocks(bytes: u64, block: usize) -> Arc<Blocks> {
    Arc::new(Blocks::new(&[Extent { offset: 0, length: bytes }], block as u64))
}

/// `pread` at random, with or without two clock readings.
pub(crate) fn random_reads(path: &Path, block: usize, bytes: u64, ops: u64, clocked: bool) -> Body {
    let path = path.to_owned();
    Arc::new(move |thread| {
        let file = open(&path, false)?;
        let mut buffer = Buffer::new(block, 4_096)?;
        let mut cursor = Random::new(blocks(bytes, block), u64::from(thread) + 1);
        Ok(Box::new(move || {
            let mut sum = 0_u64;
            for _ in 0..ops {
                let offset = cursor.next().offset;
                if clocked {
                    let start = Tsc.now();
                    whole(pread(&file, buffer.bytes_mut(), offset)?, block)?;
                    sum = sum.wrapping_add(Tsc.now().wrapping_sub(start));
                } else {
                    whole(pread(&file, buffer.bytes_mut(), offset)?, block)?;
                }
            }
            black_box(sum);
            Ok(())
        }))
    })
}

/// The same, each thread with a table of descriptors of its own.
pub(crate) fn in_own_table(body: &Body) -> Body {
    let body = Arc::clone(body);
    Arc::new(move |thread| {
        own_table().map_err(io::Error::other)?;
        body(thread)
    })
}

/// `pread` in order.
pub(crate) fn sequential_reads(path: &Path, block: usize, bytes: u64, ops: u64) -> Body {
    let path = path.to_owned();
    Arc::new(move |_| {
        let file = open(&path, false)?;
        let mut buffer = Buffer::new(block, 4_096)?;
        let mut cursor = Sequential::new(blocks(bytes, block));
        Ok(Box::new(move || {
            for _ in 0..ops {
                whole(pread(&file, buffer.bytes_mut(), cursor.next().offset)?, block)?;
            }
            Ok(())
        }))
    })
}

/// `pwrite` in order, of the same block again and again.
pub(crate) fn sequential_writes(path: &Path, block: usize, bytes: u64, ops: u64) -> Body {
    let path = path.to_owned();
    Arc::new(move |thread| {
        let file = open(&path, false)?;
        let buffer = Buffer::seeded(block, 4_096, u64::from(thread))?;
        let mut cursor = Sequential::new(blocks(bytes, block));
        Ok(Box::new(move || {
            for _ in 0..ops {
                whole(pwrite(&file, buffer.bytes(), cursor.next().offset)?, block)?;
            }
            Ok(())
        }))
    })
}

/// Two clock readings and nothing else.
pub(crate) fn clock_readings(ops: u64) -> Body {
    Arc::new(move |_| {
        Ok(Box::new(move || {
            let mut sum = 0_u64;
            for _ in 0..ops {
                let start = Tsc.now();
                sum = sum.wrapping_add(Tsc.now().wrapping_sub(start));
            }
            black_box(sum);
            Ok(())
        }))
    })
}

fn whole(moved: usize, block: usize) -> io::Result<()> {
    if moved == block { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
