//! io_uring where it is switched off: for the whole machine, or for the worker alone by a filter of
//! system calls. It is refused by the setting's name before anything is written.

use std::{fs, io, os::unix::process::CommandExt, process::Command};

use crate::{
    alone,
    observer::Observer,
    support::{Daemon, Scratch, by_size, on, run, skip, stderr, text, worker_binary},
};

const SETTING: &str = "/proc/sys/kernel/io_uring_disabled";

/// A setting of the machine that is what it was when this is dropped, after a panic too.
struct Set {
    before: String,
}

impl Set {
    fn to(value: &str) -> io::Result<Self> {
        let before = fs::read_to_string(SETTING)?;
        fs::write(SETTING, value)?;
        Ok(Self { before })
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        let _ = fs::write(SETTING, self.before.trim());
    }
}

/// Runs a queue on a worker that `command` starts, and asserts that it is refused in these words;
/// then that libaio, which they name, works there.
fn refused(command: Command, words: &[&str]) {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    let keys = scratch.keys("keys");
    let daemon = Daemon::start_by(command, &scratch, &mount, &keys);
    let with = |engine: &str| {
        let sizes = [&by_size(&scratch, "1 MiB", "64 KiB"), "--engine", engine];
        run(&scratch, &on(&daemon.address, &keys, &mount.join("t"), &sizes))
    };
    let off = with("io_uring");
    assert_eq!(off.code(), 4, "{}", text(&off.output));
    let said = stderr(&off.output);
    for word in words.iter().chain(&["libaio"]) {
        assert!(said.contains(word), "no {word:?} in {}", text(&off.output));
    }
    assert_eq!(observer.arrivals(), [], "before any I/O");
    let instead = with("libaio");
    assert_eq!(instead.code(), 0, "{}", text(&instead.output));
    assert_eq!(observer.arrivals().iter().filter(|arrival| arrival.write).count(), 16);
}

#[test]
fn a_setting_of_the_machine_is_named() {
    let _alone = alone();
    let Ok(_set) = Set::to("2") else { return skip("the setting can't be changed here") };
    refused(Command::new(worker_binary()), &["kernel.io_uring_disabled = 2"]);
}

#[test]
fn a_filter_of_system_calls_is_named() {
    let _alone = alone();
    let mut command = Command::new(worker_binary());
    // SAFETY: between fork and exec it makes two system calls, and takes no memory or lock.
    unsafe { command.pre_exec(|| filter(libc::SYS_io_uring_setup, libc::ENOSYS)) };
    refused(command, &["seccomp filter"]);
}

/// From now on this call fails so in this process and in what it becomes.
#[expect(clippy::cast_possible_truncation, reason = "codes of a filter have 16 bits")]
fn filter(call: libc::c_long, errno: i32) -> io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut program = [
        // The call's number is the first word of what the filter sees.
        step(LOAD, 0, 0),
        step(EQUAL, 1, call.cast_unsigned() as u32),
        step(ANSWER, 0, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()),
        step(ANSWER, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the first call touches no memory, the second reads the program, which is there.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}
