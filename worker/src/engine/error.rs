//! Why an engine can't be used as asked, in words that say what would be right.

use std::io;

/// An engine that can't be armed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// More or fewer operations in flight than a queue can have.
    #[error("engine.depth {depth} must lie between 1 and {most}")]
    Depth {
        /// As asked for.
        depth: u32,
        /// The most that there can be.
        most: u32,
    },
    /// An option that belongs to another engine.
    #[error(
        "engine.{option} belongs to engine = \"io_uring\" and means nothing to engine = \
         \"{engine}\": leave it out"
    )]
    Option {
        /// Its key.
        option: &'static str,
        /// The engine.
        engine: &'static str,
    },
    /// No memory for the buffers.
    #[error(
        "the kernel gives no memory for {depth} buffers of {bytes} bytes: {source}; a smaller \
         engine.depth or block size needs less"
    )]
    Memory {
        /// Buffers.
        depth: u32,
        /// Bytes of each.
        bytes: usize,
        /// Why.
        source: io::Error,
    },
    /// `kernel.io_uring_disabled` is 2.
    #[error(
        "io_uring is switched off on this machine: kernel.io_uring_disabled = 2 \
         (/proc/sys/kernel/io_uring_disabled); set it to 0 (sysctl kernel.io_uring_disabled=0), or \
         take engine = \"libaio\""
    )]
    Disabled,
    /// `kernel.io_uring_disabled` is 1.
    #[error(
        "io_uring is reserved to privileged processes on this machine: kernel.io_uring_disabled = \
         1 (/proc/sys/kernel/io_uring_disabled); set it to 0 (sysctl kernel.io_uring_disabled=0), \
         run the worker in the group that kernel.io_uring_group names, or take engine = \"libaio\""
    )]
    Privileged,
    /// Something else than the kernel's settings forbids it.
    #[error(
        "io_uring_setup is not permitted though kernel.io_uring_disabled = {setting}: a seccomp \
         filter or a security module forbids it, as container runtimes and service units do \
         (SystemCallFilter=); permit io_uring_setup, io_uring_enter and io_uring_register there, \
         or take engine = \"libaio\""
    )]
    Forbidden {
        /// What `kernel.io_uring_disabled` says; `-` where the kernel has no such setting.
        setting: String,
    },
    /// The kernel knows no `io_uring`.
    #[error(
        "this kernel has no io_uring (io_uring_setup: function not implemented): it needs Linux \
         5.6 with CONFIG_IO_URING, and no seccomp filter that denies it; take engine = \"libaio\""
    )]
    NoUring,
    /// The kernel's `io_uring` lacks an operation.
    #[error(
        "this kernel's io_uring has no {operation}: it needs Linux 5.6; take engine = \"libaio\""
    )]
    NoOperation {
        /// Its name.
        operation: &'static str,
    },
    /// Not enough memory may be locked for the rings.
    #[error(
        "io_uring_setup got no memory for {depth} entries: on kernels before 5.12 the rings count \
         as locked memory, so raise RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=infinity), or lower \
         engine.depth"
    )]
    Locked {
        /// Entries.
        depth: u32,
    },
    /// A kernel thread for submissions is not to be had.
    #[error(
        "engine.sqpoll is refused: {source}; before Linux 5.11 it needs CAP_SYS_ADMIN and \
         registered files: run the worker as root, or leave engine.sqpoll out"
    )]
    Sqpoll {
        /// Why.
        source: io::Error,
    },
    /// Polling for completions needs direct I/O.
    #[error(
        "engine.iopoll needs files that are opened for direct I/O, and file {file} of this thread \
         is not: set direct = true, or leave engine.iopoll out"
    )]
    IopollBuffered {
        /// Its place among the thread's files.
        file: usize,
    },
    /// The file system or the device can't be polled.
    #[error(
        "engine.iopoll can't be used here: the file system or its device does not support polling \
         for completions (EOPNOTSUPP; NVMe needs nvme.poll_queues > 0): leave engine.iopoll out"
    )]
    IopollUnsupported,
    /// A polled ring takes no fsync.
    #[error(
        "engine.iopoll and fsync = \"each\" exclude each other: a polled io_uring takes no fsync; \
         leave one of them out"
    )]
    IopollFsync,
    /// `fs.aio-max-nr` is used up.
    #[error(
        "io_setup for {depth} operations is refused: fs.aio-max-nr = {limit} \
         (/proc/sys/fs/aio-max-nr), of which {used} are in use on this machine \
         (/proc/sys/fs/aio-nr); each thread needs engine.depth more, so this one needs at least \
         {needed}: raise it by sysctl fs.aio-max-nr=VALUE, or lower engine.depth"
    )]
    AioLimit {
        /// As asked for.
        depth: u32,
        /// `fs.aio-max-nr`.
        limit: u64,
        /// `fs.aio-nr`.
        used: u64,
        /// The least value that lets this thread go on.
        needed: u64,
    },
    /// The kernel knows no asynchronous I/O.
    #[error(
        "this kernel has no Linux AIO (io_setup: function not implemented): it was built without \
         CONFIG_AIO, or a seccomp filter denies it; take engine = \"sync\" or engine = \"io_uring\""
    )]
    NoAio,
    /// The file can't be made durable by an operation of the queue.
    #[error(
        "fsync = \"each\" is refused with engine = \"libaio\": the kernel does not take \
         IOCB_CMD_FSYNC for this file ({source}); take engine = \"io_uring\" or engine = \"sync\""
    )]
    AioFsync {
        /// Why.
        source: io::Error,
    },
    /// A call that should not fail did.
    #[error("{call} failed: {source}")]
    Call {
        /// Which.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
}
