//! Making a ring: the best that this kernel and this process can have, or why there is none.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, RawFd},
    sync::Arc,
};

use io_uring::{IoUring, Probe, opcode};
use iofleet_shared::work::EngineSpec;
use rustix::fs::{OFlags, fcntl_getfl};

use super::super::{
    EngineError, QueueSetup,
    slots::{Ask, AskKind, Slots},
};

/// Where the administrator switches `io_uring` off.
const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// Setup flags that lower the cost, newest first. Kernels that have one have those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Flag {
    /// 6.6: no array of indices between the queue and its entries.
    NoSqarray,
    /// 6.1: completions are handled when the thread asks for them, never in between.
    DeferTaskrun,
    /// 6.0: only this thread submits, and no lock is needed.
    SingleIssuer,
    /// 5.19: completions do not interrupt the thread.
    CoopTaskrun,
    /// 5.18: one bad submission does not hold up the others.
    SubmitAll,
    /// None of them.
    None,
}

const LADDER: [Flag; 6] = [
    Flag::NoSqarray,
    Flag::DeferTaskrun,
    Flag::SingleIssuer,
    Flag::CoopTaskrun,
    Flag::SubmitAll,
    Flag::None,
];

/// Whether this process may use `io_uring` so, and the kernel has all of it that is needed.
///
/// # Errors
/// When not, in words that say what would be right.
pub fn probe(engine: &EngineSpec) -> Result<(), EngineError> {
    check_operations(&open(engine.depth, engine.sqpoll, engine.iopoll)?)
}

/// Whether the options agree with each other and with the files.
pub(super) fn check(setup: &QueueSetup) -> Result<(), EngineError> {
    if !setup.iopoll {
        return Ok(());
    }
    if setup.fsync_each {
        return Err(EngineError::IopollFsync);
    }
    let direct =
        |file: &Arc<File>| fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::DIRECT));
    match setup.files.iter().position(|file| !direct(file)) {
        Some(file) => Err(EngineError::IopollBuffered { file }),
        None => Ok(()),
    }
}

/// A ring for `depth` operations in flight.
pub(super) fn open(depth: u32, sqpoll: bool, iopoll: bool) -> Result<IoUring, EngineError> {
    // A kernel thread shows completions before it gives back the entries of their submissions.
    let entries = if sqpoll { depth.saturating_mul(2) } else { depth };
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for newest in LADDER {
        match build(entries, newest, sqpoll, iopoll) {
            Ok(ring) => return Ok(ring),
            Err(error) => refused = error,
        }
        if refused.raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    if sqpoll && refused.raw_os_error() == Some(libc::EPERM) && open(1, false, false).is_ok() {
        return Err(EngineError::Sqpoll { source: refused });
    }
    Err(refusal(refused, depth, std::fs::read_to_string(DISABLED).ok().as_deref()))
}

/// A ring with the flag `newest` and all that are older.
fn build(entries: u32, newest: Flag, sqpoll: bool, iopoll: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    if newest <= Flag::NoSqarray {
        builder.setup_no_sqarray();
    }
    if newest <= Flag::SingleIssuer {
        builder.setup_single_issuer();
    }
    if newest <= Flag::SubmitAll {
        builder.setup_submit_all();
    }
    if sqpoll {
        // Zero: as long as the kernel holds right, a second. It excludes the other two.
        builder.setup_sqpoll(0);
    } else {
        if newest <= Flag::DeferTaskrun {
            builder.setup_defer_taskrun();
        }
        if newest <= Flag::CoopTaskrun {
            builder.setup_coop_taskrun();
        }
    }
    if iopoll {
        builder.setup_iopoll();
    }
    builder.build(entries)
}

/// Why there is no ring. `disabled` is what the kernel's setting says, where it has one.
pub(super) fn refusal(source: io::Error, depth: u32, disabled: Option<&str>) -> EngineError {
    let setting = disabled.map_or("-", str::trim);
    match (source.raw_os_error(), setting) {
        (Some(libc::EPERM), "2") => EngineError::Disabled,
        (Some(libc::EPERM), "1") => EngineError::Privileged,
        (Some(libc::EPERM | libc::EACCES), _) => {
            EngineError::Forbidden { setting: setting.to_owned() }
        }
        (Some(libc::ENOSYS), _) => EngineError::NoUring,
        (Some(libc::ENOMEM), _) => EngineError::Locked { depth },
        _ => EngineError::Call { call: "io_uring_setup", source },
    }
}

/// Whether the kernel knows all operations that are used, and lets this process use them.
pub(super) fn check_operations(ring: &IoUring) -> Result<(), EngineError> {
    const NEEDED: [(u8, &str); 5] = [
        (opcode::Read::CODE, "IORING_OP_READ"),
        (opcode::Write::CODE, "IORING_OP_WRITE"),
        (opcode::ReadFixed::CODE, "IORING_OP_READ_FIXED"),
        (opcode::WriteFixed::CODE, "IORING_OP_WRITE_FIXED"),
        (opcode::Fsync::CODE, "IORING_OP_FSYNC"),
    ];
    let mut known = Probe::new();
    match ring.submitter().register_probe(&mut known) {
        Ok(()) => {}
        Err(source) if source.raw_os_error() == Some(libc::EINVAL) => {
            return Err(EngineError::NoOperation { operation: "IORING_REGISTER_PROBE" });
        }
        Err(source) => return Err(EngineError::Call { call: "io_uring_register", source }),
    }
    // With nothing to be done: a filter may deny this call alone.
    ring.submit().map_err(|source| EngineError::Call { call: "io_uring_enter", source })?;
    match NEEDED.iter().find(|(code, _)| !known.is_supported(*code)) {
        Some((_, operation)) => Err(EngineError::NoOperation { operation }),
        None => Ok(()),
    }
}

/// Registers each slot's buffer by the slot's number; whether the kernel took them.
pub(super) fn register_buffers(ring: &IoUring, slots: &Slots) -> bool {
    let buffers: Vec<libc::iovec> = (0..slots.depth())
        .map(|slot| libc::iovec {
            iov_base: slots.start(slot).cast(),
            iov_len: slots.buffer_bytes(),
        })
        .collect();
    // SAFETY: the buffers are mapped until no operation is in flight any more, and the kernel
    // holds their pages as long as they are registered.
    unsafe { ring.submitter().register_buffers(&buffers) }.is_ok()
}

/// Registers the files by their places; whether the kernel took them.
pub(super) fn register_files(ring: &IoUring, files: &[Arc<File>]) -> bool {
    let files: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&files).is_ok()
}

/// The least that can be asked of the first file without changing it: to read its first block, or
/// to write nothing where it can't be read.
pub(super) fn least(slots: &Slots, alignment: usize) -> Option<Ask> {
    let flags = fcntl_getfl(slots.files().first()?).ok()?;
    let readable = !flags.contains(OFlags::WRONLY);
    let block = alignment.max(512).min(slots.buffer_bytes());
    let (kind, bytes) =
        if readable { (AskKind::Read, u32::try_from(block).ok()?) } else { (AskKind::Write, 0) };
    Some(Ask { kind, file: 0, buffer: slots.start(0), bytes, offset: 0 })
}
