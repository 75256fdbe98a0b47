//! Threads for what may block as long as a mount does.
//!
//! Each call has a thread of its own and a deadline. One that comes too late is given up: what it
//! returns after all is dropped on its own thread. From these threads crews are started, so they
//! have the priority of the process and not the control plane's.

use std::{io, thread, time::Duration};

use tokio::sync::oneshot;

use crate::host::ControlPriority;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// It took too long.
    #[error("no answer after {} s", .0.as_secs())]
    Late(Duration),
    /// There was no thread for it.
    #[error("can't start a thread: {0}")]
    Thread(#[from] io::Error),
    /// It came to a bad end.
    #[error("a helper thread panicked")]
    Panicked,
}

/// Starts helper threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Helpers {
    priority: ControlPriority,
}

impl Helpers {
    pub(super) fn new(priority: ControlPriority) -> Self {
        Self { priority }
    }

    /// Runs `work` on a thread of its own, and waits for it until the deadline. The thread starts
    /// at once, whenever the answer is awaited.
    pub(super) fn call<T: Send + 'static>(
        self,
        within: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, NoAnswer>> + Send + 'static {
        let (sender, receiver) = oneshot::channel();
        let started = self.spawn(move || {
            // When nobody waits any more, the value comes back and is dropped here.
            drop(sender.send(work()));
        });
        async move {
            started?;
            match tokio::time::timeout(within, receiver).await {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(_)) => Err(NoAnswer::Panicked),
                Err(_) => Err(NoAnswer::Late(within)),
            }
        }
    }

    /// Runs `work` on a thread of its own that nobody waits for.
    pub(super) fn spawn(self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let priority = self.priority;
        let thread = thread::Builder::new().name("iofleet-target".to_owned());
        thread
            .spawn(move || {
                priority.leave();
                work();
            })
            .map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn helpers() -> Helpers {
        Helpers::new(ControlPriority::take())
    }

    #[tokio::test]
    async fn an_answer_comes_back() {
        let answer = helpers().call(Duration::from_secs(60), || 7).await;
        assert_eq!(answer.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_call_that_hangs_is_given_up_and_its_value_dropped() {
        struct Told(mpsc::Sender<()>);
        impl Drop for Told {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (release, held) = mpsc::channel::<()>();
        let (told, dropped) = mpsc::channel();
        let answer = helpers()
            .call(Duration::ZERO, move || {
                let _ = held.recv();
                Told(told)
            })
            .await;
        assert!(matches!(answer, Err(NoAnswer::Late(_))));
        release.send(()).unwrap();
        dropped.recv().unwrap();
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_too() {
        let nothing: Vec<u8> = Vec::new();
        let answer = helpers().call(Duration::from_secs(60), move || nothing[0]);
        assert!(matches!(answer.await, Err(NoAnswer::Panicked)));
    }
}
