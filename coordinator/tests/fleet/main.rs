//! End-to-end: real binaries, real QUIC, real files, compared with numbers that are not ours.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "tests"
)]

mod calibration;
mod faults;
mod observer;
mod refusals;
mod runs;
mod support;
