//! What one I/O thread takes along: engine, source of operations, contents, accounts. Made on the
//! thread itself, so that its memory is near it.

use std::{fs::File, os::fd::AsFd, sync::Arc};

use iofleet_shared::work::{
    Amount, EngineKind, Files, Fsync, Load, OpKind, OpShare, SizeShare, ThreadPlan, WorkerPlan,
};
use rustix::fs::OFlags;

use super::CrewError;
use crate::{
    arrivals::ArrivalQueue,
    engine::{
        self, AnyEngine, EngineError, Libaio, Mmap, Namespace, Null, QueueSetup, Special, Sync,
        Uring,
    },
    files::{Descriptors, Opening, Paths},
    io_thread::{Account, AccountSpec, Contents, Control, Fittings, Job, Pacing},
    names::NameSource,
    pattern::{AnySource, Blocks, Both, Coverage, Drawn, mix64},
    payload::{Buffer, Filler, MemoryPlace},
    recorder::{Inlet, Recorder, rings_of_depth},
    stamp::StampClock,
    target::{Hold, OpenedFiles},
    tree::{DIRS_HELD, Tree},
};

/// What a thread takes along.
pub(super) struct Outfit {
    pub(super) engine: AnyEngine,
    pub(super) source: AnySource,
    pub(super) fittings: Fittings,
    pub(super) account: Account,
    pub(super) inlets: Vec<Inlet>,
    pub(super) job: Job,
    /// How long open (or create) took.
    pub(super) open_ns: u64,
    pub(super) remarks: Vec<String>,
}

/// What it is made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Station<'a> {
    pub(super) plan: &'a WorkerPlan,
    /// Place of the thread among the worker's.
    pub(super) at: usize,
    pub(super) memory_alignment: usize,
    pub(super) clock: StampClock,
    pub(super) control: &'a Control,
    pub(super) arrivals: Option<&'a Arc<ArrivalQueue>>,
}

impl Station<'_> {
    /// Makes it.
    ///
    /// # Errors
    /// When there is no memory, or the engine can't be had.
    pub(super) fn outfit(&self, opened: OpenedFiles) -> Result<Outfit, CrewError> {
        let (plan, thread) = (self.plan, self.thread());
        let blocks = Arc::new(self.blocks());
        let depth = plan.engine.depth.max(1);
        let contents = Contents::new(plan, thread, blocks.count(), depth)
            .map_err(|source| self.no_memory(blocks.count() * 4, source))?;
        let pacing = self.pacing();
        let (mut remarks, on_names) = (Vec::new(), !moves_data(thread));
        let (source, open_ns) = (self.source(&blocks)?, opened.open_ns);
        let engine = self.engine(opened, &mut remarks)?;
        let (account, inlets) = self.account(&blocks, on_names);
        // A source of names says itself when there is nothing left.
        let job = self.job(if on_names { u64::MAX } else { blocks.count() });
        let fittings = Fittings { contents, pacing };
        Ok(Outfit { engine, source, fittings, account, inlets, job, open_ns, remarks })
    }

    fn thread(&self) -> &ThreadPlan {
        &self.plan.threads[self.at]
    }

    /// The blocks of the thread's files; none of operations on names.
    fn blocks(&self) -> Blocks {
        let block_bytes = self.plan.block_bytes().max(1);
        match &self.thread().files {
            Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => {
                Blocks::of(parts, block_bytes)
            }
            Files::Tree(tree) => {
                let files = if self.plan.create { tree.files() } else { tree.existing.files };
                let sizes = (0..files.min(tree.files()))
                    .map(|file| tree.size_of(self.thread().thread, file));
                Blocks::of_sizes(sizes, block_bytes)
            }
        }
    }

    fn source(&self, blocks: &Arc<Blocks>) -> Result<AnySource, CrewError> {
        let Self { plan, .. } = self;
        let (thread, lanes) = (self.thread(), plan.ops());
        let (data, names): (Vec<OpShare>, Vec<OpShare>) =
            thread.ops.iter().partition(|share| share.op.moves_data());
        if data.is_empty() {
            return Ok(AnySource::Names(Box::new(self.name_source(&names, false)?)));
        }
        let (seed, pattern, sizes) = (thread.seed, &plan.pattern, &plan.blocks);
        if names.is_empty() {
            return Ok(AnySource::new(blocks, pattern, &data, sizes, &lanes, seed));
        }
        let drawn = Drawn::new(Arc::clone(blocks), pattern, &data, sizes, &lanes, seed);
        let names = self.name_source(&names, true)?;
        Ok(AnySource::Both(Box::new(Both::new(drawn, names, &thread.ops, seed))))
    }

    fn account(&self, blocks: &Arc<Blocks>, on_names: bool) -> (Account, Vec<Inlet>) {
        let Self { plan, .. } = self;
        let thread = self.thread();
        let with_response = matches!(plan.load, Load::Open(_));
        let depth = plan.engine.depth.max(1);
        let lane = |op: OpKind| {
            let (outlet, inlet) = rings_of_depth(depth, with_response);
            ((op, Recorder::new(plan.interval_ns, plan.ramp_ns, depth, outlet)), inlet)
        };
        let (lanes, inlets) = plan.ops().into_iter().map(lane).unzip();
        let writes = thread.ops.iter().any(|share| share.op == OpKind::Write);
        let covered = if writes { OpKind::Write } else { OpKind::Read };
        let coverage = (!on_names).then(|| {
            let (ops, sizes): (_, &[SizeShare]) = (&thread.ops, &plan.blocks);
            (covered, Coverage::of_mix(Arc::clone(blocks), covered, plan.pattern, ops, sizes))
        });
        let tree_dirs = match &thread.files {
            Files::Tree(tree) => Some(tree.dirs),
            Files::Named(_) | Files::Listed(_) | Files::Devices(_) => None,
        };
        (Account::new(AccountSpec { lanes, coverage, tree_dirs }), inlets)
    }

    fn pacing(&self) -> Pacing {
        match (self.plan.load, self.arrivals) {
            (Load::Open(_), Some(queue)) => Pacing::open(queue, self.clock, self.control),
            (Load::Closed { think_ns, burst }, _) if think_ns > 0 => {
                Pacing::think(think_ns, burst, self.clock, self.control)
            }
            (Load::Open(_) | Load::Closed { .. }, _) => Pacing::Closed,
        }
    }

    fn job(&self, blocks: u64) -> Job {
        let Self { plan, .. } = self;
        let thread = self.thread();
        let writes = thread.ops.iter().any(|share| share.op == OpKind::Write);
        let flush_at_end = writes && plan.fsync == Fsync::End;
        let (most, deadline_ns) = match plan.amount {
            // How many blocks the files of a tree have, the worker alone counts exactly.
            Amount::Share if matches!(thread.files, Files::Tree(_)) => {
                (thread.operations.min(blocks), None)
            }
            Amount::Share => (thread.operations, None),
            Amount::Time { duration_ns, repeat } => (
                if repeat { u64::MAX } else { blocks },
                Some(plan.ramp_ns.saturating_add(duration_ns)),
            ),
        };
        // Without a whole block there is nothing to do.
        let blocks = if blocks == 0 { 0 } else { most };
        Job { blocks, deadline_ns, flush_at_end }
    }

    fn tree(&self, opened: &OpenedFiles) -> Result<Option<Tree>, CrewError> {
        let (Files::Tree(part), Hold::Tree(dir)) = (&self.thread().files, &opened.hold) else {
            return Ok(None);
        };
        let thread = self.thread();
        let tree = Tree::arm(dir.as_fd(), part, thread.thread, &thread.ops);
        let held = Share::of(opened.descriptors).dirs;
        tree.map(|tree| Some(tree.hold(held))).map_err(|error| self.refused(&error))
    }

    fn engine(
        &self,
        opened: OpenedFiles,
        remarks: &mut Vec<String>,
    ) -> Result<AnyEngine, CrewError> {
        let Self { plan, .. } = self;
        let special = Special {
            fsync_each: plan.fsync == Fsync::Each,
            lock: plan.options.lock,
            high_priority: plan.engine.high_priority,
        };
        let kind = plan.engine.kind;
        if kind == EngineKind::Null {
            return Ok(AnyEngine::Null(Null::new(self.buffer()?)));
        }
        let on_names = self.thread().ops.iter().any(|share| !share.op.moves_data());
        if on_names {
            let names = self.tree(&opened)?;
            let names = names.ok_or_else(|| self.refuse("operations on names need a tree"))?;
            if !moves_data(self.thread()) {
                return Ok(AnyEngine::Names(Box::new(Namespace::new(names))));
            }
            let tree = self.tree(&opened)?;
            let data = Sync::new(self.descriptors(opened, tree)?, self.buffer()?);
            let both = engine::Both::new(data, Namespace::new(names));
            return Ok(AnyEngine::Both(Box::new(both)));
        }
        match kind {
            EngineKind::Sync | EngineKind::Null => {
                let tree = self.tree(&opened)?;
                let (files, buffer) = (self.descriptors(opened, tree)?, self.buffer()?);
                Ok(if special == Special::default() {
                    AnyEngine::Sync(Sync::new(files, buffer))
                } else {
                    AnyEngine::SyncSpecial(Sync::special(files, buffer, special))
                })
            }
            EngineKind::Mmap => self.mmap(self.files(opened)?),
            EngineKind::IoUring => {
                let engine = Uring::new(self.queue(self.files(opened)?)?);
                let engine = engine.map_err(|error| self.no_engine(error))?;
                remarks.extend(engine.registered().remark());
                self.primed(AnyEngine::Uring(Box::new(engine)))
            }
            EngineKind::Libaio => {
                let engine = Libaio::new(self.queue(self.files(opened)?)?);
                let engine = engine.map_err(|error| self.no_engine(error))?;
                if !Libaio::is_asynchronous(plan.options.direct) {
                    remarks.push(
                        "libaio without direct I/O: the kernel completes each operation inside \
                         io_submit, so that there is one in flight per thread"
                            .to_owned(),
                    );
                }
                self.primed(AnyEngine::Libaio(Box::new(engine)))
            }
        }
    }

    fn files(&self, opened: OpenedFiles) -> Result<Vec<Arc<File>>, CrewError> {
        match opened.hold {
            Hold::Files(files) => Ok(files),
            Hold::Tree(_) => Err(self.refuse("its engine does not open files of a tree")),
        }
    }

    fn descriptors(
        &self,
        opened: OpenedFiles,
        tree: Option<Tree>,
    ) -> Result<Descriptors, CrewError> {
        let Self { plan, .. } = self;
        match (opened.hold, tree) {
            (Hold::Files(files), _) => Ok(Descriptors::fixed(files)),
            (Hold::Tree(_), Some(tree)) => {
                let does = |op| self.thread().ops.iter().any(|share| share.op == op);
                let access = match (does(OpKind::Read), does(OpKind::Write)) {
                    (true, true) => OFlags::RDWR,
                    (false, true) => OFlags::WRONLY,
                    _ => OFlags::RDONLY,
                };
                let opening = Opening {
                    capacity: Share::of(opened.descriptors).files,
                    flags: access | crate::target::option_flags(&plan.options),
                    create: plan.create,
                    sync_on_close: plan.fsync == Fsync::End,
                };
                Ok(Descriptors::cached(Paths::tree(tree), opening))
            }
            (Hold::Tree(_), None) => Err(self.refuse("it has no tree")),
        }
    }

    fn mmap(&self, files: Vec<Arc<File>>) -> Result<AnyEngine, CrewError> {
        let Self { plan, .. } = self;
        let lengths = files_needed(self.thread(), plan.block_bytes().max(1));
        let writes = self.thread().ops.iter().any(|share| share.op == OpKind::Write);
        let each = plan.fsync == Fsync::Each;
        let engine = Mmap::new(files, lengths, writes, self.buffer()?, each)
            .map_err(|source| CrewError::Mapping { thread: self.thread().thread, source })?;
        if let Some(advice) = plan.options.advice {
            engine
                .advise(advice)
                .map_err(|source| CrewError::Mapping { thread: self.thread().thread, source })?;
        }
        Ok(AnyEngine::Mmap(engine))
    }

    fn queue(&self, files: Vec<Arc<File>>) -> Result<QueueSetup, CrewError> {
        let Self { plan, .. } = self;
        Ok(QueueSetup {
            files,
            depth: plan.engine.depth,
            buffer_bytes: self.buffer_bytes()?,
            alignment: self.memory_alignment,
            place: MemoryPlace::of(&plan.placement, self.at),
            sqpoll: plan.engine.sqpoll,
            iopoll: plan.engine.iopoll,
            fsync_each: plan.fsync == Fsync::Each,
        })
    }

    /// Fills the buffers of a queue.
    fn primed(&self, mut engine: AnyEngine) -> Result<AnyEngine, CrewError> {
        if self.thread().ops.iter().any(|share| share.op == OpKind::Write) {
            let mut filler = Filler::new(&self.plan.data, mix64(self.thread().seed));
            for slot in 0..self.plan.engine.depth {
                engine.prime(slot, |buffer| filler.prime(buffer));
            }
        }
        Ok(engine)
    }

    fn buffer(&self) -> Result<Buffer, CrewError> {
        let bytes = self.buffer_bytes()?;
        let place = MemoryPlace::of(&self.plan.placement, self.at);
        let mut buffer = Buffer::with(bytes, self.memory_alignment, &place)
            .map_err(|source| self.no_memory(bytes as u64, source))?;
        if self.thread().ops.iter().any(|share| share.op == OpKind::Write) {
            let mut filler = Filler::new(&self.plan.data, mix64(self.thread().seed));
            filler.prime(buffer.bytes_mut());
        }
        Ok(buffer)
    }

    fn buffer_bytes(&self) -> Result<usize, CrewError> {
        let bytes = usize::try_from(self.plan.block_bytes_max()).ok();
        let none_needed = self.plan.ops().iter().all(|op| !op.moves_data());
        match bytes {
            Some(0) if none_needed => Ok(1),
            Some(0) | None => Err(self.refuse("its block is not a size of memory")),
            Some(bytes) => Ok(bytes),
        }
    }

    fn refuse(&self, what: &'static str) -> CrewError {
        CrewError::Plan { point: self.plan.point, what }
    }

    fn refused(&self, error: &impl ToString) -> CrewError {
        CrewError::Files { thread: self.thread().thread, text: error.to_string() }
    }

    fn no_engine(&self, source: EngineError) -> CrewError {
        CrewError::Engine { thread: self.thread().thread, source }
    }

    fn no_memory(&self, bytes: u64, source: std::io::Error) -> CrewError {
        let alignment = self.memory_alignment;
        CrewError::Memory { thread: self.thread().thread, bytes, alignment, source }
    }

    /// The source of operations on names; those that leave them as they are go on for ever if
    /// `endless`.
    fn name_source(&self, ops: &[OpShare], endless: bool) -> Result<NameSource, CrewError> {
        let Self { plan, .. } = self;
        let (thread, Files::Tree(part)) = (self.thread(), &self.thread().files) else {
            return Err(self.refuse("operations on names need a tree"));
        };
        let again = endless || matches!(plan.amount, Amount::Time { repeat: true, .. });
        NameSource::new(part, ops, &plan.ops(), plan.pattern, again, thread.seed)
            .map_err(|_| self.refuse("operations on data are none on names"))
    }
}

/// Descriptors of a thread that works on a tree.
struct Share {
    /// Directories held by a tree; a thread may have two trees, each with its parent beside.
    dirs: u32,
    files: u32,
}

impl Share {
    fn of(descriptors: u32) -> Self {
        let dirs = (descriptors / 8).clamp(1, DIRS_HELD);
        Self { dirs, files: descriptors.saturating_sub(2 * (dirs + 1)).max(1) }
    }
}

/// Whether a thread moves bytes of files.
fn moves_data(thread: &ThreadPlan) -> bool {
    thread.ops.iter().any(|share| share.op.moves_data())
}

/// How much of each of its files a thread touches, from their beginnings.
fn files_needed(thread: &ThreadPlan, block_bytes: u64) -> Vec<u64> {
    match &thread.files {
        Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => {
            parts.iter().map(|part| part.end(block_bytes)).collect()
        }
        Files::Tree(_) => Vec::new(),
    }
}
