//! The command line and the configuration file of `iofleet-worker`.
//!
//! Precedence: flag, environment (`IOFLEET_*`), file, default. The file's keys are the flags'
//! names.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use clap::Parser;
use iofleet_shared::{limits::DEFAULT_PORT, log::LogError};
use serde::Deserialize;

use crate::daemon::{self, ProcessConfig, RunError};

const CONFIG: &str = "/etc/iofleet/worker.toml";
const KEYS: &str = "/etc/iofleet/keys";
const LOG: &str = "info";

/// The worker daemon of iofleet: does synchronised file I/O for a coordinator that holds a
/// certificate of the same fleet, and nothing outside its roots.
#[derive(Debug, Parser)]
#[command(name = "iofleet-worker", version, after_help = AFTER)]
pub struct Args {
    /// Configuration file; its keys are the names of these flags: listen, roots, devices, keys,
    /// allow_local, log [default: /etc/iofleet/worker.toml, if it exists]
    #[arg(long, value_name = "FILE", env = "IOFLEET_CONFIG")]
    config: Option<PathBuf>,
    /// Address to listen on, UDP [default: port 7737 of all addresses]
    #[arg(long, value_name = "ADDR", env = "IOFLEET_LISTEN", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    /// Directory that the worker may work below; may be given more than once (in the environment
    /// with `:` between them)
    #[arg(long = "root", value_name = "PATH", env = "IOFLEET_ROOT", value_delimiter = ':')]
    roots: Vec<PathBuf>,
    /// Block device that the worker may use, whatever is on it; may be given more than once (in the
    /// environment with `:` between them)
    #[arg(
        long = "allow-device",
        value_name = "PATH",
        env = "IOFLEET_ALLOW_DEVICE",
        value_delimiter = ':'
    )]
    devices: Vec<PathBuf>,
    /// Directory with authority.pem, worker.pem and worker.key [default: /etc/iofleet/keys]
    #[arg(long, value_name = "DIR", env = "IOFLEET_KEYS")]
    keys: Option<PathBuf>,
    /// Accept a root on the same device as its parent directory, where nothing is mounted
    #[arg(
        long,
        value_name = "BOOL",
        env = "IOFLEET_ALLOW_LOCAL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    allow_local: Option<bool>,
    /// What to log, to standard error: a level, or a list such as info,iofleet_worker=debug
    /// [default: info]
    #[arg(long, value_name = "FILTER", env = "IOFLEET_LOG")]
    log: Option<String>,
}

const AFTER: &str = "\
The worker refuses to start without a root. It ends by SIGTERM or SIGINT, within a few seconds and \
after removing what it made.

Exit codes: 0 ended as told, 1 a fault or a local file, 2 wrong usage or configuration";

/// How a worker is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Of the daemon.
    pub process: ProcessConfig,
    /// Filter of the log.
    pub log: String,
}

/// Why the worker does not run, or ran into an error.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration file can't be read.
    #[error("can't read the configuration file {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{path}: {source}")]
    Parse {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        source: toml::de::Error,
    },
    /// The log's filter can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The daemon.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl CliError {
    /// The process's exit code: 2 where usage or configuration is wrong, else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Run(error) if !error.is_configuration() => 1,
            Self::Read { .. } | Self::Parse { .. } | Self::Log(_) | Self::Run(_) => 2,
        }
    }
}

/// The configuration file as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    #[serde(default, deserialize_with = "address")]
    listen: Option<SocketAddr>,
    roots: Option<Vec<PathBuf>>,
    devices: Option<Vec<PathBuf>>,
    keys: Option<PathBuf>,
    allow_local: Option<bool>,
    log: Option<String>,
}

/// Runs the daemon as the arguments say.
///
/// # Errors
/// When file, filter, keys, socket or roots are not usable, and when the daemon fails.
pub fn run(args: Args) -> Result<(), CliError> {
    let settings = args.settings()?;
    iofleet_shared::log::init(&settings.log)?;
    daemon::run(settings.process)?;
    Ok(())
}

impl Args {
    /// Flags and environment over the file over the defaults.
    ///
    /// # Errors
    /// When the file can't be read or does not say what it may.
    pub fn settings(self) -> Result<Settings, CliError> {
        let Self { config, listen, roots, devices, keys, allow_local, log } = self;
        let file = match config {
            Some(path) => read(&path)?,
            None if Path::new(CONFIG).exists() => read(Path::new(CONFIG))?,
            None => ConfigFile::default(),
        };
        let process = ProcessConfig {
            listen: listen.or(file.listen),
            roots: if roots.is_empty() { file.roots.unwrap_or_default() } else { roots },
            keys: keys.or(file.keys).unwrap_or_else(|| KEYS.into()),
            devices: if devices.is_empty() { file.devices.unwrap_or_default() } else { devices },
            allow_local: allow_local.or(file.allow_local).unwrap_or(false),
        };
        Ok(Settings { process, log: log.or(file.log).unwrap_or_else(|| LOG.to_owned()) })
    }
}

fn read(path: &Path) -> Result<ConfigFile, CliError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|source| CliError::Parse { path: path.to_owned(), source })
}

/// `address:port`, `[v6]:port`, or an address alone at the default port.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let bare = || text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    text.parse().or_else(|_| bare().map(|ip| (ip, DEFAULT_PORT).into())).map_err(|_| {
        format!(
            "`{text}` is no address: write 10.0.0.5:{DEFAULT_PORT}, [::]:{DEFAULT_PORT} or \
                 an address without a port"
        )
    })
}

fn address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    parse_address(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(file: &str, flags: &[&str]) -> Result<Settings, CliError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("worker.toml");
        std::fs::write(&path, file).unwrap();
        let config = format!("--config={}", path.display());
        let mut line = vec!["iofleet-worker", &config];
        line.extend(flags);
        Args::try_parse_from(line).unwrap().settings()
    }

    const FULL: &str = "listen = \"10.0.0.5\"\nroots = [\"/mnt/a\", \"/mnt/b\"]\nkeys = \"/k\"\n\
                        devices = [\"/dev/sdx\"]\nallow_local = true\nlog = \"debug\"\n";

    #[test]
    fn the_file_over_the_defaults() {
        let process = ProcessConfig {
            listen: Some("10.0.0.5:7737".parse().unwrap()),
            roots: vec!["/mnt/a".into(), "/mnt/b".into()],
            keys: "/k".into(),
            devices: vec!["/dev/sdx".into()],
            allow_local: true,
        };
        let expected = Settings { process, log: "debug".to_owned() };
        assert_eq!(settings(FULL, &[]).unwrap(), expected);
        let process = ProcessConfig {
            listen: None,
            roots: vec![],
            keys: "/etc/iofleet/keys".into(),
            devices: vec![],
            allow_local: false,
        };
        let defaults = Settings { process, log: "info".to_owned() };
        assert_eq!(settings("", &[]).unwrap(), defaults);
    }

    #[test]
    fn flags_over_the_file() {
        let flags = [
            "--allow-device=/dev/sdy",
            "--listen=[::1]:9",
            "--root=/mnt/c",
            "--keys=/q",
            "--allow-local=false",
            "--log=warn",
        ];
        let process = ProcessConfig {
            listen: Some("[::1]:9".parse().unwrap()),
            roots: vec!["/mnt/c".into()],
            keys: "/q".into(),
            devices: vec!["/dev/sdy".into()],
            allow_local: false,
        };
        let expected = Settings { process, log: "warn".to_owned() };
        assert_eq!(settings(FULL, &flags).unwrap(), expected);
        assert!(settings("", &["--allow-local"]).unwrap().process.allow_local);
        let two = settings("", &["--root=/a:/b", "--root", "/c"]).unwrap();
        assert_eq!(two.process.roots, ["/a", "/b", "/c"].map(PathBuf::from));
    }

    #[test]
    fn mistakes_in_the_file_are_named() {
        let text = |file| {
            let error = settings(file, &[]).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        };
        let unknown = text("root = [\"/a\"]\n");
        assert!(unknown.contains("worker.toml") && unknown.contains("`root`"), "{unknown}");
        assert!(unknown.contains("line 1") && unknown.contains("`roots`"), "{unknown}");
        assert!(text("listen = \"here\"\n").contains("`here` is no address"));
        assert!(text("allow_local = \"yes\"\n").contains("boolean"));
        assert!(text("roots = \n").contains("line 1"));
    }

    #[test]
    fn a_named_file_must_be_there() {
        let line = ["iofleet-worker", "--config", "/no/such/worker.toml"];
        let error = Args::try_parse_from(line).unwrap().settings().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("/no/such/worker.toml"));
    }

    #[test]
    fn a_bad_address_is_a_usage_error() {
        let error = Args::try_parse_from(["iofleet-worker", "--listen", "10.0.0.5:x"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("[::]:7737"), "{error}");
    }
}
