//! A crew of the worker as a contestant.

use std::{io, path::Path, sync::Arc};

use iofleet_shared::{
    clock::monotonic_ns,
    ids::PointId,
    stats::PointReport,
    wire::{Refusal, RefusalKind},
    work::{
        Amount, Content, Data, DatasetDir, EngineKind, EngineSpec, Extent, FileOptions, FilePart,
        Files, Fsync, Load, OpShare, Pattern, Placement, SizeShare, ThreadPlan, WorkerPlan,
    },
};
use iofleet_worker::{
    crew::{Crew, CrewEvent},
    stamp::StampClock,
    target::{Hold, OpenedFiles},
};

use crate::{
    Fallible,
    bare::open,
    usage::{Round, Usage},
};

/// What a crew is to do.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) ops: Vec<OpShare>,
    pub(crate) engine: EngineKind,
    pub(crate) depth: u32,
    pub(crate) pattern: Pattern,
    pub(crate) block: u64,
    /// Bytes of the file that each thread touches.
    pub(crate) bytes: u64,
    pub(crate) direct: bool,
    /// Each write has new data.
    pub(crate) refresh: bool,
    /// What is read is compared with what was written.
    pub(crate) verify: bool,
    /// Of what is written, from 1.
    pub(crate) generation: u32,
    pub(crate) threads: u32,
    /// Operations of each thread.
    pub(crate) operations: u64,
}

impl Task {
    pub(crate) fn plan(&self) -> WorkerPlan {
        let thread = |thread| ThreadPlan {
            thread,
            ops: self.ops.clone(),
            files: Files::Named(vec![FilePart {
                file: "file".to_owned(),
                extents: vec![Extent { offset: 0, length: self.bytes }],
                stride_bytes: 0,
            }]),
            operations: self.operations,
            seed: u64::from(thread) + 1,
        };
        let mut plan = plan((0..self.threads).map(thread).collect());
        (plan.engine.kind, plan.engine.depth) = (self.engine, self.depth);
        plan.pattern = self.pattern;
        plan.blocks = vec![SizeShare { bytes: self.block, weight: 1 }];
        plan.options.direct = self.direct;
        (plan.data.refresh, plan.data.verify) = (self.refresh, self.verify);
        plan.data.generation = self.generation;
        plan
    }

    /// Runs it on a file.
    pub(crate) fn run(&self, path: &Path) -> Fallible<Round> {
        let plan = self.plan();
        let (path, direct) = (path.to_owned(), self.direct);
        let hold = move || Ok(Hold::Files(vec![Arc::new(open(&path, direct)?)]));
        run(plan, hold, u64::from(self.threads) * self.operations)
    }
}

/// A plan of threads that do their share of operations, one at a time and in order.
pub(crate) fn plan(threads: Vec<ThreadPlan>) -> WorkerPlan {
    WorkerPlan {
        point: PointId { index: 0, attempt: 0 },
        dir: DatasetDir { path: "/".into(), name: "d".into(), campaign: "c".into() },
        remove: vec![],
        engine: EngineSpec {
            kind: EngineKind::Sync,
            depth: 1,
            sqpoll: false,
            iopoll: false,
            high_priority: false,
        },
        pattern: Pattern::Sequential,
        blocks: vec![],
        options: FileOptions::default(),
        fsync: Fsync::None,
        file_bytes: 0,
        cold: false,
        create: false,
        data: Data {
            content: Content::Random { compress_milli: 1_000, dedupe_milli: 1_000 },
            refresh: true,
            verify: false,
            generation: 1,
            generation_known: true,
            dataset: 1,
        },
        load: Load::Closed { think_ns: 0, burst: 1 },
        placement: Placement::default(),
        amount: Amount::Share,
        ramp_ns: 0,
        interval_ns: 1_000_000_000,
        stuck_after_ns: 60_000_000_000,
        threads,
    }
}

/// Runs a plan, which is to do so many operations, on what each thread opens by `hold`.
pub(crate) fn run(
    plan: WorkerPlan,
    hold: impl Fn() -> io::Result<Hold> + Send + Sync + 'static,
    operations: u64,
) -> Fallible<Round> {
    let (send, mut events) = tokio::sync::mpsc::channel(1_024);
    let open = move |_| match hold() {
        Ok(hold) => Ok(OpenedFiles { hold, open_ns: 0, descriptors: 16 }),
        Err(error) => {
            Err(Refusal { kind: RefusalKind::Target, point: None, text: error.to_string() })
        }
    };
    let crew = Crew::arm(Arc::new(plan), Arc::new(open), StampClock::calibrate(), 4_096, send)?;
    crew.commit();
    let usage = Usage::now()?;
    crew.set_start(monotonic_ns() + 2_000_000);
    let report = loop {
        match events.blocking_recv().ok_or("the crew ended without a report")? {
            CrewEvent::Interval(_) => {}
            CrewEvent::Ended { report, .. } => break *report,
        }
    };
    let used = Usage::now()?.since(usage);
    check(&report, operations)?;
    let begin = report.threads.iter().filter_map(|thread| thread.first_issue_ns).min();
    let end = report.threads.iter().filter_map(|thread| thread.ended_ns).max();
    let wall = begin.zip(end).map(|(begin, end)| (end - begin).cast_unsigned());
    Ok(used.per(operations, wall.ok_or("nothing was done")?))
}

fn check(report: &PointReport, operations: u64) -> Fallible<()> {
    let ops: u64 = report.threads.iter().map(|thread| thread.ops()).sum();
    let errors: u64 = report.threads.iter().map(|thread| thread.errors()).sum();
    let damages: usize = report.threads.iter().map(|thread| thread.damages.len()).sum();
    if (ops, errors, damages) != (operations, 0, 0) || report.sums.is_some() {
        let text = format!("{ops} operations, {errors} errors, {damages} damages: {report:?}");
        return Err(text.into());
    }
    Ok(())
}
