//! Arrivals against times worked out by hand, distributions, and each other.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Barrier, thread};

use proptest::prelude::*;

use super::*;

const S: u64 = 1_000_000_000;

fn even(per_1000_s: u64, phase_ns: u64) -> Arc<ArrivalQueue> {
    let arrivals = Arrivals { per_1000_s, exponential: false, phase_ns, seed: 0 };
    Arc::new(ArrivalQueue::new(&arrivals))
}

fn exponential(per_1000_s: u64, seed: u64) -> Arc<ArrivalQueue> {
    let arrivals = Arrivals { per_1000_s, exponential: true, phase_ns: 0, seed };
    Arc::new(ArrivalQueue::new(&arrivals))
}

fn times(queue: &Arc<ArrivalQueue>, count: u64) -> Vec<u64> {
    let mut taker = Taker::new(Arc::clone(queue));
    (0..count).map(|_| taker.take().at_ns).collect()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count)
}

/// Arrivals in each of the windows of `ns` that follow each other from T0 on.
fn windows(times: &[u64], ns: u64, count: usize) -> Vec<u64> {
    let mut windows = vec![0; count];
    for time in times {
        if let Some(window) = windows.get_mut(usize::try_from(time / ns).unwrap()) {
            *window += 1;
        }
    }
    windows
}

#[test]
fn even_arrivals_are_exact() {
    assert_eq!(times(&even(3, 0), 4), [0, 333_333_333_333, 666_666_666_667, 1_000_000_000_000]);
    assert_eq!(
        times(&even(7_000, 5), 8),
        [5, 142_857_148, 285_714_291, 428_571_434, 571_428_576, 714_285_719, 857_142_862, S + 5]
    );
    // Half a ns is rounded up: 10^12 / (8 · 10^10) = 12.5.
    assert_eq!(times(&even(80_000_000_000, 0), 4), [0, 13, 25, 38]);
    // Three days at 30 million a second.
    let late = Even::new(30_000_000_000, 0).at_ns(3 * 86_400 * 30_000_000 + 1);
    assert_eq!(late, 3 * 86_400 * S + 33);
}

#[test]
fn phases_interleave_a_fleet_evenly() {
    // Three workers, together 6 a second.
    let gap = 6 * S / 36;
    let mut all: Vec<u64> =
        [0, 1, 2].iter().flat_map(|k| times(&even(2_000, k * gap), 3)).collect();
    all.sort_unstable();
    let expected: Vec<u64> = (0..9).map(|number| number / 3 * (S / 2) + number % 3 * gap).collect();
    assert_eq!(all, expected);
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] - gap <= 2), "{all:?}");
}

#[test]
fn without_a_rate_nothing_arrives() {
    for queue in [even(0, 7), exponential(0, 7)] {
        assert_eq!(times(&queue, 2), [u64::MAX; 2]);
        assert_eq!(queue.count_between(0, S), 0);
        assert_eq!(Meter::new(queue).backlog(S), 0);
    }
}

#[test]
fn gaps_are_exponential_and_independent() {
    const COUNT: u64 = 400_000;
    // Mean gap 1 ms.
    let times = times(&exponential(1_000_000, 11), COUNT);
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    // Standard errors: mean 0.0016, variance 0.0045, correlation 0.0016; five of each.
    let (mean, variance) = mean_and_variance(&gaps);
    assert!((mean - 1.0).abs() < 0.008 && (variance - 1.0).abs() < 0.023, "{mean} {variance}");
    for lag in [1, 2, 3, 32] {
        let products: f64 =
            gaps.iter().zip(&gaps[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum();
        let correlation = products / (gaps.len() - lag) as f64 / variance;
        assert!(correlation.abs() < 0.008, "lag {lag}: {correlation}");
    }
    // Twenty classes that are equally likely. 19 degrees of freedom: above 43.8 once in a thousand
    // seeds, and this seed is fixed.
    let mut classes = [0.0_f64; 20];
    for gap in &gaps {
        let rank = 20.0 * (1.0 - (-gap).exp());
        classes[(1..20).filter(|bound| rank >= f64::from(*bound)).count()] += 1.0;
    }
    let expected = gaps.len() as f64 / 20.0;
    let chi2: f64 = classes.iter().map(|n| (n - expected).powi(2) / expected).sum();
    assert!(chi2 < 43.8, "{chi2}");
}

#[test]
fn counts_in_windows_are_poisson() {
    const WINDOWS: usize = 80_000;
    let times = times(&exponential(1_000_000, 12), 420_000);
    // Windows of 5.01 ms do not keep step with the bins of 32 ms.
    let mean = 5.01_f64;
    let counts = windows(&times, 5_010_000, WINDOWS);
    let mut seen = [0.0_f64; 14];
    counts.iter().for_each(|n| seen[usize::try_from(*n).unwrap().min(13)] += 1.0);
    let (mut chi2, mut p, mut rest) = (0.0, (-mean).exp(), 1.0);
    for (n, seen) in seen.iter().enumerate() {
        let expected = WINDOWS as f64 * if n == 13 { rest } else { p };
        chi2 += (seen - expected).powi(2) / expected;
        rest -= p;
        p *= mean / (n + 1) as f64;
    }
    // 13 degrees of freedom: above 34.5 once in a thousand seeds.
    assert!(chi2 < 34.5, "{chi2}");
}

#[test]
fn counts_disperse_as_their_mean_at_every_scale() {
    // Within bins, about a bin, and over many.
    let times = times(&exponential(1_000_000_000, 13), 4_000_000);
    for (mean, count) in
        [(2, 1_900_000), (13, 300_000), (32, 120_000), (100, 39_000), (3_000, 1_300)]
    {
        let windows = windows(&times, mean * 1_000, count);
        let counts: Vec<f64> = windows.iter().map(|n| *n as f64).collect();
        let (seen, variance) = mean_and_variance(&counts);
        let (mean, count) = (mean as f64, count as f64);
        // Variance of a Poisson variable's variance: (mean + 2 mean²) / count; four errors of it.
        let slack = 4.0 * ((mean + 2.0 * mean * mean) / count).sqrt();
        assert!((variance - mean).abs() < slack, "{mean}: variance {variance}");
        assert!((seen - mean).abs() < 4.0 * (mean / count).sqrt(), "{mean}: mean {seen}");
    }
}

#[test]
fn a_seed_gives_the_same_arrivals_and_another_others() {
    let first = times(&exponential(5_000, 1), 1_000);
    assert_eq!(first, times(&exponential(5_000, 1), 1_000));
    let second = times(&exponential(5_000, 2), 1_000);
    assert!(first.iter().all(|time| !second.contains(time)));
    // The shape does not hang on the rate, from one in 1000 s to 20 million a second.
    let slow = times(&exponential(1, 1), 1_000);
    let fast = times(&exponential(20_000_000_000, 1), 1_000);
    for (slow, fast) in slow.iter().zip(&fast) {
        assert!((slow / 20_000_000_000).abs_diff(*fast) <= 1);
    }
}

#[test]
fn threads_take_each_arrival_once_and_in_order() {
    const THREADS: usize = 4;
    const EACH: u64 = 50_000;
    for make in [|| even(7_000_000, 3), || exponential(7_000_000, 3)] {
        let queue = make();
        let together = Barrier::new(THREADS);
        let take = || {
            let mut taker = Taker::new(Arc::clone(&queue));
            together.wait();
            (0..EACH).map(|_| taker.take()).collect::<Vec<_>>()
        };
        let mut merged = Vec::new();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(take)).collect();
            for thread in threads {
                let own = thread.join().unwrap();
                assert!(own.windows(2).all(|pair| pair[0].number < pair[1].number));
                merged.extend(own);
            }
        });
        merged.sort_unstable_by_key(|arrival| arrival.number);
        let expected: Vec<Arrival> = (0..)
            .zip(times(&make(), THREADS as u64 * EACH))
            .map(|(number, at_ns)| Arrival { number, at_ns })
            .collect();
        assert_eq!(merged, expected);
        assert!(merged.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
    }
}

proptest! {
    #[test]
    fn counts_are_those_of_the_sequence(
        per_1000_s in prop_oneof![1..100_u64, 1..=20_000_000_000_u64],
        phase_ns in 0..2_000_000_u64,
        seed: u64,
        exponential: bool,
        taken in 0..3_000_u64,
        ends in prop::collection::vec((any::<bool>(), 0..1_000_000_usize), 6),
    ) {
        let arrivals = Arrivals { per_1000_s, exponential, phase_ns, seed };
        let all = times(&Arc::new(ArrivalQueue::new(&arrivals)), 3_000);
        prop_assert!(all.is_sorted());
        let queue = Arc::new(ArrivalQueue::new(&arrivals));
        times(&queue, taken);
        let mut meter = Meter::new(Arc::clone(&queue));
        let last = all[2_999];
        // Times between arrivals and at some, below the last one known; in any order, hence backwards as well.
        let ends = ends.into_iter().map(|(is_arrival, part)| {
            let some = if is_arrival { all[part % 3_000] } else { (u128::from(last) * part as u128 / 1_000_000).try_into().unwrap() };
            some.min(last - 1)
        });
        let mut from = 0;
        for end in ends {
            let before = |end: u64| all.iter().filter(|time| **time < end).count() as u64;
            let expected = before(end).saturating_sub(before(from));
            prop_assert_eq!(queue.count_between(from, end), expected);
            prop_assert_eq!(meter.offered_before(end), before(end));
            let come = before(end + 1);
            prop_assert_eq!(meter.backlog(end), come.saturating_sub(taken));
            from = end;
        }
    }
}

/// Responses in ns of servers that take from the queue when they are free, each operation being
/// `service_ns` of work, none of which is done in the second from `stall_ns` on.
fn responses(
    queue: &Arc<ArrivalQueue>,
    servers: usize,
    service_ns: u64,
    stall_ns: u64,
) -> Vec<u64> {
    let mut takers: Vec<Taker> = (0..servers).map(|_| Taker::new(Arc::clone(queue))).collect();
    let mut free: BinaryHeap<Reverse<(u64, usize)>> =
        (0..servers).map(|server| Reverse((0, server))).collect();
    let mut responses = Vec::new();
    while let Some(Reverse((free_ns, server))) = free.pop() {
        let Arrival { at_ns, .. } = takers[server].take();
        if at_ns > stall_ns + 4 * S {
            break;
        }
        let start = free_ns.max(at_ns);
        let end = if start + service_ns <= stall_ns || start >= stall_ns + S {
            start + service_ns
        } else {
            start.min(stall_ns) + service_ns + S
        };
        responses.push(end - at_ns);
        free.push(Reverse((end, server)));
    }
    responses
}

/// At half of the peak rate `r / 2`, an operation that arrives `u` after the beginning of a stall
/// of 1 s is answered when the stall is over and the queue before it is served: after
/// `1 + u / 2 - u`. So those that arrive in the first `2 (1 - x)` s take longer than `x`.
#[test]
fn a_stall_shows_in_the_responses_of_all_that_arrive() {
    // 8 servers of 0.4 ms: 20 000 a second at most.
    for queue in [even(10_000_000, 0), exponential(10_000_000, 14)] {
        let responses = responses(&queue, 8, 400_000, 3 * S + 123_456);
        for x in [0.25, 0.5, 0.75] {
            let above = responses.iter().filter(|ns| **ns as f64 > x * 1e9).count() as f64;
            let law = 2.0 * 10_000.0 * (1.0 - x);
            assert!((above / law - 1.0).abs() < 0.05, "above {x} s: {above}, not {law}");
        }
    }
}
