//! The table itself.

use iofleet_shared::limits::{BLOCK_BYTES_MAX, INTERVAL_NS_MIN, NODES_MAX, THREADS_MAX};

use super::{
    Effect, FILE_MAX, HOUR_NS, Key, KeyId, Kind, Place, SECOND_NS, TREE_MAX, YEAR_NS, fleet, key,
    sizes, time,
};

/// All keys.
pub static KEYS: &[Key] = &[
    key(KeyId::Name, "name", Place::Top, Kind::Text, "Name of the scenario, for people.")
        .otherwise("the file's name"),
    key(
        KeyId::Question,
        "question",
        Place::Top,
        Kind::Text,
        "The question that the scenario answers, for people.",
    ),
    key(KeyId::Notes, "notes", Place::Top, Kind::Text, "Anything else that people should know."),
    key(
        KeyId::Require,
        "require",
        Place::Top,
        Kind::Requirements,
        "What the result has to reach, by stage: `common`, `span`, `thread_sum`, `first_done`, \
         `last_done` or `iops` of its best point at least, `p50` or `p99` of each point at most. \
         Else the exit code is 8.",
    )
    .flagged(),
    key(
        KeyId::Thresholds,
        "thresholds",
        Place::Top,
        Kind::Text,
        "Thresholds of verdicts that are not the usual ones, as in `network 0.85, core 0.9`.",
    ),
    fleet::WORKERS,
    fleet::NETWORK_LIMIT,
    fleet::LINK_SPEED,
    fleet::STORAGE_LIMIT,
    fleet::EXPECTED_WIRE,
    fleet::INTERFACES,
    fleet::OBSERVERS,
    fleet::PATH,
    fleet::KEEP,
    fleet::MIN_FREE,
    fleet::ALLOW_HOLES,
    fleet::TARGET_FILES,
    fleet::TARGET_DEVICES,
    fleet::DESTROYS_DATA,
    key(
        KeyId::Repeat,
        "repeat",
        Place::Sweep,
        Kind::Count(1, 1000),
        "How often each combination of swept values is run.",
    )
    .or("1")
    .flagged(),
    key(
        KeyId::Op,
        "op",
        Place::Stage,
        Kind::Choice(&[
            "write", "read", "mkdir", "create", "stat", "open", "readdir", "rename", "unlink",
            "rmdir", "mix",
        ]),
        "What the stage's operations do; a mix of kinds is named by `mix`.",
    )
    .otherwise("needed; without any stage there are two, write and read"),
    key(
        KeyId::StageName,
        "name",
        Place::Stage,
        Kind::StageName,
        "Name of the stage in tables and results.",
    )
    .otherwise("its op, then `write-2` and so on"),
    key(
        KeyId::Mix,
        "mix",
        Place::Workload,
        Kind::Mix,
        "Kinds of operation with their shares, with op = \"mix\".",
    )
    .otherwise("needed with op = \"mix\"")
    .only(Effect::Mix),
    key(
        KeyId::MixBy,
        "mix_by",
        Place::Workload,
        Kind::Choice(&["operation", "thread"]),
        "Each operation's kind is drawn, or each thread does one kind and threads are dealt to \
         kinds by their shares, one at least to each.",
    )
    .or("operation")
    .only(Effect::Mix),
    key(
        KeyId::Threads,
        "threads",
        Place::Workload,
        Kind::Count(1, THREADS_MAX),
        "I/O threads of the whole fleet; thread i runs on node i mod N.",
    )
    .or("1"),
    key(
        KeyId::ThreadsPerNode,
        "threads_per_node",
        Place::Workload,
        Kind::Count(1, THREADS_MAX),
        "I/O threads of each node; in place of `threads`.",
    )
    .otherwise("`threads` counts"),
    key(
        KeyId::Nodes,
        "nodes",
        Place::Workload,
        Kind::Count(1, NODES_MAX),
        "How many nodes of the fleet take part: the first of the host list.",
    )
    .otherwise("all")
    .flagged(),
    key(
        KeyId::Layout,
        "layout",
        Place::Workload,
        Kind::Choice(&[
            "file-per-thread",
            "shared-file",
            "shared-strided",
            "tree",
            "file-list",
            "device",
        ]),
        "A file for each thread; one file of which each thread has a contiguous range of whole \
         blocks, or thread i of N the blocks i, i + N and so on; directories with files; files \
         or devices that are there before.",
    )
    .or("file-per-thread"),
    key(
        KeyId::Dirs,
        "dirs",
        Place::Workload,
        Kind::Count(1, TREE_MAX),
        "Directories of each thread, or of all with dir_sharing = \"shared\".",
    )
    .or("1")
    .only(Effect::Tree),
    key(
        KeyId::Files,
        "files",
        Place::Workload,
        Kind::Count(1, TREE_MAX),
        "Files of each thread in each directory.",
    )
    .otherwise("needed with layout = \"tree\"")
    .only(Effect::Tree),
    key(
        KeyId::DirSharing,
        "dir_sharing",
        Place::Workload,
        Kind::Choice(&["own", "shared"]),
        "Each thread has directories of its own, or all use the same.",
    )
    .or("own")
    .only(Effect::Tree),
    key(
        KeyId::FileSize,
        "file_size",
        Place::Workload,
        sizes(0, FILE_MAX),
        "Size of each thread's file, of the whole shared file, of a tree's files (there also 0 B, \
         or a mix), or of the part that is used of each listed file or device; a multiple of \
         `block`.",
    )
    .otherwise("needed; 0 B where a tree's operations are all on names")
    .only(Effect::Data),
    key(
        KeyId::Block,
        "block",
        Place::Workload,
        sizes(1, BLOCK_BYTES_MAX),
        "Bytes of one operation, or a mix of sizes that are multiples of the smallest.",
    )
    .or("1 MiB")
    .only(Effect::Data),
    key(
        KeyId::Pattern,
        "pattern",
        Place::Workload,
        Kind::Choice(&[
            "sequential",
            "backward",
            "strided",
            "random",
            "random-once",
            "zipf",
            "pareto",
            "normal",
        ]),
        "Order of blocks: ascending; descending; every `step`-th, then those between; drawn with \
         repetition; each once, shuffled; drawn with repetition by a distribution.",
    )
    .or("sequential")
    .only(Effect::Data),
    key(
        KeyId::Step,
        "step",
        Place::Workload,
        Kind::Count(2, u32::MAX),
        "With the pattern `strided`: blocks from one to the next.",
    )
    .or("2")
    .only(Effect::Strided),
    key(
        KeyId::ZipfTheta,
        "zipf_theta",
        Place::Workload,
        Kind::Decimal(1, 10_000),
        "With the pattern `zipf`: the k-th most popular block is drawn in proportion to \
         1 / k^theta; not 1.",
    )
    .or("1.2")
    .only(Effect::Zipf),
    key(
        KeyId::ParetoH,
        "pareto_h",
        Place::Workload,
        Kind::Decimal(501, 999),
        "With the pattern `pareto`: this share of the draws falls on the rest's share of blocks.",
    )
    .or("0.8")
    .only(Effect::Pareto),
    key(
        KeyId::NormalDeviation,
        "normal_deviation",
        Place::Workload,
        Kind::Decimal(1, 1000),
        "With the pattern `normal`: standard deviation around the middle, as a share of the range.",
    )
    .or("0.1")
    .only(Effect::Normal),
    key(
        KeyId::Duration,
        "duration",
        Place::Workload,
        time(1_000_000, YEAR_NS),
        "Length of the measured phase. Without it each thread does its share once.",
    )
    .otherwise("by size"),
    key(
        KeyId::Ramp,
        "ramp",
        Place::Workload,
        time(0, YEAR_NS),
        "Warm-up before the measured phase, in no figure; whole intervals; only with `duration`.",
    )
    .or("0 s")
    .only(Effect::ByDuration),
    key(
        KeyId::Interval,
        "interval",
        Place::Workload,
        time(INTERVAL_NS_MIN, HOUR_NS),
        "Length of one slice of the recorded series.",
    )
    .or("1 s"),
    key(
        KeyId::Loop,
        "loop",
        Place::Workload,
        Kind::Flag,
        "With `duration`: a thread at the end of its range begins it again; else it ends there.",
    )
    .or("true")
    .only(Effect::Repeats),
    key(
        KeyId::Direct,
        "direct",
        Place::Workload,
        Kind::Flag,
        "Bypass the client's page cache (O_DIRECT).",
    )
    .otherwise("true; false with the engines `mmap` and `null`, and on names")
    .only(Effect::Data),
    key(
        KeyId::Engine,
        "engine",
        Place::Workload,
        Kind::Choice(&["sync", "io_uring", "libaio", "mmap", "null"]),
        "Mechanism: pread and pwrite; io_uring or libaio with `depth` operations in flight per \
         thread; loads and stores in a mapping; nothing at all, which shows what the generator \
         costs.",
    )
    .or("sync"),
    key(
        KeyId::Depth,
        "depth",
        Place::Workload,
        Kind::Count(1, 4096),
        "Operations in flight per thread, with the engines `io_uring` and `libaio`.",
    )
    .otherwise("32")
    .only(Effect::Queue),
    key(
        KeyId::Sqpoll,
        "sqpoll",
        Place::Workload,
        Kind::Flag,
        "With `io_uring`: a kernel thread takes submissions.",
    )
    .or("false")
    .only(Effect::IoUring),
    key(
        KeyId::Iopoll,
        "iopoll",
        Place::Workload,
        Kind::Flag,
        "With `io_uring`: completions are polled for; needs direct I/O.",
    )
    .or("false")
    .only(Effect::IoUring),
    key(
        KeyId::HighPriority,
        "high_priority",
        Place::Workload,
        Kind::Flag,
        "With `sync`: RWF_HIPRI with each call; needs direct I/O.",
    )
    .or("false")
    .only(Effect::SyncData),
    key(
        KeyId::Rate,
        "rate",
        Place::Workload,
        Kind::Offered,
        "Operations arrive at this rate whatever happened to those before; bytes count as \
         operations of the mean block.",
    )
    .otherwise("each thread goes on as soon as it can"),
    key(
        KeyId::RatePer,
        "rate_per",
        Place::Workload,
        Kind::Choice(&["fleet", "node", "thread"]),
        "What `rate` is of: all nodes together, each node that has threads, each thread.",
    )
    .or("fleet")
    .only(Effect::Rate),
    key(
        KeyId::Arrivals,
        "arrivals",
        Place::Workload,
        Kind::Choice(&["even", "exponential"]),
        "Gaps between arrivals: all the same over the fleet, or drawn from an exponential \
         distribution.",
    )
    .or("even")
    .only(Effect::Rate),
    key(
        KeyId::Think,
        "think",
        Place::Workload,
        time(0, HOUR_NS),
        "Pause of a thread after each burst of operations.",
    )
    .or("0 s"),
    key(
        KeyId::Burst,
        "burst",
        Place::Workload,
        Kind::Count(1, 1_000_000),
        "Operations between two pauses.",
    )
    .or("1")
    .only(Effect::Think),
    key(
        KeyId::Content,
        "content",
        Place::Workload,
        Kind::Choice(&["random", "zero"]),
        "What is written.",
    )
    .or("random")
    .only(Effect::Writes),
    key(
        KeyId::Compress,
        "compress",
        Place::Workload,
        Kind::Decimal(1000, 1_000_000),
        "Size of written data over its size compressed; 1 can't be compressed.",
    )
    .or("1")
    .only(Effect::RandomContent),
    key(
        KeyId::Dedupe,
        "dedupe",
        Place::Workload,
        Kind::Decimal(1000, 1_000_000),
        "Units of 4 KiB that are written over those of them that differ; with 1 all differ.",
    )
    .or("1")
    .only(Effect::RandomContent),
    key(
        KeyId::Refresh,
        "refresh",
        Place::Workload,
        Kind::Flag,
        "Each write has new bytes; else each thread writes the same block again and again.",
    )
    .or("true")
    .only(Effect::RandomContent),
    key(
        KeyId::Verify,
        "verify",
        Place::Workload,
        Kind::Choice(&["off", "all", "no-stale"]),
        "Written units of 4 KiB carry their place, and what is read is compared: `all` finds torn, \
         stale, misdirected, corrupted and missing data; `no-stale` all but stale data, for where \
         blocks may have been written more than once.",
    )
    .or("off")
    .only(Effect::Data),
    key(
        KeyId::Fsync,
        "fsync",
        Place::Workload,
        Kind::Choice(&["end", "none", "each"]),
        "When a writing thread calls fsync: after its last operation, never, after each.",
    )
    .or("end")
    .only(Effect::Writes),
    key(
        KeyId::Dsync,
        "dsync",
        Place::Workload,
        Kind::Flag,
        "Each write returns when it is on stable storage (O_DSYNC).",
    )
    .or("false")
    .only(Effect::Writes),
    key(
        KeyId::Append,
        "append",
        Place::Workload,
        Kind::Flag,
        "Writes go to the file's end (O_APPEND).",
    )
    .or("false")
    .only(Effect::Writes),
    key(
        KeyId::Preallocate,
        "preallocate",
        Place::Workload,
        Kind::Flag,
        "Space of fresh files is allocated before the start (fallocate).",
    )
    .or("false")
    .only(Effect::Writes),
    key(
        KeyId::Truncate,
        "truncate",
        Place::Workload,
        Kind::Flag,
        "With fresh = false: files are truncated to nothing before the start, in place of being \
         rewritten.",
    )
    .or("false")
    .only(Effect::Writes),
    key(
        KeyId::Lock,
        "lock",
        Place::Workload,
        Kind::Flag,
        "With `sync`: each operation holds a lock of its file (flock).",
    )
    .or("false")
    .only(Effect::SyncData),
    key(
        KeyId::Advice,
        "advice",
        Place::Workload,
        Kind::Choice(&["none", "sequential", "random", "willneed", "dontneed"]),
        "What the kernel is told of coming accesses (posix_fadvise, or madvise with `mmap`).",
    )
    .or("none")
    .only(Effect::Data),
    key(
        KeyId::Cores,
        "cores",
        Place::Workload,
        Kind::Numbers,
        "Cores that each worker's I/O threads are bound to, in turn.",
    )
    .otherwise("the kernel's choice"),
    key(
        KeyId::NumaNodes,
        "numa_nodes",
        Place::Workload,
        Kind::Numbers,
        "NUMA nodes that I/O threads (where `cores` says nothing) and buffers are bound to, in \
         turn.",
    )
    .otherwise("the kernel's choice"),
    key(KeyId::HugePages, "huge_pages", Place::Workload, Kind::Flag, "Buffers lie in huge pages.")
        .or("false")
        .only(Effect::Data),
    key(
        KeyId::Fresh,
        "fresh",
        Place::Workload,
        Kind::Flag,
        "Write to fresh files; `false` rewrites what an earlier stage of the same pass wrote.",
    )
    .or("true")
    .only(Effect::Makes),
    key(
        KeyId::Cold,
        "cold",
        Place::Workload,
        Kind::Flag,
        "Read by other nodes than wrote, after their caches were dropped; marked where the wire does \
         not prove it.",
    )
    .or("false")
    .only(Effect::Reads),
    key(KeyId::Seed, "seed", Place::Workload, Kind::Integer, "Seed of data and of random offsets.")
        .or("1"),
    key(
        KeyId::OnFault,
        "on_fault",
        Place::Workload,
        Kind::Choice(&["continue", "abort"]),
        "When a worker is lost: later points run without it, or the campaign ends.",
    )
    .or("continue"),
    key(
        KeyId::StuckAfter,
        "stuck_after",
        Place::Workload,
        time(SECOND_NS, YEAR_NS),
        "Age of an operation after which its thread is given up.",
    )
    .or("60 s"),
];
