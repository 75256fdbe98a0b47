//! The meaning of the keys of one point.

use std::sync::Arc;

use iofleet_shared::work::{
    Content, EngineKind, EngineSpec, FileOptions, Fsync, Layout, OpKind, OpShare, Pattern,
    Placement, SizeShare,
};

use super::{
    super::{
        DirSharing, Offer, OnFault, Params, TargetConfig, Threads, Tree, Verify,
        effect::Effect,
        error::Problem,
        keys::{Key, KeyId},
        value::Value,
        words::{self, Words},
    },
    View,
};

/// A key without a default that was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing(KeyId);

impl Missing {
    pub(super) fn problem(self, view: &View<'_>) -> Problem {
        let (because, help) = WANTED
            .iter()
            .find(|(id, ..)| *id == self.0)
            .map_or((None, "set it"), |(_, because, help)| (*because, *help));
        let key = Key::of(self.0);
        let text = format!("{} is missing", key.name);
        match because {
            Some(id) => {
                let origin = view.origin(id);
                let origin = origin.or(view.stage_origin());
                Problem::new(format!(
                    "`{}` needs {}, which is missing",
                    Key::of(id).name,
                    key.path()
                ))
                .and(origin, "here")
                .right(help)
            }
            None => Problem::new(text).right(help),
        }
    }
}

impl View<'_> {
    fn sizes(&self, id: KeyId) -> Option<Vec<SizeShare>> {
        let Value::Sizes(sizes) = self.value(id)? else {
            return None;
        };
        Some(sizes)
    }

    fn ns(&self, id: KeyId) -> u64 {
        match self.value(id) {
            Some(Value::Time(time)) => time.ns(),
            _ => 0,
        }
    }

    fn flag(&self, id: KeyId) -> bool {
        self.value(id) == Some(Value::Flag(true))
    }

    fn count(&self, id: KeyId) -> Option<u32> {
        let Value::Count(count) = self.value(id)? else {
            return None;
        };
        Some(count)
    }

    fn milli(&self, id: KeyId) -> u32 {
        match self.value(id) {
            Some(Value::Decimal(milli)) => milli,
            _ => 0,
        }
    }

    fn numbers(&self, id: KeyId) -> Option<Vec<u32>> {
        let Value::Numbers(numbers) = self.value(id)? else {
            return None;
        };
        Some(numbers)
    }

    /// Every key that takes words has a default, but for `op`.
    fn word<T: Copy>(&self, id: KeyId, words: &Words<T>) -> Result<T, Missing> {
        match self.value(id) {
            Some(Value::Choice(word)) => words::meaning(words, word),
            _ => None,
        }
        .ok_or(Missing(id))
    }

    fn threads(&self) -> Threads {
        let written = |id| self.get(id).and_then(|_| self.count(id));
        match (written(KeyId::Threads), written(KeyId::ThreadsPerNode)) {
            (Some(threads), _) => Threads::Fleet(threads),
            (None, Some(threads)) => Threads::PerNode(threads),
            (None, None) => Threads::Fleet(1),
        }
    }

    /// The keys' meaning.
    pub(super) fn params(&self, target: &TargetConfig) -> Result<Params, Missing> {
        let mut params = Params {
            ops: self.ops()?,
            threads: self.threads(),
            nodes: self.count(KeyId::Nodes),
            layout: self.word(KeyId::Layout, words::LAYOUTS)?,
            interval_ns: self.ns(KeyId::Interval),
            seed: match self.value(KeyId::Seed) {
                Some(Value::Integer(seed)) => seed,
                _ => 0,
            },
            on_fault: self.word::<OnFault>(KeyId::OnFault, words::ON_FAULTS)?,
            stuck_after_ns: self.ns(KeyId::StuckAfter),
            offer: self.offer()?,
            ..Params::default()
        };
        if params.is_mix() {
            params.mix_by = self.word(KeyId::MixBy, words::MIX_BYS)?;
        }
        params.engine = self.engine(&params)?;
        self.files(&mut params, target)?;
        self.length(&mut params);
        self.data(&mut params)?;
        params.options = self.options(&params)?;
        params.placement = Placement {
            cores: self.numbers(KeyId::Cores),
            numa_nodes: self.numbers(KeyId::NumaNodes),
            huge_pages: params.moves_data() && self.flag(KeyId::HugePages),
        };
        Ok(params)
    }

    fn ops(&self) -> Result<Vec<OpShare>, Missing> {
        match self.word(KeyId::Op, words::OPS)? {
            Some(op) => Ok(vec![OpShare { op, weight: 1 }]),
            None => match self.value(KeyId::Mix) {
                Some(Value::Mix(shares)) => Ok(shares),
                _ => Err(Missing(KeyId::Mix)),
            },
        }
    }

    fn offer(&self) -> Result<Offer, Missing> {
        let think_ns = self.ns(KeyId::Think);
        Ok(match self.value(KeyId::Rate) {
            Some(Value::Offered(rate)) => Offer::Open {
                rate,
                per: self.word(KeyId::RatePer, words::RATE_PERS)?,
                exponential: self.word(KeyId::Arrivals, words::ARRIVALS)?,
            },
            _ if think_ns > 0 => {
                Offer::Closed { think_ns, burst: self.count(KeyId::Burst).unwrap_or(1) }
            }
            _ => Offer::Closed { think_ns: 0, burst: 1 },
        })
    }

    fn engine(&self, params: &Params) -> Result<EngineSpec, Missing> {
        let kind = self.word(KeyId::Engine, words::ENGINES)?;
        let queue = matches!(kind, EngineKind::IoUring | EngineKind::Libaio);
        let uring = kind == EngineKind::IoUring;
        Ok(EngineSpec {
            kind,
            depth: if queue { self.count(KeyId::Depth).unwrap_or(DEPTH) } else { 1 },
            sqpoll: uring && self.flag(KeyId::Sqpoll),
            iopoll: uring && self.flag(KeyId::Iopoll),
            high_priority: kind == EngineKind::Sync
                && params.moves_data()
                && self.flag(KeyId::HighPriority),
        })
    }

    fn files(&self, params: &mut Params, target: &TargetConfig) -> Result<(), Missing> {
        match params.layout {
            Layout::Tree => {
                params.tree = Tree {
                    dirs: self.count(KeyId::Dirs).unwrap_or(1),
                    files: self.count(KeyId::Files).ok_or(Missing(KeyId::Files))?,
                    sharing: self.word::<DirSharing>(KeyId::DirSharing, words::DIR_SHARINGS)?,
                };
            }
            Layout::FileList if target.files.is_empty() => {
                return Err(Missing(KeyId::TargetFiles));
            }
            Layout::Device if target.devices.is_empty() => {
                return Err(Missing(KeyId::TargetDevices));
            }
            Layout::FileList => params.listed = Arc::clone(&target.files),
            Layout::Device => params.listed = Arc::clone(&target.devices),
            Layout::FilePerThread | Layout::SharedFile | Layout::SharedStrided => {}
        }
        if params.moves_data() {
            params.file_sizes = self.sizes(KeyId::FileSize).ok_or(Missing(KeyId::FileSize))?;
            params.blocks = self.sizes(KeyId::Block).ok_or(Missing(KeyId::Block))?;
            params.pattern = self.pattern()?;
        } else {
            params.file_sizes = self
                .sizes(KeyId::FileSize)
                .unwrap_or_else(|| vec![SizeShare { bytes: 0, weight: 1 }]);
        }
        params.cold = Effect::Reads.holds(params) && self.flag(KeyId::Cold);
        params.fresh = Effect::Makes.holds(params) && self.flag(KeyId::Fresh);
        Ok(())
    }

    fn pattern(&self) -> Result<Pattern, Missing> {
        Ok(match self.word(KeyId::Pattern, words::PATTERNS)? {
            Pattern::Strided { step } => {
                Pattern::Strided { step: self.count(KeyId::Step).map_or(step, u64::from) }
            }
            Pattern::Zipf { .. } => Pattern::Zipf { theta_milli: self.milli(KeyId::ZipfTheta) },
            Pattern::Pareto { .. } => Pattern::Pareto { h_milli: self.milli(KeyId::ParetoH) },
            Pattern::Normal { .. } => {
                Pattern::Normal { deviation_milli: self.milli(KeyId::NormalDeviation) }
            }
            plain @ (Pattern::Sequential
            | Pattern::Backward
            | Pattern::Random
            | Pattern::RandomOnce) => plain,
        })
    }

    fn length(&self, params: &mut Params) {
        params.duration_ns = self.get(KeyId::Duration).map(|_| self.ns(KeyId::Duration));
        if params.duration_ns.is_some() {
            params.ramp_ns = self.ns(KeyId::Ramp);
            params.repeat_range = Effect::Repeats.holds(params) && self.flag(KeyId::Loop);
        }
    }

    fn data(&self, params: &mut Params) -> Result<(), Missing> {
        params.fsync = if params.has(OpKind::Write) {
            self.word(KeyId::Fsync, words::FSYNCS)?
        } else {
            Fsync::None
        };
        if params.writes() {
            params.content = if self.word(KeyId::Content, words::CONTENTS)? {
                Content::Random {
                    compress_milli: self.milli(KeyId::Compress),
                    dedupe_milli: self.milli(KeyId::Dedupe),
                }
            } else {
                Content::Zero
            };
            params.refresh = params.content == Content::Zero || self.flag(KeyId::Refresh);
        }
        params.verify = if params.moves_data() {
            self.word(KeyId::Verify, words::VERIFIES)?
        } else {
            Verify::Off
        };
        Ok(())
    }

    fn options(&self, params: &Params) -> Result<FileOptions, Missing> {
        let buffered = matches!(params.engine.kind, EngineKind::Mmap | EngineKind::Null);
        let direct = match self.get(KeyId::Direct) {
            Some(setting) => setting.value == Value::Flag(true),
            None => !buffered,
        };
        let (data, writes) = (params.moves_data(), params.writes());
        Ok(FileOptions {
            direct: data && direct,
            dsync: writes && self.flag(KeyId::Dsync),
            append: writes && self.flag(KeyId::Append),
            preallocate: writes && self.flag(KeyId::Preallocate),
            truncate: writes && self.flag(KeyId::Truncate),
            advice: if data { self.word(KeyId::Advice, words::ADVICES)? } else { None },
            lock: Effect::SyncData.holds(params) && self.flag(KeyId::Lock),
        })
    }
}

/// Keys without a default, which keys make them needed, and what would be right.
const WANTED: &[(KeyId, Option<KeyId>, &str)] = &[
    (
        KeyId::FileSize,
        None,
        "set workload.file_size (`--file-size 1GiB`): the size of each thread's file, or of the \
         whole shared file",
    ),
    (
        KeyId::Mix,
        Some(KeyId::Op),
        "set mix, as in `mix = \"read 70, write 30\"`: kinds of operation with their shares",
    ),
    (KeyId::Files, Some(KeyId::Layout), "set files: how many each thread has in each directory"),
    (
        KeyId::TargetFiles,
        Some(KeyId::Layout),
        "set target.files (`--target-files /mnt/x/a,/mnt/x/b`): files that are there",
    ),
    (
        KeyId::TargetDevices,
        Some(KeyId::Layout),
        "set target.devices (`--devices /dev/nvme1n1`): block devices to use",
    ),
];
/// Operations in flight per thread where nobody says how many.
const DEPTH: u32 = 32;
