//! The iofleet worker: a daemon that produces synchronised multi-threaded file I/O.
//!
//! Modules from the top floor down; each uses only what stands below it:
//! `cli` · `daemon` (select and effects) · `machine` (pure: event in, effects out), `crew` (arms,
//! starts, gives up threads) · `io_thread`, `collector`, `sampler` (links, CPU) · `arrivals`, `engine`, `names` (which name
//! comes next), `files` (descriptors), `pattern`, `payload`, `recorder`, `tree`, `netbench` (memory to memory), `target` (roots,
//! datasets), `host` (facts, CPU), `link` (thin QUIC task) · `stamp`, `fault` (copies that outlive
//! SIGBUS).

pub mod arrivals;
pub mod cli;
pub mod collector;
pub mod crew;
pub mod daemon;
pub mod engine;
mod fault;
pub mod files;
#[cfg(test)]
pub(crate) mod fixture;
pub mod host;
pub mod io_thread;
pub mod link;
pub mod machine;
pub mod names;
pub mod netbench;
pub mod pattern;
pub mod payload;
pub mod recorder;
pub mod sampler;
pub mod stamp;
pub mod target;
pub mod tree;
