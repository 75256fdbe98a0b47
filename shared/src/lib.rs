//! What the coordinator and the workers agree on.
//!
//! Modules from the top floor down; each uses only what stands below it:
//! `log` · `transport` · `wire` · `work`, `stats`, `facts`, `lifecycle` · `clock`, `limits`, `ids`, `units`.
//!
//! Pure modules (no tokio, quinn, thread, clock or file): `wire`, `work`, `stats`, `facts`,
//! `lifecycle`, `limits`, `ids`, `units`. `clock` alone reads the operating system's clocks.

pub mod clock;
pub mod facts;
pub mod ids;
pub mod lifecycle;
pub mod limits;
pub mod log;
pub mod stats;
pub mod transport;
pub mod units;
pub mod wire;
pub mod work;
