//! The engine `null`: moves nothing. What is left of a point with it is the instrument's own cost.

use super::{Engine, Failure, Transfer};
use crate::{engine::Request, payload::Buffer};

/// Says of each operation that it is done.
#[derive(Debug)]
pub struct Null {
    buffer: Buffer,
}

impl Null {
    /// With a buffer that is filled and looked at as any engine's.
    #[must_use]
    pub fn new(buffer: Buffer) -> Self {
        Self { buffer }
    }
}

impl Engine for Null {
    #[inline]
    fn buffer(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }

    #[inline]
    fn perform(&mut self, request: &Request) -> Transfer {
        Transfer { shorts: 0, result: Ok(u64::from(request.bytes)) }
    }

    #[inline]
    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use iofleet_shared::work::OpKind;

    use super::*;

    #[test]
    fn all_is_done_at_once() {
        let mut null = Null::new(Buffer::new(4_096, 512).unwrap());
        null.buffer()[0] = 7;
        for (op, bytes) in [(OpKind::Read, 4_096), (OpKind::Write, 512), (OpKind::Stat, 0)] {
            let request =
                Request { op, lane: 0, file: 9, bytes, number: 1, offset: u64::MAX, blocks: 1 };
            let moved = Ok(u64::from(bytes));
            assert_eq!(null.perform(&request), Transfer { shorts: 0, result: moved });
        }
        assert_eq!((null.buffer().len(), null.buffer()[0]), (4_096, 7));
        assert_eq!(null.flush(), Ok(()));
    }
}
