//! What does measuring cost? Crews of the worker beside bare loops of the same calls.
//!
//! Each case runs in interleaved rounds: a bare loop without a clock, the same with two clock
//! readings per operation where that says something, a whole crew of the worker (threads, accounts,
//! histograms, collector), and `fio` where it is in the path. Prints a table of times per operation
//! with the ratios to the bare loop, and one of the bounds. A ratio is of two neighbours, since what
//! disturbs one disturbs the other; given are the median over rounds and its 95 % interval by a
//! bootstrap. A bound is met when the better end of the interval reaches it.
//!
//! ```text
//! cargo run --release -p iofleet-worker --example generator [-- DIR [ROUNDS [CASE…]]]
//! ```
//!
//! `DIR` (`/dev/shm`) should lie in memory. Cases of direct I/O use `IOFLEET_DISK_DIR` (`target`). `fio`
//! stays out where `IOFLEET_PEERS=no`.
//!
//! `once CASE OPERATIONS` runs one crew and prints nothing: `instructions.sh` counts with it.

#![expect(clippy::print_stdout, reason = "a program that prints its result")]

use std::{error::Error, path::PathBuf};

mod bare;
mod cases;
mod crew;
mod judge;
mod names;
mod once;
mod peers;
mod queues;
mod usage;

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("once") {
        let (case, operations) = (arguments.next(), arguments.next());
        let (case, operations) = case.zip(operations).ok_or("once CASE OPERATIONS")?;
        return once::run(&case, operations.parse()?);
    }
    let dir = PathBuf::from(first.unwrap_or_else(|| "/dev/shm".to_owned()));
    let disk = std::env::var("IOFLEET_DISK_DIR").unwrap_or_else(|_| "target".to_owned());
    let rounds: usize = arguments.next().map_or(Ok(21), |text| text.parse())?;
    let wanted: Vec<String> = arguments.collect();
    let files = cases::Files::make(&dir, disk.as_ref())?;
    let mut cases = cases::all(&files)?;
    if let Some(name) = wanted.iter().find(|name| cases.iter().all(|case| case.name != **name)) {
        return Err(format!("there is no case {name}").into());
    }
    cases.retain(|case| wanted.is_empty() || wanted.iter().any(|name| name == case.name));
    let mut verdicts = Vec::new();
    println!("{rounds} rounds; ns per operation\n");
    judge::head();
    for case in &cases {
        verdicts.extend(judge::run(case, rounds)?);
    }
    judge::print(&verdicts);
    Ok(())
}
