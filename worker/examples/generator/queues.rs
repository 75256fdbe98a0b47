//! Bare loops with several operations in flight: written directly against the system calls, with
//! the best settings.

use std::{io, os::fd::AsRawFd, path::Path, ptr, sync::Arc};

use io_uring::{IoUring, opcode, types};
use iofleet_worker::{
    pattern::{Cursor, Random},
    payload::Buffer,
};

use crate::bare::{Body, blocks, open};

/// Bytes of an operation.
const BLOCK: u32 = 4_096;
/// Operations in flight.
pub(crate) const DEPTH: u32 = 32;

/// `io_uring`, random reads.
pub(crate) fn uring_reads(path: &Path, bytes: u64, ops: u64, direct: bool) -> Body {
    let path = path.to_owned();
    Arc::new(move |thread| {
        let file = open(&path, direct)?;
        let mut cursor = Random::new(blocks(bytes, BLOCK as usize), u64::from(thread) + 1);
        let mut buffers = buffers()?;
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            .setup_no_sqarray()
            .build(DEPTH)?;
        let vectors: Vec<libc::iovec> = buffers
            .iter_mut()
            .map(Buffer::bytes_mut)
            .map(|bytes| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() })
            .collect();
        // SAFETY: the buffers live until all operations are complete.
        unsafe { ring.submitter().register_buffers(&vectors)? };
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        Ok(Box::new(move || {
            let result = uring_loop(ring, &vectors, &mut cursor, ops);
            drop((buffers, file));
            result
        }))
    })
}

fn uring_loop(
    mut ring: IoUring,
    vectors: &[libc::iovec],
    cursor: &mut Random,
    operations: u64,
) -> io::Result<()> {
    let (mut submitter, mut submissions, mut completions) = ring.split();
    submitter.register_ring_fd()?;
    let mut read = |slot: u16| {
        let buffer = vectors[usize::from(slot)].iov_base.cast();
        opcode::ReadFixed::new(types::Fixed(0), buffer, BLOCK, slot)
            .offset(cursor.next().offset)
            .build()
            .user_data(slot.into())
    };
    let (mut queued, mut complete) = (u64::from(DEPTH), 0);
    for slot in 0..u16::try_from(DEPTH).map_err(io::Error::other)? {
        // SAFETY: the buffer lives until the operation is complete.
        unsafe { submissions.push(&read(slot)).map_err(io::Error::other)? };
    }
    while complete < operations {
        submissions.sync();
        retried(|| submitter.submit_and_wait(1))?;
        submissions.sync();
        completions.sync();
        for completion in completions.by_ref() {
            if completion.result().cast_unsigned() != BLOCK {
                return Err(io::Error::from_raw_os_error(-completion.result()));
            }
            complete += 1;
            if queued < operations {
                queued += 1;
                let slot = u16::try_from(completion.user_data()).map_err(io::Error::other)?;
                // SAFETY: as above.
                unsafe { submissions.push(&read(slot)).map_err(io::Error::other)? };
            }
        }
    }
    submitter.unregister_ring_fd()
}

/// `struct iocb` and `struct io_event`, in words.
type Iocb = [u64; 8];
type Event = [u64; 4];

/// Linux AIO by two system calls, as its manual shows it.
pub(crate) fn aio_reads(path: &Path, bytes: u64, ops: u64, direct: bool) -> Body {
    let path = path.to_owned();
    Arc::new(move |thread| {
        let file = open(&path, direct)?;
        let mut cursor = Random::new(blocks(bytes, BLOCK as usize), u64::from(thread) + 1);
        let mut buffers = buffers()?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context's number.
        call(unsafe { libc::syscall(libc::SYS_io_setup, DEPTH, &raw mut context) })?;
        Ok(Box::new(move || {
            let descriptor = u64::from(file.as_raw_fd().cast_unsigned()) << 32;
            let mut fill = |iocb: &mut Iocb, slot: usize| {
                let buffer = buffers[slot].bytes_mut().as_mut_ptr().expose_provenance() as u64;
                let offset = cursor.next().offset;
                *iocb = [slot as u64, 0, descriptor, buffer, BLOCK.into(), offset, 0, 0];
            };
            aio_loop(context, &mut fill, ops)?;
            // SAFETY: nothing is in flight.
            call(unsafe { libc::syscall(libc::SYS_io_destroy, context) })?;
            Ok(())
        }))
    })
}

fn aio_loop(
    context: libc::c_ulong,
    fill: &mut impl FnMut(&mut Iocb, usize),
    operations: u64,
) -> io::Result<()> {
    let depth = DEPTH as usize;
    let (mut iocbs, mut events) = (vec![Iocb::default(); depth], vec![Event::default(); depth]);
    let mut pointers: Vec<*mut Iocb> = Vec::with_capacity(depth);
    let (mut queued, mut complete) = (u64::from(DEPTH), 0);
    for (slot, iocb) in iocbs.iter_mut().enumerate() {
        fill(iocb, slot);
        pointers.push(iocb);
    }
    while complete < operations {
        let count = pointers.len();
        if count > 0 {
            // SAFETY: requests live through the call, and buffers until all is complete.
            let taken = unsafe {
                libc::syscall(libc::SYS_io_submit, context, count, pointers.as_mut_ptr())
            };
            if call(taken)? != count {
                return Err(io::Error::other("io_submit took a part"));
            }
            pointers.clear();
        }
        let none: *const libc::timespec = ptr::null();
        let got = retried(|| {
            // SAFETY: there is room for as many events.
            call(unsafe {
                let events = events.as_mut_ptr();
                libc::syscall(libc::SYS_io_getevents, context, 1_i64, depth, events, none)
            })
        })?;
        for event in &events[..got] {
            if event[2] != u64::from(BLOCK) {
                return Err(io::Error::other(format!("{event:?}")));
            }
            complete += 1;
            if queued < operations {
                queued += 1;
                let slot = usize::try_from(event[0]).map_err(io::Error::other)?;
                fill(&mut iocbs[slot], slot);
                pointers.push(&raw mut iocbs[slot]);
            }
        }
    }
    Ok(())
}

fn call(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn buffers() -> io::Result<Vec<Buffer>> {
    (0..DEPTH).map(|_| Buffer::new(BLOCK as usize, BLOCK as usize)).collect()
}
