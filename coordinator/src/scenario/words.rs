//! The words of keys that take one of a few, and what they mean.

use iofleet_shared::work::{EngineKind, Fsync, Layout, OpKind, Pattern};

use super::OnFault;

/// Words and their meanings.
pub(super) type Words<T> = [(&'static str, T)];

pub(super) const OPS: &Words<OpKind> = &[("write", OpKind::Write), ("read", OpKind::Read)];
pub(super) const LAYOUTS: &Words<Layout> =
    &[("file-per-thread", Layout::FilePerThread), ("shared-file", Layout::SharedFile)];
pub(super) const PATTERNS: &Words<Pattern> = &[
    ("sequential", Pattern::Sequential),
    ("random", Pattern::Random),
    ("random-once", Pattern::RandomOnce),
];
pub(super) const ENGINES: &Words<EngineKind> = &[("sync", EngineKind::Sync)];
pub(super) const FSYNCS: &Words<Fsync> =
    &[("end", Fsync::End), ("none", Fsync::None), ("each", Fsync::Each)];
pub(super) const ON_FAULTS: &Words<OnFault> =
    &[("continue", OnFault::Continue), ("abort", OnFault::Abort)];

/// The word of an operation: `write`, `read`.
#[must_use]
pub fn op(op: OpKind) -> &'static str {
    word(OPS, op)
}

/// The word of a layout.
#[must_use]
pub fn layout(layout: Layout) -> &'static str {
    word(LAYOUTS, layout)
}

/// The word of a pattern.
#[must_use]
pub fn pattern(pattern: Pattern) -> &'static str {
    word(PATTERNS, pattern)
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
        assert_eq!(seen, 6);
        assert_eq!(layout(Layout::SharedFile), "shared-file");
        assert_eq!(fsync(Fsync::None), "none");
    }
}
