//! The binary: what it says to a wrong start, to systemd, and to SIGTERM.

use std::{
    os::unix::{fs::PermissionsExt, net::UnixDatagram},
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use crate::support::{Keys, LONG};

fn worker() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iofleet-worker"));
    for name in ["CONFIG", "LISTEN", "ROOT", "KEYS", "ALLOW_LOCAL", "LOG"] {
        command.env_remove(format!("IOFLEET_{name}"));
    }
    command.stdin(Stdio::null());
    command
}

fn config(dir: &Path, text: &str) -> String {
    let path = dir.join("worker.toml");
    std::fs::write(&path, text).unwrap();
    format!("--config={}", path.display())
}

fn refused(output: Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty());
    said
}

#[test]
fn a_wrong_start_is_refused_with_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let empty = config(dir.path(), "");
    let said = refused(worker().arg(&empty).output().unwrap(), 2);
    assert!(said.contains("--root PATH") && said.contains("roots = ["), "{said}");
    let root = dir.path().display().to_string();
    let said = refused(worker().args([&*empty, "--root", "here"]).output().unwrap(), 2);
    assert!(said.contains("root here must be an absolute path"), "{said}");
    let keyless = ["--root", &root, "--keys", &root];
    let said = refused(worker().arg(&empty).args(keyless).output().unwrap(), 1);
    assert!(said.contains("authority.pem") && said.contains(&root), "{said}");
    let said = refused(worker().args([&*empty, "--log", "loud"]).output().unwrap(), 2);
    assert!(said.contains("`loud`"), "{said}");
    let wrong = config(dir.path(), "rots = []\n");
    let said = refused(worker().arg(&wrong).output().unwrap(), 2);
    assert!(said.contains("worker.toml") && said.contains("`rots`"), "{said}");
    refused(worker().arg("--rots").output().unwrap(), 2);
}

#[test]
fn systemd_is_told_and_sigterm_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    Keys::new().write(&keys);
    let notes = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    notes.set_read_timeout(Some(LONG)).unwrap();
    let mut child = worker()
        .arg(config(dir.path(), "allow_local = true\nlisten = \"127.0.0.1:0\"\n"))
        .arg("--root")
        .arg(dir.path())
        .env("IOFLEET_KEYS", &keys)
        .env("NOTIFY_SOCKET", dir.path().join("notify"))
        .env("WATCHDOG_USEC", Duration::from_millis(100).as_micros().to_string())
        .spawn()
        .unwrap();
    let mut heard = String::new();
    let mut wait_for = |wanted: &str| {
        let mut buffer = [0; 4096];
        while !heard.contains(wanted) {
            let length = notes.recv(&mut buffer).unwrap_or_else(|_| panic!("no {wanted}: {heard}"));
            heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
            heard.push('\n');
        }
    };
    wait_for("READY=1");
    wait_for("STATUS=idle on 127.0.0.1:");
    wait_for("WATCHDOG=1");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    wait_for("STOPPING=1");
    assert!(child.wait().unwrap().success());
}

impl Keys {
    fn write(&self, dir: &Path) {
        std::fs::create_dir(dir).unwrap();
        let (certificate, key) = self.pair(iofleet_shared::transport::Role::Worker);
        for (name, text) in [
            ("authority.pem", self.authority()),
            ("worker.pem", &certificate),
            ("worker.key", &key),
        ] {
            let path = dir.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        }
    }
}
