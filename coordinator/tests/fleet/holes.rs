//! Files that have holes, from the command line.

use std::fs::{self, File};

use crate::support::{Daemon, Scratch, on, run, text};

/// A file that is there, of its whole length and without a byte in it.
#[test]
fn a_file_that_was_only_truncated_is_refused_and_marked_where_it_is_allowed() {
    let scratch = Scratch::in_memory();
    let root = scratch.folder("root");
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &root, &keys);
    let listed = root.join("listed");
    File::create(&listed).unwrap().set_len(1 << 20).unwrap();
    let scenario = scratch.write(
        "listed.toml",
        &format!(
            "[target]\nfiles = [\"{}\"]\n[workload]\nlayout = \"file-list\"\nthreads = 1\n\
             file_size = \"1 MiB\"\nblock = \"64 KiB\"\ndirect = false\n[[stage]]\nop = \"read\"\n",
            listed.display()
        ),
    );
    let scenario = scenario.to_str().unwrap();
    let refused = run(&scratch, &on(&daemon.address, &keys, &root.join("t"), &[scenario]));
    assert_eq!(refused.code(), 5, "{}", text(&refused.output));
    let why = refused.points()[0]["why"].as_str().unwrap();
    assert!(why.contains("listed has a hole at offset 0"), "{why}");
    assert_eq!(refused.points()[0]["bytes"], 0);
    let more = [scenario, "--allow-holes"];
    let allowed = run(&scratch, &on(&daemon.address, &keys, &root.join("t"), &more));
    assert_eq!(allowed.code(), 0, "{}", text(&allowed.output));
    let point = &allowed.points()[0];
    let codes: Vec<&str> = point["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| mark["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"holes"), "{codes:?}");
    assert_eq!(point["verdict"]["code"], "invalid");
    // Now it has bytes, and no doubt is left.
    fs::write(&listed, vec![1; 1 << 20]).unwrap();
    let whole = run(&scratch, &on(&daemon.address, &keys, &root.join("t"), &[scenario]));
    assert_eq!(whole.code(), 0, "{}", text(&whole.output));
    assert_ne!(whole.points()[0]["verdict"]["code"], "invalid");
}
