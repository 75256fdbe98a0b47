//! Which combinations of keys can be run, and why the others can't. Pure.

use iofleet_shared::work::{Content, EngineKind, Fsync, Layout, OpKind, Pattern, SizeShare};

use super::{DirSharing, KeyId, MixBy, Offer, OfferedRate, Params, Threads, Tree, Verify, words};

/// A combination that can't be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Illegal {
    /// The keys that do not go together.
    pub keys: (KeyId, KeyId),
    /// What is wrong.
    pub text: &'static str,
    /// What would be right.
    pub help: &'static str,
    /// Why, in a few words.
    pub short: &'static str,
}

/// Everything that can't be run in what a point asks for.
#[must_use]
pub fn illegal(params: &Params) -> Vec<Illegal> {
    RULES.iter().filter(|rule| (rule.broken)(params)).map(|rule| rule.illegal).collect()
}

/// The whole table of engines, layouts, patterns and direct I/O, for a stage that writes, in
/// Markdown: `yes`, or why not.
#[must_use]
pub fn table() -> String {
    let patterns = words::PATTERNS;
    let mut text = String::from("| engine | layout | direct |");
    patterns.iter().for_each(|(word, _)| text.push_str(&format!(" {word} |")));
    text.push_str("\n|---|---|---|");
    patterns.iter().for_each(|_| text.push_str("---|"));
    text.push('\n');
    for (engine_word, engine) in words::ENGINES {
        for (layout_word, layout) in words::LAYOUTS {
            for direct in [true, false] {
                text.push_str(&format!("| {engine_word} | {layout_word} | {direct} |"));
                for (_, pattern) in patterns {
                    let found = illegal(&cell(*engine, *layout, *pattern, direct));
                    let words = found.first().map_or("yes", |illegal| illegal.short);
                    text.push_str(&format!(" {words} |"));
                }
                text.push('\n');
            }
        }
    }
    text
}

fn cell(engine: EngineKind, layout: Layout, pattern: Pattern, direct: bool) -> Params {
    let mut params = Params { layout, pattern, ..Params::default() };
    params.engine.kind = engine;
    params.options.direct = direct;
    params.fresh = !params.is_listed();
    if layout == Layout::Tree {
        params.tree = Tree { dirs: 1, files: 1, sharing: DirSharing::Own };
    }
    params
}

struct Rule {
    broken: fn(&Params) -> bool,
    illegal: Illegal,
}

const fn rule(
    keys: (KeyId, KeyId),
    broken: fn(&Params) -> bool,
    text: &'static str,
    help: &'static str,
    short: &'static str,
) -> Rule {
    Rule { broken, illegal: Illegal { keys, text, help, short } }
}

/// The generator and the page cache have no direct I/O, and so on.
static RULES: &[Rule] = &[
    rule(
        (KeyId::Engine, KeyId::Direct),
        |p| p.engine.kind == EngineKind::Mmap && p.options.direct,
        "engine `mmap` works in the page cache, which `direct` bypasses",
        "set direct = false, or another engine",
        "a mapping lies in the page cache",
    ),
    rule(
        (KeyId::Engine, KeyId::Direct),
        |p| p.engine.kind == EngineKind::Null && p.options.direct,
        "engine `null` does no I/O that could be direct",
        "set direct = false, or another engine",
        "no I/O that could be direct",
    ),
    rule(
        (KeyId::Layout, KeyId::Engine),
        |p| {
            p.layout == Layout::Tree
                && p.moves_data()
                && !matches!(p.engine.kind, EngineKind::Sync | EngineKind::Null)
        },
        "layout `tree` opens and closes files as it goes, which only the engines `sync` and `null` \
         do",
        "set engine = \"sync\", or another layout",
        "files are opened and closed by `sync`",
    ),
    rule(
        (KeyId::Op, KeyId::Layout),
        |p| !p.moves_only_data() && p.layout != Layout::Tree,
        "operations on names need the layout `tree`",
        "set layout = \"tree\" and files, or op = \"write\" or \"read\"",
        "names need a tree",
    ),
    rule(
        (KeyId::Op, KeyId::Engine),
        |p| !p.moves_only_data() && !matches!(p.engine.kind, EngineKind::Sync | EngineKind::Null),
        "operations on names are system calls, which only the engines `sync` and `null` do",
        "set engine = \"sync\"",
        "names need `sync`",
    ),
    rule(
        (KeyId::Mix, KeyId::Op),
        |p| p.is_mix() && p.has(OpKind::Rmdir) && !p.ops.iter().all(|s| of_directories(s.op)),
        "a mix that removes directories needs them to be empty: its other kinds work on files",
        "mix rmdir with mkdir or readdir only, or remove in a stage of its own",
        "",
    ),
    rule(
        (KeyId::DirSharing, KeyId::Op),
        |p| p.tree.sharing == DirSharing::Shared && (p.has(OpKind::Mkdir) || p.has(OpKind::Rmdir)),
        "directories that all threads share are made before the start and are nobody's to make or \
         remove",
        "set dir_sharing = \"own\", or another op",
        "shared directories are nobody's",
    ),
    rule(
        (KeyId::FileSize, KeyId::Layout),
        |p| p.file_sizes.len() > 1 && p.layout != Layout::Tree,
        "a mix of file sizes needs the layout `tree`",
        "set layout = \"tree\", or one file_size",
        "",
    ),
    rule(
        (KeyId::FileSize, KeyId::Layout),
        |p| {
            p.moves_data()
                && p.layout != Layout::Tree
                && p.file_sizes.iter().any(|size| size.bytes == 0)
        },
        "only files of a tree can be empty: file_size is 0 B",
        "set file_size to a block at least",
        "",
    ),
    rule(
        (KeyId::Pattern, KeyId::Block),
        |p| p.pattern == Pattern::RandomOnce && p.blocks.len() > 1,
        "pattern `random-once` takes each block once, which needs one block size",
        "set one block, or pattern = \"random\"",
        "",
    ),
    rule(
        (KeyId::Pattern, KeyId::Block),
        |p| matches!(p.pattern, Pattern::Strided { .. }) && p.blocks.len() > 1,
        "pattern `strided` counts blocks, which needs one block size",
        "set one block, or pattern = \"sequential\"",
        "",
    ),
    rule(
        (KeyId::Layout, KeyId::Block),
        |p| p.layout == Layout::SharedStrided && p.blocks.len() > 1,
        "layout `shared-strided` deals single blocks, which needs one block size",
        "set one block, or layout = \"shared-file\"",
        "",
    ),
    rule(
        (KeyId::ZipfTheta, KeyId::Pattern),
        |p| p.pattern == (Pattern::Zipf { theta_milli: 1000 }),
        "zipf_theta can't be 1",
        "set it to 0.999 or 1.001",
        "",
    ),
    rule(
        (KeyId::Append, KeyId::Op),
        |p| p.options.append && (p.is_mix() || !p.writes()),
        "`append` needs op = \"write\"",
        "leave append out, or set op = \"write\"",
        "",
    ),
    rule(
        (KeyId::Append, KeyId::Pattern),
        |p| p.options.append && p.pattern != Pattern::Sequential,
        "`append` lets the kernel choose offsets: they ascend",
        "set pattern = \"sequential\", or leave append out",
        "",
    ),
    rule(
        (KeyId::Append, KeyId::Layout),
        |p| p.options.append && p.layout != Layout::FilePerThread,
        "`append` needs files that each belong to one thread",
        "set layout = \"file-per-thread\", or leave append out",
        "",
    ),
    rule(
        (KeyId::Append, KeyId::Engine),
        |p| p.options.append && p.engine.kind != EngineKind::Sync,
        "`append` needs one write at a time, in order",
        "set engine = \"sync\", or leave append out",
        "",
    ),
    rule(
        (KeyId::Append, KeyId::Block),
        |p| p.options.append && p.blocks.len() > 1,
        "`append` needs one block size",
        "set one block, or leave append out",
        "",
    ),
    rule(
        (KeyId::Append, KeyId::Fresh),
        |p| p.options.append && !p.fresh && !p.options.truncate,
        "`append` to files that hold data would make them grow",
        "leave fresh = false out, or set truncate = true",
        "",
    ),
    rule(
        (KeyId::Append, KeyId::Preallocate),
        |p| p.options.append && p.options.preallocate,
        "`append` writes at a file's end, which `preallocate` moves",
        "leave one of them out",
        "",
    ),
    rule(
        (KeyId::Append, KeyId::Loop),
        |p| p.options.append && p.repeat_range,
        "`append` that begins again at its end would make files grow",
        "set loop = false, or leave append out",
        "",
    ),
    rule(
        (KeyId::HighPriority, KeyId::Direct),
        |p| p.engine.high_priority && !p.options.direct,
        "`high_priority` needs direct I/O",
        "set direct = true, or leave high_priority out",
        "",
    ),
    rule(
        (KeyId::Iopoll, KeyId::Direct),
        |p| p.engine.iopoll && !p.options.direct,
        "`iopoll` needs direct I/O",
        "set direct = true, or leave iopoll out",
        "",
    ),
    rule(
        (KeyId::Think, KeyId::Depth),
        |p| p.engine.depth > 1 && matches!(p.offer, Offer::Closed { think_ns, .. } if think_ns > 0),
        "`think` is a pause after an operation, and with a depth above 1 others are in flight",
        "set depth = 1, or leave think out",
        "",
    ),
    rule(
        (KeyId::Rate, KeyId::Op),
        |p| {
            !p.moves_only_data()
                && matches!(p.offer, Offer::Open { rate: OfferedRate::Bytes(_), .. })
        },
        "a rate of bytes needs operations that all move bytes",
        "set a rate of operations, as in `5000 op/s`",
        "",
    ),
    rule(
        (KeyId::Preallocate, KeyId::Layout),
        |p| p.options.preallocate && (p.layout == Layout::Tree || p.is_listed()),
        "`preallocate` needs files that are made before the start",
        "set layout = \"file-per-thread\", \"shared-file\" or \"shared-strided\", or leave \
         preallocate out",
        "",
    ),
    rule(
        (KeyId::Preallocate, KeyId::Fresh),
        |p| {
            p.options.preallocate
                && !p.fresh
                && p.layout != Layout::Tree
                && !p.is_listed()
                && !p.options.truncate
        },
        "`preallocate` needs fresh files: others have their space",
        "set fresh = true in a stage that only writes, or leave preallocate out",
        "",
    ),
    rule(
        (KeyId::Truncate, KeyId::Layout),
        |p| p.options.truncate && (p.layout == Layout::Tree || p.is_listed()),
        "`truncate` needs files that the campaign made and opens before the start",
        "set layout = \"file-per-thread\", \"shared-file\" or \"shared-strided\", or leave \
         truncate out",
        "",
    ),
    rule(
        (KeyId::Truncate, KeyId::Op),
        |p| p.options.truncate && p.reads(),
        "`truncate` leaves nothing to read",
        "leave truncate out, or set op = \"write\"",
        "",
    ),
    rule(
        (KeyId::Truncate, KeyId::Fresh),
        |p| p.options.truncate && p.fresh,
        "`truncate` needs files that are there, and `fresh` makes them anew",
        "set fresh = false, or leave truncate out",
        "",
    ),
    rule(
        (KeyId::Verify, KeyId::Block),
        |p| p.verify != Verify::Off && p.blocks.iter().any(|b| !b.bytes.is_multiple_of(UNIT_BYTES)),
        "`verify` works on units of 4 KiB, and a block is not a multiple of that",
        "set block to a multiple of 4 KiB, or verify = \"off\"",
        "",
    ),
    rule(
        (KeyId::Verify, KeyId::Content),
        |p| p.verify != Verify::Off && p.writes() && p.content == Content::Zero,
        "`verify` writes the place of each unit into it, which content = \"zero\" leaves no room \
         for",
        "set content = \"random\", or verify = \"off\"",
        "",
    ),
    rule(
        (KeyId::Verify, KeyId::Compress),
        |p| p.verify != Verify::Off && p.writes() && p.compress_milli() > 1000,
        "`verify` needs units that are all different and random, which `compress` makes them not",
        "leave compress out, or set verify = \"off\"",
        "",
    ),
    rule(
        (KeyId::Verify, KeyId::Dedupe),
        |p| p.verify != Verify::Off && p.writes() && p.dedupe_milli() > 1000,
        "`verify` needs units that are all different, which `dedupe` makes them not",
        "leave dedupe out, or set verify = \"off\"",
        "",
    ),
    rule(
        (KeyId::Verify, KeyId::Refresh),
        |p| p.verify != Verify::Off && p.writes() && !p.refresh,
        "`verify` needs new bytes in each write, which refresh = false takes away",
        "leave refresh out, or set verify = \"off\"",
        "",
    ),
    rule(
        (KeyId::Verify, KeyId::Engine),
        |p| p.verify != Verify::Off && p.engine.kind == EngineKind::Null,
        "`verify` needs data, and the engine `null` moves none",
        "set another engine, or verify = \"off\"",
        "",
    ),
    rule(
        (KeyId::Verify, KeyId::Append),
        |p| p.verify != Verify::Off && p.options.append,
        "`verify` writes the place of each unit into it, and with `append` the kernel chooses it",
        "leave append out, or set verify = \"off\"",
        "",
    ),
    rule(
        (KeyId::Mix, KeyId::MixBy),
        |p| {
            mixes_data_and_names(p)
                && p.ops.iter().any(|share| !share.op.moves_data() && !only_looks(share.op))
        },
        "a thread that reads or writes a tree's files can mix that with stat, open and readdir \
         only: other operations on names would take its files away",
        "set mix_by = \"thread\", or mix with stat, open or readdir",
        "",
    ),
    rule(
        (KeyId::Mix, KeyId::Fsync),
        |p| {
            mixes_data_and_names(p)
                && (p.fsync == Fsync::Each || p.options.lock || p.engine.high_priority)
        },
        "a thread that mixes operations on data and on names has neither fsync = \"each\" nor \
         `lock` nor `high_priority`",
        "leave them out, or set mix_by = \"thread\"",
        "",
    ),
    rule(
        (KeyId::FileSize, KeyId::Op),
        |p| {
            p.moves_data()
                && p.layout == Layout::Tree
                && p.file_sizes.iter().any(|size| size.bytes == 0)
        },
        "an empty file has no block to read or write: file_size is 0 B",
        "set file_size to a block at least, or make empty files by op = \"create\"",
        "",
    ),
    rule(
        (KeyId::Advice, KeyId::Layout),
        |p| p.options.advice.is_some() && p.layout == Layout::Tree,
        "`advice` is given while arming, and files of a tree are opened as they come",
        "leave advice out, or set another layout",
        "",
    ),
    rule(
        (KeyId::Advice, KeyId::Engine),
        |p| p.options.advice.is_some() && p.engine.kind == EngineKind::Null,
        "`advice` is about accesses, and the engine `null` makes none",
        "leave advice out, or set another engine",
        "",
    ),
    rule(
        (KeyId::Dsync, KeyId::Engine),
        |p| p.options.dsync && matches!(p.engine.kind, EngineKind::Mmap | EngineKind::Null),
        "`dsync` is about write calls, which the engines `mmap` and `null` do not make",
        "set fsync = \"each\" with `mmap`, or another engine",
        "",
    ),
    rule(
        (KeyId::Dedupe, KeyId::Block),
        |p| {
            p.dedupe_milli() > 1000
                && p.blocks.iter().any(|block| !block.bytes.is_multiple_of(UNIT_BYTES))
        },
        "`dedupe` repeats units of 4 KiB, and a block is not a multiple of that",
        "set block to a multiple of 4 KiB, or leave dedupe out",
        "",
    ),
    rule(
        (KeyId::Lock, KeyId::Layout),
        |p| p.options.lock && p.layout == Layout::Device,
        "`lock` is of open files, and all threads of a worker share one of a device",
        "leave lock out, or set another layout",
        "",
    ),
    rule(
        (KeyId::Iopoll, KeyId::Fsync),
        |p| p.engine.iopoll && p.fsync == Fsync::Each,
        "`iopoll` polls for reads and writes, and fsync = \"each\" is neither",
        "set fsync = \"end\" or dsync = true, or leave iopoll out",
        "",
    ),
    rule(
        (KeyId::Fsync, KeyId::Engine),
        |p| p.fsync == Fsync::Each && p.engine.kind == EngineKind::Null,
        "fsync = \"each\" is a call, and the engine `null` makes none",
        "leave fsync out, or set another engine",
        "",
    ),
    rule(
        (KeyId::Truncate, KeyId::Engine),
        |p| p.options.truncate && p.engine.kind == EngineKind::Mmap && p.is_shared(),
        "`truncate` of a file that others have just mapped takes it away from them",
        "set fresh = true in place of truncate, or another engine",
        "",
    ),
    rule(
        (KeyId::MixBy, KeyId::Threads),
        |p| {
            let Threads::Fleet(threads) = p.threads else { return false };
            p.mix_by == MixBy::Thread && p.is_mix() && (threads as usize) < p.ops.len()
        },
        "mix_by = \"thread\" needs a thread at least for each kind of the mix",
        "use more threads, or set mix_by = \"operation\"",
        "",
    ),
];

/// Whether each thread draws from operations on data and on names.
fn mixes_data_and_names(params: &Params) -> bool {
    params.mix_by == MixBy::Operation && params.moves_data() && !params.moves_only_data()
}

/// Whether a kind leaves names as they are.
fn only_looks(op: OpKind) -> bool {
    matches!(op, OpKind::Stat | OpKind::Open | OpKind::Readdir)
}

/// Whether a kind works on directories alone.
fn of_directories(op: OpKind) -> bool {
    matches!(op, OpKind::Mkdir | OpKind::Rmdir | OpKind::Readdir)
}

/// What verification works on.
pub(super) const UNIT_BYTES: u64 = 4096;

/// Blocks that are not all multiples of the smallest: the first one that is none.
pub(super) fn off_grid(blocks: &[SizeShare]) -> Option<u64> {
    let least = blocks.iter().map(|block| block.bytes).min()?;
    blocks.iter().map(|block| block.bytes).find(|bytes| !bytes.is_multiple_of(least.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_the_rules_say() {
        let table = table();
        let rows: Vec<&str> = table.lines().collect();
        // 5 engines, 6 layouts, direct or not, and two lines of heading.
        assert_eq!(rows.len(), 2 + 5 * 6 * 2);
        let row = |begin: &str| rows.iter().find(|row| row.starts_with(begin)).unwrap();
        assert_eq!(
            *row("| sync | tree | true |"),
            "| sync | tree | true | yes | yes | yes | yes | yes | yes | yes | yes |"
        );
        assert!(row("| mmap | device | true |").contains("a mapping lies in the page cache"));
        assert!(row("| mmap | device | false |").ends_with("yes |"));
        assert!(row("| io_uring | tree | true |").contains("opened and closed by `sync`"));
        assert!(row("| null | tree | false |").ends_with("yes |"));
        assert!(row("| null | shared-strided | true |").contains("no I/O that could be direct"));
    }

    #[test]
    fn every_rule_names_two_keys_and_says_what_is_right() {
        for rule in RULES {
            let Illegal { keys, text, help, .. } = rule.illegal;
            assert_ne!(keys.0, keys.1, "{text}");
            assert!(!text.is_empty() && !help.is_empty());
            assert!(!(rule.broken)(&Params::default()), "{text}");
        }
    }
}
