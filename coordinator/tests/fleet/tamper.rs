//! Damage on order: what the observer makes of single writes while it tells the writer that all is
//! well.

use std::collections::BTreeMap;

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tamper {
    /// One bit is the other one.
    Flip,
    /// Nothing is written.
    Drop,
    /// It goes to where the write before it in the same file went.
    Elsewhere,
    /// Only its first half is written.
    Tear,
}

/// Of which write something else is made.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// Name of the file.
    pub(crate) file: String,
    /// Which of its writes, from 0.
    pub(crate) nth: u64,
    pub(crate) tamper: Tamper,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) file: String,
    pub(crate) tamper: Tamper,
    /// Where it was to be written.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Where the write before it in the same file went.
    pub(crate) before: u64,
}

/// Orders, and how far they are carried out.
#[derive(Debug, Default)]
pub(crate) struct Tampers {
    orders: Vec<Order>,
    /// Writes of each file, and the offset of the last one.
    seen: BTreeMap<String, (u64, u64)>,
    pub(crate) done: Vec<Done>,
}

impl Tampers {
    pub(crate) fn new(orders: Vec<Order>) -> Self {
        Self { orders, ..Self::default() }
    }

    /// Takes a write to a file that is long enough already.
    pub(crate) fn write(&mut self, file: &str, kept: &mut [u8], offset: u64, data: &[u8]) {
        let (nth, before) = self.seen.get(file).copied().unwrap_or((0, offset));
        self.seen.insert(file.to_owned(), (nth + 1, offset));
        let found = self.orders.iter().find(|order| order.file == file && order.nth == nth);
        let mut put = |offset: u64, data: &[u8]| {
            let at = usize::try_from(offset).unwrap();
            kept[at..at + data.len()].copy_from_slice(data);
        };
        let Some(Order { tamper, .. }) = found else { return put(offset, data) };
        match tamper {
            Tamper::Flip => {
                let mut data = data.to_vec();
                let at = flipped(data.len());
                data[at] ^= 0x10;
                put(offset, &data);
            }
            Tamper::Drop => {}
            Tamper::Elsewhere => put(before, data),
            Tamper::Tear => put(offset, &data[..data.len() / 2]),
        }
        let (file, bytes) = (file.to_owned(), data.len() as u64);
        self.done.push(Done { file, tamper: *tamper, offset, bytes, before });
    }
}

/// Which byte of a write of so many is changed: one behind the middle.
pub(crate) fn flipped(bytes: usize) -> usize {
    bytes / 2 + 100
}
