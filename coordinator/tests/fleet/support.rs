//! What end-to-end tests share: scratch folders, daemons as real processes, runs of the real
//! command, and their results as JSON.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use serde_json::Value;

/// The command under test.
pub(crate) fn iofleet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iofleet"));
    for name in ["IOFLEET_KEYS", "IOFLEET_STORE", "IOFLEET_LOG"] {
        command.env_remove(name);
    }
    command
}

/// The daemon under test; the workspace's build puts it beside the command.
pub(crate) fn worker_binary() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_iofleet")).with_file_name("iofleet-worker");
    assert!(path.exists(), "{} is missing: run `cargo test --workspace`", path.display());
    path
}

/// A folder for one test, with places for keys, store, target and results.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// On the disk of the build.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    /// In memory.
    pub(crate) fn in_memory() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Fresh keys of a fleet.
    pub(crate) fn keys(&self, name: &str) -> PathBuf {
        let dir = self.path(name);
        let output = iofleet().args(["keys", "init", "--keys"]).arg(&dir).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        dir
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

/// All that a process said, for messages of failed assertions.
pub(crate) fn text(output: &Output) -> String {
    format!(
        "{}\n-- out\n{}\n-- err\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A worker daemon as a process of its own; killed when dropped.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Daemon {
    /// Starts it on a free port of loopback and waits until it says that it listens.
    pub(crate) fn start(scratch: &Scratch, root: &Path, keys: &Path) -> Self {
        Self::start_by(Command::new(worker_binary()), scratch, root, keys)
    }

    /// The same with a prefix such as `unshare …`: `command` is completed by the daemon's arguments.
    pub(crate) fn start_by(
        mut command: Command,
        scratch: &Scratch,
        root: &Path,
        keys: &Path,
    ) -> Self {
        let socket_path = scratch.path(&format!("notify-{}", fastrand()));
        let socket = UnixDatagram::bind(&socket_path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let child = command
            .args(["--listen", "127.0.0.1:0", "--allow-local", "--root"])
            .arg(root)
            .arg("--keys")
            .arg(keys)
            .env("NOTIFY_SOCKET", &socket_path)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let address = wait_for_address(&socket);
        Self { child, address }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args(["-s", name, &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The daemon's status line names the address it listens on.
fn wait_for_address(socket: &UnixDatagram) -> String {
    let (mut ready, mut address) = (false, None);
    let mut buffer = [0; 4096];
    loop {
        let length = socket.recv(&mut buffer).expect("the worker did not get ready in time");
        let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
        ready |= message.lines().any(|line| line == "READY=1");
        let found = message.split_whitespace().find(|word| word.starts_with("127.0.0.1:"));
        address = found.map(str::to_owned).or(address);
        if let (true, Some(address)) = (ready, &address) {
            return address.clone();
        }
    }
}

fn fastrand() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// `127.0.0.1:1,127.0.0.1:2`.
pub(crate) fn host_list(daemons: &[Daemon]) -> String {
    daemons.iter().map(|daemon| daemon.address.clone()).collect::<Vec<_>>().join(",")
}

/// A run of the command with store and JSON in the scratch folder.
pub(crate) struct Run {
    pub(crate) output: Output,
    pub(crate) json: Option<Value>,
}

impl Run {
    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().unwrap_or(-1)
    }

    pub(crate) fn json(&self) -> &Value {
        self.json.as_ref().unwrap_or_else(|| panic!("no JSON: {}", text(&self.output)))
    }

    pub(crate) fn points(&self) -> &[Value] {
        self.json()["points"].as_array().unwrap()
    }
}

/// Arguments of a run on these workers, with these keys, in this target, and more.
pub(crate) fn on(workers: &str, keys: &Path, target: &Path, more: &[&str]) -> Vec<String> {
    let (keys, target) = (keys.to_str().unwrap(), target.to_str().unwrap());
    let fleet = ["--workers", workers, "--keys", keys, "--path", target];
    fleet.iter().chain(more).map(|argument| (*argument).to_owned()).collect()
}

/// Starts `iofleet run` with these arguments.
pub(crate) fn start(scratch: &Scratch, arguments: &[impl AsRef<OsStr>]) -> (Child, PathBuf) {
    let json = scratch.path(&format!("result-{}.json", fastrand()));
    let child = iofleet()
        .arg("run")
        .args(arguments)
        .arg("--json")
        .arg(&json)
        .arg("--store")
        .arg(scratch.path("store.sqlite"))
        .current_dir(scratch.0.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (child, json)
}

/// Waits for its end and reads what it wrote.
pub(crate) fn finish((child, json): (Child, PathBuf)) -> Run {
    let output = child.wait_with_output().unwrap();
    let json = std::fs::File::open(json).ok().map(|mut file| {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    });
    Run { output, json }
}

pub(crate) fn run(scratch: &Scratch, arguments: &[impl AsRef<OsStr>]) -> Run {
    finish(start(scratch, arguments))
}

/// Says that a test is skipped; a failure where everything must run.
pub(crate) fn skip(reason: &str) {
    println!("SKIP {reason}");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "skipped where it must run: {reason}");
}

/// Waits until the JSON of a run holds so many points.
pub(crate) fn wait_for_points(json: &Path, count: usize) {
    let end = iofleet_shared::clock::monotonic_ns() + 60_000_000_000;
    while iofleet_shared::clock::monotonic_ns() < end {
        let text = std::fs::read_to_string(json).unwrap_or_default();
        let points = serde_json::from_str::<Value>(&text).ok();
        if points.and_then(|value| value["points"].as_array().map(Vec::len)) >= Some(count) {
            return;
        }
        // Not in a busy loop: what is waited for needs the processor.
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no {count} points in {}", json.display());
}

/// A scenario by size: one write and one read.
pub(crate) fn by_size(scratch: &Scratch, file_size: &str, block: &str) -> String {
    let text = format!(
        "[workload]\nfile_size = \"{file_size}\"\nblock = \"{block}\"\ndirect = false\n\
         [[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n"
    );
    scratch.write("by-size.toml", &text).to_str().unwrap().to_owned()
}
