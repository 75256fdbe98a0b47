//! Mappings: where their pages lie.

use std::{fs, path::Path};

use super::*;
use crate::{
    host::placement::{Buffers, SYSFS, check},
    payload::Buffer,
};

#[test]
fn nodes_are_taken_in_turn() {
    let placement =
        Placement { numa_nodes: Some(vec![1, 3]), huge_pages: true, ..Placement::default() };
    let of = |index| MemoryPlace::of(&placement, index);
    assert_eq!(of(0), MemoryPlace { huge_pages: true, numa_node: Some(1) });
    assert_eq!(of(5), MemoryPlace { huge_pages: true, numa_node: Some(3) });
    for numa_nodes in [None, Some(Vec::new())] {
        let placement = Placement { numa_nodes, ..Placement::default() };
        assert_eq!(MemoryPlace::of(&placement, 5), MemoryPlace::default());
    }
}

#[test]
fn whole_pages_are_mapped() {
    let huge = MemoryPlace { huge_pages: true, numa_node: None };
    assert_eq!(huge.mapped(1, 4_096), Some(2 << 20));
    assert_eq!(huge.mapped((2 << 20) + 1, 2 << 20), Some(4 << 20));
    assert_eq!(huge.mapped(2 << 20, 4 << 20), Some(6 << 20));
    let small = MemoryPlace::default();
    assert_eq!(small.mapped(10_000, 4_096), Some(12_288));
    assert_eq!(small.mapped(10_000, 65_536), Some(77_824));
    for (length, alignment) in [(0, 4_096), (1, 0), (1, 12_288), (usize::MAX, 4_096)] {
        assert_eq!(small.mapped(length, alignment), None);
    }
}

#[test]
fn a_node_that_is_not_there_is_refused_by_name() {
    for node in [1_000, 1_023, 1_024, u32::MAX] {
        let place = MemoryPlace { huge_pages: false, numa_node: Some(node) };
        assert!(Mapping::new(PAGE, &place).is_err(), "{node}");
    }
    let error = unbound(&io::Error::from_raw_os_error(libc::EINVAL), 7).to_string();
    assert!(error.contains("NUMA node 7") && error.contains("memory that this process may use"));
}

/// Reserves one more huge page and lets go of it again.
struct OneMore(usize);

const RESERVED: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

fn number_at(path: &str) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl OneMore {
    fn reserve() -> Option<Self> {
        let before = number_at(RESERVED)?;
        fs::write(RESERVED, (before + 1).to_string()).ok()?;
        (number_at(RESERVED)? > before).then_some(Self(before))
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        let _ = fs::write(RESERVED, self.0.to_string());
    }
}

#[test]
fn buffers_lie_in_huge_pages() {
    let Some(_reserved) = OneMore::reserve() else {
        return println!("SKIP: no huge page can be reserved here");
    };
    let placement = Placement { huge_pages: true, ..Placement::default() };
    let one = Buffers { threads: 1, per_thread: 1, bytes: 10_000, alignment: 4_096 };
    check(&placement, &one, Path::new(SYSFS)).unwrap();
    let place = MemoryPlace::of(&placement, 0);
    let mut buffer = Buffer::with(10_000, 4_096, &place).unwrap();
    buffer.bytes_mut().fill(7);
    assert_eq!(buffer.bytes(), [7; 10_000]);
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let start = format!("{:x}-", buffer.bytes().as_ptr().addr());
    let own = smaps.split_once(&format!("\n{start}")).unwrap().1;
    let size = own.lines().find(|line| line.starts_with("KernelPageSize:")).unwrap();
    assert_eq!(size.split_whitespace().nth(1), Some("2048"));
    // No machine has reserved as many as this.
    let error = Buffer::with(1 << 46, 4_096, &place).unwrap_err().to_string();
    assert!(error.contains("vm.nr_hugepages"), "{error}");
    // Promised to nobody, so that the page after the last free one is SIGBUS.
    let length = (number_at(FREE).unwrap() + 1) * HUGE_PAGE;
    let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB | MapFlags::NORESERVE;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice touches nothing.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), length, access, flags) }.unwrap();
    let error = Mapping { start, length }.populate(&place).unwrap_err().to_string();
    assert!(error.contains("vm.nr_hugepages"), "{error}");
}
