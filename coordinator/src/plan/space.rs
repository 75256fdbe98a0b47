//! How much the files of a campaign take at one time. Files stay until the campaign ends; a fresh
//! write removes the same thread's file, or the shared file before it, and a tree that is begun
//! the tree before it. Listed files and devices take nothing.

use super::{PlanError, PointPlan};
use crate::scenario::{
    DirSharing,
    coverage::{ByThread, Class},
};

/// Greatest number of bytes, and of files and directories, over all points in order.
pub(super) fn greatest(points: &[PointPlan]) -> Result<(u64, u64), PlanError> {
    let mut own: ByThread<u64> = ByThread::default();
    let (mut shared, mut tree) = (None, (0_u64, 0_u64));
    let (mut bytes_max, mut files_max) = (0_u64, 0_u64);
    for point in points {
        let params = &point.spec.params;
        match Class::of(params.layout) {
            Class::Own if params.fresh => own.set(point.threads, params.file_bytes()),
            Class::Shared if params.fresh => shared = Some(params.file_bytes()),
            Class::Tree => {
                let bytes = if point.numbers.begins_tree { 0 } else { tree.0 };
                tree = (
                    bytes.max(if params.writes() { point.working_set_bytes } else { 0 }),
                    names(point),
                );
            }
            Class::Own | Class::Shared | Class::List | Class::Device => continue,
        }
        let mut bytes = shared.unwrap_or(0_u64).checked_add(tree.0);
        let mut files = u64::from(shared.is_some()).saturating_add(tree.1);
        for (threads, size) in own.runs() {
            files = files.saturating_add(u64::from(threads));
            let run = size.checked_mul(u64::from(threads));
            bytes = bytes.and_then(|bytes| bytes.checked_add(run?));
        }
        let Some(bytes) = bytes else {
            let (stage, threads) = (point.spec.stage.clone(), point.threads);
            return Err(PlanError::TooManyBytes { stage, threads });
        };
        bytes_max = bytes_max.max(bytes);
        files_max = files_max.max(files);
    }
    Ok((bytes_max, files_max))
}

/// Files and directories of a point's tree, its own directory too.
fn names(point: &PointPlan) -> u64 {
    let tree = point.spec.params.tree;
    let threads = u64::from(point.threads);
    let dirs = match tree.sharing {
        DirSharing::Own => (u64::from(tree.dirs) + 1).saturating_mul(threads),
        DirSharing::Shared => u64::from(tree.dirs),
    };
    tree.files_per_thread().saturating_mul(threads).saturating_add(dirs).saturating_add(1)
}
