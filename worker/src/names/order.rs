//! The order of names in a stage of one kind that leaves them there.

use std::sync::Arc;

use iofleet_shared::work::{Extent, Pattern};

use crate::pattern::{AnyCursor, Blocks, Cursor};

/// Places from 0 in an order, once or again and again.
#[derive(Debug)]
pub(super) struct Order {
    cursor: AnyCursor,
    /// How many are left; none: without end.
    left: Option<u64>,
}

impl Order {
    /// Of `count` places; nothing at all where there are none.
    pub(super) fn new(pattern: Pattern, count: u64, again: bool, seed: u64) -> Self {
        let blocks = Arc::new(Blocks::new(&[Extent { offset: 0, length: count }], 1));
        let cursor = AnyCursor::new(&pattern, blocks, seed);
        Self { cursor, left: (!again || count == 0).then_some(count) }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        Some(self.cursor.draw())
    }
}
