//! Frames: a fixed header, coded by hand, and an rkyv archive behind it.
//!
//! ```text
//! bytes  0..4   magic "IOFL"
//!        4..6   protocol version, little endian
//!        6..8   kind of body, little endian
//!        8..12  length of the body, little endian
//!       12..    body
//! ```

use rkyv::{api::high::to_bytes_in, rancor};

use super::{Command, Datagram, Delivery, Notice, WireVersion};
use crate::limits::FRAME_BYTES_MAX;

/// Length of the header.
pub const HEADER_BYTES: usize = 12;
const MAGIC: [u8; 4] = *b"IOFL";

/// A frame that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// It does not start with the magic.
    #[error("not a frame of iofleet")]
    Magic,
    /// It has another version than the one agreed on.
    #[error("a frame of protocol version {0}")]
    Version(u16),
    /// Its body is of another kind than the place it came from carries.
    #[error("a frame of kind {found} where kind {expected} belongs")]
    Kind {
        /// What it says.
        found: u16,
        /// What belongs there.
        expected: u16,
    },
    /// Its body is longer than any may be.
    #[error("a frame of {0} bytes, above the limit of {FRAME_BYTES_MAX}")]
    Length(u32),
    /// The number of bytes is not what the header says.
    #[error("a frame of {found} bytes where its header says {expected}")]
    Truncated {
        /// What is there.
        found: usize,
        /// What the header says.
        expected: usize,
    },
    /// The archive is damaged.
    #[error("a damaged body: {0}")]
    Body(String),
}

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Kind of body.
    pub kind: u16,
    /// Length of the body in bytes, at most `FRAME_BYTES_MAX`.
    pub length: u32,
}

impl Header {
    /// Reads a header and refuses what this build can't read.
    ///
    /// # Errors
    /// On a foreign magic, another version, and a length above the limit.
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, CodecError> {
        let [m0, m1, m2, m3, v0, v1, k0, k1, l0, l1, l2, l3] = bytes;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(CodecError::Magic);
        }
        let version = u16::from_le_bytes([v0, v1]);
        if version != WireVersion::CURRENT as u16 {
            return Err(CodecError::Version(version));
        }
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if length > FRAME_BYTES_MAX {
            return Err(CodecError::Length(length));
        }
        Ok(Self { kind: u16::from_le_bytes([k0, k1]), length })
    }

    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&(WireVersion::CURRENT as u16).to_le_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }
}

/// What can stand behind a header.
pub trait Body: Sized {
    /// Kind number in the header.
    const KIND: u16;

    /// Header and body.
    ///
    /// # Errors
    /// When the body would be longer than a frame may be.
    fn encode(&self) -> Result<Vec<u8>, CodecError>;

    /// Reads a body whose header was already taken off.
    ///
    /// # Errors
    /// On another kind, another length, and a damaged archive.
    fn decode(header: Header, body: &[u8]) -> Result<Self, CodecError>;

    /// Reads header and body.
    ///
    /// # Errors
    /// As [`Header::decode`] and [`Body::decode`].
    fn decode_frame(frame: &[u8]) -> Result<Self, CodecError> {
        let Some((header, body)) = frame.split_first_chunk::<HEADER_BYTES>() else {
            return Err(CodecError::Truncated { found: frame.len(), expected: HEADER_BYTES });
        };
        Self::decode(Header::decode(*header)?, body)
    }
}

macro_rules! bodies {
    ($($kind:literal $body:ty),* $(,)?) => {$(
        impl Body for $body {
            const KIND: u16 = $kind;

            fn encode(&self) -> Result<Vec<u8>, CodecError> {
                let mut frame = to_bytes_in::<_, rancor::Error>(self, vec![0; HEADER_BYTES])
                    .map_err(|error| CodecError::Body(error.to_string()))?;
                let length = u32::try_from(frame.len() - HEADER_BYTES).unwrap_or(u32::MAX);
                if length > FRAME_BYTES_MAX {
                    return Err(CodecError::Length(length));
                }
                let header = Header { kind: Self::KIND, length }.encode();
                frame[..HEADER_BYTES].copy_from_slice(&header);
                Ok(frame)
            }

            fn decode(header: Header, body: &[u8]) -> Result<Self, CodecError> {
                if header.kind != Self::KIND {
                    return Err(CodecError::Kind { found: header.kind, expected: Self::KIND });
                }
                let expected = header.length as usize;
                if body.len() != expected {
                    return Err(CodecError::Truncated { found: body.len(), expected });
                }
                rkyv::from_bytes::<Self, rancor::Error>(body)
                    .map_err(|error| CodecError::Body(error.to_string()))
            }
        }
    )*};
}

bodies! {
    1 Command,
    2 Notice,
    3 Delivery,
    4 Datagram,
}

#[cfg(test)]
mod tests;
