//! Fresh data: no sector comes again, and ratios are what they say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use super::*;

fn data(compress_milli: u32, dedupe_milli: u32) -> Data {
    Data {
        content: Content::Random { compress_milli, dedupe_milli },
        refresh: true,
        verify: false,
        generation: 1,
        generation_known: true,
        dataset: 0,
    }
}

/// What a thread writes: blocks of `block` bytes, `total` bytes in all.
fn written(data: &Data, seed: u64, block: usize, total: usize) -> Vec<u8> {
    let mut filler = Filler::new(data, seed);
    let mut buffer = vec![0xaa; block];
    filler.prime(&mut buffer);
    let mut bytes = Vec::with_capacity(total + block);
    while bytes.len() < total {
        filler.fill(&mut buffer);
        bytes.extend_from_slice(&buffer);
    }
    bytes.truncate(total);
    bytes
}

#[test]
fn no_sector_is_ever_the_same() {
    let random = data(1_000, 1_000);
    // Two threads, three sizes of blocks, one of them no whole number of units.
    let all: Vec<u8> = [(1, 1 << 20), (2, 1 << 17), (3, 4_096), (4, 512), (5, 4_096 * 3 + 512)]
        .into_iter()
        .flat_map(|(seed, block)| written(&random, seed, block, 2 << 20))
        .collect();
    let sectors: BTreeSet<&[u8]> = all.chunks(512).collect();
    assert_eq!(sectors.len(), 5 * 4_096);
    // Nor is an aligned word of one block in another.
    let words: BTreeSet<[u8; 8]> = all[..2 << 20].as_chunks::<8>().0.iter().copied().collect();
    assert_eq!(words.len(), (2 << 20) / 8);
}

#[test]
fn is_random() {
    let bytes = written(&data(1_000, 1_000), 42, 4_096, 1 << 20);
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let total = f64::from(1 << 20);
    let bits: f64 =
        counts.iter().map(|count| f64::from(*count) / total).map(|p| -p * p.log2()).sum();
    assert!(bits / 8.0 > 0.999, "{bits} bits a byte");
}

#[test]
fn the_seed_alone_decides() {
    let of = |seed, generation| {
        written(&Data { generation, ..data(1_500, 2_000) }, seed, 10_000, 100_000)
    };
    assert_eq!(of(1, 1), of(1, 1));
    assert_ne!(of(1, 1), of(2, 1));
    // The same files written again.
    assert_ne!(of(1, 1), of(1, 2));
}

#[test]
fn stays_as_it_was_primed_without_refresh() {
    let mut filler = Filler::new(&Data { refresh: false, ..data(1_000, 1_000) }, 1);
    let mut buffers = [vec![0; 8_192], vec![0; 8_192]];
    buffers.iter_mut().for_each(|buffer| filler.prime(buffer));
    assert_ne!(buffers[0], buffers[1]);
    let primed = buffers.clone();
    buffers.iter_mut().for_each(|buffer| filler.fill(buffer));
    assert_eq!(buffers, primed);
}

#[test]
fn zeros_are_zeros_whatever_was_there() {
    let mut filler = Filler::new(&Data { content: Content::Zero, ..data(1_000, 1_000) }, 1);
    let mut block = vec![1; 5_000];
    filler.fill(&mut block);
    assert_eq!(block, vec![0; 5_000]);
}

#[test]
fn as_many_units_are_copies_as_the_ratio_says() {
    for (ratio, compress) in [(1_000, 1_000), (1_500, 1_000), (2_000, 3_000), (4_000, 1_000)] {
        let files: Vec<u8> = [(1, 1 << 20), (2, 100 << 10), (3, 4_096)]
            .into_iter()
            .flat_map(|(seed, block)| written(&data(compress, ratio), seed, block, 4 << 20))
            .collect();
        let mut counts = BTreeMap::<&[u8], u32>::new();
        files.chunks(UNIT).for_each(|unit| *counts.entry(unit).or_default() += 1);
        // Of each file ⌈1024 / ratio⌉: 1024, 683, 512, 256.
        let different = (1_024_000_usize).div_ceil(ratio as usize) * 3;
        assert_eq!(counts.len(), different, "{ratio}");
        // Copies are of many units: none is a large part of a file.
        let most = counts.values().max().copied().unwrap_or(0);
        assert!(most <= 64, "{most} copies of one unit of {} at {ratio}", files.len() / UNIT);
        let copied = counts.values().filter(|count| **count > 1).count();
        assert!(ratio == 1_000 || copied >= different / 6, "{copied} of {different} at {ratio}");
    }
}

#[test]
fn copies_lie_within_reach() {
    let mut stream = Stream::new(3, 3_000);
    let mut numbers = BTreeMap::new();
    for at in 0..30_000_u64 {
        let key = stream.next().words();
        let different = stream.different;
        // One in three, rounded up, at each point of the way.
        assert_eq!(different, at / 3 + 1);
        let number = *numbers.entry(key).or_insert(different - 1);
        let back = different - 1 - number;
        assert!(back < REACH, "{back} units back");
        // Far enough from what a compressor has just seen, once there are so many.
        assert!(at % 3 == 0 || different < REACH || back >= REACH / 4, "{back} units back");
    }
}

#[test]
fn compresses_as_the_ratio_says() {
    if Command::new("zstd").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must have zstd");
        println!("SKIP zstd is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let ratio = |bytes: &[u8], how: &[&str]| {
        fs::write(&path, bytes).unwrap();
        let output = Command::new("zstd").args(how).args(["-q", "-c"]).arg(&path).output().unwrap();
        assert!(output.status.success());
        bytes.len() as f64 / output.stdout.len() as f64
    };
    for milli in [1_000, 1_500, 2_000, 3_000, 5_000, 10_000] {
        for block in [4_096, 100 << 10, 1 << 20] {
            let bytes = written(&data(milli, 1_000), 9, block, 2 << 20);
            let error = ratio(&bytes, &["-1"]) / (f64::from(milli) / 1_000.0) - 1.0;
            assert!(error.abs() < 0.05, "{error} with blocks of {block} at {milli}");
        }
    }
    // However far it looks back, there is nothing to be found.
    let bytes = written(&data(1_000, 1_000), 9, 1 << 18, 6 << 20);
    assert!(ratio(&bytes, &["-6", "--long=27"]) < 1.001);
    // Different units of data with copies compress as much as all do without.
    let bytes = written(&data(2_000, 2_000), 9, 1 << 18, 4 << 20);
    let different: BTreeSet<&[u8]> = bytes.chunks(UNIT).collect();
    let different: Vec<u8> = different.into_iter().flatten().copied().collect();
    assert!((ratio(&different, &["-1"]) / 2.0 - 1.0).abs() < 0.05);
}
