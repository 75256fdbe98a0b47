//! One row a point, printed as points end: the widths are known before the first one.

use iofleet_shared::units;

use super::{duration, headline, headline_of, or_nothing, rate, shown_latency, trusted};
use crate::record::{ByOp, CampaignRecord, PointRecord, PointStatus};

/// Swept keys that have a column of their own under the same name in every table.
const ALWAYS_SHOWN: [&str; 2] = ["threads", "nodes"];
const GAP: usize = 2;
const SWEPT_WIDTH: usize = 7;

/// Rows for points, aligned with each other and with a header.
///
/// Columns have fixed widths. A cell that is wider than its column takes the room from the padding
/// of those that follow, so that the row is aligned again as soon as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    columns: Vec<Column>,
    swept: Vec<String>,
    binary: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    title: String,
    width: usize,
    left: bool,
}

impl Table {
    /// A table for points that differ in `swept_keys`; `binary` shows GiB/s instead of GB/s.
    #[must_use]
    pub fn new(swept_keys: &[String], binary: bool) -> Self {
        let swept: Vec<String> = swept_keys
            .iter()
            .filter(|key| !ALWAYS_SHOWN.contains(&key.as_str()))
            .cloned()
            .collect();
        let mut columns = vec![
            Column::right("point", 5),
            Column::left("stage", 5),
            Column::right("threads", 7),
            Column::right("nodes", 5),
        ];
        let width = |key: &String| key.chars().count().max(SWEPT_WIDTH);
        columns.extend(swept.iter().map(|key| Column::right(key, width(key))));
        columns.extend([
            Column::right("bandwidth", if binary { 12 } else { 11 }),
            Column::left("of", 6),
            Column::right("ops/s", 9),
            Column::right("p50", 7),
            Column::right("p99", 7),
            Column::right("max", 7),
            Column::right("skew", 7),
            Column::left("marks", 0),
        ]);
        Self { columns, swept, binary }
    }

    /// The titles, without a newline.
    #[must_use]
    pub fn header(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        self.line(&titles)
    }

    /// One point, and of a mix an indented line for each kind of operation, without a newline at the
    /// end. Bandwidth and ops/s are of the figure that `of` names, the latencies are service times or,
    /// where `marks` says `response`, response times, and `marks` begins with the status where it is
    /// not `ok`.
    #[must_use]
    pub fn row(&self, point: &PointRecord) -> String {
        let params = &point.params;
        let mut cells = vec![
            point.index.to_string(),
            point.stage.clone(),
            params.threads.to_string(),
            of_planned(point.census.reported.into(), params.nodes.into(), point),
        ];
        cells.extend(self.swept.iter().map(|key| {
            let swept = params.swept.iter().find(|swept| swept.key == *key);
            or_nothing(swept.map(|swept| swept.value.clone()))
        }));
        let latency = shown_latency(point, &point.latency_ns);
        let bandwidth = headline_of(point, &point.bandwidth).filter(|_| point.moves_data());
        cells.extend([
            rate(bandwidth, self.binary),
            or_nothing(headline(point).map(|headline| headline.word().to_owned())),
            ops(headline_of(point, &point.iops)),
            duration(latency.and_then(|latency| latency.p50)),
            duration(latency.and_then(|latency| latency.p99)),
            duration(latency.map(|latency| latency.max)),
            duration(point.start_skew_ns.filter(|_| trusted(point))),
            marks(point),
        ]);
        let mut lines = vec![self.line(&cells)];
        if point.by_op.len() > 1 {
            lines.extend(point.by_op.iter().map(|by_op| self.kind(point, by_op)));
        }
        lines.join("\n")
    }

    /// One kind of operation of a mix.
    fn kind(&self, point: &PointRecord, by_op: &ByOp) -> String {
        let of = headline(point);
        let data = by_op.op == "write" || by_op.op == "read";
        let bandwidth = of.and_then(|headline| by_op.bandwidth.of(headline)).filter(|_| data);
        let latency = shown_latency(point, &by_op.latency_ns);
        let mut cells = vec![String::new(), format!("  {}", by_op.op)];
        cells.resize(cells.len() + 2 + self.swept.len(), String::new());
        cells.extend([
            rate(bandwidth, self.binary),
            String::new(),
            ops(of.and_then(|headline| by_op.iops.of(headline))),
            duration(latency.and_then(|latency| latency.p50)),
            duration(latency.and_then(|latency| latency.p99)),
            duration(latency.map(|latency| latency.max)),
        ]);
        self.line(&cells)
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        let (mut used, mut end) = (0_usize, 0_usize);
        for (place, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            let gap = if place == 0 { 0 } else { GAP };
            let begin = end + gap;
            end = begin + column.width;
            let length = cell.chars().count();
            let wanted = if column.left { begin } else { end.saturating_sub(length) };
            let least = if place == 0 { 0 } else { used + 1 };
            let at = wanted.max(least);
            line.extend(std::iter::repeat_n(' ', at - used));
            line.push_str(cell);
            used = at + length;
        }
        line.trim_end().to_owned()
    }
}

impl Column {
    fn right(title: &str, width: usize) -> Self {
        Self { title: title.to_owned(), width, left: false }
    }

    fn left(title: &str, width: usize) -> Self {
        Self { title: title.to_owned(), width, left: true }
    }
}

/// Header and all rows of a campaign, each ended by a newline.
#[must_use]
pub fn table(campaign: &CampaignRecord, binary: bool) -> String {
    let mut keys: Vec<String> = Vec::new();
    for swept in campaign.points.iter().flat_map(|point| &point.params.swept) {
        if !keys.contains(&swept.key) {
            keys.push(swept.key.clone());
        }
    }
    let table = Table::new(&keys, binary);
    let mut text = table.header() + "\n";
    for point in &campaign.points {
        text.push_str(&table.row(point));
        text.push('\n');
    }
    text
}

/// `4`, or `3/4` where fewer took part than were to.
fn of_planned(reported: u64, planned: u64, point: &PointRecord) -> String {
    if point.status == PointStatus::Partial && reported != planned {
        format!("{reported}/{planned}")
    } else {
        planned.to_string()
    }
}

fn ops(per_s: Option<f64>) -> String {
    let ops = per_s.map(units::format_ops);
    or_nothing(ops.map(|ops| ops.trim_end_matches(" ops/s").to_owned()))
}

fn marks(point: &PointRecord) -> String {
    let status = (point.status != PointStatus::Ok).then(|| point.status.word());
    let response = point.params.rate.filter(|_| trusted(point)).map(|_| "response");
    let mut codes: Vec<&str> = status.into_iter().chain(response).collect();
    for mark in &point.marks {
        if !codes.contains(&mark.code.as_str()) {
            codes.push(&mark.code);
        }
    }
    codes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    const CAMPAIGN: &str = "\
point  stage  threads  nodes    block    bandwidth  of          ops/s      p50      p99      max     skew  marks
    0  write        1      1  256 KiB   12.50 MB/s  common       47.7  20.1 ms        –  31.0 ms     0 ns
    1  write        4      2  256 KiB   48.00 MB/s  span          183  20.1 ms  29.0 ms  31.0 ms  1.20 ms  not-an-aggregate
    2  write       16      4  256 KiB   95.60 MB/s  common      1,365  20.1 ms  29.0 ms  31.0 ms  1.20 ms
    3  write       32    3/4  256 KiB   71.00 MB/s  common      1,084  20.1 ms  29.0 ms  31.0 ms  1.20 ms  partial, errors
    4  read         1      1  256 KiB            –  –               –        –        –        –        –  failed, sums
    5  read        16      4  256 KiB            –  –               –        –        –        –        –  skipped
";

    #[test]
    fn a_row_a_point_and_a_dash_for_what_was_not_measured() {
        assert_eq!(table(&samples::campaign(), false), CAMPAIGN);
    }

    #[test]
    fn binary_units_where_asked_for() {
        let mut point = samples::point(7, "write", 16, 4);
        point.bandwidth.common = Some(1024.0 * 1024.0 * 1024.0 * 1.5);
        let table = Table::new(&["threads".to_owned()], true);
        let expected = "\
point  stage  threads  nodes     bandwidth  of          ops/s      p50      p99      max     skew  marks
    7  write       16      4    1.50 GiB/s  common      1,365  20.1 ms  29.0 ms  31.0 ms  1.20 ms";
        assert_eq!(format!("{}\n{}", table.header(), table.row(&point)), expected);
    }

    #[test]
    fn a_row_is_aligned_again_after_a_cell_that_is_too_wide() {
        let point = samples::point(7, "read-again", 16, 4);
        let table = Table::new(&[], false);
        let expected = "\
point  stage  threads  nodes    bandwidth  of          ops/s      p50      p99      max     skew  marks
    7  read-again  16      4   95.60 MB/s  common      1,365  20.1 ms  29.0 ms  31.0 ms  1.20 ms";
        assert_eq!(format!("{}\n{}", table.header(), table.row(&point)), expected);
    }

    #[test]
    fn a_mix_has_a_line_for_each_kind_and_names_have_no_bandwidth() {
        let table = Table::new(&["rate".to_owned()], false);
        let rows = [table.header(), table.row(&samples::mix(3)), table.row(&samples::names(4))];
        let expected = "\
point  stage  threads  nodes     rate    bandwidth  of          ops/s      p50      p99      max     skew  marks
    3  mix         16      4        –   95.60 MB/s  common      1,365  40.0 ms  29.0 ms  31.0 ms  1.20 ms  response
         write                          23.90 MB/s                341  60.0 ms  29.0 ms  31.0 ms
         read                           71.70 MB/s              1,024  35.0 ms  29.0 ms  31.0 ms
    4  stat        16      4        –            –  common      1,365  20.1 ms  29.0 ms  31.0 ms  1.20 ms";
        assert_eq!(rows.join("\n"), expected);
        assert!(rows.iter().flat_map(|row| row.lines()).all(|line| line.chars().count() <= 120));
    }

    #[test]
    fn a_measured_zero_is_no_dash() {
        let mut point = samples::point(0, "write", 1, 1);
        point.bandwidth.common = Some(0.0);
        point.iops.common = None;
        point.latency_ns.service = None;
        point.start_skew_ns = None;
        let expected = "    0  write        1      1        0 B/s  common          –        –        –        –        –";
        assert_eq!(Table::new(&[], false).row(&point), expected);
    }
}
