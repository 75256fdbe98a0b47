//! Conducts a campaign: an asynchronous loop that only chooses what comes next (something of a
//! worker, a signal, a deadline), and carries out what the [`Conductor`] asks for. It stores and
//! prints nothing: events go to the reporter through a bounded queue.

use std::{collections::VecDeque, sync::mpsc::SyncSender, time::Duration};

use iofleet_shared::{
    clock::{monotonic_ns, suspended_ns, wall},
    ids::NodeIndex,
    limits::{ANSWER_WITHIN, CONNECT_WITHIN, as_ns},
    wire::Command,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::JoinSet,
    time::sleep,
};

use crate::{
    conductor::{Conductor, Config, Effect, Event, Now, words::group},
    events::RunEvent,
    observers::{Observers, Send},
    peer::{Arrived, EVENTS, Peer},
    scenario::WorkerAddress,
};

/// How long the close frames get to leave. Workers have said their last word by then, so that a
/// lost one costs nothing; quinn's `wait_idle` would take three probe time-outs.
pub(crate) const GOODBYE: Duration = Duration::from_millis(2);

/// How long the end of a point waits for the samples of observers.
const HELD_NS_MAX: u64 = 2_000_000_000;
/// How often it is looked whether observers are there.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A campaign that can't be conducted, for reasons of this machine.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The system refuses signal handlers.
    #[error("can't listen for signals")]
    Signals(#[source] std::io::Error),
    /// Observers are not to be had.
    #[error("the observers are not ready\n{0}")]
    Observers(String),
    /// Before the first worker was asked.
    #[error("interrupted")]
    Interrupted,
    /// The reporter ended early.
    #[error("the reporter ended before the campaign")]
    Reporter,
}

/// Storage hosts that are observed.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Their workers.
    pub hosts: Vec<WorkerAddress>,
    /// Interfaces whose links count; empty: all physical ones.
    pub interfaces: Vec<String>,
}

/// Runs the campaign to its end. Every connection uses `endpoint`.
///
/// # Errors
/// On faults of this machine, and when an observer is not to be had; what happens to the fleet is
/// told by events.
pub async fn conduct(
    config: Config,
    workers: &[WorkerAddress],
    watched: &Watched,
    endpoint: &quinn::Endpoint,
    reporter: &SyncSender<RunEvent>,
) -> Result<(), CampaignError> {
    let mut signals = Signals::listen().map_err(CampaignError::Signals)?;
    let (events, mut arrived) = mpsc::channel::<Arrived>(EVENTS);
    let mut tasks = JoinSet::new();
    let mut spawn = |first: usize, addresses: &[WorkerAddress]| -> Vec<Peer> {
        let numbers = u32::try_from(first).unwrap_or(u32::MAX)..;
        numbers
            .zip(addresses)
            .map(|(index, address)| {
                let (endpoint, events) = (endpoint.clone(), events.clone());
                Peer::spawn(NodeIndex(index), address.clone(), endpoint, events, &mut tasks)
            })
            .collect()
    };
    let names = watched.hosts.iter().map(|host| host.name.clone()).collect();
    let interfaces = watched.interfaces.clone();
    let observers = Observers::new(names, &config.campaign, &config.holder, interfaces);
    let mut watch = Watch {
        observers,
        peers: spawn(workers.len(), &watched.hosts),
        first: workers.len(),
        held: VecDeque::new(),
    };
    let begun = watch.begin(&mut arrived, &mut signals).await;
    let peers = if begun.is_ok() { spawn(0, workers) } else { Vec::new() };
    let ran = match begun {
        Ok(()) => run(config, &peers, &mut watch, reporter, (&mut arrived, &mut signals)).await,
        Err(error) => Err(error),
    };
    watch.leave();
    for peer in peers.iter().chain(&watch.peers) {
        peer.close();
    }
    sleep(GOODBYE).await;
    ran
}

/// The loop, until the conductor has finished and all was reported.
async fn run(
    config: Config,
    peers: &[Peer],
    watch: &mut Watch,
    reporter: &SyncSender<RunEvent>,
    (arrived, signals): (&mut mpsc::Receiver<Arrived>, &mut Signals),
) -> Result<(), CampaignError> {
    let mut conductor = Conductor::new(config, now_at(monotonic_ns()));
    let mut finished = false;
    loop {
        finished |= carry_out(&mut conductor, peers, watch, reporter)?;
        watch.send(monotonic_ns());
        watch.release(reporter, monotonic_ns())?;
        if finished && watch.held.is_empty() {
            return Ok(());
        }
        let due = conductor.deadline().min(watch.deadline());
        let wait = due.saturating_sub(monotonic_ns());
        let (event, at_ns) = tokio::select! {
            biased;
            () = signals.next() => (Event::Interrupt, monotonic_ns()),
            Some(Arrived { at_ns, event }) = arrived.recv() => (event, at_ns),
            () = sleep(Duration::from_nanos(wait)) => (Event::Tick, monotonic_ns()),
        };
        if let Some(event) = watch.take(event, at_ns) {
            conductor.handle(event, now_at(at_ns));
        }
    }
}

/// Carries out all that the conductor asks for; true when it has finished.
fn carry_out(
    conductor: &mut Conductor,
    peers: &[Peer],
    watch: &mut Watch,
    reporter: &SyncSender<RunEvent>,
) -> Result<bool, CampaignError> {
    while let Some(effect) = conductor.poll_effect() {
        match effect {
            Effect::Send(node, command) => {
                let Some(peer) = peers.get(node.at()) else { continue };
                if !peer.send(*command) {
                    let why = "takes no more commands: the connection is stalled".to_owned();
                    conductor.handle(Event::Down(node, why), now_at(monotonic_ns()));
                }
            }
            Effect::SendDatagram(node, datagram) => {
                if let Some(peer) = peers.get(node.at()) {
                    peer.send_datagram(datagram);
                }
            }
            Effect::Emit(event) => watch.report(*event, reporter, monotonic_ns())?,
            Effect::Finish => return Ok(true),
        }
    }
    Ok(false)
}

/// Progress may be dropped when the reporter is busy; nothing else may.
fn tell(event: RunEvent, reporter: &SyncSender<RunEvent>) -> Result<(), CampaignError> {
    if matches!(event, RunEvent::Progress { .. }) {
        let _ = reporter.try_send(event);
        return Ok(());
    }
    reporter.send(event).map_err(|_| CampaignError::Reporter)
}

/// The observers, their connections, and what waits for their last samples.
struct Watch {
    observers: Observers,
    peers: Vec<Peer>,
    /// Number of the first of them among all peers.
    first: usize,
    /// Events with the times at which they came; a point's end waits, and so does what follows it.
    held: VecDeque<(RunEvent, u64)>,
}

impl Watch {
    /// Waits until all of them observe.
    async fn begin(
        &mut self,
        arrived: &mut mpsc::Receiver<Arrived>,
        signals: &mut Signals,
    ) -> Result<(), CampaignError> {
        let until = monotonic_ns() + as_ns(CONNECT_WITHIN + ANSWER_WITHIN);
        loop {
            self.send(monotonic_ns());
            match self.observers.ready() {
                Ok(true) => return Ok(()),
                Err(lost) => return Err(CampaignError::Observers(group(&lost))),
                Ok(false) if monotonic_ns() >= until => {
                    let why = "not all of them answer".to_owned();
                    return Err(CampaignError::Observers(why));
                }
                Ok(false) => {}
            }
            tokio::select! {
                biased;
                () = signals.next() => return Err(CampaignError::Interrupted),
                Some(Arrived { at_ns, event }) = arrived.recv() => {
                    self.take(event, at_ns);
                }
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Sends what is due and what events have brought.
    fn send(&mut self, now_ns: u64) {
        self.observers.tick(now_ns);
        while let Some((at, send)) = self.observers.poll() {
            let Some(peer) = self.peers.get(at) else { continue };
            match send {
                // One that takes no more is lost, and says so.
                Send::Command(command) => {
                    let _ = peer.send(command);
                }
                Send::Datagram(datagram) => peer.send_datagram(datagram),
            }
        }
    }

    /// Keeps what is an observer's; gives back what is not.
    fn take(&mut self, event: Event, at_ns: u64) -> Option<Event> {
        let node = match &event {
            Event::Connected(node)
            | Event::Down(node, _)
            | Event::Notice(node, _)
            | Event::Delivery(node, _)
            | Event::Datagram(node, _) => *node,
            Event::Interrupt | Event::Tick => return Some(event),
        };
        match Observers::place(node, self.first) {
            Some(at) => {
                self.observers.handle(at, event, at_ns);
                None
            }
            None => Some(event),
        }
    }

    fn deadline(&self) -> u64 {
        let held = self.held.front().map(|(_, since_ns)| since_ns + HELD_NS_MAX);
        self.observers.deadline().min(held.unwrap_or(u64::MAX))
    }

    fn report(
        &mut self,
        event: RunEvent,
        reporter: &SyncSender<RunEvent>,
        now_ns: u64,
    ) -> Result<(), CampaignError> {
        let waits = matches!(event, RunEvent::PointEnded(_)) && !self.peers.is_empty();
        if waits || !self.held.is_empty() {
            self.held.push_back((event, now_ns));
            return Ok(());
        }
        tell(event, reporter)
    }

    /// Reports what observers have caught up with, or have had their time for.
    fn release(
        &mut self,
        reporter: &SyncSender<RunEvent>,
        now_ns: u64,
    ) -> Result<(), CampaignError> {
        while let Some((event, since_ns)) = self.held.front() {
            let late = now_ns >= since_ns + HELD_NS_MAX;
            let ends = matches!(event, RunEvent::PointEnded(_));
            if ends && !late && !self.observers.cover(*since_ns, now_ns) {
                break;
            }
            let Some((mut event, _)) = self.held.pop_front() else { break };
            if let RunEvent::PointEnded(outcome) = &mut event {
                outcome.observers = self.observers.since(outcome.t0_fleet_ns, now_ns);
            }
            tell(event, reporter)?;
        }
        Ok(())
    }

    fn leave(&self) {
        for peer in &self.peers {
            let _ = peer.send(Command::Release { keep: true });
        }
    }
}

fn now_at(ns: u64) -> Now {
    Now { ns, suspended_ns: suspended_ns(), wall: wall() }
}

/// What ends a campaign from outside: Ctrl-C, SIGTERM, SIGHUP.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
