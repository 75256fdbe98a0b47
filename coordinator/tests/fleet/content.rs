//! What is written, as a compressor and a count of distinct blocks see it.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::support::{Scratch, run, skip, text};

/// Files that a run by size leaves, of 8 MiB each.
fn written(scratch: &Scratch, threads: u32, keys: &str) -> Vec<PathBuf> {
    let target = scratch.folder("target");
    let file = scratch.write(
        "content.toml",
        &format!(
            "[workload]\nthreads = {threads}\nfile_size = \"8 MiB\"\nblock = \"256 KiB\"\n\
             direct = false\n{keys}\n[[stage]]\nop = \"write\"\n"
        ),
    );
    let path = target.to_str().unwrap();
    let run = run(scratch, &[file.to_str().unwrap(), "--local", "2", "--path", path, "--keep"]);
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let dataset = fs::read_dir(&target).unwrap().map(Result::unwrap);
    let dataset = dataset.map(|entry| entry.path()).find(|path| path.is_dir()).unwrap();
    let mut files: Vec<PathBuf> = fs::read_dir(dataset)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'))
        .collect();
    files.sort();
    assert_eq!(files.len(), threads as usize);
    for file in &files {
        assert_eq!(fs::metadata(file).unwrap().len(), 8 << 20);
    }
    files
}

/// Size over size compressed by zstd at its fastest; none where there is no zstd.
fn zstd_ratio(file: &Path) -> Option<f64> {
    let output = Command::new("zstd")
        .args(["-1", "-c"])
        .stdin(File::open(file).unwrap())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    assert!(output.status.success());
    Some(fs::metadata(file).unwrap().len() as f64 / output.stdout.len() as f64)
}

#[test]
fn data_compresses_as_asked() {
    for (keys, least, most) in
        [("", 0.99, 1.01), ("compress = 2.0", 1.9, 2.1), ("compress = 3.5", 3.325, 3.675)]
    {
        let scratch = Scratch::in_memory();
        for file in written(&scratch, 2, keys) {
            let Some(ratio) = zstd_ratio(&file) else { return skip("no zstd here") };
            println!("{keys:?}: {ratio}");
            assert!((least..most).contains(&ratio), "{keys:?}: {ratio}");
        }
    }
}

#[test]
fn data_repeats_as_asked() {
    for (keys, asked) in [("", 1.0), ("dedupe = 2.0", 2.0), ("dedupe = 3.0", 3.0)] {
        let scratch = Scratch::in_memory();
        let files: Vec<Vec<u8>> =
            written(&scratch, 4, keys).iter().map(|file| fs::read(file).unwrap()).collect();
        let all: Vec<&[u8; 4096]> = files.iter().flat_map(|file| file.as_chunks().0).collect();
        let distinct = all.iter().collect::<BTreeSet<_>>().len();
        let ratio = all.len() as f64 / distinct as f64;
        println!("{keys:?}: {ratio}");
        assert!((ratio / asked - 1.0).abs() < 0.02, "{keys:?}: {ratio}");
    }
}
