//! Conducts a campaign: an asynchronous loop that only chooses what comes next (something of a
//! worker, a signal, a deadline), and carries out what the [`Conductor`] asks for. It stores and
//! prints nothing: events go to the reporter through a bounded queue.

use std::{sync::mpsc::SyncSender, time::Duration};

use iofleet_shared::{
    clock::{monotonic_ns, suspended_ns, wall},
    ids::NodeIndex,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::JoinSet,
    time::sleep,
};

use crate::{
    conductor::{Conductor, Config, Effect, Event, Now},
    events::RunEvent,
    peer::{Arrived, EVENTS, Peer},
    scenario::WorkerAddress,
};

/// How long the close frames get to leave. Workers have said their last word by then, so that a
/// lost one costs nothing; quinn's `wait_idle` would take three probe time-outs.
pub(crate) const GOODBYE: Duration = Duration::from_millis(2);

/// A campaign that can't be conducted, for reasons of this machine.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The system refuses signal handlers.
    #[error("can't listen for signals")]
    Signals(#[source] std::io::Error),
    /// The reporter ended early.
    #[error("the reporter ended before the campaign")]
    Reporter,
}

/// Runs the campaign to its end. Every connection uses `endpoint`.
///
/// # Errors
/// On faults of this machine only; what happens to the fleet is told by events.
pub async fn conduct(
    config: Config,
    workers: &[WorkerAddress],
    endpoint: &quinn::Endpoint,
    reporter: &SyncSender<RunEvent>,
) -> Result<(), CampaignError> {
    let mut signals = Signals::listen().map_err(CampaignError::Signals)?;
    let (events, mut arrived) = mpsc::channel::<Arrived>(EVENTS);
    let mut tasks = JoinSet::new();
    let mut conductor = Conductor::new(config, now_at(monotonic_ns()));
    let peers: Vec<Peer> = (0_u32..)
        .zip(workers)
        .map(|(index, address)| {
            let (endpoint, events) = (endpoint.clone(), events.clone());
            Peer::spawn(NodeIndex(index), address.clone(), endpoint, events, &mut tasks)
        })
        .collect();
    loop {
        if carry_out(&mut conductor, &peers, reporter)? {
            break;
        }
        let wait = conductor.deadline().saturating_sub(monotonic_ns());
        let (event, at_ns) = tokio::select! {
            biased;
            () = signals.next() => (Event::Interrupt, monotonic_ns()),
            Some(Arrived { at_ns, event }) = arrived.recv() => (event, at_ns),
            () = sleep(Duration::from_nanos(wait)) => (Event::Tick, monotonic_ns()),
        };
        conductor.handle(event, now_at(at_ns));
    }
    for peer in &peers {
        peer.close();
    }
    sleep(GOODBYE).await;
    Ok(())
}

/// Carries out all that the conductor asks for; true when it has finished.
fn carry_out(
    conductor: &mut Conductor,
    peers: &[Peer],
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
            Effect::Emit(event) => {
                // Progress may be dropped when the reporter is busy; nothing else may.
                let sent = if matches!(*event, RunEvent::Progress { .. }) {
                    let _ = reporter.try_send(*event);
                    Ok(())
                } else {
                    reporter.send(*event)
                };
                sent.map_err(|_| CampaignError::Reporter)?;
            }
            Effect::Finish => return Ok(true),
        }
    }
    Ok(false)
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
