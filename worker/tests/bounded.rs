//! Very many files with few descriptors, and without a call of the allocator once all is armed: in
//! a process of its own, since the limit is one of the process.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::{
    fs::{self, File},
    os::fd::AsFd,
};

use iofleet_shared::work::{Names, OpKind, OpShare, Pattern, TreePart};
use iofleet_worker::{
    engine::{Engine, Namespace, Request},
    files::{Descriptors, Opening, Paths},
    names::NameSource,
    pattern::Source,
    tree::{Tree, remove_tree},
};
use rustix::{
    fs::OFlags,
    io::{pread, pwrite},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

#[expect(dead_code, reason = "other tests use more of it")]
#[path = "common/counting.rs"]
mod counting;

const DIRS: u32 = 200;
const FILES_PER_DIR: u32 = 100;
const FILES: u32 = DIRS * FILES_PER_DIR;
const DESCRIPTORS: u64 = 256;
/// Of these, files that are held.
const HELD: u32 = 192;

fn part(existing: Names) -> TreePart {
    TreePart {
        base: "tree".to_owned(),
        shared_dirs: false,
        dirs: DIRS,
        files_per_dir: FILES_PER_DIR,
        sizes: vec![],
        sizes_seed: 0,
        existing,
        renamed: false,
    }
}

fn shares(kinds: &[OpKind]) -> Vec<OpShare> {
    kinds.iter().map(|op| OpShare { op: *op, weight: 1 }).collect()
}

/// Calls of the allocator while that is done.
fn calls_of(work: impl FnOnce()) -> usize {
    let before = counting::calls();
    work();
    counting::calls() - before
}

fn performs(engine: &mut Namespace, request: &Request) {
    engine.prepare(request).unwrap();
    assert!(engine.perform(request).result.is_ok(), "{request:?}");
}

#[test]
fn few_descriptors_and_no_allocation_do_for_very_many_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), maximum }).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dataset = File::open(dir.path()).unwrap();
    let arm = |existing, kinds: &[OpKind]| {
        Tree::arm(dataset.as_fd(), &part(existing), 0, &shares(kinds)).unwrap()
    };

    let paths = Paths::tree(arm(Names::default(), &[OpKind::Write]));
    let opening =
        Opening { capacity: HELD, flags: OFlags::RDWR, create: true, sync_on_close: false };
    let mut descriptors = Descriptors::cached(paths, opening);
    let calls = calls_of(|| {
        for file in 0..FILES {
            descriptors.prepare(file).unwrap();
            let written = pwrite(descriptors.get().unwrap(), &file.to_le_bytes(), 0);
            assert_eq!(written, Ok(4));
            descriptors.mark_written();
        }
        let mut found = [0; 4];
        for place in 0..FILES {
            // Each once, far from its neighbours.
            let file = u32::try_from(u64::from(place) * 7_919 % u64::from(FILES)).unwrap();
            descriptors.prepare(file).unwrap();
            assert_eq!(pread(descriptors.get().unwrap(), &mut found[..], 0), Ok(4));
            assert_eq!(found, file.to_le_bytes());
        }
        descriptors.close().unwrap();
    });
    assert_eq!(calls, 0);
    assert!(descriptors.openings().opens > u64::from(FILES) * 19 / 10);

    let existing = Names { dirs: DIRS, files: FILES.into(), gone: 0 };
    let mix: Vec<_> = OpKind::ALL.into_iter().filter(|op| !op.moves_data()).collect();
    let mut source =
        NameSource::new(&part(existing), &shares(&mix), &mix, Pattern::Random, true, 1).unwrap();
    let mut engine = Namespace::new(arm(existing, &mix));
    let calls = calls_of(|| {
        for _ in 0..20_000 {
            performs(&mut engine, &source.next().unwrap());
        }
        while let Some(request) = source.settle(false) {
            performs(&mut engine, &request);
        }
    });
    assert_eq!(calls, 0);

    let left = source.names();
    assert_eq!(remove_tree(dataset.as_fd(), "tree").unwrap(), left.files - left.gone);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
