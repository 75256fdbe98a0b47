//! What systemd is told: that the daemon is ready, what it does, that it lives, that it ends.

use std::time::Duration;

use sd_notify::NotifyState;

/// Who is told how the daemon does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supervisor {
    /// Nobody: a worker inside another process.
    #[default]
    Nobody,
    /// systemd, where it started this process and wants to know.
    Systemd,
}

impl Supervisor {
    /// The daemon listens.
    pub(super) fn ready(self) {
        self.tell(NotifyState::Ready);
    }

    /// What it does, for `systemctl status`.
    pub(super) fn status(self, line: &str) {
        self.tell(NotifyState::Status(line));
    }

    /// It lives.
    pub(super) fn alive(self) {
        self.tell(NotifyState::Watchdog);
    }

    /// It ends.
    pub(super) fn stopping(self) {
        self.tell(NotifyState::Stopping);
    }

    /// How often it must say that it lives; none where nobody wants to know.
    pub(super) fn alive_every(self) -> Option<Duration> {
        match self {
            Self::Nobody => None,
            Self::Systemd => sd_notify::watchdog_enabled().map(|limit| limit / 2),
        }
    }

    fn tell(self, state: NotifyState<'_>) {
        if self == Self::Systemd
            && let Err(error) = sd_notify::notify(&[state])
        {
            tracing::warn!("systemd can't be told how the worker does: {error}");
        }
    }
}
