//! The iofleet coordinator: schedules the points of a scenario over a fleet of workers, gathers
//! their streams, and computes the figures.
//!
//! Modules from the top floor down; each uses only what stands below it:
//! `cli` (one file a command) · `campaign` (conducts the points: select and effects), `live` ·
//! `netbench` · `observers` (storage hosts that are watched) · `asking` (each worker something, outside of a campaign) · `peer` (thin QUIC task) · `store`, `json`, `report` · `conductor` (pure: event in, effects out),
//! `plan`, `aggregate`, `verdict`, `check` · `events` (what happens in a run, as values), `record` (the immutable record
//! of a point) · `scenario`, `figures` (every formula, pure), `barrier` (offsets and the start
//! instant), `local`, `keys` · `exit`.

pub mod aggregate;
pub mod asking;
pub mod barrier;
pub mod campaign;
pub mod check;
pub mod cli;
pub mod conductor;
pub mod events;
pub mod exit;
pub mod figures;
pub mod json;
pub mod keys;
pub mod live;
pub mod local;
pub mod netbench;
pub mod observers;
pub mod peer;
pub mod plan;
pub mod record;
pub mod report;
pub mod scenario;
pub mod store;
pub mod verdict;
