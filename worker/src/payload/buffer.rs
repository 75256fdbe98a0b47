//! Memory of I/O: whole pages of its own, aligned for direct I/O (an unaligned buffer costs a quarter
//! of the rate), and touched before the point starts.

use std::{io, slice};

use super::memory::{Mapping, MemoryPlace, PAGE};
use crate::pattern::mix64;

/// Memory of one I/O thread's operation in flight.
#[derive(Debug)]
pub struct Buffer {
    // Unmapped when it is dropped.
    _mapping: Mapping,
    start: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, and an address means the same in every thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A buffer of `length` bytes, each page of it touched, aligned to a page and to
    /// `alignment` (a power of two).
    ///
    /// # Errors
    /// When the kernel gives no memory, or `length` or `alignment` is not a size it could give.
    pub fn new(length: usize, alignment: usize) -> io::Result<Self> {
        Self::with(length, alignment, &MemoryPlace::default())
    }

    /// The same, at a place.
    ///
    /// # Errors
    /// As [`Buffer::new`]; the text says what there is too little of at that place.
    pub fn with(length: usize, alignment: usize, place: &MemoryPlace) -> io::Result<Self> {
        let alignment = alignment.max(PAGE);
        let mapped = place.mapped(length, alignment).ok_or(io::ErrorKind::InvalidInput)?;
        let mapping = Mapping::new(mapped, place)?;
        let base = mapping.start();
        // Not so far away that `length` bytes behind it were not mapped as well.
        let start = base.wrapping_add(base.align_offset(alignment));
        let mut buffer = Self { _mapping: mapping, start, length };
        for page in buffer.bytes_mut().chunks_mut(PAGE) {
            page[0] = std::hint::black_box(1);
        }
        Ok(buffer)
    }

    /// The same, filled with bytes that follow from `seed` and have no pattern.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn seeded(length: usize, alignment: usize, seed: u64) -> io::Result<Self> {
        let mut buffer = Self::new(length, alignment)?;
        fill(buffer.bytes_mut(), seed);
        Ok(buffer)
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` and `length` lie inside the mapping, which lives as long as `self`, is
        // initialised (by the kernel with zeros) and is written only through `&mut self`.
        unsafe { slice::from_raw_parts(self.start, self.length) }
    }

    /// Its bytes, to be written.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.start, self.length) }
    }
}

/// Fills `bytes` with a stream that follows from `seed`.
fn fill(bytes: &mut [u8], seed: u64) {
    // Seeds of neighbours differ by little; mixed, their streams have nothing in common.
    let mut state = mix64(seed ^ 0x5eed_da7a_0000_0000);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        *word = mix64(state).to_le_bytes();
    }
    let last = mix64(state.wrapping_add(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn is_aligned_and_whole() {
        for (length, alignment) in [(1, 1), (4_096, 512), (10_000, 4_096), (1 << 20, 1 << 16)] {
            let mut buffer = Buffer::new(length, alignment).unwrap();
            assert_eq!(buffer.bytes().len(), length);
            assert_eq!(buffer.bytes().as_ptr().addr() % alignment.max(4_096), 0);
            buffer.bytes_mut()[length - 1] = 7;
            assert_eq!(buffer.bytes()[length - 1], 7);
        }
        assert!(Buffer::new(0, 512).is_err());
        assert!(Buffer::new(4_096, 12_288).is_err());
    }

    #[test]
    fn the_seed_alone_decides() {
        let of = |seed| Buffer::seeded(100_003, 512, seed).unwrap().bytes().to_vec();
        assert_eq!(of(1), of(1));
        // No aligned word of one thread's data is anywhere in its neighbour's.
        let words: BTreeSet<[u8; 8]> = of(1).as_chunks::<8>().0.iter().copied().collect();
        assert_eq!(words.len(), 100_003 / 8);
        assert!(of(2).as_chunks::<8>().0.iter().all(|word| !words.contains(word)));
    }

    #[test]
    fn does_not_compress() {
        let buffer = Buffer::seeded(1 << 20, 512, 42).unwrap();
        let mut counts = [0_u32; 256];
        buffer.bytes().iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        let total = f64::from(1 << 20);
        let bits: f64 =
            counts.iter().map(|count| f64::from(*count) / total).map(|p| -p * p.log2()).sum();
        assert!(bits / 8.0 > 0.999, "{bits} bits a byte");
        let blocks: BTreeSet<&[u8]> = buffer.bytes().chunks(4_096).collect();
        assert_eq!(blocks.len(), 256);
    }
}
