//! What the blocks of I/O threads hold: the memory ([`Buffer`]), the bytes that are written
//! ([`Filler`]), and units that carry their place, so that a reader can tell what became of them
//! ([`Units`], [`Generations`]).

pub use buffer::Buffer;
pub use fill::Filler;
pub use generations::Generations;
pub use memory::MemoryPlace;
pub use units::{Damage, Expected, Units};

mod buffer;
mod fill;
mod generations;
pub(crate) mod memory;
mod random;
mod units;

/// Bytes of a unit: of deduplication, compression and verification. Blocks are cut into units from
/// their starts.
pub const UNIT: usize = 4_096;
