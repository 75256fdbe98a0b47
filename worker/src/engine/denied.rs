//! For tests: system calls that this thread may not make.

use std::thread;

/// Calls `of` in a thread of its own, whose calls fail as the rules say.
pub(crate) fn denied<T: Send>(rules: &[Rule], of: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            deny(rules);
            of()
        });
        inside.join().unwrap()
    })
}

/// A system call that fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Its number.
    pub(crate) call: libc::c_long,
    /// Only where its second argument is this.
    pub(crate) second: Option<u32>,
    /// How it fails.
    pub(crate) errno: i32,
}

/// The calling thread's calls fail from now on as the rules say.
pub(crate) fn deny(rules: &[Rule]) {
    // Places in `struct seccomp_data`: the number, and the lower half of the second argument.
    const NUMBER: u32 = 0;
    const SECOND: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };
    let code = |parts: u32| u16::try_from(parts).unwrap();
    let load = code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
    let equal = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
    let answer = code(libc::BPF_RET | libc::BPF_K);
    let step = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut program = Vec::new();
    for rule in rules {
        let number = u32::try_from(rule.call).unwrap();
        program.push(step(load, 0, NUMBER));
        program.push(step(equal, if rule.second.is_some() { 3 } else { 1 }, number));
        if let Some(second) = rule.second {
            program.push(step(load, 0, SECOND));
            program.push(step(equal, 1, second));
        }
        let errno = libc::SECCOMP_RET_ERRNO | rule.errno.cast_unsigned();
        program.push(step(answer, 0, errno));
    }
    program.push(step(answer, 0, libc::SECCOMP_RET_ALLOW));
    let filter =
        libc::sock_fprog { len: program.len().try_into().unwrap(), filter: program.as_mut_ptr() };
    // SAFETY: the first call touches no memory, the second reads the program, which is there.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let set = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter);
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    }
}
