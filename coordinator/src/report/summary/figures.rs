//! The five figures of the best points: what other tools would have said of them.

use super::Stage;
use crate::{
    record::PointRecord,
    report::{NOTHING, five_of, format_rate, or_nothing, plural, unit_of},
};

const NOT_AN_AGGREGATE: &str = "not-an-aggregate";

/// One line a stage, and what the star means where there is one.
pub(super) fn lines(stages: &[Stage<'_>], binary: bool) -> Vec<String> {
    let best = stages.iter().filter_map(|stage| stage.best.as_ref());
    let mut lines: Vec<String> = best.map(|best| line(best.point, binary)).collect();
    if lines.iter().any(|line| line.contains('*')) {
        lines.push("* not an aggregate: it may say more than moved".to_owned());
    }
    lines
}

fn line(point: &PointRecord, binary: bool) -> String {
    let (five, unit) = (five_of(point), unit_of(point));
    let (sum_star, first_star) = stars(point);
    let figures = [
        ("common", five.common, false),
        ("span", five.span, false),
        ("thread sum", five.thread_sum, sum_star),
        ("first done", five.first_done, first_star),
        ("last done", five.last_done, false),
    ];
    let shown = |value: Option<f64>| or_nothing(value.map(|rate| format_rate(rate, unit, binary)));
    let values = figures.map(|(_, value, _)| shown(value));
    let units = || values.iter().filter_map(|value| value.split_once(' ')).map(|(_, unit)| unit);
    // Told once at the end where it is the same for all.
    let shared_unit = units().next().filter(|first| units().all(|unit| unit == *first));
    let words = figures.iter().zip(&values).map(|((name, _, star), value)| {
        let shown = match value.split_once(' ') {
            Some((number, _)) if shared_unit.is_some() => number,
            _ => value,
        };
        let star = if *star && shown != NOTHING { "*" } else { "" };
        format!("{name} {shown}{star}")
    });
    let words: Vec<String> = words.collect();
    let unit = shared_unit.map_or_else(String::new, |unit| format!(" {unit}"));
    format!(
        "{}, point {} ({}): {}{unit}",
        point.stage,
        point.index,
        plural(point.params.threads.into(), "thread"),
        words.join(", ")
    )
}

/// Whether `thread_sum` and `first_done` are no aggregates. Where the overlap is too small (value
/// below its limit) neither is; where only the sum stands too high, only that.
fn stars(point: &PointRecord) -> (bool, bool) {
    let marks = || point.marks.iter().filter(|mark| mark.code == NOT_AN_AGGREGATE);
    let too_high = |value: Option<f64>, limit: Option<f64>| {
        value.zip(limit).is_some_and(|(value, limit)| value > limit)
    };
    (marks().next().is_some(), marks().any(|mark| !too_high(mark.value, mark.limit)))
}
