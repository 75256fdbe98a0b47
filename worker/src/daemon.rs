//! The daemon: one loop that waits for whatever happens next, gives it to the machine, and carries
//! out what the machine decides.
//!
//! The loop runs on one thread with, where the kernel lets it, a better priority than I/O threads.
//! It never touches the target: that is done on helper threads with deadlines, so that the control
//! plane answers while a mount hangs.

use std::{
    collections::BTreeMap,
    future::{Future, pending},
    net::UdpSocket,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use iofleet_shared::{
    clock::monotonic_ns,
    facts::NetworkFacts,
    ids::PeerId,
    limits::{HEARTBEAT, TARGET_CALL_WITHIN},
    transport::{self, CLOSE_DONE, Identity, Link},
    wire::{Beat, Datagram, Delivery},
};
use quinn::{Endpoint, Incoming, VarInt};
use tokio::{
    sync::mpsc::{self, OwnedPermit},
    time::{Interval, MissedTickBehavior, interval, sleep, timeout},
};

use crate::{
    crew::{CrewEvent, CrewStatus},
    host::{ControlPriority, Host},
    link::{LinkEvent, LinkHandle},
    machine::{Event, Machine, Ticket},
    netbench::Reception,
    sampler::Sampler,
    stamp::StampClock,
    target::{RootError, Targets},
};

pub use process::{ProcessConfig, RunError, run};
pub use supervisor::Supervisor;

use effects::CrewSlot;
use helpers::Helpers;

mod effects;
mod helpers;
mod process;
mod supervisor;

/// Happenings that may wait for the loop.
const HAPPENINGS_QUEUED: usize = 1024;
/// Connections at one time, the holder's among them.
const LINKS_MAX: usize = 64;
/// How long the last words on closed connections may take to arrive.
const GOODBYE_WITHIN: Duration = Duration::from_millis(500);

/// What a daemon is told.
#[derive(Debug, Clone)]
pub struct DaemonConfig {
    /// Directories below which it may work.
    pub roots: Vec<PathBuf>,
    /// Block devices that may be used, data on them included.
    pub devices: Vec<PathBuf>,
    /// A root may lie on the same device as its parent directory.
    pub allow_local: bool,
    /// Its keys.
    pub identity: Identity,
}

/// Why a daemon ended without being told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A root can't be used.
    #[error(transparent)]
    Root(#[from] RootError),
    /// Opening the roots has no answer.
    #[error("opening the roots: {0}")]
    Start(String),
    /// The socket is lost.
    #[error("the QUIC endpoint has ended by itself: its socket failed")]
    Endpoint,
}

/// Serves coordinators on a socket until `shutdown`, on the calling thread, which must not be the
/// process's main one. Several may run in one process.
///
/// # Errors
/// As [`serve`], and when there is no runtime or no endpoint to be had.
pub fn run_on(
    socket: UdpSocket,
    config: DaemonConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let endpoint = transport::listen_on(socket, &config.identity)?;
        Ok(serve(endpoint, config, Supervisor::Nobody, shutdown).await?)
    })
}

/// Serves coordinators on an endpoint until `shutdown`, and cleans up. Must run inside a
/// current-thread tokio runtime on a thread of its own, since it asks for a better priority for
/// that thread, which must not be the process's main one.
///
/// # Errors
/// When a root can't be used, and when the endpoint fails.
pub async fn serve(
    endpoint: Endpoint,
    config: DaemonConfig,
    supervisor: Supervisor,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let priority = ControlPriority::take();
    let helpers = Helpers::new(priority);
    let host = Host::default();
    let DaemonConfig { roots, devices, allow_local, identity: _ } = config;
    let prepared = helpers.call(TARGET_CALL_WITHIN, move || {
        // On a helper thread: the clock is calibrated as I/O threads will see it.
        let clock = StampClock::calibrate();
        let facts = Host::default().facts(&clock, priority.granted);
        let targets = Targets::new(&roots, devices, allow_local, Host::default())?;
        Ok::<_, RootError>((targets, clock, facts))
    });
    let mut shutdown = std::pin::pin!(shutdown);
    let prepared = tokio::select! {
        prepared = prepared => prepared,
        () = &mut shutdown => return Ok(()),
    };
    let (targets, clock, facts) =
        prepared.map_err(|error| ServeError::Start(error.to_string()))??;
    let (happenings, queue) = mpsc::channel(HAPPENINGS_QUEUED);
    let (link_events, link_queue) = mpsc::channel(HAPPENINGS_QUEUED);
    let daemon = Daemon {
        incarnation: facts.incarnation,
        machine: Machine::new(facts),
        endpoint,
        host,
        targets: Arc::new(targets),
        clock,
        helpers,
        links: BTreeMap::new(),
        link_events,
        peers: 0,
        crews: BTreeMap::new(),
        last_status: CrewStatus::default(),
        leavers: Vec::new(),
        network: None,
        min_free_milli: 0,
        sampler: None,
        observer: None,
        reception: None,
        happenings,
        supervisor,
        said: String::new(),
        beats: 0,
        owes_goodbye: false,
        end: None,
    };
    supervisor.ready();
    daemon.live(queue, link_queue, shutdown).await
}

/// What the loop may find next.
enum Happening {
    /// For the machine.
    Event(Event),
    /// A coordinator was let in.
    Linked(Link),
    /// A link says something.
    Link(PeerId, LinkEvent),
    /// Somebody knocks; none when the endpoint is no more.
    Incoming(Option<Incoming>),
    /// A crew is armed.
    CrewArmed { ticket: Ticket, slot: CrewSlot, took_ns: u64 },
    /// The target is as full as it may be.
    TooFull { ticket: Ticket, why: String },
    /// A crew says something.
    Crew(Ticket, CrewEvent),
    /// The holder's link takes a delivery.
    Room(OwnedPermit<Delivery>),
    /// A heartbeat is due.
    Beat,
    /// The supervisor wants a sign of life.
    SignOfLife,
}

/// The one owner of a worker's state.
struct Daemon {
    machine: Machine,
    incarnation: u64,
    endpoint: Endpoint,
    host: Host,
    targets: Arc<Targets>,
    clock: StampClock,
    helpers: Helpers,
    links: BTreeMap<PeerId, LinkHandle>,
    link_events: mpsc::Sender<(PeerId, LinkEvent)>,
    peers: u64,
    crews: BTreeMap<Ticket, CrewSlot>,
    /// Of the crew that left last: no threads and nothing in flight any more.
    last_status: CrewStatus,
    /// Crews that are letting go of their files; removal waits for them.
    leavers: Vec<std::sync::mpsc::Receiver<()>>,
    /// Links of the target that was inspected last.
    network: Option<NetworkFacts>,
    /// Share of the target that was inspected last that stays free, in 1/1000.
    min_free_milli: u32,
    /// Of the crew that left last.
    sampler: Option<Arc<Sampler>>,
    /// While this machine is observed: ends that when it is dropped.
    observer: Option<std::sync::mpsc::Sender<()>>,
    /// While the network is measured.
    reception: Option<Arc<Reception>>,
    happenings: mpsc::Sender<Happening>,
    supervisor: Supervisor,
    /// What the supervisor was told last.
    said: String,
    beats: u64,
    /// Coordinators were there when it began to end: the reason has to reach them.
    owes_goodbye: bool,
    /// How it ends, once the machine says so.
    end: Option<Result<(), ServeError>>,
}

impl Daemon {
    async fn live(
        mut self,
        mut queue: mpsc::Receiver<Happening>,
        mut link_queue: mpsc::Receiver<(PeerId, LinkEvent)>,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), ServeError> {
        let mut told = false;
        let mut open = true;
        let mut beat = steady(HEARTBEAT);
        let mut life = self.supervisor.alive_every().map(steady);
        loop {
            self.say();
            let happening = tokio::select! {
                () = &mut shutdown, if !told => {
                    told = true;
                    self.supervisor.stopping();
                    Happening::Event(Event::Shutdown)
                }
                Some(happening) = queue.recv() => happening,
                Some((peer, event)) = link_queue.recv() => Happening::Link(peer, event),
                incoming = self.endpoint.accept(), if open => Happening::Incoming(incoming),
                permit = room(self.where_to_deliver()) => Happening::Room(permit),
                _ = beat.tick() => Happening::Beat,
                () = due(life.as_mut()) => Happening::SignOfLife,
                () = until(self.machine.next_deadline()) => Happening::Event(Event::Tick),
            };
            if matches!(happening, Happening::Incoming(None)) {
                open = false;
            }
            self.apply(happening, told);
            if let Some(end) = self.end.take() {
                self.endpoint.close(VarInt::from_u32(CLOSE_DONE), b"the worker has ended");
                if self.owes_goodbye {
                    let _ = timeout(GOODBYE_WITHIN, self.endpoint.wait_idle()).await;
                }
                return end;
            }
        }
    }

    fn apply(&mut self, happening: Happening, told: bool) {
        match happening {
            Happening::Event(event) => self.handle(event),
            Happening::Linked(link) => self.on_linked(link),
            Happening::Link(peer, event) => self.on_link(peer, event),
            Happening::Incoming(Some(incoming)) => self.on_incoming(incoming),
            Happening::Incoming(None) if told => {}
            Happening::Incoming(None) => {
                self.end = Some(Err(ServeError::Endpoint));
            }
            Happening::CrewArmed { ticket, slot, took_ns } => {
                self.crews.insert(ticket, slot);
                self.handle(Event::Armed { ticket, result: Ok(took_ns) });
            }
            Happening::TooFull { ticket, why } => self.too_full(ticket, why),
            Happening::Crew(ticket, event) => self.on_crew(ticket, event),
            Happening::Room(permit) => {
                if let Some((_, delivery)) = self.machine.take_delivery() {
                    permit.send(delivery);
                }
            }
            Happening::Beat => self.beat(),
            Happening::SignOfLife => self.supervisor.alive(),
        }
    }

    fn handle(&mut self, event: Event) {
        for effect in self.machine.handle(event, monotonic_ns()) {
            self.carry_out(effect);
        }
    }

    fn on_incoming(&mut self, incoming: Incoming) {
        if self.links.len() >= LINKS_MAX {
            tracing::warn!("{} is refused: too many connections", incoming.remote_address());
            return incoming.refuse();
        }
        let happenings = self.happenings.clone();
        tokio::spawn(async move {
            // What was wrong is in the log by then.
            if let Ok(link) = transport::accept(incoming).await {
                let _ = happenings.send(Happening::Linked(link)).await;
            }
        });
    }

    fn on_linked(&mut self, link: Link) {
        self.peers += 1;
        let peer = PeerId(self.peers);
        tracing::debug!("connection {} from {}", peer.0, link.connection.remote_address());
        self.links.insert(peer, LinkHandle::start(link, peer, self.link_events.clone()));
    }

    fn on_link(&mut self, peer: PeerId, event: LinkEvent) {
        match event {
            LinkEvent::Command(command) => self.handle(Event::Command { peer, command }),
            LinkEvent::Alive => self.handle(Event::Alive { peer }),
            LinkEvent::Ended(end) => {
                if self.machine.holder() == Some(peer) {
                    tracing::info!("the coordinator's connection has ended: {end}");
                } else {
                    tracing::debug!("connection {} has ended: {end}", peer.0);
                }
                self.links.remove(&peer);
                self.handle(Event::Gone { peer });
            }
        }
    }

    fn on_crew(&mut self, ticket: Ticket, event: CrewEvent) {
        match event {
            CrewEvent::Interval(interval) => self.handle(Event::Interval { ticket, interval }),
            CrewEvent::Ended { ticks, mut report } => {
                let began = self.crews.get(&ticket).and_then(|slot| slot.cpu_at_t0);
                report.cpu_share = self
                    .host
                    .cpu_times()
                    .zip(began)
                    .and_then(|(now, began)| now.share_since(began));
                if let Some(slot) = self.crews.get_mut(&ticket) {
                    slot.sampler.note();
                    report.stopped = slot.stopped.take();
                    report.holes = slot.holes.take();
                    report.cold = slot.cold;
                }
                self.handle(Event::Ended { ticket, ticks, report });
            }
        }
    }

    fn beat(&mut self) {
        let Some(link) = self.machine.holder().and_then(|peer| self.links.get(&peer)) else {
            return;
        };
        let status = match self.crews.last_key_value() {
            Some((_, slot)) => slot.crew.status(monotonic_ns()),
            None => self.last_status,
        };
        link.send_datagram(&Datagram::Beat(Beat {
            sequence: self.beats,
            incarnation: self.incarnation,
            phase: self.machine.phase(),
            threads: status.threads,
            bytes: status.bytes,
            oldest_ns: status.oldest_ns,
        }));
        self.beats += 1;
    }

    /// Where the machine's next delivery goes, if it has one.
    fn where_to_deliver(&self) -> Option<mpsc::Sender<Delivery>> {
        let peer = self.machine.holder().filter(|_| self.machine.has_delivery())?;
        Some(self.links.get(&peer)?.deliveries().clone())
    }

    /// Tells supervisor and log where the worker is, when that has changed.
    fn say(&mut self) {
        let line = self.machine.summary();
        if line != self.said {
            let address = self.endpoint.local_addr().map(|address| format!(" on {address}"));
            self.supervisor.status(&format!("{line}{}", address.unwrap_or_default()));
            tracing::info!("{line}");
            self.said = line;
        }
    }
}

fn steady(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Room for a delivery; never, where there is none to make or nobody takes it.
async fn room(link: Option<mpsc::Sender<Delivery>>) -> OwnedPermit<Delivery> {
    if let Some(link) = link
        && let Ok(permit) = link.reserve_owned().await
    {
        return permit;
    }
    pending().await
}

async fn due(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => {
            ticks.tick().await;
        }
        None => pending().await,
    }
}

async fn until(deadline_ns: Option<u64>) {
    match deadline_ns {
        Some(deadline_ns) => {
            sleep(Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()))).await;
        }
        None => pending().await,
    }
}
