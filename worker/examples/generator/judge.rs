//! Rounds, and what is to be said of them.

use std::{fmt, sync::Arc};

use iofleet_shared::work::Extent;
use iofleet_worker::pattern::{Blocks, Cursor, Random};

use crate::{
    Fallible,
    cases::{Bound, Case, OURS},
    usage::Round,
};

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    value: f64,
    low: f64,
    high: f64,
}

/// Whether a bound is met.
#[derive(Debug)]
pub(crate) struct Verdict {
    case: String,
    bound: Bound,
    measured: Estimate,
}

/// Rounds of one contestant; none where it did not take part.
type Rounds = Vec<Option<Round>>;

/// Runs a case in interleaved rounds and prints what came of it.
pub(crate) fn run(case: &Case, rounds: usize) -> Fallible<Vec<Verdict>> {
    let contestants = &case.contestants;
    let mut samples = vec![vec![Rounds::new(); contestants.len()]; case.parts.len()];
    for round in 0..rounds {
        let mut results = vec![None; contestants.len()];
        for at in 0..contestants.len() {
            // Each is first, second and so on equally often.
            let at = (at + round) % contestants.len();
            if round < contestants[at].rounds_max {
                results[at] = Some((contestants[at].run)()?);
            }
        }
        for (at, result) in results.into_iter().enumerate() {
            for (part, samples) in samples.iter_mut().enumerate() {
                samples[at].push(result.as_ref().map(|parts: &Vec<Round>| parts[part]));
            }
        }
    }
    let mut verdicts = Vec::new();
    for (part, samples) in case.parts.iter().zip(&samples) {
        let title = format!("{}{part}", case.name);
        rows(&title, case, samples);
        verdicts.extend(case.bounds.iter().filter_map(|bound| {
            let measured = measured(bound, case, samples)?;
            Some(Verdict { case: title.clone(), bound: *bound, measured })
        }));
    }
    Ok(verdicts)
}

/// Head of the table of results.
pub(crate) fn head() {
    println!("| case | loop | user | CPU | wall | rate over bare (95 %) | CPU over bare (95 %) |");
    println!("|---|---|---|---|---|---|---|");
}

fn rows(title: &str, case: &Case, samples: &[Rounds]) {
    for (contestant, rounds) in case.contestants.iter().zip(samples) {
        let of = |of: fn(&Round) -> f64| rounds.iter().flatten().map(of).collect::<Vec<_>>();
        print!(
            "| {title} | {} | {:.1} | {:.1} | {:.1} |",
            contestant.name,
            mean(&of(|round| round.user)),
            median(&mut of(|round| round.cpu)),
            median(&mut of(|round| round.wall)),
        );
        if std::ptr::eq(rounds, &raw const samples[0]) {
            println!(" | |");
            continue;
        }
        let rate = paired(rounds, &samples[0], |ours, bare| bare.wall / ours.wall);
        let cpu = paired(rounds, &samples[0], |ours, bare| ours.cpu / bare.cpu);
        println!(" {rate:.3} | {cpu:.3} |");
    }
}

/// What a bound is about; none where nobody took part that it compares with.
fn measured(bound: &Bound, case: &Case, samples: &[Rounds]) -> Option<Estimate> {
    let rounds = |name: &str| {
        let at = case.contestants.iter().position(|contestant| contestant.name == name)?;
        samples.get(at)
    };
    let ours = rounds(OURS)?;
    Some(match *bound {
        Bound::UserAtMost(_) => {
            let user: Vec<f64> = ours.iter().flatten().map(|round| round.user).collect();
            bootstrap(&user, |values| mean(values))
        }
        Bound::RateAtLeast(_) => paired(ours, &samples[0], |ours, bare| bare.wall / ours.wall),
        Bound::CpuAtMost(_) => paired(ours, &samples[0], |ours, bare| ours.cpu / bare.cpu),
        Bound::BeyondAtMost(_) => paired(ours, &samples[0], |ours, bare| ours.cpu - bare.cpu),
    })
}

/// Prints the bounds.
pub(crate) fn print(verdicts: &[Verdict]) {
    println!("\n| case | bound | measured (95 %) | met |");
    println!("|---|---|---|---|");
    for Verdict { case, bound, measured } in verdicts {
        let (met, text) = match *bound {
            Bound::UserAtMost(most) => (measured.low <= most, format!("{measured:.1}")),
            Bound::BeyondAtMost(most) => (measured.low <= most, format!("{measured:.1}")),
            Bound::CpuAtMost(most) => (measured.low <= most, format!("{measured:.3}")),
            Bound::RateAtLeast(least) => (measured.high >= least, format!("{measured:.3}")),
        };
        println!("| {case} | {bound} | {text} | {} |", if met { "yes" } else { "**no**" });
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UserAtMost(ns) => write!(f, "user at most {ns} ns"),
            Self::BeyondAtMost(ns) => write!(f, "CPU at most {ns} ns beyond two clock readings"),
            Self::CpuAtMost(ratio) => write!(f, "CPU at most {ratio} of bare"),
            Self::RateAtLeast(ratio) => write!(f, "rate at least {ratio} of bare"),
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(3);
        let Self { value, low, high } = self;
        write!(f, "{value:.places$} ({low:.places$} to {high:.places$})")
    }
}

/// Median over the rounds that both took part in.
fn paired(ours: &Rounds, other: &Rounds, of: impl Fn(&Round, &Round) -> f64) -> Estimate {
    let pairs = ours.iter().zip(other);
    let both = pairs.filter_map(|(ours, other)| ours.as_ref().zip(other.as_ref()));
    let values: Vec<f64> = both.map(|(ours, other)| of(ours, other)).collect();
    bootstrap(&values, median)
}

/// A statistic of rounds, with its interval over resampled ones.
fn bootstrap(values: &[f64], of: impl Fn(&mut [f64]) -> f64) -> Estimate {
    const DRAWS: usize = 2_000;
    let extent = Extent { offset: 0, length: values.len().max(1) as u64 };
    let mut draw = Random::new(Arc::new(Blocks::new(&[extent], 1)), 7);
    let mut drawn = values.to_vec();
    let mut results: Vec<f64> = (0..DRAWS)
        .map(|_| {
            for value in &mut drawn {
                *value = values[usize::try_from(draw.next().number).unwrap_or(0)];
            }
            of(&mut drawn)
        })
        .collect();
    results.sort_unstable_by(f64::total_cmp);
    Estimate {
        value: of(&mut values.to_vec()),
        low: results[DRAWS / 40],
        high: results[DRAWS - DRAWS / 40 - 1],
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.iter().map(|_| 1.0).sum::<f64>()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = |at: usize| values.get(at).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(values.len().saturating_sub(1) / 2), at(values.len() / 2))
}
