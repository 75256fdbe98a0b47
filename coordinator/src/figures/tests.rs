//! Known answers, computed by hand; times in the scripts are ms.

use iofleet_shared::stats::{BYTE_UNITS, OP_UNITS};
use proptest::prelude::*;

use super::{
    script::{Op, ops_ms, spread, times},
    *,
};

const MS: i64 = 1_000_000;

/// Figures of scripted threads.
fn figures_of(threads: &[Vec<Op>], ramp_ms: i64) -> Figures {
    let own: Vec<ThreadTimes> = threads.iter().map(|ops| times(ops, ramp_ms * MS)).collect();
    figures_with(threads, &own, ramp_ms)
}

fn figures_with(threads: &[Vec<Op>], own: &[ThreadTimes], ramp_ms: i64) -> Figures {
    let ticks = spread(&threads.concat());
    let ramp_ns = u64::try_from(ramp_ms * MS).unwrap();
    compute(&FigureInput { ramp_ns, ..input(own, &ticks) })
}

/// Without warm-up, at depth 1, each operation after the one before.
fn input<'a>(threads: &'a [ThreadTimes], ticks: &'a [Tick]) -> FigureInput<'a> {
    let (exact, ramp_ns, depth, offered_until_ns) = (&[][..], 0, 1, None);
    FigureInput { threads, ticks, exact, ramp_ns, depth, offered_until_ns }
}

fn close(figure: Option<f64>, expected: f64) -> bool {
    figure.is_some_and(|figure| (figure - expected).abs() <= expected.abs() * 1e-12)
}

/// Thread 0 from 0 to 310 ms, 3 x 1000 bytes; thread 1 begins 45 ms late and ends at 345 ms, 3 x
/// 2000 bytes. Operations lie across both edges of the window.
fn late_thread() -> [Vec<Op>; 2] {
    [
        ops_ms(&[(0, 100), (100, 200), (200, 310)], 1_000),
        ops_ms(&[(45, 145), (145, 245), (245, 345)], 2_000),
    ]
}

#[test]
fn five_figures_of_a_late_thread_across_both_edges() {
    let figures = figures_of(&late_thread(), 0);
    let window = figures.window.unwrap();
    // [45, 310] snaps inwards to [50, 310].
    assert_eq!((window.begin_ns(), window.length_ns()), (50_000_000, 260_000_000));
    // Thread 0: 0.5 + 1 + 1 operations. Thread 1: 0.95 + 1 + 0.65.
    assert_eq!(window.payload.bytes, 2_500.0 + 5_200.0);
    assert!((window.payload.ops - (2.5 + 2.6)).abs() < 1e-8);
    let Five { common, span, thread_sum, first_done, last_done } = figures.bandwidth;
    assert!(close(common, 7_700.0 / 0.26));
    assert!(close(span, 9_000.0 / 0.345));
    assert!(close(thread_sum, 3_000.0 / 0.31 + 6_000.0 / 0.3));
    // Up to 310 ms: thread 0 whole, thread 1 two and 0.65 operations.
    assert!(close(first_done, 8_300.0 / 0.31));
    assert!(close(last_done, 9_000.0 / 0.31));
    let Five { common, span, thread_sum, first_done, last_done } = figures.iops;
    // The share of an operation in a tick is rounded to 1/2^32.
    assert!((common.unwrap() - 5.1 / 0.26).abs() < 1e-6);
    assert!(close(span, 6.0 / 0.345));
    assert!(close(thread_sum, 3.0 / 0.31 + 3.0 / 0.3));
    assert!((first_done.unwrap() - 5.65 / 0.31).abs() < 1e-6);
    assert!(close(last_done, 6.0 / 0.31));
    assert!(close(figures.overlap, 265.0 / 345.0));
    assert_eq!(figures.busy_share, Some(1.0));
    assert_eq!(figures.start_skew_ns, Some(45_000_000));
    assert_eq!(headline(&figures, Durability::Each), Some(Headline::Span));
    assert!(figures.ordered());
}

#[test]
fn the_window_counts_to_the_byte() {
    // 7 bytes over 70 ms, one byte a tick; the second thread begins at 20 ms and ends at 130 ms.
    let threads = [ops_ms(&[(0, 70), (70, 140)], 7), ops_ms(&[(20, 130)], 11)];
    let window = figures_of(&threads, 0).window.unwrap();
    assert_eq!((window.first_tick, window.ticks), (2, 11));
    assert_eq!(window.payload.bytes, 5.0 + 6.0 + 11.0);
}

#[test]
fn warm_up_is_in_no_figure() {
    let threads = [
        ops_ms(&[(0, 60), (60, 140), (140, 240), (240, 400)], 1_000),
        ops_ms(&[(0, 60), (60, 310)], 4_000),
    ];
    let figures = figures_of(&threads, 100);
    // Completed after 100 ms: 3 x 1000 and 1 x 4000, whole, the first of each issued at 60 ms.
    assert!(close(figures.bandwidth.span, 7_000.0 / 0.34));
    assert!(close(figures.bandwidth.last_done, 7_000.0 / 0.34));
    assert!(close(figures.bandwidth.thread_sum, 3_000.0 / 0.34 + 4_000.0 / 0.25));
    let window = figures.window.unwrap();
    assert_eq!((window.begin_ns(), window.length_ns()), (100_000_000, 210_000_000));
    // By share: half of the operation that crosses 100 ms, 1, and 70/160; 210/250 of 4000.
    assert_eq!(window.payload.bytes, 500.0 + 1_000.0 + 437.5 + 3_360.0);
    assert!(close(figures.bandwidth.first_done, 5_297.5 / 0.21));
    assert!(close(figures.overlap, 0.21 / 0.34));
    assert_eq!(figures.start_skew_ns, Some(0));
    assert_eq!(figures.first_begin_ns, Some(60 * MS));
}

#[test]
fn a_thread_that_ended_in_the_warm_up_leaves_no_window() {
    let threads = [ops_ms(&[(0, 400)], 1_000), ops_ms(&[(0, 60)], 1_000)];
    let figures = figures_of(&threads, 100);
    assert_eq!((figures.window, figures.overlap), (None, Some(0.0)));
    assert_eq!(figures.bandwidth.first_done, None);
    assert!(close(figures.bandwidth.span, 1_000.0 / 0.4));
    assert_eq!(headline(&figures, Durability::Each), Some(Headline::Span));
}

#[test]
fn a_staggered_fleet_headlines_span_while_thread_sum_exceeds_it() {
    // Four threads one after the other: 1000 bytes in 100 ms each, 10 kB/s in truth.
    let threads: Vec<Vec<Op>> =
        (0..4).map(|n| ops_ms(&[(n * 100, n * 100 + 100)], 1_000)).collect();
    let figures = figures_of(&threads, 0);
    assert!(close(figures.bandwidth.span, 10_000.0));
    assert!(close(figures.bandwidth.thread_sum, 40_000.0));
    assert!(close(figures.bandwidth.last_done, 40_000.0));
    assert!(close(figures.bandwidth.first_done, 10_000.0));
    assert_eq!((figures.bandwidth.common, figures.overlap), (None, Some(0.0)));
    assert!(figures.ordered());
}

#[test]
fn threads_that_run_together_headline_common() {
    let threads = [ops_ms(&[(0, 200), (200, 400)], 500), ops_ms(&[(3, 203), (203, 398)], 500)];
    let figures = figures_of(&threads, 0);
    assert!(close(figures.overlap, 395.0 / 400.0));
    assert_eq!(headline(&figures, Durability::Each), Some(Headline::Common));
    assert_eq!(headline(&figures, Durability::Never), Some(Headline::Common));
    assert_eq!(headline(&figures, Durability::AtEnd), Some(Headline::Span));
}

#[test]
fn the_return_of_fsync_ends_a_thread_but_not_its_window() {
    let threads = [ops_ms(&[(0, 100), (100, 200)], 1_000)];
    let mut own = times(&threads[0], 0);
    own.ended_ns = Some(1_000 * MS);
    let figures = figures_with(&threads, &[own], 0);
    assert!(close(figures.bandwidth.span, 2_000.0));
    assert!(close(figures.bandwidth.last_done, 2_000.0));
    assert!(close(figures.bandwidth.first_done, 2_000.0));
    assert!(close(figures.bandwidth.common, 10_000.0));
    assert!(close(figures.overlap, 0.2));
}

#[test]
fn an_exact_count_stands_in_place_of_its_nodes_ticks() {
    // The first node's two threads: one ends at 33 ms, one moves 900 bytes from 4 to 31 and then 50
    // from 31 to 39 ms. The second node: 4000 bytes from 0 to 40 ms.
    let own_node = [ops_ms(&[(0, 33)], 660), ops_ms(&[(4, 31), (31, 39)], 0)];
    let mut own_node = own_node.concat();
    (own_node[1].bytes, own_node[2].bytes) = (Some(900), Some(50));
    let other = ops_ms(&[(0, 40)], 4_000);
    let own = [times(&own_node[..1], 0), times(&own_node[1..], 0), times(&other, 0)];
    let (ticks, of_first, of_other) =
        (spread(&[own_node.clone(), other.clone()].concat()), spread(&own_node), spread(&other));
    // In twentieths of a byte and of an operation.
    let counted = |bytes: u128, ops: u128, at_ns| FirstEnd {
        at_ns,
        bytes: bytes * u128::from(BYTE_UNITS) / 20,
        ops: ops * u128::from(OP_UNITS) / 20,
    };
    let first_done = |exact: &[ExactNode<'_>]| {
        let figures = compute(&FigureInput { exact, ..input(&own, &ticks) });
        (figures.bandwidth.first_done, figures.iops.first_done)
    };
    // Up to 33 ms: 660, 900 and a quarter of 50; 3 300 of the other node.
    let first = ExactNode { ticks: &of_first, first_end: counted(31_450, 45, 33 * MS) };
    let (bytes, ops) = first_done(&[first]);
    assert!(close(bytes, (1_572.5 + 3_300.0) / 0.033));
    assert!((ops.unwrap() - (2.25 + 0.825) / 0.033).abs() < 1e-5);
    // The other node's own count, up to 36 ms, says 3 690: 3 000 at 30 and 3 345 at 33 ms.
    let second = ExactNode { ticks: &of_other, first_end: counted(73_800, 18, 36 * MS) };
    assert!(close(first_done(&[second, first]).0, (1_572.5 + 3_345.0) / 0.033));
    // By ticks alone the first node's last tick, 203 1/3 bytes, is spread over 30 to 40 ms.
    let (by_ticks, _) = first_done(&[]);
    let tick = 3.0 / 33.0 * 660.0 + 900.0 / 27.0 + 50.0;
    let whole = 660.0 * 30.0 / 33.0 + 900.0 * 26.0 / 27.0;
    assert!((by_ticks.unwrap() - (whole + tick * 0.3 + 3_300.0) / 0.033).abs() < 1e-3);
}

#[test]
fn a_window_needs_ten_ticks() {
    let nine = figures_of(&[ops_ms(&[(1, 109)], 1_000)], 0);
    assert_eq!((nine.window, nine.bandwidth.common), (None, None));
    assert_eq!(nine.overlap, Some(1.0));
    let ten = figures_of(&[ops_ms(&[(1, 110)], 1_000)], 0);
    assert_eq!(ten.window.map(|window| window.ticks), Some(10));
    assert_eq!(headline(&nine, Durability::Each), Some(Headline::Span));
}

#[test]
fn a_thread_with_work_and_no_completion_leaves_no_window() {
    let threads = [ops_ms(&[(0, 400)], 1_000), Vec::new()];
    let mut own: Vec<ThreadTimes> = threads.iter().map(|ops| times(ops, 0)).collect();
    let never = figures_with(&threads, &own, 0);
    assert_eq!((never.window, never.overlap), (None, None));
    own[1].first_issue_ns = Some(7 * MS);
    let stuck = figures_with(&threads, &own, 0);
    assert_eq!((stuck.window, stuck.start_skew_ns), (None, Some(7_000_000)));
    assert!(close(stuck.bandwidth.span, 2_500.0));
    // Without work it is in no figure.
    own[1] = ThreadTimes::default();
    assert!(close(figures_with(&threads, &own, 0).bandwidth.common, 2_500.0));
}

#[test]
fn busy_share_is_service_over_threads_times_window() {
    // One thread busy all the time, one for 60 of each 100 ms.
    let threads =
        [ops_ms(&[(0, 400)], 1_000), ops_ms(&[(0, 60), (100, 160), (200, 260), (300, 400)], 1_000)];
    let figures = figures_of(&threads, 0);
    assert_eq!(figures.busy_share, Some((400.0 + 60.0 * 3.0 + 100.0) / 800.0));
}

#[test]
fn nothing_measured_is_none_not_zero() {
    assert_eq!(figures_of(&[], 0), Figures::default());
    let failed = [vec![Op { issue_ns: 0, done_ns: 5 * MS, bytes: None }]];
    let figures = figures_of(&failed, 0);
    assert_eq!((figures.bandwidth, figures.iops), (Five::default(), Five::default()));
    assert_eq!(headline(&figures, Durability::Each), None);
}

#[test]
fn durability_of_each_workload() {
    use Durability::{AtEnd, Each, Never};
    assert_eq!(Durability::of(true, true, Fsync::End), AtEnd);
    assert_eq!(Durability::of(true, true, Fsync::None), Never);
    assert_eq!(Durability::of(true, true, Fsync::Each), Each);
    assert_eq!(Durability::of(true, false, Fsync::End), Each);
    assert_eq!(Durability::of(false, true, Fsync::End), Each);
}

/// A thread that begins at some time and has operations with pauses between them.
fn any_thread() -> impl Strategy<Value = Vec<Op>> {
    let steps =
        proptest::collection::vec((0..30_000_000_i64, 0..90_000_000_i64, 0..5_000_u64), 0..12);
    (0..200_000_000_i64, steps).prop_map(|(begin, steps)| {
        let mut now = begin;
        steps
            .into_iter()
            .map(|(pause, service, bytes)| {
                let issue_ns = now + pause;
                now = issue_ns + service;
                Op { issue_ns, done_ns: now, bytes: Some(bytes) }
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn order_and_bounds_hold(
        threads in proptest::collection::vec(any_thread(), 1..6),
        ramp_ms in prop_oneof![Just(0_i64), Just(100)],
    ) {
        let mut own: Vec<ThreadTimes> =
            threads.iter().map(|ops| times(ops, ramp_ms * MS)).collect();
        own.iter_mut().for_each(|thread| thread.has_work = thread.ended_ns.is_some());
        let figures = figures_with(&threads, &own, ramp_ms);
        prop_assert!(figures.ordered());
        prop_assert!(figures.overlap.is_none_or(|overlap| (0.0..=1.0).contains(&overlap)));
        prop_assert!(figures.busy_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
        let all: u64 = threads.iter().flatten().filter_map(|op| op.bytes).sum();
        if let Some(window) = figures.window {
            prop_assert!(window.payload.bytes <= all as f64);
            prop_assert!(window.begin_ns() >= u64::try_from(ramp_ms * MS).unwrap());
        }
    }

    #[test]
    fn merged_ticks_are_the_ticks_of_all(a in any_thread(), b in any_thread()) {
        let together = spread(&[a.clone(), b.clone()].concat());
        let mut merged = vec![Tick::default(); together.len()];
        for series in [spread(&a), spread(&b)] {
            merged.iter_mut().zip(series).for_each(|(tick, other)| tick.merge(other));
        }
        prop_assert_eq!(&merged, &together);
        let bytes: u64 = a.iter().chain(&b).filter_map(|op| op.bytes).sum();
        let sums = Spread::new(&together, None, None).between(0, i64::MAX);
        prop_assert_eq!(sums.bytes, bytes as f64);
    }
}

#[test]
fn a_queue_that_was_never_full_leaves_no_window() {
    // Two in flight from 60 ms on; at depth 2 busy from there, and half of the share before.
    let threads = [ops_ms(&[(0, 200), (60, 300), (200, 400), (300, 400)], 1_000)];
    let ticks = spread(&threads.concat());
    let mut own = [times(&threads[0], 0)];
    let of = |own: &[ThreadTimes]| compute(&FigureInput { depth: 2, ..input(own, &ticks) });
    own[0].busy_begin_ns = Some(60 * MS);
    let full = of(&own);
    assert_eq!(full.window.map(|window| window.begin_ns()), Some(60_000_000));
    assert_eq!((full.busy_share, full.overlap), (Some(1.0), Some(1.0)));
    // All time counts for `span` all the same.
    assert!(close(full.bandwidth.span, 10_000.0));
    own[0].busy_begin_ns = None;
    assert_eq!((of(&own).window, of(&own).overlap), (None, None));
}

#[test]
fn threads_that_wait_for_arrivals_do_not_cut_the_window() {
    // The third thread never had anything to do.
    let threads = [ops_ms(&[(3, 50), (200, 260)], 500), ops_ms(&[(150, 290)], 500), Vec::new()];
    let own: Vec<ThreadTimes> = threads.iter().map(|ops| times(ops, 0)).collect();
    let ticks = spread(&threads.concat());
    let of = |offered_until_ns| compute(&FigureInput { offered_until_ns, ..input(&own, &ticks) });
    let window =
        |figures: Figures| figures.window.map(|window| (window.begin_ns(), window.length_ns()));
    assert_eq!(window(of(None)), None);
    let offered = of(Some(280 * MS));
    assert_eq!(window(offered), Some((10_000_000, 270_000_000)));
    assert!(close(offered.overlap, 277.0 / 287.0));
    // Without a deadline, up to the last completion.
    assert_eq!(window(of(Some(i64::MAX))), Some((10_000_000, 280_000_000)));
}
