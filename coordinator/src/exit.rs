//! Exit codes of the command `iofleet`: documented API.

use std::process::ExitCode;

/// How a command ended. Of several at once, [`Exit::worse`] tells which one is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// A fault of ours or of a local file (store, JSON, keys).
    Fault,
    /// Wrong usage of the command line.
    Usage,
    /// The scenario is not valid.
    Scenario,
    /// The fleet is not ready.
    Fleet,
    /// A point is partial, failed or skipped (a full target included).
    Partial,
    /// A demand of the scenario was not met.
    Required,
    /// I/O errors although all points are complete.
    IoErrors,
    /// What was read is not what had been written.
    Damaged,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// The one of two that is shown: the first of interrupted (7), damaged (6), 1, 4, 3, 2, 5,
    /// I/O errors (6), a demand that was not met (8), 0.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if self.rank() >= other.rank() { self } else { other }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Required => 1,
            Self::IoErrors => 2,
            Self::Partial => 3,
            Self::Usage => 4,
            Self::Scenario => 5,
            Self::Fleet => 6,
            Self::Fault => 7,
            Self::Damaged => 8,
            Self::Interrupted => 9,
        }
    }

    /// The number that the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Fault => 1,
            Self::Usage => 2,
            Self::Scenario => 3,
            Self::Fleet => 4,
            Self::Partial => 5,
            Self::IoErrors | Self::Damaged => 6,
            Self::Interrupted => 7,
            Self::Required => 8,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_beats_partial_beats_errors() {
        assert_eq!(Exit::IoErrors.worse(Exit::Partial), Exit::Partial);
        assert_eq!(Exit::Partial.worse(Exit::Interrupted), Exit::Interrupted);
        assert_eq!(Exit::Done.worse(Exit::IoErrors), Exit::IoErrors);
        assert_eq!(Exit::Done.worse(Exit::Done), Exit::Done);
        assert_eq!(Exit::Fault.worse(Exit::Partial), Exit::Fault);
        assert_eq!(Exit::Fault.worse(Exit::Interrupted), Exit::Interrupted);
        assert_eq!(Exit::Damaged.worse(Exit::Interrupted), Exit::Interrupted);
        assert_eq!(Exit::Partial.worse(Exit::Damaged), Exit::Damaged);
        assert_eq!(Exit::Required.worse(Exit::IoErrors), Exit::IoErrors);
        assert_eq!(Exit::Required.worse(Exit::Done), Exit::Required);
        assert_eq!(Exit::Required.code(), 8);
        assert_eq!((Exit::Damaged.code(), Exit::IoErrors.code()), (6, 6));
    }
}
