//! What a worker knows of its machine: facts that hold as long as it lives, CPU time, mounts, the
//! priorities of its own threads, and where threads and buffers may be put.

use std::{fs, io::Read, path::PathBuf};

use iofleet_shared::facts::HostFacts;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::stamp::StampClock;

pub use cpu::CpuTimes;
pub use mounts::Mount;
pub use nice::ControlPriority;

pub mod cpu;
pub mod links;
mod mounts;
mod nice;
pub mod placement;
mod setup;

/// Where a machine's facts are read: `/proc`, or a recorded copy of it.
#[derive(Debug, Clone)]
pub struct Host {
    proc: PathBuf,
}

impl Default for Host {
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl Host {
    /// A machine whose process file system lies at `proc`.
    #[must_use]
    pub fn at(proc: impl Into<PathBuf>) -> Self {
        Self { proc: proc.into() }
    }

    /// The facts. What can't be read is empty or 0: none of them is worth a refusal.
    #[must_use]
    pub fn facts(&self, stamp: &StampClock, control_priority: bool) -> HostFacts {
        HostFacts {
            hostname: System::host_name().unwrap_or_default(),
            boot_id: self.text("sys/kernel/random/boot_id").trim().to_owned(),
            net_namespace: self.net_namespace(),
            incarnation: random(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: System::kernel_version().unwrap_or_default(),
            cpus: cpus(),
            memory_bytes: Memory::now().total_bytes,
            stamp_clock: stamp.name().to_owned(),
            stamp_resolution_ns: stamp.resolution_ns(),
            stamp_cost_ns: stamp.cost_ns(),
            control_priority,
            setup: setup::read(&self.proc, std::path::Path::new(links::SYSFS)),
        }
    }

    /// CPU time that the machine has spent since boot.
    #[must_use]
    pub fn cpu_times(&self) -> Option<CpuTimes> {
        CpuTimes::parse(&self.text("stat"))
    }

    /// The mount with this id in this process's namespace.
    #[must_use]
    pub fn mount(&self, id: u64) -> Option<Mount> {
        mounts::parse(&self.text("self/mountinfo")).into_iter().find(|mount| mount.id == id)
    }

    /// The mount that a path lies on, going by names alone: it asks nothing of a file system that
    /// may not answer.
    #[must_use]
    pub fn mount_of_path(&self, path: &std::path::Path) -> Option<Mount> {
        mounts::of_path(mounts::parse(&self.text("self/mountinfo")), path)
    }

    /// Mount id of an open file.
    #[must_use]
    pub fn mount_id(&self, fd: std::os::fd::BorrowedFd<'_>) -> Option<u64> {
        use std::os::fd::AsRawFd;
        let text = self.text(&format!("self/fdinfo/{}", fd.as_raw_fd()));
        text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
    }

    /// Number of descriptors that this process has open.
    #[must_use]
    pub fn open_descriptors(&self) -> u64 {
        fs::read_dir(self.proc.join("self/fd")).map_or(0, |entries| entries.count() as u64)
    }

    /// Where it is read.
    #[must_use]
    pub fn proc(&self) -> &std::path::Path {
        &self.proc
    }

    fn net_namespace(&self) -> u64 {
        rustix::fs::stat(self.proc.join("self/ns/net")).map_or(0, |stat| stat.st_ino)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.proc.join(name)).unwrap_or_default()
    }
}

/// Memory of the machine, or of the control group that this process is confined to.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// All of the machine's, in bytes.
    pub total_bytes: u64,
    /// What can be had without swapping, in bytes; the greatest number where it is unknown.
    pub available_bytes: u64,
}

impl Memory {
    /// As it stands.
    #[must_use]
    pub fn now() -> Self {
        let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let Ok(system) = System::new_with_specifics(memory) else {
            return Self { total_bytes: 0, available_bytes: u64::MAX };
        };
        let confined = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
        Self {
            total_bytes: system.total_memory(),
            available_bytes: system.available_memory().min(confined),
        }
    }
}

/// A number that no other process has drawn.
#[must_use]
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    let drawn = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    match drawn {
        Ok(()) => u64::from_ne_bytes(bytes),
        // A sandbox without the device: the process and the time tell two daemons apart as well.
        Err(_) => iofleet_shared::clock::monotonic_ns() ^ (u64::from(std::process::id()) << 40),
    }
}

/// Who this process is, for errors about permissions: `user alice (uid 1000)`.
#[must_use]
pub fn user() -> String {
    let uid = rustix::process::geteuid().as_raw();
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    match user_name(&passwd, uid) {
        Some(name) => format!("user {name} (uid {uid})"),
        None => format!("uid {uid}"),
    }
}

fn user_name(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

fn cpus() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_names_come_from_passwd() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n";
        assert_eq!(user_name(passwd, 1000), Some("alice"));
        assert_eq!(user_name(passwd, 0), Some("root"));
        assert_eq!(user_name(passwd, 7), None);
    }

    #[test]
    fn facts_are_read_from_a_recorded_tree() {
        let tree = tempfile::tempdir().unwrap();
        let random = tree.path().join("sys/kernel/random");
        fs::create_dir_all(&random).unwrap();
        fs::write(random.join("boot_id"), "0c7e3d\n").unwrap();
        fs::write(tree.path().join("stat"), "cpu 1 2 3 4 5 6 7 8 0 0\n").unwrap();
        let host = Host::at(tree.path());
        assert_eq!(host.text("sys/kernel/random/boot_id").trim(), "0c7e3d");
        assert!(host.cpu_times().is_some());
        assert!(Host::at("/nowhere").cpu_times().is_none());
    }

    #[test]
    fn an_open_file_has_a_mount() {
        let host = Host::default();
        let file = tempfile::tempfile().unwrap();
        let id = host.mount_id(std::os::fd::AsFd::as_fd(&file)).unwrap();
        let mount = host.mount(id).unwrap();
        assert!(!mount.fs_type.is_empty());
        assert!(host.open_descriptors() > 2);
    }

    #[test]
    fn two_draws_differ() {
        assert_ne!(random(), random());
    }
}
