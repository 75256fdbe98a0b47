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
        let (our_oldest, our_newest) = (WireVersion::OLDEST as u16, WireVersion::CURRENT as u16);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What stands in every build's hello, for ever.
    #[test]
    fn bytes_are_frozen() {
        let hello = Hello { oldest: 1, newest: 0x0203, build: "1.2.3".to_owned() };
        let mut expected = [0; HELLO_BYTES];
        expected[..17].copy_from_slice(b"IOFLEET\n\x01\x00\x03\x021.2.3");
        assert_eq!(hello.encode(), expected);
        assert_eq!(Hello::decode(&expected), Ok(hello));
    }

    #[test]
    fn ours_is_understood_by_ourselves() {
        assert_eq!(Hello::decode(&Hello::ours().encode()), Ok(Hello::ours()));
    }

    #[test]
    fn other_versions_are_named() {
        let ours = WireVersion::CURRENT as u16;
        let of = |oldest, newest| {
            let hello = Hello { oldest, newest, build: "9.9".to_owned() };
            Hello::decode(&hello.encode())
        };
        assert!(of(ours, ours + 5).is_ok());
        assert!(of(0, ours).is_ok());
        for (oldest, newest) in [(ours + 1, ours + 5), (0, 0)] {
            let text = of(oldest, newest).unwrap_err().to_string();
            assert!(text.contains("iofleet 9.9"), "{text}");
            assert!(text.contains(&format!("protocol {oldest} to {newest}")), "{text}");
        }
    }

    #[test]
    fn another_magic_is_foreign() {
        for at in 0..8 {
            let mut bytes = Hello::ours().encode();
            bytes[at] ^= 0x20;
            assert_eq!(Hello::decode(&bytes), Err(HelloError::Foreign));
        }
    }

    #[test]
    fn a_long_build_is_cut_and_a_damaged_one_still_shown() {
        let hello = Hello { build: "x".repeat(100), ..Hello::ours() };
        assert_eq!(Hello::decode(&hello.encode()).unwrap().build, "x".repeat(HELLO_BYTES - 12));
        let mut bytes = Hello::ours().encode();
        bytes[12] = 0xff;
        assert!(Hello::decode(&bytes).unwrap().build.starts_with('\u{fffd}'));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: [u8; 32], rest: [u8; 32], magic: bool) {
            let mut hello = [0; HELLO_BYTES];
            hello[..32].copy_from_slice(&bytes);
            hello[32..].copy_from_slice(&rest);
            if magic {
                hello[..8].copy_from_slice(&MAGIC);
            }
            let _ = Hello::decode(&hello);
        }
    }
}
