//! The one table of keys. Scenario files, flags, help, the schema and the docs page all come from
//! it; a key that is not in it does not exist.

use std::sync::LazyLock;

use iofleet_shared::{
    limits::{BLOCK_BYTES_MAX, INTERVAL_NS_MIN, THREADS_MAX},
    units::{Size, Time},
};

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the table below says what each means")]
pub enum KeyId {
    Name,
    Question,
    Notes,
    Workers,
    NetworkLimit,
    LinkSpeed,
    Path,
    Keep,
    Repeat,
    Op,
    StageName,
    Threads,
    ThreadsPerNode,
    Layout,
    FileSize,
    Block,
    Pattern,
    Duration,
    Ramp,
    Interval,
    Loop,
    Direct,
    Engine,
    Fsync,
    Fresh,
    Seed,
    OnFault,
    StuckAfter,
}

/// Where in a file a key may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before any section.
    Top,
    /// `[fleet]`.
    Fleet,
    /// `[target]`.
    Target,
    /// `[sweep]`, not as a list.
    Sweep,
    /// `[[stage]]` only.
    Stage,
    /// `[workload]`, a `[[stage]]`, or a list of values in `[sweep]`.
    Workload,
}

/// What values a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number within bounds.
    Count(u32, u32),
    /// A whole number from 0 up.
    Integer,
    /// A number of bytes within bounds, with a unit.
    Size(Size, Size),
    /// A length of time within bounds, with a unit.
    Time(Time, Time),
    /// A rate, with a unit.
    Rate,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The name of a stage.
    StageName,
    /// Free text.
    Text,
    /// An absolute path.
    Path,
    /// A host list.
    Hosts,
}

/// In which points a key changes anything. Set where it changes none, it is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// In all.
    Always,
    /// In those with a duration.
    ByDuration,
    /// In those that write.
    Writes,
}

/// A key.
#[derive(Debug)]
pub struct Key {
    /// Which.
    pub id: KeyId,
    /// As in a file.
    pub name: &'static str,
    /// Where it may stand.
    pub place: Place,
    /// What values it takes.
    pub kind: Kind,
    /// Its value when nobody says anything, as in a file.
    pub default: Option<&'static str>,
    /// What stands in for a default, for people.
    pub otherwise: &'static str,
    /// Whether the command line has a flag of its name.
    pub flag: bool,
    /// Where it changes anything.
    pub effect: Effect,
    /// A sentence about it.
    pub help: &'static str,
}

impl Key {
    /// The key of an id.
    #[must_use]
    pub fn of(id: KeyId) -> &'static Self {
        // The order of ids is the order of the table; a test keeps it so.
        &KEYS[id as usize]
    }

    /// Its flag, without the dashes: `file-size`.
    #[must_use]
    pub fn flag_name(&self) -> &'static str {
        &SPELLINGS[self.id as usize].0
    }

    /// Its variable of the environment: `IOFLEET_FILE_SIZE`.
    #[must_use]
    pub fn variable(&self) -> &'static str {
        &SPELLINGS[self.id as usize].1
    }

    /// Its place and name: `workload.file_size`.
    #[must_use]
    pub fn path(&self) -> String {
        match self.place.section() {
            None => self.name.to_owned(),
            Some(section) => format!("{section}.{}", self.name),
        }
    }

    /// Legal values, for people.
    #[must_use]
    pub fn legal(&self) -> String {
        match self.kind {
            Kind::Count(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Integer => "a whole number from 0 up".to_owned(),
            Kind::Size(least, most) => format!("a size from {least} to {most}"),
            Kind::Time(least, most) => format!("a time from {least} to {most}"),
            Kind::Rate => "a rate above 0, as in `100 Gbit/s`".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Choice(words) => words.join(", "),
            Kind::StageName => "letters, digits, `-` and `_`, at most 64; unique".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Path => "an absolute path; `{node}` and `{role}` expand".to_owned(),
            Kind::Hosts => "a host list, as in `client[01-04]`".to_owned(),
        }
    }
}

impl Place {
    /// Name of the section in a file.
    #[must_use]
    pub fn section(self) -> Option<&'static str> {
        match self {
            Self::Top => None,
            Self::Fleet => Some("fleet"),
            Self::Target => Some("target"),
            Self::Sweep => Some("sweep"),
            Self::Stage => Some("stage"),
            Self::Workload => Some("workload"),
        }
    }
}

/// The key of a name that may stand in a place.
#[must_use]
pub(super) fn find(name: &str, places: &[Place]) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name && places.contains(&key.place))
}

/// The workload keys.
pub(super) fn workload() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.place == Place::Workload)
}

/// Of the names given, the one that a misspelt name may have meant.
#[must_use]
pub(super) fn nearest<'a>(name: &str, legal: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let wanted = plain(name);
    legal
        .map(|candidate| (distance(&wanted, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3).min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance: insertions, deletions and substitutions.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

/// Flag and variable of each key.
static SPELLINGS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let spell =
        |key: &Key| (key.name.replace('_', "-"), format!("IOFLEET_{}", key.name.to_uppercase()));
    KEYS.iter().map(spell).collect()
});

/// Offsets in files are signed.
const FILE_MAX: u64 = (1 << 63) - (1 << 40);
const SECOND_NS: u64 = 1_000_000_000;
const HOUR_NS: u64 = 3600 * SECOND_NS;
const YEAR_NS: u64 = 8760 * HOUR_NS;

const fn key(id: KeyId, name: &'static str, place: Place, kind: Kind, help: &'static str) -> Key {
    Key {
        id,
        name,
        place,
        kind,
        default: None,
        otherwise: "none",
        flag: matches!(place, Place::Workload),
        effect: Effect::Always,
        help,
    }
}

impl Key {
    const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    const fn otherwise(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    const fn flagged(self) -> Self {
        Self { flag: true, ..self }
    }

    const fn only(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }
}

const fn time(least_ns: u64, most_ns: u64) -> Kind {
    Kind::Time(Time::from_ns(least_ns), Time::from_ns(most_ns))
}

const fn size(most: u64) -> Kind {
    Kind::Size(Size::from_bytes(1), Size::from_bytes(most))
}

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
        KeyId::Workers,
        "workers",
        Place::Fleet,
        Kind::Hosts,
        "The nodes, in the order in which threads are dealt to them.",
    )
    .otherwise("`--workers` or `--local`"),
    key(
        KeyId::NetworkLimit,
        "network_limit",
        Place::Fleet,
        Kind::Rate,
        "What the network between clients and storage carries in one direction.",
    )
    .flagged(),
    key(
        KeyId::LinkSpeed,
        "link_speed",
        Place::Fleet,
        Kind::Rate,
        "Speed of each client's link in each direction; times the nodes it bounds the fleet.",
    )
    .flagged(),
    key(
        KeyId::Path,
        "path",
        Place::Target,
        Kind::Path,
        "Directory on the file system under test; its last component is made, its parent must be \
         there.",
    )
    .otherwise("needed, but for a fresh directory with `--local`")
    .flagged(),
    key(KeyId::Keep, "keep", Place::Target, Kind::Flag, "Leave the files when the campaign ends.")
        .or("false")
        .flagged(),
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
        Kind::Choice(&["write", "read"]),
        "What the stage's operations do.",
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
        KeyId::Layout,
        "layout",
        Place::Workload,
        Kind::Choice(&["file-per-thread", "shared-file"]),
        "A file for each thread, or one file of which each thread has a contiguous range of whole \
         blocks.",
    )
    .or("file-per-thread"),
    key(
        KeyId::FileSize,
        "file_size",
        Place::Workload,
        size(FILE_MAX),
        "Size of each thread's file, or of the whole shared file; a multiple of `block`.",
    )
    .otherwise("needed"),
    key(KeyId::Block, "block", Place::Workload, size(BLOCK_BYTES_MAX), "Bytes of one operation.")
        .or("1 MiB"),
    key(
        KeyId::Pattern,
        "pattern",
        Place::Workload,
        Kind::Choice(&["sequential", "random", "random-once"]),
        "Order of blocks: ascending; drawn with repetition; each once, shuffled.",
    )
    .or("sequential"),
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
    .only(Effect::ByDuration),
    key(
        KeyId::Direct,
        "direct",
        Place::Workload,
        Kind::Flag,
        "Bypass the client's page cache (O_DIRECT).",
    )
    .or("true"),
    key(
        KeyId::Engine,
        "engine",
        Place::Workload,
        Kind::Choice(&["sync"]),
        "Mechanism: `sync` is pread and pwrite, one operation in flight per thread.",
    )
    .or("sync"),
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
        KeyId::Fresh,
        "fresh",
        Place::Workload,
        Kind::Flag,
        "Write to fresh files; `false` rewrites what an earlier stage of the same pass wrote.",
    )
    .or("true")
    .only(Effect::Writes),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_places_in_the_table() {
        for (place, key) in KEYS.iter().enumerate() {
            assert_eq!(key.id as usize, place, "{}", key.name);
            assert_eq!(Key::of(key.id).name, key.name);
        }
    }

    #[test]
    fn names_are_unique_where_they_may_stand() {
        for (place, key) in KEYS.iter().enumerate() {
            let twin = KEYS[..place].iter().find(|other| {
                other.name == key.name && other.place.section() == key.place.section()
            });
            assert!(twin.is_none(), "{}", key.name);
        }
        let mut flags: Vec<_> = KEYS.iter().filter(|key| key.flag).map(Key::flag_name).collect();
        let count = flags.len();
        flags.sort();
        flags.dedup();
        assert_eq!(flags.len(), count);
    }

    #[test]
    fn misspelt_names_find_their_key() {
        let find = |name| nearest(name, workload().map(|key| key.name));
        assert_eq!(find("thread"), Some("threads"));
        assert_eq!(find("file-size"), Some("file_size"));
        assert_eq!(find("filesize"), Some("file_size"));
        assert_eq!(find("blocks"), Some("block"));
        assert_eq!(find("Direct"), Some("direct"));
        assert_eq!(find("queue_depth"), None);
    }

    #[test]
    fn edit_distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
