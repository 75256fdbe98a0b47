//! A side's own certificate, key and authority, judged when they are loaded by the very rules that
//! the peer will apply: a fault of local files is named before anything is sent.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustls::{
    RootCertStore,
    client::danger::ServerCertVerifier,
    crypto::CryptoProvider,
    server::danger::ClientCertVerifier,
    sign::{CertifiedKey, SingleCertAndKey},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};
use x509_parser::time::ASN1Time;

use super::{
    AUTHORITY_FILE, Flaw, Role, SERVER_NAME,
    certificate::facts_of_der,
    verify::{CoordinatorsOnly, WorkersOnly},
};
use crate::clock;

/// Who this side is, and whom it trusts.
#[derive(Debug, Clone)]
pub struct Identity {
    pub(super) role: Role,
    pub(super) authority: Arc<RootCertStore>,
    pub(super) key: Arc<SingleCertAndKey>,
}

/// Keys that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file is not there.
    #[error(
        "there is no {path}: make the fleet's keys once with `iofleet keys init`, then put \
         {AUTHORITY_FILE}, {} and {} of it into that directory",
        role.certificate_file(), role.key_file()
    )]
    Missing {
        /// Which.
        path: PathBuf,
        /// Whose files were looked for.
        role: Role,
    },
    /// A file can't be read.
    #[error("can't read {path}: {source}; it has to be readable by the user that runs this")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others than its owner can read the private key.
    #[error(
        "the private key {path} is open to others (mode {mode:04o}): close it with \
         `chmod 600 {path}`"
    )]
    Open {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A file does not hold what it should.
    #[error("{path} holds {why}; it should be a PEM file of `iofleet keys init`")]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Certificate and key are not a pair.
    #[error("the private key {key} does not belong to the certificate {certificate}")]
    NotAPair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The certificate can't serve.
    #[error("the certificate {path} {flaw}{detail}: {}", flaw.advice())]
    Flawed {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        flaw: Flaw,
        /// More about it, in brackets, or nothing.
        detail: String,
    },
}

impl Identity {
    /// Loads `authority.pem` and the role's certificate and key from a directory.
    ///
    /// # Errors
    /// Names the file and what to do: missing, unreadable, open to others, damaged, not a pair,
    /// expired, not valid yet, of another authority, of another role.
    pub fn load(dir: &Path, role: Role) -> Result<Self, IdentityError> {
        let text = |name| read(dir.join(name), role, false);
        let authority = text(AUTHORITY_FILE)?;
        let certificate = text(role.certificate_file())?;
        let key = read(dir.join(role.key_file()), role, true)?;
        Source { dir, role, now: clock::wall() }.identity(&authority, &certificate, &key)
    }

    /// From PEM texts that never were files, for a local fleet.
    ///
    /// # Errors
    /// As [`Identity::load`], but for those of files.
    pub fn from_pem(
        authority: &str,
        certificate: &str,
        key: &str,
        role: Role,
    ) -> Result<Self, IdentityError> {
        Source { dir: Path::new(""), role, now: clock::wall() }.identity(
            authority,
            certificate,
            key,
        )
    }

    /// The role that it speaks for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }
}

/// Where texts came from, so that errors can say it.
struct Source<'a> {
    dir: &'a Path,
    role: Role,
    now: SystemTime,
}

impl Source<'_> {
    fn identity(
        &self,
        authority: &str,
        certificate: &str,
        key: &str,
    ) -> Result<Identity, IdentityError> {
        let authority = Arc::new(self.authority(authority)?);
        let certificate_path = self.dir.join(self.role.certificate_file());
        let chain = certificates(&certificate_path, certificate)?;
        self.judge(&certificate_path, &chain, &authority)?;
        let key_path = self.dir.join(self.role.key_file());
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| {
            IdentityError::Content {
                path: key_path.clone(),
                why: format!("no private key ({error})"),
            }
        })?;
        let pair = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| {
            if matches!(error, rustls::Error::InconsistentKeys(_)) {
                IdentityError::NotAPair { certificate: certificate_path, key: key_path }
            } else {
                IdentityError::Content { path: key_path, why: format!("no usable key ({error})") }
            }
        })?;
        Ok(Identity { role: self.role, authority, key: Arc::new(SingleCertAndKey::from(pair)) })
    }

    /// The trusted authorities: more than one while a fleet changes over to a new one.
    fn authority(&self, pem: &str) -> Result<RootCertStore, IdentityError> {
        let path = self.dir.join(AUTHORITY_FILE);
        let content = |why| IdentityError::Content { path: path.clone(), why };
        let mut store = RootCertStore::empty();
        for certificate in certificates(&path, pem)? {
            let facts = facts_of_der(&certificate).map_err(content)?;
            if !facts.authority {
                return Err(content("a certificate that is no authority's".to_owned()));
            }
            let flaw = if facts.not_after < self.now {
                Some(Flaw::Expired)
            } else if facts.not_before > self.now {
                Some(Flaw::NotYetValid)
            } else {
                None
            };
            if let Some(flaw) = flaw {
                return Err(flawed(path, flaw, &certificate));
            }
            store.add(certificate).map_err(|error| content(error.to_string()))?;
        }
        Ok(store)
    }

    /// Applies the rules of the other side to our own certificate.
    fn judge(
        &self,
        path: &Path,
        chain: &[CertificateDer<'static>],
        authority: &Arc<RootCertStore>,
    ) -> Result<(), IdentityError> {
        let Some((own, between)) = chain.split_first() else {
            return Ok(());
        };
        let since_epoch = self.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(since_epoch);
        let unusable = |error: rustls::server::VerifierBuilderError| IdentityError::Content {
            path: self.dir.join(AUTHORITY_FILE),
            why: error.to_string(),
        };
        let verdict = match self.role {
            Role::Coordinator => CoordinatorsOnly::new(Arc::clone(authority), provider())
                .map_err(unusable)?
                .verify_client_cert(own, between, now)
                .map(drop),
            Role::Worker => {
                let name = ServerName::try_from(SERVER_NAME)
                    .map_err(|error| flawed_other(path, &error.to_string()))?;
                WorkersOnly::new(Arc::clone(authority), provider())
                    .map_err(unusable)?
                    .verify_server_cert(own, between, &name, &[], now)
                    .map(drop)
            }
        };
        verdict.map_err(|error| flawed(path.to_owned(), Flaw::of_error(&error), own))
    }
}

/// The one provider of cryptography.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn read(path: PathBuf, role: Role, private: bool) -> Result<String, IdentityError> {
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(IdentityError::Missing { path, role });
        }
        Err(source) => return Err(IdentityError::Unreadable { path, source }),
        Ok(file) => file,
    };
    let unreadable = |source| IdentityError::Unreadable { path: path.clone(), source };
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
    if private && mode & 0o077 != 0 {
        return Err(IdentityError::Open { path, mode });
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    String::from_utf8(bytes)
        .map_err(|_| IdentityError::Content { path, why: "bytes that are no text".to_owned() })
}

fn certificates(path: &Path, pem: &str) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let content = |why| IdentityError::Content { path: path.to_owned(), why };
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| content(format!("a damaged certificate ({error})")))?;
    if found.is_empty() {
        return Err(content("no certificate".to_owned()));
    }
    Ok(found)
}

fn flawed_other(path: &Path, why: &str) -> IdentityError {
    IdentityError::Flawed {
        path: path.to_owned(),
        flaw: Flaw::Other(why.to_owned()),
        detail: String::new(),
    }
}

fn flawed(path: PathBuf, flaw: Flaw, certificate: &[u8]) -> IdentityError {
    let detail = facts_of_der(certificate)
        .map(|facts| match flaw {
            Flaw::Expired => format!(" (valid until {})", date(facts.not_after)),
            Flaw::NotYetValid => format!(" (valid from {})", date(facts.not_before)),
            Flaw::WrongRole => {
                let is = facts
                    .role
                    .map_or_else(|| "of no role".to_owned(), |role| format!("a {role}'s"));
                format!(" (it is {is})")
            }
            Flaw::Missing | Flaw::Foreign | Flaw::Other(_) => String::new(),
        })
        .unwrap_or_default();
    IdentityError::Flawed { path, flaw, detail }
}

fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| ASN1Time::from_timestamp(seconds).ok())
        .map_or_else(|| "?".to_owned(), |time| time.to_string())
}
