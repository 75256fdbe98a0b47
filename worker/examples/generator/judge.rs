//! Rounds, and what is to be said of them.

use std::{io, sync::Arc, time::Duration};

use iofleet_shared::work::Extent;
use iofleet_worker::pattern::{Blocks, Cursor, Random};

use crate::{Fallible, Round, cases::Case};

/// CPU time of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    user: Duration,
    system: Duration,
}

impl Usage {
    pub(crate) fn now() -> io::Result<Self> {
        // SAFETY: all zeros is a value of this plain struct, and the call writes nothing else.
        let (result, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), usage)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { user: duration(usage.ru_utime), system: duration(usage.ru_stime) })
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self { user: self.user - before.user, system: self.system - before.system }
    }

    pub(crate) fn per(self, operations: u64, wall_ns: u64) -> Round {
        let per = |ns: Duration| ns.as_secs_f64() / Duration::from_nanos(operations).as_secs_f64();
        Round {
            user_ns: per(self.user),
            cpu_ns: per(self.user + self.system),
            wall_ns: per(Duration::from_nanos(wall_ns)),
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_micros(part(time.tv_usec))
}

/// Runs a case in interleaved rounds and prints what came of it.
pub(crate) fn run(case: &Case, rounds: usize) -> Fallible<()> {
    println!("\n{}: {}", case.name, case.title);
    let mut samples: Vec<Vec<Round>> = vec![Vec::new(); case.contestants.len()];
    for round in 0..rounds {
        for at in 0..case.contestants.len() {
            // Each is first, second and so on equally often.
            let at = (at + round) % case.contestants.len();
            samples[at].push((case.contestants[at].1)()?);
        }
    }
    for ((name, _), rounds) in case.contestants.iter().zip(&samples) {
        println!(
            "  {name:<28} user {:>9.1} ns/op   CPU {:>9.1} ns/op   wall {:>9.1} ns/op",
            mean(rounds, |round| round.user_ns),
            mean(rounds, |round| round.cpu_ns),
            mean(rounds, |round| round.wall_ns),
        );
    }
    let Some((ours, others)) = samples.split_last() else {
        return Ok(());
    };
    for ((name, _), other) in case.contestants.iter().zip(others) {
        let rate = interval(other, ours, |round| round.wall_ns);
        let cpu = interval(ours, other, |round| round.cpu_ns);
        println!(
            "  against {name:<20} rate {:.3} ({:.3} to {:.3})   CPU per op {:.3} ({:.3} to {:.3})",
            rate.0, rate.1, rate.2, cpu.0, cpu.1, cpu.2
        );
    }
    println!("  bound: {}", case.bound);
    Ok(())
}

fn mean(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    rounds.iter().map(of).sum::<f64>() / rounds.iter().map(|_| 1.0).sum::<f64>()
}

/// Ratio of means, with its 95 % interval over resampled rounds (a round of both together, since
/// what disturbs one disturbs its neighbour).
fn interval(
    above: &[Round],
    below: &[Round],
    of: impl Fn(&Round) -> f64 + Copy,
) -> (f64, f64, f64) {
    const DRAWS: usize = 2_000;
    let count = above.len() as u64;
    let mut draw = Random::new(Arc::new(Blocks::new(&[Extent { offset: 0, length: count }], 1)), 7);
    let mut ratios: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let (mut top, mut bottom) = (0.0, 0.0);
            for _ in 0..count {
                let at = usize::try_from(draw.next().number).unwrap_or(0);
                top += of(&above[at]);
                bottom += of(&below[at]);
            }
            top / bottom
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let ratio = mean(above, of) / mean(below, of);
    (ratio, ratios[DRAWS / 40], ratios[DRAWS - DRAWS / 40 - 1])
}
