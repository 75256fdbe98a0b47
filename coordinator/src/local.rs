//! A local fleet: N workers inside this command, each with an endpoint and a thread of its own, over
//! real QUIC on loopback with keys that live as long as the command. The only place that names the
//! worker crate.

use std::{io, net::Ipv4Addr, path::PathBuf, thread::JoinHandle};

use iofleet_shared::transport::{self, Identity, Role};
use iofleet_worker::daemon::{self, DaemonConfig};
use tokio::sync::watch;

use crate::{
    keys::{self, KeyError},
    scenario::WorkerAddress,
};

/// A local fleet can't be started.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Throw-away keys could not be made.
    #[error("can't make throw-away keys for the local fleet")]
    Keys(#[from] KeyError),
    /// The keys that were made do not work.
    #[error("the throw-away keys of the local fleet do not work")]
    Identity(#[from] transport::IdentityError),
    /// No socket on loopback.
    #[error("can't listen on loopback")]
    Listen(#[from] transport::EndpointError),
    /// The system gives no address or thread.
    #[error("can't start worker {name}")]
    Start {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The workers; they end when this is dropped.
#[derive(Debug)]
pub struct LocalFleet {
    /// Where they listen, in order: `local1`, `local2`…
    pub workers: Vec<WorkerAddress>,
    /// Who may command them.
    pub identity: Identity,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl LocalFleet {
    /// Starts `count` workers that may touch what lies below `root`.
    ///
    /// # Errors
    /// When keys, sockets or threads are not to be had.
    pub fn start(count: u32, root: PathBuf) -> Result<Self, LocalError> {
        let keys = keys::throw_away()?;
        let identity = keys.identity(Role::Coordinator)?;
        let (stop, stopped) = watch::channel(false);
        let mut fleet = Self { workers: Vec::new(), identity, stop, threads: Vec::new() };
        for number in 1..=count {
            let name = format!("local{number}");
            let config = DaemonConfig {
                roots: vec![root.clone()],
                devices: Vec::new(),
                allow_local: true,
                identity: keys.identity(Role::Worker)?,
            };
            fleet.start_one(name, config, stopped.clone())?;
        }
        Ok(fleet)
    }

    fn start_one(
        &mut self,
        name: String,
        config: DaemonConfig,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<(), LocalError> {
        let failed = |source| LocalError::Start { name: name.clone(), source };
        // Bound here, so that the address is known; used there, by the worker's own runtime.
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let ended = daemon::run_on(socket, config, async move {
                    // An error means that the fleet was dropped.
                    let _ = stopped.wait_for(|stop| *stop).await;
                });
                if let Err(error) = ended {
                    tracing::error!(%error, "a local worker failed");
                }
            })
            .map_err(|source| LocalError::Start { name: name.clone(), source })?;
        self.threads.push(thread);
        self.workers.push(WorkerAddress {
            name,
            host: address.ip().to_string(),
            port: address.port(),
        });
        Ok(())
    }
}

impl Drop for LocalFleet {
    fn drop(&mut self) {
        // Workers that ended already do not listen.
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so.
            let _ = thread.join();
        }
    }
}
