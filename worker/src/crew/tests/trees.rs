//! Crews on trees, beside what the standard library finds there.

use iofleet_shared::{
    stats::NamesLeft,
    work::{Names, SizeShare, TreePart},
};

use super::*;

const NONE: Names = Names { dirs: 0, files: 0, gone: 0 };

fn part(dirs: u32, files_per_dir: u32, existing: Names) -> TreePart {
    TreePart {
        base: "tree".to_owned(),
        shared_dirs: false,
        dirs,
        files_per_dir,
        sizes: vec![SizeShare { bytes: BLOCK, weight: 1 }],
        sizes_seed: 5,
        existing,
        renamed: false,
    }
}

fn tree_plan(op: OpKind, part: &TreePart, create: bool) -> WorkerPlan {
    let files = Files::Tree(part.clone());
    let thread = fixture::thread(0, &[op], files, part.files());
    WorkerPlan { create, fsync: Fsync::None, ..fixture::plan(dir(), vec![thread]) }
}

/// Files below a directory, and the bytes in them.
fn found(dir: &Path) -> (u64, u64) {
    let (mut files, mut bytes, mut dirs) = (0, 0, vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            } else {
                (files, bytes) = (files + 1, bytes + entry.metadata().unwrap().len());
            }
        }
    }
    (files, bytes)
}

fn run(plan: &WorkerPlan, dir: &Path) -> PointReport {
    let (crew, events) = arm(plan, dir);
    start(&crew);
    let report = outcome(events).report;
    assert_eq!(report.errors, []);
    report
}

#[test]
fn very_many_files_are_written_and_read_with_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = part(20, 1_000, NONE);
    let report = run(&tree_plan(OpKind::Write, &fresh, true), dir.path());
    assert_eq!((report.threads[0].ops(), report.threads[0].bytes()), (20_000, 20_000 * BLOCK));
    assert_eq!(found(dir.path()), (20_000, 20_000 * BLOCK));
    // All but those that were open in the end were closed on the way, or at the end.
    assert_eq!(report.threads[0].files.count, 20_000);
    let existing = part(20, 1_000, Names { dirs: 20, files: 20_000, gone: 0 });
    let mut plan = tree_plan(OpKind::Read, &existing, false);
    plan.pattern = Pattern::RandomOnce;
    let report = run(&plan, dir.path());
    assert_eq!((report.threads[0].ops(), report.threads[0].bytes()), (20_000, 20_000 * BLOCK));
}

#[test]
fn names_are_made_asked_for_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let names = |report: &PointReport| report.threads[0].names.unwrap();
    let report = run(&tree_plan(OpKind::Create, &part(4, 50, NONE), true), dir.path());
    assert_eq!((report.threads[0].ops(), found(dir.path())), (200, (200, 0)));
    let all = Names { dirs: 4, files: 200, gone: 0 };
    assert_eq!(names(&report), NamesLeft { names: all, renamed: Some(false) });
    let report = run(&tree_plan(OpKind::Stat, &part(4, 50, all), false), dir.path());
    assert_eq!((report.threads[0].ops(), report.threads[0].bytes()), (200, 0));
    let report = run(&tree_plan(OpKind::Unlink, &part(4, 50, all), false), dir.path());
    assert_eq!((report.threads[0].ops(), found(dir.path())), (200, (0, 0)));
}

#[test]
fn names_are_as_told_where_the_deadline_cuts_them_off() {
    let dir = tempfile::tempdir().unwrap();
    // By time, so that an operation has been drawn when the deadline comes.
    let amount = Amount::Time { duration_ns: 20 * MS, repeat: false };
    let fresh = part(4, 250_000, NONE);
    let plan = WorkerPlan { amount, ..tree_plan(OpKind::Create, &fresh, true) };
    let report = run(&plan, dir.path());
    let thread = &report.threads[0];
    assert_eq!(thread.end, ThreadEnd::Deadline);
    let NamesLeft { names, .. } = thread.names.unwrap();
    assert_eq!(found(dir.path()).0, names.files - names.gone);
    assert_eq!(names.files - thread.ops(), 1, "what was drawn is done, and not counted");
}
