//! Orders in which all blocks have the same part: ascending, descending, in steps, uniform, and
//! permuted.

use std::sync::Arc;

use super::{Blocks, Cursor, Place, permutation::Permutation, random::Xoshiro};

/// Ascending.
#[derive(Debug)]
pub struct Sequential {
    blocks: Arc<Blocks>,
    next: u64,
    hint: usize,
}

impl Sequential {
    /// From the first block on.
    #[must_use]
    pub fn new(blocks: Arc<Blocks>) -> Self {
        Self { blocks, next: 0, hint: 0 }
    }
}

impl Cursor for Sequential {
    #[inline(always)]
    fn draw(&mut self) -> u64 {
        let number = self.next;
        self.next = if number + 1 == self.blocks.count() { 0 } else { number + 1 };
        number
    }

    #[inline(always)]
    fn next(&mut self) -> Place {
        let number = self.draw();
        self.blocks.place_near(number, &mut self.hint)
    }
}

/// Descending.
#[derive(Debug)]
pub struct Backward {
    blocks: Arc<Blocks>,
    /// Blocks of this pass that have not had their turn: those of the lowest numbers.
    left: u64,
    hint: usize,
}

impl Backward {
    /// From the last block on.
    #[must_use]
    pub fn new(blocks: Arc<Blocks>) -> Self {
        Self { left: blocks.count(), blocks, hint: 0 }
    }
}

impl Cursor for Backward {
    #[inline(always)]
    fn draw(&mut self) -> u64 {
        let number = self.left - 1;
        self.left = if number == 0 { self.blocks.count() } else { number };
        number
    }

    #[inline(always)]
    fn next(&mut self) -> Place {
        let number = self.draw();
        self.blocks.place_near(number, &mut self.hint)
    }
}

/// Every so many blocks, from the first on, then from the second on, and so forth.
#[derive(Debug)]
pub struct Strided {
    blocks: Arc<Blocks>,
    step: u64,
    /// The block with which this row began.
    row: u64,
    next: u64,
    hint: usize,
}

impl Strided {
    /// From the first block on; `step` is at least 1.
    #[must_use]
    pub fn new(blocks: Arc<Blocks>, step: u64) -> Self {
        // More steps than blocks make rows of one block.
        let step = step.min(blocks.count()).max(1);
        Self { blocks, step, row: 0, next: 0, hint: 0 }
    }
}

impl Cursor for Strided {
    #[inline(always)]
    fn draw(&mut self) -> u64 {
        let number = self.next;
        self.next += self.step;
        if self.next >= self.blocks.count() {
            self.row = if self.row + 1 == self.step { 0 } else { self.row + 1 };
            self.next = self.row;
        }
        number
    }

    #[inline(always)]
    fn next(&mut self) -> Place {
        let number = self.draw();
        self.blocks.place_near(number, &mut self.hint)
    }
}

/// Uniform, with repetition.
#[derive(Debug)]
pub struct Random {
    blocks: Arc<Blocks>,
    random: Xoshiro,
}

impl Random {
    /// Draws that follow from `seed`.
    #[must_use]
    pub fn new(blocks: Arc<Blocks>, seed: u64) -> Self {
        Self { blocks, random: Xoshiro::new(seed) }
    }
}

impl Cursor for Random {
    #[inline(always)]
    fn draw(&mut self) -> u64 {
        self.random.below(self.blocks.count())
    }

    #[inline(always)]
    fn next(&mut self) -> Place {
        let number = self.draw();
        self.blocks.place(number)
    }
}

/// Each block once in a pass, in an order that follows from seed and pass.
#[derive(Debug)]
pub struct RandomOnce {
    blocks: Arc<Blocks>,
    permutation: Permutation,
    pass: u64,
    low: u64,
    high: u64,
    done: u64,
}

impl RandomOnce {
    /// Permutations that follow from `seed`.
    #[must_use]
    pub fn new(blocks: Arc<Blocks>, seed: u64) -> Self {
        let permutation = Permutation::new(blocks.count(), seed);
        Self { blocks, permutation, pass: 0, low: 0, high: 0, done: 0 }
    }
}

impl Cursor for RandomOnce {
    #[inline(always)]
    fn draw(&mut self) -> u64 {
        if self.done == self.blocks.count() {
            self.pass += 1;
            self.permutation.set_pass(self.pass);
            (self.low, self.high, self.done) = (0, 0, 0);
        }
        let number = self.permutation.of_digits(self.low, self.high);
        self.done += 1;
        self.low += 1;
        if self.low == self.permutation.width() {
            (self.low, self.high) = (0, self.high + 1);
        }
        number
    }

    #[inline(always)]
    fn next(&mut self) -> Place {
        let number = self.draw();
        self.blocks.place(number)
    }
}
