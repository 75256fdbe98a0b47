//! Blocks that direct I/O does not take on a file system are refused before anything is written.

use std::fs;

use crate::{
    disks::Mounted,
    support::{Scratch, run, skip, stderr, text},
};

#[test]
fn blocks_off_the_sectors_are_refused_before_any_io() {
    let scratch = Scratch::new();
    let mounted = match Mounted::new("xfs", &scratch.folder("xfs")) {
        Ok(mounted) => mounted,
        Err(why) => return skip(&format!("xfs: {why}")),
    };
    let target = mounted.at.join("target");
    let run_with = |block: u64, engine: &str| {
        let text = format!(
            "[workload]\nthreads = 2\nengine = \"{engine}\"\ndirect = true\nblock = \"{block} B\"\n\
             file_size = \"{} B\"\n",
            block * 4
        );
        let file = scratch.write("off.toml", &text);
        let (file, target) = (file.to_str().unwrap(), target.to_str().unwrap());
        run(&scratch, &[file, "--local", "2", "--path", target])
    };
    for engine in ["sync", "io_uring", "libaio"] {
        // 47008 is a size that IO500 uses.
        for block in [512, 47008] {
            let run = run_with(block, engine);
            assert_eq!(run.code(), 4, "{block}\n{}", text(&run.output));
            let said = stderr(&run.output).split_whitespace().collect::<Vec<_>>().join(" ");
            for word in ["4096", &block.to_string()] {
                assert!(said.contains(word), "{word} is not named\n{}", text(&run.output));
            }
            assert_eq!(fs::read_dir(&mounted.at).unwrap().count(), 0, "before any I/O");
        }
        // And what the sectors take runs.
        let run = run_with(4096, engine);
        assert_eq!(run.code(), 0, "{}", text(&run.output));
    }
}
