//! A mix of reads and writes as the file system sees it: the share in every stretch of every thread,
//! and no order in the sequence that chance would not make.

use std::collections::BTreeMap;

use crate::{
    observer::Observer,
    support::{Scratch, run, skip, text},
};

const READS: f64 = 0.7;
/// Operations of one thread in a stretch.
const CELL: usize = 1_000;
const THREADS: usize = 4;

/// By how many standard deviations the number of reads is off.
fn share_deviations(reads: &[bool]) -> f64 {
    let (n, hits) = (reads.len() as f64, reads.iter().filter(|read| **read).count() as f64);
    (hits - n * READS) / (n * READS * (1.0 - READS)).sqrt()
}

/// Wald and Wolfowitz: by how many standard deviations the number of runs of the same kind is off
/// from that of a random order of as many of each.
fn run_deviations(reads: &[bool]) -> f64 {
    let hits = reads.iter().filter(|read| **read).count() as f64;
    let (n, others) = (reads.len() as f64, reads.len() as f64 - hits);
    let runs = 1.0 + reads.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    let pairs = 2.0 * hits * others;
    let (mean, variance) = (1.0 + pairs / n, pairs * (pairs - n) / (n * n * (n - 1.0)));
    (runs - mean) / variance.sqrt()
}

#[test]
fn the_statistics_tell_order_from_chance() {
    // By hand: 3 and 3 in 2 runs; 4 are to be expected, with a variance of 18 * 12 / (36 * 5).
    let six = [true, true, true, false, false, false];
    assert!((run_deviations(&six) - (2.0 - 4.0) / 1.2_f64.sqrt()).abs() < 1e-12);
    // 100 reads in place of 70: 30 over the root of 100 * 0.7 * 0.3.
    assert!((share_deviations(&[true; 100]) - 30.0 / 21.0_f64.sqrt()).abs() < 1e-12);
    let square = |reads: usize, writes: usize| -> Vec<bool> {
        (0..10_000).map(|i| i % (reads + writes) < reads).collect()
    };
    for (reads, writes) in [(7, 3), (700, 300), (70, 30)] {
        let square = square(reads, writes);
        assert!(share_deviations(&square).abs() < 1e-9, "its share is right");
        assert!(run_deviations(&square).abs() > 5.0, "{reads} and {writes} in turn");
    }
    // Shares of 0.9 and 0.5 in turn are right in sum, and wrong in each cell.
    assert!(square(9, 1).chunks(CELL).all(|cell| share_deviations(cell).abs() > 5.0));
    // Chance passes: a shift register's bits, seven out of ten of them.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let chance: Vec<bool> = (0..10_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64 <= READS
        })
        .collect();
    assert!(run_deviations(&chance).abs() < 5.0 && share_deviations(&chance).abs() < 5.0);
}

#[test]
fn a_mix_is_mixed_in_every_stretch_of_every_thread() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    let file = scratch.write(
        "mix.toml",
        &format!(
            "[workload]\nthreads = {THREADS}\nfile_size = \"64 KiB\"\nblock = \"4 KiB\"\n\
             [[stage]]\nop = \"write\"\n[[stage]]\nop = \"mix\"\nmix = \"read 70, write 30\"\n\
             pattern = \"random\"\nduration = \"4 s\"\ninterval = \"500 ms\"\n"
        ),
    );
    let path = mount.join("t");
    let arguments = [file.to_str().unwrap(), "--local", "2", "--path", path.to_str().unwrap()];
    let run = run(&scratch, &arguments);
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let mut files: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for arrival in observer.arrivals().into_iter().filter(|arrival| arrival.file.starts_with('t')) {
        files.entry(arrival.file).or_default().push(!arrival.write);
    }
    assert_eq!(files.len(), THREADS);
    let (mut reads, mut writes) = (0, 0);
    for (file, seen) in &files {
        // The first stage wrote the 16 blocks of each.
        let (first, mix) = seen.split_at(16);
        assert!(!first.contains(&true), "{file}");
        assert!(mix.len() >= 2 * CELL, "{file}: too slow here, {} operations", mix.len());
        for (at, cell) in mix.chunks_exact(CELL).enumerate() {
            let off = share_deviations(cell);
            assert!(off.abs() < 5.0, "{file}, operations {at} times {CELL}: off by {off} sigma");
        }
        let off = run_deviations(mix);
        assert!(off.abs() < 5.0, "{file}: runs off by {off} sigma in {} operations", mix.len());
        let hits = mix.iter().filter(|read| **read).count() as u64;
        reads += hits;
        writes += mix.len() as u64 - hits;
    }
    let point = &run.points()[1];
    let counted = |op: &str| {
        let kinds = point["by_op"].as_array().unwrap();
        let kind = kinds.iter().find(|kind| kind["op"] == op).unwrap();
        let intervals = point["intervals"].as_array().unwrap().iter();
        let in_intervals: u64 = intervals
            .flat_map(|interval| interval["by_op"].as_array().unwrap())
            .filter(|kind| kind["op"] == op)
            .map(|kind| kind["ops"].as_u64().unwrap())
            .sum();
        assert_eq!(kind["ops"].as_u64().unwrap(), in_intervals);
        in_intervals
    };
    assert_eq!((counted("read"), counted("write")), (reads, writes));
}
