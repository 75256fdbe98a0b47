//! The worker's side of the first contact. Nothing of a peer is read before its certificate has
//! been judged, and nothing but a hello before both have greeted.

use std::{fmt, net::SocketAddr, time::Duration};

use quinn::{Connection, ConnectionError, Incoming};
use tokio::time::timeout;

use super::{
    CLOSE_HELLO, Control, Flaw, FrameReceive, FrameSend, Link, LinkError,
    connect::alert,
    link::{read_error, write_error},
};
use crate::{
    limits::CONNECT_WITHIN,
    wire::{HELLO_BYTES, Hello, HelloError},
};

/// A peer that was not let in.
#[derive(Debug)]
pub struct AcceptError {
    /// From where it came.
    pub remote: SocketAddr,
    /// Why not.
    pub why: AcceptFailure,
}

/// Why a peer was not let in.
#[derive(Debug, thiserror::Error)]
pub enum AcceptFailure {
    /// Its certificate was refused.
    #[error("its certificate {0}")]
    Certificate(Flaw),
    /// The peer would not have this worker's certificate.
    #[error("it refused this worker: the worker's certificate {}; {}", .0, .0.advice())]
    Distrusted(Flaw),
    /// The hellos do not fit.
    #[error("{0}")]
    Hello(#[from] HelloError),
    /// It was too slow.
    #[error("it did not greet within {0:?}")]
    Mute(Duration),
    /// Anything else.
    #[error("{0}")]
    Link(LinkError),
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { remote, why } = self;
        write!(f, "turned away {}:{}: {why}", remote.ip().to_canonical(), remote.port())
    }
}

impl std::error::Error for AcceptError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Lets a coordinator in: handshake and hello, within [`CONNECT_WITHIN`]. Takes as long as the peer
/// does, so give it a task of its own. A refusal is in the log when this returns.
///
/// # Errors
/// On a certificate that is missing, expired, foreign or of another role, on a hello that does not
/// fit, and on a peer that does not greet.
pub async fn accept(incoming: Incoming) -> Result<Link, AcceptError> {
    let remote = incoming.remote_address();
    let outcome = match timeout(CONNECT_WITHIN, enter(incoming)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(AcceptFailure::Mute(CONNECT_WITHIN)),
    };
    outcome.map_err(|why| {
        let error = AcceptError { remote, why };
        tracing::warn!("{error}");
        error
    })
}

async fn enter(incoming: Incoming) -> Result<Link, AcceptFailure> {
    let connection = incoming.await.map_err(explain)?;
    let (mut send, mut receive) = connection.accept_bi().await.map_err(explain)?;
    let mut bytes = [0; HELLO_BYTES];
    receive.read_exact(&mut bytes).await.map_err(|error| ended(read_error(error)))?;
    let hello = Hello::decode(&bytes);
    if hello != Err(HelloError::Foreign) {
        // Also to a peer of another version: it tells its people in its own words.
        let ours = Hello::ours().encode();
        send.write_all(&ours).await.map_err(|error| ended(write_error(error)))?;
    }
    let peer = match hello {
        Ok(peer) => peer,
        Err(error) => {
            farewell(&connection, send, &error).await;
            return Err(error.into());
        }
    };
    // Notices overtake the deliveries that wait to be sent.
    let _ = send.set_priority(1);
    let control = Control { send: FrameSend::new(send), receive: FrameReceive::new(receive) };
    Ok(Link { connection, control, peer })
}

/// Ends a connection whose hellos do not fit, once the peer has what was written.
async fn farewell(connection: &Connection, mut send: quinn::SendStream, error: &HelloError) {
    let _ = send.finish();
    // A peer that left is answered no more.
    let _ = send.stopped().await;
    connection.close(CLOSE_HELLO.into(), error.to_string().as_bytes());
}

fn ended(error: LinkError) -> AcceptFailure {
    if let LinkError::Connection(error) = error {
        explain(error)
    } else {
        AcceptFailure::Link(error)
    }
}

/// Turns the end of a connection into what it means for who should have been let in.
fn explain(error: ConnectionError) -> AcceptFailure {
    if let ConnectionError::TransportError(failure) = &error
        && let Some(flaw) =
            alert(failure.code).and_then(|alert| Flaw::of_alert(alert, &failure.reason))
    {
        return AcceptFailure::Certificate(flaw);
    }
    if let ConnectionError::ConnectionClosed(close) = &error
        && let Some(flaw) = alert(close.error_code)
            .and_then(|alert| Flaw::of_alert(alert, &String::from_utf8_lossy(&close.reason)))
    {
        return AcceptFailure::Distrusted(flaw);
    }
    AcceptFailure::Link(error.into())
}
