//! What verification finds in real files, between a crew that writes and one that reads.

use iofleet_shared::stats::DamageKind;

use super::*;

/// What came of a crew on the files of `dir`; none where the kernel does not have the engine.
fn run(plan: &WorkerPlan, dir: &Path) -> Option<PointReport> {
    let (send, events) = mpsc_tokio::channel(4);
    let plan = Arc::new(plan.clone());
    let open = opens(dir, &plan);
    let crew = match Crew::arm(plan, open, StampClock::calibrate(), 512, send) {
        Ok(crew) => crew,
        Err(CrewError::Engine { source, .. }) => {
            eprintln!("skipped: {source}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    start(&crew);
    Some(outcome(events).report)
}

fn verified(ops: &[OpKind], generation: u32, blocks: u64) -> WorkerPlan {
    let mut plan = WorkerPlan { fsync: Fsync::None, ..plan_of(ops, 1, blocks) };
    (plan.data.verify, plan.data.generation) = (true, generation);
    plan
}

#[test]
fn each_kind_of_damage_is_told_with_its_place() {
    const WRITE: &[OpKind] = &[OpKind::Write];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f0");
    let file_of = |generation| {
        let report = run(&verified(WRITE, generation, 8), dir.path()).unwrap();
        assert_eq!((report.threads[0].ops(), report.errors.len()), (8, 0));
        fs::read(&path).unwrap()
    };
    let (first, second) = (file_of(1), file_of(2));
    let reader = verified(&[OpKind::Read], 2, 8);
    assert_eq!(run(&reader, dir.path()).unwrap().threads[0].damages, []);

    let block = |content: &[u8], number: usize| content[number * 4_096..][..4_096].to_vec();
    let mut torn = block(&second, 5);
    torn[2_048..].copy_from_slice(&block(&first, 5)[2_048..]);
    let mut corrupted = block(&second, 2);
    corrupted[1_000] ^= 1;
    let damaged = [
        (DamageKind::Torn, 5, torn),
        (DamageKind::Stale, 4, block(&first, 4)),
        (DamageKind::Misdirected, 3, block(&second, 6)),
        (DamageKind::Corrupted, 2, corrupted),
        (DamageKind::Missing, 1, vec![0; 4_096]),
    ];
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for (_, number, content) in &damaged {
        file.write_all_at(content, number * BLOCK).unwrap();
    }
    let report = run(&reader, dir.path()).unwrap();
    let thread = &report.threads[0];
    // Damage is no failed operation.
    assert_eq!((thread.ops(), thread.errors()), (8, 0));
    assert_eq!(thread.damages.len(), 5);
    for (kind, number, _) in damaged {
        let found = thread.damages.iter().find(|damage| damage.kind == kind).unwrap();
        let place = (found.units, found.file.as_str(), found.offset);
        assert_eq!(place, (1, "f0", number * BLOCK), "{kind:?}");
    }
}

#[test]
fn a_mix_in_flight_finds_no_damage() {
    for kind in [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Sync, EngineKind::Mmap] {
        let dir = tempfile::tempdir().unwrap();
        let depth = if matches!(kind, EngineKind::IoUring | EngineKind::Libaio) { 4 } else { 1 };
        // Few blocks, so that operations on the same one meet.
        let mut plan = verified(&[OpKind::Read, OpKind::Write], 2, 6);
        plan.engine = fixture::engine(kind, depth);
        plan.pattern = Pattern::Random;
        plan.threads[0].operations = 20_000;
        let before = verified(&[OpKind::Write], 1, 6);
        assert!(run(&before, dir.path()).is_some());
        let Some(report) = run(&plan, dir.path()) else { continue };
        let thread = &report.threads[0];
        assert_eq!((thread.ops(), thread.errors()), (20_000, 0));
        assert_eq!(thread.damages, [], "{kind:?}");
        let counts: Vec<_> = thread.counts.iter().map(|counts| counts.op).collect();
        assert_eq!(counts, [OpKind::Write, OpKind::Read]);
    }
}
