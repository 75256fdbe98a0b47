//! Bounded descriptors in temporary directories.

use std::{ffi::CStr, fs, os::fd::AsRawFd, path::Path};

use iofleet_shared::work::{Names, OpKind, OpShare, TreePart};
use proptest::prelude::*;
use rustix::io::pwrite;

use super::*;
use crate::tree::Tree;

fn opening(capacity: u32, create: bool) -> Opening {
    Opening { capacity, flags: OFlags::RDWR, create, sync_on_close: false }
}

fn tree(dir: &Path) -> Paths {
    let part = TreePart {
        base: "tree".to_owned(),
        shared_dirs: false,
        dirs: 5,
        files_per_dir: 10,
        sizes: vec![],
        sizes_seed: 0,
        existing: Names::default(),
        renamed: false,
    };
    let ops = [OpShare { op: OpKind::Write, weight: 1 }];
    Paths::tree(Tree::arm(File::open(dir).unwrap().as_fd(), &part, 0, &ops).unwrap().hold(2))
}

#[test]
fn files_that_stay_open_are_found_by_their_place() {
    let files: Vec<_> = (0..3).map(|_| Arc::new(tempfile::tempfile().unwrap())).collect();
    let mut descriptors = Descriptors::fixed(files.clone());
    for at in [2, 0, 1, 1] {
        descriptors.prepare(at).unwrap();
        assert_eq!(descriptors.get().unwrap().as_raw_fd(), files[at as usize].as_raw_fd());
    }
    descriptors.prepare(3).unwrap();
    assert_eq!(descriptors.get().unwrap_err().errno, libc::EBADF);
    assert_eq!((descriptors.flush(), descriptors.close()), (Ok(()), Ok(())));
    assert_eq!(Arc::strong_count(&files[0]), 1);
}

#[test]
fn a_file_is_created_once_however_often_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let mut descriptors = Descriptors::cached(tree(dir.path()), opening(3, true));
    for round in 0..2 {
        for file in 0..50_u32 {
            descriptors.prepare(file).unwrap();
            let written = pwrite(descriptors.get().unwrap(), &file.to_le_bytes(), round * 4);
            assert_eq!(written, Ok(4));
        }
    }
    let content = fs::read(dir.path().join("tree/t00000/d0004/f0000049")).unwrap();
    assert_eq!(content, [49, 0, 0, 0, 49, 0, 0, 0]);
    let Openings { opens, closes, failed_closes, .. } = descriptors.openings();
    assert_eq!((opens, closes, failed_closes), (100, 97, 0));
    descriptors.close().unwrap();
    let Openings { closes, held_ns, held_ns_max, .. } = descriptors.openings();
    assert_eq!(closes, 100);
    assert!(held_ns_max > 0 && (held_ns_max..=held_ns_max * 100).contains(&held_ns));
    assert!(descriptors.get().is_err());
    // Another thread's object does not know that they were created.
    let mut others = Descriptors::cached(tree(dir.path()), opening(3, true));
    let exists = Failure { call: Call::Create, errno: libc::EEXIST };
    assert_eq!(others.prepare(7), Err(exists));
    assert_eq!(others.get().unwrap_err(), exists);
}

#[test]
fn what_is_used_again_stays_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut descriptors = Descriptors::cached(tree(dir.path()), opening(4, true));
    for file in 1..50 {
        descriptors.prepare(0).unwrap();
        descriptors.prepare(file).unwrap();
    }
    assert_eq!(descriptors.openings().opens, 50);
}

#[test]
fn a_file_that_cannot_be_synced_is_told_of_when_it_is_closed() {
    // Devices that can be written, and refuse to be synced.
    let names = [c"null", c"zero"].map(CStr::to_owned).to_vec();
    let paths = Paths::named(File::open("/dev").unwrap().into(), names);
    let options =
        Opening { capacity: 1, flags: OFlags::WRONLY, create: false, sync_on_close: true };
    let mut descriptors = Descriptors::cached(paths, options);
    let refused = Failure { call: Call::Fsync, errno: libc::EINVAL };
    descriptors.prepare(0).unwrap();
    descriptors.prepare(1).unwrap();
    assert_eq!(descriptors.take_failure(), None, "nothing was written");
    descriptors.mark_written();
    assert_eq!(descriptors.flush(), Err(refused));
    assert_eq!(descriptors.prepare(0), Ok(()));
    assert_eq!(descriptors.take_failure(), Some(refused));
    assert_eq!(descriptors.take_failure(), None);
    descriptors.mark_written();
    // What is to be durable in the end is the business of `flush`.
    assert_eq!(descriptors.close(), Ok(()));
    assert_eq!(descriptors.openings().failed_closes, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn the_prepared_file_is_the_one_asked_for(
        capacity in 1..9_u32,
        asked in prop::collection::vec(0..50_u32, 1..200),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut descriptors = Descriptors::cached(tree(dir.path()), opening(capacity, true));
        for file in asked {
            descriptors.prepare(file).unwrap();
            let found = fs::read_link(
                format!("/proc/self/fd/{}", descriptors.get().unwrap().as_raw_fd()),
            ).unwrap();
            prop_assert!(found.ends_with(format!("d{:04}/f{file:07}", file / 10)), "{found:?}");
            let Openings { opens, closes, .. } = descriptors.openings();
            prop_assert!(opens - closes <= u64::from(capacity));
        }
    }
}
