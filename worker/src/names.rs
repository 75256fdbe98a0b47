//! Which name comes next: the operations on names of a thread, in a stage of one kind or in a mix.
//!
//! Files are made and removed in the order of their numbers, so that those that exist are always
//! one window of numbers. The window goes round: after the last number the first is made again, if
//! its file is gone. Directories are removed from the last one on. The same seed gives the same
//! operations.

use iofleet_shared::{
    stats::NamesLeft,
    work::{Names, OpKind, OpShare, Pattern, TreePart},
};

use crate::{
    engine::Request,
    pattern::{Source, Xoshiro, lane_of},
    tree::begins,
};
use order::Order;
use window::{Renamed, Window};

mod order;
mod window;

/// Directories of a thread's mix that exist at most.
pub const MIXED_DIRS: u32 = 4096;

/// The operations on names of one thread.
#[derive(Debug)]
pub struct NameSource {
    ops: Vec<OpShare>,
    /// Place of each of them among the kinds of the point.
    lanes: Vec<u32>,
    /// Sum of the weights.
    weights: u64,
    names: Existing,
    files_per_dir: u64,
    renamed: Renamed,
    order: Order,
    random: Xoshiro,
    /// How many files [`NameSource::settle`] has looked at.
    settled: u64,
    /// Whether files are to be renamed in the end, where some are and some are not.
    settles_to: bool,
    /// Counted among what exists, and not done.
    undone: Option<Request>,
}

/// What exists.
#[derive(Debug, Clone, Copy)]
struct Existing {
    files: Window,
    /// Directories that hold files: the first so many.
    dirs: u32,
    dirs_max: u32,
    /// Directories that the mix makes and removes.
    mixed: Window,
}

impl Existing {
    /// Whether an operation of a mix finds what it needs.
    #[inline]
    fn allow(&self, op: OpKind) -> bool {
        match op {
            OpKind::Create => !self.files.is_full(),
            OpKind::Unlink | OpKind::Stat | OpKind::Open | OpKind::Rename => self.files.live() > 0,
            OpKind::Mkdir => !self.mixed.is_full(),
            OpKind::Rmdir => self.mixed.live() > 0,
            OpKind::Readdir => self.dirs > 0,
            OpKind::Write | OpKind::Read => false,
        }
    }
}

impl NameSource {
    /// The operations of `ops` on a part that is armed: a single kind by `pattern`, once for each
    /// name or `again` and again where that is possible; several at random by their weights.
    ///
    /// # Errors
    /// With the first kind that does not work on names.
    pub fn new(
        part: &TreePart,
        ops: &[OpShare],
        lanes: &[OpKind],
        pattern: Pattern,
        again: bool,
        seed: u64,
    ) -> Result<Self, OpKind> {
        if let Some(share) = ops.iter().find(|share| share.op.moves_data()) {
            return Err(share.op);
        }
        let Names { dirs, files, gone } = begins(part, ops);
        let files = Window::new(gone, files, part.files());
        let mixed = Window::new(0, 0, u64::from(MIXED_DIRS));
        let listing = ops.iter().all(|share| share.op == OpKind::Readdir);
        let count = if listing { u64::from(dirs) } else { files.live() };
        let renames = ops.iter().any(|share| share.op == OpKind::Rename);
        Ok(Self {
            ops: ops.to_vec(),
            lanes: ops.iter().map(|share| lane_of(lanes, share.op)).collect(),
            weights: ops.iter().map(|share| u64::from(share.weight)).sum(),
            names: Existing { files, dirs, dirs_max: part.dirs, mixed },
            files_per_dir: u64::from(part.files_per_dir.max(1)),
            renamed: Renamed::new(part.renamed, if renames { part.files() } else { 0 }),
            order: Order::new(pattern, count, again, seed),
            random: Xoshiro::new(seed),
            settled: 0,
            settles_to: !part.renamed,
            undone: None,
        })
    }

    /// What exists once all operations so far have been done, as the next point on the tree is
    /// told: the number after the last file may be beyond the thread's files, and is meant modulo
    /// their number then.
    #[must_use]
    pub fn names(&self) -> Names {
        let (gone, files) = self.names.files.ends();
        Names { dirs: self.names.dirs, files, gone }
    }

    /// Whether the files that exist have been renamed; none if some have been and some not.
    #[must_use]
    pub fn renamed(&self) -> Option<bool> {
        let files = self.names.files;
        let mut each = (0..files.live()).map(|place| self.renamed.get(files.number(place)));
        let first = each.next().unwrap_or_else(|| self.renamed.fresh());
        each.all(|renamed| renamed == first).then_some(first)
    }

    /// After the last operation: the next rename that it takes until all files that exist have been
    /// renamed, or none has; without it a stage that stopped anywhere leaves names that no later
    /// point can be told of. None when all is as asked.
    pub fn settle(&mut self, renamed: bool) -> Option<Request> {
        while self.settled < self.names.files.live() {
            let number = self.names.files.number(self.settled);
            self.settled += 1;
            if self.renamed.get(number) != renamed {
                return Some(self.on_file(OpKind::Rename, 0, number));
            }
        }
        self.settled = 0;
        self.renamed.settle(renamed);
        None
    }

    #[inline]
    fn plain(&mut self, op: OpKind) -> Option<Request> {
        match op {
            OpKind::Create | OpKind::Unlink => self.on_window(op, 0),
            OpKind::Stat | OpKind::Open | OpKind::Rename => {
                let place = self.order.next()?;
                Some(self.on_file(op, 0, self.names.files.number(place)))
            }
            OpKind::Readdir => Some(on_dir(op, 0, self.order.next()?)),
            OpKind::Mkdir => {
                let dir = self.names.dirs;
                (dir < self.names.dirs_max).then(|| {
                    self.names.dirs += 1;
                    on_dir(op, 0, u64::from(dir))
                })
            }
            OpKind::Rmdir => {
                self.names.dirs = self.names.dirs.checked_sub(1)?;
                Some(on_dir(op, 0, u64::from(self.names.dirs)))
            }
            OpKind::Write | OpKind::Read => None,
        }
    }

    /// One of several kinds: the one that is drawn; if it can't be done, the opposite one where
    /// that is part of the mix; otherwise another draw, among those that can.
    #[inline]
    fn mixed(&mut self) -> Option<Request> {
        let drawn = draw(&mut self.random, &self.ops, self.weights, |_| true)?;
        let op = self.ops[drawn].op;
        if self.names.allow(op) {
            return self.one_of(op, drawn);
        }
        let opposite = opposite(op);
        let lane = self.ops.iter().position(|share| Some(share.op) == opposite);
        if let Some((op, lane)) = opposite.zip(lane)
            && self.names.allow(op)
        {
            return self.one_of(op, lane);
        }
        let possible = |share: &&OpShare| self.names.allow(share.op);
        let weights = self.ops.iter().filter(possible).map(|share| u64::from(share.weight)).sum();
        let names = self.names;
        let lane = draw(&mut self.random, &self.ops, weights, |op| names.allow(op))?;
        self.one_of(self.ops[lane].op, lane)
    }

    #[inline]
    fn one_of(&mut self, op: OpKind, lane: usize) -> Option<Request> {
        let lane = u32::try_from(lane).unwrap_or(u32::MAX);
        match op {
            OpKind::Create | OpKind::Unlink => self.on_window(op, lane),
            OpKind::Stat | OpKind::Open | OpKind::Rename => {
                let place = self.random.below(self.names.files.live());
                Some(self.on_file(op, lane, self.names.files.number(place)))
            }
            OpKind::Readdir => Some(on_dir(op, lane, self.random.below(self.names.dirs.into()))),
            OpKind::Mkdir => {
                let number = self.names.mixed.make()?;
                Some(on_dir(op, lane, u64::from(self.names.dirs_max) + number))
            }
            OpKind::Rmdir => {
                let number = self.names.mixed.take()?;
                Some(on_dir(op, lane, u64::from(self.names.dirs_max) + number))
            }
            OpKind::Write | OpKind::Read => None,
        }
    }

    /// The next file is made, or the oldest one goes.
    #[inline]
    fn on_window(&mut self, op: OpKind, lane: u32) -> Option<Request> {
        let number = if op == OpKind::Create {
            let number = self.names.files.make()?;
            self.renamed.made(number);
            number
        } else {
            self.names.files.take()?
        };
        Some(self.on_file(op, lane, number))
    }

    #[inline]
    fn on_file(&mut self, op: OpKind, lane: u32, number: u64) -> Request {
        let renamed = self.renamed.get(number);
        if op == OpKind::Rename {
            self.renamed.toggle(number);
        }
        let file = u32::try_from(number / self.files_per_dir).unwrap_or(u32::MAX);
        Request { op, lane, file, bytes: 0, number, offset: u64::from(renamed), blocks: 1 }
    }
}

impl Source for NameSource {
    #[inline]
    fn next(&mut self) -> Option<Request> {
        let request = match self.ops.as_slice() {
            [] => None,
            [only] => self.plain(only.op),
            _ => self.mixed(),
        }?;
        let lane = self.lanes.get(request.lane as usize).copied().unwrap_or(0);
        Some(Request { lane, ..request })
    }

    fn names(&self) -> Option<NamesLeft> {
        Some(NamesLeft { names: Self::names(self), renamed: self.renamed() })
    }

    #[cold]
    fn taken_back(&mut self, request: &Request) {
        self.undone = Some(*request);
    }

    /// First what was taken back: names are told of as if it had been done.
    fn settle(&mut self) -> Option<Request> {
        if let Some(request) = self.undone.take() {
            return Some(request);
        }
        // Where all files are alike already, there is nothing to be done.
        if self.settled == 0 && self.renamed().is_some() {
            return None;
        }
        let target = self.settles_to;
        Self::settle(self, target)
    }
}

#[inline]
fn on_dir(op: OpKind, lane: u32, dir: u64) -> Request {
    let file = u32::try_from(dir).unwrap_or(u32::MAX);
    Request { op, lane, file, bytes: 0, number: dir, offset: 0, blocks: 1 }
}

/// The place of a kind that is drawn by weight among some, whose weights sum to `weights`; none if
/// that is 0.
#[inline]
fn draw(
    random: &mut Xoshiro,
    ops: &[OpShare],
    weights: u64,
    among: impl Fn(OpKind) -> bool,
) -> Option<usize> {
    if weights == 0 {
        return None;
    }
    let mut rest = random.below(weights);
    ops.iter().position(|share| {
        if !among(share.op) {
            return false;
        }
        let weight = u64::from(share.weight);
        let found = rest < weight;
        rest = rest.saturating_sub(weight);
        found
    })
}

/// What makes an operation possible that is not.
fn opposite(op: OpKind) -> Option<OpKind> {
    match op {
        OpKind::Create => Some(OpKind::Unlink),
        OpKind::Stat | OpKind::Open | OpKind::Rename | OpKind::Unlink => Some(OpKind::Create),
        OpKind::Mkdir => Some(OpKind::Rmdir),
        OpKind::Rmdir => Some(OpKind::Mkdir),
        OpKind::Readdir | OpKind::Write | OpKind::Read => None,
    }
}

#[cfg(test)]
mod tests;
