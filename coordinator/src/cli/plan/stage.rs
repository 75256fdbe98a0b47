//! What a stage does, in a sentence.

use std::fmt::Write;

use iofleet_shared::{
    units::{Size, Time, format_count},
    work::{Advice, Content, EngineKind, Fsync, Layout, OpKind, OpShare, Pattern, SizeShare},
};

use crate::{
    plan::PointPlan,
    scenario::{DirSharing, MixBy, Offer, Params, RatePer, Threads, Verify, words},
};

/// What the stage of a point does; swept keys are named instead of their value.
pub(super) fn sentence(point: &PointPlan) -> String {
    let told = Told { params: &point.spec.params, swept: &point.spec.swept };
    let params = told.params;
    let mut text = if params.moves_data() {
        format!(
            "{} {} {} in blocks of {},\n{}, {}; {}",
            told.threads(),
            told.verb(),
            told.files(),
            told.sizes("block", &params.blocks),
            told.order(),
            told.path(),
            told.length()
        )
    } else {
        format!("{} {} {},\n{}", told.threads(), told.verb(), told.files(), told.length())
    };
    let more =
        [told.mix(), told.engine(), told.placement(), told.offer(), told.options(), told.data()];
    text.push_str(&more.concat());
    text.push_str(&told.made(point));
    text.push('.');
    text
}

struct Told<'a> {
    params: &'a Params,
    swept: &'a [(String, String)],
}

impl Told<'_> {
    fn swept(&self, key: &str) -> bool {
        self.swept.iter().any(|(swept, _)| swept == key)
    }

    fn threads(&self) -> String {
        match self.params.threads {
            _ if self.swept("threads") || self.swept("threads_per_node") => {
                "each thread".to_owned()
            }
            Threads::Fleet(1) => "one thread".to_owned(),
            Threads::Fleet(threads) => format!("each of {threads} threads"),
            Threads::PerNode(1) => "one thread on each node".to_owned(),
            Threads::PerNode(threads) => format!("each of {threads} threads on each node"),
        }
    }

    fn verb(&self) -> &'static str {
        if self.params.is_mix() {
            return if self.params.moves_data() {
                "does a mix of operations on"
            } else {
                "does a mix of operations on names in"
            };
        }
        match self.params.ops.first().map_or(OpKind::Write, |share| share.op) {
            OpKind::Write if self.params.fresh => "writes",
            OpKind::Write => "rewrites",
            OpKind::Read => "reads",
            OpKind::Mkdir => "makes directories in",
            OpKind::Create => "creates files in",
            OpKind::Stat => "asks for the attributes of files in",
            OpKind::Open => "opens and closes files in",
            OpKind::Readdir => "lists directories in",
            OpKind::Rename => "renames files in",
            OpKind::Unlink => "removes files from",
            OpKind::Rmdir => "removes directories from",
        }
    }

    fn files(&self) -> String {
        let size = self.sizes("file_size", &self.params.file_sizes);
        let listed = self.params.listed.len() as u64;
        match self.params.layout {
            _ if self.swept("layout") => format!("files of {size} in the layout that is swept"),
            Layout::FilePerThread => format!("a file of its own of {size}"),
            Layout::SharedFile => format!("its part of one shared file of {size}"),
            Layout::SharedStrided => {
                format!("its strided blocks of one shared file of {size}")
            }
            Layout::Tree => self.tree(&size),
            Layout::FileList => {
                format!("its part of {} listed files, {size} of each,", format_count(listed))
            }
            Layout::Device => {
                format!("its part of {} devices, {size} of each,", format_count(listed))
            }
        }
    }

    fn tree(&self, size: &str) -> String {
        let tree = self.params.tree;
        let number = |key: &str, count: u32, one: &str, many: &str| match count {
            _ if self.swept(key) => format!("a swept number of {many}"),
            1 => format!("1 {one}"),
            count => format!("{} {many}", format_count(count.into())),
        };
        let dirs = number("dirs", tree.dirs, "directory", "directories");
        let files = number("files", tree.files, "file", "files");
        let mut text = match tree.sharing {
            DirSharing::Own => format!("a tree of its own of {dirs} with {files} in each"),
            DirSharing::Shared => {
                format!("a tree of all threads of {dirs} with {files} of each thread in each")
            }
        };
        if self.params.moves_data() {
            let _ = write!(text, ", of {size},");
        }
        text
    }

    fn sizes(&self, key: &str, sizes: &[SizeShare]) -> String {
        let size = |share: &SizeShare| Size::from_bytes(share.bytes).to_string();
        match sizes {
            _ if self.swept(key) => "the swept size".to_owned(),
            [one] => size(one),
            mix => {
                let sum: u64 = mix.iter().map(|share| u64::from(share.weight)).sum();
                let parts: Vec<String> = mix
                    .iter()
                    .map(|share| format!("{} ({})", size(share), percent(share.weight, sum)))
                    .collect();
                parts.join(" or ")
            }
        }
    }

    fn order(&self) -> String {
        match self.params.pattern {
            _ if self.swept("pattern") => "in the order that is swept".to_owned(),
            Pattern::Sequential => "in ascending order".to_owned(),
            Pattern::Backward => "in descending order".to_owned(),
            Pattern::Strided { .. } if self.swept("step") => "in strides that are swept".to_owned(),
            Pattern::Strided { step } => format!("in strides of {step} blocks"),
            Pattern::Random => "at random, with repetition".to_owned(),
            Pattern::RandomOnce => "in random order without repetition".to_owned(),
            Pattern::Zipf { theta_milli } => {
                format!("at random by Zipf's law (theta {})", milli(theta_milli))
            }
            Pattern::Pareto { h_milli } => {
                format!("at random by a Pareto law (h {})", milli(h_milli))
            }
            Pattern::Normal { deviation_milli } => format!(
                "at random around the middle (standard deviation {} of the range)",
                milli(deviation_milli)
            ),
        }
    }

    fn path(&self) -> &'static str {
        match (self.params.engine.kind, self.params.options.direct) {
            _ if self.swept("direct") => "with direct I/O or not (swept)",
            _ if self.swept("engine") => "with the engine that is swept",
            (EngineKind::Null, _) => "without any I/O",
            (EngineKind::Mmap, _) => "through a mapping of the file",
            (_, true) => "with direct I/O",
            (_, false) => "through the page cache",
        }
    }

    fn length(&self) -> String {
        let params = self.params;
        let names = !params.moves_data();
        let again = params.repeats_blocks();
        let Some(duration_ns) = params.duration_ns else {
            return match (names, again) {
                (true, _) => "each name once",
                (false, true) => "as many blocks as its share has",
                (false, false) => "each block once",
            }
            .to_owned();
        };
        let mut text = format!("for {}", Time::from_ns(duration_ns));
        if self.swept("duration") {
            "for a time that is swept".clone_into(&mut text);
        }
        if params.ramp_ns > 0 {
            let _ = write!(text, " after {} of warm-up", Time::from_ns(params.ramp_ns));
        }
        text.push_str(match (again && !names, params.repeat_range) {
            (true, true) => "",
            (false, true) => ", again from the start when it comes to the end",
            (true, false) => ", or for as many blocks as its share has",
            (false, false) => ", or until it comes to the end",
        });
        text
    }

    fn mix(&self) -> String {
        if !self.params.is_mix() {
            return String::new();
        }
        if self.swept("mix") {
            return "; the mix is swept".to_owned();
        }
        let sum: u64 = self.params.ops.iter().map(|share| u64::from(share.weight)).sum();
        let part = |share: &OpShare| format!("{} {}", percent(share.weight, sum), share.op.name());
        let parts: Vec<String> = self.params.ops.iter().map(part).collect();
        let by = match self.params.mix_by {
            MixBy::Operation => "of operations",
            MixBy::Thread => "of threads",
        };
        format!("; {} {by}", parts.join(", "))
    }

    fn engine(&self) -> String {
        let engine = self.params.engine;
        let mut text = String::new();
        let queue = matches!(engine.kind, EngineKind::IoUring | EngineKind::Libaio);
        if queue && !self.swept("engine") {
            let depth = match engine.depth {
                _ if self.swept("depth") => "a swept number of operations".to_owned(),
                1 => "1 operation".to_owned(),
                depth => format!("{depth} operations"),
            };
            let _ = write!(text, "; {} with {depth} in flight", words::engine(engine.kind));
        }
        for (is, words) in [
            (engine.sqpoll, "; the kernel polls for submissions"),
            (engine.iopoll, "; completions are polled for"),
            (engine.high_priority, "; calls have high priority"),
        ] {
            text.push_str(if is { words } else { "" });
        }
        text
    }

    fn placement(&self) -> String {
        let numbers =
            |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let placement = &self.params.placement;
        let mut text = String::new();
        if let Some(cores) = &placement.cores {
            let _ = write!(text, "; threads are bound to cores {}", numbers(cores));
        }
        if let Some(nodes) = &placement.numa_nodes {
            let _ = write!(text, "; threads and buffers lie on NUMA nodes {}", numbers(nodes));
        }
        if placement.huge_pages {
            text.push_str("; buffers lie in huge pages");
        }
        if let Some(nodes) = self.params.nodes.filter(|_| !self.swept("nodes")) {
            let _ = write!(text, "; on the first {nodes} nodes");
        }
        if self.params.cold {
            text.push_str("; by other nodes than wrote, after their caches were dropped");
        }
        text
    }

    fn offer(&self) -> String {
        match self.params.offer {
            Offer::Closed { think_ns: 0, .. } => String::new(),
            Offer::Closed { think_ns, burst } => {
                let after = if burst == 1 {
                    "each operation".to_owned()
                } else {
                    format!("{} operations", format_count(burst.into()))
                };
                format!("; a pause of {} after {after}", Time::from_ns(think_ns))
            }
            Offer::Open { rate, per, exponential } => {
                let rate =
                    if self.swept("rate") { "a swept rate".to_owned() } else { words::rate(rate) };
                let per = match per {
                    RatePer::Fleet => "of the fleet",
                    RatePer::Node => "of each node",
                    RatePer::Thread => "of each thread",
                };
                let gaps = if exponential { "exponential" } else { "even" };
                format!("; operations arrive at {rate} {per} with {gaps} gaps")
            }
        }
    }

    fn options(&self) -> String {
        let options = self.params.options;
        let mut text = String::new();
        if self.params.writes() {
            text.push_str(match self.params.fsync {
                _ if self.swept("fsync") => "; fsync as swept",
                Fsync::End => "; fsync after its last operation",
                Fsync::None => "; no fsync",
                Fsync::Each => "; fsync after each operation",
            });
        }
        for (is, words) in [
            (options.dsync, "; each write is on stable storage when it returns"),
            (options.append, "; writes go to the file's end"),
            (options.preallocate, "; space is allocated before the start"),
            (options.lock, "; each operation locks its file"),
        ] {
            text.push_str(if is { words } else { "" });
        }
        text.push_str(match options.advice {
            None => "",
            Some(Advice::Sequential) => "; the kernel is told of sequential accesses",
            Some(Advice::Random) => "; the kernel is told of random accesses",
            Some(Advice::WillNeed) => "; the kernel is told that data will be needed",
            Some(Advice::DontNeed) => "; the kernel is told that cached data is not needed",
        });
        text
    }

    fn data(&self) -> String {
        let params = self.params;
        let mut text = String::new();
        if params.writes() {
            match params.content {
                Content::Zero => text.push_str("; zeros are written"),
                Content::Random { compress_milli, dedupe_milli } => {
                    if compress_milli > 1000 {
                        let _ = write!(text, "; data compresses {} to 1", milli(compress_milli));
                    }
                    if dedupe_milli > 1000 {
                        let _ = write!(text, "; data deduplicates {} to 1", milli(dedupe_milli));
                    }
                }
            }
            if !params.refresh {
                text.push_str("; each thread writes the same bytes again and again");
            }
        }
        text.push_str(match (params.verify, params.reads()) {
            (Verify::Off, _) => "",
            (Verify::All | Verify::NoStale, false) => "; what is written can be verified",
            (Verify::All, true) => "; what is read is verified",
            (Verify::NoStale, true) => "; what is read is verified, but not whether it is stale",
        });
        text
    }

    fn made(&self, point: &PointPlan) -> String {
        let params = self.params;
        let text = if params.layout == Layout::Tree {
            if point.numbers.begins_tree { "; the tree is begun anew" } else { "" }
        } else if params.is_listed() || !params.writes() {
            ""
        } else if params.fresh {
            "; files are made anew"
        } else if params.options.truncate {
            "; files are truncated first"
        } else {
            "; files stay"
        };
        text.to_owned()
    }
}

/// The share of a weight, to a tenth of a percent.
fn percent(weight: u32, sum: u64) -> String {
    let sum = sum.max(1);
    let tenths = (u64::from(weight) * 1000 + sum / 2) / sum;
    format!("{} %", milli(u32::try_from(tenths * 100).unwrap_or(0)))
}

/// A number of 1/1000.
fn milli(value: u32) -> String {
    words::milli(value)
}
