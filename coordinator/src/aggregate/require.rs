//! Whether a campaign reached what its scenario demands. Pure.

use super::to_f64;
use crate::{
    record::{PointRecord, PointStatus, RequirementResult},
    scenario::require::{Bound, Figure, Requirement},
};

/// All demands, in their order. A rate is that of the stage's best point, the mean of its
/// repetitions; a latency is the worst of the stage.
#[must_use]
pub fn requirements(demands: &[Requirement], points: &[PointRecord]) -> Vec<RequirementResult> {
    demands.iter().map(|demand| result(demand, points)).collect()
}

fn result(demand: &Requirement, points: &[PointRecord]) -> RequirementResult {
    let values = by_setting(demand, points);
    let (limit, value, passed) = match demand.bound {
        Bound::Bandwidth(rate) => at_least(rate.bytes_per_s(), &values),
        Bound::Ops(ops) => at_least(to_f64(ops), &values),
        Bound::Latency(time) => {
            let limit = to_f64(time.ns());
            let worst = values.iter().copied().max_by(f64::total_cmp);
            (limit, worst, worst.is_some_and(|worst| worst <= limit))
        }
    };
    RequirementResult { text: demand.to_string(), value, limit, passed }
}

fn at_least(limit: f64, values: &[f64]) -> (f64, Option<f64>, bool) {
    let best = values.iter().copied().max_by(f64::total_cmp);
    (limit, best, best.is_some_and(|best| best >= limit))
}

/// The figure of each of the stage's settings, the mean over repetitions; of sound points alone.
fn by_setting(demand: &Requirement, points: &[PointRecord]) -> Vec<f64> {
    let sound = points.iter().filter(|point| point.status == PointStatus::Ok);
    let of_stage = sound.filter(|point| point.stage == demand.stage && point.errors == 0);
    let mut groups: Vec<(&PointRecord, Vec<f64>)> = Vec::new();
    for point in of_stage {
        let Some(value) = value(demand.figure, point) else { continue };
        let same = |known: &PointRecord| {
            known.params.threads == point.params.threads && known.params.swept == point.params.swept
        };
        match groups.iter_mut().find(|(known, _)| same(known)) {
            Some((_, values)) => values.push(value),
            None => groups.push((point, vec![value])),
        }
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / to_f64(values.len() as u64);
    groups.into_iter().map(|(_, values)| mean(values)).collect()
}

fn value(figure: Figure, point: &PointRecord) -> Option<f64> {
    let service = point.latency_ns.service.as_ref();
    match figure {
        Figure::Common => point.bandwidth.common,
        Figure::Span => point.bandwidth.span,
        Figure::ThreadSum => point.bandwidth.thread_sum,
        Figure::FirstDone => point.bandwidth.first_done,
        Figure::LastDone => point.bandwidth.last_done,
        Figure::Iops => point.iops.of(point.headline?),
        Figure::P50 => service?.p50.map(to_f64),
        Figure::P99 => service?.p99.map(to_f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Swept, example};

    fn point(index: u32, threads: u32, repeat: u32, common: f64, p99: u64) -> PointRecord {
        let mut point =
            PointRecord { status: PointStatus::Ok, errors: 0, repeat, ..example::full(index) };
        "read".clone_into(&mut point.stage);
        point.params.threads = threads;
        point.params.swept = vec![Swept { key: "threads".to_owned(), value: threads.to_string() }];
        point.bandwidth.common = Some(common);
        if let Some(service) = &mut point.latency_ns.service {
            service.p99 = Some(p99);
        }
        point
    }

    fn judged(text: &str, points: &[PointRecord]) -> (Option<f64>, bool) {
        let demand = Requirement::parse(text).unwrap();
        let result = requirements(&[demand], points).remove(0);
        (result.value, result.passed)
    }

    /// Best: two repetitions of 40 and 50, so 45; not 50, and not 10.
    #[test]
    fn a_rate_is_the_best_points_mean() {
        let points = [point(0, 1, 0, 10.0, 5), point(1, 2, 0, 40.0, 5), point(2, 2, 1, 50.0, 5)];
        assert_eq!(judged("read.common >= 45 B/s", &points), (Some(45.0), true));
        assert_eq!(judged("read.common >= 46 B/s", &points), (Some(45.0), false));
    }

    #[test]
    fn a_latency_is_the_worst_of_the_stage() {
        let points = [point(0, 1, 0, 1.0, 2_000), point(1, 2, 0, 1.0, 9_000)];
        assert_eq!(judged("read.p99 <= 9 us", &points), (Some(9_000.0), true));
        assert_eq!(judged("read.p99 <= 8 us", &points), (Some(9_000.0), false));
    }

    #[test]
    fn without_a_sound_point_nothing_is_reached() {
        let mut partial = point(0, 1, 0, 100.0, 1);
        partial.status = PointStatus::Partial;
        let mut errors = point(1, 1, 0, 100.0, 1);
        errors.errors = 1;
        assert_eq!(judged("read.common >= 1 B/s", &[partial, errors]), (None, false));
        assert_eq!(judged("read.p99 <= 1 h", &[]), (None, false));
    }
}
