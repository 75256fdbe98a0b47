//! `--json FILE`: the record as a file that is always whole, rewritten after each point.
//!
//! Whoever reads it sees the old document or the new one, never half of one: each is written to a
//! new file beside it, which then takes its name.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    process,
};

use crate::record::CampaignRecord;

/// A result names its schema within its first bytes.
const HEAD_BYTES: u64 = 256;

/// Why the document can't be written.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Something else has its name.
    #[error(
        "can't write JSON to {}: it is {what}, and only a file can be replaced; \
         `iofleet show --json` prints to standard output", path.display()
    )]
    NoFile {
        /// Where it was to go.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// It would replace what is no result: a store, a scenario, a key.
    #[error(
        "can't write JSON to {}: the file that is there is no result of iofleet; name another one, \
         or remove it first", path.display()
    )]
    Foreign {
        /// Where it was to go.
        path: PathBuf,
    },
    /// The file system refuses.
    #[error("can't write JSON to {}: {source}", path.display())]
    Io {
        /// Where it was to go.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Tries, before anything is measured, whether a document can be written to `path`: its folder must
/// take a new file, and what has the name now must be an empty file or an earlier result. Leaves
/// nothing behind.
///
/// # Errors
/// When it can't.
pub fn probe(path: &Path) -> Result<(), JsonError> {
    let path = &target(path)?;
    if !is_ours(path).map_err(|source| JsonError::Io { path: path.clone(), source })? {
        return Err(JsonError::Foreign { path: path.clone() });
    }
    let new = new_beside(path);
    let tried = create(&new).and_then(|mut file| file.write_all(b"{}\n"));
    let removed = if tried.is_ok() { fs::remove_file(&new) } else { give_up(&new) };
    tried.and(removed).map_err(|source| JsonError::Io { path: path.clone(), source })
}

/// Writes a record to `path`, in the place of what was there.
///
/// # Errors
/// When it can't; what was there is still whole then.
pub fn write(path: &Path, record: &CampaignRecord) -> Result<(), JsonError> {
    let path = &target(path)?;
    let new = new_beside(path);
    let written = to_string(record)
        .map_err(io::Error::from)
        .and_then(|text| fill(&new, &text))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|source| {
        // The first error is the one to be told.
        let _ = give_up(&new);
        JsonError::Io { path: path.clone(), source }
    })
}

/// The document: indented, with a newline at its end.
///
/// # Errors
/// Never for a record; the serializer's signature has one.
pub fn to_string(record: &CampaignRecord) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(record)?;
    text.push('\n');
    Ok(text)
}

/// The file that is to be replaced: what a symbolic link points to.
fn target(path: &Path) -> Result<PathBuf, JsonError> {
    let failed = |source| JsonError::Io { path: path.to_owned(), source };
    let no_file = |what| JsonError::NoFile { path: path.to_owned(), what };
    if path.file_name().is_none() {
        return Err(no_file("a folder's name"));
    }
    match fs::canonicalize(path) {
        Ok(found) => match fs::metadata(&found).map_err(failed)?.file_type() {
            kind if kind.is_file() => Ok(found),
            kind if kind.is_dir() => Err(no_file("a folder")),
            _ => Err(no_file("a device, pipe or socket")),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::path::absolute(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Whether what is there, if anything, may be replaced: nothing in it, or a result of ours.
fn is_ours(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(HEAD_BYTES).read_to_end(&mut head)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(head.is_empty() || String::from_utf8_lossy(&head).contains("iofleet.result/"))
}

fn new_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.new", process::id()))
}

fn create(new: &Path) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(new);
    match create() {
        // Of a process of our number that ended in between.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(new)?;
            create()
        }
        other => other,
    }
}

fn fill(new: &Path, text: &str) -> io::Result<()> {
    let mut file = create(new)?;
    file.write_all(text.as_bytes())?;
    // Before the name moves: else a crash of the machine could leave an empty file under it.
    file.sync_all()
}

fn give_up(new: &Path) -> io::Result<()> {
    match fs::remove_file(new) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::record::example;

    #[test]
    fn what_is_no_result_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scenario.toml");
        fs::write(&path, "name = \"x\"\n").unwrap();
        assert!(matches!(probe(&path), Err(JsonError::Foreign { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "name = \"x\"\n");
        fs::write(&path, "").unwrap();
        probe(&path).unwrap();
        write(&path, &example::campaign()).unwrap();
        probe(&path).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn writes_replaces_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        probe(&path).unwrap();
        assert!(names(folder.path()).is_empty());
        let old = "{ \"schema\": \"iofleet.result/1\" }";
        fs::write(&path, old).unwrap();
        probe(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), old);
        write(&path, &example::campaign()).unwrap();
        assert_eq!(names(folder.path()), ["result.json"]);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("{\n  \"schema\": \"iofleet.result/1\",\n"));
        assert!(text.ends_with("\n}\n"));
        let back: CampaignRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(back, example::campaign());
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write(&link, &example::campaign()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&file).unwrap().len() > 100);
    }

    #[test]
    fn what_can_not_be_written_is_found_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/result.json");
        let error = probe(&missing).unwrap_err().to_string();
        assert!(error.contains("no/result.json: No such file or directory"), "{error}");
        let error = probe(folder.path()).unwrap_err().to_string();
        assert!(error.contains("it is a folder"), "{error}");
        let error = write(Path::new("/dev/null"), &example::campaign()).unwrap_err().to_string();
        assert!(error.contains("/dev/null: it is a device"), "{error}");
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn left_by_a_dead_process_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(new_beside(&path), "half").unwrap();
        probe(&path).unwrap();
        assert!(names(folder.path()).is_empty());
    }
}
