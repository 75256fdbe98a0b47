//! The engine `sync`: `pread` and `pwrite`, one operation in flight.

use std::{fs::File, sync::Arc};

use rustix::{
    fs::fsync,
    io::{Errno, pread, pwrite},
};

use super::{Call, Engine, Failure, Transfer};
use crate::payload::Buffer;

/// Reads with `pread`.
#[derive(Debug)]
pub struct SyncRead {
    file: Option<Arc<File>>,
    buffer: Buffer,
}

impl SyncRead {
    /// Reads `file` block by block into `buffer`.
    #[must_use]
    pub fn new(file: Arc<File>, buffer: Buffer) -> Self {
        Self { file: Some(file), buffer }
    }
}

impl Engine for SyncRead {
    #[inline]
    fn transfer(&mut self, offset: u64) -> Transfer {
        let Some(file) = &self.file else {
            return closed(Call::Read);
        };
        let block = self.buffer.bytes_mut();
        let length = block.len();
        whole(length, Call::Read, Call::ShortRead, |done| {
            pread(file, &mut block[done..], offset + done as u64)
        })
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(&mut self) {
        self.file = None;
    }
}

/// Writes with `pwrite`; with `EACH`, fsync follows each block and is part of its operation.
#[derive(Debug)]
pub struct SyncWrite<const EACH: bool> {
    file: Option<Arc<File>>,
    buffer: Buffer,
}

impl<const EACH: bool> SyncWrite<EACH> {
    /// Writes `buffer` to each block of `file`.
    #[must_use]
    pub fn new(file: Arc<File>, buffer: Buffer) -> Self {
        Self { file: Some(file), buffer }
    }
}

impl<const EACH: bool> Engine for SyncWrite<EACH> {
    #[inline]
    fn transfer(&mut self, offset: u64) -> Transfer {
        let Some(file) = &self.file else {
            return closed(Call::Write);
        };
        let block = self.buffer.bytes();
        let mut transfer = whole(block.len(), Call::Write, Call::ShortWrite, |done| {
            pwrite(file, &block[done..], offset + done as u64)
        });
        if EACH && transfer.result.is_ok() {
            transfer.result = self.flush().and(transfer.result);
        }
        transfer
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let Some(file) = &self.file else {
            return Err(Failure { call: Call::Fsync, errno: libc::EBADF });
        };
        retried(|| fsync(file)).map_err(|error| failure(Call::Fsync, error))
    }

    fn close(&mut self) {
        self.file = None;
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
fn closed(call: Call) -> Transfer {
    Transfer { shorts: 0, result: Err(Failure { call, errno: libc::EBADF }) }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, io::Read};

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

    #[test]
    fn blocks_arrive_where_they_belong() {
        let mut file = tempfile::tempfile().unwrap();
        let shared = Arc::new(file.try_clone().unwrap());
        let seeded = |seed| Buffer::seeded(8_192, 512, seed).unwrap();
        let mut write = SyncWrite::<true>::new(Arc::clone(&shared), seeded(3));
        assert_eq!(write.transfer(8_192), Transfer { shorts: 0, result: Ok(8_192) });
        assert_eq!(write.flush(), Ok(()));
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        assert_eq!(content[..8_192], [0; 8_192]);
        assert_eq!(content[8_192..], *seeded(3).bytes());
        let mut read = SyncRead::new(Arc::clone(&shared), Buffer::new(8_192, 512).unwrap());
        assert_eq!(read.transfer(8_192).result, Ok(8_192));
        assert_eq!(read.buffer.bytes(), seeded(3).bytes());
        // The file ends after 16 KiB: half a block, then nothing.
        let failure = Failure { call: Call::ShortRead, errno: 0 };
        assert_eq!(read.transfer(12_288), Transfer { shorts: 1, result: Err(failure) });
        read.close();
        assert!(read.transfer(0).result.unwrap_err().is_fatal());
        write.close();
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
