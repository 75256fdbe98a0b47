//! Names of trees: which stages make them, which need them, and when a tree is begun anew.

use iofleet_shared::work::{OpKind, SizeShare};

use super::{
    super::{Params, PointSpec, Tree, keys::KeyId},
    Uncovered, threads_key,
};

/// What there is of the newest tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Left {
    /// No tree, or one whose names are used up.
    #[default]
    Nothing,
    /// Directories without a file.
    Dirs,
    /// Files; all of them, or some.
    Files,
    /// Directories whose files were removed again.
    Emptied,
}

/// What a stage does to names.
#[derive(Debug, Clone, Copy)]
struct Does {
    /// Makes directories.
    dirs: bool,
    /// Makes files.
    files: bool,
}

impl Does {
    fn of(params: &Params) -> Self {
        let fresh = params.writes() && params.fresh;
        Self { dirs: params.has(OpKind::Mkdir), files: params.has(OpKind::Create) || fresh }
    }

    /// Whether a tree is begun anew: names that exist already can't be made.
    fn anew(self, left: Left) -> bool {
        match left {
            Left::Nothing => self.dirs || self.files,
            Left::Dirs => self.dirs,
            Left::Files | Left::Emptied => self.dirs || self.files,
        }
    }

    fn then(self, params: &Params, left: Left) -> Left {
        if params.has(OpKind::Rmdir) && !self.dirs {
            return Left::Nothing;
        }
        if params.has(OpKind::Unlink) && !self.files && !params.is_mix() {
            return Left::Emptied;
        }
        match (self.files, self.dirs) {
            (true, _) => Left::Files,
            (false, true) => Left::Dirs,
            (false, false) => left,
        }
    }
}

/// Counts the trees of a campaign.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    begun: u32,
    left: Left,
}

impl Trees {
    /// A new pass begins: its first names are those of a new tree.
    pub(crate) fn new_pass(&mut self) {
        self.left = Left::Nothing;
    }

    /// The number of the tree that a point works on, and whether it begins it.
    pub(crate) fn step(&mut self, params: &Params) -> (u32, bool) {
        let does = Does::of(params);
        let anew = does.anew(self.left);
        self.begun += u32::from(anew);
        self.left = does.then(params, self.left);
        (self.begun.saturating_sub(1), anew)
    }
}

/// What the stages of a pass have left of names so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    left: Left,
    /// Shape of the tree, and how many threads have names in it.
    shape: Option<(Tree, u32)>,
    /// Sizes of the files that were written.
    sizes: Option<Vec<SizeShare>>,
}

impl Found {
    /// Whether the stage begins a tree.
    pub(super) fn step(&mut self, point: &PointSpec, threads: u32) -> Result<bool, Uncovered> {
        let params = &point.params;
        let does = Does::of(params);
        let anew = does.anew(self.left);
        if !anew {
            self.fits(point, threads)?;
        }
        if let Some(op) = lacking(params, does, if anew { Left::Nothing } else { self.left }) {
            return Err(lacks(point, op, self.left));
        }
        if anew {
            self.shape = Some((params.tree, threads));
            self.sizes = None;
        }
        if params.writes() {
            self.sizes = Some(params.file_sizes.clone());
        }
        self.left = does.then(params, self.left);
        Ok(anew)
    }

    /// Whether it works on the tree that is there.
    fn fits(&self, point: &PointSpec, threads: u32) -> Result<(), Uncovered> {
        let params = &point.params;
        let Some((tree, made_by)) = self.shape else {
            return Ok(());
        };
        let fail = |key: KeyId, text: String, help: String| {
            let text = format!("stage `{}` works on {text}", point.stage);
            Err(Uncovered { at: 0, text, help, key })
        };
        let earlier = |key: &str, now: u32, then: u32| {
            (
                format!("a tree with {key} = {now}, but it was made with {key} = {then}"),
                format!("set {key} to the same in all stages of a tree"),
            )
        };
        if params.tree.dirs != tree.dirs {
            let (text, help) = earlier("dirs", params.tree.dirs, tree.dirs);
            return fail(KeyId::Dirs, text, help);
        }
        if params.tree.files != tree.files {
            let (text, help) = earlier("files", params.tree.files, tree.files);
            return fail(KeyId::Files, text, help);
        }
        if params.tree.sharing != tree.sharing {
            let text = "a tree of another dir_sharing than it was made with".to_owned();
            return fail(KeyId::DirSharing, text, "set it to the same in all stages".to_owned());
        }
        if params.moves_data() && self.sizes.as_ref().is_some_and(|s| *s != params.file_sizes) {
            let text = "files of another file_size than they were written with".to_owned();
            return fail(KeyId::FileSize, text, "set it to the same in all stages".to_owned());
        }
        if threads > made_by {
            let text = format!("the names of {threads} threads, but only {made_by} have made any");
            let help = "use as many threads as the stage that makes them, or fewer".to_owned();
            return fail(threads_key(params), text, help);
        }
        Ok(())
    }
}

/// A kind of operation that finds no names to work on.
fn lacking(params: &Params, does: Does, left: Left) -> Option<OpKind> {
    let files = does.files || left == Left::Files;
    let dirs = does.dirs || does.files || left != Left::Nothing;
    params.ops.iter().map(|share| share.op).find(|op| match op {
        OpKind::Write => !does.files && !files,
        OpKind::Read | OpKind::Stat | OpKind::Open | OpKind::Rename | OpKind::Unlink => !files,
        OpKind::Readdir => !dirs,
        // Directories with files in them can't be removed.
        OpKind::Rmdir => !dirs || left == Left::Files,
        OpKind::Mkdir | OpKind::Create => false,
    })
}

fn lacks(point: &PointSpec, op: OpKind, left: Left) -> Uncovered {
    let stage = &point.stage;
    let (text, help) = match op {
        OpKind::Rmdir if left == Left::Files => (
            format!("stage `{stage}` removes directories that still have files in them"),
            "put an unlink stage before it",
        ),
        OpKind::Rmdir | OpKind::Readdir => (
            format!("stage `{stage}` works on directories that no earlier stage made"),
            "put a stage with op = \"mkdir\", \"create\" or \"write\" before it",
        ),
        OpKind::Read => (
            format!("stage `{stage}` reads what no earlier stage wrote"),
            "put a write stage of the same layout before it",
        ),
        OpKind::Write
        | OpKind::Mkdir
        | OpKind::Create
        | OpKind::Stat
        | OpKind::Open
        | OpKind::Rename
        | OpKind::Unlink => (
            format!(
                "stage `{stage}` works on files ({}) that no earlier stage made, or that were \
                 removed again",
                op.name()
            ),
            "put a stage with op = \"create\" or \"write\" before it",
        ),
    };
    Uncovered { at: 0, text, help: help.to_owned(), key: KeyId::Op }
}

#[cfg(test)]
mod tests {
    use iofleet_shared::work::{Layout, OpShare};

    use super::*;

    fn doing(op: OpKind) -> Params {
        let ops = vec![OpShare { op, weight: 1 }];
        Params { ops, layout: Layout::Tree, fresh: op == OpKind::Write, ..Params::default() }
    }

    #[test]
    fn a_tree_is_begun_anew_when_its_names_are_taken() {
        let mut trees = Trees::default();
        let mut steps = |ops: &[OpKind]| -> Vec<(u32, bool)> {
            ops.iter().map(|op| trees.step(&doing(*op))).collect()
        };
        use OpKind::{Create, Mkdir, Read, Rmdir, Stat, Unlink, Write};
        assert_eq!(
            steps(&[Mkdir, Create, Stat, Unlink, Rmdir]),
            [(0, true), (0, false), (0, false), (0, false), (0, false)]
        );
        assert_eq!(steps(&[Create, Create, Stat]), [(1, true), (2, true), (2, false)]);
        assert_eq!(steps(&[Write, Read, Mkdir]), [(3, true), (3, false), (4, true)]);
        assert_eq!(steps(&[Write, Unlink, Write]), [(4, false), (4, false), (5, true)]);
        trees.new_pass();
        assert_eq!(trees.step(&doing(Mkdir)), (6, true));
    }
}
