//! Storage hosts that are watched while a campaign runs: their links and CPUs, on their own clocks,
//! which are mapped to the fleet's as those of the workers are.
//!
//! They are asked for all of their samples from the beginning to the end, and each point takes what
//! lies in its time. An observer that is lost takes what it would have said with it, and nothing
//! else.

use std::collections::VecDeque;

use iofleet_shared::{
    facts::NetworkFacts,
    ids::NodeIndex,
    limits::{HEARTBEAT, as_ns},
    stats::HostSample,
    wire::{Command, Datagram, Notice},
};

use crate::{barrier::ClockEstimate, conductor::Event, events::Observed};

/// From one sample to the next.
const INTERVAL_NS: u64 = 200_000_000;
/// Samples that are kept of each: those of three hours and a half.
const SAMPLES_MAX: usize = 65_536;
/// How long before a point its slice begins, for the idle rate.
const BEFORE_NS: u64 = 1_000_000_000;

/// What is to be sent to an observer.
#[derive(Debug)]
pub enum Send {
    /// On the control stream.
    Command(Command),
    /// A datagram.
    Datagram(Datagram),
}

/// All observers of a campaign. Pure: events and times come in, what is to be sent goes out.
#[derive(Debug)]
pub struct Observers {
    claim: (String, String),
    interfaces: Vec<String>,
    hosts: Vec<Host>,
    sequence: u64,
    next_beat_ns: u64,
    /// To whom, and what.
    out: VecDeque<(usize, Send)>,
}

#[derive(Debug)]
struct Host {
    name: String,
    clock: ClockEstimate,
    facts: Option<NetworkFacts>,
    /// In ns of its own clock.
    samples: VecDeque<HostSample>,
    lost: Option<String>,
}

impl Observers {
    /// Of these names; none is there yet.
    #[must_use]
    pub fn new(names: Vec<String>, campaign: &str, holder: &str, interfaces: Vec<String>) -> Self {
        let host = |name| Host {
            name,
            clock: ClockEstimate::default(),
            facts: None,
            samples: VecDeque::new(),
            lost: None,
        };
        Self {
            claim: (campaign.to_owned(), holder.to_owned()),
            interfaces,
            hosts: names.into_iter().map(host).collect(),
            sequence: 0,
            next_beat_ns: 0,
            out: VecDeque::new(),
        }
    }

    /// Takes an event of the observer at this place.
    pub fn handle(&mut self, at: usize, event: Event, now_ns: u64) {
        let Some(host) = self.hosts.get_mut(at) else { return };
        match event {
            Event::Connected(_) => {
                let (campaign, holder) = self.claim.clone();
                let node = host.name.clone();
                let claim = Command::Claim { campaign, holder, node };
                self.out.push_back((at, Send::Command(claim)));
            }
            Event::Down(_, why) => host.lost = Some(why),
            Event::Notice(_, notice) => self.on_notice(at, *notice),
            Event::Datagram(_, Datagram::Pong { sent_ns, received_ns, answered_ns, .. }) => {
                host.clock.add(sent_ns, received_ns, answered_ns, now_ns);
            }
            Event::Datagram(..) | Event::Delivery(..) | Event::Interrupt | Event::Tick => {}
        }
    }

    fn on_notice(&mut self, at: usize, notice: Notice) {
        let Some(host) = self.hosts.get_mut(at) else { return };
        match notice {
            Notice::Claimed(_) => {
                let interfaces = self.interfaces.clone();
                let observe = Command::Observe { interval_ns: INTERVAL_NS, interfaces };
                self.out.push_back((at, Send::Command(observe)));
            }
            Notice::Observing(facts) => host.facts = Some(facts),
            Notice::Observed(samples) => {
                host.samples.extend(samples);
                while host.samples.len() > SAMPLES_MAX {
                    host.samples.pop_front();
                }
            }
            Notice::Refused(refusal) => host.lost = Some(refusal.text),
            Notice::Inspected(_)
            | Notice::Armed { .. }
            | Notice::Ready { .. }
            | Notice::NotStarted { .. }
            | Notice::NetListening { .. }
            | Notice::NetMeasured { .. }
            | Notice::Released(_) => {}
        }
    }

    /// Heartbeats and pings, when they are due.
    pub fn tick(&mut self, now_ns: u64) {
        if now_ns < self.next_beat_ns {
            return;
        }
        self.next_beat_ns = now_ns + as_ns(HEARTBEAT);
        self.sequence += 1;
        let sequence = self.sequence;
        for at in (0..self.hosts.len()).filter(|at| self.hosts[*at].lost.is_none()) {
            self.out.push_back((at, Send::Datagram(Datagram::Alive { sequence })));
            self.out.push_back((at, Send::Datagram(Datagram::Ping { sequence, sent_ns: now_ns })));
        }
    }

    /// When it wants to be called again.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        if self.hosts.is_empty() { u64::MAX } else { self.next_beat_ns }
    }

    /// What is to be sent next.
    pub fn poll(&mut self) -> Option<(usize, Send)> {
        self.out.pop_front()
    }

    /// Whether all observe, their clocks known; the names of those that can't, with the reason, are
    /// an error.
    ///
    /// # Errors
    /// Who is lost.
    pub fn ready(&self) -> Result<bool, Vec<(String, String)>> {
        let lost = self.hosts.iter().filter_map(|h| Some((h.name.clone(), h.lost.clone()?)));
        let lost: Vec<(String, String)> = lost.collect();
        if !lost.is_empty() {
            return Err(lost);
        }
        let ready = |host: &Host| {
            host.facts.is_some() && host.clock.samples() > 0 && !host.samples.is_empty()
        };
        Ok(self.hosts.iter().all(ready))
    }

    /// Whether all that are not lost have sampled after an instant of the fleet.
    #[must_use]
    pub fn cover(&self, fleet_ns: u64, now_ns: u64) -> bool {
        let covers = |host: &Host| {
            let until = host.clock.map(now_ns).and_then(|map| map.to_worker(fleet_ns))?;
            Some(host.samples.back()?.at_ns.cast_unsigned() >= until)
        };
        let living = self.hosts.iter().filter(|host| host.lost.is_none());
        living.map(covers).all(|covers| covers == Some(true))
    }

    /// What was sampled from a little before T0 on, in ns after T0.
    #[must_use]
    pub fn since(&self, t0_fleet_ns: u64, now_ns: u64) -> Vec<Observed> {
        let of = |host: &Host| {
            let map = host.clock.map(now_ns);
            let t0_ns = map.and_then(|map| map.to_worker(t0_fleet_ns));
            let samples = t0_ns.map(|t0_ns| {
                let from = t0_ns.saturating_sub(BEFORE_NS).cast_signed();
                let inside = host.samples.iter().filter(|sample| sample.at_ns >= from);
                inside
                    .map(|sample| HostSample {
                        at_ns: sample.at_ns - t0_ns.cast_signed(),
                        ..sample.clone()
                    })
                    .collect()
            });
            Observed {
                name: host.name.clone(),
                network: host.facts.clone(),
                samples: samples.unwrap_or_default(),
                lost: host.lost.clone(),
            }
        };
        self.hosts.iter().map(of).collect()
    }

    /// The place of an observer, by its number among all peers.
    #[must_use]
    pub fn place(node: NodeIndex, workers: usize) -> Option<usize> {
        node.at().checked_sub(workers)
    }
}

#[cfg(test)]
mod tests {
    use iofleet_shared::facts::LinkRule;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn sample(at_ns: u64) -> HostSample {
        HostSample {
            at_ns: at_ns.cast_signed(),
            links: Vec::new(),
            cpu: None,
            busiest_core_milli: None,
            run_delay_ns: None,
        }
    }

    fn notice(notice: Notice) -> Event {
        Event::Notice(NodeIndex(7), Box::new(notice))
    }

    /// Its clock is 1000 s ahead of the fleet's.
    fn observing() -> Observers {
        let mut observers = Observers::new(vec!["s1".to_owned()], "c", "h", Vec::new());
        observers.handle(0, Event::Connected(NodeIndex(7)), S);
        assert!(matches!(observers.poll(), Some((0, Send::Command(Command::Claim { .. })))));
        let facts = NetworkFacts {
            rule: LinkRule::Physical,
            reason: String::new(),
            links: Vec::new(),
            others: Vec::new(),
        };
        observers.handle(0, notice(Notice::Observing(facts)), S);
        let (sent_ns, received_ns) = (S, 1_001 * S);
        let pong = Datagram::Pong { sequence: 1, sent_ns, received_ns, answered_ns: received_ns };
        observers.handle(0, Event::Datagram(NodeIndex(7), pong), S);
        observers
    }

    #[test]
    fn it_is_ready_once_it_has_sampled() {
        let mut observers = observing();
        assert_eq!(observers.ready(), Ok(false));
        observers.handle(0, notice(Notice::Observed(vec![sample(1_001 * S)])), S);
        assert_eq!(observers.ready(), Ok(true));
        observers.handle(0, Event::Down(NodeIndex(7), "gone".to_owned()), S);
        assert_eq!(observers.ready(), Err(vec![("s1".to_owned(), "gone".to_owned())]));
    }

    /// A point whose T0 is 5 s of the fleet: 1005 s of the observer.
    #[test]
    fn a_point_takes_what_lies_in_its_time() {
        let mut observers = observing();
        let samples = (1_000..1_008).map(|s| sample(s * S)).collect();
        observers.handle(0, notice(Notice::Observed(samples)), S);
        let [of] = &observers.since(5 * S, 2 * S)[..] else { panic!("one") };
        let times: Vec<i64> =
            of.samples.iter().map(|sample| sample.at_ns / S.cast_signed()).collect();
        assert_eq!(times, [-1, 0, 1, 2]);
        assert!(observers.cover(7 * S, 2 * S) && !observers.cover(8 * S, 2 * S));
    }

    #[test]
    fn beats_and_pings_are_sent_when_they_are_due() {
        let mut observers = observing();
        observers.tick(10 * S);
        let sent: Vec<_> = std::iter::from_fn(|| observers.poll()).collect();
        assert_eq!(sent.len(), 2);
        observers.tick(10 * S + 1);
        assert!(observers.poll().is_none());
        assert_eq!(observers.deadline(), 10 * S + as_ns(HEARTBEAT));
    }
}
