//! Who is let in. webpki proves signature, validity and possession of the key; on top of it each
//! side asks for the exact role, since webpki takes a certificate without extended key usage for
//! one of every usage.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
    server::{
        VerifierBuilderError, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{Role, certificate::require_role};

/// What a worker asks of who connects to it.
#[derive(Debug)]
pub(super) struct CoordinatorsOnly(Arc<dyn ClientCertVerifier>);

impl CoordinatorsOnly {
    pub(super) fn new(
        authority: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        Ok(Self(WebPkiClientVerifier::builder_with_provider(authority, provider).build()?))
    }
}

impl ClientCertVerifier for CoordinatorsOnly {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // A peer has one certificate; a stranger need not learn our authority's name.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified =
            self.0.verify_client_cert(end_entity, intermediates, now).map_err(foreign)?;
        require_role(end_entity, Role::Coordinator)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// What a coordinator asks of what it connects to.
#[derive(Debug)]
pub(super) struct WorkersOnly(Arc<WebPkiServerVerifier>);

impl WorkersOnly {
    pub(super) fn new(
        authority: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        Ok(Self(WebPkiServerVerifier::builder_with_provider(authority, provider).build()?))
    }
}

impl ServerCertVerifier for WorkersOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = match self.0.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            // The chain is right then, and only the name is not: a certificate of another role
            // does not carry it.
            Err(Error::InvalidCertificate(
                error @ (CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. }),
            )) => {
                require_role(end_entity, Role::Worker)?;
                return Err(error.into());
            }
            other => other.map_err(foreign)?,
        };
        require_role(end_entity, Role::Worker)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// An authority of the same name as ours, but with another key, is as foreign as any.
fn foreign(error: Error) -> Error {
    if matches!(error, Error::InvalidCertificate(CertificateError::BadSignature)) {
        CertificateError::UnknownIssuer.into()
    } else {
        error
    }
}
