//! The line on standard error while a point runs: what is done, what it is waiting for. Only on a
//! terminal. All it shows is provisional; the rows of the table are not.

use std::{collections::BTreeMap, io::Write};

use iofleet_shared::{ids::NodeIndex, units};

/// State of the line.
#[derive(Debug, Default)]
pub struct Live {
    point: String,
    started_ns: Option<u64>,
    nodes: BTreeMap<NodeIndex, Standing>,
    shown: bool,
}

/// What a node's last heartbeat said.
#[derive(Debug, Clone, Copy)]
struct Standing {
    bytes: u64,
    oldest_ns: u64,
}

impl Live {
    /// A point is being armed.
    pub fn arming(&mut self, point: String, out: &mut dyn Write) {
        *self = Self { point, shown: self.shown, ..Self::default() };
        self.show("arming", out);
    }

    /// Its start is committed.
    pub fn started(&mut self, now_ns: u64, out: &mut dyn Write) {
        self.started_ns = Some(now_ns);
        self.show("running", out);
    }

    /// A heartbeat came.
    pub fn progress(
        &mut self,
        node: NodeIndex,
        bytes: u64,
        oldest_ns: u64,
        now_ns: u64,
        out: &mut dyn Write,
    ) {
        self.nodes.insert(node, Standing { bytes, oldest_ns });
        let total: u64 = self.nodes.values().map(|node| node.bytes).sum();
        let oldest_ns = self.nodes.values().map(|node| node.oldest_ns).max().unwrap_or(0);
        let seconds = now_ns.saturating_sub(self.started_ns.unwrap_or(now_ns)) / 1_000_000_000;
        let mut text = format!("{seconds} s, {}", units::format_size(total));
        if oldest_ns > 1_000_000_000 {
            text += &format!(", oldest operation {} s", oldest_ns / 1_000_000_000);
        }
        self.show(&text, out);
    }

    /// Takes the line away, so that something else can be printed.
    pub fn clear(&mut self, out: &mut dyn Write) {
        if self.shown {
            // A terminal that went away is no reason to stop measuring.
            let _ = write!(out, "\r\x1b[K").and_then(|()| out.flush());
            self.shown = false;
        }
    }

    fn show(&mut self, text: &str, out: &mut dyn Write) {
        let _ = write!(out, "\r\x1b[K{}: {text}", self.point).and_then(|()| out.flush());
        self.shown = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_sums_nodes_and_clears() {
        let (mut live, mut out) = (Live::default(), Vec::new());
        live.arming("point 1".to_owned(), &mut out);
        live.started(0, &mut out);
        live.progress(NodeIndex(0), 1 << 20, 3_500_000_000, 2_000_000_000, &mut out);
        live.progress(NodeIndex(1), 1 << 20, 0, 2_000_000_000, &mut out);
        live.clear(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("point 1: 2 s, 2 MiB, oldest operation 3 s"), "{text}");
        assert!(text.ends_with("\r\x1b[K"), "{text}");
    }
}
