//! What do the engines with a queue cost? Each beside a bare loop of the same system calls.
//!
//! One thread reads random blocks of 4 KiB with 32 in flight, in interleaved rounds: a loop written
//! directly against `io_uring` (and Linux AIO) with the best settings, and the worker's engine
//! through its trait, with two clock readings per batch. Once from the page cache and once with
//! direct I/O. Prints CPU time (user and system) of the thread per operation and the ratios of engine
//! and bare loop, each as median and quartiles over rounds (a ratio is of one round's two
//! measurements, since what disturbs one disturbs its neighbour).
//!
//! ```text
//! cargo run --release -p iofleet-worker --example bare_uring [ROUNDS [OPERATIONS [FILE]]]
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints its result")]

use std::{
    error::Error,
    fs::{self, File, OpenOptions},
    hint::black_box,
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    ptr,
    sync::Arc,
    time::Duration,
};

use io_uring::{IoUring, opcode, types};
use iofleet_shared::work::{Extent, OpKind};
use iofleet_worker::{
    engine::{Completion, Libaio, Queue, QueueSetup, Request, Uring},
    pattern::{Blocks, Cursor, Random},
    payload::Buffer,
    stamp::{Clock, Tsc},
};
use rustix::time::{ClockId, clock_gettime};

const BLOCK: u32 = 4_096;
/// So few that most of them are in the processor's caches, which makes operations cheap and an
/// engine's share of them large.
const BLOCKS: u64 = 1_024;
const DEPTH: u32 = 32;
const KINDS: [&str; 4] = ["bare io_uring", "engine io_uring", "bare libaio", "engine libaio"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(21), |text| text.parse())?;
    let operations: u64 = arguments.next().map_or(Ok(400_000), |text| text.parse())?;
    let path = arguments.next().unwrap_or_else(|| "target/iofleet-bare-uring".to_owned());
    let content = Buffer::seeded(BLOCK as usize * usize::try_from(BLOCKS)?, 1, 1)?;
    fs::write(&path, content.bytes())?;
    File::open(&path)?.sync_all()?;
    for (name, flags, operations) in
        [("page cache", 0, operations), ("direct I/O", libc::O_DIRECT, operations / 8)]
    {
        let file = Arc::new(OpenOptions::new().read(true).custom_flags(flags).open(&path)?);
        println!(
            "{name}: {rounds} rounds of {operations} reads of {BLOCK} B at random from {path}, \
             {DEPTH} in flight"
        );
        let mut samples: [Vec<f64>; 4] = Default::default();
        for round in 0..rounds {
            for at in 0..KINDS.len() {
                // Each kind is first, second and so on equally often.
                let kind = (at + round) % KINDS.len();
                samples[kind].push(measure(kind, operations, &file)?);
            }
        }
        report(&samples);
    }
    fs::remove_file(&path)?;
    Ok(())
}

/// CPU time per operation of one round, ns.
fn measure(kind: usize, operations: u64, file: &Arc<File>) -> Result<f64, Box<dyn Error>> {
    let extent = Extent { offset: 0, length: BLOCKS * u64::from(BLOCK) };
    let mut cursor = Random::new(Arc::new(Blocks::new(&[extent], BLOCK.into())), 1);
    let setup = QueueSetup {
        files: vec![Arc::clone(file)],
        depth: DEPTH,
        buffer_bytes: BLOCK as usize,
        alignment: BLOCK as usize,
        sqpoll: false,
        iopoll: false,
        fsync_each: false,
    };
    match kind {
        0 => bare_uring(operations, file, &mut cursor),
        1 => through_the_trait(operations, Uring::new(setup)?, &mut cursor),
        2 => bare_aio(operations, file, &mut cursor),
        _ => through_the_trait(operations, Libaio::new(setup)?, &mut cursor),
    }
}

/// The worker's engine, as an I/O thread uses it.
fn through_the_trait(
    operations: u64,
    mut queue: impl Queue,
    cursor: &mut Random,
) -> Result<f64, Box<dyn Error>> {
    let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
    let mut request = |queue: &mut _, slot| {
        let place = cursor.next();
        let (number, offset) = (place.number, place.offset);
        let request = Request { op: OpKind::Read, lane: 0, file: 0, bytes: BLOCK, number, offset };
        Queue::queue(queue, slot, &request);
    };
    let from = cpu_time()?;
    let (mut queued, mut complete, mut times) = (u64::from(DEPTH), 0, 0_u64);
    for slot in 0..DEPTH {
        request(&mut queue, slot);
    }
    while complete < operations {
        let before = Tsc.now();
        queue.submit(true, None, &mut done);
        times = times.wrapping_add(Tsc.now().wrapping_sub(before));
        for completion in done.drain(..) {
            if completion.transfer.result != Ok(u64::from(BLOCK)) {
                return Err(format!("{completion:?}").into());
            }
            complete += 1;
            if queued < operations {
                queued += 1;
                request(&mut queue, completion.slot);
            }
        }
    }
    black_box(times);
    per_operation(from, operations)
}

fn bare_uring(operations: u64, file: &File, cursor: &mut Random) -> Result<f64, Box<dyn Error>> {
    let mut buffers = buffers()?;
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_submit_all()
        .setup_no_sqarray()
        .build(DEPTH)?;
    let vectors: Vec<libc::iovec> = buffers
        .iter_mut()
        .map(|buffer| buffer.bytes_mut())
        .map(|bytes| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() })
        .collect();
    let (mut submitter, mut submissions, mut completions) = ring.split();
    // SAFETY: the buffers live until all operations are complete.
    unsafe { submitter.register_buffers(&vectors)? };
    submitter.register_files(&[file.as_raw_fd()])?;
    submitter.register_ring_fd()?;
    let mut read = |slot: u16| {
        let buffer = vectors[usize::from(slot)].iov_base.cast();
        opcode::ReadFixed::new(types::Fixed(0), buffer, BLOCK, slot)
            .offset(cursor.next().offset)
            .build()
            .user_data(slot.into())
    };
    let from = cpu_time()?;
    let (mut queued, mut complete) = (u64::from(DEPTH), 0);
    for slot in 0..u16::try_from(DEPTH)? {
        // SAFETY: the buffer lives until the operation is complete.
        unsafe { submissions.push(&read(slot))? };
    }
    while complete < operations {
        submissions.sync();
        retried(|| submitter.submit_and_wait(1))?;
        submissions.sync();
        completions.sync();
        for completion in completions.by_ref() {
            if completion.result().cast_unsigned() != BLOCK {
                return Err(io::Error::from_raw_os_error(-completion.result()).into());
            }
            complete += 1;
            if queued < operations {
                queued += 1;
                let slot = u16::try_from(completion.user_data())?;
                // SAFETY: as above.
                unsafe { submissions.push(&read(slot))? };
            }
        }
    }
    let result = per_operation(from, operations);
    submitter.unregister_ring_fd()?;
    result
}

/// `struct iocb` and `struct io_event`, in words.
type Iocb = [u64; 8];
type Event = [u64; 4];

/// Linux AIO by two system calls, as its manual shows it.
fn bare_aio(operations: u64, file: &File, cursor: &mut Random) -> Result<f64, Box<dyn Error>> {
    let mut buffers = buffers()?;
    let depth = DEPTH as usize;
    let (mut iocbs, mut events) = (vec![Iocb::default(); depth], vec![Event::default(); depth]);
    let mut pointers: Vec<*mut Iocb> = Vec::with_capacity(depth);
    let mut context: libc::c_ulong = 0;
    // SAFETY: the kernel writes the context's number.
    call(unsafe { libc::syscall(libc::SYS_io_setup, DEPTH, &raw mut context) })?;
    let file = u64::from(file.as_raw_fd().cast_unsigned()) << 32;
    let mut fill = |iocb: &mut Iocb, slot: usize| {
        let buffer = buffers[slot].bytes_mut().as_mut_ptr().expose_provenance() as u64;
        *iocb = [slot as u64, 0, file, buffer, BLOCK.into(), cursor.next().offset, 0, 0];
    };
    let from = cpu_time()?;
    let (mut queued, mut complete) = (u64::from(DEPTH), 0);
    for (slot, iocb) in iocbs.iter_mut().enumerate() {
        fill(iocb, slot);
        pointers.push(iocb);
    }
    while complete < operations {
        let count = pointers.len();
        if count > 0 {
            // SAFETY: requests live through the call, and buffers until all is complete.
            let taken = unsafe {
                libc::syscall(libc::SYS_io_submit, context, count, pointers.as_mut_ptr())
            };
            if call(taken)? != count {
                return Err("io_submit took a part".into());
            }
            pointers.clear();
        }
        let none: *const libc::timespec = ptr::null();
        let got = retried(|| {
            // SAFETY: there is room for as many events.
            call(unsafe {
                let events = events.as_mut_ptr();
                libc::syscall(libc::SYS_io_getevents, context, 1_i64, depth, events, none)
            })
        })?;
        for event in &events[..got] {
            if event[2] != u64::from(BLOCK) {
                return Err(format!("{event:?}").into());
            }
            complete += 1;
            if queued < operations {
                queued += 1;
                let slot = usize::try_from(event[0])?;
                fill(&mut iocbs[slot], slot);
                pointers.push(&raw mut iocbs[slot]);
            }
        }
    }
    let result = per_operation(from, operations);
    // SAFETY: nothing is in flight.
    call(unsafe { libc::syscall(libc::SYS_io_destroy, context) })?;
    result
}

fn call(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn buffers() -> io::Result<Vec<Buffer>> {
    (0..DEPTH).map(|_| Buffer::new(BLOCK as usize, BLOCK as usize)).collect()
}

fn per_operation(from: Duration, operations: u64) -> Result<f64, Box<dyn Error>> {
    let spent = cpu_time()? - from;
    Ok(spent.as_secs_f64() / Duration::from_nanos(operations).as_secs_f64())
}

/// User and system time of this thread, by the clock that `getrusage` reads to a tick only.
fn cpu_time() -> io::Result<Duration> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).map_err(io::Error::other)
}

fn report(samples: &[Vec<f64>; 4]) {
    for (name, rounds) in KINDS.iter().zip(samples) {
        let (low, middle, high) = quartiles(rounds.clone());
        println!(
            "{name:>16}: {middle:7.1} ns of CPU an operation (quartiles {low:.1} to {high:.1})"
        );
    }
    for (bare, engine) in [(0, 1), (2, 3)] {
        let ratios = samples[engine].iter().zip(&samples[bare]).map(|(one, two)| one / two);
        let (low, middle, high) = quartiles(ratios.collect());
        println!("{:>16} / bare: {middle:.4} (quartiles {low:.4} to {high:.4})", KINDS[engine]);
    }
}

/// Lower quartile, median, upper quartile.
fn quartiles(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let at = |quarter: usize| values.get(values.len() * quarter / 4).copied().unwrap_or(f64::NAN);
    (at(1), at(2), at(3))
}
