//! Operations on the data of a tree's files and on their names, by one thread.

use iofleet_shared::stats::FileTimes;

use super::{Engine, Failure, Namespace, Request, Sync, Transfer};

/// The engine `sync` for data, beside the one for names.
#[derive(Debug)]
pub struct Both {
    data: Sync<false>,
    names: Namespace,
}

impl Both {
    /// Each holds what it needs of the tree for itself.
    #[must_use]
    pub fn new(data: Sync<false>, names: Namespace) -> Self {
        Self { data, names }
    }
}

impl Engine for Both {
    #[inline]
    fn buffer(&mut self) -> &mut [u8] {
        self.data.buffer()
    }

    #[inline]
    fn prepare(&mut self, request: &Request) -> Result<(), Failure> {
        if request.op.moves_data() {
            self.data.prepare(request)
        } else {
            self.names.prepare(request)
        }
    }

    #[inline]
    fn perform(&mut self, request: &Request) -> Transfer {
        if request.op.moves_data() {
            self.data.perform(request)
        } else {
            self.names.perform(request)
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.data.flush()
    }

    fn close(&mut self) -> Result<(), Failure> {
        let names = self.names.close();
        self.data.close().and(names)
    }

    fn file_times(&self) -> FileTimes {
        self.data.file_times()
    }
}
