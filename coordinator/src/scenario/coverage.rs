//! What each stage of a pass finds on the target: a read needs an earlier write of all that it
//! reads, and what works on names needs them. Shared by the checks of a scenario and by the plan.

use iofleet_shared::{
    units::Size,
    work::{Layout, OpKind},
};

use super::{KeyId, Params, PointSpec, Threads, Verify};

pub(crate) use trees::Trees;

mod trees;

/// A value for each thread from 0 up, in runs of threads with the same value.
#[derive(Debug, Clone)]
pub(crate) struct ByThread<T> {
    /// First thread after the run, and the run's value.
    runs: Vec<(u32, T)>,
}

impl<T: Copy> ByThread<T> {
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

impl<T> Default for ByThread<T> {
    fn default() -> Self {
        Self { runs: Vec::new() }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    bytes: u64,
    filled: Filled,
    mark: Mark,
}

/// What a reader can expect to find in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// They carry their place.
    verified: bool,
    /// Number of the write point that left them.
    generation: u32,
    /// Why it may have been another one.
    doubt: Option<&'static str>,
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
pub(crate) fn check(pass: &[&PointSpec], count: impl Fn(&Params) -> u32) -> Result<(), Uncovered> {
    let mut found = Found::default();
    for (at, point) in pass.iter().enumerate() {
        let threads = count(&point.params);
        found.step(point, threads).map_err(|uncovered| Uncovered { at, ..uncovered })?;
    }
    Ok(())
}

/// Layouts whose files are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Files of threads.
    Own,
    /// Files of all threads.
    Shared,
    /// Trees.
    Tree,
    /// Listed files.
    List,
    /// Devices.
    Device,
}

impl Class {
    /// That of a layout.
    pub(crate) fn of(layout: Layout) -> Self {
        match layout {
            Layout::FilePerThread => Self::Own,
            Layout::SharedFile | Layout::SharedStrided => Self::Shared,
            Layout::Tree => Self::Tree,
            Layout::FileList => Self::List,
            Layout::Device => Self::Device,
        }
    }
}

/// What the stages of a pass have left so far.
#[derive(Debug, Default)]
struct Found {
    own: ByThread<Held>,
    /// The files that are not a thread's, by class.
    others: [Option<Held>; 5],
    generations: [u32; 5],
    tree: trees::Found,
}

impl Found {
    fn step(&mut self, point: &PointSpec, threads: u32) -> Result<(), Uncovered> {
        let params = &point.params;
        let class = Class::of(params.layout);
        if class == Class::Tree {
            let anew = self.tree.step(point, threads)?;
            if anew || params.has(OpKind::Unlink) || params.has(OpKind::Rmdir) {
                self.others[class as usize] = None;
            }
        }
        if !params.moves_data() {
            return Ok(());
        }
        if params.reads() || !params.fresh {
            self.needs(point, threads)?;
        }
        if params.writes() {
            self.written(params, threads);
        }
        Ok(())
    }

    fn written(&mut self, params: &Params, threads: u32) {
        let class = Class::of(params.layout);
        let generation = &mut self.generations[class as usize];
        *generation += 1;
        let filled = filled(params, threads);
        let mark = Mark {
            verified: params.verify != Verify::Off,
            generation: *generation,
            doubt: doubt(params),
        };
        let new = Held { bytes: params.file_bytes(), filled, mark };
        let first = params.is_listed() && self.others[class as usize].is_none();
        if params.fresh || params.options.truncate || first {
            match class {
                Class::Own => self.own.set(threads, new),
                Class::Shared | Class::Tree | Class::List | Class::Device => {
                    self.others[class as usize] = Some(new);
                }
            }
            return;
        }
        let rewrite = move |held: Held| {
            if filled == Filled::Whole && new.bytes >= held.bytes && params.ops.len() == 1 {
                return Held { bytes: held.bytes, ..new };
            }
            let doubt = mark.doubt.or(Some("it was rewritten in part"));
            let verified = held.mark.verified && mark.verified;
            Held { mark: Mark { doubt, verified, ..mark }, ..held }
        };
        match class {
            Class::Own => self.own.change(threads, rewrite),
            Class::Tree if self.others[class as usize].is_none() => {
                // Files that were created empty.
                self.others[class as usize] = Some(new);
            }
            Class::Shared | Class::Tree | Class::List | Class::Device => {
                self.others[class as usize] = self.others[class as usize].map(rewrite);
            }
        }
    }

    fn needs(&self, point: &PointSpec, threads: u32) -> Result<(), Uncovered> {
        let params = &point.params;
        let class = Class::of(params.layout);
        let reads = params.reads();
        let (does, what) = if reads { ("reads", "read") } else { ("rewrites", "rewrite") };
        let fail = |key: KeyId, text: String, help: String| {
            let text = format!("stage `{}` {does} {text}", point.stage);
            Err(Uncovered { at: 0, text, help, key })
        };
        let mut found: Vec<Held> = Vec::new();
        if class == Class::Own {
            let mut left = threads;
            for (count, held) in self.own.runs() {
                if left > 0 {
                    found.push(held);
                }
                left = left.saturating_sub(count);
            }
            if left > 0 && self.own.end() > 0 {
                let there = self.own.end();
                let text = format!("the files of {threads} threads, but only {there} were written");
                let help = format!("{what} with as many threads as the write stage, or fewer");
                return fail(threads_key(params), text, help);
            }
        } else {
            found.extend(self.others[class as usize]);
        }
        if params.is_listed() || class == Class::Tree && !reads {
            // They are there, whatever they hold.
            return self.verified(point, &found);
        }
        if found.is_empty() {
            let key = if reads { KeyId::Op } else { KeyId::Fresh };
            let text = "what no earlier stage wrote".to_owned();
            let help = "put a write stage of the same layout before it".to_owned();
            return fail(key, text, help);
        }
        let size = params.file_bytes();
        if let Some(held) = found.iter().find(|held| held.bytes < size)
            && !params.options.truncate
        {
            let (wanted, there) = (Size::from_bytes(size), Size::from_bytes(held.bytes));
            let text = format!("{wanted} of a file of which only {there} were written");
            return fail(KeyId::FileSize, text, format!("set file_size to {there} at most"));
        }
        let by_size = params.duration_ns.is_none() && reads;
        if by_size && found.iter().any(|held| held.filled == Filled::Gaps) {
            let text =
                "whole files, but they were written at random with repetition, which leaves gaps";
            let help = "write with `random-once`, or give the read stage a duration";
            return fail(KeyId::Op, text.to_owned(), help.to_owned());
        }
        self.verified(point, &found)
    }

    /// What is verified was written to be verified, and which write left it is known where that is
    /// asked for.
    fn verified(&self, point: &PointSpec, found: &[Held]) -> Result<(), Uncovered> {
        let params = &point.params;
        if params.verify == Verify::Off || !params.reads() {
            return Ok(());
        }
        let fail = |text: String, help: &str| {
            let text = format!("stage `{}` {text}", point.stage);
            Err(Uncovered { at: 0, text, help: help.to_owned(), key: KeyId::Verify })
        };
        let whole = |held: &Held| held.mark.verified && held.bytes >= params.file_bytes();
        if found.is_empty() || !found.iter().all(whole) {
            let text = "verifies what no earlier stage wrote with `verify`".to_owned();
            return fail(text, "set verify in the stage that writes it too");
        }
        let generation = self.generations[Class::of(params.layout) as usize];
        let old = "some of its files were last written by an earlier stage than others";
        let doubt = found.iter().find_map(|held| match held.mark.doubt {
            None => (held.mark.generation != generation).then_some(old),
            doubt => doubt,
        });
        match doubt.filter(|_| params.verify == Verify::All) {
            Some(doubt) => fail(
                format!("can't tell stale data, since which write left it is not known: {doubt}"),
                "set verify = \"no-stale\"",
            ),
            None => Ok(()),
        }
    }
}

fn threads_key(params: &Params) -> KeyId {
    match params.threads {
        Threads::Fleet(_) => KeyId::Threads,
        Threads::PerNode(_) => KeyId::ThreadsPerNode,
    }
}

/// Why blocks that a stage writes may be of more than one write.
fn doubt(params: &Params) -> Option<&'static str> {
    if params.is_mix() {
        return Some("it was written by a mix");
    }
    if params.repeats_blocks() {
        return Some("it was written in a pattern with repetition");
    }
    (params.duration_ns.is_some() && params.repeat_range)
        .then_some("it was written for a time with loop = true")
}

fn filled(params: &Params, threads: u32) -> Filled {
    let blocks = params.file_bytes() / params.block_bytes();
    let of_a_thread = match Class::of(params.layout) {
        Class::Own | Class::Tree => blocks,
        Class::Shared => blocks.div_ceil(u64::from(threads.max(1))),
        Class::List | Class::Device => {
            let files = u32::try_from(params.listed.len()).unwrap_or(u32::MAX).max(1);
            blocks.div_ceil(u64::from(threads.div_ceil(files).max(1)))
        }
    };
    if params.duration_ns.is_some() || params.is_mix() {
        Filled::Unknown
    } else if params.repeats_blocks() && of_a_thread > 1 {
        Filled::Gaps
    } else {
        Filled::Whole
    }
}
