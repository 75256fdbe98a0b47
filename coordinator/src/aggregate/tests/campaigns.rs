//! What is said of several points together, and what stands around them.

use super::*;

/// Points of one stage with given headlines and figures.
fn repeated(points: &[(u32, Headline, f64, f64)]) -> Vec<PointRecord> {
    let record = assembled(&two_nodes(), |_, _| ());
    let point = |(index, headline, common, span): &(u32, Headline, f64, f64)| PointRecord {
        index: *index,
        headline: Some(*headline),
        bandwidth: Five { common: Some(*common), span: Some(*span), ..Five::default() },
        ..record.clone()
    };
    points.iter().map(point).collect()
}

#[test]
fn repetitions_by_hand() {
    use Headline::{Common, Span};
    let mut points = repeated(&[
        (0, Common, 8.0, 1.0),
        (2, Common, 10.0, 1.0),
        (3, Common, 12.0, 1.0),
        (5, Common, 14.0, 1.0),
        (7, Common, 16.0, 1.0),
        (8, Common, 99.0, 9.0),
        (9, Common, 99.0, 9.0),
        (10, Common, 99.0, 9.0),
    ]);
    points[5].status = PointStatus::Partial;
    points[6].stage = "read".to_owned();
    points[7].params.swept[0].value = "4".to_owned();
    // Mean 12, squares 16 + 4 + 0 + 4 + 16 = 40, stddev √10, t(4) = 2.776445; a single point and
    // one that is not `ok` have no statistics.
    let [one] = &repetitions(&points)[..] else { panic!("one group") };
    assert_eq!((one.stage.as_str(), &one.points[..]), ("write", &[0, 2, 3, 5, 7][..]));
    assert_eq!((one.mean, one.stddev), (12.0, 10_f64.sqrt()));
    assert!((one.ci95 - 2.776_445_105 * 2_f64.sqrt()).abs() < 1e-8);
    // Where the headlines differ, `span` is compared.
    let mixed = repetitions(&repeated(&[(0, Common, 50.0, 3.0), (1, Span, 60.0, 5.0)]));
    assert_eq!((mixed[0].mean, mixed[0].stddev), (4.0, 2_f64.sqrt()));
    assert_eq!((one.headline, mixed[0].headline), (Common, Span));
}

/// A point on a curve: index, offered, achieved, mean response in ns.
fn loaded(index: u32, per_s: f64, achieved: f64, response_ns: f64) -> PointRecord {
    let mut record = assembled(&two_nodes(), |_, _| ());
    record.index = index;
    record.params.rate = Some(record::Rate { per_s, exponential: false });
    record.params.swept =
        vec![record::Swept { key: "rate".to_owned(), value: format!("{per_s}/s") }];
    record.offered = Some(record::Offered {
        per_s,
        achieved_per_s: Some(achieved),
        arrived: 0,
        not_issued: 0,
        backlog_max: 0,
    });
    let service = record.latency_ns.service.unwrap();
    record.latency_ns.response = Some(LatencySummary { mean: response_ns, ..service });
    record
}

#[test]
fn points_of_one_stage_at_several_loads_are_a_curve() {
    let mut points = vec![
        loaded(0, 100.0, 100.0, 2.0),
        loaded(1, 300.0, 300.0, 4.0),
        loaded(2, 500.0, 400.0, 99.0),
        loaded(3, 100.0, 100.0, 5.0),
        loaded(4, 300.0, 300.0, 6.0),
    ];
    let text = String::new();
    let (code, value, limit) = ("overloaded".to_owned(), Some(0.8), Some(0.95));
    points[2].marks.push(record::Mark { code, value, limit, text });
    for point in &mut points[3..] {
        point.params.swept.push(record::Swept { key: "block".to_owned(), value: "1".to_owned() });
    }
    let curves = load_curves(&points);
    let of = |curve: &record::LoadCurve| (curve.points.clone(), curve.ort_ns);
    // [0, 100] flat at 2 and from there to 4 at 300; 5 and 6 likewise.
    let expected = [(vec![0, 1], (200.0 + 600.0) / 300.0), (vec![3, 4], (500.0 + 1_100.0) / 300.0)];
    assert_eq!(curves.iter().map(of).collect::<Vec<_>>(), expected);
    // The same load twice is no curve.
    assert!(load_curves(&[points[0].clone(), points[0].clone()]).is_empty());
}

#[test]
fn what_stands_around_the_points() {
    let plan = plan(&two_nodes());
    let started = outcome(&plan, &two_nodes()).t0_wall;
    let record = campaign("id", &fixture::scenario(&[plan]), "head", started);
    assert_eq!(record.campaign.started, "2026-12-01T15:30:12.345Z");
    assert_eq!(
        (record.campaign.name.as_str(), record.campaign.host.as_str()),
        ("scripted", "head")
    );
    assert_eq!(record.campaign.scenario_id, "ab".repeat(32));
    assert_eq!(record.scenario, "name = \"scripted\"\n");
    let node = crate::aggregate::node(&ready(2)[1]);
    assert_eq!((node.node.as_str(), node.hostname.as_str()), ("client02", "client02.example"));
    assert_eq!((node.clock.offset_ns, node.clock.uncertainty_ns), (180_000_000_000, 40_001));
    assert_eq!((node.clock.resolution_ns, node.clock.cost_ns), (1, 12));
    assert_eq!((node.target.free_bytes, node.target.total_bytes), (1 << 40, 1 << 42));
    assert_eq!(node.target.direct_alignment_bytes, Some(4_096));
    assert_eq!(node.target.direct_alignment_source.as_deref(), Some("statx"));
    assert_eq!((node.cpus, node.memory_bytes, node.net_namespace), (8, 64 << 30, 4_026_531_840));
}
