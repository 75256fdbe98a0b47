//! What each stage of a pass finds on the target: a read needs an earlier write of all that it
//! reads. Shared by the checks of a scenario and by the plan.

use iofleet_shared::{
    units::Size,
    work::{Layout, OpKind, Pattern},
};

use super::{KeyId, PointSpec, Threads};

/// A value for each thread from 0 up, in runs of threads with the same value.
#[derive(Debug, Clone)]
pub(crate) struct ByThread<T> {
    /// First thread after the run, and the run's value.
    runs: Vec<(u32, T)>,
}

impl<T: Copy> ByThread<T> {
    /// No thread has any.
    pub(crate) fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// Sets the value of threads 0 to `count` - 1.
    pub(crate) fn set(&mut self, count: u32, value: T) {
        self.runs.retain(|(end, _)| *end > count);
        self.runs.insert(0, (count, value));
    }

    /// Changes the values that threads 0 to `count` - 1 have.
    fn change(&mut self, count: u32, change: impl Fn(T) -> T) {
        let mut runs = Vec::with_capacity(self.runs.len() + 1);
        let mut start = 0;
        for (end, value) in &self.runs {
            if start < count {
                runs.push(((*end).min(count), change(*value)));
            }
            if *end > count {
                runs.push((*end, *value));
            }
            start = *end;
        }
        self.runs = runs;
    }

    /// Runs: how many threads, and their value.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u32, T)> {
        let mut start = 0;
        self.runs.iter().map(move |(end, value)| {
            let count = end - start;
            start = *end;
            (count, *value)
        })
    }

    fn end(&self) -> u32 {
        self.runs.last().map_or(0, |(end, _)| *end)
    }
}

/// How much of a file there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// All of it.
    Whole,
    /// How much is only known once it was written.
    Unknown,
    /// Not all, for sure: blocks were drawn with repetition.
    Gaps,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    bytes: u64,
    filled: Filled,
}

/// A stage that finds less than it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Uncovered {
    /// Which of the points given.
    pub(crate) at: usize,
    /// What is wrong.
    pub(crate) text: String,
    /// What would be right.
    pub(crate) help: String,
    /// The key that has to do with it.
    pub(crate) key: KeyId,
}

/// Checks the points of one pass in order, with the number of threads that `count` says.
pub(crate) fn check(pass: &[&PointSpec], count: impl Fn(Threads) -> u32) -> Result<(), Uncovered> {
    let mut own: ByThread<Held> = ByThread::new();
    let mut shared: Option<Held> = None;
    for (at, point) in pass.iter().enumerate() {
        let threads = count(point.params.threads);
        if point.params.op == OpKind::Write && point.params.fresh {
            let held = Held { bytes: point.params.file_bytes, filled: filled(point, threads) };
            match point.params.layout {
                Layout::FilePerThread => own.set(threads, held),
                Layout::SharedFile => shared = Some(held),
            }
            continue;
        }
        needs(point, threads, &own, shared).map_err(|uncovered| Uncovered { at, ..uncovered })?;
        if point.params.op == OpKind::Write && filled(point, threads) == Filled::Whole {
            let rewrite = |held: Held| {
                let all = point.params.file_bytes >= held.bytes;
                Held { filled: if all { Filled::Whole } else { held.filled }, ..held }
            };
            match point.params.layout {
                Layout::FilePerThread => own.change(threads, rewrite),
                Layout::SharedFile => shared = shared.map(rewrite),
            }
        }
    }
    Ok(())
}

fn filled(point: &PointSpec, threads: u32) -> Filled {
    let blocks = point.params.file_bytes / point.params.block_bytes.max(1);
    let of_a_thread = match point.params.layout {
        Layout::FilePerThread => blocks,
        Layout::SharedFile => blocks.div_ceil(u64::from(threads.max(1))),
    };
    match (point.params.duration_ns, point.params.pattern) {
        (Some(_), _) => Filled::Unknown,
        (None, Pattern::Random) if of_a_thread > 1 => Filled::Gaps,
        (None, Pattern::Sequential | Pattern::RandomOnce | Pattern::Random) => Filled::Whole,
    }
}

fn needs(
    point: &PointSpec,
    threads: u32,
    own: &ByThread<Held>,
    shared: Option<Held>,
) -> Result<(), Uncovered> {
    let stage = &point.stage;
    let (does, what) = match point.params.op {
        OpKind::Read => ("reads", "read"),
        OpKind::Write => ("rewrites", "rewrite"),
    };
    let fail = |key: KeyId, text: String, help: String| {
        Err(Uncovered { at: 0, text: format!("stage `{stage}` {does} {text}"), help, key })
    };
    let mut found: Vec<Held> = Vec::new();
    match point.params.layout {
        Layout::FilePerThread => {
            let mut left = threads;
            for (count, held) in own.runs() {
                if left > 0 {
                    found.push(held);
                }
                left = left.saturating_sub(count);
            }
            if left > 0 && own.end() > 0 {
                let key = match point.params.threads {
                    Threads::Fleet(_) => KeyId::Threads,
                    Threads::PerNode(_) => KeyId::ThreadsPerNode,
                };
                let text =
                    format!("the files of {threads} threads, but only {} were written", own.end());
                let help = format!("{what} with as many threads as the write stage, or fewer");
                return fail(key, text, help);
            }
        }
        Layout::SharedFile => found.extend(shared),
    }
    if found.is_empty() {
        let key = if what == "read" { KeyId::Op } else { KeyId::Fresh };
        let text = "what no earlier stage wrote".to_owned();
        let help = "put a write stage of the same layout before it".to_owned();
        return fail(key, text, help);
    }
    let size = point.params.file_bytes;
    if let Some(held) = found.iter().find(|held| held.bytes < size) {
        let (wanted, there) = (Size::from_bytes(size), Size::from_bytes(held.bytes));
        let text = format!("{wanted} of a file of which only {there} were written");
        return fail(KeyId::FileSize, text, format!("set file_size to {there} at most"));
    }
    let by_size = point.params.duration_ns.is_none() && point.params.op == OpKind::Read;
    if by_size && found.iter().any(|held| held.filled == Filled::Gaps) {
        let text =
            "whole files, but they were written at random with repetition, which leaves gaps";
        let help = "write with `random-once`, or give the read stage a duration";
        return fail(KeyId::Op, text.to_owned(), help.to_owned());
    }
    Ok(())
}
