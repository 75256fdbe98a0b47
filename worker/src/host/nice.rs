//! Priorities of threads. On Linux a nice value belongs to a thread and is inherited by those that
//! it starts: the control plane takes a better one, and every helper thread, from which crews are
//! started, goes back to the process's own.

use rustix::process::{Pid, getpid, getpriority_process, setpriority_process};

/// Nice value that the control plane asks for.
const CONTROL_NICE: i32 = -10;

/// What the calling thread got, and what all others are to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPriority {
    /// Whether the control plane has a better nice value than I/O threads.
    pub granted: bool,
    base: i32,
}

impl ControlPriority {
    /// Asks for a better nice value for the calling thread, which must not be the process's main
    /// thread: that one's value is what every other thread is to have.
    #[must_use]
    pub fn take() -> Self {
        let base = getpriority_process(Some(getpid())).unwrap_or(0);
        let here = rustix::thread::gettid();
        if here == getpid() || base <= CONTROL_NICE {
            return Self { granted: false, base };
        }
        Self { granted: set(here, CONTROL_NICE), base }
    }

    /// Gives the calling thread, and what it will start, the process's own nice value. Making it
    /// worse is always allowed.
    pub fn leave(self) {
        if self.granted {
            set(rustix::thread::gettid(), self.base);
        }
    }
}

fn set(thread: Pid, nice: i32) -> bool {
    setpriority_process(Some(thread), nice).is_ok()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn nice_here() -> i32 {
        getpriority_process(Some(rustix::thread::gettid())).unwrap()
    }

    #[test]
    fn children_of_the_control_thread_go_back() {
        let base = getpriority_process(Some(getpid())).unwrap();
        thread::spawn(move || {
            let priority = ControlPriority::take();
            assert_eq!(nice_here() < base, priority.granted);
            let grandchild = thread::spawn(move || {
                priority.leave();
                thread::spawn(nice_here).join().unwrap()
            });
            assert_eq!(grandchild.join().unwrap(), base);
        })
        .join()
        .unwrap();
    }
}
