//! Verification, on a file system that damages single writes as ordered: each is found where it is,
//! as what it is, and nothing else is.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    observer::Observer,
    support::{Run, Scratch, run, skip, stderr, text},
    tamper::{Done, Order, Tamper, flipped},
};

const UNIT: u64 = 4096;
const BLOCKS: u64 = 12;
const SYNC: &str = "engine = \"sync\"";
const QUEUE: &str = "engine = \"io_uring\"\ndepth = 8";
const LIBAIO: &str = "engine = \"libaio\"\ndepth = 8";

/// Kind, file, offset of the first unit, units.
type Damage = (String, String, u64, u64);

/// Three generations of the same files, each read after it was written.
fn generations(scratch: &Scratch, block: &str, file_bytes: u64, keys: &str) -> String {
    let stages = "[[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n\
                  [[stage]]\nop = \"write\"\nfresh = false\n[[stage]]\nop = \"read\"\n\
                  [[stage]]\nop = \"write\"\nfresh = false\n[[stage]]\nop = \"read\"\n";
    let text = format!(
        "[workload]\nthreads = 4\nfile_size = \"{file_bytes} B\"\nblock = \"{block}\"\n\
         verify = \"all\"\n{keys}\n{stages}"
    );
    scratch.write("generations.toml", &text).to_str().unwrap().to_owned()
}

fn order(file: &str, generation: u64, tamper: Tamper) -> Order {
    Order { file: file.to_owned(), nth: (generation - 1) * BLOCKS + BLOCKS / 2, tamper }
}

/// What a point reports.
fn reported(point: &Value) -> BTreeSet<Damage> {
    assert_eq!(point["verification"]["checked"], true, "{point}");
    let damages = point["verification"]["damages"].as_array().unwrap();
    let word = |damage: &Value, key: &str| damage[key].as_str().unwrap().to_owned();
    let number = |damage: &Value, key: &str| damage[key].as_u64().unwrap();
    damages
        .iter()
        .map(|damage| {
            let (kind, file) = (word(damage, "kind"), word(damage, "file"));
            (kind, file, number(damage, "offset"), number(damage, "units"))
        })
        .collect()
}

/// What is to be reported of what was done to a rewrite, or to a first write.
fn right(done: &Done, first: bool) -> Vec<Damage> {
    let Done { file, tamper, offset, bytes, before } = done;
    let units = bytes / UNIT;
    let of = |kind: &str, offset, units| (kind.to_owned(), file.clone(), offset, units);
    match tamper {
        Tamper::Flip => {
            let at = offset + flipped(usize::try_from(*bytes).unwrap()) as u64;
            vec![of("corrupted", at - at % UNIT, 1)]
        }
        Tamper::Drop if first => vec![of("missing", *offset, units)],
        Tamper::Drop => vec![of("stale", *offset, units)],
        Tamper::Elsewhere => {
            vec![of("stale", *offset, units), of("misdirected", *before, units)]
        }
        // A unit that is half written, or the units behind those that are.
        Tamper::Tear if units == 1 => vec![of("torn", *offset, 1)],
        Tamper::Tear => vec![of("torn", offset + bytes / 2, units / 2)],
    }
}

fn every_damage_is_found(block: &str, block_bytes: u64) {
    for (engine, pattern) in
        [(SYNC, "sequential"), (SYNC, "random-once"), (QUEUE, "sequential"), (QUEUE, "random-once")]
    {
        let scratch = Scratch::in_memory();
        let mount = scratch.folder("mount");
        let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
        observer.keep_payload(vec![
            order("t00000", 2, Tamper::Flip),
            order("t00001", 1, Tamper::Drop),
            order("t00002", 2, Tamper::Drop),
            order("t00003", 2, Tamper::Tear),
            order("t00001", 3, Tamper::Elsewhere),
        ]);
        let keys = format!("pattern = \"{pattern}\"\n{engine}");
        let file = generations(&scratch, block, BLOCKS * block_bytes, &keys);
        let target = mount.join("t");
        let run = run(&scratch, &[&file, "--local", "2", "--path", target.to_str().unwrap()]);
        assert_eq!(run.code(), 6, "{}", text(&run.output));
        let done = observer.tampered();
        assert_eq!(done.len(), 5, "{done:?}");
        assert!(done.iter().all(|done| done.bytes == block_bytes), "{done:?}");
        // In the order of the generations: each heals what the one before it suffered.
        let first: BTreeSet<Damage> = right(&done[0], true).into_iter().collect();
        assert_eq!(done[0].tamper, Tamper::Drop);
        let second = done[1..4].iter().flat_map(|done| right(done, false)).collect();
        let third = right(&done[4], false).into_iter().collect();
        let points = run.points();
        assert_eq!(points.len(), 6);
        assert_eq!(reported(&points[1]), first, "{engine} {pattern} {block}");
        assert_eq!(reported(&points[3]), second, "{engine} {pattern} {block}");
        assert_eq!(reported(&points[5]), third, "{engine} {pattern} {block}");
        said(&run, &done);
    }
}

/// The text for people names each kind, with its first place.
fn said(run: &Run, done: &[Done]) {
    let text = text(&run.output).split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = text.replace([',', ' ', '\u{202f}', '\u{a0}', '_', '\''], "");
    let damages = right(&done[0], true).into_iter().chain(right(&done[4], false));
    for (kind, ..) in damages.chain(done[1..4].iter().flat_map(|done| right(done, false))) {
        assert!(text.contains(&format!("{kind}: ")), "{kind} in {text}");
    }
    for (_, file, offset, _) in right(&done[0], true) {
        assert!(plain.contains(&format!("in{file}atoffset{offset}")), "{file} {offset} in {text}");
    }
    assert!(stderr(&run.output).contains("misdirected") || text.contains("misdirected"));
}

#[test]
fn damage_to_small_blocks_is_found() {
    every_damage_is_found("4 KiB", 4 << 10);
}

#[test]
fn damage_to_middling_blocks_is_found() {
    every_damage_is_found("64 KiB", 64 << 10);
}

#[test]
fn damage_to_great_blocks_is_found() {
    every_damage_is_found("1 MiB", 1 << 20);
}

/// A thread that reads and writes the same blocks knows what it may find, with others in flight too.
#[test]
fn a_mix_on_a_healthy_file_system_finds_nothing() {
    for engine in [SYNC, QUEUE, LIBAIO] {
        for pattern in ["random", "zipf"] {
            let scratch = Scratch::new();
            let target = scratch.folder("target");
            let file = scratch.write(
                "mix.toml",
                &format!(
                    "[workload]\nthreads = 3\nfile_size = \"256 KiB\"\nblock = \"4 KiB\"\n\
                     verify = \"all\"\n{engine}\n[[stage]]\nop = \"write\"\n\
                     [[stage]]\nop = \"mix\"\nmix = \"read 70, write 30\"\n\
                     pattern = \"{pattern}\"\nduration = \"500 ms\"\n"
                ),
            );
            let path = target.to_str().unwrap();
            let run = run(&scratch, &[file.to_str().unwrap(), "--local", "2", "--path", path]);
            assert_eq!(run.code(), 0, "{engine} {pattern} {}", text(&run.output));
            let mix = &run.points()[1];
            assert_eq!(mix["verification"]["checked"], true);
            assert!(mix["ops"].as_u64().unwrap() > 192, "each block more than once: {mix}");
            assert_eq!(reported(mix), BTreeSet::new());
        }
    }
}

/// In a mix too, a write that went nowhere is found, by the thread that wrote it.
#[test]
fn a_mix_finds_a_write_that_was_dropped() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    // The last write before the deadline may be one; one of the first is read again surely.
    observer.keep_payload(vec![Order {
        file: "t00000".to_owned(),
        nth: 8 + 5,
        tamper: Tamper::Drop,
    }]);
    let file = scratch.write(
        "mix.toml",
        "[workload]\nfile_size = \"32 KiB\"\nblock = \"4 KiB\"\nverify = \"all\"\n\
         engine = \"io_uring\"\ndepth = 2\n[[stage]]\nop = \"write\"\n[[stage]]\nop = \"mix\"\n\
         mix = \"read 90, write 10\"\npattern = \"random\"\nduration = \"500 ms\"\n",
    );
    let path = mount.join("t");
    let arguments = [file.to_str().unwrap(), "--local", "1", "--path", path.to_str().unwrap()];
    let run = run(&scratch, &arguments);
    assert_eq!(run.code(), 6, "{}", text(&run.output));
    let done = &observer.tampered()[0];
    let reads = observer.arrivals().into_iter().skip_while({
        let mut writes = 0;
        move |arrival| {
            writes += u64::from(arrival.write && arrival.file == "t00000");
            writes <= 8 + 5
        }
    });
    // Until it is written again, each read of the block finds it stale.
    let stale = reads
        .skip(1)
        .take_while(|arrival| !(arrival.write && arrival.offset == done.offset))
        .filter(|arrival| !arrival.write && arrival.offset == done.offset)
        .count() as u64;
    let found = reported(&run.points()[1]);
    let (kind, file, offset, units) = found.first().unwrap().clone();
    assert_eq!((found.len(), kind.as_str(), file.as_str()), (1, "stale", "t00000"));
    assert_eq!(offset, done.offset);
    // Reads that were in flight together with a write of the block may be right both ways.
    assert!(units <= stale && units + 2 >= stale, "{units} reported, {stale} served");
}

#[test]
fn what_can_not_be_told_is_refused() {
    let scratch = Scratch::new();
    let target = scratch.folder("target");
    let text_of = |verify: &str| {
        format!(
            "[workload]\nfile_size = \"1 MiB\"\nblock = \"4 KiB\"\nverify = \"{verify}\"\n\
             [[stage]]\nop = \"write\"\n[[stage]]\nop = \"mix\"\nmix = \"read 1, write 1\"\n\
             pattern = \"random\"\nduration = \"100 ms\"\n[[stage]]\nop = \"read\"\n"
        )
    };
    let with = |verify| {
        let file = scratch.write("told.toml", &text_of(verify));
        let path = target.to_str().unwrap();
        run(&scratch, &[file.to_str().unwrap(), "--local", "1", "--path", path])
    };
    let refused = with("all");
    assert_eq!(refused.code(), 3, "{}", text(&refused.output));
    for word in ["can't tell stale data", "no-stale"] {
        assert!(stderr(&refused.output).contains(word), "{}", text(&refused.output));
    }
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "before any I/O");
    let told = with("no-stale");
    assert_eq!(told.code(), 0, "{}", text(&told.output));
    assert_eq!(reported(&told.points()[2]), BTreeSet::new());
}
