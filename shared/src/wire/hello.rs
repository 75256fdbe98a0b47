//! The hello: the first bytes each way on the control stream. Its layout is frozen for all
//! versions, so that two builds that share no protocol can still name each other.
//!
//! ```text
//! bytes  0..8   "IOFLEET\n"
//!        8..10  oldest protocol version spoken, little endian
//!       10..12  newest protocol version spoken, little endian
//!       12..64  version of the build, UTF-8, filled up with zeros
//! ```

use super::WireVersion;

/// Length of a hello.
pub const HELLO_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"IOFLEET\n";

/// What a peer says of itself before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Oldest protocol version that it speaks.
    pub oldest: u16,
    /// Newest protocol version that it speaks.
    pub newest: u16,
    /// Version of its build.
    pub build: String,
}

/// A hello that ends the conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The bytes are not a hello.
    #[error("the peer does not speak iofleet's protocol")]
    Foreign,
    /// No version in common.
    #[error(
        "the peer (iofleet {build}) speaks protocol {oldest} to {newest}, this side (iofleet \
         {ours}) {our_oldest} to {our_newest}: install the same version on both"
    )]
    NoCommonVersion {
        /// The peer's build.
        build: String,
        /// Its oldest.
        oldest: u16,
        /// Its newest.
        newest: u16,
        /// This build.
        ours: &'static str,
        /// This build's oldest.
        our_oldest: u16,
        /// This build's newest.
        our_newest: u16,
    },
}

impl Hello {
    /// This build's.
    #[must_use]
    pub fn ours() -> Self {
        Self {
            oldest: WireVersion::OLDEST as u16,
            newest: WireVersion::CURRENT as u16,
            build: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.oldest.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.newest.to_le_bytes());
        let build = &self.build.as_bytes()[..self.build.len().min(HELLO_BYTES - 12)];
        bytes[12..12 + build.len()].copy_from_slice(build);
        bytes
    }

    /// Reads the peer's and checks that both sides share a version.
    ///
    /// # Errors
    /// When they are no hello, or there is no version in common.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Self, HelloError> {
        if bytes[..8] != MAGIC {
            return Err(HelloError::Foreign);
        }
        let build = bytes[12..].split(|byte| *byte == 0).next().unwrap_or(&[]);
        let peer = Self {
            oldest: u16::from_le_bytes([bytes[8], bytes[9]]),
            newest: u16::from_le_bytes([bytes[10], bytes[11]]),
            build: String::from_utf8_lossy(build).into_owned(),
        };
        let (our_oldest, our_newest) =
            (WireVersion::OLDEST as u16, WireVersion::CURRENT as u16);
        if peer.newest < our_oldest || our_newest < peer.oldest {
            return Err(HelloError::NoCommonVersion {
                build: peer.build,
                oldest: peer.oldest,
                newest: peer.newest,
                ours: env!("CARGO_PKG_VERSION"),
                our_oldest,
                our_newest,
            });
        }
        Ok(peer)
    }
}
