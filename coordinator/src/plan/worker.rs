//! A worker's part of a point.

use std::collections::BTreeSet;

use iofleet_shared::{
    ids::{NodeIndex, PointId},
    limits::FRAME_BYTES_MAX,
    work::{
        Amount, Data, DatasetDir, Extent, FilePart, Files, Layout, Names, OpKind, OpShare,
        ThreadPlan, TreePart, WorkerPlan,
    },
};
use sha2::{Digest, Sha256};

use super::{
    Manifest, PointPlan,
    deal::{self, own_name, shared_name, tree_name},
    split,
};
use crate::scenario::{DirSharing, Verify};

impl PointPlan {
    /// A worker's part of the point; none when its node stands by.
    ///
    /// # Errors
    /// When its threads would read, rewrite or work on what is not there: which file, and what is
    /// missing.
    pub fn worker_plan(
        &self,
        node: NodeIndex,
        dir: DatasetDir,
        manifest: &Manifest,
        attempt: u32,
    ) -> Result<Option<WorkerPlan>, String> {
        if self.threads_on(node) == 0 {
            return Ok(None);
        }
        let params = &self.spec.params;
        let made = self.made(manifest, attempt);
        let threads = self
            .threads_of(node)
            .map(|thread| self.thread_plan(thread, manifest, &made))
            .collect::<Result<Vec<_>, String>>()?;
        let extents: usize = threads.iter().map(|thread| extents_of(&thread.files)).sum();
        if extents > EXTENTS_MAX {
            return Err(format!(
                "what was written lies in {extents} pieces on one node, more than {EXTENTS_MAX}: \
                 write with `sequential`, or in larger blocks"
            ));
        }
        let amount = match params.duration_ns {
            None => Amount::Share,
            Some(duration_ns) => Amount::Time { duration_ns, repeat: params.repeat_range },
        };
        let load = self.load_of(node).ok_or("its rate can't be counted")?;
        let data = self.data(&dir);
        Ok(Some(WorkerPlan {
            point: PointId { index: self.spec.index, attempt },
            dir,
            remove: self.stale(node, manifest, &made),
            engine: params.engine,
            pattern: params.pattern,
            blocks: params.blocks.clone(),
            options: params.options,
            fsync: params.fsync,
            file_bytes: params.file_bytes(),
            create: self.creates(),
            cold: params.cold,
            data,
            load,
            placement: params.placement.clone(),
            amount,
            ramp_ns: params.ramp_ns,
            interval_ns: params.interval_ns,
            stuck_after_ns: params.stuck_after_ns,
            threads,
        }))
    }

    /// Whether files are made: by fresh writes, and by whatever makes names.
    fn creates(&self) -> bool {
        let params = &self.spec.params;
        params.fresh || params.has(OpKind::Create) || params.has(OpKind::Mkdir)
    }

    /// The shared file or the tree that it makes or works on, as far as there is one.
    fn made(&self, manifest: &Manifest, attempt: u32) -> String {
        let params = &self.spec.params;
        let tree = params.layout == Layout::Tree;
        let (name, begins) = if tree {
            (tree_name(self.numbers.tree), self.numbers.begins_tree)
        } else {
            (shared_name(self.numbers.shared_file), self.creates())
        };
        if begins {
            return deal::of_attempt(name, attempt);
        }
        manifest.made_as(&name, tree).unwrap_or(name)
    }

    fn data(&self, dir: &DatasetDir) -> Data {
        let params = &self.spec.params;
        Data {
            content: params.content,
            refresh: params.refresh,
            verify: params.verify != Verify::Off,
            generation: self.numbers.generation.max(1),
            generation_known: params.verify == Verify::All,
            dataset: dataset(dir),
        }
    }

    /// Files and trees that make room by being removed.
    fn stale(&self, node: NodeIndex, manifest: &Manifest, made: &str) -> Vec<String> {
        let first = node == NodeIndex(0);
        match self.spec.params.layout {
            Layout::FilePerThread if self.creates() => {
                self.threads_of(node).map(own_name).collect()
            }
            Layout::SharedFile | Layout::SharedStrided if self.creates() && first => {
                let number = self.numbers.shared_file;
                others(shared_name, number, manifest.shared_files(), made)
            }
            Layout::Tree
                if self.numbers.begins_tree && (first || self.numbers.node_directories) =>
            {
                others(tree_name, self.numbers.tree, manifest.trees(), made)
            }
            Layout::FilePerThread
            | Layout::SharedFile
            | Layout::SharedStrided
            | Layout::Tree
            | Layout::FileList
            | Layout::Device => Vec::new(),
        }
    }

    fn thread_plan(
        &self,
        thread: u32,
        manifest: &Manifest,
        made: &str,
    ) -> Result<ThreadPlan, String> {
        let params = &self.spec.params;
        let ops = deal::kinds(params, self.threads, thread);
        let seed = split::seed(params.seed, self.spec.index, thread);
        if params.layout == Layout::Tree {
            let tree = self.tree(thread, &ops, manifest, made)?;
            let operations = self.operations_in(&tree, &ops);
            let files = Files::Tree(tree);
            return Ok(ThreadPlan { thread, ops, files, operations, seed });
        }
        let parts = deal::parts(params, self.threads, thread, made);
        let parts: Vec<FilePart> = if params.is_listed() {
            parts
        } else {
            let taken: Result<Vec<Vec<FilePart>>, String> =
                parts.into_iter().map(|part| self.taken(part, thread, &ops, manifest)).collect();
            taken?.into_iter().flatten().collect()
        };
        let block = params.block_bytes();
        let operations = parts.iter().map(|part| deal::blocks_in(part, block)).sum();
        let files = match params.layout {
            Layout::FileList => Files::Listed(parts),
            Layout::Device => Files::Devices(parts),
            Layout::FilePerThread | Layout::SharedFile | Layout::SharedStrided | Layout::Tree => {
                Files::Named(parts)
            }
        };
        Ok(ThreadPlan { thread, ops, files, operations, seed })
    }

    /// What of a part can be taken: all that is written anew, or what was written before.
    fn taken(
        &self,
        part: FilePart,
        thread: u32,
        ops: &[OpShare],
        manifest: &Manifest,
    ) -> Result<Vec<FilePart>, String> {
        let params = &self.spec.params;
        if ops.iter().any(|share| share.op == OpKind::Read) {
            let by_size = params.duration_ns.is_none();
            let sharers =
                (params.layout == Layout::SharedStrided).then_some((self.threads, thread));
            let mut parts = manifest.readable(&part, sharers, params.block_bytes(), by_size)?;
            for part in &mut parts {
                // Where sizes are drawn there is room for each of them.
                part.extents.retain(|extent| extent.length >= params.block_bytes_max());
                if part.extents.is_empty() {
                    let file = &part.file;
                    return Err(format!(
                        "{file}: what was written lies in pieces smaller than the largest block: \
                         write with `sequential`, or let the write stage run longer"
                    ));
                }
            }
            return Ok(parts);
        }
        if !params.fresh && !manifest.holds(&part.file) {
            return Err(format!(
                "{}: there is nothing to rewrite, since it was never written: let the stage that \
                 writes it run first",
                part.file
            ));
        }
        Ok(vec![part])
    }

    fn tree(
        &self,
        thread: u32,
        ops: &[OpShare],
        manifest: &Manifest,
        base: &str,
    ) -> Result<TreePart, String> {
        let params = &self.spec.params;
        let left = if self.numbers.begins_tree { None } else { manifest.names(base, thread) };
        let has = |op: OpKind| ops.iter().any(|share| share.op == op);
        let makes_files = has(OpKind::Create) || params.fresh && has(OpKind::Write);
        let place = format!("{base}: thread {thread}");
        let mut existing = left.map(|left| left.names).unwrap_or_default();
        let there = existing.files > existing.gone;
        let shared_dirs = params.tree.sharing == DirSharing::Shared;
        if existing.files > 0 || shared_dirs && left.is_some() {
            // Where no stage makes directories they are made while arming.
            existing.dirs = params.tree.dirs;
        }
        for share in ops {
            let missing = match share.op {
                OpKind::Mkdir | OpKind::Create => false,
                OpKind::Readdir => existing.dirs == 0 && !makes_files && !has(OpKind::Mkdir),
                OpKind::Rmdir => existing.dirs == 0 && !has(OpKind::Mkdir),
                OpKind::Write
                | OpKind::Read
                | OpKind::Stat
                | OpKind::Open
                | OpKind::Rename
                | OpKind::Unlink => !there && !makes_files,
            };
            if missing {
                let op = share.op.name();
                return Err(format!(
                    "{place} has no names to {op}: let the stage that makes them run first"
                ));
            }
        }
        if has(OpKind::Rmdir) && there {
            return Err(format!(
                "{place} still has files in its directories: let the stage that unlinks them \
                 remove all, by size"
            ));
        }
        if has(OpKind::Read) && !makes_files {
            existing = self.read_in(&place, existing, left.map_or(0, |left| left.whole))?;
        }
        let renamed = match left.map(|left| left.renamed) {
            Some(None) if there => {
                return Err(format!(
                    "{place}: some of its files were renamed and some were not, so their names are \
                     not known: let the stage that renames them do all, by size"
                ));
            }
            Some(renamed) => renamed.unwrap_or(false),
            None => false,
        };
        Ok(TreePart {
            base: base.to_owned(),
            shared_dirs,
            dirs: params.tree.dirs,
            files_per_dir: params.tree.files,
            sizes: params.file_sizes.clone(),
            sizes_seed: split::seed(params.seed, SIZES_SEED, self.numbers.tree),
            existing,
            renamed,
        })
    }

    /// The names of files that can be read, since all of them was written.
    fn read_in(&self, place: &str, existing: Names, whole: u64) -> Result<Names, String> {
        let files = existing.files.min(whole);
        if files <= existing.gone {
            return Err(format!(
                "{place} has no file that was written to its end: let the write stage run longer"
            ));
        }
        if self.spec.params.duration_ns.is_none() && files < existing.files {
            return Err(format!(
                "{place}: only {files} of {} files were written: give the write stage a size \
                 instead of a duration, or the read a duration",
                existing.files
            ));
        }
        Ok(Names { files, ..existing })
    }

    /// Operations by size on names, or on the blocks of files.
    fn operations_in(&self, tree: &TreePart, ops: &[OpShare]) -> u64 {
        let params = &self.spec.params;
        let makes = ops.iter().any(|share| {
            matches!(share.op, OpKind::Mkdir | OpKind::Create)
                || share.op == OpKind::Write && params.fresh
        });
        if ops.iter().all(|share| deal::of_directories(share.op)) {
            return if makes { u64::from(tree.dirs) } else { u64::from(tree.existing.dirs) };
        }
        let files = if makes { tree.files() } else { tree.existing.files - tree.existing.gone };
        if ops.iter().any(|share| share.op.moves_data()) {
            let blocks = deal::blocks_of_file(&tree.sizes, params.block_bytes());
            return files.saturating_mul(blocks.max(1));
        }
        files
    }
}

/// The name before a number, and whatever points that did not run as planned have left, but what is
/// made now.
fn others(
    name: impl Fn(u32) -> String,
    number: u32,
    held: impl Iterator<Item = String>,
    made: &str,
) -> Vec<String> {
    let mut stale: BTreeSet<String> = held.collect();
    stale.extend(number.checked_sub(1).map(&name));
    stale.remove(made);
    stale.into_iter().collect()
}

fn extents_of(files: &Files) -> usize {
    match files {
        Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => {
            parts.iter().map(|part| part.extents.len()).sum()
        }
        Files::Tree(_) => 0,
    }
}

/// Which dataset units belong to: eight bytes of a hash of campaign and name.
fn dataset(dir: &DatasetDir) -> u64 {
    let mut hash = Sha256::new();
    hash.update((dir.campaign.len() as u64).to_le_bytes());
    hash.update(dir.campaign.as_bytes());
    hash.update(dir.name.as_bytes());
    hash.finalize().iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Extents that one worker's plan may have: half of a frame of the protocol.
const EXTENTS_MAX: usize = 1 << 19;
const _: () = assert!(EXTENTS_MAX * size_of::<Extent>() <= FRAME_BYTES_MAX as usize / 2);
/// Keeps the seeds of trees apart from those of points.
const SIZES_SEED: u32 = u32::MAX;
