//! What a thread's blocks hold: filled before a write, looked at after a read, both outside of the
//! operation's service time.

use std::io;

use iofleet_shared::{
    stats::{DamageCount, DamageKind},
    work::{Data, Files, OpKind, ThreadPlan, WorkerPlan},
};

use crate::{
    engine::{Failure, Request},
    pattern::mix64,
    payload::{Damage, Expected, Filler, Generations, Units},
};

/// See the module.
#[derive(Debug)]
pub enum Contents {
    /// Blocks stay as they are: reads that are not looked at, writes that repeat what the buffer
    /// was filled with, operations on names.
    Unchanged,
    /// Each write has new data.
    Fresh(Box<Filler>),
    /// Each write has data that says where it belongs, and each read is compared with that.
    Verified(Box<Verified>),
}

/// Data that says where it belongs.
#[derive(Debug)]
pub struct Verified {
    units: Units,
    ids: FileIds,
    /// What its own writes have left, of a thread that reads as well.
    own: Option<Generations>,
    /// The generation of writes where their blocks are not kept apart.
    generation: u32,
    before: Expected,
    block_bytes: usize,
    /// What was expected of each slot's read when it was issued.
    issued: Box<[Expected]>,
}

/// Numbers of files that are the same on all nodes.
#[derive(Debug)]
enum FileIds {
    Listed(Vec<u64>),
    /// Of a thread's part of a tree.
    Tree(u64),
}

impl Contents {
    /// For a thread with so many blocks and slots. All memory is taken here.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(
        plan: &WorkerPlan,
        thread: &ThreadPlan,
        blocks: u64,
        depth: u32,
    ) -> io::Result<Self> {
        let does = |op| thread.ops.iter().any(|share| share.op == op);
        let (reads, writes) = (does(OpKind::Read), does(OpKind::Write));
        let data = &plan.data;
        if data.verify && (reads || writes) {
            let own = if reads && writes { Some(Generations::new(blocks, data)?) } else { None };
            let before = if writes { Expected::before(data) } else { now(data) };
            return Ok(Self::Verified(Box::new(Verified {
                units: Units::new(data),
                ids: FileIds::new(thread),
                own,
                generation: data.generation,
                before,
                block_bytes: usize::try_from(plan.block_bytes()).unwrap_or(usize::MAX),
                issued: vec![before; usize::try_from(depth).unwrap_or(1)].into_boxed_slice(),
            })));
        }
        let fresh = writes && data.refresh;
        Ok(if fresh {
            Self::Fresh(Box::new(Filler::new(data, mix64(thread.seed))))
        } else {
            Self::Unchanged
        })
    }

    /// Before an operation is issued from slot `slot`, with the slot's buffer.
    #[inline(always)]
    pub(in crate::io_thread) fn before(&mut self, slot: u32, buffer: &mut [u8], request: &Request) {
        if !matches!(self, Self::Unchanged) {
            self.fill(slot, buffer, request);
        }
    }

    #[inline(never)]
    fn fill(&mut self, slot: u32, buffer: &mut [u8], request: &Request) {
        match self {
            Self::Unchanged => {}
            Self::Fresh(filler) => {
                if request.op == OpKind::Write
                    && let Some(block) = buffer.get_mut(..request.bytes as usize)
                {
                    filler.fill(block);
                }
            }
            Self::Verified(verified) => verified.before(slot, buffer, request),
        }
    }

    /// After it has come to an end. Says what is wrong with what it read.
    #[inline(always)]
    pub(in crate::io_thread) fn after(
        &mut self,
        slot: u32,
        buffer: &[u8],
        request: &Request,
        result: Result<u64, Failure>,
    ) -> Option<Damage> {
        match self {
            Self::Unchanged | Self::Fresh(_) => None,
            Self::Verified(verified) => verified.after(slot, buffer, request, result.is_ok()),
        }
    }

    /// The operation is not issued after all.
    #[cold]
    pub(in crate::io_thread) fn taken_back(&mut self, request: &Request) {
        if let Self::Verified(verified) = self
            && request.op == OpKind::Write
            && let Some(own) = &mut verified.own
        {
            own.failed(request.number, u64::from(request.blocks));
        }
    }
}

/// What a thread that only reads finds: what the last point that wrote has left.
fn now(data: &Data) -> Expected {
    Expected { newest: data.generation, oldest: data.generation, known: data.generation_known }
}

impl Verified {
    fn before(&mut self, slot: u32, buffer: &mut [u8], request: &Request) {
        let Request { op, file, bytes, number, offset, blocks, .. } = *request;
        if op == OpKind::Write {
            let generation = match &mut self.own {
                Some(own) => own.begin(number, u64::from(blocks)),
                None => self.generation,
            };
            if let Some(block) = buffer.get_mut(..bytes as usize) {
                self.units.stamp(block, self.ids.of(file), offset, generation);
            }
        } else if let (Some(own), Some(issued)) = (&self.own, self.issued.get_mut(slot as usize)) {
            *issued = own.expected(number, u64::from(blocks));
        }
    }

    fn after(
        &mut self,
        slot: u32,
        buffer: &[u8],
        request: &Request,
        is_ok: bool,
    ) -> Option<Damage> {
        let Request { op, file, bytes, number, offset, blocks, .. } = *request;
        match (op, &mut self.own) {
            (OpKind::Write, Some(own)) => {
                if is_ok {
                    own.done(number, u64::from(blocks));
                } else {
                    own.failed(number, u64::from(blocks));
                }
                None
            }
            (OpKind::Read, _) if is_ok => {
                let read = buffer.get(..bytes as usize)?;
                let issued = self.issued.get(slot as usize).copied().unwrap_or(self.before);
                self.check(read, file, number, offset, issued)
            }
            _ => None,
        }
    }

    /// Block by block of the grid, since each may have been written by another operation.
    fn check(
        &self,
        read: &[u8],
        file: u32,
        number: u64,
        offset: u64,
        issued: Expected,
    ) -> Option<Damage> {
        let id = self.ids.of(file);
        let mut damage: Option<Damage> = None;
        let blocks = read.chunks(self.block_bytes).zip(number..);
        for (at, (block, number)) in blocks.enumerate() {
            let offset = offset + (at * self.block_bytes) as u64;
            let expected = match &self.own {
                Some(own) => issued.until(own.expected(number, 1)),
                None => self.before,
            };
            let found = self.units.check(block, id, offset, expected);
            if let Some(found) = found.filter(|found| !may_be_parts(found.kind, expected)) {
                match &mut damage {
                    Some(damage) => damage.units += found.units,
                    None => damage = Some(found),
                }
            }
        }
        damage
    }
}

/// While a write of a block is in flight a read may find parts of both: file systems promise that
/// of no size, and what was torn so is no damage.
fn may_be_parts(kind: DamageKind, expected: Expected) -> bool {
    let in_flight = expected.oldest < expected.newest;
    in_flight && matches!(kind, DamageKind::Torn | DamageKind::Corrupted)
}

impl FileIds {
    fn new(thread: &ThreadPlan) -> Self {
        match &thread.files {
            Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => {
                Self::Listed(parts.iter().map(|part| hash(&part.file)).collect())
            }
            Files::Tree(tree) => Self::Tree(mix64(hash(&tree.base) ^ u64::from(thread.thread))),
        }
    }

    fn of(&self, file: u32) -> u64 {
        match self {
            Self::Listed(ids) => ids.get(file as usize).copied().unwrap_or(0),
            Self::Tree(part) => mix64(part.wrapping_add(u64::from(file))),
        }
    }
}

/// FNV-1a, mixed.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    mix64(text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Damage of one thread, by kind.
#[derive(Debug, Clone, Default)]
pub(in crate::io_thread) struct Damages {
    kinds: [Option<First>; DamageKind::ALL.len()],
}

/// The first damage of its kind, and how many units have been found.
#[derive(Debug, Clone, Copy)]
struct First {
    file: u32,
    damage: Damage,
    units: u64,
}

impl Damages {
    /// Adds what was found in a file.
    #[cold]
    pub(in crate::io_thread) fn add(&mut self, file: u32, damage: Damage) {
        let place = DamageKind::ALL.iter().position(|kind| *kind == damage.kind);
        if let Some(kind) = place.and_then(|place| self.kinds.get_mut(place)) {
            kind.get_or_insert(First { file, damage, units: 0 }).units += u64::from(damage.units);
        }
    }

    /// All, with the names of files.
    pub(in crate::io_thread) fn counts(&self, file_of: impl Fn(u32) -> String) -> Vec<DamageCount> {
        let count = |First { file, damage, units }: &First| DamageCount {
            kind: damage.kind,
            units: *units,
            file: file_of(*file),
            offset: damage.offset,
            found: damage.found_words(),
        };
        self.kinds.iter().flatten().map(count).collect()
    }
}
