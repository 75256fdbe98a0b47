//! Block devices: used only if the worker was told that it may, by the whole device, exclusively.

use std::{
    fs::{self, File},
    os::unix::fs::FileTypeExt,
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags, ioctl_blksszget, open as open_path},
    io::Errno,
};

use super::{Targets, dataset::seen, error::TargetError};

/// Opens a device for as much as `end` says.
pub(super) fn open(
    targets: &Targets,
    path: &str,
    flags: OFlags,
    end: u64,
) -> Result<File, TargetError> {
    check(targets, path)?;
    // With O_EXCL the kernel refuses a device that is mounted or held by another one. What the point
    // before has closed may be held for a moment more: rings let go of their files later.
    let opened = seen(|| match open_path(path, flags | OFlags::EXCL, Mode::empty()) {
        Err(Errno::BUSY) => None,
        result => Some(result),
    });
    let file = match opened {
        Some(result) => result.map(File::from),
        None => {
            return Err(TargetError::DeviceBusy { path: path.to_owned(), holders: holders(path) });
        }
    };
    let file = file.map_err(|error| TargetError::call("open", path.to_owned(), error))?;
    let found = size(&file, path)?;
    if found < end {
        return Err(TargetError::Short { path: path.to_owned(), found, needed: end });
    }
    Ok(file)
}

/// What can be said of a device before it is used: that the worker may, that it is one, that
/// nobody holds it, and the alignment of direct I/O.
pub(super) fn inspect(targets: &Targets, path: &str, blocks: &[u64]) -> Result<(), TargetError> {
    check(targets, path)?;
    let held = holders(path);
    if !held.is_empty() {
        return Err(TargetError::DeviceBusy { path: path.to_owned(), holders: held });
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = open_path(path, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| TargetError::call("open", path.to_owned(), error))?;
    let alignment = ioctl_blksszget(&file).map_or(512, u64::from);
    match blocks.iter().find(|block| **block % alignment != 0) {
        Some(block) => {
            Err(TargetError::Alignment { path: path.to_owned(), block: *block, alignment })
        }
        None => Ok(()),
    }
}

fn check(targets: &Targets, path: &str) -> Result<(), TargetError> {
    let is_allowed = targets.devices.iter().any(|device| device == Path::new(path));
    if !is_allowed {
        return Err(TargetError::DeviceNotAllowed { path: path.to_owned() });
    }
    let is_device = fs::symlink_metadata(path)
        .map_err(|source| TargetError::Call { call: "look at", path: path.to_owned(), source })?
        .file_type()
        .is_block_device();
    if is_device { Ok(()) } else { Err(TargetError::NotDevice { path: path.to_owned() }) }
}

/// Devices built on this one (LVM, RAID), by name.
fn holders(path: &str) -> String {
    let Some(name) = Path::new(path).file_name() else {
        return String::new();
    };
    let dir = Path::new("/sys/class/block").join(name).join("holders");
    let names = fs::read_dir(dir).into_iter().flatten().flatten();
    let names: Vec<String> =
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.join(", ")
}

fn size(file: &File, path: &str) -> Result<u64, TargetError> {
    // The length of a device is not in its attributes; its end is.
    rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))
        .map_err(|error| TargetError::call("ask for the size of", path.to_owned(), error))
}
