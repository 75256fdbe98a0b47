//! The results store: one SQLite file with every campaign. `docs/results.md` describes its tables.
//!
//! A point is stored as it ends, in one transaction, so that what was measured outlives whatever
//! happens next. Documents are the record's own JSON; what stands in columns beside them is there
//! to be asked for in SQL.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use etcetera::BaseStrategy;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::record::{CampaignRecord, Histogram, PointRecord};

pub use blob::BlobError;
pub use id::campaign_id;

mod blob;
mod id;
mod rows;
mod tables;

/// How long another process may hold the store before we give up.
const BUSY: Duration = Duration::from_secs(10);
/// How many campaigns an ambiguous prefix lists.
const CANDIDATES: usize = 10;

/// Why the store can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no place for it.
    #[error("no default place for the results store: {0}; give one with --store FILE")]
    NoHome(#[source] etcetera::HomeDirError),
    /// Its folder can't be made.
    #[error("can't make the folder of the results store {}: {source}", path.display())]
    Folder {
        /// The store.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its folder is not there.
    #[error("can't open the results store {}: its folder does not exist", path.display())]
    NoFolder {
        /// The store.
        path: PathBuf,
    },
    /// A newer iofleet made it.
    #[error(
        "the results store {} has version {found}, made by a newer iofleet; this one knows up to \
         {known}: use the newer one, or another file with --store", path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest known here.
        known: i64,
    },
    /// Another process writes to it, for longer than we wait.
    #[error(
        "the results store {} is locked by another process: try again when that has ended, or \
         name another one with --store", path.display()
    )]
    Locked {
        /// The store.
        path: PathBuf,
    },
    /// SQLite can't do something.
    #[error("can't {what} the results store {}: {source}", path.display())]
    Sql {
        /// The store.
        path: PathBuf,
        /// Doing what: `open`, `read`, `write to`.
        what: &'static str,
        /// Why.
        source: rusqlite::Error,
    },
    /// What is stored is no record of a version known here.
    #[error("campaign {id} in the results store {} can't be read: {source}", path.display())]
    Document {
        /// The store.
        path: PathBuf,
        /// Campaign.
        id: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A stored histogram is broken.
    #[error("campaign {id} in the results store {} can't be read: {source}", path.display())]
    Blob {
        /// The store.
        path: PathBuf,
        /// Campaign.
        id: String,
        /// Why.
        source: BlobError,
    },
    /// No campaign at all.
    #[error("the results store {} holds no campaign yet; `iofleet run` makes one", path.display())]
    Empty {
        /// The store.
        path: PathBuf,
    },
    /// No such campaign.
    #[error(
        "no campaign {id:?} in the results store {}; `iofleet list` shows all of them",
        path.display()
    )]
    Unknown {
        /// The store.
        path: PathBuf,
        /// What was asked for.
        id: String,
    },
    /// More than one.
    #[error("{id:?} could be each of {}; give more of its id", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// What it could be, newest first; the last says how many more there are.
        candidates: Vec<String>,
    },
}

/// A campaign in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignLine {
    /// Its id.
    pub id: String,
    /// RFC 3339.
    pub started: String,
    /// Name of the scenario.
    pub name: String,
    /// As in JSON: `running`, `complete`, `partial`, `interrupted`.
    pub status: String,
    /// Points stored.
    pub points: u64,
    /// Greatest headline of its points that are `ok` or `partial`, bytes per second.
    pub best: Option<f64>,
}

/// An open results store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// `$XDG_DATA_HOME/iofleet/campaigns.sqlite`.
    ///
    /// # Errors
    /// Without a home directory.
    pub fn default_path() -> Result<PathBuf, StoreError> {
        let base = etcetera::choose_base_strategy().map_err(StoreError::NoHome)?;
        Ok(base.data_dir().join("iofleet").join("campaigns.sqlite"))
    }

    /// Opens the store to write, and makes it if it isn't there; a missing folder is made for
    /// [`Store::default_path`] only. Something is written, so that a store that can't be is found
    /// before any I/O.
    ///
    /// # Errors
    /// When it can't be made, opened or written, is no results store, or a newer iofleet made it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let default = Self::default_path().is_ok_and(|default| default == path);
        Self::open_in(path, default)
    }

    fn open_in(path: &Path, make_folder: bool) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        let folder = path.parent().unwrap_or(&path);
        if make_folder {
            fs::create_dir_all(folder)
                .map_err(|source| StoreError::Folder { path: path.clone(), source })?;
        } else if !folder.exists() {
            return Err(StoreError::NoFolder { path });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut store = Self::connect(path, flags)?;
        let version = store.version()?;
        if version > tables::VERSION {
            return Err(StoreError::Newer {
                path: store.path,
                found: version,
                known: tables::VERSION,
            });
        }
        tables::prepare(&mut store.connection, &store.path)
            .map_err(|source| store.failed("write to", source))?;
        Ok(store)
    }

    /// Opens a store to read only. `None` where there is none; nothing is made or changed.
    ///
    /// # Errors
    /// When it can't be read, is no results store, or a newer iofleet made it.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        let path = absolute(path)?;
        if !path.exists() {
            return Ok(None);
        }
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        match store.version()? {
            // An empty file: made, and never written to.
            0 => Ok(None),
            version if version > tables::VERSION => {
                Err(StoreError::Newer { path: store.path, found: version, known: tables::VERSION })
            }
            _ => Ok(Some(store)),
        }
    }

    fn connect(path: PathBuf, flags: OpenFlags) -> Result<Self, StoreError> {
        let opened = Connection::open_with_flags(&path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .and_then(|connection| {
                connection.busy_timeout(BUSY)?;
                connection.pragma_update(None, "foreign_keys", true)?;
                Ok(connection)
            });
        match opened {
            Ok(connection) => Ok(Self { connection, path }),
            Err(source) => Err(StoreError::Sql { path, what: "open", source }),
        }
    }

    fn version(&self) -> Result<i64, StoreError> {
        tables::version(&self.connection).map_err(|source| self.failed("read", source))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a new campaign, without its points.
    ///
    /// # Errors
    /// When its id is there already, or nothing can be written.
    pub fn begin(&mut self, record: &CampaignRecord) -> Result<(), StoreError> {
        self.write(|transaction| rows::insert_campaign(transaction, record))
    }

    /// Stores a point of a stored campaign as it ended, with its intervals and its histograms, all or
    /// nothing. A point of the same index is replaced: a partial one may be
    /// completed.
    ///
    /// # Errors
    /// When the campaign is not there, or nothing can be written.
    pub fn add_point(
        &mut self,
        campaign_id: &str,
        point: &PointRecord,
        histograms: &[Histogram],
    ) -> Result<(), StoreError> {
        let known = self.write(|transaction| {
            let known = rows::has_campaign(transaction, campaign_id)?;
            if known {
                rows::put_point(transaction, campaign_id, point)?;
                rows::put_histograms(transaction, campaign_id, point.index, histograms)?;
            }
            Ok(known)
        })?;
        if known { Ok(()) } else { Err(self.unknown(campaign_id)) }
    }

    /// Stores how a campaign ended: all of its record, and what the documents of its points say now
    /// (a verdict is final only then).
    ///
    /// # Errors
    /// When it is not there, or nothing can be written.
    pub fn finish(&mut self, record: &CampaignRecord) -> Result<(), StoreError> {
        let changed = self.write(|transaction| {
            for point in &record.points {
                rows::update_document(transaction, &record.campaign.id, point)?;
            }
            rows::update_campaign(transaction, record)
        })?;
        if changed { Ok(()) } else { Err(self.unknown(&record.campaign.id)) }
    }

    /// A campaign with all of its points, equal to what was stored. `id` is its id, a beginning of
    /// it that no other has, or `last`.
    ///
    /// # Errors
    /// When there is none or more than one, or it can't be read.
    pub fn load(&self, id: &str) -> Result<CampaignRecord, StoreError> {
        let transaction = self.reading()?;
        let id = self.resolve(&transaction, id)?;
        let texts = rows::texts(&transaction, &id).map_err(|source| self.failed("read", source))?;
        texts.parse().map_err(|source| StoreError::Document { path: self.path.clone(), id, source })
    }

    /// All campaigns, newest first.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn list(&self) -> Result<Vec<CampaignLine>, StoreError> {
        rows::list(&self.connection).map_err(|source| self.failed("read", source))
    }

    /// The histograms of a point: of all kinds of operation first; none where none were stored. `id`
    /// as for [`Store::load`].
    ///
    /// # Errors
    /// When there is no such campaign, or a histogram can't be read.
    pub fn histograms(&self, id: &str, point: u32) -> Result<Vec<Histogram>, StoreError> {
        let transaction = self.reading()?;
        let id = self.resolve(&transaction, id)?;
        let rows = rows::histograms(&transaction, &id, point)
            .map_err(|source| self.failed("read", source))?;
        let decoded = rows.into_iter().map(|(op, kind, bytes)| {
            let latency = blob::decode(&bytes)?;
            Ok(Histogram { op, kind, latency })
        });
        decoded.collect::<Result<_, BlobError>>().map_err(|source| StoreError::Blob {
            path: self.path.clone(),
            id,
            source,
        })
    }

    fn write<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        // Immediate: a deferred transaction that finds another writer would fail at once.
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| {
                let value = change(&transaction)?;
                transaction.commit()?;
                Ok(value)
            })
            .map_err(|source| self.failed("write to", source))
    }

    /// One view of the store over several questions.
    fn reading(&self) -> Result<Transaction<'_>, StoreError> {
        self.connection.unchecked_transaction().map_err(|source| self.failed("read", source))
    }

    fn resolve(&self, transaction: &Transaction<'_>, id: &str) -> Result<String, StoreError> {
        let ids =
            if id == "last" { rows::newest(transaction) } else { rows::ids_like(transaction, id) };
        let mut ids = ids.map_err(|source| self.failed("read", source))?;
        match ids.len() {
            0 if id == "last" => Err(StoreError::Empty { path: self.path.clone() }),
            0 => Err(self.unknown(id)),
            1 => Ok(ids.remove(0)),
            len => {
                ids.truncate(CANDIDATES);
                if len > CANDIDATES {
                    ids.push(format!("{} more", len - CANDIDATES));
                }
                Err(StoreError::Ambiguous { id: id.to_owned(), candidates: ids })
            }
        }
    }

    fn unknown(&self, id: &str) -> StoreError {
        StoreError::Unknown { path: self.path.clone(), id: id.to_owned() }
    }

    fn failed(&self, what: &'static str, source: rusqlite::Error) -> StoreError {
        if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) {
            return StoreError::Locked { path: self.path.clone() };
        }
        StoreError::Sql { path: self.path.clone(), what, source }
    }
}

/// SQLite gives names like `:memory:` and the empty one a meaning of their own; absolute ones have
/// none.
fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|source| StoreError::Folder { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
