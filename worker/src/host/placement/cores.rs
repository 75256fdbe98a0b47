//! Sets of cores and nodes: as the kernel writes them (`0-3,8`), and as it takes them of a thread.

use std::{collections::BTreeSet, fmt, io};

/// Cores that can be named, which is what kernels are built for at most.
const CORES_MAX: u32 = 8_192;

const WORD_BITS: u32 = u64::BITS;

/// Numbers of cores or of NUMA nodes. As text: `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuList(pub(super) BTreeSet<u32>);

impl CpuList {
    /// Reads what the kernel writes in `cpulist`, `online` and the like; an empty text is an empty
    /// list. None where the text is something else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= CORES_MAX {
                return None;
            }
            numbers.extend(first..=last);
        }
        Some(Self(numbers))
    }

    /// Whether it has the number.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.0.contains(&number)
    }

    /// What both have.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let mut separator = "";
        let mut numbers = self.0.iter().copied().peekable();
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if(|next| *next == last + 1) {
                last = next;
            }
            match first == last {
                true => write!(f, "{separator}{first}")?,
                false => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

/// A set of cores as system calls take it; larger than libc's, which ends at 1024 cores.
type Mask = [u64; (CORES_MAX / WORD_BITS) as usize];

/// The cores that this process may use: those of its main thread, which is bound to nothing.
///
/// # Errors
/// What `sched_getaffinity` says.
pub(super) fn allowed() -> io::Result<CpuList> {
    let mut mask: Mask = [0; _];
    // SAFETY: the mask is as long as is said, and any bits are a value of it.
    let result = unsafe {
        libc::sched_getaffinity(libc::getpid(), size_of::<Mask>(), mask.as_mut_ptr().cast())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_set = |core: &u32| {
        mask.get((core / WORD_BITS) as usize)
            .is_some_and(|word| word >> (core % WORD_BITS) & 1 == 1)
    };
    Ok(CpuList((0..CORES_MAX).filter(is_set).collect()))
}

/// Binds the calling thread.
///
/// # Errors
/// What `sched_setaffinity` says: `InvalidInput` where the process may use none of the cores.
pub(super) fn bind(cores: &CpuList) -> io::Result<()> {
    let mut mask: Mask = [0; _];
    for core in &cores.0 {
        let word = mask.get_mut((core / WORD_BITS) as usize).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (core % WORD_BITS);
    }
    // SAFETY: the mask is as long as is said.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), mask.as_ptr().cast()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_kernel() {
        let of =
            |text: &str| CpuList::parse(text).map(|list| list.0.into_iter().collect::<Vec<_>>());
        assert_eq!(of("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(of("\n"), Some(vec![]));
        assert_eq!(of("8191"), Some(vec![8_191]));
        for damaged in ["3-1", "a", "1-", "-1", "0-4294967295", "8192", "1 2", "0-3:1/2"] {
            assert_eq!(of(damaged), None, "{damaged}");
        }
        assert_eq!(CpuList::default().to_string(), "none");
    }

    proptest::proptest! {
        #[test]
        fn text_and_list_are_the_same(numbers in proptest::collection::btree_set(0..40_u32, 1..30)) {
            let list = CpuList(numbers);
            proptest::prop_assert_eq!(CpuList::parse(&list.to_string()), Some(list));
        }
    }
}
