//! The words of keys that take one of a few, and what they mean.

use std::mem::discriminant;

use iofleet_shared::work::{Advice, EngineKind, Fsync, Layout, OpKind, Pattern};

use super::{
    DirSharing, MixBy, OfferedRate, OnFault, RatePer, Verify,
    value::{self, Value},
};

/// Words and their meanings.
pub(super) type Words<T> = [(&'static str, T)];

/// A mix has kinds of its own.
pub(super) const OPS: &Words<Option<OpKind>> = &[
    ("write", Some(OpKind::Write)),
    ("read", Some(OpKind::Read)),
    ("mkdir", Some(OpKind::Mkdir)),
    ("create", Some(OpKind::Create)),
    ("stat", Some(OpKind::Stat)),
    ("open", Some(OpKind::Open)),
    ("readdir", Some(OpKind::Readdir)),
    ("rename", Some(OpKind::Rename)),
    ("unlink", Some(OpKind::Unlink)),
    ("rmdir", Some(OpKind::Rmdir)),
    ("mix", None),
];
pub(super) const MIX_BYS: &Words<MixBy> =
    &[("operation", MixBy::Operation), ("thread", MixBy::Thread)];
pub(super) const LAYOUTS: &Words<Layout> = &[
    ("file-per-thread", Layout::FilePerThread),
    ("shared-file", Layout::SharedFile),
    ("shared-strided", Layout::SharedStrided),
    ("tree", Layout::Tree),
    ("file-list", Layout::FileList),
    ("device", Layout::Device),
];
pub(super) const DIR_SHARINGS: &Words<DirSharing> =
    &[("own", DirSharing::Own), ("shared", DirSharing::Shared)];
/// What sets a pattern is not part of its word.
pub(super) const PATTERNS: &Words<Pattern> = &[
    ("sequential", Pattern::Sequential),
    ("backward", Pattern::Backward),
    ("strided", Pattern::Strided { step: 2 }),
    ("random", Pattern::Random),
    ("random-once", Pattern::RandomOnce),
    ("zipf", Pattern::Zipf { theta_milli: 1200 }),
    ("pareto", Pattern::Pareto { h_milli: 800 }),
    ("normal", Pattern::Normal { deviation_milli: 100 }),
];
pub(super) const ENGINES: &Words<EngineKind> = &[
    ("sync", EngineKind::Sync),
    ("io_uring", EngineKind::IoUring),
    ("libaio", EngineKind::Libaio),
    ("mmap", EngineKind::Mmap),
    ("null", EngineKind::Null),
];
pub(super) const RATE_PERS: &Words<RatePer> =
    &[("fleet", RatePer::Fleet), ("node", RatePer::Node), ("thread", RatePer::Thread)];
/// Whether gaps are drawn.
pub(super) const ARRIVALS: &Words<bool> = &[("even", false), ("exponential", true)];
/// Whether bytes are random.
pub(super) const CONTENTS: &Words<bool> = &[("random", true), ("zero", false)];
pub(super) const VERIFIES: &Words<Verify> =
    &[("off", Verify::Off), ("all", Verify::All), ("no-stale", Verify::NoStale)];
pub(super) const ADVICES: &Words<Option<Advice>> = &[
    ("none", None),
    ("sequential", Some(Advice::Sequential)),
    ("random", Some(Advice::Random)),
    ("willneed", Some(Advice::WillNeed)),
    ("dontneed", Some(Advice::DontNeed)),
];
pub(super) const FSYNCS: &Words<Fsync> =
    &[("end", Fsync::End), ("none", Fsync::None), ("each", Fsync::Each)];
pub(super) const ON_FAULTS: &Words<OnFault> =
    &[("continue", OnFault::Continue), ("abort", OnFault::Abort)];

/// The word of a layout.
#[must_use]
pub fn layout(layout: Layout) -> &'static str {
    word(LAYOUTS, layout)
}

/// The word of a pattern.
#[must_use]
pub fn pattern(pattern: Pattern) -> &'static str {
    let same = |known: &Pattern| discriminant(known) == discriminant(&pattern);
    PATTERNS.iter().find(|(_, known)| same(known)).map_or("", |(word, _)| word)
}

/// The word of an engine.
#[must_use]
pub fn engine(engine: EngineKind) -> &'static str {
    word(ENGINES, engine)
}

/// The word of a fsync policy.
#[must_use]
pub fn fsync(fsync: Fsync) -> &'static str {
    word(FSYNCS, fsync)
}

/// The word of what a rate is of.
#[must_use]
pub fn rate_per(per: RatePer) -> &'static str {
    word(RATE_PERS, per)
}

/// The word of what is verified.
#[must_use]
pub fn verify(verify: Verify) -> &'static str {
    word(VERIFIES, verify)
}

/// The word of an advice.
#[must_use]
pub fn advice(advice: Option<Advice>) -> &'static str {
    word(ADVICES, advice)
}

/// A number of 1/1000 as people write it.
#[must_use]
pub fn milli(value: u32) -> String {
    value::milli(value)
}

/// An offered rate as people write it.
#[must_use]
pub fn rate(rate: OfferedRate) -> String {
    Value::Offered(rate).to_string()
}

/// The word of what a fault does.
#[must_use]
pub fn on_fault(on_fault: OnFault) -> &'static str {
    word(ON_FAULTS, on_fault)
}

pub(super) fn meaning<T: Copy>(words: &Words<T>, text: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning)
}

fn word<T: PartialEq>(words: &Words<T>, value: T) -> &'static str {
    words.iter().find(|(_, meaning)| *meaning == value).map_or("", |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::super::keys::{KEYS, KeyId, Kind};
    use super::*;

    #[test]
    fn the_table_of_keys_has_the_same_words() {
        fn of<T>(words: &Words<T>) -> Vec<&'static str> {
            words.iter().map(|(word, _)| *word).collect()
        }
        let mut seen = 0;
        for key in KEYS {
            let Kind::Choice(words) = key.kind else {
                continue;
            };
            let known = [
                (KeyId::Op, of(OPS)),
                (KeyId::MixBy, of(MIX_BYS)),
                (KeyId::DirSharing, of(DIR_SHARINGS)),
                (KeyId::RatePer, of(RATE_PERS)),
                (KeyId::Arrivals, of(ARRIVALS)),
                (KeyId::Content, of(CONTENTS)),
                (KeyId::Verify, of(VERIFIES)),
                (KeyId::Advice, of(ADVICES)),
                (KeyId::Layout, of(LAYOUTS)),
                (KeyId::Pattern, of(PATTERNS)),
                (KeyId::Engine, of(ENGINES)),
                (KeyId::Fsync, of(FSYNCS)),
                (KeyId::OnFault, of(ON_FAULTS)),
            ];
            let ours = known.into_iter().find(|(id, _)| *id == key.id).map(|(_, words)| words);
            let ours = ours.expect(key.name);
            assert_eq!(words, ours, "{}", key.name);
            seen += 1;
        }
        assert_eq!(seen, 13);
        assert_eq!(pattern(Pattern::Strided { step: 7 }), "strided");
        for op in OpKind::ALL {
            assert!(OPS.contains(&(op.name(), Some(op))), "{op:?}");
        }
        assert_eq!(layout(Layout::SharedFile), "shared-file");
        assert_eq!(fsync(Fsync::None), "none");
    }
}
