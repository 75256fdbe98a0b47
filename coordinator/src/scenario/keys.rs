//! The one table of keys. Scenario files, flags, help, the schema and the docs page all come from
//! it; a key that is not in it does not exist.

use std::sync::LazyLock;

use iofleet_shared::units::{Size, Time};

pub use super::effect::Effect;
pub use table::KEYS;

use super::value::milli;

mod fleet;
mod table;

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the table below says what each means")]
pub enum KeyId {
    Name,
    Question,
    Notes,
    Require,
    Thresholds,
    Workers,
    NetworkLimit,
    LinkSpeed,
    StorageLimit,
    ExpectedWire,
    Interfaces,
    Observers,
    Path,
    Keep,
    MinFree,
    AllowHoles,
    TargetFiles,
    TargetDevices,
    DestroysData,
    Repeat,
    Op,
    StageName,
    Mix,
    MixBy,
    Threads,
    ThreadsPerNode,
    Nodes,
    Layout,
    Dirs,
    Files,
    DirSharing,
    FileSize,
    Block,
    Pattern,
    Step,
    ZipfTheta,
    ParetoH,
    NormalDeviation,
    Duration,
    Ramp,
    Interval,
    Loop,
    Direct,
    Engine,
    Depth,
    Sqpoll,
    Iopoll,
    HighPriority,
    Rate,
    RatePer,
    Arrivals,
    Think,
    Burst,
    Content,
    Compress,
    Dedupe,
    Refresh,
    Verify,
    Fsync,
    Dsync,
    Append,
    Preallocate,
    Truncate,
    Lock,
    Advice,
    Cores,
    NumaNodes,
    HugePages,
    Fresh,
    Cold,
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
    /// A decimal number within bounds, which are in 1/1000.
    Decimal(u32, u32),
    /// A number of bytes within bounds, with a unit; or several with their weights.
    Sizes(Size, Size),
    /// A length of time within bounds, with a unit.
    Time(Time, Time),
    /// A rate, with a unit.
    Rate,
    /// A rate of operations or bytes, with a unit.
    Offered,
    /// `true` or `false`.
    Flag,
    /// Kinds of operation with their weights.
    Mix,
    /// Numbers and ranges of numbers.
    Numbers,
    /// Absolute paths.
    Paths,
    /// A rate, and others for some nodes.
    Speeds,
    /// A share, with `%`.
    Percent,
    /// What a result has to reach.
    Requirements,
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

    /// The values that a text of the command line has: one, or several by commas; by semicolons
    /// where a value has commas itself.
    pub(super) fn pieces<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let weighted = |text: &str| {
            let last = text.split(',').next().and_then(|first| first.split_whitespace().last());
            last.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let semicolons = match self.kind {
            Kind::Mix | Kind::Numbers | Kind::Paths | Kind::Requirements | Kind::Speeds => true,
            Kind::Sizes(..) => text.contains(';') || weighted(text),
            Kind::Count(..)
            | Kind::Integer
            | Kind::Decimal(..)
            | Kind::Time(..)
            | Kind::Rate
            | Kind::Offered
            | Kind::Percent
            | Kind::Flag
            | Kind::Choice(_)
            | Kind::StageName
            | Kind::Text
            | Kind::Path
            | Kind::Hosts => false,
        };
        text.split(if semicolons { ';' } else { ',' }).collect()
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
            Kind::Decimal(least, most) => {
                format!("a decimal number from {} to {}", milli(least), milli(most))
            }
            Kind::Sizes(least, most) => {
                format!("a size from {least} to {most}, or a mix as in `4 KiB 70, 64 KiB 30`")
            }
            Kind::Time(least, most) => format!("a time from {least} to {most}"),
            Kind::Rate => "a rate above 0, as in `100 Gbit/s`".to_owned(),
            Kind::Offered => "a rate above 0, as in `5000 op/s` or `200 MB/s`".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Mix => "kinds with weights, as in `read 70, write 30`".to_owned(),
            Kind::Numbers => "numbers from 0 to 65535 and ranges, as in `0-3,8`".to_owned(),
            Kind::Paths => "absolute paths".to_owned(),
            Kind::Speeds => {
                "a rate, with others for some nodes as in `100 Gbit/s, client03 25 Gbit/s`"
                    .to_owned()
            }
            Kind::Percent => "a share from 0 % to 100 %, in tenths of it".to_owned(),
            Kind::Requirements => "demands, as in `read.common >= 45 GB/s`".to_owned(),
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
    let spell = |key: &Key| {
        // The workload has a key of the same name.
        let name = if key.id == KeyId::TargetFiles { "target_files" } else { key.name };
        (name.replace('_', "-"), format!("IOFLEET_{}", name.to_uppercase()))
    };
    KEYS.iter().map(spell).collect()
});

/// Directories, and files of a directory: names have so many digits.
const TREE_MAX: u32 = 1_000_000;
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

const fn sizes(least: u64, most: u64) -> Kind {
    Kind::Sizes(Size::from_bytes(least), Size::from_bytes(most))
}

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
