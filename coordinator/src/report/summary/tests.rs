//! Whole summaries, word by word.

use super::super::samples;
use super::*;
use crate::record::{Damage, LoadCurve, Mark, NodeStatus, PointNode, Verification, example};

const PARTIAL: &str = "\
write: up to 95.60 MB/s at 16 threads on 4 nodes (common window, 256 KiB blocks, direct, file per thread); 4 points, 1 partial.
read: nothing was measured; 2 points, 1 failed, 1 skipped.

Doubts:
  not-an-aggregate (point 1): threads were all busy for 61 % of the time only.
  sums (point 4): the accounts do not agree: bytes of c1.

Errors:
  write (pwrite): No space left on device (os error 28): 1,204 operations on 3 nodes in point 3; first on c1 in /mnt/fs/c1/t0 at offset 1,048,576, longest 3.00 s.

Lost nodes:
  c4 since point 3.

Partial: 3 of 6 points did not come out whole.
  partial (point 3): c4 was lost.
  failed (point 4): the accounts do not agree: bytes of c1.
  skipped (point 5): too few workers are left.

Figures of the best points:
  write, point 2 (16 threads): common 95.60, span 95.10, thread sum 96.00, first done 95.80, last done 95.30 MB/s
";

fn complete(points: Vec<PointRecord>) -> CampaignRecord {
    let mut campaign = samples::campaign();
    campaign.campaign.status = CampaignStatus::Complete;
    campaign.points = points;
    campaign
}

#[test]
fn a_partial_campaign_says_all_that_went_wrong() {
    assert_eq!(summary(&samples::campaign(), false), PARTIAL);
}

#[test]
fn repetitions_show_their_mean_and_its_interval() {
    let mut points: Vec<PointRecord> =
        (0..4).map(|index| samples::point(index, "write", 8, 2)).collect();
    // Greater than the mean of the others, but not repeated and less than it.
    points[3].params.threads = 1;
    points[3].bandwidth.common = Some(90e6);
    points[1].bandwidth.common = Some(97e6);
    let mut campaign = complete(points);
    campaign.repetitions.push(Repetition {
        stage: "write".to_owned(),
        points: vec![0, 1, 2],
        headline: Headline::Common,
        unit: Unit::Bytes,
        mean: 96.07e6,
        stddev: 0.81e6,
        ci95: 2.01e6,
    });
    let expected = "\
write: up to 96.07 MB/s ± 2.01 MB/s at 8 threads on 2 nodes (mean of 3 repetitions with its 95 % confidence interval, common window, 256 KiB blocks, direct, file per thread); 4 points.

Figures of the best points:
  write, point 1 (8 threads): common 97.00, span 95.10, thread sum 96.00, first done 95.80, last done 95.30 MB/s
";
    assert_eq!(summary(&campaign, false), expected);
}

#[test]
fn null_figures_are_dashes_and_figures_that_are_no_aggregate_have_a_star() {
    let mut point = samples::point(0, "write", 1, 1);
    point.headline = Some(Headline::Span);
    point.bandwidth.common = None;
    point.bandwidth.span = Some(1024.0 * 1024.0 * 1024.0);
    point.bandwidth.thread_sum = Some(1024.0 * 1024.0 * 1024.0 * 2.0);
    point.bandwidth.first_done = None;
    point.bandwidth.last_done = Some(1024.0 * 1024.0 * 512.0);
    point.params.direct = false;
    point.params.layout = "shared-file".to_owned();
    point
        .params
        .swept
        .push(crate::record::Swept { key: "interval".to_owned(), value: "2 s".to_owned() });
    point.marks.push(samples::mark("not-an-aggregate", (2.0, 1.01, "`thread_sum` is too high")));
    let expected = "\
write: 1.00 GiB/s at 1 thread on 1 node (span from first begin to last end, 256 KiB blocks, buffered with fsync = end, shared file, interval = 2 s); 1 point.

Doubts:
  not-an-aggregate (point 0): `thread_sum` is too high.

Figures of the best points:
  write, point 0 (1 thread): common –, span 1.00 GiB/s, thread sum 2.00 GiB/s*, first done –, last done 512.0 MiB/s
  * not an aggregate: it may say more than moved
";
    assert_eq!(summary(&complete(vec![point]), true), expected);
}

#[test]
fn a_small_overlap_makes_two_figures_no_aggregates() {
    let mut point = samples::point(0, "read", 2, 1);
    point.marks.push(samples::mark("not-an-aggregate", (0.5, 0.9, "half of the time")));
    let text = summary(&complete(vec![point]), false);
    let expected =
        "common 95.60, span 95.10, thread sum 96.00*, first done 95.80*, last done 95.30 MB/s\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_worst_of_many_marks_stands_first_and_gives_the_words() {
    let doubts = [
        (0, "skew", 0.02, 0.01, "two"),
        (1, "skew", 0.09, 0.01, "nine"),
        (2, "skew", 0.03, 0.01, "three"),
        (2, "busy", 0.90, 0.95, "ninety"),
        (1, "busy", 0.50, 0.95, "fifty"),
    ];
    let mut points: Vec<PointRecord> =
        (0..12).map(|index| samples::point(index, "write", 8, 2)).collect();
    for (index, code, value, limit, text) in doubts {
        points[index].marks.push(samples::mark(code, (value, limit, text)));
    }
    for point in &mut points[2..] {
        let text = "no fsync".to_owned();
        point.marks.push(Mark { code: "not-durable".to_owned(), value: None, limit: None, text });
    }
    let expected = [
        "skew (points 1, 2, 0, worst first): nine.",
        "busy (points 1, 2, worst first): fifty.",
        "not-durable (points 2, 3, 4, 5, 6, 7, 8, 9 and 2 more): no fsync.",
    ];
    assert_eq!(trouble::doubts(&complete(points)), expected);
}

#[test]
fn lost_nodes_are_named_with_the_points_of_their_spell() {
    let mut points: Vec<PointRecord> =
        (0..5).map(|index| samples::point(index, "write", 8, 3)).collect();
    points[1].census.lost = vec!["a".to_owned(), "b".to_owned()];
    points[2].census.lost = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    points[4].census.lost = vec!["b".to_owned()];
    points[3].nodes.push(PointNode {
        node: "b".to_owned(),
        status: NodeStatus::Ok,
        bytes: 1,
        ops: 1,
        errors: 0,
        bandwidth: None,
        iops: None,
        cpu_ns: None,
        cpu_system_ns: None,
        cpu_share: None,
        tx_bytes: None,
        rx_bytes: None,
        link_share: None,
        busiest_core_share: None,
        run_delay_share: None,
        cold_start: None,
        samples: Vec::new(),
        remarks: Vec::new(),
    });
    let expected = [
        "a since point 1.",
        "b since point 1, back in point 3.",
        "c since point 2.",
        "b since point 4.",
    ];
    assert_eq!(trouble::lost(&complete(points)), expected);
}

#[test]
fn a_partial_point_is_best_only_where_there_is_no_sound_one() {
    let mut points = vec![samples::point(0, "write", 1, 1), samples::point(1, "write", 8, 2)];
    points[1].status = PointStatus::Partial;
    points[1].bandwidth.common = Some(500e6);
    let best_of = |points: &[PointRecord]| {
        let campaign = complete(points.to_vec());
        stages(&campaign)[0].best.as_ref().map(|best| best.point.index)
    };
    assert_eq!(best_of(&points), Some(0));
    points[0].status = PointStatus::Failed;
    assert_eq!(best_of(&points), Some(1));
    points[1].headline = None;
    assert_eq!(best_of(&points), None);
}

#[test]
fn an_interrupted_campaign_says_so_with_its_message() {
    let mut campaign = complete(vec![samples::point(0, "write", 1, 1)]);
    campaign.campaign.status = CampaignStatus::Interrupted;
    campaign.campaign.message = Some("ended by Ctrl-C.".to_owned());
    assert_eq!(status(&campaign), ["Interrupted after 1 point: ended by Ctrl-C."]);
    campaign.campaign.status = CampaignStatus::Running;
    campaign.campaign.message = None;
    assert_eq!(
        status(&campaign),
        ["Not complete: it still runs, or its coordinator died before the end; 1 point so far."]
    );
}

#[test]
fn mixes_loads_names_damage_and_remarks_are_told() {
    let mut points = vec![samples::mix(0), samples::names(1), samples::point(2, "read", 16, 4)];
    let damage = |node: &str, units| Damage {
        node: node.to_owned(),
        kind: "stale".to_owned(),
        units,
        file: "t00003".to_owned(),
        offset: 1 << 20,
        found: "generation 1 in place of 2".to_owned(),
    };
    let damages = vec![damage("c1", 1_000), damage("c3", 24)];
    points[2].verification = Some(Verification { checked: true, damages });
    points[2].marks.push(samples::mark("damaged", (1_024.0, 0.0, "1024 units")));
    points[2].nodes.push(PointNode {
        node: "c2".to_owned(),
        status: NodeStatus::Ok,
        bytes: 1,
        ops: 1,
        errors: 0,
        bandwidth: None,
        iops: None,
        cpu_ns: None,
        cpu_system_ns: None,
        cpu_share: None,
        tx_bytes: None,
        rx_bytes: None,
        link_share: None,
        busiest_core_share: None,
        run_delay_share: None,
        cold_start: None,
        samples: Vec::new(),
        remarks: vec!["io_uring: no registered buffers".to_owned()],
    });
    let mut campaign = complete(points);
    let stage = "mix".to_owned();
    campaign.load_curves.push(LoadCurve { stage, points: vec![0, 5], ort_ns: 12_345_678.4 });
    let expected = "\
mix: 95.60 MB/s at 16 threads on 4 nodes (common window, 1 write to 3 read, 256 KiB blocks, direct, 1,400 ops/s offered, file per thread); 1 point.
stat: 1,365 ops/s at 16 threads on 4 nodes (common window, tree); 1 point.
read: 95.60 MB/s at 16 threads on 4 nodes (common window, 256 KiB blocks, direct, file per thread); 1 point.

Damaged data:
  stale: 1,024 units of 4 KiB read on 2 nodes in point 2; first on c1 in t00003 at offset 1,048,576: generation 1 in place of 2.

Remarks:
  io_uring: no registered buffers (c2, point 2).

Response over load:
  mix: overall response time 12.3 ms (points 0, 5).

Figures of the best points:
  mix, point 0 (16 threads): common 95.60, span 95.10, thread sum 96.00, first done 95.80, last done 95.30 MB/s
  stat, point 1 (16 threads): common 1,365, span 1,350, thread sum –, first done –, last done – ops/s
  read, point 2 (16 threads): common 95.60, span 95.10, thread sum 96.00, first done 95.80, last done 95.30 MB/s
";
    assert_eq!(summary(&campaign, false), expected);
}

/// 950 of 1000 operations per second, 40 that nobody issued, and what the late ones had to wait.
#[test]
fn an_offered_load_says_what_became_of_it() {
    let mut point = example::full(0);
    let offered = point.offered.as_mut().unwrap();
    (offered.achieved_per_s, offered.not_issued) = (Some(950.0), 40);
    point.latency_ns.response.as_mut().unwrap().p99 = Some(12_000_000);
    assert_eq!(
        load(&point, 1_000.0),
        "1,000 ops/s offered, 95.0 % of it achieved, 40 operations never issued, response p99 12.0 ms"
    );
    point.offered = None;
    assert_eq!(load(&point, 1_000.0), "1,000 ops/s offered");
}
