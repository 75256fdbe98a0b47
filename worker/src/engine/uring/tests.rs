//! Kernels and settings that refuse `io_uring` or a part of it.

use std::{fs::File, io, sync::Arc, time::Duration};

use iofleet_shared::work::{EngineKind, EngineSpec, OpKind};

use super::{
    super::{
        Call, Failure, Queue, QueueSetup, Transfer,
        denied::{Rule, denied, deny},
        queue_tests::{Scratch, finish, request, setup},
    },
    Registered, Uring, probe,
    setup::refusal,
};

const SETUP: i64 = libc::SYS_io_uring_setup;
const ENTER: i64 = libc::SYS_io_uring_enter;
const REGISTER: i64 = libc::SYS_io_uring_register;

fn fails(call: i64, errno: i32) -> Rule {
    Rule { call, second: None, errno }
}

fn file() -> Arc<File> {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    Arc::new(file)
}

fn plain() -> EngineSpec {
    EngineSpec {
        kind: EngineKind::IoUring,
        depth: 1,
        sqpoll: false,
        iopoll: false,
        high_priority: false,
    }
}

#[test]
fn a_kernel_that_has_all_of_it_is_recognised() {
    assert_eq!(probe(&plain()).map_err(|error| error.to_string()), Ok(()));
}

#[test]
fn a_refusal_says_what_would_be_right() {
    let text = |errno| denied(&[fails(SETUP, errno)], || probe(&plain()).unwrap_err().to_string());
    let forbidden = text(libc::EPERM);
    assert!(forbidden.contains("a seccomp filter or a security module"), "{forbidden}");
    assert!(forbidden.contains("engine = \"libaio\""), "{forbidden}");
    let missing = text(libc::ENOSYS);
    assert!(missing.starts_with("this kernel has no io_uring"), "{missing}");
    assert!(missing.contains("engine = \"libaio\""), "{missing}");
    let locked = text(libc::ENOMEM);
    assert!(locked.contains("RLIMIT_MEMLOCK"), "{locked}");
    let denied_later =
        denied(&[fails(ENTER, libc::EPERM)], || probe(&plain()).unwrap_err().to_string());
    assert!(denied_later.starts_with("io_uring_enter failed"), "{denied_later}");
    let probing = [Rule { call: REGISTER, second: Some(8), errno: libc::EINVAL }];
    let old = denied(&probing, || probe(&plain()).unwrap_err().to_string());
    assert!(old.contains("no IORING_REGISTER_PROBE: it needs Linux 5.6"), "{old}");
}

#[test]
fn the_kernels_own_switch_is_named() {
    let text = |setting: Option<&str>| {
        let error = io::Error::from_raw_os_error(libc::EPERM);
        refusal(error, 4, setting).to_string()
    };
    let off = text(Some("2\n"));
    assert!(off.contains("kernel.io_uring_disabled = 2"), "{off}");
    assert!(off.contains("set it to 0"), "{off}");
    assert!(off.contains("engine = \"libaio\""), "{off}");
    let privileged = text(Some("1\n"));
    assert!(privileged.contains("kernel.io_uring_disabled = 1"), "{privileged}");
    assert!(privileged.contains("kernel.io_uring_group"), "{privileged}");
    assert!(text(Some("0\n")).contains("though kernel.io_uring_disabled = 0"));
    assert!(text(None).contains("though kernel.io_uring_disabled = -"));
}

#[test]
fn what_is_not_registered_is_done_without_and_said() {
    // IORING_REGISTER_BUFFERS, IORING_REGISTER_FILES, IORING_REGISTER_RING_FDS.
    let refused = |operation| Rule { call: REGISTER, second: Some(operation), errno: libc::ENOMEM };
    let all = [refused(0), refused(2), refused(20)];
    for (rules, buffers, files) in [
        (&all[..0], true, true),
        (&all[..1], false, true),
        (&all[1..], true, false),
        (&all, false, false),
    ] {
        denied(rules, || {
            let mut queue = Uring::new(setup(vec![file()], 4)).unwrap();
            assert_eq!(queue.registered(), Registered { buffers, files });
            queue.buffer(2)[..4_096].fill(5);
            queue.queue(2, &request(OpKind::Write, 1));
            queue.queue(1, &request(OpKind::Read, 9));
            assert!(finish(&mut queue, 2).iter().all(|it| it.result == Ok(4_096)));
            queue.queue(0, &request(OpKind::Read, 1));
            assert_eq!(finish(&mut queue, 1)[0].result, Ok(4_096));
            assert_eq!(queue.buffer(0)[..4_096], [5; 4_096]);
        });
    }
}

#[test]
fn a_ring_that_breaks_fails_what_it_was_given() {
    for errno in [libc::EBADF, libc::EAGAIN] {
        denied(&[], || {
            let file = file();
            let mut queue = Uring::new(setup(vec![Arc::clone(&file)], 4)).unwrap();
            deny(&[fails(ENTER, errno)]);
            let failed = |call| Transfer { shorts: 0, result: Err(Failure { call, errno }) };
            queue.queue(3, &request(OpKind::Read, 0));
            queue.queue(1, &request(OpKind::Write, 0));
            assert_eq!(finish(&mut queue, 2), [failed(Call::Write), failed(Call::Read)]);
            queue.queue(3, &request(OpKind::Read, 0));
            assert_eq!(finish(&mut queue, 1), [failed(Call::Read)]);
            queue.close();
            assert_eq!(Arc::strong_count(&file), 1);
        });
    }
}

#[test]
fn polling_works_or_is_refused_by_name() {
    let scratch = Scratch::new(&[9; 1 << 16]);
    let polled = || QueueSetup { iopoll: true, ..setup(vec![scratch.open(true)], 4) };
    match Uring::new(polled()) {
        Ok(mut queue) => {
            for slot in 0..4 {
                queue.queue(slot, &request(OpKind::Read, slot.into()));
            }
            assert!(finish(&mut queue, 4).iter().all(|it| it.result == Ok(4_096)));
            let mut done = Vec::with_capacity(4);
            queue.queue(0, &request(OpKind::Read, 3));
            queue.submit(true, Some(Duration::from_secs(3_600)), &mut done);
            assert_eq!(done.len(), 1);
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("engine.iopoll can't be used here"), "{text}");
        }
    }
}
