//! What the blocks of I/O threads hold: the memory ([`Buffer`]), and the bytes that are written
//! ([`Filler`]).

pub use buffer::Buffer;
pub use fill::Filler;

mod buffer;
mod fill;
mod random;

/// Bytes of a unit: of deduplication and compression. Blocks are cut into units from their starts.
pub const UNIT: usize = 4_096;
