//! Trees in temporary directories.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
};

use super::*;

fn part(shared_dirs: bool) -> TreePart {
    TreePart {
        base: "tree".to_owned(),
        shared_dirs,
        dirs: 3,
        files_per_dir: 2,
        sizes: vec![],
        sizes_seed: 0,
        existing: Names::default(),
        renamed: false,
    }
}

fn ops(kinds: &[OpKind]) -> Vec<OpShare> {
    kinds.iter().map(|op| OpShare { op: *op, weight: 1 }).collect()
}

/// Names in a directory, sorted.
fn listed(dir: &Path) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| name(entry).into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_operations_need_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = File::open(dir.path()).unwrap();
    let arm = |part: &TreePart, kinds: &[OpKind]| Tree::arm(dataset.as_fd(), part, 7, &ops(kinds));
    arm(&part(false), &[OpKind::Mkdir]).unwrap();
    assert_eq!(listed(&dir.path().join("tree")), ["t00007"]);
    assert!(listed(&dir.path().join("tree/t00007")).is_empty());
    // Once more, and by another thread.
    arm(&part(false), &[OpKind::Create]).unwrap();
    assert_eq!(listed(&dir.path().join("tree/t00007")), ["d0000", "d0001", "d0002"]);
    // Those that exist are not asked for again.
    fs::remove_dir(dir.path().join("tree/t00007/d0001")).unwrap();
    let known = TreePart { existing: Names { dirs: 2, ..Names::default() }, ..part(false) };
    let mut tree = arm(&known, &[OpKind::Stat]).unwrap().hold(1);
    assert_eq!(listed(&dir.path().join("tree/t00007")), ["d0000", "d0002"]);
    tree.open_dir(0).unwrap();
    assert!(tree.dir(0).is_some());
    tree.open_dir(2).unwrap();
    assert!(tree.dir(2).is_some() && tree.dir(0).is_none());
    assert_eq!(tree.open_dir(1), Err(Errno::NOENT));
    assert!(tree.dir(1).is_none());
}

#[test]
fn leftovers_of_a_mix_go_and_those_of_other_threads_stay() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = File::open(dir.path()).unwrap();
    for name in ["tree", "tree/t00007-m0000001", "tree/t00007-m0000002", "tree/t00008-m0000001"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    let mix = ops(&[OpKind::Mkdir, OpKind::Rmdir]);
    Tree::arm(dataset.as_fd(), &part(true), 7, &mix).unwrap();
    assert_eq!(listed(&dir.path().join("tree")), ["d0000", "d0001", "d0002", "t00008-m0000001"]);
}

#[test]
fn links_and_files_in_the_way_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let dataset = File::open(dir.path()).unwrap();
    let refused = |part: &TreePart| {
        Tree::arm(dataset.as_fd(), part, 0, &ops(&[OpKind::Create])).unwrap_err().to_string()
    };
    let up = TreePart { base: "..".to_owned(), ..part(true) };
    assert_eq!(refused(&up), "\"..\" is not a plain file name");
    assert!(remove_tree(dataset.as_fd(), "a/b").is_err());
    symlink(outside.path(), dir.path().join("tree")).unwrap();
    assert!(refused(&part(true)).starts_with("can't open tree: "));
    assert!(remove_tree(dataset.as_fd(), "tree").is_err());
    fs::remove_file(dir.path().join("tree")).unwrap();
    fs::create_dir(dir.path().join("tree")).unwrap();
    symlink(outside.path(), dir.path().join("tree/t00000")).unwrap();
    assert!(refused(&part(false)).starts_with("can't open tree/t00000: "));
    assert!(listed(outside.path()).is_empty());
}

#[test]
fn a_tree_goes_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f0000001"), b"mine").unwrap();
    let dataset = File::open(dir.path()).unwrap();
    assert_eq!(remove_tree(dataset.as_fd(), "tree").unwrap(), 0);
    for thread in 0..3 {
        let create = ops(&[OpKind::Create]);
        Tree::arm(dataset.as_fd(), &part(false), thread, &create).unwrap();
        Tree::arm(dataset.as_fd(), &part(true), thread, &create).unwrap();
    }
    for file in ["t00000/d0000/f0000000", "t00001/d0001/f0000003.r", "d0002/t00002-f0000001"] {
        fs::write(dir.path().join("tree").join(file), b"").unwrap();
    }
    for number in 0..2_000 {
        fs::write(dir.path().join(format!("tree/t00002/d0000/f{number:07}")), b"").unwrap();
    }
    symlink(outside.path(), dir.path().join("tree/t00002/d0001/f0000009")).unwrap();
    fs::write(dir.path().join("tree/d0001/notes.txt"), b"mine").unwrap();
    fs::write(dir.path().join("other"), b"mine").unwrap();
    let error = remove_tree(dataset.as_fd(), "tree").unwrap_err().to_string();
    assert!(error.starts_with("can't remove tree/d0001: "), "{error}");
    assert_eq!(listed(&dir.path().join("tree")), ["d0001"]);
    assert_eq!(listed(&dir.path().join("tree/d0001")), ["notes.txt"]);
    assert_eq!(listed(outside.path()), ["f0000001"]);
    fs::remove_file(dir.path().join("tree/d0001/notes.txt")).unwrap();
    fs::write(dir.path().join("tree/d0001/t00000-f0000001"), b"").unwrap();
    assert_eq!(remove_tree(dataset.as_fd(), "tree").unwrap(), 1);
    assert_eq!(listed(dir.path()), ["other"]);
}
