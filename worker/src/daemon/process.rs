//! The daemon as a process of its own: its runtime, its signals, its socket.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    thread,
};

use iofleet_shared::{
    limits::DEFAULT_PORT,
    transport::{EndpointError, Identity, IdentityError, Role, listen},
};
use quinn::Endpoint;
use tokio::signal::unix::{SignalKind, signal};

use super::{DaemonConfig, ServeError, Supervisor, serve};
use crate::target::{RootError, check_roots};

/// What a daemon's process is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessConfig {
    /// Where to listen; none: on all addresses, at the default port.
    pub listen: Option<SocketAddr>,
    /// Directories below which it may work.
    pub roots: Vec<PathBuf>,
    /// Directory of its keys.
    pub keys: PathBuf,
    /// Block devices that may be used, data on them included.
    pub devices: Vec<PathBuf>,
    /// A root may lie on the same device as its parent directory.
    pub allow_local: bool,
}

/// Why the process ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The keys can't be used.
    #[error("{0}")]
    Identity(#[from] IdentityError),
    /// No socket.
    #[error("{0}")]
    Endpoint(#[from] EndpointError),
    /// The daemon could not start or go on.
    #[error("{0}")]
    Serve(#[from] ServeError),
    /// No runtime, no thread, no signals.
    #[error("can't set up the daemon: {0}")]
    Setup(#[from] io::Error),
    /// A fault of ours.
    #[error("the control thread panicked")]
    Panicked,
}

impl RunError {
    /// Whether the configuration is wrong, so that starting again can't help.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Serve(ServeError::Root(RootError::None | RootError::NotAbsolute(_))))
    }
}

/// Runs the daemon until SIGTERM or SIGINT. Where it was not told to listen on an address it
/// listens on all, of IPv4 alone where the kernel has no IPv6.
///
/// # Errors
/// When keys, socket or roots can't be used, and when the endpoint fails.
pub fn run(config: ProcessConfig) -> Result<(), RunError> {
    // A thread of its own: its better priority must not be what the process's other threads get.
    let control =
        thread::Builder::new().name("iofleet-control".to_owned()).spawn(move || control(config))?;
    control.join().map_err(|_| RunError::Panicked)?
}

fn control(config: ProcessConfig) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = stop_signals()?;
        let ProcessConfig { listen, roots, devices, keys, allow_local } = config;
        // Before the keys, since roots are the first thing that a new installation lacks.
        check_roots(&roots).map_err(ServeError::from)?;
        let identity = Identity::load(&keys, Role::Worker)?;
        let endpoint = open(listen, &identity)?;
        let listen = endpoint.local_addr()?;
        tracing::info!("iofleet-worker {} on UDP {listen}", env!("CARGO_PKG_VERSION"));
        let config = DaemonConfig { roots, devices, allow_local, identity };
        serve(endpoint, config, Supervisor::Systemd, stop).await?;
        Ok(())
    })
}

fn open(address: Option<SocketAddr>, identity: &Identity) -> Result<Endpoint, EndpointError> {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, DEFAULT_PORT));
    match (address, listen(address.unwrap_or(any), identity)) {
        (None, Err(EndpointError::Listen { source, .. })) if has_no_v6(&source) => {
            listen((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT).into(), identity)
        }
        (_, endpoint) => endpoint,
    }
}

fn has_no_v6(error: &io::Error) -> bool {
    [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL].map(Some).contains(&error.raw_os_error())
}

/// Registered at once, so that no signal finds the default action.
fn stop_signals() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
        }
    })
}
