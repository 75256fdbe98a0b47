//! Real QUIC on loopback: who is let in and who is not, and what a link carries.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod frames;
mod greeting;
mod keys;
mod pki;
mod refusal;
