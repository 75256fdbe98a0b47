//! Mapped files: blocks arrive where they belong, and what is cut off is an error.

use std::{
    io::{Read, Seek, Write},
    os::unix::process::ExitStatusExt,
    process::{Command, ExitStatus},
    sync::Barrier,
    thread,
};

use super::*;

const BLOCK: u32 = 8_192;

fn file(bytes: u64) -> Arc<File> {
    let file = tempfile::tempfile().unwrap();
    file.set_len(bytes).unwrap();
    Arc::new(file)
}

fn engine(file: &Arc<File>, writable: bool, fsync_each: bool) -> Mmap {
    let length = file.metadata().unwrap().len();
    let buffer = Buffer::new(BLOCK as usize, 512).unwrap();
    Mmap::new(vec![Arc::clone(file)], vec![length], writable, buffer, fsync_each).unwrap()
}

fn request(op: OpKind, offset: u64) -> Request {
    Request { op, lane: 0, file: 0, bytes: BLOCK, number: 0, offset, blocks: 1 }
}

fn moved() -> Transfer {
    Transfer { shorts: 0, result: Ok(u64::from(BLOCK)) }
}

fn failed(call: Call, errno: i32) -> Transfer {
    Transfer { shorts: 0, result: Err(Failure { call, errno }) }
}

#[test]
fn blocks_arrive_where_they_belong() {
    let shared = file(4 * u64::from(BLOCK));
    for (fsync_each, fill) in [(false, 3), (true, 4)] {
        let mut engine = engine(&shared, true, fsync_each);
        engine.buffer().fill(fill);
        // Not at the start of a page: msync wants whole ones.
        assert_eq!(engine.perform(&request(OpKind::Write, 8_192 + 512)), moved());
        assert_eq!(engine.flush(), Ok(()));
        let mut content = Vec::new();
        let mut plain = &*shared;
        plain.rewind().unwrap();
        plain.read_to_end(&mut content).unwrap();
        let mut expected = vec![0; 32_768];
        expected[8_704..16_896].fill(fill);
        assert!(content == expected);
        engine.buffer().fill(9);
        assert_eq!(engine.perform(&request(OpKind::Read, 8_192)), moved());
        assert_eq!(engine.buffer(), &expected[8_192..16_384]);
    }
}

#[test]
fn what_is_not_mapped_is_refused() {
    let shared = file(16_384);
    let mut engine = engine(&shared, false, false);
    let outside = failed(Call::MapRead, libc::ENXIO);
    assert_eq!(engine.perform(&request(OpKind::Read, 8_192)), moved());
    assert_eq!(engine.perform(&request(OpKind::Read, 8_193)), outside);
    assert_eq!(engine.perform(&request(OpKind::Read, u64::MAX)), outside);
    assert_eq!(engine.perform(&Request { file: 1, ..request(OpKind::Read, 0) }), outside);
    assert_eq!(engine.perform(&Request { bytes: 8_193, ..request(OpKind::Read, 0) }), outside);
    let read_only = failed(Call::MapWrite, libc::EBADF);
    assert_eq!(engine.perform(&request(OpKind::Write, 0)), read_only);
    assert_eq!(engine.close(), Ok(()));
    assert_eq!(engine.perform(&request(OpKind::Read, 0)), outside);
    assert!(outside.result.unwrap_err().is_fatal() && read_only.result.unwrap_err().is_fatal());
    assert_eq!(Arc::strong_count(&shared), 1);
    let buffer = || Buffer::new(4_096, 512).unwrap();
    let error = Mmap::new(vec![Arc::clone(&shared)], vec![16_385], false, buffer(), false);
    assert!(error.unwrap_err().to_string().contains("16384 bytes, and 16385"));
    let empty = Mmap::new(vec![file(0)], vec![0], true, buffer(), true);
    assert_eq!(empty.unwrap().flush(), Ok(()));
}

#[test]
fn all_advice_is_taken_and_changes_no_byte() {
    let shared = file(16_384);
    (&*shared).write_all(&[7; 16_384]).unwrap();
    let mut engine = engine(&shared, true, false);
    for advice in [Advice::Sequential, Advice::Random, Advice::WillNeed, Advice::DontNeed] {
        engine.advise(advice).unwrap();
        assert_eq!(engine.perform(&request(OpKind::Read, 8_192)), moved());
        assert!(engine.buffer().iter().all(|byte| *byte == 7));
        engine.buffer().fill(0);
    }
}

#[test]
fn a_file_cut_off_under_the_mapping_is_a_counted_error() {
    const THREADS: usize = 4;
    let shared = file(1 << 20);
    let cut = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut engine = engine(&shared, true, false);
                assert_eq!(engine.perform(&request(OpKind::Read, 65_536)), moved());
                cut.wait();
                cut.wait();
                for _ in 0..100 {
                    let lost = engine.perform(&request(OpKind::Read, 65_536));
                    assert_eq!(lost, failed(Call::MapRead, 0));
                    assert_eq!(engine.perform(&request(OpKind::Read, 0)), moved());
                    let lost = engine.perform(&request(OpKind::Write, 65_536));
                    assert_eq!(lost, failed(Call::MapWrite, 0));
                }
            });
        }
        cut.wait();
        // The last page with bytes of the file is the fourteenth: the block from 53248 is whole.
        shared.set_len(60_000).unwrap();
        cut.wait();
    });
    let mut engine = engine(&file(16_384), false, false);
    let lost = |call| Failure { call, errno: 0 }.is_fatal();
    assert!(lost(Call::MapWrite) && !lost(Call::MapRead));
    assert_eq!(engine.perform(&request(OpKind::Read, 0)), moved());
}

/// Runs one of the tests below, which the environment tells to do more than nothing, in a process
/// of its own.
fn child(name: &str) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("engine::mmap::tests::{name}"), "--nocapture"])
        .env("IOFLEET_TEST_CHILD", name)
        .output()
        .unwrap()
        .status
}

fn is_child(name: &str) -> bool {
    std::env::var("IOFLEET_TEST_CHILD").as_deref() == Ok(name)
}

/// A mapping of nothing: each access to it is SIGBUS.
fn lost_map() -> Map {
    let shared = file(4_096);
    let map = Map::new(Arc::clone(&shared), 4_096, false).unwrap();
    shared.set_len(0).unwrap();
    map
}

fn no_core() {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(rustix::process::Resource::Core, none).unwrap();
}

fn set_before(action: usize) {
    // SAFETY: zeros are a value; the handler is given by its address.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = action;
    // SAFETY: a valid action for this process, which only the test runs in.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &new, ptr::null_mut()) }, 0);
}

#[test]
fn a_fault_elsewhere_kills() {
    if is_child("a_fault_elsewhere_kills") {
        no_core();
        Guard::install().unwrap();
        let map = lost_map();
        // SAFETY: mapped; what the kernel does about the missing page is what is tested.
        let byte = unsafe { map.start.read_volatile() };
        panic!("{byte} was read");
    }
    assert_eq!(child("a_fault_elsewhere_kills").signal(), Some(libc::SIGBUS));
}

#[test]
fn a_sent_signal_kills_where_nobody_took_it() {
    if is_child("a_sent_signal_kills_where_nobody_took_it") {
        no_core();
        set_before(libc::SIG_DFL);
        Guard::install().unwrap();
        // SAFETY: has no preconditions.
        unsafe { libc::raise(libc::SIGBUS) };
        panic!("outlived it");
    }
    let name = "a_sent_signal_kills_where_nobody_took_it";
    assert_eq!(child(name).signal(), Some(libc::SIGBUS));
}

extern "C" fn leaves(_: i32) {
    // SAFETY: ends the process at once, which a handler may do.
    unsafe { libc::_exit(42) };
}

#[test]
fn the_handler_before_gets_what_is_not_ours() {
    if is_child("the_handler_before_gets_what_is_not_ours") {
        set_before(leaves as *const () as usize);
        let guard = Guard::install().unwrap();
        let map = lost_map();
        let mut byte = 0;
        // SAFETY: mapped, one byte each.
        let copied = unsafe { guard.copy(&raw mut byte, map.start, 1) };
        assert_eq!(copied.unwrap_err().left, 1);
        // SAFETY: as above.
        unsafe { map.start.read_volatile() };
    }
    assert_eq!(child("the_handler_before_gets_what_is_not_ours").code(), Some(42));
}
