//! Sockets: the endpoint that a worker listens on, and the one from which a coordinator connects.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
    time::Duration,
};

use quinn::{
    ClientConfig, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use rustls::{client::Resumption, server::NoServerSessionStorage, version::TLS13};

use super::{
    ALPN, Identity, Role,
    identity::provider,
    verify::{CoordinatorsOnly, WorkersOnly},
};
use crate::limits::{FRAME_BYTES_MAX, QUIC_IDLE};

/// No endpoint.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address can't be listened on.
    #[error("can't listen on UDP {address}: {source}{}", hint(source))]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// No socket to connect from.
    #[error("can't use a UDP socket: {0}")]
    Socket(io::Error),
    /// The identity is of the other role.
    #[error("a {needed}'s keys are needed here, these are a {found}'s")]
    Role {
        /// What is needed.
        needed: Role,
        /// What was given.
        found: Role,
    },
    /// TLS can't be set up with these keys.
    #[error("can't set up TLS with these keys: {0}")]
    Tls(String),
}

/// Opens the endpoint of a worker. Must be called inside a tokio runtime.
///
/// # Errors
/// When the address can't be had (named), or the identity is not a worker's.
pub fn listen(address: SocketAddr, identity: &Identity) -> Result<Endpoint, EndpointError> {
    // Before a port is taken for nothing; `listen_on` asks again for who comes in there.
    require(identity, Role::Worker)?;
    let socket =
        UdpSocket::bind(address).map_err(|source| EndpointError::Listen { address, source })?;
    listen_on(socket, identity)
}

/// As [`listen`], on a socket that is bound already. Must be called inside a tokio runtime.
///
/// # Errors
/// When the socket can't be used, or the identity is not a worker's.
pub fn listen_on(socket: UdpSocket, identity: &Identity) -> Result<Endpoint, EndpointError> {
    require(identity, Role::Worker)?;
    let verifier = CoordinatorsOnly::new(Arc::clone(&identity.authority), provider())
        .map_err(|error| EndpointError::Tls(error.to_string()))?;
    let key = Arc::clone(&identity.key);
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| EndpointError::Tls(error.to_string()))?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(key);
    tls.alpn_protocols = vec![ALPN.to_vec()];
    // Each connection proves itself anew: a resumed one would outlive its certificate.
    tls.session_storage = Arc::new(NoServerSessionStorage {});
    tls.send_tls13_tickets = 0;
    let tls =
        QuicServerConfig::try_from(tls).map_err(|error| EndpointError::Tls(error.to_string()))?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport(Role::Worker)));
    config.max_incoming(HANDSHAKES_MAX);
    let runtime = Arc::new(TokioRuntime);
    Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime)
        .map_err(EndpointError::Socket)
}

/// Opens the endpoint of a coordinator; one serves for all of its workers. With `remote_is_v6` it
/// reaches IPv4 addresses too, and falls back to IPv4 alone where the kernel has no IPv6: right for
/// host names. Must be called inside a tokio runtime.
///
/// # Errors
/// When there is no socket to be had, or the identity is not a coordinator's.
pub fn client(identity: &Identity, remote_is_v6: bool) -> Result<Endpoint, EndpointError> {
    require(identity, Role::Coordinator)?;
    let verifier = WorkersOnly::new(Arc::clone(&identity.authority), provider())
        .map_err(|error| EndpointError::Tls(error.to_string()))?;
    let key = Arc::clone(&identity.key);
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| EndpointError::Tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(key);
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.resumption = Resumption::disabled();
    let tls =
        QuicClientConfig::try_from(tls).map_err(|error| EndpointError::Tls(error.to_string()))?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport(Role::Coordinator)));
    let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let bound = if remote_is_v6 {
        Endpoint::client(v6).or_else(|_| Endpoint::client(v4))
    } else {
        Endpoint::client(v4)
    };
    let mut endpoint = bound.map_err(EndpointError::Socket)?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// How a side of this role wants its connections.
fn transport(role: Role) -> TransportConfig {
    let mut config = TransportConfig::default();
    // Heartbeats are datagrams of ours: they alone decide who is alive, so quinn sends none.
    config.keep_alive_interval(None);
    config.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(QUIC_IDLE_MS))));
    config.stream_receive_window(VarInt::from_u32(STREAM_WINDOW));
    config.send_window(u64::from(STREAM_WINDOW));
    config.datagram_receive_buffer_size(Some(DATAGRAM_BUFFER));
    config.datagram_send_buffer_size(DATAGRAM_BUFFER);
    // What the peer may open.
    let (bidirectional, unidirectional) = match role {
        Role::Worker => (1, 0),
        Role::Coordinator => (0, DELIVERY_STREAMS_MAX),
    };
    config.max_concurrent_bidi_streams(VarInt::from_u32(bidirectional));
    config.max_concurrent_uni_streams(VarInt::from_u32(unidirectional));
    config
}

fn require(identity: &Identity, needed: Role) -> Result<(), EndpointError> {
    let found = identity.role();
    if found == needed { Ok(()) } else { Err(EndpointError::Role { needed, found }) }
}

fn hint(error: &io::Error) -> &'static str {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these have a remedy")]
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another worker may be running there: choose another port",
        io::ErrorKind::AddrNotAvailable => "; no interface of this machine has that address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege",
        _ => "",
    }
}

/// Handshakes that a worker has under way at one time; strangers beyond that are turned away.
const HANDSHAKES_MAX: usize = 64;
/// Delivery streams of a worker that may be open at one time.
const DELIVERY_STREAMS_MAX: u32 = 16;
/// Bytes in flight on one stream: the largest frame, with room for its neighbours.
const STREAM_WINDOW: u32 = FRAME_BYTES_MAX + 64 * 1024;
/// Bytes of datagrams that wait; a clock ping that waited behind more than these is worthless.
const DATAGRAM_BUFFER: usize = 64 * 1024;
#[expect(clippy::cast_possible_truncation, reason = "asserted below")]
const QUIC_IDLE_MS: u32 = QUIC_IDLE.as_millis() as u32;

const _: () =
    assert!(QUIC_IDLE.as_nanos() == Duration::from_millis(QUIC_IDLE_MS as u64).as_nanos());
