//! How much the files of a campaign take at one time. Files stay until the campaign ends; a fresh
//! write removes the same thread's file, or the shared file before it.

use iofleet_shared::work::{Layout, OpKind};

use super::{PlanError, PointPlan};
use crate::scenario::coverage::ByThread;

/// Greatest number of bytes, and of files, over all points in order.
pub(super) fn greatest(points: &[PointPlan]) -> Result<(u64, u64), PlanError> {
    let mut own: ByThread<u64> = ByThread::new();
    let mut shared: Option<u64> = None;
    let (mut bytes_max, mut files_max) = (0_u64, 0_u64);
    for point in points {
        let params = &point.spec.params;
        if params.op != OpKind::Write || !params.fresh {
            continue;
        }
        match params.layout {
            Layout::FilePerThread => own.set(point.threads, params.file_bytes),
            Layout::SharedFile => shared = Some(params.file_bytes),
        }
        let mut bytes = shared;
        let mut files = u64::from(shared.is_some());
        for (threads, size) in own.runs() {
            files += u64::from(threads);
            let run = size.checked_mul(u64::from(threads));
            bytes = bytes.unwrap_or(0).checked_add(run.unwrap_or(u64::MAX));
            if run.is_none() || bytes.is_none() {
                let (stage, threads) = (point.spec.stage.clone(), point.threads);
                return Err(PlanError::TooManyBytes { stage, threads });
            }
        }
        bytes_max = bytes_max.max(bytes.unwrap_or(0));
        files_max = files_max.max(files);
    }
    Ok((bytes_max, files_max))
}
