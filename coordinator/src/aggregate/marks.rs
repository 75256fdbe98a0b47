//! Doubts about a point: each with its value, the limit that it broke, and words.

use std::collections::BTreeSet;

use iofleet_shared::{stats::ThreadEnd, work::EngineKind};

use super::{Point, network, to_f64};
use crate::{
    figures::{
        ACHIEVED_MIN, BUSY_SHARE_MAX, BUSY_SHARE_MIN, CLOCK_SHARE_MAX, Durability, OVERLAP_MIN,
        SKEW_SHARE_MAX, THREAD_SUM_MAX,
    },
    record::{Mark, PointRecord},
};

/// Share of the network's stated limit above which something is wrong.
const PAYLOAD_SHARE_MAX: f64 = 1.0;

/// Wire bytes over expected ones below which the links are doubtful.
const WIRE_EXPLAINS_MIN: f64 = 0.9;

/// Wire bytes over payload from which a read was cold.
const COLD_MIN: f64 = 0.98;

/// The kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(pub(super) &'static str);

/// The closed list of codes: [`Marks::add`] takes no other, and a test looks for all of them in
/// `docs/figures.md`.
macro_rules! codes {
    ($($name:ident = $code:literal,)*) => {
        $(pub(super) const $name: Code = Code($code);)*

        /// All codes, the gravest kinds first.
        #[cfg(test)]
        pub(super) const CODES: &[&str] = &[$($code),*];
    };
}

codes! {
    SUMS = "sums",
    DAMAGED = "damaged",
    NO_IO = "no-io",
    PARTIAL = "partial",
    INTERRUPTED = "interrupted",
    STUCK = "stuck",
    ERRORS = "errors",
    NO_WINDOW = "no-window",
    NOT_AN_AGGREGATE = "not-an-aggregate",
    INTERNAL = "internal",
    BUSY = "busy",
    OVERLOADED = "overloaded",
    UNFLUSHED = "unflushed",
    NOT_DURABLE = "not-durable",
    SKEW = "skew",
    CLOCK = "clock",
    HOLES = "holes",
    HOLES_UNKNOWN = "holes-unknown",
    NOT_COLD = "not-cold",
    COLD_UNPROVEN = "cold-unproven",
    CACHED = "cached",
    RE_READ = "re-read",
    REWRITTEN = "rewritten",
    ABOVE_LIMIT = "above-limit",
    LINKS_DOUBTFUL = "links-doubtful",
    SHORT_TRANSFERS = "short-transfers",
    INTERVALS_LATE = "intervals-late",
}

/// All marks of a point, the gravest kinds first.
pub(super) fn of(
    point: &Point<'_>,
    record: &PointRecord,
    durability: Durability,
    sums: Option<&str>,
) -> Vec<Mark> {
    let mut marks = Marks(Vec::new());
    if let Some(flaw) = sums {
        marks.add(SUMS, None, None, format!("the accounts do not agree: {flaw}"));
    }
    marks.damage(record);
    let moves_nothing = point.plan.spec.params.engine.kind == EngineKind::Null;
    if moves_nothing {
        let text = "the engine `null` does no I/O: the figures are the generator's own speed";
        marks.add(NO_IO, None, None, text.to_owned());
    }
    marks.census(point, record);
    marks.window(point, record);
    marks.busy(point, record);
    marks.load(record, point.outcome.interrupted);
    if !moves_nothing {
        marks.durability(record, durability);
    }
    marks.time(point, record);
    if !moves_nothing {
        marks.holes(point);
        marks.reads(point, record);
        marks.links(point, record);
    }
    marks.intervals(point);
    marks.0
}

struct Marks(Vec<Mark>);

impl Marks {
    fn add(&mut self, code: Code, value: Option<f64>, limit: Option<f64>, text: String) {
        self.0.push(Mark { code: code.0.to_owned(), value, limit, text });
    }

    fn census(&mut self, point: &Point<'_>, record: &PointRecord) {
        if !record.census.lost.is_empty() {
            let lost = to_f64(record.census.lost.len() as u64);
            let text = format!(
                "without {}: the figures are of the other nodes",
                record.census.lost.join(", ")
            );
            self.add(PARTIAL, Some(lost), Some(0.0), text);
        }
        if point.outcome.interrupted {
            self.add(INTERRUPTED, None, None, "ended before its time".to_owned());
        }
        let stuck: Vec<String> = point
            .threads()
            .filter(|thread| thread.end == ThreadEnd::Stuck)
            .map(|thread| thread.thread.to_string())
            .collect();
        if !stuck.is_empty() {
            let text = format!("threads given up in an operation: {}", stuck.join(", "));
            self.add(STUCK, Some(to_f64(stuck.len() as u64)), Some(0.0), text);
        }
        let kinds = point.reports.iter().flat_map(|(_, _, report)| &report.errors);
        let by_kind: u64 = kinds.map(|kind| kind.count).sum();
        let by_thread: u64 = point.threads().map(|t| t.errors() + t.ramp_errors()).sum();
        let failed = by_kind.max(by_thread);
        if failed > 0 {
            let text = format!("{failed} operations failed: they are in no figure");
            self.add(ERRORS, Some(to_f64(failed)), Some(0.0), text);
        }
    }

    fn window(&mut self, point: &Point<'_>, record: &PointRecord) {
        let figures = &point.figures;
        if record.ops > 0 && figures.window.is_none() {
            let text = "no window of at least 100 ms in which all threads were busy: `common` is \
                        not known, the headline is `span`";
            self.add(NO_WINDOW, None, None, text.to_owned());
        }
        let overlap = figures.overlap.unwrap_or(1.0);
        // Operations on names move no bytes.
        let five = if record.moves_data() { figures.bandwidth } else { figures.iops };
        let excess = five
            .thread_sum
            .zip(five.span)
            .filter(|(_, span)| *span > 0.0)
            .map(|(sum, span)| sum / span);
        // A single thread is its own aggregate, however long its fsync took.
        let several = record.threads.len() > 1;
        if several && overlap < OVERLAP_MIN {
            let text = format!(
                "threads were all busy for {:.0} % of the time only: `thread_sum` and \
                 `first_done` say more than moved",
                overlap * 100.0
            );
            self.add(NOT_AN_AGGREGATE, Some(overlap), Some(OVERLAP_MIN), text);
        } else if let Some(excess) = excess.filter(|excess| *excess > THREAD_SUM_MAX) {
            let text = format!(
                "`thread_sum` is {:.1} % above what moved from first begin to last end",
                (excess - 1.0) * 100.0
            );
            self.add(NOT_AN_AGGREGATE, Some(excess), Some(THREAD_SUM_MAX), text);
        }
    }

    fn busy(&mut self, point: &Point<'_>, record: &PointRecord) {
        match point.figures.busy_share {
            Some(share) if share > BUSY_SHARE_MAX => {
                let text = "more service time than threads had time: a fault of iofleet";
                self.add(INTERNAL, Some(share), Some(BUSY_SHARE_MAX), text.to_owned());
            }
            // Threads that pause or wait for arrivals are as they should be.
            Some(share)
                if share < BUSY_SHARE_MIN
                    && record.params.think_ns == 0
                    && record.offered.is_none() =>
            {
                let text = format!(
                    "threads were in an operation for {:.1} % of the window: the client's CPUs \
                     or the generator hold the rate",
                    share * 100.0
                );
                self.add(BUSY, Some(share), Some(BUSY_SHARE_MIN), text);
            }
            _ => {}
        }
    }

    fn damage(&mut self, record: &PointRecord) {
        let units = record.damaged_units();
        if units > 0 {
            let text = format!("{units} units of 4 KiB are not as they were written");
            self.add(DAMAGED, Some(to_f64(units)), Some(0.0), text);
        }
    }

    fn load(&mut self, record: &PointRecord, interrupted: bool) {
        let Some(offered) = &record.offered else { return };
        // What was offered to lost nodes, or for the time that was cut off, can't have been achieved.
        let whole = record.census.lost.is_empty() && !interrupted;
        let share = offered.achieved_per_s.map(|achieved| achieved / offered.per_s);
        if let Some(share) = share.filter(|share| whole && *share < ACHIEVED_MIN) {
            let text = format!(
                "{:.1} % of the offered load was achieved: response times grow with the length of \
                 the point, and are of no steady state",
                share * 100.0
            );
            self.add(OVERLOADED, Some(share), Some(ACHIEVED_MIN), text);
        }
    }

    fn durability(&mut self, record: &PointRecord, durability: Durability) {
        match durability {
            Durability::AtEnd if record.bandwidth.common.is_some() => {
                let text = "buffered writes: `common` is before fsync, the page cache's speed; \
                            the headline is `span`, which ends with fsync";
                self.add(UNFLUSHED, record.bandwidth.common, None, text.to_owned());
            }
            Durability::Never => {
                let text = "buffered writes without fsync: nothing says that a byte has left \
                            this machine";
                self.add(NOT_DURABLE, None, None, text.to_owned());
            }
            Durability::AtEnd | Durability::Each => {}
        }
    }

    fn time(&mut self, point: &Point<'_>, record: &PointRecord) {
        let Some(length) = point.figures.reference_ns().map(to_f64).filter(|ns| *ns > 0.0) else {
            return;
        };
        let share = |ns: Option<u64>| ns.map(|ns| to_f64(ns) / length);
        if let Some(skew) = share(record.start_skew_ns.filter(|_| record.offered.is_none()))
            .filter(|skew| *skew > SKEW_SHARE_MAX)
        {
            let text = format!(
                "threads began over {:.1} ms, {:.1} % of the window",
                skew * length / 1e6,
                skew * 100.0
            );
            self.add(SKEW, Some(skew), Some(SKEW_SHARE_MAX), text);
        }
        let uncertainty = share(record.clock_uncertainty_ns).unwrap_or(0.0);
        let residual = share(record.clock_residual_ns).unwrap_or(0.0);
        let greatest = uncertainty.max(residual);
        if greatest > CLOCK_SHARE_MAX {
            let what = if residual > uncertainty {
                "a clock was later seen to be off by"
            } else {
                "clocks are known to"
            };
            let text = format!(
                "{what} {:.2} ms, {:.1} % of the window",
                greatest * length / 1e6,
                greatest * 100.0
            );
            self.add(CLOCK, Some(greatest), Some(CLOCK_SHARE_MAX), text);
        }
    }

    fn reads(&mut self, point: &Point<'_>, record: &PointRecord) {
        let most = point.threads().map(|thread| thread.passes_milli).max().unwrap_or(0);
        let params = &point.plan.spec.params;
        let passes = to_f64(most) / 1000.0;
        let cold = params.cold && record.bytes > 0 && self.cold(point, record);
        if params.reads() && !params.options.direct && record.bytes > 0 && !cold {
            let text = "buffered reads of what this fleet has just written: page caches may have \
                        answered instead of the file system";
            self.add(CACHED, None, None, text.to_owned());
        }
        if params.writes() && !params.options.direct && most > 1000 {
            let text = format!(
                "the same blocks were written up to {passes:.1} times into the page cache: only \
                 the last time had to leave it"
            );
            self.add(REWRITTEN, Some(passes), Some(1.0), text);
        }
        if params.reads() && most > 1000 {
            let text = format!(
                "the same blocks were read up to {passes:.1} times: caches may have answered"
            );
            self.add(RE_READ, Some(passes), Some(1.0), text);
        }
        let share = record.network.payload_share;
        if let Some(share) = share.filter(|share| *share > PAYLOAD_SHARE_MAX) {
            let text = format!(
                "{:.0} % of the network's limit: not all bytes crossed it, or the limit is wrong",
                share * 100.0
            );
            self.add(ABOVE_LIMIT, Some(share), Some(PAYLOAD_SHARE_MAX), text);
        }
        if record.short_transfers > 0 {
            let text = format!(
                "{} transfers were cut short by the kernel and continued",
                record.short_transfers
            );
            self.add(SHORT_TRANSFERS, Some(to_f64(record.short_transfers)), Some(0.0), text);
        }
    }

    fn holes(&mut self, point: &Point<'_>) {
        let checks = || point.reports.iter().filter_map(|(_, _, report)| report.holes.as_ref());
        let files: u64 = checks().map(|check| check.files).sum();
        if let Some(first) = checks().find_map(|check| check.first.as_ref()) {
            let text = format!("{files} parts of files have holes, the first {first}");
            self.add(HOLES, Some(to_f64(files)), Some(0.0), text);
        }
        if checks().any(|check| check.blind) {
            let text = "this mount does not report holes: that all was written is known by the \
                        campaign's own account alone";
            self.add(HOLES_UNKNOWN, None, None, text.to_owned());
        }
    }

    /// Cold is what crossed the wire. True where that is proven.
    fn cold(&mut self, point: &Point<'_>, record: &PointRecord) -> bool {
        let way = record.network.directions.iter().find(|way| way.op == "read");
        let crossed = way.and_then(|way| way.wire_per_payload);
        if let Some(crossed) = crossed {
            if crossed < COLD_MIN {
                let text = format!(
                    "caches were dropped, and of each byte read {crossed:.3} crossed the clients' \
                     links"
                );
                self.add(NOT_COLD, Some(crossed), Some(COLD_MIN), text);
            }
            return crossed >= COLD_MIN;
        }
        let how: BTreeSet<&str> =
            record.nodes.iter().filter_map(|node| node.cold_start.as_deref()).collect();
        let how = how.into_iter().collect::<Vec<_>>().join(", ");
        let machines: BTreeSet<&str> =
            point.nodes.iter().map(|node| node.host.boot_id.as_str()).collect();
        let alone = if machines.len() < 2 {
            "; one machine wrote and reads, and can't be colder than that"
        } else {
            ""
        };
        let text = format!(
            "caches were dropped (by {how}), and no link says that the bytes crossed a network{alone}"
        );
        self.add(COLD_UNPROVEN, None, None, text);
        false
    }

    /// Wire bytes that don't explain the payload. Page caches may, where they are in use; then it is
    /// the links only if another port moved what they did not.
    fn links(&mut self, point: &Point<'_>, record: &PointRecord) {
        let direct = point.plan.spec.params.options.direct;
        for way in &record.network.directions {
            let Some(ratio) = way.wire_per_payload else { continue };
            let ratio = ratio / way.expected_wire_per_payload;
            if ratio >= WIRE_EXPLAINS_MIN {
                continue;
            }
            let others = network::elsewhere(point, to_f64(record.bytes));
            if others.is_empty() && !direct {
                continue;
            }
            let why = if others.is_empty() {
                "no other port moved it either: name the links with `interfaces`".to_owned()
            } else {
                format!("what moved is {}: name it with `interfaces`", others.join(", "))
            };
            let text = format!(
                "the links explain {:.0} % of the payload of {}s; {why}",
                ratio * 100.0,
                way.op
            );
            self.add(LINKS_DOUBTFUL, Some(ratio), Some(WIRE_EXPLAINS_MIN), text);
        }
    }

    fn intervals(&mut self, point: &Point<'_>) {
        let intervals = point.reports.iter().flat_map(|(_, node, _)| &node.intervals);
        let late: BTreeSet<u32> = intervals
            .filter(|interval| interval.latency_intervals == 0)
            .map(|interval| interval.k)
            .collect();
        let late = late.len();
        if late > 0 {
            let text =
                format!("latencies of {late} intervals stand with a later one: a worker was busy");
            self.add(INTERVALS_LATE, Some(to_f64(late as u64)), Some(0.0), text);
        }
    }
}
