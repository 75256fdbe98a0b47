//! Every combination of engine, pattern, layout and direct I/O that is said to be legal runs, on
//! real file systems, a device, and a file system that counts; every other one is refused.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "tests"
)]

mod alignment;
mod campaign;
mod check;
mod disks;
mod legal;
#[path = "../fleet/observer.rs"]
#[expect(dead_code, reason = "some of it is for other tests")]
mod observer;
mod orders;
#[path = "../fleet/pace.rs"]
#[expect(dead_code, reason = "it is for other tests")]
mod pace;
mod refused;
#[path = "../fleet/support.rs"]
#[expect(dead_code, reason = "some of it is for other tests")]
mod support;
mod table;
#[path = "../fleet/tamper.rs"]
#[expect(dead_code, reason = "it is for other tests")]
mod tamper;
