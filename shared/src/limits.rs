//! Every bound of the system, by name, with assertions about how they fit together.

use std::time::Duration;

/// Port on which a worker listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 7737;
/// I/O threads of one fleet.
pub const THREADS_MAX: u32 = 65_536;
/// Workers of one fleet.
pub const NODES_MAX: u32 = 4_096;
/// Greatest block, in bytes: one operation fits into one call of the kernel.
pub const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// Operations that arrive at one worker in 1000 s: ten thousand millions in a second.
pub const ARRIVALS_PER_1000_S_MAX: u64 = 10_000_000_000_000;
/// Operations in flight of one I/O thread.
pub const DEPTH_MAX: u32 = 4_096;
/// Files of one I/O thread.
pub const FILES_PER_THREAD_MAX: u64 = 1 << 26;
/// Length of a frame's body on the wire.
pub const FRAME_BYTES_MAX: u32 = 16 << 20;
/// Ticks that one frame of a point's tick series carries.
pub const TICKS_PER_FRAME: usize = 65_536;
/// Extents that one I/O thread may be given or may report; more is a coverage too scattered to use.
pub const EXTENTS_PER_THREAD_MAX: usize = 4_096;
/// Length of a tick, the resolution of the common window.
pub const TICK_NS: u64 = 10_000_000;
/// Fewer ticks than this in the common window and `common` is null.
pub const WINDOW_TICKS_MIN: u64 = 10;
/// Shortest interval.
pub const INTERVAL_NS_MIN: u64 = 10_000_000;
/// Largest latency that has a bucket; longer ones are counted apart.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// How often both sides send a heartbeat.
pub const HEARTBEAT: Duration = Duration::from_millis(500);
/// A peer that is silent for this long is named: with a heartbeat before and a look each heartbeat
/// after, within 5 s of its death.
pub const SILENT_AFTER: Duration = Duration::from_secs(4);
/// How long the coordinator waits, past the planned end of a point, for a silent worker.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(15);
/// How long results and a fleet are held for a coordinator that is silent, or for a fleet that is
/// silent as a whole.
pub const LEASE: Duration = Duration::from_secs(30 * 60);
/// quinn's idle time-out: liveness is the heartbeat's business, not the transport's.
pub const QUIC_IDLE: Duration = Duration::from_secs(40 * 60);
/// How long connecting to a worker may take, with its handshake and hello.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a worker may take to answer a control command that does no I/O on the target.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long arming (open, create, allocate, remove stale files) may take before the worker is given up.
pub const ARM_WITHIN: Duration = Duration::from_secs(60);
/// Deadline of one call on the target that runs on a helper thread (the mount may hang).
pub const TARGET_CALL_WITHIN: Duration = Duration::from_secs(30);
/// How long the roll call lasts at most.
pub const ROLL_CALL: Duration = Duration::from_millis(100);
/// Growth of a clock sample's uncertainty with its age, in parts per million.
pub const CLOCK_DRIFT_PPM: u64 = 100;
/// Clock uncertainty above which the coordinator's map is not good enough, in ns.
pub const CLOCK_UNCERTAINTY_NS_MAX: u64 = 1_000_000;
/// After an interrupt: how long storing may take.
pub const STORE_WITHIN: Duration = Duration::from_secs(2);
/// After an interrupt: how long removal may take.
pub const REMOVE_WITHIN: Duration = Duration::from_secs(10);
/// Errors without a success in between after which an I/O thread ends.
pub const ERRORS_IN_A_ROW_MAX: u32 = 100;

/// A duration in ns; `u64::MAX` for what does not fit.
#[must_use]
pub const fn as_ns(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

const _: () = {
    assert!(HEARTBEAT.as_millis() * 4 <= SILENT_AFTER.as_millis());
    assert!(SILENT_AFTER.as_millis() + 2 * HEARTBEAT.as_millis() <= 5_000);
    assert!(SILENT_AFTER.as_millis() < GIVE_UP_AFTER.as_millis());
    assert!(LEASE.as_millis() < QUIC_IDLE.as_millis());
    assert!(INTERVAL_NS_MIN >= TICK_NS);
    // The kernel moves at most 2 GiB less a page in one call, and a page has at most 64 KiB.
    assert!(BLOCK_BYTES_MAX <= (1 << 31) - (64 << 10));
    // A tick is three 16-byte numbers and a frame must hold a whole chunk of them.
    assert!(TICKS_PER_FRAME * 48 < FRAME_BYTES_MAX as usize);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_ns_are_exact_as_far_as_they_fit() {
        assert_eq!(as_ns(Duration::ZERO), 0);
        assert_eq!(as_ns(Duration::new(3, 7)), 3_000_000_007);
        assert_eq!(as_ns(Duration::new(18_446_744_073, 709_551_615)), u64::MAX);
        assert_eq!(as_ns(Duration::new(18_446_744_073, 709_551_614)), u64::MAX - 1);
        assert_eq!(as_ns(Duration::new(18_446_744_073, 709_551_616)), u64::MAX);
        assert_eq!(as_ns(Duration::MAX), u64::MAX);
    }
}
