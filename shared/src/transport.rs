//! QUIC between a coordinator and its workers.
//!
//! Both sides prove with TLS 1.3 that they are of the same fleet: certificates come from the
//! fleet's own authority, and their extended key usage says which role they have. The name of a
//! host plays no part, so that a fleet needs one certificate per role and no list of hosts.
//!
//! `identity` loads and judges keys · `endpoint` makes sockets · `connect` and `accept` bring two
//! sides together, hello included · `link` moves frames and datagrams. This module knows `wire`
//! and nothing of runs.

use std::{error::Error, fmt};

pub use accept::{AcceptError, AcceptFailure, accept};
pub use certificate::{CertificateFacts, Flaw, facts};
pub use connect::{ConnectError, ConnectFailure, connect};
pub use endpoint::{EndpointError, client, listen, listen_on};
pub use identity::{Identity, IdentityError};
pub use link::{
    Control, ControlReceive, ControlSend, FrameReceive, FrameSend, Link, LinkError,
    connection_words, decode_datagram, receive_datagram, send_datagram,
};

mod accept;
mod certificate;
mod connect;
mod endpoint;
mod identity;
mod link;
mod verify;

/// Which side of a fleet a certificate speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Commands workers: extended key usage `clientAuth` and no other.
    Coordinator,
    /// Obeys a coordinator: extended key usage `serverAuth` and no other.
    Worker,
}

impl Role {
    /// Name of its certificate's file: `coordinator.pem`, `worker.pem`.
    #[must_use]
    pub fn certificate_file(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator.pem",
            Self::Worker => "worker.pem",
        }
    }

    /// Name of its private key's file: `coordinator.key`, `worker.key`.
    #[must_use]
    pub fn key_file(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator.key",
            Self::Worker => "worker.key",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Coordinator => "coordinator",
            Self::Worker => "worker",
        })
    }
}

/// An error and its sources, joined by colons; a source that the text before it already tells is
/// left out.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let words = source.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = source.source();
    }
    text
}

/// Name of the authority's certificate's file.
pub const AUTHORITY_FILE: &str = "authority.pem";
/// The name that every worker's certificate carries and every coordinator asks for.
pub const SERVER_NAME: &str = "worker.iofleet";
/// Application protocol of the TLS handshake.
pub const ALPN: &[u8] = b"iofleet";

/// Code of an orderly end of a connection.
pub const CLOSE_DONE: u32 = 0;
/// Code of a connection that ends because the hellos do not fit; its reason says why in words.
pub const CLOSE_HELLO: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Told {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    fn told(text: &'static str, source: Option<Told>) -> Told {
        Told { text, source: source.map(Box::new) }
    }

    #[test]
    fn a_chain_tells_each_source_once() {
        let error =
            told("can't start", Some(told("no socket: in use", Some(told("in use", None)))));
        assert_eq!(error_chain(&error), "can't start: no socket: in use");
        assert_eq!(error_chain(&told("alone", None)), "alone");
    }
}
