//! Commands, one file each.

pub mod plan;
pub mod workload;
