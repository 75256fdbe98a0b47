//! The operations of a thread: where, of what kind and of which size.

use std::{cmp::Reverse, sync::Arc};

use iofleet_shared::{
    stats::NamesLeft,
    work::{OpKind, OpShare, Pattern, SizeShare},
};

use super::{AnyCursor, Blocks, Cursor, Picker, Place, Random, RandomOnce, Sequential, mix64};
use crate::{engine::Request, names::NameSource};

pub use both::Both;

mod both;

/// A series of operations.
pub trait Source {
    /// The next operation; none when there is nothing left to do. Orders of blocks never end.
    fn next(&mut self) -> Option<Request>;

    /// The operation that came last is not issued after all.
    fn taken_back(&mut self, _request: &Request) {}

    /// Where the names stand that it worked on.
    fn names(&self) -> Option<NamesLeft> {
        None
    }

    /// After the last operation: one more that leaves names as a later point can be told of them,
    /// and is in no count; none when there is nothing to be done.
    fn settle(&mut self) -> Option<Request> {
        None
    }
}

/// Operations of one kind on one block each.
#[derive(Debug)]
pub struct Single<C> {
    cursor: C,
    op: OpKind,
    lane: u32,
}

impl<C: Cursor> Single<C> {
    /// `lane`: place of the kind among the kinds of the point.
    #[must_use]
    pub fn new(cursor: C, op: OpKind, lane: u32) -> Self {
        Self { cursor, op, lane }
    }
}

impl<C: Cursor> Source for Single<C> {
    #[inline(always)]
    fn next(&mut self) -> Option<Request> {
        Some(request(self.op, self.lane, self.cursor.next(), 1))
    }
}

/// The source of a point's threads, as a value that is matched once: the commonest ones by
/// themselves, so that an operation costs next to nothing.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each thread")]
pub enum AnySource {
    /// Ascending.
    Sequential(Single<Sequential>),
    /// Uniform.
    Random(Single<Random>),
    /// A permutation.
    RandomOnce(Single<RandomOnce>),
    /// All else on blocks.
    Drawn(Drawn),
    /// Operations on names.
    Names(Box<NameSource>),
    /// Both.
    Both(Box<Both>),
}

impl AnySource {
    /// The source for `ops` and `sizes` over `blocks`; see [`Drawn::new`].
    #[must_use]
    pub fn new(
        blocks: &Arc<Blocks>,
        pattern: &Pattern,
        ops: &[OpShare],
        sizes: &[SizeShare],
        lanes: &[OpKind],
        seed: u64,
    ) -> Self {
        let blocks = Arc::clone(blocks);
        match (ops, sizes, pattern) {
            ([only], [] | [_], Pattern::Sequential) => Self::Sequential(Single::new(
                Sequential::new(blocks),
                only.op,
                lane_of(lanes, only.op),
            )),
            ([only], [] | [_], Pattern::Random) => Self::Random(Single::new(
                Random::new(blocks, seed),
                only.op,
                lane_of(lanes, only.op),
            )),
            ([only], [] | [_], Pattern::RandomOnce) => Self::RandomOnce(Single::new(
                RandomOnce::new(blocks, seed),
                only.op,
                lane_of(lanes, only.op),
            )),
            _ => Self::Drawn(Drawn::new(blocks, pattern, ops, sizes, lanes, seed)),
        }
    }
}

/// Place of a kind among the kinds of the point.
pub(crate) fn lane_of(lanes: &[OpKind], op: OpKind) -> u32 {
    (0..).zip(lanes).find(|(_, lane)| **lane == op).map_or(0, |(at, _)| at)
}

/// Operations whose kind and size are drawn, each independently of all else.
///
/// The smallest size is that of the blocks, and the others are multiples of it. Ascending and
/// descending orders go on by what was taken, and an operation is cut off where a part ends (an
/// extent, or a whole file), so that a pass covers each block once. Orders with repetition draw a
/// block; the operation covers it and begins at a multiple of its size after the start of the part,
/// and where that size does not fit it has the greatest that does. Blocks with gaps between them
/// are parts by themselves. Orders that take each block once in a pass otherwise have no sizes but
/// that of the blocks.
#[derive(Debug)]
pub struct Drawn {
    blocks: Arc<Blocks>,
    order: Order,
    ops: Vec<(OpKind, u32)>,
    op: Picker,
    /// In blocks.
    sizes: Vec<u64>,
    size: Picker,
    /// The sizes, greatest first.
    descending: Vec<u64>,
    hint: usize,
}

#[derive(Debug)]
enum Order {
    /// One block each.
    Blocks(AnyCursor),
    /// Around the block that is drawn.
    Around(AnyCursor),
    /// Ascending, with the number of the next block.
    Ascending(u64),
    /// Descending, with the number of blocks that are left of this pass.
    Descending(u64),
}

impl Drawn {
    /// What is drawn follows from `seed`. There is at least one of `ops`, each of which is among
    /// `lanes`, the kinds of the point; sizes as said above, none for the blocks' own.
    #[must_use]
    pub fn new(
        blocks: Arc<Blocks>,
        pattern: &Pattern,
        ops: &[OpShare],
        sizes: &[SizeShare],
        lanes: &[OpKind],
        seed: u64,
    ) -> Self {
        let in_blocks: Vec<u64> =
            sizes.iter().map(|size| (size.bytes / blocks.block_bytes()).max(1)).collect();
        let mut descending = in_blocks.clone();
        descending.sort_unstable_by_key(|size| Reverse(*size));
        let several = in_blocks.iter().any(|size| *size > 1);
        let cursor = || AnyCursor::new(pattern, Arc::clone(&blocks), seed);
        let order = match pattern {
            Pattern::Sequential if several => Order::Ascending(0),
            Pattern::Backward if several => Order::Descending(blocks.count()),
            Pattern::Random
            | Pattern::Zipf { .. }
            | Pattern::Pareto { .. }
            | Pattern::Normal { .. }
                if several =>
            {
                Order::Around(cursor())
            }
            Pattern::Sequential
            | Pattern::Backward
            | Pattern::Strided { .. }
            | Pattern::Random
            | Pattern::RandomOnce
            | Pattern::Zipf { .. }
            | Pattern::Pareto { .. }
            | Pattern::Normal { .. } => Order::Blocks(cursor()),
        };
        let op_weights: Vec<u32> = ops.iter().map(|share| share.weight).collect();
        let size_weights: Vec<u32> = sizes.iter().map(|share| share.weight).collect();
        Self {
            order,
            ops: ops.iter().map(|share| (share.op, lane_of(lanes, share.op))).collect(),
            op: Picker::new(&op_weights, mix64(seed ^ 0x0b1d_0000_0000_0001)),
            sizes: in_blocks,
            size: Picker::new(&size_weights, mix64(seed ^ 0x0b1d_0000_0000_0002)),
            descending,
            hint: 0,
            blocks,
        }
    }

    #[inline]
    fn place(&mut self) -> Place {
        match &mut self.order {
            Order::Blocks(cursor) => cursor.next(),
            Order::Around(cursor) => {
                let number = cursor.draw();
                let most = self.sizes[self.size.pick()];
                around(&self.blocks, number, most, &self.descending, &mut self.hint)
            }
            Order::Ascending(next) => {
                let number = *next;
                let end = self.blocks.run(number, &mut self.hint).end;
                let end = end.min(number + self.sizes[self.size.pick()]);
                *next = if end == self.blocks.count() { 0 } else { end };
                self.blocks.joined(number..end, &mut self.hint)
            }
            Order::Descending(left) => {
                let end = *left;
                let start = self.blocks.run(end - 1, &mut self.hint).start;
                let start = start.max(end.saturating_sub(self.sizes[self.size.pick()]));
                *left = if start == 0 { self.blocks.count() } else { start };
                self.blocks.joined(start..end, &mut self.hint)
            }
        }
    }
}

/// A place around block `number` that begins at a multiple of its size in the part and is whole:
/// of the greatest of `sizes` (in blocks, descending) up to `most` that fits there. The block itself
/// if none does.
#[inline]
fn around(blocks: &Blocks, number: u64, most: u64, sizes: &[u64], hint: &mut usize) -> Place {
    let run = blocks.run(number, hint);
    let whole_end = if blocks.ends_whole(*hint) { run.end } else { run.end - 1 };
    for &size in sizes.iter().filter(|size| **size <= most) {
        let start = number - (number - run.start) % size;
        if start + size <= whole_end {
            return blocks.joined(start..start + size, hint);
        }
    }
    blocks.place_near(number, hint)
}

impl Source for Drawn {
    #[inline]
    fn next(&mut self) -> Option<Request> {
        let (op, lane) = self.ops[self.op.pick()];
        let place = self.place();
        let blocks = u64::from(place.bytes).div_ceil(self.blocks.block_bytes());
        Some(request(op, lane, place, u32::try_from(blocks).unwrap_or(u32::MAX)))
    }
}

#[inline(always)]
fn request(op: OpKind, lane: u32, place: Place, blocks: u32) -> Request {
    let Place { number, offset, file, bytes } = place;
    Request { op, lane, file, bytes, number, offset, blocks }
}

#[cfg(test)]
mod tests;
