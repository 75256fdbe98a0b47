//! The daemon as a coordinator sees it: real QUIC on loopback, real files, and a coordinator that
//! follows a script.

mod life;
mod points;
mod process;
mod support;
