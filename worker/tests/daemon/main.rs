//! The daemon as a coordinator sees it: real QUIC on loopback, real files, and a coordinator that
//! follows a script.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what the tests share fails like a test"
)]

#[path = "../../src/fixture.rs"]
mod fixture;
mod life;
mod points;
mod process;
mod support;
