//! Operations on data and on names in one mix.

use iofleet_shared::work::OpShare;

use super::{Drawn, Source};
use crate::{
    engine::Request,
    names::NameSource,
    pattern::{Picker, mix64},
};

/// Draws whether an operation is on data or on names, and then which.
///
/// Names that are only looked at (`stat`, `open`, `readdir`) are still there for the next operation
/// on data: mixes of both have no others.
#[derive(Debug)]
pub struct Both {
    data: Drawn,
    names: NameSource,
    /// 0: data, 1: names.
    kind: Picker,
}

impl Both {
    /// Mixes by the weights in `ops`; what is drawn follows from `seed`.
    #[must_use]
    pub fn new(data: Drawn, names: NameSource, ops: &[OpShare], seed: u64) -> Self {
        let weight = |on_data: bool| {
            let chosen = ops.iter().filter(|share| share.op.moves_data() == on_data);
            chosen.map(|share| share.weight).fold(0, u32::saturating_add)
        };
        let kind = Picker::new(&[weight(true), weight(false)], mix64(seed ^ 0x0b1d_0000_0000_0003));
        Self { data, names, kind }
    }
}

impl Source for Both {
    #[inline]
    fn next(&mut self) -> Option<Request> {
        if self.kind.pick() == 0 { self.data.next() } else { self.names.next() }
    }
}
