//! Ramps over threads: their knee and their fit. Pure.

use super::to_f64;
use crate::{
    figures::scaling::{self, Loaded, POINTS_MIN, R2_MIN},
    record::{PointRecord, PointStatus, Scaling, ScalingFit, Swept, Unit},
};

/// All ramps of a campaign, in the order of their first points.
#[must_use]
pub fn scaling(points: &[PointRecord]) -> Vec<Scaling> {
    let mut ramps: Vec<(Key<'_>, Vec<&PointRecord>)> = Vec::new();
    let sound = points.iter().filter(|point| point.status == PointStatus::Ok);
    for point in sound.filter(|point| point.headline.is_some()) {
        let key = Key::of(point);
        match ramps.iter_mut().find(|(known, _)| *known == key) {
            Some((_, ramp)) => ramp.push(point),
            None => ramps.push((key, vec![point])),
        }
    }
    ramps.into_iter().filter_map(|(key, ramp)| of_ramp(&key, &ramp)).collect()
}

/// What the points of a ramp have in common.
#[derive(Debug, PartialEq)]
struct Key<'a> {
    stage: &'a str,
    swept: Vec<&'a Swept>,
}

impl<'a> Key<'a> {
    fn of(point: &'a PointRecord) -> Self {
        let swept = point.params.swept.iter();
        let swept = swept.filter(|swept| !swept.key.starts_with("threads")).collect();
        Self { stage: &point.stage, swept }
    }
}

fn of_ramp(key: &Key<'_>, ramp: &[&PointRecord]) -> Option<Scaling> {
    let points = means(ramp);
    if points.len() < 2 {
        return None;
    }
    let last = ramp.iter().max_by_key(|point| point.params.threads)?;
    let bound = last.verdict.as_ref().is_some_and(|verdict| verdict.code == "network-bound");
    let found = if bound { None } else { scaling::fit(&points) };
    let no_fit = match (&found, bound) {
        (Some(_), _) => None,
        (None, true) => Some("the ramp ended network-bound".to_owned()),
        (None, false) if points.len() < POINTS_MIN => {
            Some(format!("{} numbers of threads, fewer than {POINTS_MIN}", points.len()))
        }
        (None, false) => Some(format!("the law explains less than {R2_MIN} of what was measured")),
    };
    Some(Scaling {
        stage: key.stage.to_owned(),
        swept: key.swept.iter().map(|&swept| swept.clone()).collect(),
        points: ramp.iter().map(|point| point.index).collect(),
        unit: if ramp.iter().all(|point| point.moves_data()) { Unit::Bytes } else { Unit::Ops },
        knee_threads: scaling::knee(&points).map(whole),
        fit: found.map(|fit| ScalingFit {
            peak_threads: fit.peak(),
            lambda: fit.lambda,
            contention: fit.contention,
            coherency: fit.coherency,
            r2: fit.r2,
            residuals: fit.residuals,
        }),
        no_fit,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it was a number of threads"
)]
fn whole(threads: f64) -> u32 {
    threads as u32
}

/// Mean headline by number of threads, over repetitions, in order of threads.
fn means(ramp: &[&PointRecord]) -> Vec<Loaded> {
    let mut threads: Vec<u32> = ramp.iter().map(|point| point.params.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let data = ramp.iter().all(|point| point.moves_data());
    let rate = |point: &&&PointRecord| {
        let headline = point.headline?;
        if data { point.bandwidth.of(headline) } else { point.iops.of(headline) }
    };
    let mean = |count: u32| {
        let of = ramp.iter().filter(|point| point.params.threads == count);
        let rates: Vec<f64> = of.filter_map(|point| rate(&point)).collect();
        let sum: f64 = rates.iter().sum();
        (!rates.is_empty()).then(|| (f64::from(count), sum / to_f64(rates.len() as u64)))
    };
    threads.into_iter().filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Headline, example};

    fn point(threads: u32, rate: f64) -> PointRecord {
        let mut point = PointRecord {
            status: PointStatus::Ok,
            headline: Some(Headline::Common),
            verdict: None,
            ..example::full(threads)
        };
        point.params.threads = threads;
        point.params.swept = vec![Swept { key: "threads".to_owned(), value: threads.to_string() }];
        point.bandwidth.common = Some(rate);
        point
    }

    /// Without any loss: 10 for each thread.
    #[test]
    fn a_ramp_has_its_knee_and_its_fit() {
        let points: Vec<PointRecord> = (0..6).map(|n| point(1 << n, f64::from(10 << n))).collect();
        let [ramp] = &scaling(&points)[..] else { panic!("one ramp") };
        assert_eq!((ramp.knee_threads, ramp.no_fit.as_deref()), (Some(32), None));
        let fit = ramp.fit.as_ref().unwrap();
        assert!((fit.lambda - 10.0).abs() < 1e-6 && fit.contention < 1e-9, "{fit:?}");
        assert_eq!(ramp.points, [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn why_there_is_no_fit_is_said() {
        let few = scaling(&[point(1, 10.0), point(2, 20.0)]);
        assert_eq!(few[0].no_fit.as_deref(), Some("2 numbers of threads, fewer than 6"));
        let mut points: Vec<PointRecord> =
            (0..6).map(|n| point(1 << n, f64::from(10 << n))).collect();
        let mut verdict = example::full(0).verdict.unwrap();
        "network-bound".clone_into(&mut verdict.code);
        points[5].verdict = Some(verdict);
        assert_eq!(scaling(&points)[0].no_fit.as_deref(), Some("the ramp ended network-bound"));
        assert!(scaling(&points[..1]).is_empty());
    }

    /// 10 and 30 with two threads are 20.
    #[test]
    fn repetitions_count_by_their_mean() {
        let points = [point(2, 10.0), point(2, 30.0), point(1, 10.0)];
        let refs: Vec<&PointRecord> = points.iter().collect();
        assert_eq!(means(&refs), [(1.0, 10.0), (2.0, 20.0)]);
    }
}
