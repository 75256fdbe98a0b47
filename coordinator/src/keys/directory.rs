//! A directory of keys: written once, closed to others, and judged file by file.

use std::{
    fmt,
    fmt::Write as _,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use iofleet_shared::{
    clock,
    transport::{self, AUTHORITY_FILE, CertificateFacts, Identity, Role},
};
use sha2::{Digest, Sha256};

use super::{AUTHORITY_KEY_FILE, KeyError, Validity, generate};

/// Writes a fleet's new keys into a directory, which is made if need be. All files have mode 0600.
///
/// # Errors
/// When one of the files exists (nothing is written then), others may write into the directory, or
/// it can't be written (what was written is taken back).
pub fn init(dir: &Path, validity: &Validity) -> Result<Vec<PathBuf>, KeyError> {
    let keys = generate(validity)?;
    let files = [
        (AUTHORITY_FILE, &keys.authority.certificate),
        (AUTHORITY_KEY_FILE, &keys.authority.key),
        (Role::Coordinator.certificate_file(), &keys.coordinator.certificate),
        (Role::Coordinator.key_file(), &keys.coordinator.key),
        (Role::Worker.certificate_file(), &keys.worker.certificate),
        (Role::Worker.key_file(), &keys.worker.key),
    ]
    .map(|(name, text)| (dir.join(name), text));
    prepare(dir)?;
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(KeyError::Exists { path: path.clone() });
    }
    let mut written = Vec::new();
    for (path, text) in files {
        if let Err(error) = create(&path, text) {
            for path in &written {
                // The first error is the one to be told.
                let _ = fs::remove_file(path);
            }
            return Err(error);
        }
        written.push(path);
    }
    Ok(written)
}

/// What a certificate in a directory of keys is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRole {
    /// Signs others.
    Authority,
    /// Commands or obeys.
    Member(Role),
    /// Its key usages fit no role.
    Unknown,
}

impl fmt::Display for KeyRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority => f.write_str("authority"),
            Self::Member(role) => role.fmt(f),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// What is known of one certificate.
#[derive(Debug, Clone)]
pub struct KeyFacts {
    /// Its file.
    pub path: PathBuf,
    /// Distinguished name.
    pub subject: String,
    /// What it is for.
    pub role: KeyRole,
    /// Start of its validity.
    pub not_before: SystemTime,
    /// End of its validity.
    pub not_after: SystemTime,
    /// SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` shows it.
    pub fingerprint: String,
    /// Why it can't be used (chain, dates, role, private key), in words; none when it can.
    pub problem: Option<String>,
}

/// Reads the certificates of a directory, and tries each with its private key under the authority
/// that lies beside it. Those that are not there are left out: a node has only the worker's.
///
/// # Errors
/// When there is none at all, or one can't be read.
pub fn show(dir: &Path) -> Result<Vec<KeyFacts>, KeyError> {
    let roles = [None, Some(Role::Coordinator), Some(Role::Worker)];
    let mut found = Vec::new();
    for role in roles {
        let path = dir.join(role.map_or(AUTHORITY_FILE, Role::certificate_file));
        match fs::read(&path) {
            Ok(bytes) => found.push(inspect(dir, path, &String::from_utf8_lossy(&bytes), role)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(KeyError::Read { path, source }),
        }
    }
    if found.is_empty() { Err(KeyError::None { dir: dir.to_owned() }) } else { Ok(found) }
}

/// Makes the directory, or sees to it that an old one is ours alone to write.
fn prepare(dir: &Path) -> Result<(), KeyError> {
    let failed = |source| KeyError::Write { path: dir.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let mode = fs::metadata(dir).map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o022 == 0 {
        Ok(())
    } else {
        Err(KeyError::OpenDirectory { path: dir.to_owned(), mode })
    }
}

fn create(path: &Path, text: &str) -> Result<(), KeyError> {
    let failed = |source: io::Error| {
        if source.kind() == io::ErrorKind::AlreadyExists {
            KeyError::Exists { path: path.to_owned() }
        } else {
            KeyError::Write { path: path.to_owned(), source }
        }
    };
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|source| {
        // Half a key is of no use, and would stand in the way of the next try.
        let _ = fs::remove_file(path);
        failed(source)
    })
}

fn inspect(dir: &Path, path: PathBuf, pem: &str, role: Option<Role>) -> KeyFacts {
    let facts = match transport::facts(pem) {
        Ok(facts) => facts,
        Err(why) => {
            return KeyFacts {
                path,
                subject: String::new(),
                role: KeyRole::Unknown,
                not_before: SystemTime::UNIX_EPOCH,
                not_after: SystemTime::UNIX_EPOCH,
                fingerprint: String::new(),
                problem: Some(format!("it can't be read: {why}")),
            };
        }
    };
    let problem = match role {
        Some(role) => Identity::load(dir, role).err().map(|error| error.to_string()),
        None => authority_problem(&facts, clock::wall()),
    };
    let role = match (facts.authority, facts.role) {
        (true, _) => KeyRole::Authority,
        (false, Some(role)) => KeyRole::Member(role),
        (false, None) => KeyRole::Unknown,
    };
    KeyFacts {
        path,
        role,
        not_before: facts.not_before,
        not_after: facts.not_after,
        fingerprint: fingerprint(&facts.der),
        subject: facts.subject,
        problem,
    }
}

fn authority_problem(facts: &CertificateFacts, now: SystemTime) -> Option<String> {
    if !facts.authority {
        Some("it is no authority's certificate".to_owned())
    } else if facts.not_after < now {
        Some("it has expired".to_owned())
    } else if facts.not_before > now {
        Some("it is not valid yet".to_owned())
    } else {
        None
    }
}

fn fingerprint(der: &[u8]) -> String {
    let mut text = String::new();
    for (index, byte) in Sha256::digest(der).iter().enumerate() {
        let colon = if index == 0 { "" } else { ":" };
        // Writing into a string does not fail.
        let _ = write!(text, "{colon}{byte:02X}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn validity() -> Validity {
        Validity::at(clock::wall())
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn init_writes_six_closed_files_once() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a/keys");
        let files = init(&dir, &validity()).unwrap();
        assert_eq!(files.len(), 6);
        assert_eq!(mode(&dir), 0o700);
        for file in &files {
            assert_eq!(mode(file), 0o600, "{}", file.display());
        }
        assert!(Identity::load(&dir, Role::Coordinator).is_ok());
        assert!(Identity::load(&dir, Role::Worker).is_ok());
        let before: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
        fs::remove_file(&files[0]).unwrap();
        let error = init(&dir, &validity()).unwrap_err();
        assert!(matches!(&error, KeyError::Exists { path } if *path == files[1]), "{error}");
        assert!(!files[0].exists());
        assert_eq!(fs::read(&files[5]).unwrap(), before[5]);
    }

    #[test]
    fn a_dangling_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, dir.path().join("worker.key")).unwrap();
        assert!(matches!(init(dir.path(), &validity()), Err(KeyError::Exists { .. })));
        assert!(!elsewhere.exists());
    }

    #[test]
    fn init_refuses_a_directory_that_others_write() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o770)).unwrap();
        let text = init(dir.path(), &validity()).unwrap_err().to_string();
        assert!(text.contains("mode 0770") && text.contains("chmod 700"), "{text}");
    }

    #[test]
    fn show_tells_good_from_bad() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(show(dir.path()), Err(KeyError::None { .. })));
        init(dir.path(), &validity()).unwrap();
        let facts = show(dir.path()).unwrap();
        let roles: Vec<_> = facts.iter().map(|facts| facts.role).collect();
        let members = [Role::Coordinator, Role::Worker].map(KeyRole::Member);
        assert_eq!(roles, [KeyRole::Authority, members[0], members[1]]);
        assert!(facts.iter().all(|facts| facts.problem.is_none()), "{facts:?}");
        assert!(facts.iter().all(|facts| facts.fingerprint.len() == 32 * 3 - 1));

        let other = tempfile::tempdir().unwrap();
        init(other.path(), &validity()).unwrap();
        fs::copy(other.path().join("worker.pem"), dir.path().join("worker.pem")).unwrap();
        fs::remove_file(dir.path().join("coordinator.key")).unwrap();
        let facts = show(dir.path()).unwrap();
        assert!(facts[0].problem.is_none());
        assert!(facts[1].problem.as_ref().unwrap().contains("coordinator.key"));
        assert!(facts[2].problem.as_ref().unwrap().contains("foreign authority"));
    }

    #[test]
    fn old_and_young_keys_are_named_when_loaded() {
        let now = clock::wall();
        let dir = tempfile::tempdir().unwrap();
        let old = Validity {
            not_before: now - DAY * 10,
            members_until: now - DAY,
            authority_until: now + DAY,
        };
        init(&dir.path().join("old"), &old).unwrap();
        let text = show(&dir.path().join("old")).unwrap().remove(2).problem.unwrap();
        assert!(text.contains("has expired (valid until"), "{text}");
        let young = Validity {
            not_before: now + DAY,
            members_until: now + DAY * 2,
            authority_until: now + DAY * 2,
        };
        init(&dir.path().join("young"), &young).unwrap();
        let text = show(&dir.path().join("young")).unwrap().remove(1).problem.unwrap();
        assert!(text.contains("is not valid yet (valid from"), "{text}");
    }

    const DAY: Duration = Duration::from_secs(24 * 3_600);
}
