//! One crew by itself, for tools that count instructions.

use std::{fs, io, path::PathBuf};

use iofleet_shared::work::{EngineKind, OpKind, OpShare, Pattern};

use crate::{Fallible, cases, crew::Task};

/// Of the file that is verified.
const VERIFIED_FILE: u64 = 16 << 20;
/// Of the file that nothing is done to.
const FILE: u64 = 4 << 30;

/// Does so many operations of `ENGINE-ORDER[-verified]`: of the engine `null` or `sync`; in the
/// order `sequential`, `random` or `random-once`, or `mix` (random, 70 % reads, 30 % writes).
pub(crate) fn run(case: &str, operations: u64) -> Fallible<()> {
    let unknown = || format!("there is no case {case}");
    let (plain, verify) = match case.strip_suffix("-verified") {
        Some(plain) => (plain, true),
        None => (case, false),
    };
    let (engine, order) = plain.split_once('-').ok_or_else(unknown)?;
    let engine = match engine {
        "null" if !verify => EngineKind::Null,
        "sync" => EngineKind::Sync,
        _ => return Err(unknown().into()),
    };
    let (pattern, ops) = match order {
        "sequential" => (Pattern::Sequential, cases::only(OpKind::Read)),
        "random" => (Pattern::Random, cases::only(OpKind::Read)),
        "random-once" => (Pattern::RandomOnce, cases::only(OpKind::Read)),
        "mix" => (Pattern::Random, cases::mix()),
        _ => return Err(unknown().into()),
    };
    let file = Removed::new()?;
    let bytes = if engine == EngineKind::Null { FILE } else { VERIFIED_FILE };
    let mut task = task(ops, pattern, bytes, operations);
    (task.engine, task.verify, task.generation) = (engine, verify, 1);
    if engine == EngineKind::Sync {
        let write = Task {
            ops: cases::only(OpKind::Write),
            pattern: Pattern::Sequential,
            operations: VERIFIED_FILE / 4_096,
            refresh: true,
            ..task.clone()
        };
        write.run(&file.0)?;
        task.generation = if task.ops.len() > 1 { 2 } else { 1 };
    }
    task.run(&file.0)?;
    Ok(())
}

fn task(ops: Vec<OpShare>, pattern: Pattern, bytes: u64, operations: u64) -> Task {
    Task {
        ops,
        engine: EngineKind::Sync,
        depth: 1,
        pattern,
        block: 4_096,
        bytes,
        direct: false,
        refresh: false,
        verify: false,
        generation: 1,
        threads: 1,
        operations,
    }
}

/// A file that goes in the end.
struct Removed(PathBuf);

impl Removed {
    fn new() -> io::Result<Self> {
        let name = format!("iofleet-generator-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, [])?;
        Ok(Self(path))
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.0);
    }
}
