//! What does measuring cost? Crews of the worker beside bare loops of the same calls.
//!
//! Each case runs in interleaved rounds: a bare loop without a clock, the same with two clock
//! readings per operation where that says something, and a whole crew of the worker (threads,
//! accounts, histograms, collector). Prints user and CPU time and wall time per operation, and the
//! ratio of rates with a 95 % interval from a bootstrap over pairs of rounds.
//!
//! ```text
//! cargo run --release -p iofleet-worker --example generator [DIR [ROUNDS [CASE…]]]
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints its result")]

use std::{error::Error, path::PathBuf};

mod bare;
mod cases;
mod crew;
mod judge;

/// Time of one round, per operation.
#[derive(Debug, Clone, Copy)]
struct Round {
    user_ns: f64,
    cpu_ns: f64,
    wall_ns: f64,
}

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| "/dev/shm".to_owned()));
    let rounds: usize = arguments.next().map_or(Ok(15), |text| text.parse())?;
    let wanted: Vec<String> = arguments.collect();
    for case in cases::all(&dir)? {
        if wanted.is_empty() || wanted.iter().any(|name| name == case.name) {
            judge::run(&case, rounds)?;
        }
    }
    Ok(())
}
