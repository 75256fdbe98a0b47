//! What a certificate says, and what can be wrong with it, in one set of words for both sides.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use rustls::{AlertDescription, CertificateError};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

use super::Role;

/// What is wrong with a certificate. Its text is a predicate: "the worker's certificate …".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// None was presented.
    Missing,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
    /// Another authority signed it.
    Foreign,
    /// It is not for the role in which it was presented.
    WrongRole,
    /// Anything else, in the words of who refused it.
    Other(String),
}

impl Flaw {
    /// What would put it right.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Missing => {
                "both sides need a certificate of the fleet's authority (`iofleet keys init`)"
            }
            Self::Expired => {
                "make new keys with `iofleet keys init --keys NEW-DIRECTORY` and copy them to \
                 both sides"
            }
            Self::NotYetValid => "compare the clocks of both machines",
            Self::Foreign => {
                "both sides need files of the same `iofleet keys init`; compare them with \
                 `iofleet keys show`"
            }
            Self::WrongRole => {
                "a coordinator uses coordinator.pem and coordinator.key, a worker worker.pem and \
                 worker.key"
            }
            Self::Other(_) => "look at it with `iofleet keys show`",
        }
    }

    /// From what TLS carries of a refusal: the alert, and the text that quinn sends with it.
    pub(super) fn of_alert(alert: AlertDescription, reason: &str) -> Option<Self> {
        // Too old and too young share an alert; the text that rustls puts beside it tells.
        let young = reason.contains("not valid yet") || reason.contains("NotValidYet");
        #[expect(clippy::wildcard_enum_match_arm, reason = "alerts that are not of certificates")]
        Some(match alert {
            AlertDescription::CertificateRequired => Self::Missing,
            AlertDescription::CertificateExpired if young => Self::NotYetValid,
            AlertDescription::CertificateExpired => Self::Expired,
            AlertDescription::UnknownCA => Self::Foreign,
            AlertDescription::UnsupportedCertificate => Self::WrongRole,
            AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRevoked
            | AlertDescription::DecryptError
            | AlertDescription::AccessDenied => Self::Other(reason.to_owned()),
            _ => return None,
        })
    }

    /// From a verifier's refusal.
    pub(super) fn of_error(error: &rustls::Error) -> Self {
        if let rustls::Error::InvalidCertificate(flaw) = error {
            let alert = AlertDescription::from(flaw.clone());
            if let Some(flaw) = Self::of_alert(alert, &error.to_string()) {
                return flaw;
            }
        }
        Self::Other(error.to_string())
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("was not presented"),
            Self::Expired => f.write_str("has expired"),
            Self::NotYetValid => f.write_str("is not valid yet"),
            Self::Foreign => f.write_str("is of a foreign authority, not of this fleet's"),
            Self::WrongRole => f.write_str("is for the wrong role"),
            Self::Other(why) => write!(f, "can't be used ({why})"),
        }
    }
}

/// What a certificate says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Distinguished name, for example `CN=iofleet worker`.
    pub subject: String,
    /// May sign others.
    pub authority: bool,
    /// Its role; none for an authority, and for key usages that are not exactly one role's.
    pub role: Option<Role>,
    /// Start of its validity.
    pub not_before: SystemTime,
    /// End of its validity.
    pub not_after: SystemTime,
    /// The certificate itself, DER.
    pub der: Vec<u8>,
}

/// Reads the first certificate of a PEM text.
///
/// # Errors
/// In words, when there is none or it is damaged.
pub fn facts(pem: &str) -> Result<CertificateFacts, String> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
    facts_of_der(&der)
}

pub(super) fn facts_of_der(der: &[u8]) -> Result<CertificateFacts, String> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|error| format!("no certificate: {error}"))?;
    let validity = certificate.validity();
    Ok(CertificateFacts {
        subject: certificate.subject().to_string(),
        authority: certificate.is_ca(),
        role: role(&certificate),
        not_before: instant(validity.not_before.timestamp()),
        not_after: instant(validity.not_after.timestamp()),
        der: der.to_vec(),
    })
}

/// The role that a certificate is for: its extended key usage has to be exactly one role's. One
/// without the extension, or with both usages, could command and obey, and so has no role.
fn role(certificate: &X509Certificate<'_>) -> Option<Role> {
    let usage = certificate.extended_key_usage().ok()??.value;
    match (usage.any, usage.client_auth, usage.server_auth) {
        (false, true, false) => Some(Role::Coordinator),
        (false, false, true) => Some(Role::Worker),
        _ => None,
    }
}

/// Refuses a certificate that is not exactly for this role.
pub(super) fn require_role(der: &[u8], role: Role) -> Result<(), rustls::Error> {
    let facts = facts_of_der(der).map_err(|_| CertificateError::BadEncoding)?;
    if facts.role == Some(role) { Ok(()) } else { Err(CertificateError::InvalidPurpose.into()) }
}

fn instant(unix_s: i64) -> SystemTime {
    let distance = Duration::from_secs(unix_s.unsigned_abs());
    if unix_s < 0 { SystemTime::UNIX_EPOCH - distance } else { SystemTime::UNIX_EPOCH + distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_become_flaws() {
        let of = |alert| Flaw::of_alert(alert, "invalid peer certificate: certificate expired");
        assert_eq!(of(AlertDescription::CertificateRequired), Some(Flaw::Missing));
        assert_eq!(of(AlertDescription::CertificateExpired), Some(Flaw::Expired));
        assert_eq!(of(AlertDescription::UnknownCA), Some(Flaw::Foreign));
        assert_eq!(of(AlertDescription::UnsupportedCertificate), Some(Flaw::WrongRole));
        assert_eq!(of(AlertDescription::NoApplicationProtocol), None);
        assert_eq!(
            Flaw::of_alert(
                AlertDescription::CertificateExpired,
                "invalid peer certificate: certificate not valid yet: …"
            ),
            Some(Flaw::NotYetValid)
        );
    }

    #[test]
    fn every_flaw_has_words_of_its_own() {
        let flaws =
            [Flaw::Missing, Flaw::Expired, Flaw::NotYetValid, Flaw::Foreign, Flaw::WrongRole];
        let words: std::collections::BTreeSet<String> =
            flaws.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), flaws.len());
    }

    #[test]
    fn instants_on_both_sides_of_the_epoch() {
        assert_eq!(instant(60), SystemTime::UNIX_EPOCH + Duration::from_secs(60));
        assert_eq!(instant(-60), SystemTime::UNIX_EPOCH - Duration::from_secs(60));
    }

    #[test]
    fn what_is_no_certificate_is_said_so() {
        assert!(facts("-----BEGIN NOTHING-----").is_err());
        assert!(facts_of_der(&[0x30, 0x01, 0x00]).unwrap_err().starts_with("no certificate"));
    }
}
