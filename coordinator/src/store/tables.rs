//! The store's tables, how old stores become new ones, and how SQLite keeps its journal.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

/// What takes a store from version n to n + 1, by n. A step that was published never changes.
const MIGRATIONS: [&str; 2] = [FIRST, BY_OP];

/// The first tables.
pub(super) const FIRST: &str = "
CREATE TABLE campaigns (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    scenario_id TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT,
    status TEXT NOT NULL,
    version TEXT NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE TABLE points (
    ran INTEGER PRIMARY KEY,
    campaign TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    idx INTEGER NOT NULL,
    stage TEXT NOT NULL,
    op TEXT NOT NULL,
    threads INTEGER NOT NULL,
    nodes INTEGER NOT NULL,
    repeat INTEGER NOT NULL,
    status TEXT NOT NULL,
    headline REAL,
    document TEXT NOT NULL,
    UNIQUE (campaign, idx)
) STRICT;
CREATE TABLE intervals (
    campaign TEXT NOT NULL,
    point INTEGER NOT NULL,
    k INTEGER NOT NULL,
    start_s REAL NOT NULL,
    seconds REAL NOT NULL,
    phase TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    ops INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    latency TEXT,
    PRIMARY KEY (campaign, point, k),
    FOREIGN KEY (campaign, point) REFERENCES points (campaign, idx) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE TABLE histograms (
    campaign TEXT NOT NULL,
    point INTEGER NOT NULL,
    blob BLOB NOT NULL,
    PRIMARY KEY (campaign, point),
    FOREIGN KEY (campaign, point) REFERENCES points (campaign, idx) ON DELETE CASCADE
) STRICT;
";

/// Intervals and histograms by kind of operation, beside those of all.
const BY_OP: &str = "
ALTER TABLE intervals RENAME TO old_intervals;
CREATE TABLE intervals (
    campaign TEXT NOT NULL,
    point INTEGER NOT NULL,
    k INTEGER NOT NULL,
    op TEXT NOT NULL,
    start_s REAL NOT NULL,
    seconds REAL NOT NULL,
    phase TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    ops INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    latency TEXT,
    response TEXT,
    PRIMARY KEY (campaign, point, k, op),
    FOREIGN KEY (campaign, point) REFERENCES points (campaign, idx) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO intervals
    SELECT campaign, point, k, 'all', start_s, seconds, phase, bytes, ops, errors, latency, NULL
    FROM old_intervals;
DROP TABLE old_intervals;
ALTER TABLE histograms RENAME TO old_histograms;
CREATE TABLE histograms (
    campaign TEXT NOT NULL,
    point INTEGER NOT NULL,
    op TEXT NOT NULL,
    kind TEXT NOT NULL,
    blob BLOB NOT NULL,
    PRIMARY KEY (campaign, point, op, kind),
    FOREIGN KEY (campaign, point) REFERENCES points (campaign, idx) ON DELETE CASCADE
) STRICT;
INSERT INTO histograms SELECT campaign, point, 'all', 'service', blob FROM old_histograms;
DROP TABLE old_histograms;
";

/// Version of a store that is made here.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// Version of a store; 0 before its first table.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Whether intervals and histograms are by kind of operation: not so in an older store that is only
/// read.
pub(super) fn has_kinds(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? >= 2)
}

/// Chooses the journal, takes the store to [`VERSION`], and writes in any case.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> rusqlite::Result<()> {
    // The shared memory of a write-ahead log is coherent on one machine only.
    let journal = if is_local(path) { "WAL" } else { "DELETE" };
    connection.pragma_update_and_check(None, "journal_mode", journal, |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read within the transaction: another process may just have done it.
    let from = usize::try_from(version(&transaction)?).unwrap_or(0);
    for step in MIGRATIONS.iter().skip(from) {
        transaction.execute_batch(step)?;
    }
    // Written even if it stays the same: that is the try.
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Whether a path is on a file system that only this machine writes to. One that is not known here
/// counts as shared.
pub(super) fn is_local(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|stat| is_local_type(i128::from(stat.f_type)))
}

fn is_local_type(f_type: i128) -> bool {
    const EXT: i128 = 0xef53;
    const XFS: i128 = 0x5846_5342;
    const BTRFS: i128 = 0x9123_683e;
    const TMPFS: i128 = 0x0102_1994;
    const OVERLAY: i128 = 0x794c_7630;
    const ZFS: i128 = 0x2fc1_2fc1;
    // Some machines extend the sign of a 32-bit number.
    matches!(f_type & 0xffff_ffff, EXT | XFS | BTRFS | TMPFS | OVERLAY | ZFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_local_file_systems_are_local() {
        assert!(is_local_type(0xef53));
        assert!(is_local_type(0x9123_683e - (1 << 32)), "btrfs, sign-extended");
        assert!(!is_local_type(0x6969), "nfs");
        assert!(!is_local_type(0x0bd0_0bd0), "lustre");
        assert!(!is_local_type(0x1983_0326), "beegfs");
        assert!(!is_local(Path::new("/proc/self")));
    }
}
