//! What does measuring cost? The worker's I/O loop beside a bare loop of the same calls.
//!
//! One thread reads random blocks of 4 KiB from a file in memory, in interleaved rounds of three
//! kinds: a bare `pread` loop without a clock, the same with two clock readings per operation, and
//! the worker's loop with all its accounts. Prints user time and wall time per operation and the
//! ratios of rates, with 95 % intervals from a bootstrap over rounds.
//!
//! ```text
//! cargo run --release -p iofleet-worker --example bare_loop [ROUNDS [OPERATIONS [FILE]]]
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints its result")]

use std::{error::Error, fs, fs::File, hint::black_box, io, sync::Arc, time::Duration};

use iofleet_shared::{
    clock::monotonic_ns,
    work::{Extent, OpKind, Pattern},
};
use iofleet_worker::{
    engine::{AnyEngine, SyncRead},
    io_thread::{Account, Control, Job, Order, Timeline, Whereabouts, run, seat},
    pattern::{Blocks, Cursor, Random},
    payload::Buffer,
    recorder::{Recorder, rings},
    stamp::{Clock, Gettime, StampClock, StampKind, Tsc},
};
use rustix::io::pread;

const BLOCK: usize = 4_096;
const BLOCKS: u64 = 4_096;
const KINDS: [&str; 3] = ["bare", "bare + 2 clock readings", "iofleet's loop"];

/// One round: time per operation in ns.
#[derive(Debug, Clone, Copy)]
struct Round {
    user_ns: f64,
    wall_ns: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let operations: u64 = arguments.next().map_or(Ok(400_000), |text| text.parse())?;
    let path = arguments.next().unwrap_or_else(|| "/dev/shm/iofleet-bare-loop".to_owned());
    let file = Arc::new(prepare(&path)?);
    let clock = StampClock::calibrate();
    println!(
        "{rounds} rounds of {operations} reads of {BLOCK} B at random from {path}; stamps by {} \
         ({} ns a reading)",
        clock.name(),
        clock.cost_ns()
    );
    let mut samples: [Vec<Round>; 3] = Default::default();
    for round in 0..rounds {
        for at in 0..KINDS.len() {
            // Each kind is first, second and third equally often.
            let kind = (at + round) % KINDS.len();
            samples[kind].push(measure(kind, operations, &file, clock)?);
        }
    }
    fs::remove_file(&path)?;
    report(&samples);
    Ok(())
}

fn prepare(path: &str) -> io::Result<File> {
    let content = Buffer::seeded(BLOCK * usize::try_from(BLOCKS).unwrap_or(0), 1, 1)?;
    fs::write(path, content.bytes())?;
    File::open(path)
}

fn measure(
    kind: usize,
    operations: u64,
    file: &Arc<File>,
    mut clock: StampClock,
) -> Result<Round, Box<dyn Error>> {
    let extent = Extent { offset: 0, length: BLOCKS * BLOCK as u64 };
    let blocks = Arc::new(Blocks::new(&[extent], BLOCK as u64));
    let mut buffer = Buffer::new(BLOCK, 1)?;
    clock.refine();
    let cursor = Random::new(Arc::clone(&blocks), 1);
    if kind == 2 {
        let order = Order { blocks, pattern: Pattern::Random, seed: 1 };
        return ours(operations, file, buffer, clock, order);
    }
    let (user, wall) = (user_time()?, monotonic_ns());
    match (kind, clock.kind()) {
        (0, _) => bare(operations, file, &mut buffer, cursor)?,
        (_, StampKind::Tsc) => clocked(operations, file, &mut buffer, cursor, Tsc)?,
        (_, StampKind::Gettime) => clocked(operations, file, &mut buffer, cursor, Gettime)?,
    }
    round(operations, user, wall)
}

fn bare(
    operations: u64,
    file: &File,
    buffer: &mut Buffer,
    mut cursor: impl Cursor,
) -> io::Result<()> {
    for _ in 0..operations {
        if pread(file, buffer.bytes_mut(), cursor.next().offset)? != BLOCK {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn clocked(
    operations: u64,
    file: &File,
    buffer: &mut Buffer,
    mut cursor: impl Cursor,
    clock: impl Clock,
) -> io::Result<()> {
    let mut sum = 0_u64;
    for _ in 0..operations {
        let offset = cursor.next().offset;
        let start = clock.now();
        let read = pread(file, buffer.bytes_mut(), offset)?;
        sum = sum.wrapping_add(clock.now().wrapping_sub(start));
        if read != BLOCK {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    black_box(sum);
    Ok(())
}

fn ours(
    operations: u64,
    file: &Arc<File>,
    buffer: Buffer,
    clock: StampClock,
    order: Order,
) -> Result<Round, Box<dyn Error>> {
    let engine = SyncRead::new(Arc::clone(file), buffer);
    let (outlet, _inlet) = rings();
    let recorder = Recorder::new(1_000_000_000, 0, outlet);
    let (seat, watch) = seat(Account::new(recorder, &order, OpKind::Read));
    let control = Control::new(1, 1);
    let job = Job { operations, deadline_ns: Some(u64::MAX >> 1), flush_at_end: false };
    let timeline = Timeline::new(clock, monotonic_ns());
    let (user, wall) = (user_time()?, monotonic_ns());
    let seat = run(seat, AnyEngine::SyncRead(engine), order, &job, &timeline, &control);
    let round = round(operations, user, wall)?;
    drop(seat.map_err(|_| "the account was taken")?);
    let account = watch.take(Whereabouts::Ended).ok_or("the account is not there")?;
    let counted = account.recorder.measured();
    if (counted.ops, counted.errors) == (operations, 0) {
        Ok(round)
    } else {
        Err(format!("{operations} operations, and counted were {counted}").into())
    }
}

fn round(operations: u64, user: Duration, wall_ns: u64) -> Result<Round, Box<dyn Error>> {
    let (user, wall) = (user_time()? - user, monotonic_ns() - wall_ns);
    let per = |ns: Duration| ns.as_secs_f64() / Duration::from_nanos(operations).as_secs_f64();
    Ok(Round { user_ns: per(user), wall_ns: per(Duration::from_nanos(wall)) })
}

/// User time of this thread.
fn user_time() -> io::Result<Duration> {
    // SAFETY: all zeros is a value of this plain struct, and the call writes nothing else.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), usage)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let time = usage.ru_utime;
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(Duration::from_secs(seconds)
        + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0)))
}

fn report(samples: &[Vec<Round>; 3]) {
    let user = |round: &Round| round.user_ns;
    let wall = |round: &Round| round.wall_ns;
    for (name, rounds) in KINDS.iter().zip(samples) {
        println!(
            "{name:>24}: user {:6.1} ns, wall {:6.1} ns",
            mean(rounds, user),
            mean(rounds, wall)
        );
    }
    for (at, name) in KINDS.iter().enumerate().take(2) {
        let (low, high) = bootstrap(&samples[at], &samples[2], wall);
        let ratio = mean(&samples[at], wall) / mean(&samples[2], wall);
        println!("rate of iofleet's loop / {name}: {ratio:.4} (95 %: {low:.4} to {high:.4})");
        let (low, high) = bootstrap(&samples[2], &samples[at], user);
        let ratio = mean(&samples[2], user) / mean(&samples[at], user);
        println!("user time of iofleet's loop / {name}: {ratio:.3} (95 %: {low:.3} to {high:.3})");
    }
}

fn mean(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    rounds.iter().map(of).sum::<f64>() / rounds.iter().map(|_| 1.0).sum::<f64>()
}

/// 95 % interval of the ratio of means, over resampled rounds (a round of both kinds together,
/// since what disturbs one disturbs its neighbour).
fn bootstrap(above: &[Round], below: &[Round], of: impl Fn(&Round) -> f64 + Copy) -> (f64, f64) {
    const DRAWS: usize = 2_000;
    let count = above.len() as u64;
    let extent = Extent { offset: 0, length: count };
    let mut draw = Random::new(Arc::new(Blocks::new(&[extent], 1)), 7);
    let mut ratios: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let (mut top, mut bottom) = (0.0, 0.0);
            for _ in 0..count {
                let at = usize::try_from(draw.next().number).unwrap_or(0);
                top += of(&above[at]);
                bottom += of(&below[at]);
            }
            top / bottom
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    (ratios[DRAWS / 40], ratios[DRAWS - DRAWS / 40 - 1])
}
