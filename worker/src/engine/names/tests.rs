//! Operations beside what the standard library finds afterwards.

use std::{
    fs::{self, File},
    path::PathBuf,
};

use iofleet_shared::work::{Names, OpShare, Pattern, TreePart};
use tempfile::TempDir;

use super::*;
use crate::{names::NameSource, pattern::Source};

struct Fixture {
    dir: TempDir,
    part: TreePart,
}

impl Fixture {
    fn new(shared_dirs: bool) -> Self {
        let part = TreePart {
            base: "tree".to_owned(),
            shared_dirs,
            dirs: 20,
            files_per_dir: 10,
            sizes: vec![],
            sizes_seed: 0,
            existing: Names::default(),
            renamed: false,
        };
        Self { dir: tempfile::tempdir().unwrap(), part }
    }

    fn engine(&self, thread: u32, ops: &[OpShare]) -> Namespace {
        let dataset = File::open(self.dir.path()).unwrap();
        let tree = Tree::arm(dataset.as_fd(), &self.part, thread, ops).unwrap();
        Namespace::new(tree.hold(4))
    }

    /// Performs up to that many operations, none of which fails; leaves the part as they left it.
    fn run(&mut self, thread: u32, kinds: &[OpKind], at_most: usize) -> usize {
        let ops: Vec<_> = kinds.iter().map(|op| OpShare { op: *op, weight: 1 }).collect();
        let mut engine = self.engine(thread, &ops);
        let mut source =
            NameSource::new(&self.part, &ops, kinds, Pattern::Sequential, false, 3).unwrap();
        let mut done = 0;
        while done < at_most
            && let Some(request) = source.next()
        {
            assert_eq!(one(&mut engine, &request), Ok(0), "{request:?}");
            done += 1;
        }
        let renamed = source.renamed().unwrap_or(false);
        while let Some(request) = source.settle(renamed) {
            assert_eq!(one(&mut engine, &request), Ok(0), "{request:?}");
        }
        (self.part.existing, self.part.renamed) = (source.names(), source.renamed().unwrap());
        done
    }

    /// Paths below the tree's directories, sorted.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut dirs = vec![self.dir.path().join("tree")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    dirs.push(entry.path());
                } else {
                    files.push(self.shown(&entry.path()));
                }
            }
        }
        files.sort_unstable();
        files
    }

    fn shown(&self, path: &std::path::Path) -> String {
        path.strip_prefix(self.dir.path()).unwrap().display().to_string()
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }
}

fn one(engine: &mut Namespace, request: &Request) -> Result<u64, Failure> {
    engine.prepare(request)?;
    engine.perform(request).result
}

fn request(op: OpKind, file: u32, number: u64) -> Request {
    Request { op, lane: 0, file, bytes: 0, number, offset: 0, blocks: 1 }
}

#[test]
fn each_kind_does_what_it_says_to_each_name() {
    let mut fixture = Fixture::new(false);
    let expected = |suffix: &str| -> Vec<_> {
        let file = |number| format!("tree/t00002/d{:04}/f{number:07}{suffix}", number / 10);
        (0..200).map(file).collect()
    };
    assert_eq!(fixture.run(2, &[OpKind::Mkdir], 1_000), 20);
    assert_eq!(fs::read_dir(fixture.path("tree/t00002")).unwrap().count(), 20);
    assert_eq!(fixture.run(2, &[OpKind::Create], 1_000), 200);
    assert_eq!(fixture.files(), expected(""));
    for kind in [OpKind::Stat, OpKind::Open] {
        assert_eq!(fixture.run(2, &[kind], 1_000), 200);
    }
    assert_eq!(fixture.run(2, &[OpKind::Readdir], 1_000), 20);
    assert_eq!(fixture.run(2, &[OpKind::Rename], 1_000), 200);
    assert_eq!(fixture.files(), expected(".r"));
    assert_eq!(fixture.run(2, &[OpKind::Stat], 1_000), 200);
    assert_eq!(fixture.run(2, &[OpKind::Unlink], 50), 50);
    assert_eq!(fixture.files(), expected(".r")[50..]);
    assert_eq!(fixture.run(2, &[OpKind::Unlink], 1_000), 150);
    assert_eq!(fixture.run(2, &[OpKind::Rmdir], 1_000), 20);
    assert_eq!(fs::read_dir(fixture.path("tree/t00002")).unwrap().count(), 0);
}

#[test]
fn threads_share_directories_with_names_of_their_own() {
    let mut first = Fixture::new(true);
    let part = first.part.clone();
    assert_eq!(first.run(0, &[OpKind::Create], 1_000), 200);
    let after_first = std::mem::replace(&mut first.part, part);
    assert_eq!(first.run(1, &[OpKind::Create], 15), 15);
    let files = first.files();
    assert_eq!(files.len(), 215);
    assert_eq!(files[..2], ["tree/d0000/t00000-f0000000", "tree/d0000/t00000-f0000001"]);
    assert!(files.contains(&"tree/d0001/t00001-f0000014".to_owned()));
    first.part = after_first;
    assert_eq!(first.run(0, &[OpKind::Unlink], 1_000), 200);
    assert_eq!(first.files().len(), 15);
}

#[test]
fn a_mix_leaves_what_it_says() {
    for shared_dirs in [false, true] {
        let mut fixture = Fixture::new(shared_dirs);
        let kinds = OpKind::ALL.into_iter().filter(|op| !op.moves_data()).collect::<Vec<_>>();
        // The second begins where the first ended.
        for _ in 0..2 {
            assert_eq!(fixture.run(9, &kinds, 3_000), 3_000);
            let Names { files, gone, .. } = fixture.part.existing;
            let mut expected: Vec<_> = (gone..files)
                .map(|number| number % 200)
                .map(|number| match shared_dirs {
                    false => format!("tree/t00009/d{:04}/f{number:07}", number / 10),
                    true => format!("tree/d{:04}/t00009-f{number:07}", number / 10),
                })
                .collect();
            expected.sort_unstable();
            assert_eq!(fixture.files(), expected);
        }
    }
}

#[test]
fn what_fails_says_which_call() {
    let fixture = Fixture::new(false);
    let mut engine = fixture.engine(0, &[OpShare { op: OpKind::Create, weight: 1 }]);
    let mut fails = |op, file, number, call, errno| {
        let failed = one(&mut engine, &request(op, file, number));
        assert_eq!(failed, Err(Failure { call, errno }), "{op:?}");
    };
    fs::write(fixture.path("tree/t00000/d0000/f0000001"), b"").unwrap();
    fails(OpKind::Create, 0, 1, Call::Create, libc::EEXIST);
    fails(OpKind::Mkdir, 1, 1, Call::Mkdir, libc::EEXIST);
    fails(OpKind::Rmdir, 0, 0, Call::Rmdir, libc::ENOTEMPTY);
    fails(OpKind::Rmdir, 20, 20, Call::Rmdir, libc::ENOENT);
    for (op, call) in [
        (OpKind::Stat, Call::Stat),
        (OpKind::Open, Call::Open),
        (OpKind::Rename, Call::Rename),
        (OpKind::Unlink, Call::Unlink),
    ] {
        fails(op, 0, 2, call, libc::ENOENT);
        fails(op, 99, 990, Call::OpenDir, libc::ENOENT);
    }
    fails(OpKind::Readdir, 99, 99, Call::OpenDir, libc::ENOENT);
    fails(OpKind::Write, 0, 0, Call::Other, libc::EINVAL);
    std::os::unix::fs::symlink("f0000001", fixture.path("tree/t00000/d0000/f0000003")).unwrap();
    fails(OpKind::Open, 0, 3, Call::Open, libc::ELOOP);
    assert_eq!(engine.close(), Ok(()));
    let closed = Failure { call: Call::OpenDir, errno: libc::EBADF };
    assert_eq!(one(&mut engine, &request(OpKind::Stat, 0, 1)), Err(closed));
}
