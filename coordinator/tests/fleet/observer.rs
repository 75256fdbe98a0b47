//! A file system of the tests' own (FUSE) that stands where a parallel file system would: it keeps
//! no payload unless it is told to, writes down every transfer that arrives, and fails, hangs, takes
//! its time or damages what it keeps on demand. What it saw is the number that the product's figures
//! are held against.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, UNIX_EPOCH},
};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use iofleet_shared::clock::monotonic_ns;

use crate::{
    pace::{Answer, Pace},
    tamper::{Done, Order, Tampers},
};

/// No caching of attributes or names.
const TTL: Duration = Duration::ZERO;
/// Parent of what has no name any more.
const UNLINKED: u64 = 0;
/// Files whose name starts with a dot are kept, so that marks can be read back.
const KEPT: char = '.';

/// One transfer that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// CLOCK_MONOTONIC of the tests' process.
    pub(crate) at_ns: u64,
    /// Number of the file, which no other one ever has.
    pub(crate) number: u64,
    pub(crate) file: String,
    pub(crate) write: bool,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What the file system does instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Answers transfers with this errno once so many bytes have been written or read.
    Fail { after_bytes: u64, errno: i32 },
    /// Answers one transfer with this errno, the first after so many bytes.
    FailOne { after_bytes: u64, errno: i32 },
    /// Never answers transfers once so many bytes have been written or read.
    Hang { after_bytes: u64 },
}

#[derive(Debug, Default)]
struct State {
    /// Whether the kernel may keep pages, as it does where files are mapped.
    cached: bool,
    inodes: BTreeMap<u64, Inode>,
    next: u64,
    arrivals: Vec<Arrival>,
    moved: u64,
    fault: Option<Fault>,
    hanging: Vec<Hanging>,
    fsyncs: u64,
    /// fsync is not answered until this is false again.
    hold_fsync: bool,
    held: Vec<ReplyEmpty>,
    /// All files are kept, not only marks.
    keeps: bool,
    /// Transfers are answered when it says so.
    pace: Option<Pace>,
    tampers: Tampers,
}

/// A request that is never answered while the file system is mounted.
#[derive(Debug)]
enum Hanging {
    Read(ReplyData),
    Write(ReplyWrite),
}

#[derive(Debug)]
struct Inode {
    parent: u64,
    name: String,
    directory: bool,
    size: u64,
    /// Bytes that have been written, each as often as it was.
    written: u64,
    kept: Vec<u8>,
}

#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<State>>);

/// A mounted observer; unmounted when dropped.
#[derive(Debug)]
pub(crate) struct Observer {
    shared: Shared,
    session: Option<BackgroundSession>,
}

impl Observer {
    /// Mounts it; none where the machine does not let us (the test is skipped then).
    pub(crate) fn mount(at: &Path) -> std::io::Result<Self> {
        Self::mount_as(at, false)
    }

    /// The same, with the page cache of the kernel before it: what is not direct arrives as pages.
    pub(crate) fn mount_cached(at: &Path) -> std::io::Result<Self> {
        Self::mount_as(at, true)
    }

    fn mount_as(at: &Path, cached: bool) -> std::io::Result<Self> {
        let shared = Shared::default();
        {
            let mut state = shared.lock();
            state.next = 2;
            state.cached = cached;
            let root = Inode {
                parent: 1,
                name: String::new(),
                directory: true,
                size: 0,
                written: 0,
                kept: Vec::new(),
            };
            state.inodes.insert(1, root);
        }
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("observer".to_owned())];
        let session = fuser::spawn_mount(shared.clone(), at, &config)?;
        Ok(Self { shared, session: Some(session) })
    }

    /// Answers what hangs, by an error.
    pub(crate) fn let_go(&self) {
        let mut state = self.shared.lock();
        state.fault = None;
        for hanging in state.hanging.drain(..) {
            match hanging {
                Hanging::Read(reply) => reply.error(Errno::EIO),
                Hanging::Write(reply) => reply.error(Errno::EIO),
            }
        }
    }

    /// Keeps what is written from now on, and damages it as ordered.
    pub(crate) fn keep_payload(&self, orders: Vec<Order>) {
        let mut state = self.shared.lock();
        state.keeps = true;
        state.tampers = Tampers::new(orders);
    }

    /// What was damaged so far.
    pub(crate) fn tampered(&self) -> Vec<Done> {
        self.shared.lock().tampers.done.clone()
    }

    /// Answers transfers at this pace from now on.
    pub(crate) fn set_pace(&self, pace: Option<Pace>) {
        self.shared.lock().pace = pace;
    }

    /// Bytes that it holds of a file.
    pub(crate) fn payload(&self, file: &str) -> Vec<u8> {
        let state = self.shared.lock();
        let found = state.inodes.values().find(|inode| inode.name == file);
        found.map(|inode| inode.kept.clone()).unwrap_or_default()
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        self.shared.lock().fault = fault;
    }

    /// All transfers so far, in order of arrival.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.shared.lock().arrivals.clone()
    }

    /// The transfers since the last time this was asked, in order of arrival.
    pub(crate) fn take_arrivals(&self) -> Vec<Arrival> {
        std::mem::take(&mut self.shared.lock().arrivals)
    }

    /// Lets threads wait in fsync, so that they can be looked at.
    pub(crate) fn hold_fsync(&self) {
        self.shared.lock().hold_fsync = true;
    }

    pub(crate) fn release_fsync(&self) {
        let mut state = self.shared.lock();
        state.hold_fsync = false;
        state.held.drain(..).for_each(ReplyEmpty::ok);
    }

    /// Waits until so many fsyncs have arrived; false if they do not.
    pub(crate) fn wait_for_fsyncs(&self, count: u64) -> bool {
        let end = monotonic_ns() + 30_000_000_000;
        while monotonic_ns() < end {
            if self.shared.lock().fsyncs >= count {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    /// Waits until a transfer has arrived; false if none does.
    pub(crate) fn wait_for_arrivals(&self, count: usize) -> bool {
        let end = monotonic_ns() + 30_000_000_000;
        while monotonic_ns() < end {
            if self.shared.lock().arrivals.len() >= count {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    /// Names of the files and directories that exist, but for the root.
    pub(crate) fn names(&self) -> Vec<String> {
        let state = self.shared.lock();
        let named =
            state.inodes.iter().filter(|(ino, inode)| **ino != 1 && inode.parent != UNLINKED);
        named.map(|(_, inode)| inode.name.clone()).collect()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.let_go();
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

enum Verdict {
    /// At once.
    Mark,
    Answer,
    Error(Errno),
    Hang,
}

impl State {
    fn child(&self, parent: u64, name: &OsStr) -> Option<u64> {
        let found = self.inodes.iter().find(|(ino, inode)| {
            **ino != 1 && inode.parent == parent && OsStr::new(&inode.name) == name
        });
        found.map(|(ino, _)| *ino)
    }

    fn make(&mut self, parent: u64, name: &OsStr, directory: bool) -> u64 {
        let ino = self.next;
        self.next += 1;
        let name = name.to_string_lossy().into_owned();
        let inode = Inode { parent, name, directory, size: 0, written: 0, kept: Vec::new() };
        self.inodes.insert(ino, inode);
        ino
    }

    fn opening(&self) -> FopenFlags {
        if self.cached { FopenFlags::empty() } else { FopenFlags::FOPEN_DIRECT_IO }
    }

    fn attributes(&self, ino: u64) -> Option<FileAttr> {
        let inode = self.inodes.get(&ino)?;
        Some(FileAttr {
            ino: INodeNo(ino),
            size: inode.size,
            blocks: inode.written.min(inode.size).div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if inode.directory { FileType::Directory } else { FileType::RegularFile },
            perm: if inode.directory { 0o777 } else { 0o666 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        })
    }

    fn arrive(&mut self, ino: u64, write: bool, offset: u64, bytes: u64) -> Verdict {
        let Some(inode) = self.inodes.get_mut(&ino) else { return Verdict::Error(Errno::ENOENT) };
        inode.written += if write { bytes } else { 0 };
        if inode.name.starts_with(KEPT) {
            return Verdict::Mark;
        }
        match self.fault {
            Some(Fault::Fail { after_bytes, errno }) if self.moved >= after_bytes => {
                return Verdict::Error(Errno::from_i32(errno));
            }
            Some(Fault::FailOne { after_bytes, errno }) if self.moved >= after_bytes => {
                self.fault = None;
                return Verdict::Error(Errno::from_i32(errno));
            }
            Some(Fault::Hang { after_bytes }) if self.moved >= after_bytes => return Verdict::Hang,
            _ => {}
        }
        self.moved += bytes;
        let file = inode.name.clone();
        self.arrivals.push(Arrival {
            at_ns: monotonic_ns(),
            number: ino,
            file,
            write,
            offset,
            bytes,
        });
        Verdict::Answer
    }

    fn answer(&mut self, answer: Answer) {
        match &mut self.pace {
            Some(pace) => pace.answer(monotonic_ns(), answer),
            None => answer.give(),
        }
    }

    /// Takes what is written, where it is kept.
    fn put(&mut self, ino: u64, offset: u64, data: &[u8]) {
        let Some(inode) = self.inodes.get_mut(&ino) else { return };
        inode.size = inode.size.max(offset + data.len() as u64);
        let mark = inode.name.starts_with(KEPT);
        if !(mark || self.keeps) {
            return;
        }
        inode.kept.resize(usize::try_from(inode.size).unwrap_or(0), 0);
        if mark {
            let at = usize::try_from(offset).unwrap_or(0);
            inode.kept[at..at + data.len()].copy_from_slice(data);
        } else {
            self.tampers.write(&inode.name, &mut inode.kept, offset, data);
        }
    }
}

impl Filesystem for Shared {
    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let state = self.lock();
        match state.child(parent.0, name).and_then(|ino| state.attributes(ino)) {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.lock().attributes(ino.0) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.lock();
        if let (Some(size), Some(inode)) = (size, state.inodes.get_mut(&ino.0)) {
            inode.size = size;
        }
        match state.attributes(ino.0) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn mkdir(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let mut state = self.lock();
        if state.child(parent.0, name).is_some() {
            return reply.error(Errno::EEXIST);
        }
        let ino = state.make(parent.0, name, true);
        match state.attributes(ino) {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::EIO),
        }
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut state = self.lock();
        match state.child(parent.0, name) {
            // An open file goes on by its number.
            Some(ino) => {
                if let Some(inode) = state.inodes.get_mut(&ino) {
                    inode.parent = UNLINKED;
                }
                reply.ok();
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let state = self.lock();
        let ino = state.child(parent.0, name);
        let full = ino.is_some_and(|ino| state.inodes.values().any(|inode| inode.parent == ino));
        drop(state);
        if full { reply.error(Errno::ENOTEMPTY) } else { self.unlink(req, parent, name, reply) }
    }

    fn create(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let mut state = self.lock();
        let found = state.child(parent.0, name);
        if found.is_some() && flags & libc::O_EXCL != 0 {
            return reply.error(Errno::EEXIST);
        }
        let ino = found.unwrap_or_else(|| state.make(parent.0, name, false));
        match state.attributes(ino) {
            Some(attr) => reply.created(&TTL, &attr, Generation(0), FileHandle(0), state.opening()),
            None => reply.error(Errno::EIO),
        }
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), self.lock().opening());
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut state = self.lock();
        let Some(inode) = state.inodes.get(&ino.0) else { return reply.error(Errno::ENOENT) };
        let left = inode.size.saturating_sub(offset).min(u64::from(size));
        let length = usize::try_from(left).unwrap_or(0);
        let data = if inode.name.starts_with(KEPT) || state.keeps {
            let kept =
                inode.kept.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or(&[]);
            kept[..kept.len().min(length)].to_vec()
        } else {
            vec![0x5a; length]
        };
        match state.arrive(ino.0, false, offset, left) {
            Verdict::Mark => reply.data(&data),
            Verdict::Answer => state.answer(Answer::Read(reply, data)),
            Verdict::Error(errno) => reply.error(errno),
            Verdict::Hang => state.hanging.push(Hanging::Read(reply)),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.lock();
        let bytes = data.len() as u64;
        match state.arrive(ino.0, true, offset, bytes) {
            verdict @ (Verdict::Mark | Verdict::Answer) => {
                state.put(ino.0, offset, data);
                let answer = Answer::Written(reply, u32::try_from(bytes).unwrap_or(u32::MAX));
                if matches!(verdict, Verdict::Mark) { answer.give() } else { state.answer(answer) }
            }
            Verdict::Error(errno) => reply.error(errno),
            Verdict::Hang => state.hanging.push(Hanging::Write(reply)),
        }
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let mut state = self.lock();
        state.fsyncs += 1;
        if state.hold_fsync { state.held.push(reply) } else { reply.ok() }
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let state = self.lock();
        let children =
            state.inodes.iter().filter(|(number, inode)| **number != 1 && inode.parent == ino.0);
        for (place, (number, inode)) in (1_u64..).zip(children) {
            let kind = if inode.directory { FileType::Directory } else { FileType::RegularFile };
            if place > offset && reply.add(INodeNo(*number), place, kind, &inode.name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let blocks = 1 << 28;
        reply.statfs(blocks, blocks, blocks, 1 << 20, 1 << 20, 4096, 255, 4096);
    }
}
