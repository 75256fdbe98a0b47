//! A connection that is ready for use: frames on its streams, and datagrams beside them.
//!
//! Nothing here decides anything: who is alive, what an answer means and when to stop is the
//! business of those who own a link.

use quinn::{
    Connection, ConnectionError, ReadError, ReadExactError, RecvStream, SendDatagramError,
    SendStream, WriteError,
};

use crate::wire::{Body, CodecError, Datagram, HEADER_BYTES, Header, Hello};

/// Two sides that have proven themselves and greeted each other.
#[derive(Debug)]
pub struct Link {
    /// For datagrams, delivery streams and the end.
    pub connection: Connection,
    /// Commands and notices.
    pub control: Control,
    /// What the peer said of itself.
    pub peer: Hello,
}

/// Both halves of the control stream.
#[derive(Debug)]
pub struct Control {
    /// What this side says.
    pub send: ControlSend,
    /// What the peer says.
    pub receive: ControlReceive,
}

impl Control {
    /// For two tasks, one of which sends and one of which receives.
    #[must_use]
    pub fn split(self) -> (ControlSend, ControlReceive) {
        let Self { send, receive } = self;
        (send, receive)
    }
}

/// The sending half of the control stream.
pub type ControlSend = FrameSend;
/// The receiving half of the control stream.
pub type ControlReceive = FrameReceive;

/// Why no frame went or came.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The connection is at its end.
    #[error("{}", connection_words(.0))]
    Connection(ConnectionError),
    /// The peer ended this stream, by code.
    #[error("the peer broke the stream off (code {0})")]
    Broken(u64),
    /// This side ended it before.
    #[error("the stream was closed by this side")]
    Closed,
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame")]
    Unfinished,
    /// The frame can't be read or written.
    #[error("{0}")]
    Codec(#[from] CodecError),
    /// Datagrams do not work on this connection.
    #[error("the connection carries no datagram of this size: {0}")]
    Datagram(SendDatagramError),
}

impl From<ConnectionError> for LinkError {
    // By hand, so that the end is told in these words alone, without quinn's as a source.
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

/// Sends frames on a stream, control or delivery.
#[derive(Debug)]
pub struct FrameSend {
    stream: SendStream,
}

impl FrameSend {
    /// Takes over a stream.
    #[must_use]
    pub fn new(stream: SendStream) -> Self {
        Self { stream }
    }

    /// Hands a frame to the transport; waits while the peer is behind with reading.
    ///
    /// Not cancel-safe: a frame of which a part went out makes the stream useless.
    ///
    /// # Errors
    /// When the body is longer than a frame may be (nothing was sent then), and when stream or
    /// connection are at their end.
    pub async fn send<B: Body>(&mut self, body: &B) -> Result<(), LinkError> {
        let frame = body.encode()?;
        self.stream.write_chunk(frame.into()).await.map_err(write_error)
    }

    /// Says that no frame follows. What was sent still arrives.
    pub fn finish(&mut self) {
        // Finished twice, or stopped by the peer: no frame follows either way.
        let _ = self.stream.finish();
    }

    /// Waits until the peer's transport has everything up to [`FrameSend::finish`].
    ///
    /// # Errors
    /// When stream or connection ended before.
    pub async fn delivered(&mut self) -> Result<(), LinkError> {
        use quinn::StoppedError;
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(LinkError::Broken(code.into_inner())),
            Err(StoppedError::ConnectionLost(error)) => Err(error.into()),
            Err(StoppedError::ZeroRttRejected) => Err(LinkError::Closed),
        }
    }
}

/// Receives frames from a stream, control or delivery.
#[derive(Debug)]
pub struct FrameReceive {
    stream: RecvStream,
    body: Vec<u8>,
}

impl FrameReceive {
    /// Takes over a stream.
    #[must_use]
    pub fn new(stream: RecvStream) -> Self {
        Self { stream, body: Vec::new() }
    }

    /// The next frame; none when the peer said that no frame follows.
    ///
    /// Not cancel-safe: give it a task of its own and never put it into a `select`, or half a frame
    /// is lost and the rest is taken for a header.
    ///
    /// # Errors
    /// On a frame that is not of this kind, version or magic, or longer than one may be (before
    /// memory is taken for it), on a damaged one, and at the end of stream or connection.
    pub async fn receive<B: Body>(&mut self) -> Result<Option<B>, LinkError> {
        let mut header = [0; HEADER_BYTES];
        match self.stream.read_exact(&mut header).await {
            Ok(()) => {}
            Err(ReadExactError::FinishedEarly(0)) => return Ok(None),
            Err(error) => return Err(read_error(error)),
        }
        let header = Header::decode(header)?;
        if header.kind != B::KIND {
            return Err(CodecError::Kind { found: header.kind, expected: B::KIND }.into());
        }
        self.body.resize(header.length as usize, 0);
        self.stream.read_exact(&mut self.body).await.map_err(read_error)?;
        let body = B::decode(header, &self.body)?;
        if self.body.capacity() > KEPT_BYTES_MAX {
            self.body = Vec::new();
        }
        Ok(Some(body))
    }
}

/// Sends a datagram, which may get lost; a full buffer drops the oldest.
///
/// # Errors
/// When the connection is at its end or carries none of that size.
pub fn send_datagram(connection: &Connection, datagram: &Datagram) -> Result<(), LinkError> {
    connection.send_datagram(datagram.encode()?.into()).map_err(|error| match error {
        SendDatagramError::ConnectionLost(error) => error.into(),
        other @ (SendDatagramError::UnsupportedByPeer
        | SendDatagramError::Disabled
        | SendDatagramError::TooLarge) => LinkError::Datagram(other),
    })
}

/// The next datagram. Cancel-safe.
///
/// # Errors
/// On a damaged one ([`LinkError::Codec`], the next may be good) and at the connection's end.
pub async fn receive_datagram(connection: &Connection) -> Result<Datagram, LinkError> {
    let bytes = connection.read_datagram().await?;
    Ok(decode_datagram(&bytes)?)
}

/// Reads a datagram.
///
/// # Errors
/// On a foreign or damaged one.
pub fn decode_datagram(bytes: &[u8]) -> Result<Datagram, CodecError> {
    Datagram::decode_frame(bytes)
}

/// A connection's end, in words for people.
#[must_use]
pub fn connection_words(error: &ConnectionError) -> String {
    match error {
        ConnectionError::VersionMismatch => "the peer speaks another version of QUIC".to_owned(),
        ConnectionError::TransportError(error) => format!("the connection failed: {error}"),
        ConnectionError::ConnectionClosed(close) => {
            format!("the peer's transport ended the connection: {close}")
        }
        ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
            "the peer closed the connection".to_owned()
        }
        ConnectionError::ApplicationClosed(close) => {
            format!("the peer closed the connection: {}", String::from_utf8_lossy(&close.reason))
        }
        ConnectionError::Reset => "the peer was restarted".to_owned(),
        ConnectionError::TimedOut => "the peer was silent for too long".to_owned(),
        ConnectionError::LocallyClosed => "the connection was closed by this side".to_owned(),
        ConnectionError::CidsExhausted => "out of connection ids".to_owned(),
    }
}

pub(super) fn read_error(error: ReadExactError) -> LinkError {
    match error {
        ReadExactError::FinishedEarly(_) => LinkError::Unfinished,
        ReadExactError::ReadError(ReadError::Reset(code)) => LinkError::Broken(code.into_inner()),
        ReadExactError::ReadError(ReadError::ConnectionLost(error)) => error.into(),
        ReadExactError::ReadError(
            ReadError::ClosedStream | ReadError::IllegalOrderedRead | ReadError::ZeroRttRejected,
        ) => LinkError::Closed,
    }
}

pub(super) fn write_error(error: WriteError) -> LinkError {
    match error {
        WriteError::Stopped(code) => LinkError::Broken(code.into_inner()),
        WriteError::ConnectionLost(error) => error.into(),
        WriteError::ClosedStream | WriteError::ZeroRttRejected => LinkError::Closed,
    }
}

/// A receive buffer larger than this is given back after use.
const KEPT_BYTES_MAX: usize = 256 * 1024;
