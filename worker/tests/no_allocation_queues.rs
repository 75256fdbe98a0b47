//! Engines with a queue allocate nothing once they are made: neither for operations that go well nor
//! for those that are continued, refused or fail, nor for an fsync.

use std::{fs::File, sync::Arc, time::Duration};

use iofleet_shared::work::OpKind;
use iofleet_worker::{
    engine::{Libaio, Queue, QueueSetup, Request, Uring},
    payload::MemoryPlace,
};

#[expect(dead_code, reason = "other tests use more of it")]
#[path = "common/counting.rs"]
mod counting;

const BLOCK: u32 = 4_096;
const DEPTH: u32 = 16;
/// The file ends inside its last block.
const BLOCKS: u64 = 40;
const BYTES: u64 = BLOCKS * BLOCK as u64 - 1_000;

/// Operations that went well and that failed, with the allocator's calls meanwhile.
fn drive(mut queue: impl Queue) -> (u64, u64, usize) {
    let mut done = Vec::with_capacity(DEPTH as usize);
    let (mut well, mut failed, mut next) = (0, 0, 0_u64);
    let before = counting::calls();
    for round in 0..100 {
        for slot in 0..DEPTH {
            next += 1;
            // The last block is only read; some requests are of a file that there is not.
            let number = next * 7 % BLOCKS;
            let write = number + 1 < BLOCKS && next % 3 == 0;
            let op = if write { OpKind::Write } else { OpKind::Read };
            let file = u32::from(next % 11 == 0);
            let offset = number * u64::from(BLOCK);
            queue.queue(
                slot,
                &Request { op, lane: 0, file, bytes: BLOCK, number, offset, blocks: 1 },
            );
        }
        let at_most = (round % 2 == 0).then_some(Duration::from_secs(60));
        let mut missing = DEPTH as usize;
        while missing > 0 {
            queue.submit(true, at_most, &mut done);
            missing -= done.len();
            for completion in done.drain(..) {
                *(if completion.transfer.result.is_ok() { &mut well } else { &mut failed }) += 1;
            }
        }
    }
    (well, failed, counting::calls() - before)
}

fn setup(file: &Arc<File>, fsync_each: bool) -> QueueSetup {
    QueueSetup {
        files: vec![Arc::clone(file)],
        depth: DEPTH,
        buffer_bytes: BLOCK as usize,
        alignment: 512,
        place: MemoryPlace::default(),
        sqpoll: false,
        iopoll: false,
        fsync_each,
    }
}

#[test]
fn operations_allocate_nothing() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(BYTES).unwrap();
    let file = Arc::new(file);
    // By hand: of the numbers 1 to 1600, 145 are multiples of 11. Every 40th reads the last block
    // (7n = 39 mod 40, so n = 17 mod 40), of which each eleventh or so is one of those as well.
    let last = (1..=1_600_u64).filter(|n| n % 40 == 17 && n % 11 != 0).count() as u64;
    let failed = 145 + last;
    for fsync_each in [false, true] {
        let expected = (1_600 - failed, failed, 0);
        assert_eq!(drive(Uring::new(setup(&file, fsync_each)).unwrap()), expected);
        assert_eq!(drive(Libaio::new(setup(&file, fsync_each)).unwrap()), expected);
    }
}
