//! Scripted operations for tests: their ticks, counted here in the plainest way.

use iofleet_shared::{
    limits::TICK_NS,
    stats::{BYTE_UNITS, OP_UNITS, Tick},
};

use crate::figures::ThreadTimes;

/// One operation at scripted times, ns after T0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Op {
    pub(crate) issue_ns: i64,
    pub(crate) done_ns: i64,
    /// None: it failed.
    pub(crate) bytes: Option<u64>,
}

/// Successful operations at times in ms.
pub(crate) fn ops_ms(times: &[(i64, i64)], bytes: u64) -> Vec<Op> {
    times
        .iter()
        .map(|(issue, done)| Op {
            issue_ns: issue * 1_000_000,
            done_ns: done * 1_000_000,
            bytes: Some(bytes),
        })
        .collect()
}

/// The spread series of operations.
pub(crate) fn spread(ops: &[Op]) -> Vec<Tick> {
    let mut ticks = Vec::new();
    for op in ops {
        let Some(bytes) = op.bytes else { continue };
        let (issue, done) =
            (u64::try_from(op.issue_ns).unwrap(), u64::try_from(op.done_ns).unwrap());
        let (first, last) = (issue / TICK_NS, (done.max(issue + 1) - 1) / TICK_NS);
        let length = u128::from((done - issue).max(1));
        let (mut bytes_left, mut ops_left) = (bytes * BYTE_UNITS, OP_UNITS);
        ticks.resize(ticks.len().max(usize::try_from(last).unwrap() + 1), Tick::default());
        for tick in first..=last {
            let inside = done.min((tick + 1) * TICK_NS) - issue.max(tick * TICK_NS);
            let share = |whole: u64| u64::try_from(u128::from(whole) * u128::from(inside) / length);
            let (mut b, mut o) = (share(bytes * BYTE_UNITS).unwrap(), share(OP_UNITS).unwrap());
            if tick == last {
                (b, o) = (bytes_left, ops_left);
            }
            bytes_left -= b;
            ops_left -= o;
            ticks[usize::try_from(tick).unwrap()].merge(Tick { bytes: b, ops: o, busy_ns: inside });
        }
    }
    ticks
}

/// A thread's own account of its operations; those that completed before `ramp_ns` are warm-up.
pub(crate) fn times(ops: &[Op], ramp_ns: i64) -> ThreadTimes {
    let done: Vec<&Op> = ops.iter().filter(|op| op.bytes.is_some()).collect();
    let measured = || done.iter().filter(|op| op.done_ns >= ramp_ns);
    let end = done.iter().map(|op| op.done_ns).max();
    ThreadTimes {
        bytes: measured().filter_map(|op| op.bytes).sum(),
        ops: measured().count() as u64,
        first_issue_ns: ops.iter().map(|op| op.issue_ns).min(),
        begin_ns: begin(ops, ramp_ns),
        ended_ns: end,
        busy_begin_ns: begin(ops, ramp_ns),
        busy_end_ns: end,
        has_work: true,
    }
}

/// The first issue; after a warm-up, the issue of what was in flight at its end, else that end.
fn begin(ops: &[Op], ramp_ns: i64) -> Option<i64> {
    let first = ops.iter().map(|op| op.issue_ns).min()?;
    let in_flight = |op: &&Op| op.bytes.is_some() && op.issue_ns < ramp_ns && ramp_ns <= op.done_ns;
    let counts = ops.iter().find(in_flight).map_or(ramp_ns, |op| op.issue_ns);
    Some(first.max(counts))
}
