//! End-to-end tests that bear no company: figures in time on a file system of known pace, and
//! settings of the whole machine. They run one after the other, after those of other binaries.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "tests"
)]

use std::{fs::File, path::Path};

#[path = "../fleet/observer.rs"]
#[expect(dead_code, reason = "the rest is for the other tests of fleets")]
mod observer;
mod open_load;
#[path = "../fleet/pace.rs"]
mod pace;
#[path = "../fleet/support.rs"]
#[expect(dead_code, reason = "the rest is for the other tests of fleets")]
mod support;
mod switched_off;
#[path = "../fleet/tamper.rs"]
#[expect(dead_code, reason = "the rest is for the other tests of fleets")]
mod tamper;

/// Keeps the other tests of this binary waiting while it lives, in other processes too.
fn alone() -> File {
    let file = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("alone.lock")).unwrap();
    file.lock().unwrap();
    file
}
