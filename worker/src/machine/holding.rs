//! Who holds a worker, for how long, and how it lets go.

use iofleet_shared::{
    ids::PeerId,
    lifecycle::{Phase, Trigger},
    limits::{GIVE_UP_AFTER, LEASE, SILENT_AFTER, as_ns},
    wire::{Notice, RefusalKind, Removal},
};

use super::{EXIT_WITHIN_NS, Effect, LEAVES_WITHIN_NS, Machine, Ticket};

/// A coordinator that wants the worker.
#[derive(Debug, Clone)]
pub(super) struct Claimant {
    pub(super) peer: PeerId,
    pub(super) name: String,
    pub(super) campaign: String,
    pub(super) node: String,
}

/// A coordinator that has it.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) peer: PeerId,
    pub(super) claim: Claimant,
    since_ns: u64,
    pub(super) heard_ns: u64,
}

/// A worker that lets go of a campaign.
#[derive(Debug)]
pub(super) struct Leaving {
    keep: bool,
    /// Who waits for the `Released`.
    tell: Option<PeerId>,
    step: Step,
}

/// How far it is.
#[derive(Debug)]
enum Step {
    /// A crew, or an arming, was told to leave: files are removed when it has, or at that time.
    Crew { ticket: Ticket, until_ns: u64 },
    /// Files are being removed.
    Files(Ticket),
}

impl Leaving {
    /// Until when it waits for a crew.
    pub(super) fn waits_until(&self) -> Option<u64> {
        match self.step {
            Step::Crew { until_ns, .. } => Some(until_ns),
            Step::Files(_) => None,
        }
    }
}

impl Machine {
    pub(super) fn hear(&mut self, peer: PeerId, now_ns: u64) {
        if let Some(holder) = self.holder.as_mut().filter(|holder| holder.peer == peer) {
            holder.heard_ns = now_ns;
        }
    }

    pub(super) fn on_claim(&mut self, claim: Claimant, now_ns: u64) {
        let peer = claim.peer;
        if self.exit_by_ns.is_some() {
            let text = "the worker is shutting down".to_owned();
            return self.refuse(peer, RefusalKind::Busy, None, text);
        }
        match (self.phase, &self.holder) {
            (Phase::Idle, _) | (_, None) => self.grant(claim, now_ns),
            (Phase::Cleaning, _) if self.next.is_none() => self.next = Some(claim),
            (_, Some(holder)) if holder.peer == peer && self.phase != Phase::Cleaning => {
                let text = "the coordinator holds this worker already".to_owned();
                self.refuse(peer, RefusalKind::Phase, None, text);
            }
            (_, Some(holder)) if self.may_be_taken_from(holder, now_ns) => {
                let reason = format!(
                    "taken over by {} for campaign {} after {} of silence",
                    claim.name,
                    claim.campaign,
                    in_words(now_ns.saturating_sub(holder.heard_ns))
                );
                let old = holder.peer;
                self.effects.push(Effect::Close { peer: old, reason });
                self.next = Some(claim);
                self.let_go(false, None, now_ns);
            }
            (_, Some(holder)) => {
                let text = self.busy_text(holder, now_ns);
                self.refuse(peer, RefusalKind::Busy, None, text);
            }
        }
    }

    pub(super) fn on_gone(&mut self, peer: PeerId, now_ns: u64) {
        if self.next.as_ref().is_some_and(|claim| claim.peer == peer) {
            self.next = None;
        }
        if self.holder() != Some(peer) {
            return;
        }
        match &mut self.leaving {
            Some(leaving) => leaving.tell = None,
            None => self.let_go(false, None, now_ns),
        }
    }

    pub(super) fn on_release(&mut self, peer: PeerId, keep: bool, now_ns: u64) {
        if self.phase == Phase::Cleaning {
            let text = "the worker is already being released".to_owned();
            return self.refuse(peer, RefusalKind::Phase, None, text);
        }
        self.let_go(keep, Some(peer), now_ns);
    }

    pub(super) fn on_lease_end(&mut self, now_ns: u64) {
        let reason = format!("the coordinator was silent for {}", in_words(as_ns(LEASE)));
        if let Some(peer) = self.holder() {
            self.effects.push(Effect::Close { peer, reason });
        }
        self.let_go(false, None, now_ns);
    }

    pub(super) fn on_shutdown(&mut self, now_ns: u64) {
        if self.exit_by_ns.is_some() {
            return;
        }
        self.exit_by_ns = Some(now_ns.saturating_add(EXIT_WITHIN_NS));
        self.next = None;
        let reason = "the worker is shutting down".to_owned();
        self.effects.push(Effect::CloseAll { reason });
        match self.phase {
            Phase::Idle => {
                self.exit_by_ns = None;
                self.effects.push(Effect::Exit);
            }
            Phase::Cleaning => {}
            Phase::Claimed
            | Phase::Arming
            | Phase::Armed
            | Phase::Ready
            | Phase::Waiting
            | Phase::Running
            | Phase::Draining => self.let_go(false, None, now_ns),
        }
    }

    /// The answer to [`Effect::Clean`].
    pub(super) fn on_removed(&mut self, ticket: Ticket, removal: Removal, now_ns: u64) {
        let done = self
            .leaving
            .take_if(|leaving| matches!(leaving.step, Step::Files(its) if its == ticket));
        let Some(leaving) = done else {
            return;
        };
        if let Some(peer) = leaving.tell {
            self.effects.push(Effect::Send { peer, notice: Notice::Released(removal) });
        }
        self.holder = None;
        self.last = None;
        self.must_go(Trigger::Cleaned);
        if self.exit_by_ns.take().is_some() {
            self.effects.push(Effect::Exit);
        } else if let Some(claim) = self.next.take() {
            self.grant(claim, now_ns);
        }
    }

    /// The crew or the arming that removal waited for has left.
    pub(super) fn on_left(&mut self, ticket: Ticket) {
        if let Some(Leaving { step: Step::Crew { ticket: its, .. }, .. }) = &self.leaving
            && *its == ticket
        {
            self.clean();
        }
    }

    /// It has not left in time.
    pub(super) fn clean_at_last(&mut self) {
        if let Some(Leaving { step: Step::Crew { ticket, .. }, .. }) = &self.leaving {
            if self.dismissed != Some(*ticket) {
                self.effects.push(Effect::DropCrew { ticket: *ticket });
            }
            self.clean();
        }
    }

    fn clean(&mut self) {
        let ticket = self.ticket();
        if let Some(leaving) = &mut self.leaving {
            leaving.step = Step::Files(ticket);
            self.effects.push(Effect::Clean { ticket, keep: leaving.keep });
        }
    }

    fn grant(&mut self, claim: Claimant, now_ns: u64) {
        self.must_go(Trigger::Claim);
        let notice = Notice::Claimed(self.host.clone());
        self.effects.push(Effect::Send { peer: claim.peer, notice });
        self.holder = Some(Holder { peer: claim.peer, since_ns: now_ns, heard_ns: now_ns, claim });
    }

    /// Ends whatever runs, and begins to remove files.
    fn let_go(&mut self, keep: bool, tell: Option<PeerId>, now_ns: u64) {
        let phase = self.phase;
        self.must_go(Trigger::Release);
        self.inspection = None;
        self.outbox.clear();
        let mut waits_for = None;
        if let Some(point) = self.point.take() {
            match phase {
                Phase::Arming if point.queued.is_none() => self.dismissed = Some(point.ticket),
                Phase::Armed | Phase::Ready | Phase::Waiting => {
                    self.effects.push(Effect::DropCrew { ticket: point.ticket });
                }
                Phase::Running => {
                    self.effects.push(Effect::StopCrew { ticket: point.ticket });
                    waits_for = Some(point.ticket);
                }
                Phase::Arming
                | Phase::Idle
                | Phase::Claimed
                | Phase::Draining
                | Phase::Cleaning => {}
            }
        }
        let until_ns = now_ns.saturating_add(LEAVES_WITHIN_NS);
        match waits_for.or(self.dismissed) {
            Some(ticket) => {
                self.leaving = Some(Leaving { keep, tell, step: Step::Crew { ticket, until_ns } });
            }
            None => {
                self.leaving = Some(Leaving { keep, tell, step: Step::Files(Ticket(0)) });
                self.clean();
            }
        }
    }

    fn may_be_taken_from(&self, holder: &Holder, now_ns: u64) -> bool {
        !matches!(self.phase, Phase::Waiting | Phase::Running | Phase::Cleaning)
            && now_ns.saturating_sub(holder.heard_ns) >= as_ns(GIVE_UP_AFTER)
    }

    fn busy_text(&self, holder: &Holder, now_ns: u64) -> String {
        let Claimant { name, campaign, .. } = &holder.claim;
        if self.phase == Phase::Cleaning {
            return format!(
                "it removes the files of campaign {campaign} ({name}), and another coordinator \
                 already waits for that: try again when that one has ended"
            );
        }
        let held = in_words(now_ns.saturating_sub(holder.since_ns));
        let silent_ns = now_ns.saturating_sub(holder.heard_ns);
        let mut text = format!(
            "held by {name} for campaign {campaign}, for {held} so far: wait until that campaign \
             has ended, or end it there with Ctrl-C"
        );
        if silent_ns >= as_ns(SILENT_AFTER) {
            text.push_str(&format!(
                "; its coordinator has been silent for {}, and the worker can be taken over after \
                 {} of silence when no point is running",
                in_words(silent_ns),
                in_words(as_ns(GIVE_UP_AFTER))
            ));
        }
        text
    }
}

/// A duration for people, in the two greatest units that say something.
fn in_words(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
