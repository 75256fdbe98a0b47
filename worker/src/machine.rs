//! The worker's decisions: an event in, effects out. Pure.
//!
//! One struct owns all that a worker knows of its coordinator and its point. [`Machine::handle`]
//! takes an event with the time at which it came, first does what became due by then, and returns
//! the effects in the order in which they must be done. [`Machine::next_deadline`] says when it
//! wants an [`Event::Tick`], and [`Machine::take_delivery`] hands out the numbered deliveries one
//! by one, as fast as the link takes them and no faster.
//!
//! The phases and their edges are [`iofleet_shared::lifecycle`]'s; nothing here sets a phase but
//! through that table.

use std::collections::VecDeque;

use iofleet_shared::{
    facts::{HostFacts, TargetFacts},
    ids::{PeerId, PointId},
    lifecycle::{InvalidTransition, Phase, Trigger},
    limits::{LEASE, as_ns},
    stats::{HostSample, NodeInterval, PointReport, Tick},
    wire::{Command, Delivery, NetOrder, Notice, Refusal, RefusalKind, Removal},
    work::{DatasetDir, OpKind, TargetSpec, WorkerPlan},
};

mod check;
mod holding;
mod point;

use holding::{Claimant, Holder, Leaving};
use point::Point;

/// A commit that comes later than this before T0 does not count: threads might already have looked.
const COMMIT_AHEAD_NS: u64 = 1_000_000;
/// How long removal waits for a crew, or for an arming, that was told to leave.
const LEAVES_WITHIN_NS: u64 = 2_000_000_000;
/// How long a shutdown may take in all.
const EXIT_WITHIN_NS: u64 = 5_000_000_000;
/// Deliveries that wait for a coordinator that does not take them; more, and the point is stopped.
const DELIVERIES_KEPT_MAX: usize = 65_536;

const _: () = assert!(LEAVES_WITHIN_NS < EXIT_WITHIN_NS);

/// A piece of work that was asked for by an effect and is answered by an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What happens to a worker.
#[derive(Debug)]
pub enum Event {
    /// A coordinator commands.
    Command {
        /// On which connection.
        peer: PeerId,
        /// What.
        command: Command,
    },
    /// A heartbeat of a coordinator.
    Alive {
        /// On which connection.
        peer: PeerId,
    },
    /// A connection has ended.
    Gone {
        /// Which.
        peer: PeerId,
    },
    /// Answer to [`Effect::Inspect`].
    Inspected {
        /// Whose answer.
        ticket: Ticket,
        /// What was found, or what stands in the way.
        result: Result<TargetFacts, Refusal>,
    },
    /// A sample of a machine that is observed.
    Observed {
        /// Of whom it was asked.
        ticket: Ticket,
        /// It, in ns of the monotonic clock.
        sample: HostSample,
    },
    /// Answer to [`Effect::Observe`], [`Effect::NetListen`] and [`Effect::NetRun`].
    Answered {
        /// Whose answer.
        ticket: Ticket,
        /// What is to be said.
        result: Result<Notice, Refusal>,
    },
    /// Answer to [`Effect::Arm`]: the time that it took in ns, or what stands in the way.
    Armed {
        /// Whose answer.
        ticket: Ticket,
        /// The outcome.
        result: Result<u64, Refusal>,
    },
    /// The crew says to [`Effect::CommitCrew`] that T0 is past.
    CommitLate {
        /// The ticket by which the crew was armed.
        ticket: Ticket,
    },
    /// A final interval of a crew.
    Interval {
        /// The ticket by which the crew was armed.
        ticket: Ticket,
        /// The interval.
        interval: NodeInterval,
    },
    /// A crew's last word.
    Ended {
        /// The ticket by which the crew was armed.
        ticket: Ticket,
        /// The spread series from tick 0.
        ticks: Vec<(OpKind, Vec<Tick>)>,
        /// Complete but for `syncfs_ns`.
        report: Box<PointReport>,
    },
    /// Answer to [`Effect::Settle`].
    Settled {
        /// Whose answer.
        ticket: Ticket,
        /// How long the flush took in ns; none if there was none, it failed or never returned.
        took_ns: Option<u64>,
        /// What the machine's counters said while the point ran.
        samples: Vec<HostSample>,
    },
    /// Answer to [`Effect::Clean`].
    Removed {
        /// Whose answer.
        ticket: Ticket,
        /// What was done.
        removal: Removal,
    },
    /// A deadline may have come.
    Tick,
    /// The daemon is to end.
    Shutdown,
}

/// What is to be done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send a notice.
    Send {
        /// To whom.
        peer: PeerId,
        /// What.
        notice: Notice,
    },
    /// Look at the target.
    Inspect {
        /// For the answer.
        ticket: Ticket,
        /// At what.
        spec: TargetSpec,
    },
    /// Sample the machine's counters until all is cleaned.
    Observe {
        /// For the answer, and for the samples.
        ticket: Ticket,
        /// From one to the next, ns.
        interval_ns: u64,
        /// Those that count; empty: all physical ones.
        interfaces: Vec<String>,
    },
    /// Receive from who shows the token.
    NetListen {
        /// For the answer.
        ticket: Ticket,
        /// It.
        token: [u8; 16],
    },
    /// Send to other nodes and measure what comes.
    NetRun {
        /// For the answer.
        ticket: Ticket,
        /// To whom.
        order: NetOrder,
    },
    /// Open the files and arm a crew.
    Arm {
        /// For the answer, and the crew's name from then on.
        ticket: Ticket,
        /// For what.
        plan: Box<WorkerPlan>,
    },
    /// Tell the crew when T0 is.
    SetStart {
        /// Which crew.
        ticket: Ticket,
        /// T0 on the worker's monotonic clock.
        t0_worker_ns: u64,
    },
    /// Tell the crew that T0 counts.
    CommitCrew {
        /// Which crew.
        ticket: Ticket,
    },
    /// T0 has come and I/O runs.
    Began {
        /// Which crew.
        ticket: Ticket,
    },
    /// Tell the crew to end.
    StopCrew {
        /// Which crew.
        ticket: Ticket,
    },
    /// Let go of a crew.
    DropCrew {
        /// Which.
        ticket: Ticket,
    },
    /// Flush the file system of a dataset, and then take the last sample of the machine's counters.
    Settle {
        /// For the answer.
        ticket: Ticket,
        /// Which.
        dir: DatasetDir,
        /// Whether there is anything to flush.
        flush: bool,
    },
    /// Remove, or with `keep` forget, all that this worker made.
    Clean {
        /// For the answer.
        ticket: Ticket,
        /// Leave the files.
        keep: bool,
    },
    /// End a connection.
    Close {
        /// Which.
        peer: PeerId,
        /// Why, in words for people.
        reason: String,
    },
    /// End all connections, and take no more.
    CloseAll {
        /// Why, in words for people.
        reason: String,
    },
    /// Nothing is left to do: end.
    Exit,
}

/// The state of a worker.
#[derive(Debug)]
pub struct Machine {
    host: HostFacts,
    phase: Phase,
    tickets: u64,
    holder: Option<Holder>,
    /// Takes the worker as soon as it is clean.
    next: Option<Claimant>,
    /// What the holder asked to be looked at, or to be done with the network, and what has not been
    /// answered.
    inspection: Option<Ticket>,
    /// What the holder's samples are known by, if it wants any.
    observed: Option<Ticket>,
    point: Option<Point>,
    /// The point before: commands about it crossed its end on the wire.
    last: Option<PointId>,
    /// An arming that nobody waits for any more and that has not returned.
    dismissed: Option<Ticket>,
    leaving: Option<Leaving>,
    exit_by_ns: Option<u64>,
    outbox: VecDeque<Delivery>,
    effects: Vec<Effect>,
}

impl Machine {
    /// An idle worker.
    #[must_use]
    pub fn new(host: HostFacts) -> Self {
        Self {
            host,
            phase: Phase::Idle,
            tickets: 0,
            holder: None,
            next: None,
            inspection: None,
            observed: None,
            point: None,
            last: None,
            dismissed: None,
            leaving: None,
            exit_by_ns: None,
            outbox: VecDeque::new(),
            effects: Vec::new(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The connection of the coordinator that holds it.
    #[must_use]
    pub fn holder(&self) -> Option<PeerId> {
        self.holder.as_ref().map(|holder| holder.peer)
    }

    /// A line for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut line = self.phase.to_string();
        if let Some(point) = &self.point {
            line.push_str(&format!(", point {}", point.id));
        }
        if let Some(holder) = &self.holder {
            line.push_str(&format!(
                ", as {} for {}, campaign {}",
                holder.claim.node, holder.claim.name, holder.claim.campaign
            ));
        }
        line
    }

    /// Whether [`Self::take_delivery`] has something.
    #[must_use]
    pub fn has_delivery(&self) -> bool {
        !self.outbox.is_empty() && self.holder.is_some()
    }

    /// The next delivery, and to whom it goes.
    pub fn take_delivery(&mut self) -> Option<(PeerId, Delivery)> {
        let peer = self.holder()?;
        Some((peer, self.outbox.pop_front()?))
    }

    /// When it wants a tick at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let start = self.point.as_ref().and_then(|point| match self.phase {
            Phase::Ready | Phase::Waiting => point.t0_ns,
            Phase::Idle
            | Phase::Claimed
            | Phase::Arming
            | Phase::Armed
            | Phase::Running
            | Phase::Draining
            | Phase::Cleaning => None,
        });
        let leaving = self.leaving.as_ref().and_then(Leaving::waits_until);
        [start, leaving, self.lease_end(), self.exit_by_ns].into_iter().flatten().min()
    }

    /// Takes an event, and says what is to be done.
    pub fn handle(&mut self, event: Event, now_ns: u64) -> Vec<Effect> {
        self.do_what_is_due(now_ns);
        match event {
            Event::Command { peer, command } => self.on_command(peer, command, now_ns),
            Event::Alive { peer } => self.hear(peer, now_ns),
            Event::Gone { peer } => self.on_gone(peer, now_ns),
            Event::Inspected { ticket, result } => self.on_inspected(ticket, result),
            Event::Observed { ticket, sample } => self.on_observed(ticket, sample),
            Event::Answered { ticket, result } => self.on_answered(ticket, result),
            Event::Armed { ticket, result } => self.on_armed(ticket, result),
            Event::CommitLate { ticket } => self.on_commit_late(ticket),
            Event::Interval { ticket, interval } => self.on_interval(ticket, interval),
            Event::Ended { ticket, ticks, report } => {
                self.on_ended(ticket, ticks, report, now_ns);
            }
            Event::Settled { ticket, took_ns, samples } => {
                self.on_settled(ticket, took_ns, samples);
            }
            Event::Removed { ticket, removal } => self.on_removed(ticket, removal, now_ns),
            Event::Tick => {}
            Event::Shutdown => self.on_shutdown(now_ns),
        }
        std::mem::take(&mut self.effects)
    }

    fn do_what_is_due(&mut self, now_ns: u64) {
        if let Some(t0_ns) = self.point.as_ref().and_then(|point| point.t0_ns)
            && t0_ns <= now_ns
        {
            self.on_t0();
        }
        if self.lease_end().is_some_and(|end| end <= now_ns) {
            self.on_lease_end(now_ns);
        }
        if self.leaving.as_ref().and_then(Leaving::waits_until).is_some_and(|by| by <= now_ns) {
            self.clean_at_last();
        }
        if self.exit_by_ns.is_some_and(|by| by <= now_ns) {
            self.exit_by_ns = None;
            self.effects.push(Effect::Exit);
        }
    }

    fn on_command(&mut self, peer: PeerId, command: Command, now_ns: u64) {
        if let Command::Claim { campaign, holder, node } = command {
            return self.on_claim(Claimant { peer, name: holder, campaign, node }, now_ns);
        }
        if self.holder() != Some(peer) {
            let text = "the coordinator does not hold this worker: it must claim it first";
            return self.refuse(peer, RefusalKind::Phase, None, text.to_owned());
        }
        self.hear(peer, now_ns);
        match command {
            Command::Claim { .. } => {}
            Command::Inspect(spec) => self.on_inspect(peer, *spec),
            Command::Observe { interval_ns, interfaces } => {
                if let Some(ticket) = self.asked(peer, "observing") {
                    self.observed = Some(ticket);
                    self.effects.push(Effect::Observe { ticket, interval_ns, interfaces });
                }
            }
            Command::NetListen { token } => {
                if let Some(ticket) = self.asked(peer, "a measurement of the network") {
                    self.effects.push(Effect::NetListen { ticket, token });
                }
            }
            Command::NetRun(order) => {
                if let Some(ticket) = self.asked(peer, "a measurement of the network") {
                    self.effects.push(Effect::NetRun { ticket, order });
                }
            }
            Command::Arm(plan) => self.on_arm(peer, plan),
            Command::Start { point, t0_fleet_ns, map } => {
                self.on_start(peer, point, map.to_worker(t0_fleet_ns), now_ns);
            }
            Command::Commit { point } => self.on_commit(peer, point, now_ns),
            Command::Stop { point } => self.on_stop(peer, point, now_ns),
            Command::Acknowledge { point, through } => self.on_acknowledge(peer, point, through),
            Command::Release { keep } => self.on_release(peer, keep, now_ns),
        }
    }

    fn on_inspect(&mut self, peer: PeerId, spec: TargetSpec) {
        if let Some(ticket) = self.asked(peer, "an inspection") {
            self.effects.push(Effect::Inspect { ticket, spec });
        }
    }

    /// A ticket for what only a worker does that has nothing else at hand; it refuses otherwise.
    fn asked(&mut self, peer: PeerId, what: &str) -> Option<Ticket> {
        if self.phase != Phase::Claimed || self.inspection.is_some() {
            let text = if self.phase == Phase::Claimed {
                format!("{what} does not fit before what is under way has ended")
            } else {
                format!("{what} does not fit a worker that is {}", self.phase)
            };
            self.refuse(peer, RefusalKind::Phase, None, text);
            return None;
        }
        let ticket = self.ticket();
        self.inspection = Some(ticket);
        Some(ticket)
    }

    fn on_observed(&mut self, ticket: Ticket, sample: HostSample) {
        if self.phase == Phase::Claimed && self.observed == Some(ticket) {
            self.notify(Notice::Observed(vec![sample]));
        }
    }

    fn on_answered(&mut self, ticket: Ticket, result: Result<Notice, Refusal>) {
        if self.inspection == Some(ticket) {
            self.inspection = None;
            self.notify(result.unwrap_or_else(Notice::Refused));
        }
    }

    fn on_inspected(&mut self, ticket: Ticket, result: Result<TargetFacts, Refusal>) {
        if self.inspection != Some(ticket) {
            return;
        }
        self.inspection = None;
        self.notify(match result {
            Ok(facts) => Notice::Inspected(facts),
            Err(refusal) => Notice::Refused(refusal),
        });
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// To the holder, if there is one.
    fn notify(&mut self, notice: Notice) {
        if let Some(peer) = self.holder() {
            self.effects.push(Effect::Send { peer, notice });
        }
    }

    fn refuse(&mut self, peer: PeerId, kind: RefusalKind, point: Option<PointId>, text: String) {
        let notice = Notice::Refused(Refusal { kind, point, text });
        self.effects.push(Effect::Send { peer, notice });
    }

    fn go(&mut self, trigger: Trigger) -> Result<(), InvalidTransition> {
        self.phase = self.phase.after(trigger)?;
        Ok(())
    }

    /// For edges that the code around has already made sure of.
    fn must_go(&mut self, trigger: Trigger) {
        let gone = self.go(trigger);
        debug_assert!(gone.is_ok(), "{gone:?}");
    }

    /// When the holder's silence, or what is left of its last point, has lasted too long.
    fn lease_end(&self) -> Option<u64> {
        let holder = self.holder.as_ref()?;
        if matches!(self.phase, Phase::Waiting | Phase::Running | Phase::Cleaning) {
            return None;
        }
        let ended_ns = self.point.as_ref().and_then(|point| point.ended_ns).unwrap_or(0);
        Some(holder.heard_ns.max(ended_ns).saturating_add(as_ns(LEASE)))
    }
}

#[cfg(test)]
mod tests;
