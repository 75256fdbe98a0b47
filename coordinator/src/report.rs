//! Results for people: the table of points and the summary of a campaign.
//!
//! Nothing else formats results as text. Everything here is a pure function of the record, so what
//! is shown when a point ends is what is shown again years later from the stored document. A value
//! that was not measured is shown as [`NOTHING`] and never as 0; no figure is shown of a point that
//! failed, for none of its figures can be trusted. Points are named by their index in the record.

use iofleet_shared::units;

use crate::record::{Five, Headline, Latencies, Latency, PointRecord, PointStatus, Unit};

pub use calibration::calibration;
pub use summary::summary;
pub use table::{Table, table};

mod calibration;
#[cfg(test)]
mod samples;
mod summary;
mod table;

/// Stands for what was not measured.
pub const NOTHING: &str = "–";

/// Whether figures of the point may be shown.
fn trusted(point: &PointRecord) -> bool {
    matches!(point.status, PointStatus::Ok | PointStatus::Partial)
}

/// Which of the five figures stands for the point; none where no figure may be shown.
fn headline(point: &PointRecord) -> Option<Headline> {
    point.headline.filter(|_| trusted(point))
}

/// The headline's part of five figures.
fn headline_of(point: &PointRecord, five: &Five) -> Option<f64> {
    five.of(headline(point)?)
}

/// What the rate that stands for the point counts.
fn unit_of(point: &PointRecord) -> Unit {
    if point.moves_data() { Unit::Bytes } else { Unit::Ops }
}

/// The rate that stands for the point, in its unit.
fn rate_of(point: &PointRecord) -> Option<f64> {
    headline_of(point, five_of(point))
}

/// The five figures in the point's unit.
fn five_of(point: &PointRecord) -> &Five {
    match unit_of(point) {
        Unit::Bytes => &point.bandwidth,
        Unit::Ops => &point.iops,
    }
}

/// A rate with its unit.
fn format_rate(rate: f64, unit: Unit, binary: bool) -> String {
    match unit {
        Unit::Bytes => units::format_rate(rate, binary),
        Unit::Ops => units::format_ops(rate),
    }
}

/// The latencies that a row shows: under an offered load those from the intended start.
fn shown_latency<'a>(point: &PointRecord, latencies: &'a Latencies) -> Option<&'a Latency> {
    let offered = point.params.rate.is_some();
    let latency = if offered { &latencies.response } else { &latencies.service };
    latency.as_ref().filter(|_| trusted(point))
}

fn or_nothing(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOTHING.to_owned())
}

fn rate(bytes_per_s: Option<f64>, binary: bool) -> String {
    or_nothing(bytes_per_s.map(|rate| units::format_rate(rate, binary)))
}

fn duration(ns: Option<u64>) -> String {
    or_nothing(ns.map(units::format_duration_ns))
}

/// `1 node`, `4 nodes`.
fn plural(count: u64, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {what}{s}", units::format_count(count))
}

/// `point 3`, `points 3, 4`, and the number of the others after the first eight.
fn point_list(points: &[u32]) -> String {
    const SHOWN: usize = 8;
    let names: Vec<String> = points.iter().take(SHOWN).map(u32::to_string).collect();
    let s = if points.len() == 1 { "" } else { "s" };
    let others = points.len().saturating_sub(SHOWN);
    let rest = if others > 0 { format!(" and {others} more") } else { String::new() };
    format!("point{s} {}{rest}", names.join(", "))
}
