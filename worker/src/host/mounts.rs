//! The text of `/proc/self/mountinfo`. Pure.

use std::path::{Path, PathBuf};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its id.
    pub id: u64,
    /// Where it is mounted.
    pub point: PathBuf,
    /// File system type.
    pub fs_type: String,
    /// What is mounted.
    pub source: String,
    /// Options: of the mount, then of the super block.
    pub options: String,
}

/// All mounts, in the order of the text; lines that do not read are left out.
pub(super) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

/// The mount whose point is the longest prefix of `path`; of several at the same point, the last.
pub(super) fn of_path(mounts: Vec<Mount>, path: &Path) -> Option<Mount> {
    mounts
        .into_iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

fn parse_line(line: &str) -> Option<Mount> {
    // 36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda rw,errors=continue
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let id = mount.next()?.parse().ok()?;
    let point = unescape(mount.nth(3)?);
    let mount_options = mount.next()?;
    let mut file_system = file_system.split(' ');
    let fs_type = unescape(file_system.next()?);
    let source = unescape(file_system.next()?);
    let options = format!("{mount_options},{}", file_system.next().unwrap_or_default());
    Some(Mount { id, point: point.into(), fs_type, source, options })
}

/// Blanks, tabs, newlines and backslashes stand there as `\040` and the like.
fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..3).filter(|_| *first == b'\\').and_then(octal);
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,errors=remount-ro
61 22 0:52 / /mnt/beegfs rw,nosuid,relatime shared:30 - beegfs beegfs_nodev rw,cfgFile=/etc/b.conf
62 22 0:53 /sub /mnt/two\\040words ro,relatime - nfs4 server:/a\\134b rw,vers=4.2
63 61 0:54 / /mnt/beegfs rw - tmpfs over rw
";

    #[test]
    fn fields_and_escapes() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 4);
        assert_eq!(
            mounts[2],
            Mount {
                id: 62,
                point: "/mnt/two words".into(),
                fs_type: "nfs4".to_owned(),
                source: "server:/a\\b".to_owned(),
                options: "ro,relatime,rw,vers=4.2".to_owned(),
            }
        );
        assert_eq!(mounts[1].fs_type, "beegfs");
    }

    #[test]
    fn the_longest_and_topmost_mount_wins() {
        let of = |path: &str| of_path(parse(TEXT), Path::new(path)).unwrap().id;
        assert_eq!(of("/mnt/beegfs/x"), 63);
        assert_eq!(of("/mnt/beegfs2/x"), 22);
        assert_eq!(of("/mnt/two words"), 62);
    }

    #[test]
    fn damaged_lines_are_left_out() {
        assert_eq!(parse("22 1 254:0 / / rw\nx y - z\n"), vec![]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            for mount in parse(&text) {
                let _ = of_path(vec![mount], Path::new("/a"));
            }
            let _ = unescape(&text);
        }
    }
}
