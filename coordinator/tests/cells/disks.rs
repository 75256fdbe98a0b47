//! Loop devices and file systems of the tests' own, which go with the value that holds them.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

/// Makers of file systems take no less than that without a complaint.
const DISK_BYTES: u64 = 400 << 20;

/// A loop device over a sparse file.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) device: PathBuf,
    backing: PathBuf,
}

impl Disk {
    /// With sectors of that many bytes; else why the machine has none.
    pub(crate) fn new(backing: &Path, sector_bytes: u32) -> Result<Self, String> {
        File::create(backing).and_then(|file| file.set_len(DISK_BYTES)).unwrap();
        let sector = sector_bytes.to_string();
        let backing_text = backing.to_str().unwrap();
        let device =
            said("losetup", &["--find", "--show", "--sector-size", &sector, backing_text])?;
        Ok(Self { device: PathBuf::from(device.trim()), backing: backing.to_owned() })
    }

    pub(crate) fn text(&self) -> &str {
        self.device.to_str().unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = said("losetup", &["--detach", self.text()]);
        let _ = std::fs::remove_file(&self.backing);
    }
}

/// A mounted file system on a disk of its own.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub(crate) at: PathBuf,
    /// Dropped after it was unmounted.
    _disk: Disk,
}

impl Mounted {
    /// ext4, or XFS with sectors of 4 KiB, in a folder; else why the machine has none.
    pub(crate) fn new(kind: &str, folder: &Path) -> Result<Self, String> {
        let sector_bytes = if kind == "xfs" { 4096 } else { 512 };
        let disk = Disk::new(&folder.join(format!("{kind}.img")), sector_bytes)?;
        let quiet = if kind == "xfs" { "-qf" } else { "-qF" };
        said(&format!("mkfs.{kind}"), &[quiet, disk.text()])?;
        let at = folder.join(kind);
        std::fs::create_dir_all(&at).unwrap();
        said("mount", &["-t", kind, disk.text(), at.to_str().unwrap()])?;
        Ok(Self { at, _disk: disk })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = self.at.to_str().unwrap_or_default();
        if said("umount", &[at]).is_err() {
            let _ = said("umount", &["--lazy", at]);
        }
    }
}

/// What a command prints, or why it failed.
fn said(command: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(command).args(arguments).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
