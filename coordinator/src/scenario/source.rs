//! Where a scenario's text comes from. The one place of this module that reads a file.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use super::error::{Problem, ScenarioError};

/// A scenario's text and what people call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Path of the file, or the name of a built-in scenario.
    pub name: String,
    /// TOML.
    pub text: String,
}

impl Source {
    /// The built-in quick ramp.
    #[must_use]
    pub fn quick() -> Self {
        Self { name: "quick".to_owned(), text: QUICK.to_owned() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it can't be read or is not text.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let fault = |text: String| {
            ScenarioError::one(Problem::new(format!("scenario file `{name}`: {text}")))
        };
        let failed = |error: std::io::Error| {
            let known = [
                (ErrorKind::NotFound, "there is no such file"),
                (ErrorKind::IsADirectory, "it is a directory"),
                (ErrorKind::PermissionDenied, "it may not be read"),
            ];
            let known = known.into_iter().find(|(kind, _)| *kind == error.kind());
            fault(known.map_or_else(|| error.to_string(), |(_, text)| text.to_owned()))
        };
        let mut bytes = Vec::new();
        if !path.metadata().map_err(failed)?.is_file() && !path.is_dir() {
            return Err(fault("it is a device, pipe or socket, and no file".to_owned()));
        }
        let file = File::open(path).map_err(failed)?;
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(fault("longer than 1 MiB, so it is no scenario".to_owned()));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            fault(format!("not text: line {line} is not UTF-8. A scenario is a TOML file"))
        })?;
        if text.contains('\0') {
            return Err(fault(
                "not text: it holds zero bytes. A scenario is a TOML file".to_owned(),
            ));
        }
        Ok(Self { name, text })
    }
}

const QUICK: &str = include_str!("../../../scenarios/quick.toml");
/// No scenario is longer.
const BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_file_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.toml");
        let error = |path: &Path| Source::read(path).unwrap_err().to_string();
        let shown = path.display();
        assert_eq!(error(&path), format!("scenario file `{shown}`: there is no such file"));
        assert_eq!(
            error(dir.path()),
            format!("scenario file `{}`: it is a directory", dir.path().display())
        );
        std::fs::write(&path, b"a = 1\n\xff\xfe").unwrap();
        assert_eq!(
            error(&path),
            format!(
                "scenario file `{shown}`: not text: line 2 is not UTF-8. A scenario is a TOML file"
            )
        );
        std::fs::write(&path, b"a\0b").unwrap();
        assert!(error(&path).ends_with("it holds zero bytes. A scenario is a TOML file"));
        std::fs::write(&path, vec![b' '; (1 << 20) + 1]).unwrap();
        assert!(error(&path).ends_with("longer than 1 MiB, so it is no scenario"));
        std::fs::write(&path, "name = \"a\"\n").unwrap();
        assert_eq!(Source::read(&path).unwrap().text, "name = \"a\"\n");
    }
}
