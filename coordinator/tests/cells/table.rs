//! The table of combinations: as the product has it, as its page shows it, and as scenarios.

use iofleet_coordinator::scenario::legal;

/// Bytes of each operation: what direct I/O takes everywhere.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Bytes of each thread's part, but in trees.
pub(crate) const PART_BYTES: u64 = 256 << 10;
/// Bytes of each of a tree's files.
pub(crate) const TREE_FILE_BYTES: u64 = 64 << 10;
/// Files of each thread in its tree.
pub(crate) const TREE_FILES: u64 = 4;
/// Threads of the whole fleet, one on each node.
pub(crate) const THREADS: u64 = 2;

/// One combination.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) engine: String,
    pub(crate) layout: String,
    pub(crate) pattern: String,
    pub(crate) direct: bool,
    /// Why not; none where it is legal.
    pub(crate) why_not: Option<String>,
}

/// All combinations in the product's own table.
pub(crate) fn cells() -> Vec<Cell> {
    parse(&legal::table())
}

/// Those of the page.
pub(crate) fn documented() -> Vec<Cell> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/workloads.md");
    let page = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> =
        page.lines().skip_while(|line| !line.starts_with("| engine |")).collect();
    let end = lines.iter().position(|line| !line.starts_with('|')).unwrap_or(lines.len());
    parse(&lines[..end].join("\n"))
}

/// The legal ones of an engine in some layouts. Blocks that all are written come last.
pub(crate) fn legal(engine: &str, layouts: &[&str]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = cells()
        .into_iter()
        .filter(|cell| cell.why_not.is_none() && cell.engine == engine)
        .filter(|cell| layouts.contains(&&*cell.layout))
        .collect();
    cells.sort_by_key(|cell| !cell.repeats());
    cells
}

fn parse(table: &str) -> Vec<Cell> {
    let mut rows = table.lines().map(|line| {
        line.trim_matches('|').split('|').map(|word| word.trim().to_owned()).collect::<Vec<_>>()
    });
    let heading = rows.next().unwrap();
    let mut cells = Vec::new();
    for row in rows.skip(1) {
        for (pattern, word) in heading.iter().zip(&row).skip(3) {
            cells.push(Cell {
                engine: row[0].clone(),
                layout: row[1].clone(),
                pattern: pattern.clone(),
                direct: row[2] == "true",
                why_not: (word != "yes").then(|| word.clone()),
            });
        }
    }
    cells
}

impl Cell {
    /// Whether blocks come again before all have come once.
    pub(crate) fn repeats(&self) -> bool {
        ["random", "zipf", "pareto", "normal"].contains(&&*self.pattern)
    }

    fn is_listed(&self) -> bool {
        ["file-list", "device"].contains(&&*self.layout)
    }

    /// Blocks of all threads.
    pub(crate) fn blocks(&self) -> u64 {
        if self.layout == "tree" {
            THREADS * TREE_FILES * TREE_FILE_BYTES / BLOCK_BYTES
        } else {
            THREADS * PART_BYTES / BLOCK_BYTES
        }
    }

    fn name(&self) -> String {
        let direct = if self.direct { "direct" } else { "cached" };
        format!("{}-{}-{direct}", self.layout, self.pattern)
    }

    /// Keys of each of its stages.
    fn keys(&self, pattern: &str) -> String {
        let Self { layout, direct, .. } = self;
        let size = match &**layout {
            "tree" => format!("files = {TREE_FILES}\nfile_size = \"{TREE_FILE_BYTES} B\"\n"),
            "shared-file" | "shared-strided" | "device" => {
                format!("file_size = \"{} B\"\n", THREADS * PART_BYTES)
            }
            _ => format!("file_size = \"{PART_BYTES} B\"\n"),
        };
        format!("layout = \"{layout}\"\npattern = \"{pattern}\"\ndirect = {direct}\n{size}")
    }

    /// A stage of its own for its writes by size, its reads for 500 ms and its mix for 200 ms.
    pub(crate) fn stages(&self) -> String {
        let (name, keys) = (self.name(), self.keys(&self.pattern));
        let mut text = self.write_stage();
        if self.layout == "tree" && self.repeats() {
            // Only files that were written to their ends are read.
            let whole = self.keys("sequential");
            text.push_str(&format!("[[stage]]\nname = \"fill-{name}\"\nop = \"write\"\n{whole}"));
        }
        text.push_str(&format!(
            "[[stage]]\nname = \"read-{name}\"\nop = \"read\"\nduration = \"500 ms\"\n{keys}"
        ));
        text.push_str(&format!(
            "[[stage]]\nname = \"mix-{name}\"\nop = \"mix\"\nmix = \"read 70, write 30\"\n\
             duration = \"200 ms\"\n{keys}"
        ));
        text
    }

    /// Its writes alone.
    pub(crate) fn write_stage(&self) -> String {
        let (name, keys) = (self.name(), self.keys(&self.pattern));
        format!("[[stage]]\nname = \"write-{name}\"\nop = \"write\"\n{keys}")
    }

    /// A scenario of its writes alone, with what is listed for it.
    pub(crate) fn scenario(&self) -> String {
        let listed = match &*self.layout {
            "file-list" => "files = [\"/a\", \"/b\"]",
            "device" => "devices = [\"/dev/a\"]",
            _ => "",
        };
        let target = if self.is_listed() {
            format!("[target]\n{listed}\ndestroys_data = true\n")
        } else {
            String::new()
        };
        format!("{target}{}{}", common(&self.engine), self.write_stage())
    }
}

/// What all stages of an engine have in common.
pub(crate) fn common(engine: &str) -> String {
    let depth = if ["io_uring", "libaio"].contains(&engine) { "depth = 4\n" } else { "" };
    format!(
        "[workload]\nengine = \"{engine}\"\nthreads = {THREADS}\nblock = \"{BLOCK_BYTES} B\"\n\
         interval = \"100 ms\"\n{depth}"
    )
}
