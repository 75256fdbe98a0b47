//! The engine `sync`: `pread` and `pwrite`, one operation in flight.

use std::io::{IoSlice, IoSliceMut};

use iofleet_shared::{stats::FileTimes, work::OpKind};
use rustix::{
    fs::{FlockOperation, flock, fsync},
    io::{Errno, ReadWriteFlags, pread, preadv2, pwrite, pwritev2},
};

use super::{Call, Engine, Failure, Request, Transfer};
use crate::{
    files::{Descriptors, Openings},
    payload::Buffer,
};

/// What makes an operation more than one plain call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Special {
    /// `fsync` follows each write and is part of it.
    pub fsync_each: bool,
    /// `flock` before each operation, and release after it.
    pub lock: bool,
    /// `RWF_HIPRI` with each call.
    pub high_priority: bool,
}

/// Reads and writes. Without `SPECIAL` each operation is one call.
#[derive(Debug)]
pub struct Sync<const SPECIAL: bool> {
    files: Descriptors,
    buffer: Buffer,
    special: Special,
}

impl Sync<false> {
    /// Moves blocks between `files` and `buffer`.
    #[must_use]
    pub fn new(files: Descriptors, buffer: Buffer) -> Self {
        Self { files, buffer, special: Special::default() }
    }
}

impl Sync<true> {
    /// The same, with more to each operation.
    #[must_use]
    pub fn special(files: Descriptors, buffer: Buffer, special: Special) -> Self {
        Self { files, buffer, special }
    }
}

impl<const SPECIAL: bool> Engine for Sync<SPECIAL> {
    #[inline]
    fn buffer(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    #[inline]
    fn prepare(&mut self, request: &Request) -> Result<(), Failure> {
        self.files.prepare(request.file)?;
        if request.op == OpKind::Write {
            self.files.mark_written();
        }
        // A file that was closed for the sake of this one, and could not be made durable: that is
        // found out here and nowhere else.
        match self.files.take_failure() {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    #[inline]
    fn perform(&mut self, request: &Request) -> Transfer {
        if SPECIAL {
            return self.perform_special(request);
        }
        let Request { op, bytes, offset, .. } = *request;
        let file = match self.files.get() {
            Ok(file) => file,
            Err(failure) => return Transfer { shorts: 0, result: Err(failure) },
        };
        let block = &mut self.buffer.bytes_mut()[..bytes as usize];
        if op == OpKind::Write {
            whole(block.len(), Call::Write, Call::ShortWrite, |done| {
                pwrite(file, &block[done..], offset + done as u64)
            })
        } else {
            whole(block.len(), Call::Read, Call::ShortRead, |done| {
                pread(file, &mut block[done..], offset + done as u64)
            })
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.files.flush()
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.files.close()
    }

    fn file_times(&self) -> FileTimes {
        let Openings { closes, held_ns, held_ns_max, .. } = self.files.openings();
        FileTimes { count: closes, sum_ns: held_ns, max_ns: held_ns_max }
    }
}

impl<const SPECIAL: bool> Sync<SPECIAL> {
    fn perform_special(&mut self, request: &Request) -> Transfer {
        let Special { fsync_each, lock, high_priority } = self.special;
        let Request { op, bytes, offset, .. } = *request;
        let file = match self.files.get() {
            Ok(file) => file,
            Err(failure) => return Transfer { shorts: 0, result: Err(failure) },
        };
        if lock {
            let kind = if op == OpKind::Write {
                FlockOperation::LockExclusive
            } else {
                FlockOperation::LockShared
            };
            if let Err(error) = retried(|| flock(file, kind)) {
                return failed(Call::Flock, error);
            }
        }
        let flags = if high_priority { ReadWriteFlags::HIPRI } else { ReadWriteFlags::empty() };
        let block = &mut self.buffer.bytes_mut()[..bytes as usize];
        let mut transfer = if op == OpKind::Write {
            whole(block.len(), Call::Write, Call::ShortWrite, |done| {
                let at = offset + done as u64;
                if high_priority {
                    pwritev2(file, &[IoSlice::new(&block[done..])], at, flags)
                } else {
                    pwrite(file, &block[done..], at)
                }
            })
        } else {
            whole(block.len(), Call::Read, Call::ShortRead, |done| {
                let at = offset + done as u64;
                if high_priority {
                    preadv2(file, &mut [IoSliceMut::new(&mut block[done..])], at, flags)
                } else {
                    pread(file, &mut block[done..], at)
                }
            })
        };
        if fsync_each && op == OpKind::Write && transfer.result.is_ok() {
            let flushed = retried(|| fsync(file)).map_err(|error| failure(Call::Fsync, error));
            transfer.result = flushed.and(transfer.result);
        }
        if lock && let Err(error) = retried(|| flock(file, FlockOperation::Unlock)) {
            transfer.result = transfer.result.and_then(|_| Err(failure(Call::Flock, error)));
        }
        transfer
    }
}

/// Asks for the rest of a block until it is whole.
#[inline]
fn whole(
    length: usize,
    call: Call,
    nothing: Call,
    mut rest: impl FnMut(usize) -> Result<usize, Errno>,
) -> Transfer {
    let mut done = 0;
    let mut shorts = 0;
    loop {
        match rest(done) {
            Ok(0) => {
                return Transfer { shorts, result: Err(Failure { call: nothing, errno: 0 }) };
            }
            Ok(moved) => {
                done += moved;
                if done >= length {
                    return Transfer { shorts, result: Ok(length as u64) };
                }
                shorts += 1;
            }
            Err(Errno::INTR) => {}
            Err(error) => {
                return Transfer { shorts, result: Err(failure(call, error)) };
            }
        }
    }
}

fn retried(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cold]
fn failure(call: Call, error: Errno) -> Failure {
    Failure { call, errno: error.raw_os_error() }
}

#[cold]
fn failed(call: Call, error: Errno) -> Transfer {
    Transfer { shorts: 0, result: Err(failure(call, error)) }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, fs::File, io::Read, sync::Arc};

    use super::*;

    fn scripted(length: usize, script: &[Result<usize, Errno>]) -> (Transfer, Vec<usize>) {
        let mut script: VecDeque<_> = script.iter().copied().collect();
        let mut asked = Vec::new();
        let transfer = whole(length, Call::Read, Call::ShortRead, |done| {
            asked.push(done);
            script.pop_front().expect("no call beyond the script")
        });
        assert!(script.is_empty(), "{script:?} was not asked for");
        (transfer, asked)
    }

    #[test]
    fn a_short_transfer_is_continued_and_counts_once() {
        let (transfer, asked) = scripted(100, &[Ok(30), Err(Errno::INTR), Ok(50), Ok(20)]);
        assert_eq!(transfer, Transfer { shorts: 2, result: Ok(100) });
        assert_eq!(asked, [0, 30, 30, 80]);
    }

    #[test]
    fn nothing_inside_the_range_is_an_error() {
        let (transfer, _) = scripted(100, &[Ok(30), Ok(0)]);
        let failure = Failure { call: Call::ShortRead, errno: 0 };
        assert_eq!(transfer, Transfer { shorts: 1, result: Err(failure) });
        let (transfer, _) = scripted(100, &[Err(Errno::IO)]);
        let failure = Failure { call: Call::Read, errno: libc::EIO };
        assert_eq!(transfer, Transfer { shorts: 0, result: Err(failure) });
    }

    fn request(op: OpKind, offset: u64) -> Request {
        Request { op, bytes: 8_192, offset, ..Request::NOTHING }
    }

    fn sync<const SPECIAL: bool>(file: &Arc<File>, buffer: Buffer) -> Sync<SPECIAL> {
        let special = Special { fsync_each: SPECIAL, ..Special::default() };
        Sync { files: Descriptors::fixed(vec![Arc::clone(file)]), buffer, special }
    }

    fn one<const SPECIAL: bool>(engine: &mut Sync<SPECIAL>, op: OpKind, offset: u64) -> Transfer {
        let request = request(op, offset);
        engine.prepare(&request).unwrap();
        engine.perform(&request)
    }

    #[test]
    fn blocks_arrive_where_they_belong() {
        let mut file = tempfile::tempfile().unwrap();
        let shared = Arc::new(file.try_clone().unwrap());
        let seeded = |seed| Buffer::seeded(8_192, 512, seed).unwrap();
        let mut write = sync::<true>(&shared, seeded(3));
        let whole = Transfer { shorts: 0, result: Ok(8_192) };
        assert_eq!(one(&mut write, OpKind::Write, 8_192), whole);
        assert_eq!(write.flush(), Ok(()));
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        assert_eq!(content[..8_192], [0; 8_192]);
        assert_eq!(content[8_192..], *seeded(3).bytes());
        let mut read = sync::<false>(&shared, Buffer::new(8_192, 512).unwrap());
        assert_eq!(one(&mut read, OpKind::Read, 8_192).result, Ok(8_192));
        assert_eq!(read.buffer(), seeded(3).bytes());
        // The file ends after 16 KiB: half a block, then nothing.
        let failure = Failure { call: Call::ShortRead, errno: 0 };
        let short = Transfer { shorts: 1, result: Err(failure) };
        assert_eq!(one(&mut read, OpKind::Read, 12_288), short);
        read.close().unwrap();
        assert!(read.perform(&request(OpKind::Read, 0)).result.unwrap_err().is_fatal());
        write.close().unwrap();
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
