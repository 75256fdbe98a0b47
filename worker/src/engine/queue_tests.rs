//! What both engines with a queue must do, against the standard library's own reads and writes.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::Write,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use iofleet_shared::work::OpKind;
use proptest::{collection::vec, prelude::*, test_runner::TestCaseResult};

use super::{
    Call, Completion, EngineError, Failure, Libaio, Queue, QueueSetup, Request, Transfer, Uring,
};
use crate::payload::{Buffer, MemoryPlace};

const BLOCK: u32 = 4_096;

/// A file that goes with its directory. It lies beside the test's program, on a disk.
pub(super) struct Scratch {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    pub(super) fn new(content: &[u8]) -> Self {
        let program = std::env::current_exe().unwrap();
        let directory = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let path = directory.path().join("file");
        fs::write(&path, content).unwrap();
        Self { _directory: directory, path }
    }

    pub(super) fn open(&self, direct: bool) -> Arc<File> {
        let flags = if direct { libc::O_DIRECT } else { 0 };
        Arc::new(
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(&self.path).unwrap(),
        )
    }
}

pub(super) fn setup(files: Vec<Arc<File>>, depth: u32) -> QueueSetup {
    QueueSetup {
        files,
        depth,
        buffer_bytes: BLOCK as usize * 4,
        alignment: 512,
        place: MemoryPlace::default(),
        sqpoll: false,
        iopoll: false,
        fsync_each: false,
    }
}

/// How many [`engines`] there are.
const ENGINES: usize = 5;

/// Each engine in each of the ways in which it can be had, by name.
fn engines(setup: impl Fn() -> QueueSetup) -> Vec<(&'static str, Box<dyn Queue>)> {
    let mut system_calls = Libaio::new(setup()).unwrap();
    system_calls.unshare();
    let mut without_timeout = Uring::new(setup()).unwrap();
    without_timeout.without_timeout();
    vec![
        ("io_uring", Box::new(Uring::new(setup()).unwrap())),
        ("io_uring, kernel 5.10", Box::new(without_timeout)),
        ("io_uring, sqpoll", {
            Box::new(Uring::new(QueueSetup { sqpoll: true, ..setup() }).unwrap())
        }),
        ("libaio", Box::new(Libaio::new(setup()).unwrap())),
        ("libaio, by system calls", Box::new(system_calls)),
    ]
}

pub(super) fn request(op: OpKind, block: u64) -> Request {
    let offset = block * u64::from(BLOCK);
    Request { op, lane: 0, file: 0, bytes: BLOCK, number: block, offset, blocks: 1 }
}

/// Submits until `count` operations are complete, in the order of their slots.
pub(super) fn finish(queue: &mut dyn Queue, count: usize) -> Vec<Transfer> {
    let mut all: Vec<Completion> = Vec::new();
    let mut done = Vec::with_capacity(queue.depth() as usize);
    while all.len() < count {
        queue.submit(true, None, &mut done);
        assert!(!done.is_empty(), "waited for one");
        all.append(&mut done);
    }
    let slots: BTreeSet<u32> = all.iter().map(|it| it.slot).collect();
    assert_eq!((slots.len(), all.len()), (count, count), "each slot once: {all:?}");
    all.sort_unstable_by_key(|it| it.slot);
    all.iter().map(|it| it.transfer).collect()
}

const WHOLE: Transfer = Transfer { shorts: 0, result: Ok(BLOCK as u64) };

#[test]
fn blocks_arrive_where_they_belong() {
    let content = Buffer::seeded(BLOCK as usize * 128, 1, 5).unwrap();
    for (direct, depth, fsync_each) in [
        (false, 1, false),
        (false, 64, false),
        (true, 1, true),
        (true, 64, false),
        (false, 8, true),
    ] {
        let scratch = Scratch::new(content.bytes());
        let file = scratch.open(direct);
        let name = |engine| format!("{engine}, direct {direct}, {depth} slots");
        let make = || QueueSetup { fsync_each, ..setup(vec![Arc::clone(&file)], depth) };
        for (at, (engine, mut queue)) in engines(make).into_iter().enumerate() {
            // Even slots read the upper half, odd ones (and the only one) write the lower half.
            let new = Buffer::seeded(BLOCK as usize * 64, 1, at as u64).unwrap();
            let new = new.bytes().as_chunks::<{ BLOCK as usize }>().0;
            let writes = |slot: u32| depth == 1 || slot % 2 == 1;
            for slot in 0..depth {
                let (op, block) = if writes(slot) {
                    queue.buffer(slot)[..BLOCK as usize].copy_from_slice(&new[slot as usize]);
                    (OpKind::Write, u64::from(slot))
                } else {
                    (OpKind::Read, 64 + u64::from(slot))
                };
                queue.queue(slot, &request(op, block));
            }
            let outcome = finish(&mut *queue, depth as usize);
            assert_eq!(outcome, vec![WHOLE; depth as usize], "{}", name(engine));
            let mut found = [0; BLOCK as usize];
            for slot in 0..depth {
                if writes(slot) {
                    file_of(&scratch).read_exact_at(&mut found, u64::from(slot) * 4_096).unwrap();
                    assert_eq!(found, new[slot as usize], "{}, slot {slot}", name(engine));
                } else {
                    let expected = &content.bytes()[(64 + slot as usize) * 4_096..][..4_096];
                    assert_eq!(&queue.buffer(slot)[..4_096], expected, "{}", name(engine));
                }
            }
            assert_eq!(queue.flush(), Ok(()));
        }
    }
}

fn file_of(scratch: &Scratch) -> File {
    File::open(&scratch.path).unwrap()
}

#[test]
fn a_file_that_ends_inside_a_block_is_a_short_read() {
    let scratch = Scratch::new(&[9; 6_000]);
    let file = scratch.open(false);
    for (engine, mut queue) in engines(|| setup(vec![Arc::clone(&file)], 3)) {
        for slot in 0..3 {
            queue.queue(slot, &request(OpKind::Read, slot.into()));
        }
        let failed = Err(Failure { call: Call::ShortRead, errno: 0 });
        let expected =
            [WHOLE, Transfer { shorts: 1, result: failed }, Transfer { shorts: 0, result: failed }];
        assert_eq!(finish(&mut *queue, 3), expected, "{engine}");
    }
}

#[test]
fn what_the_kernel_does_not_take_has_failed_alone() {
    let scratch = Scratch::new(&[9; 40_960]);
    let only = |read: bool| {
        Arc::new(OpenOptions::new().read(read).write(!read).open(&scratch.path).unwrap())
    };
    let (readable, writable) = (only(true), only(false));
    let files = || vec![Arc::clone(&readable), Arc::clone(&writable)];
    for (engine, mut queue) in engines(|| setup(files(), 4)) {
        // Each in its own file, but slots 1 and 2 change theirs.
        for (slot, op, file) in [
            (0, OpKind::Read, 0),
            (1, OpKind::Read, 1),
            (2, OpKind::Write, 0),
            (3, OpKind::Write, 1),
        ] {
            queue.queue(slot, &Request { file, ..request(op, 1) });
        }
        let failed =
            |call| Transfer { shorts: 0, result: Err(Failure { call, errno: libc::EBADF }) };
        let expected = [WHOLE, failed(Call::Read), failed(Call::Write), WHOLE];
        assert_eq!(finish(&mut *queue, 4), expected, "{engine}");
    }
}

/// A pipe's read end as a file: a read of it ends when the test writes.
fn pipe() -> (Arc<File>, File) {
    let (read, write) = std::io::pipe().unwrap();
    (Arc::new(File::from(OwnedFd::from(read))), File::from(OwnedFd::from(write)))
}

#[test]
fn waiting_is_done_only_as_asked() {
    let (read, write) = pipe();
    // Linux AIO would wait for a pipe while it takes the request.
    let mut without_timeout = Uring::new(setup(vec![Arc::clone(&read)], 2)).unwrap();
    without_timeout.without_timeout();
    for mut queue in [Uring::new(setup(vec![Arc::clone(&read)], 2)).unwrap(), without_timeout] {
        let mut done = Vec::with_capacity(2);
        queue.submit(true, None, &mut done);
        queue.queue(1, &Request { bytes: 8, ..request(OpKind::Read, 0) });
        queue.submit(false, None, &mut done);
        queue.submit(true, Some(Duration::from_millis(1)), &mut done);
        (&write).write_all(b"123").unwrap();
        queue.submit(true, Some(Duration::from_millis(1)), &mut done);
        assert_eq!(done, []);
        (&write).write_all(b"45678").unwrap();
        queue.submit(true, Some(Duration::from_secs(3_600)), &mut done);
        let transfer = Transfer { shorts: 1, result: Ok(8) };
        assert_eq!(done, [Completion { slot: 1, transfer }]);
        assert_eq!(&queue.buffer(1)[..8], b"12345678");
    }
}

#[test]
fn the_kernel_is_asked_to_make_each_write_durable() {
    let scratch = Scratch::new(&[9; 4_096]);
    // A pipe takes what is written to it, and no fsync.
    let (_read, write) = pipe();
    let files = vec![scratch.open(false), Arc::new(write)];
    let make = || QueueSetup { fsync_each: true, ..setup(files.clone(), 2) };
    for (engine, mut queue) in engines(make) {
        for slot in 0..2 {
            queue.queue(slot, &Request { file: slot, ..request(OpKind::Write, 0) });
        }
        let result = Err(Failure { call: Call::Fsync, errno: libc::EINVAL });
        let expected = [WHOLE, Transfer { shorts: 0, result }];
        assert_eq!(finish(&mut *queue, 2), expected, "{engine}");
    }
}

#[test]
fn nothing_in_flight_is_not_waited_for() {
    let scratch = Scratch::new(&[9; 4_096]);
    let file = scratch.open(true);
    for (engine, mut queue) in engines(|| setup(vec![Arc::clone(&file)], 1)) {
        let mut done = Vec::with_capacity(1);
        queue.submit(true, None, &mut done);
        queue.submit(false, None, &mut done);
        queue.submit(true, Some(Duration::from_millis(1)), &mut done);
        assert_eq!(done, [], "{engine}");
        queue.queue(0, &request(OpKind::Read, 0));
        queue.submit(true, Some(Duration::from_secs(3_600)), &mut done);
        assert_eq!(done, [Completion { slot: 0, transfer: WHOLE }], "{engine}");
    }
}

#[test]
fn closing_waits_and_lets_go_of_the_files() {
    let scratch = Scratch::new(&[9; 40_960]);
    for at in 0..ENGINES {
        let file = scratch.open(true);
        let (engine, mut queue) = engines(|| setup(vec![Arc::clone(&file)], 8)).swap_remove(at);
        for slot in 0..8 {
            queue.queue(slot, &request(OpKind::Read, slot.into()));
        }
        queue.submit(false, None, &mut Vec::with_capacity(8));
        queue.close();
        assert_eq!(Arc::strong_count(&file), 1, "{engine}");
        // A write lease is granted to the only one that has the file open.
        // SAFETY: the call touches no memory.
        let leased = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
        assert_eq!(leased, 0, "{engine}: {}", std::io::Error::last_os_error());
        queue.queue(0, &request(OpKind::Read, 0));
        let failed = Err(Failure { call: Call::Read, errno: libc::EBADF });
        let expected = [Transfer { shorts: 0, result: failed }];
        assert_eq!(finish(&mut *queue, 1), expected, "{engine}");
        assert!(queue.flush().is_err());
    }
}

#[test]
fn what_cannot_be_had_is_refused_by_name() {
    let scratch = Scratch::new(&[9; 4_096]);
    let buffered = || setup(vec![scratch.open(false)], 4);
    let text = |result: Result<(), EngineError>| result.unwrap_err().to_string();
    let uring = |setup| text(Uring::new(setup).map(drop));
    let libaio = |setup| text(Libaio::new(setup).map(drop));
    let iopoll = QueueSetup { iopoll: true, ..buffered() };
    assert!(uring(iopoll).starts_with("engine.iopoll needs files that are opened for direct I/O"));
    let iopoll = QueueSetup { iopoll: true, fsync_each: true, ..buffered() };
    assert!(uring(iopoll).contains("engine.iopoll and fsync = \"each\" exclude each other"));
    let iopoll = QueueSetup { iopoll: true, ..buffered() };
    assert!(libaio(iopoll).starts_with("engine.iopoll belongs to engine = \"io_uring\""));
    let sqpoll = QueueSetup { sqpoll: true, ..buffered() };
    assert!(libaio(sqpoll).starts_with("engine.sqpoll belongs to engine = \"io_uring\""));
    for depth in [0, 16_385] {
        let setup = QueueSetup { depth, ..buffered() };
        assert!(libaio(setup).starts_with(&format!("engine.depth {depth} must lie between 1")));
    }
    let fsync_each = QueueSetup { fsync_each: true, ..setup(vec![pipe().0], 1) };
    assert!(libaio(fsync_each).contains("IOCB_CMD_FSYNC"));
}

/// One operation of the property: block, blocks, and whether it writes.
type Step = (u64, u32, bool);

/// Carries out `steps` in rounds of what does not overlap, as far as `depth` goes, and compares
/// each read and the whole file with a copy in memory.
fn agrees(queue: &mut dyn Queue, scratch: &Scratch, steps: &[Step]) -> TestCaseResult {
    let mut copy = fs::read(&scratch.path).unwrap();
    let bytes_of = |(block, blocks, _): Step| {
        let start = usize::try_from(block).unwrap() * 4_096;
        start..start + blocks as usize * 4_096
    };
    let mut rest = steps;
    let mut seed = 0;
    while !rest.is_empty() {
        let overlap = |at: usize| {
            let (one, two) = (bytes_of(rest[at]), move |it: &Step| bytes_of(*it));
            rest[..at].iter().map(two).any(|it| it.start < one.end && one.start < it.end)
        };
        let most = rest.len().min(queue.depth() as usize);
        let count = (0..most).find(|at| overlap(*at)).unwrap_or(most);
        let before = copy.clone();
        for (slot, step) in (0..).zip(&rest[..count]) {
            let range = bytes_of(*step);
            let op = if step.2 {
                seed += 1;
                let new = Buffer::seeded(range.len(), 1, seed).unwrap();
                queue.buffer(slot)[..range.len()].copy_from_slice(new.bytes());
                copy[range].copy_from_slice(new.bytes());
                OpKind::Write
            } else {
                OpKind::Read
            };
            queue.queue(slot, &Request { bytes: step.1 * BLOCK, ..request(op, step.0) });
        }
        for (transfer, step) in finish(queue, count).iter().zip(rest) {
            prop_assert_eq!(transfer.result, Ok(u64::from(step.1 * BLOCK)));
        }
        for (slot, step) in (0..).zip(&rest[..count]).filter(|(_, step)| !step.2) {
            let range = bytes_of(*step);
            prop_assert_eq!(&queue.buffer(slot)[..range.len()], &before[range]);
        }
        rest = &rest[count..];
    }
    prop_assert_eq!(fs::read(&scratch.path).unwrap(), copy);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_file_is_what_was_written_to_it(
        steps in vec((0_u64..60, 1_u32..=4, any::<bool>()), 1..60),
        depth in 1_u32..20,
        direct in any::<bool>(),
        engine in 0..ENGINES,
    ) {
        let content = Buffer::seeded(BLOCK as usize * 64, 1, 77).unwrap();
        let scratch = Scratch::new(content.bytes());
        let file = scratch.open(direct);
        let mut queue = engines(|| setup(vec![Arc::clone(&file)], depth)).swap_remove(engine).1;
        agrees(&mut *queue, &scratch, &steps)?;
    }
}
