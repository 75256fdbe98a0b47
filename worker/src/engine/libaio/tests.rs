//! Kernels that refuse Linux AIO or a request.

use std::{fs::File, sync::Arc};

use iofleet_shared::work::OpKind;

use super::{
    super::{
        Call, Failure, Transfer,
        denied::{Rule, denied, deny},
        queue_tests::{finish, request, setup},
    },
    Libaio, Queue,
};

fn fails(call: i64, errno: i32) -> Rule {
    Rule { call, second: None, errno }
}

fn file() -> Arc<File> {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    Arc::new(file)
}

#[test]
fn a_refusal_says_what_would_be_right() {
    let text = |errno| {
        denied(&[fails(libc::SYS_io_setup, errno)], || {
            Libaio::new(setup(vec![file()], 64)).unwrap_err().to_string()
        })
    };
    let limit = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap();
    let exceeded = text(libc::EAGAIN);
    assert!(exceeded.contains(&format!("fs.aio-max-nr = {}", limit.trim())), "{exceeded}");
    assert!(exceeded.contains("io_setup for 64 operations"), "{exceeded}");
    let missing = text(libc::ENOSYS);
    assert!(missing.contains("CONFIG_AIO"), "{missing}");
}

#[test]
fn the_ring_is_read_without_system_calls() {
    denied(&[fails(libc::SYS_io_getevents, libc::EPERM)], || {
        let mut queue = Libaio::new(setup(vec![file()], 8)).unwrap();
        assert!(queue.reaps_in_user_space());
        // More than the ring has room for, so that it goes round.
        for round in 0..2_000 {
            for slot in 0..8 {
                queue.queue(slot, &request(OpKind::Read, u64::from(slot) + round % 100));
            }
            assert!(finish(&mut queue, 8).iter().all(|it| it.result == Ok(4_096)));
        }
    });
}

#[test]
fn a_queue_that_breaks_fails_what_it_was_given() {
    for errno in [libc::EINVAL, libc::EAGAIN] {
        denied(&[], || {
            let mut queue = Libaio::new(setup(vec![file()], 4)).unwrap();
            deny(&[fails(libc::SYS_io_submit, errno)]);
            let failed = |call| Transfer { shorts: 0, result: Err(Failure { call, errno }) };
            queue.queue(3, &request(OpKind::Read, 0));
            queue.queue(1, &request(OpKind::Write, 0));
            assert_eq!(finish(&mut queue, 2), [failed(Call::Write), failed(Call::Read)]);
        });
    }
}
