//! What comes out of the store is what went in, and what it can't do it says.

use iofleet_shared::{stats::LatencyCounts, work::OpKind};
use proptest::prelude::*;

use super::*;
use crate::record::{CampaignStatus, Headline, IntervalPhase, LatencyKind, example};

fn open() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("campaigns.sqlite")).unwrap();
    (folder, store)
}

fn named(id: &str) -> CampaignRecord {
    let mut record = example::campaign();
    id.clone_into(&mut record.campaign.id);
    record
}

fn store_all(store: &mut Store, record: &CampaignRecord) {
    store.begin(record).unwrap();
    for point in &record.points {
        store.add_point(&record.campaign.id, point, &[]).unwrap();
    }
}

fn histogram(op: Option<OpKind>, kind: LatencyKind, values: &[u64]) -> Histogram {
    let mut counts = LatencyCounts::new();
    values.iter().for_each(|value| counts.record(*value));
    Histogram { op, kind, latency: counts.to_latency() }
}

#[test]
fn a_campaign_comes_back_as_it_was_stored() {
    let (_folder, mut store) = open();
    let mut record = example::campaign();
    record.campaign.status = CampaignStatus::Running;
    (record.campaign.ended, record.campaign.message) = (None, None);
    let repetitions = std::mem::take(&mut record.repetitions);
    store_all(&mut store, &record);
    assert_eq!(store.load("last").unwrap(), record);
    record.campaign.status = CampaignStatus::Interrupted;
    record.campaign.ended = Some("2026-12-01T15:40:00Z".to_owned());
    record.campaign.message = Some("interrupted".to_owned());
    record.repetitions = repetitions;
    record.nodes.clear();
    store.finish(&record).unwrap();
    assert_eq!(store.load(&record.campaign.id).unwrap(), record);
    let read = Store::open_existing(store.path()).unwrap().unwrap();
    assert_eq!(read.load("2026").unwrap(), record);
}

#[test]
fn points_come_back_in_the_order_in_which_they_ran() {
    let (_folder, mut store) = open();
    let mut record = example::campaign();
    record.points = vec![example::full(2), example::skipped(0), example::full(1)];
    store_all(&mut store, &record);
    // Completed later: it stays in its place.
    record.points[0].intervals.truncate(1);
    record.points[0].bytes += 1;
    store.add_point(&record.campaign.id, &record.points[0], &[]).unwrap();
    assert_eq!(store.load("last").unwrap(), record);
}

#[test]
fn a_histogram_is_stored_beside_its_point() {
    let (_folder, mut store) = open();
    let record = example::campaign();
    store.begin(&record).unwrap();
    let id = &record.campaign.id;
    use LatencyKind::{Response, Service};
    let histograms = [
        histogram(None, Service, &[5, 700, u64::MAX]),
        histogram(None, Response, &[9]),
        histogram(Some(OpKind::Write), Service, &[5]),
        histogram(Some(OpKind::Read), Service, &[700, u64::MAX]),
    ];
    store.add_point(id, &record.points[0], &histograms).unwrap();
    store.add_point(id, &record.points[1], &[]).unwrap();
    assert_eq!(store.histograms("last", 0).unwrap(), histograms);
    assert_eq!(store.histograms(id, 1).unwrap(), []);
    store.add_point(id, &record.points[0], &[]).unwrap();
    assert_eq!(store.histograms(id, 0).unwrap(), []);
}

#[test]
fn a_point_is_stored_as_a_whole_or_not_at_all() {
    let (_folder, mut store) = open();
    let mut record = example::campaign();
    let id = record.campaign.id.clone();
    store.begin(&record).unwrap();
    record.points[0].intervals[2].bytes = u64::MAX;
    store.add_point(&id, &record.points[0], &[]).unwrap_err();
    assert!(store.load(&id).unwrap().points.is_empty());
}

#[test]
fn lists_newest_first_with_the_best_that_can_be_trusted() {
    let (_folder, mut store) = open();
    let mut old = named("20261201-000000-aaaa");
    old.points = vec![example::full(0), example::full(1), example::full(2)];
    old.points[1].bandwidth.span = Some(3.0e9);
    old.points[1].headline = Some(Headline::Span);
    old.points[2].bandwidth.common = Some(9.0e9);
    old.points[2].status = crate::record::PointStatus::Failed;
    store_all(&mut store, &old);
    let new = named("20261202-000000-aaaa");
    store.begin(&new).unwrap();
    let lines = store.list().unwrap();
    let expected = CampaignLine {
        id: new.campaign.id,
        started: "2026-12-01T15:30:12Z".to_owned(),
        name: "ramp".to_owned(),
        status: "partial".to_owned(),
        points: 0,
        best: None,
    };
    let old =
        CampaignLine { id: old.campaign.id, points: 3, best: Some(3.0e9), ..expected.clone() };
    assert_eq!(lines, [expected, old]);
}

#[test]
fn ids_may_be_shortened_while_they_say_which() {
    let (_folder, mut store) = open();
    assert!(matches!(store.load("last"), Err(StoreError::Empty { .. })));
    for id in ["20261201-000000-aaaa", "20261201-000000-aaab", "20261202-000000-cccc"] {
        store.begin(&named(id)).unwrap();
    }
    assert_eq!(store.load("last").unwrap().campaign.id, "20261202-000000-cccc");
    assert_eq!(store.load("20261202").unwrap().campaign.id, "20261202-000000-cccc");
    assert_eq!(
        store.load("20261201").unwrap_err().to_string(),
        "\"20261201\" could be each of 20261201-000000-aaab, 20261201-000000-aaaa; give more of \
         its id"
    );
    let unknown = store.load("2025%").unwrap_err().to_string();
    assert!(unknown.starts_with("no campaign \"2025%\" in the results store /"), "{unknown}");
    assert!(unknown.ends_with("`iofleet list` shows all of them"), "{unknown}");
    for second in 0..12 {
        store.begin(&named(&format!("20270101-0000{second:02}-aaaa"))).unwrap();
    }
    let many = store.load("2027").unwrap_err().to_string();
    assert!(many.contains("20270101-000002-aaaa, 2 more; give"), "{many}");
}

#[test]
fn a_campaign_must_begin_once_and_first() {
    let (_folder, mut store) = open();
    let record = example::campaign();
    let missing = store.add_point("x", &record.points[0], &[]).unwrap_err();
    assert!(matches!(missing, StoreError::Unknown { .. }), "{missing}");
    assert!(matches!(store.finish(&record), Err(StoreError::Unknown { .. })));
    store.begin(&record).unwrap();
    let twice = store.begin(&record).unwrap_err().to_string();
    assert!(twice.starts_with("can't write to the results store /"), "{twice}");
}

#[test]
fn a_missing_store_is_not_made_to_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("campaigns.sqlite");
    assert!(Store::open_existing(&path).unwrap().is_none());
    assert!(!path.exists());
    fs::write(&path, "").unwrap();
    assert!(Store::open_existing(&path).unwrap().is_none());
}

#[test]
fn folders_are_made_for_the_default_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/campaigns.sqlite");
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("a/b/campaigns.sqlite: its folder does not exist"), "{error}");
    Store::open_in(&path, true).unwrap();
    assert!(path.exists());
}

#[test]
fn a_newer_store_is_left_alone() {
    let (_folder, store) = open();
    store.connection.pragma_update(None, "user_version", tables::VERSION + 1).unwrap();
    for error in
        [Store::open(store.path()).unwrap_err(), Store::open_existing(store.path()).unwrap_err()]
    {
        assert!(matches!(error, StoreError::Newer { found: 3, known: 2, .. }), "{error}");
    }
    assert_eq!(store.version().unwrap(), 3);
}

/// Takes keys out of a document that documents of version 1 did not have.
fn without(value: &mut serde_json::Value, keys: &[&str]) {
    let object = value.as_object_mut().unwrap();
    for key in keys {
        object.remove(*key).unwrap();
    }
}

fn old_point() -> serde_json::Value {
    let mut point = example::full(0);
    point.intervals.clear();
    let mut document = serde_json::to_value(&point).unwrap();
    without(&mut document, &["offered", "files", "verification"]);
    without(&mut document["by_op"][0], &["bandwidth", "iops"]);
    without(&mut document["nodes"][0], &["remarks"]);
    let params =
        ["ops", "blocks", "options", "depth", "engine_flags", "rate", "think_ns", "verify"];
    without(&mut document["params"], &params);
    document
}

#[test]
fn a_store_of_version_1_is_read_as_it_is_and_migrated_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(tables::FIRST).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    let mut campaign = example::campaign();
    campaign.points.clear();
    let mut campaign = serde_json::to_value(&campaign).unwrap();
    without(&mut campaign, &["load_curves"]);
    without(&mut campaign["repetitions"][0], &["unit"]);
    let insert = "INSERT INTO campaigns VALUES ('c', 'ramp', 'x', 's', 'e', 'partial', '1', ?1)";
    old.execute(insert, [campaign.to_string()]).unwrap();
    let insert = "INSERT INTO points VALUES (1, 'c', 0, 'write', 'mix', 4, 1, 0, 'ok', 1.0, ?1)";
    old.execute(insert, [old_point().to_string()]).unwrap();
    old.execute("INSERT INTO intervals VALUES ('c', 0, 0, 0.0, 1.0, 'ramp', 5, 6, 7, NULL)", [])
        .unwrap();
    let latency = histogram(None, LatencyKind::Service, &[3, 4]).latency;
    old.execute("INSERT INTO histograms VALUES ('c', 0, ?1)", [blob::encode(&latency)]).unwrap();
    drop(old);
    let read = |store: &Store| (store.load("c").unwrap(), store.histograms("c", 0).unwrap());
    let before = read(&Store::open_existing(&path).unwrap().unwrap());
    let store = Store::open(&path).unwrap();
    assert_eq!(store.version().unwrap(), tables::VERSION);
    assert_eq!(read(&store), before);
    let (record, histograms) = before;
    let point = &record.points[0];
    assert_eq!((point.params.depth, point.offered, point.bytes), (1, None, 7_864_320_000));
    let [interval] = &point.intervals[..] else { panic!("one interval") };
    assert_eq!((interval.bytes, interval.ops, interval.errors), (5, 6, 7));
    assert_eq!((interval.phase, interval.by_op.len()), (IntervalPhase::Ramp, 0));
    assert_eq!(histograms, [Histogram { op: None, kind: LatencyKind::Service, latency }]);
}

#[test]
fn what_is_no_store_or_can_not_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    fs::write(&path, "Not a database, and long enough to be seen as none. ".repeat(20)).unwrap();
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(error.contains("other: file is not a database"), "{error}");
    assert!(Store::open(folder.path()).unwrap_err().to_string().starts_with("can't open"));
    // What stops even root: SQLite's journal can't be written where a folder has its name.
    for journal in ["wal", "journal"] {
        let path = folder.path().join(format!("no-{journal}"));
        fs::create_dir(path.with_file_name(format!("no-{journal}-{journal}"))).unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("the results store {}: ", path.display())), "{error}");
    }
}

#[test]
fn local_stores_log_ahead() {
    let (_folder, store) = open();
    let journal: String =
        store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    let local = tables::is_local(store.path());
    assert_eq!(journal, if local { "wal" } else { "delete" });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_number_survives(
        seed in any::<u64>(),
        figure in proptest::option::of(proptest::num::f64::NORMAL | proptest::num::f64::ZERO),
        counts in proptest::collection::vec((0..=i64::MAX as u64, any::<f32>()), 0..20),
        text in ".*",
    ) {
        let (_folder, mut store) = open();
        let mut record = example::campaign();
        let point = &mut record.points[0];
        point.params.seed = seed;
        point.bytes = seed;
        point.passes = figure;
        point.bandwidth.common = figure;
        point.stage = text.clone();
        record.scenario = text;
        point.intervals = (0..)
            .zip(counts)
            .map(|(k, (count, start))| {
                let mut interval = example::interval(k, IntervalPhase::Measure, None);
                interval.bytes = count;
                interval.start_s = f64::from(if start.is_finite() { start } else { 0.1 });
                interval
            })
            .collect();
        store_all(&mut store, &record);
        prop_assert_eq!(store.load("last").unwrap(), record);
    }
}

/// Another process that writes for longer than we wait is named as what stands in the way.
#[test]
fn a_locked_store_is_told_from_a_broken_one() {
    let (_folder, store) = open();
    let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    let error = store.failed("write to", rusqlite::Error::SqliteFailure(busy, None));
    assert!(error.to_string().contains("locked by another process"), "{error}");
    let broken = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    let error = store.failed("read", rusqlite::Error::SqliteFailure(broken, None));
    assert!(matches!(error, StoreError::Sql { .. }), "{error}");
}
