//! End-to-end: real binaries, real QUIC, real files, compared with numbers that are not ours.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "tests"
)]

mod calibration;
mod check;
mod content;
mod damage;
mod faults;
mod holes;
mod mix;
mod names;
#[expect(dead_code, reason = "the rest is for the tests that run alone")]
mod observer;
#[expect(dead_code, reason = "the rest is for the tests that run alone")]
mod pace;
mod placed;
mod refusals;
mod runs;
mod space;
mod support;
mod tamper;
