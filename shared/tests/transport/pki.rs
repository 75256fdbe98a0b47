//! Authorities and certificates of every kind, right and wrong, and endpoints that use them without
//! the judgement of `Identity`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use iofleet_shared::transport::{
    self, AcceptError, ConnectError, Identity, Link, Role, SERVER_NAME,
};
use quinn::{
    ClientConfig, Endpoint, ServerConfig,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::{RootCertStore, crypto::ring::default_provider, version::TLS13};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::task::JoinHandle;

pub(crate) const CLIENT: ExtendedKeyUsagePurpose = ExtendedKeyUsagePurpose::ClientAuth;
pub(crate) const SERVER: ExtendedKeyUsagePurpose = ExtendedKeyUsagePurpose::ServerAuth;
/// Enough for anything that is not meant to fail by time.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// First and last year of a certificate.
pub(crate) type Years = (i32, i32);
pub(crate) const GOOD: Years = (2020, 2120);
pub(crate) const PAST: Years = (2000, 2010);
pub(crate) const FUTURE: Years = (2110, 2120);

/// A certificate and its key, PEM.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pub(crate) certificate: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        Self::over(name, GOOD)
    }

    pub(crate) fn over(name: &str, years: Years) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = dated(CertificateParams::default(), years);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { params, key, certificate }
    }

    pub(crate) fn issue(&self, usages: &[ExtendedKeyUsagePurpose], years: Years) -> Pair {
        self.issue_for(SERVER_NAME, usages, years)
    }

    pub(crate) fn issue_for(
        &self,
        name: &str,
        usages: &[ExtendedKeyUsagePurpose],
        years: Years,
    ) -> Pair {
        let key = KeyPair::generate().unwrap();
        let names = vec![name.to_owned()];
        let mut params = dated(CertificateParams::new(names).unwrap(), years);
        params.extended_key_usages = usages.to_vec();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    pub(crate) fn identity(&self, role: Role) -> Identity {
        let usage = match role {
            Role::Coordinator => CLIENT,
            Role::Worker => SERVER,
        };
        let pair = self.issue(&[usage], GOOD);
        Identity::from_pem(&self.certificate, &pair.certificate, &pair.key, role).unwrap()
    }

    /// A client that trusts this authority and presents what it is given, whatever that is.
    pub(crate) fn raw_client(&self, pair: Option<&Pair>, protocol: &[u8]) -> Endpoint {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()).unwrap();
        let builder = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(roots);
        let mut tls = match pair {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let (chain, key) = der(pair);
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        tls.alpn_protocols = vec![protocol.to_vec()];
        let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let tls = QuicClientConfig::try_from(tls).unwrap();
        endpoint.set_default_client_config(ClientConfig::new(Arc::new(tls)));
        endpoint
    }
}

/// A certificate that nobody but itself has signed.
pub(crate) fn self_signed(usage: ExtendedKeyUsagePurpose) -> Pair {
    let key = KeyPair::generate().unwrap();
    let mut params = dated(CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap(), GOOD);
    params.extended_key_usages = vec![usage];
    Pair { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// A server that asks nobody for a certificate and presents what it is given.
pub(crate) fn raw_server(pair: &Pair) -> Endpoint {
    let (chain, key) = der(pair);
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    tls.alpn_protocols = vec![transport::ALPN.to_vec()];
    let tls = QuicServerConfig::try_from(tls).unwrap();
    let config = ServerConfig::with_crypto(Arc::new(tls));
    Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap()
}

/// A worker's endpoint on loopback, and where it is.
pub(crate) fn listening(authority: &Authority) -> (Endpoint, SocketAddr) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = transport::listen(any, &authority.identity(Role::Worker)).unwrap();
    let address = endpoint.local_addr().unwrap();
    (endpoint, address)
}

/// Lets the next peer in, or not.
pub(crate) fn accept_one(endpoint: &Endpoint) -> JoinHandle<Result<Link, AcceptError>> {
    let endpoint = endpoint.clone();
    tokio::spawn(async move { transport::accept(endpoint.accept().await.unwrap()).await })
}

pub(crate) async fn connect_to(
    endpoint: &Endpoint,
    address: SocketAddr,
) -> Result<Link, ConnectError> {
    transport::connect(endpoint, &address.ip().to_string(), address.port(), LONG).await
}

/// Both ends of a good link; the endpoints have to outlive it.
pub(crate) struct Joined {
    pub(crate) coordinator: Link,
    pub(crate) worker: Link,
    _endpoints: [Endpoint; 2],
}

pub(crate) async fn joined() -> Joined {
    let authority = Authority::new("fleet");
    let (server, address) = listening(&authority);
    let client = transport::client(&authority.identity(Role::Coordinator), false).unwrap();
    let accepted = accept_one(&server);
    let coordinator = connect_to(&client, address).await.unwrap();
    let worker = accepted.await.unwrap().unwrap();
    Joined { coordinator, worker, _endpoints: [server, client] }
}

fn dated(mut params: CertificateParams, (first, last): Years) -> CertificateParams {
    params.not_before = date_time_ymd(first, 1, 1);
    params.not_after = date_time_ymd(last, 1, 1);
    params
}

fn der(pair: &Pair) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
    (vec![certificate], PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap())
}
