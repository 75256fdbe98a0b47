//! The slots of a queue: a buffer each, and how far each operation has come. What the engines with
//! a queue have in common, and all that they decide; they only carry requests to the kernel.

use std::{fs::File, slice, sync::Arc};

use iofleet_shared::work::OpKind;
use rustix::{
    fs::fsync,
    io::{Errno, retry_on_intr},
};

use super::{Call, Completion, EngineError, Failure, Request, Transfer};
use crate::payload::{Buffer, MemoryPlace};

/// The most slots of a queue: half of the entries of the largest `io_uring`, since one whose
/// submissions a kernel thread takes has two entries per slot.
const MOST: u32 = 1 << 14;

/// Least step between the buffers of two slots.
const PAGE: usize = 4_096;

/// What a queue is made from, by the thread that will use it.
#[derive(Debug)]
pub struct QueueSetup {
    /// The thread's files, by `Request.file`.
    pub files: Vec<Arc<File>>,
    /// Slots: operations in flight at most.
    pub depth: u32,
    /// Bytes of the largest block.
    pub buffer_bytes: usize,
    /// Alignment of buffers that direct I/O needs: a power of two.
    pub alignment: usize,
    /// Where buffers are to lie.
    pub place: MemoryPlace,
    /// `io_uring`: a kernel thread takes submissions.
    pub sqpoll: bool,
    /// `io_uring`: completions are polled for.
    pub iopoll: bool,
    /// Fsync follows each write and is part of its operation.
    pub fsync_each: bool,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Free,
    /// Bytes are to be moved.
    Moving,
    /// They were written, and are to be made durable.
    Syncing,
}

/// One operation.
#[derive(Debug, Clone, Copy)]
struct Slot {
    phase: Phase,
    write: bool,
    file: u32,
    bytes: u32,
    moved: u32,
    shorts: u32,
    offset: u64,
}

const FREE: Slot =
    Slot { phase: Phase::Free, write: false, file: 0, bytes: 0, moved: 0, shorts: 0, offset: 0 };

/// What the kernel is asked for next on behalf of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) kind: AskKind,
    /// Place of the file among the thread's files.
    pub(super) file: u32,
    /// The rest of the slot's buffer.
    pub(super) buffer: *mut u8,
    /// Bytes of it.
    pub(super) bytes: u32,
    /// Where it belongs in the file.
    pub(super) offset: u64,
}

/// Which operation that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskKind {
    Read,
    Write,
    Fsync,
}

/// All slots of a queue, with the files that they work on.
#[derive(Debug)]
pub(super) struct Slots {
    files: Vec<Arc<File>>,
    /// Whether a file was written.
    written: Box<[bool]>,
    fsync_each: bool,
    slots: Box<[Slot]>,
    refused: Vec<Completion>,
    /// Operations were given up while the kernel had them.
    given_up: bool,
    buffer_bytes: usize,
    stride: usize,
    /// Where the first buffer begins. The kernel writes into buffers while others are in use, so
    /// no reference may span more than one of them.
    base: *mut u8,
    /// Owns the memory, and is not looked at.
    memory: Option<Buffer>,
}

impl Slots {
    /// Takes all the memory that the queue needs.
    pub(super) fn new(setup: &QueueSetup) -> Result<Self, EngineError> {
        let QueueSetup { depth, buffer_bytes, alignment, .. } = setup;
        let (depth, buffer_bytes, alignment) = (*depth, *buffer_bytes, *alignment);
        if !(1..=MOST).contains(&depth) {
            return Err(EngineError::Depth { depth, most: MOST });
        }
        let refused = |source| EngineError::Memory { depth, bytes: buffer_bytes, source };
        let invalid = || refused(std::io::ErrorKind::InvalidInput.into());
        let places = depth as usize;
        let stride = buffer_bytes
            .checked_next_multiple_of(alignment.max(PAGE))
            .filter(|_| u32::try_from(buffer_bytes).is_ok() && buffer_bytes > 0)
            .ok_or_else(invalid)?;
        let bytes = stride.checked_mul(places).ok_or_else(invalid)?;
        let mut memory = Buffer::with(bytes, alignment, &setup.place).map_err(refused)?;
        Ok(Self {
            files: setup.files.clone(),
            written: vec![false; setup.files.len()].into(),
            fsync_each: setup.fsync_each,
            slots: vec![FREE; places].into(),
            refused: Vec::with_capacity(places),
            given_up: false,
            buffer_bytes,
            stride,
            base: memory.bytes_mut().as_mut_ptr(),
            memory: Some(memory),
        })
    }

    pub(super) fn depth(&self) -> u32 {
        // At most `MOST`.
        u32::try_from(self.slots.len()).unwrap_or(MOST)
    }

    pub(super) fn files(&self) -> &[Arc<File>] {
        &self.files
    }

    /// Where a slot's buffer begins.
    #[inline]
    pub(super) fn start(&self, slot: u32) -> *mut u8 {
        // Within the mapping for each slot that there is.
        self.base.wrapping_add(self.stride.wrapping_mul(slot as usize))
    }

    /// Bytes of a slot's buffer.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// The buffer of a free slot; nothing where there is no such slot or it is not free, and after
    /// operations were given up: the kernel may still write into their buffers.
    #[inline]
    pub(super) fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let is_free = |slot: &Slot| slot.phase == Phase::Free;
        if self.given_up || !self.slots.get(slot as usize).is_some_and(is_free) {
            return &mut [];
        }
        // SAFETY: each slot has `stride` >= `buffer_bytes` bytes of the mapping for itself; the
        // mapping lives as long as `self`, is initialised by the kernel, and no other reference
        // into it exists while `self` is borrowed. The slot is free, so the kernel does not write
        // into it.
        unsafe { slice::from_raw_parts_mut(self.start(slot), self.buffer_bytes) }
    }

    /// Takes a request into a free slot. One that can't be carried out is kept for
    /// [`Slots::give_refused`], and the answer is false.
    #[inline]
    pub(super) fn take(&mut self, slot: u32, request: &Request) -> bool {
        let write = match request.op {
            OpKind::Write => true,
            OpKind::Read => false,
            OpKind::Mkdir
            | OpKind::Create
            | OpKind::Stat
            | OpKind::Open
            | OpKind::Readdir
            | OpKind::Rename
            | OpKind::Unlink
            | OpKind::Rmdir => return self.refuse(slot, request, libc::EOPNOTSUPP),
        };
        let Some(place) = self.slots.get_mut(slot as usize) else {
            return self.refuse(slot, request, libc::EINVAL);
        };
        if place.phase != Phase::Free {
            return self.refuse(slot, request, libc::EBUSY);
        }
        let Some(written) = self.written.get_mut(request.file as usize) else {
            return self.refuse(slot, request, libc::EBADF);
        };
        if request.bytes == 0 || request.bytes as usize > self.buffer_bytes {
            return self.refuse(slot, request, libc::EINVAL);
        }
        *written |= write;
        *place = Slot {
            phase: Phase::Moving,
            write,
            file: request.file,
            bytes: request.bytes,
            moved: 0,
            shorts: 0,
            offset: request.offset,
        };
        true
    }

    /// Keeps a request that can't be carried out for [`Slots::give_refused`]; always false.
    #[cold]
    pub(super) fn refuse(&mut self, slot: u32, request: &Request, errno: i32) -> bool {
        let call = if request.op == OpKind::Write { Call::Write } else { Call::Read };
        let transfer = Transfer { shorts: 0, result: Err(Failure { call, errno }) };
        // There is room for each slot once; more than that is no use of a queue.
        if self.refused.len() < self.refused.capacity() {
            self.refused.push(Completion { slot, transfer });
        }
        false
    }

    /// Hands out what was refused.
    #[inline]
    pub(super) fn give_refused(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.refused);
    }

    /// What a slot needs next.
    #[inline]
    pub(super) fn ask(&self, slot: u32) -> Option<Ask> {
        let state = self.slots.get(slot as usize)?;
        let kind = match (state.phase, state.write) {
            (Phase::Free, _) => return None,
            (Phase::Moving, false) => AskKind::Read,
            (Phase::Moving, true) => AskKind::Write,
            (Phase::Syncing, _) => AskKind::Fsync,
        };
        Some(Ask {
            kind,
            file: state.file,
            // Within the slot's buffer, since `moved` < `bytes` <= `buffer_bytes` while moving.
            buffer: self.start(slot).wrapping_add(state.moved as usize),
            bytes: state.bytes.saturating_sub(state.moved),
            offset: state.offset.wrapping_add(u64::from(state.moved)),
        })
    }

    /// Takes the kernel's answer: bytes moved or a negative errno. Without a result there is
    /// something to be asked for again; with one the slot is free.
    #[inline]
    pub(super) fn answer(&mut self, slot: u32, result: i64) -> Option<Transfer> {
        let state = self.slots.get_mut(slot as usize)?;
        let outcome = match state.phase {
            Phase::Free => return None,
            Phase::Moving => moved(state, result, self.fsync_each)?,
            Phase::Syncing if result >= 0 => Ok(u64::from(state.bytes)),
            Phase::Syncing => Err(failed(Call::Fsync, result)?),
        };
        state.phase = Phase::Free;
        Some(Transfer { shorts: state.shorts, result: outcome })
    }

    /// Gives up every operation that is not complete.
    #[cold]
    pub(super) fn fail_all(&mut self, errno: i32, done: &mut Vec<Completion>) {
        self.given_up = true;
        let errno = i64::from(errno).saturating_neg();
        for slot in 0..self.depth() {
            if let Some(transfer) = self.answer(slot, errno) {
                done.push(Completion { slot, transfer });
            }
        }
    }

    /// Makes each file durable that was written since the last time.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if self.files.is_empty() {
            return Err(Failure { call: Call::Fsync, errno: libc::EBADF });
        }
        let mut result = Ok(());
        for (file, written) in self.files.iter().zip(&mut self.written) {
            if std::mem::take(written)
                && let Err(error) = retry_on_intr(|| fsync(file))
            {
                result = result.and_then(|()| Err(failure(Call::Fsync, error)));
            }
        }
        result
    }

    /// Never gives the buffers back: something may still write into them.
    #[cold]
    pub(super) fn leak(&mut self) {
        std::mem::forget(self.memory.take());
    }

    /// Lets go of the files; every request is refused from now on.
    pub(super) fn close(&mut self) {
        self.files = Vec::new();
        self.written = Box::default();
    }
}

/// What became of the bytes that were asked for.
#[inline]
fn moved(state: &mut Slot, result: i64, fsync_each: bool) -> Option<Result<u64, Failure>> {
    let (call, nothing) =
        if state.write { (Call::Write, Call::ShortWrite) } else { (Call::Read, Call::ShortRead) };
    if result == 0 {
        return Some(Err(Failure { call: nothing, errno: 0 }));
    }
    let Ok(count) = u64::try_from(result) else {
        return failed(call, result).map(Err);
    };
    let rest = state.bytes.saturating_sub(state.moved);
    match u32::try_from(count) {
        Ok(count) if count < rest => {
            state.moved += count;
            state.shorts += 1;
            None
        }
        Ok(_) | Err(_) if state.write && fsync_each => {
            state.phase = Phase::Syncing;
            None
        }
        Ok(_) | Err(_) => Some(Ok(u64::from(state.bytes))),
    }
}

/// The failure behind a negative answer; none where it only has to be asked for again.
#[cold]
fn failed(call: Call, result: i64) -> Option<Failure> {
    let errno = i32::try_from(result.saturating_neg()).unwrap_or(libc::EIO);
    (errno != libc::EINTR).then_some(Failure { call, errno })
}

#[cold]
fn failure(call: Call, error: Errno) -> Failure {
    Failure { call, errno: error.raw_os_error() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(depth: u32, fsync_each: bool) -> Slots {
        let files = vec![Arc::new(tempfile::tempfile().unwrap())];
        let (buffer_bytes, alignment) = (100, 512);
        let (place, sqpoll, iopoll) = (MemoryPlace::default(), false, false);
        Slots::new(&QueueSetup {
            files,
            depth,
            buffer_bytes,
            alignment,
            place,
            sqpoll,
            iopoll,
            fsync_each,
        })
        .unwrap()
    }

    fn request(op: OpKind) -> Request {
        Request { op, lane: 0, file: 0, bytes: 100, number: 0, offset: 7_000, blocks: 1 }
    }

    #[test]
    fn a_short_transfer_is_continued_where_it_ended() {
        let mut slots = slots(2, false);
        assert!(slots.take(1, &request(OpKind::Read)));
        for (result, moved) in [(30, 30), (-i64::from(libc::EINTR), 30), (50, 80)] {
            assert_eq!(slots.answer(1, result), None);
            let ask = slots.ask(1).unwrap();
            assert_eq!((ask.kind, ask.offset), (AskKind::Read, 7_000 + moved));
            assert_eq!(u64::from(ask.bytes), 100 - moved);
            let at = ask.buffer.addr() - slots.start(0).addr();
            assert_eq!(at as u64, 4_096 + moved);
        }
        assert_eq!(slots.answer(1, 20), Some(Transfer { shorts: 2, result: Ok(100) }));
        assert_eq!(slots.ask(1), None);
    }

    #[test]
    fn nothing_inside_the_range_is_an_error() {
        let mut slots = slots(1, false);
        for (op, call) in [(OpKind::Read, Call::ShortRead), (OpKind::Write, Call::ShortWrite)] {
            assert!(slots.take(0, &request(op)));
            assert_eq!(slots.answer(0, 99), None);
            let result = Err(Failure { call, errno: 0 });
            assert_eq!(slots.answer(0, 0), Some(Transfer { shorts: 1, result }));
        }
    }

    #[test]
    fn fsync_belongs_to_a_write_and_its_failure_too() {
        let mut slots = slots(1, true);
        assert!(slots.take(0, &request(OpKind::Read)));
        assert_eq!(slots.answer(0, 100), Some(Transfer { shorts: 0, result: Ok(100) }));
        for (answer, result) in [
            (0, Ok(100)),
            (-i64::from(libc::EIO), Err(Failure { call: Call::Fsync, errno: libc::EIO })),
        ] {
            assert!(slots.take(0, &request(OpKind::Write)));
            assert_eq!(slots.answer(0, 100), None);
            assert_eq!(slots.ask(0).map(|ask| ask.kind), Some(AskKind::Fsync));
            assert_eq!(slots.answer(0, -i64::from(libc::EINTR)), None);
            assert_eq!(slots.answer(0, answer), Some(Transfer { shorts: 0, result }));
        }
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused() {
        let mut slots = slots(4, false);
        assert!(slots.take(0, &request(OpKind::Read)));
        assert!(!slots.take(0, &request(OpKind::Read)));
        assert!(!slots.take(1, &request(OpKind::Stat)));
        assert!(!slots.take(2, &Request { bytes: 101, ..request(OpKind::Write) }));
        assert!(!slots.take(3, &Request { file: 1, ..request(OpKind::Read) }));
        let mut done = Vec::new();
        slots.give_refused(&mut done);
        let errnos: Vec<_> =
            done.iter().map(|it| (it.slot, it.transfer.result.unwrap_err().errno)).collect();
        let expected =
            [(0, libc::EBUSY), (1, libc::EOPNOTSUPP), (2, libc::EINVAL), (3, libc::EBADF)];
        assert_eq!(errnos, expected);
    }
}
