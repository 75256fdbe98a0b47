//! From a host name to a link: the coordinator's side of the first contact, and a name for
//! everything that can go wrong in it.

use std::{fmt, io, net::SocketAddr, time::Duration};

use quinn::{Connection, ConnectionError, Endpoint, TransportErrorCode};
use rustls::AlertDescription;
use tokio::time::{Instant, timeout_at};

use super::{
    CLOSE_HELLO, Control, Flaw, FrameReceive, FrameSend, Link, LinkError, SERVER_NAME,
    link::{connection_words, read_error, write_error},
};
use crate::wire::{HELLO_BYTES, Hello, HelloError};

/// A worker that can't be spoken with.
#[derive(Debug)]
pub struct ConnectError {
    /// Host as given.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// Addresses that were tried; none where the name could not be resolved.
    pub tried: Vec<SocketAddr>,
    /// What went wrong. Its text names no host, so that the same of many nodes is one message.
    pub why: ConnectFailure,
}

/// What went wrong in making contact.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFailure {
    /// The name has no address.
    #[error("the host name can't be resolved: {0}")]
    Resolve(io::Error),
    /// Resolving took too long.
    #[error("the host name could not be resolved within {0:?}: does the name service answer?")]
    ResolveTimeout(Duration),
    /// None of its addresses can be reached from the socket.
    #[error("it has only IPv6 addresses, which this machine can't reach")]
    NoRoute,
    /// No answer on that port.
    #[error(
        "no answer within {within:?}: is iofleet-worker running there, and is UDP port {port} open?"
    )]
    Unreachable {
        /// How long was waited in all.
        within: Duration,
        /// The port.
        port: u16,
    },
    /// The worker would not have this coordinator's certificate.
    #[error("the worker refused this coordinator: its certificate {}; {}", .0, .0.advice())]
    Refused(Flaw),
    /// This coordinator would not have the worker's certificate.
    #[error("the worker's certificate {}; {}", .0, .0.advice())]
    Distrusted(Flaw),
    /// The hellos do not fit.
    #[error("{0}")]
    Hello(#[from] HelloError),
    /// The worker said so, as it sees it.
    #[error("the worker ended the conversation: {0}")]
    Turned(String),
    /// A connection and no hello.
    #[error("it took the connection but did not greet within {0:?}: is the worker stuck?")]
    Mute(Duration),
    /// Anything else.
    #[error("{0}")]
    Link(LinkError),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, tried, why } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")?;
        } else {
            write!(f, "{host}:{port}")?;
        }
        let addresses: Vec<String> = tried
            .iter()
            .map(|address| address.ip().to_canonical().to_string())
            .filter(|address| address != host)
            .collect();
        if !addresses.is_empty() {
            write!(f, " ({})", addresses.join(", "))?;
        }
        write!(f, ": {why}")
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Resolves a host, tries its addresses in turn (each with its share of the time), and greets.
/// `host` is a name or an address, IPv6 with or without brackets.
///
/// # Errors
/// Within `within`, with where and why.
pub async fn connect(
    endpoint: &Endpoint,
    host: &str,
    port: u16,
    within: Duration,
) -> Result<Link, ConnectError> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let deadline = after(within);
    let failed = |tried, why| ConnectError { host: host.to_owned(), port, tried, why };
    let addresses = match timeout_at(deadline, resolve(endpoint, host, port)).await {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(why)) => return Err(failed(Vec::new(), why)),
        Err(_) => return Err(failed(Vec::new(), ConnectFailure::ResolveTimeout(within))),
    };
    let share = within / u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    let mut last = None;
    for address in &addresses {
        match attempt(endpoint, *address, after(share).min(deadline), within).await {
            Ok(link) => return Ok(link),
            // Somebody was there and said no: the other addresses lead to the same machine.
            Err(why) if !matches!(why, ConnectFailure::Unreachable { .. }) => {
                return Err(failed(addresses, why));
            }
            Err(why) => last = Some(why),
        }
    }
    let why = last.unwrap_or(ConnectFailure::Unreachable { within, port });
    Err(failed(addresses, why))
}

/// The addresses that can be reached from the endpoint, without repetition.
async fn resolve(
    endpoint: &Endpoint,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, ConnectFailure> {
    let found = tokio::net::lookup_host((host, port)).await.map_err(ConnectFailure::Resolve)?;
    let both = endpoint.local_addr().is_ok_and(|local| local.is_ipv6());
    let mut addresses: Vec<SocketAddr> = Vec::new();
    let mut beyond = false;
    for address in found {
        if address.is_ipv6() && !both {
            beyond = true;
        } else if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    match (addresses.is_empty(), beyond) {
        (false, _) => Ok(addresses),
        (true, true) => Err(ConnectFailure::NoRoute),
        (true, false) => Err(ConnectFailure::Resolve(io::Error::other("it has no address"))),
    }
}

async fn attempt(
    endpoint: &Endpoint,
    address: SocketAddr,
    deadline: Instant,
    within: Duration,
) -> Result<Link, ConnectFailure> {
    let unreachable = ConnectFailure::Unreachable { within, port: address.port() };
    let connecting = endpoint.connect(address, SERVER_NAME).map_err(|error| {
        ConnectFailure::Resolve(io::Error::new(io::ErrorKind::InvalidInput, error))
    })?;
    let connection = match timeout_at(deadline, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(ConnectionError::TimedOut)) | Err(_) => return Err(unreachable),
        Ok(Err(error)) => return Err(explain(error)),
    };
    // TLS 1.3: the handshake is over on this side before the worker has judged our certificate. Its
    // refusal arrives in place of its hello.
    match timeout_at(deadline, greet(connection)).await {
        Ok(link) => link,
        Err(_) => Err(ConnectFailure::Mute(within)),
    }
}

async fn greet(connection: Connection) -> Result<Link, ConnectFailure> {
    let (mut send, mut receive) = connection.open_bi().await.map_err(explain)?;
    let mut bytes = [0; HELLO_BYTES];
    let exchanged = async {
        send.write_all(&Hello::ours().encode()).await.map_err(write_error)?;
        receive.read_exact(&mut bytes).await.map_err(read_error)
    };
    exchanged.await.map_err(|error| {
        if let LinkError::Connection(error) = error {
            explain(error)
        } else {
            ConnectFailure::Link(error)
        }
    })?;
    let peer = match Hello::decode(&bytes) {
        Ok(peer) => peer,
        Err(error) => {
            connection.close(CLOSE_HELLO.into(), error.to_string().as_bytes());
            return Err(error.into());
        }
    };
    // Commands overtake whatever else waits to be sent.
    let _ = send.set_priority(1);
    let control = Control { send: FrameSend::new(send), receive: FrameReceive::new(receive) };
    Ok(Link { connection, control, peer })
}

/// Turns the end of a connection into what it means for who wanted it.
fn explain(error: ConnectionError) -> ConnectFailure {
    match &error {
        ConnectionError::ConnectionClosed(close) => {
            let reason = String::from_utf8_lossy(&close.reason);
            match alert(close.error_code) {
                Some(AlertDescription::NoApplicationProtocol) => HelloError::Foreign.into(),
                Some(alert) => match Flaw::of_alert(alert, &reason) {
                    Some(flaw) => ConnectFailure::Refused(flaw),
                    None => ConnectFailure::Turned(connection_words(&error)),
                },
                None => ConnectFailure::Turned(connection_words(&error)),
            }
        }
        ConnectionError::TransportError(failure) => {
            match alert(failure.code).and_then(|alert| Flaw::of_alert(alert, &failure.reason)) {
                Some(flaw) => ConnectFailure::Distrusted(flaw),
                None => ConnectFailure::Link(error.into()),
            }
        }
        ConnectionError::ApplicationClosed(close) => {
            ConnectFailure::Turned(String::from_utf8_lossy(&close.reason).into_owned())
        }
        ConnectionError::VersionMismatch
        | ConnectionError::Reset
        | ConnectionError::TimedOut
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => ConnectFailure::Link(error.into()),
    }
}

/// The TLS alert inside a QUIC error code (RFC 9001, section 4.8: 0x100 and the alert).
pub(super) fn alert(code: TransportErrorCode) -> Option<AlertDescription> {
    let code = u64::from(code);
    (code >> 8 == 1).then(|| AlertDescription::from(code.to_le_bytes()[0]))
}

fn after(span: Duration) -> Instant {
    // A timer knows its own deadline: no clock is read here.
    tokio::time::sleep(span).deadline()
}
