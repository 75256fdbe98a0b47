//! The keys of a fleet: one authority, and under it one certificate for coordinators and one for
//! workers, told apart by their extended key usage.

use std::{
    fmt,
    fmt::Write as _,
    io,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use iofleet_shared::{
    clock,
    transport::{Identity, IdentityError, Role, SERVER_NAME},
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use sha2::{Digest, Sha256};

pub use directory::{KeyFacts, KeyRole, init, show};

mod directory;

/// Name of the file with the authority's private key.
pub const AUTHORITY_KEY_FILE: &str = "authority.key";

/// Keys that can't be made or shown.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file is there already.
    #[error(
        "{path} exists, and keys are never overwritten: name another directory, or move these \
         away first (workers that have them will not know the new ones)"
    )]
    Exists {
        /// Which.
        path: PathBuf,
    },
    /// Others may put files into the directory.
    #[error(
        "others may write into {path} (mode {mode:04o}), so keys are not safe there: close it \
         with `chmod 700 {path}`"
    )]
    OpenDirectory {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A file or directory can't be written.
    #[error("can't make {path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file can't be read.
    #[error("can't read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to show.
    #[error("there are no keys in {dir}: make them with `iofleet keys init`")]
    None {
        /// Where they were looked for.
        dir: PathBuf,
    },
    /// A certificate can't be made.
    #[error("can't make certificates: {0}")]
    Generate(#[from] rcgen::Error),
}

/// From when and until when certificates hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// First instant of all three.
    pub not_before: SystemTime,
    /// Last instant of the authority.
    pub authority_until: SystemTime,
    /// Last instant of the coordinator's and the workers'.
    pub members_until: SystemTime,
}

impl Validity {
    /// The usual: from a day before, since nodes' clocks differ; the authority for ten years, what
    /// it signs for two.
    #[must_use]
    pub fn at(now: SystemTime) -> Self {
        Self {
            not_before: now - DAY,
            authority_until: now + DAY * 3_652,
            members_until: now + DAY * 730,
        }
    }
}

/// A certificate and its private key, PEM.
#[derive(Clone)]
pub struct KeyPem {
    /// The certificate.
    pub certificate: String,
    /// The private key (PKCS #8).
    pub key: String,
}

impl fmt::Debug for KeyPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A private key has no place in a log.
        f.debug_struct("KeyPem").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// All keys of a fleet.
#[derive(Debug, Clone)]
pub struct KeySet {
    /// Signs the others.
    pub authority: KeyPem,
    /// For who commands.
    pub coordinator: KeyPem,
    /// For every worker.
    pub worker: KeyPem,
}

/// Makes an authority and what it signs: ECDSA on P-256.
///
/// # Errors
/// When the system gives no randomness.
pub fn generate(validity: &Validity) -> Result<KeySet, KeyError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    // A name of its own for each authority, so that a foreign one is told from ours at first sight.
    let mark = hex(&Sha256::digest(key.public_key_raw())[..4]);
    params.distinguished_name.push(DnType::CommonName, format!("iofleet authority {mark}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(validity.not_before);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(validity.authority_until);
    let certificate = params.self_signed(&key)?.pem();
    let authority = KeyPem { certificate, key: key.serialize_pem() };
    let issuer = Issuer::from_params(&params, &key);
    Ok(KeySet {
        coordinator: member(Role::Coordinator, validity, &issuer)?,
        worker: member(Role::Worker, validity, &issuer)?,
        authority,
    })
}

/// Both sides of a fleet inside this process.
#[derive(Debug, Clone)]
pub struct ThrowAway {
    authority: String,
    coordinator: KeyPem,
    worker: KeyPem,
}

impl ThrowAway {
    /// Who one side is.
    ///
    /// # Errors
    /// When these keys do not stand our own rules.
    pub fn identity(&self, role: Role) -> Result<Identity, IdentityError> {
        let pem = match role {
            Role::Coordinator => &self.coordinator,
            Role::Worker => &self.worker,
        };
        Identity::from_pem(&self.authority, &pem.certificate, &pem.key, role)
    }
}

/// Keys for a local fleet: they never touch a disk, and their authority's key is forgotten at once.
///
/// # Errors
/// As [`generate`].
pub fn throw_away() -> Result<ThrowAway, KeyError> {
    let KeySet { authority, coordinator, worker } = generate(&Validity::at(clock::wall()))?;
    Ok(ThrowAway { authority: authority.certificate, coordinator, worker })
}

fn member(
    role: Role,
    validity: &Validity,
    issuer: &Issuer<'_, &KeyPair>,
) -> Result<KeyPem, KeyError> {
    let (names, usage) = match role {
        Role::Coordinator => (Vec::new(), ExtendedKeyUsagePurpose::ClientAuth),
        Role::Worker => (vec![SERVER_NAME.to_owned()], ExtendedKeyUsagePurpose::ServerAuth),
    };
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, format!("iofleet {role}"));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(validity.not_before);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_epoch(validity.members_until);
    let certificate = params.signed_by(&key, issuer)?.pem();
    Ok(KeyPem { certificate, key: key.serialize_pem() })
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[cfg(test)]
mod tests {
    use iofleet_shared::transport;

    use super::*;

    fn validity() -> Validity {
        Validity::at(clock::wall())
    }

    #[test]
    fn new_keys_serve_their_roles_and_no_other() {
        let keys = generate(&validity()).unwrap();
        let identity = |pem: &KeyPem, role| {
            Identity::from_pem(&keys.authority.certificate, &pem.certificate, &pem.key, role)
        };
        assert!(identity(&keys.coordinator, Role::Coordinator).is_ok());
        assert!(identity(&keys.worker, Role::Worker).is_ok());
        for (pem, role) in [(&keys.coordinator, Role::Worker), (&keys.worker, Role::Coordinator)] {
            let text = identity(pem, role).unwrap_err().to_string();
            assert!(text.contains("is for the wrong role"), "{text}");
        }
        assert!(!format!("{keys:?}").contains("PRIVATE KEY"));
    }

    #[test]
    fn certificates_hold_from_a_day_before() {
        let now = SystemTime::UNIX_EPOCH + DAY * 20_000;
        let keys = generate(&Validity::at(now)).unwrap();
        let authority = transport::facts(&keys.authority.certificate).unwrap();
        let worker = transport::facts(&keys.worker.certificate).unwrap();
        assert!(authority.authority && authority.role.is_none());
        assert!(authority.subject.starts_with("CN=iofleet authority "));
        assert_eq!(authority.not_before, SystemTime::UNIX_EPOCH + DAY * 19_999);
        assert_eq!(authority.not_after, SystemTime::UNIX_EPOCH + DAY * 23_652);
        assert_eq!(worker.not_before, SystemTime::UNIX_EPOCH + DAY * 19_999);
        assert_eq!(worker.not_after, SystemTime::UNIX_EPOCH + DAY * 20_730);
        assert_eq!(
            (worker.subject.as_str(), worker.role),
            ("CN=iofleet worker", Some(Role::Worker))
        );
    }

    #[test]
    fn throw_away_keys_are_new_each_time() {
        let one = throw_away().unwrap();
        for role in [Role::Coordinator, Role::Worker] {
            assert_eq!(one.identity(role).unwrap().role(), role);
        }
        let (first, second) = (generate(&validity()).unwrap(), generate(&validity()).unwrap());
        let subject =
            |keys: &KeySet| transport::facts(&keys.authority.certificate).unwrap().subject;
        assert_ne!(subject(&first), subject(&second));
        let mixed = Identity::from_pem(
            &first.authority.certificate,
            &second.worker.certificate,
            &second.worker.key,
            Role::Worker,
        );
        let text = mixed.unwrap_err().to_string();
        assert!(text.contains("foreign authority"), "{text}");
    }
}
