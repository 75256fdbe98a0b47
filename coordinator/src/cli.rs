//! Stub.

pub mod keys;
