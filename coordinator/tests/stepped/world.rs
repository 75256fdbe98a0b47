//! A fleet that is stepped: one conductor and N worker machines, links that delay, lose, stall and
//! come back, clocks that are apart. No sockets, no threads, no sleeping: time jumps to the next
//! thing that happens, and a world in which nothing happens any more fails the test.

use std::{collections::VecDeque, time::UNIX_EPOCH};

use iofleet_coordinator::{
    conductor::{Conductor, Config, Effect, Event, Now},
    events::RunEvent,
    plan::Plan,
};
use iofleet_shared::{
    facts::{HostFacts, MachineSetup, TargetFacts},
    ids::{NodeIndex, PeerId},
    lifecycle::Phase,
    limits::HEARTBEAT,
    wire::{Beat, Command, Datagram, Delivery, Notice, Removal},
    work::{Amount, WorkerPlan},
};
use iofleet_worker::machine::{self, Machine};

use crate::crew::{self, Delivered, Manner, OP_NS};

/// One way over the network.
const TRIP_NS: u64 = 100_000;
const STEPS_MAX: u32 = 2_000_000;
const PEER: PeerId = PeerId(1);

enum ToWorker {
    Command(Box<Command>),
    Datagram(Datagram),
}

enum ToFleet {
    Connected,
    Notice(Box<Notice>),
    Delivery(Box<Delivery>),
    Datagram(Datagram),
    Gone(String),
}

/// A worker and its link.
pub(crate) struct Worker {
    pub(crate) machine: Machine,
    offset_ns: i64,
    /// False: the process is dead.
    alive: bool,
    /// True: the network is cut. Streams wait, datagrams are lost.
    cut: bool,
    /// Of a hundred datagrams so many are lost.
    pub(crate) loss_percent: u64,
    datagrams: u64,
    to_worker: VecDeque<(u64, ToWorker)>,
    to_fleet: VecDeque<(u64, ToFleet)>,
    own: Vec<(u64, machine::Event)>,
    plan: Option<WorkerPlan>,
    crew: Option<Crew>,
    next_beat_ns: u64,
    /// Operations never return: the crew ends only when it is given up.
    pub(crate) hangs: bool,
    /// How its threads behave.
    pub(crate) manner: Manner,
}

struct Crew {
    ticket: machine::Ticket,
    began_ns: u64,
}

/// The whole.
pub(crate) struct World {
    pub(crate) now_ns: u64,
    pub(crate) began_ns: u64,
    pub(crate) conductor: Conductor,
    pub(crate) workers: Vec<Worker>,
    pub(crate) events: Vec<RunEvent>,
    pub(crate) finished: bool,
    suspended_ns: u64,
    trace: VecDeque<String>,
}

impl World {
    pub(crate) fn new(plan: Plan, offsets_ns: &[i64]) -> Self {
        let now_ns = 10_000_000_000_000;
        let nodes: Vec<String> = (1..=offsets_ns.len()).map(|i| format!("client{i:02}")).collect();
        let paths = vec!["/mnt/pfs/iofleet".to_owned(); nodes.len()];
        let config = Config {
            campaign: "c1".to_owned(),
            holder: "someone@somewhere, pid 1".to_owned(),
            nodes,
            paths,
            keep: false,
            plan,
        };
        let now = Now { ns: now_ns, suspended_ns: 0, wall: UNIX_EPOCH };
        let workers = offsets_ns.iter().map(|offset| Worker::new(*offset, now_ns)).collect();
        Self {
            now_ns,
            began_ns: now_ns,
            conductor: Conductor::new(config, now),
            workers,
            events: Vec::new(),
            finished: false,
            suspended_ns: 0,
            trace: VecDeque::new(),
        }
    }

    /// Steps until the condition holds; fails when the campaign ends before.
    pub(crate) fn run_until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        for _ in 0..STEPS_MAX {
            if condition(self) {
                return;
            }
            assert!(!self.finished, "ended before {what}\n{}", self.story());
            self.step();
        }
        panic!("{what} never came\n{}", self.story());
    }

    /// Steps to the end of the campaign.
    pub(crate) fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            if self.finished {
                return;
            }
            self.step();
        }
        panic!("the campaign never ends\n{}", self.story());
    }

    /// Steps for so long.
    pub(crate) fn run_for(&mut self, ns: u64) {
        let end_ns = self.now_ns + ns;
        while self.now_ns < end_ns && !self.finished {
            self.step();
        }
    }

    /// Somebody else came first.
    pub(crate) fn held_by_another(&mut self, index: usize) {
        let command = Command::Claim {
            campaign: "other".to_owned(),
            holder: "another@there".to_owned(),
            node: "n".to_owned(),
        };
        let event = machine::Event::Command { peer: PeerId(2), command };
        let local_ns = self.workers[index].local(self.now_ns);
        self.workers[index].machine.handle(event, local_ns);
    }

    pub(crate) fn interrupt(&mut self) {
        self.tell(Event::Interrupt);
    }

    /// The coordinator's machine sleeps: its monotonic clock stands still, the workers' go on.
    pub(crate) fn sleep(&mut self, ns: u64) {
        self.suspended_ns += ns;
        for worker in &mut self.workers {
            worker.offset_ns += i64::try_from(ns).unwrap();
        }
    }

    pub(crate) fn kill(&mut self, index: usize) {
        self.workers[index].alive = false;
    }

    pub(crate) fn cut(&mut self, index: usize, cut: bool) {
        let worker = &mut self.workers[index];
        worker.cut = cut;
        let again = self.now_ns + TRIP_NS;
        // What the streams held is sent anew.
        worker.to_worker.iter_mut().for_each(|(at, _)| *at = (*at).max(again));
        worker.to_fleet.iter_mut().for_each(|(at, _)| *at = (*at).max(again));
    }

    /// SIGTERM to a daemon.
    pub(crate) fn shut_down(&mut self, index: usize) {
        self.worker_event(index, machine::Event::Shutdown);
    }

    pub(crate) fn warnings(&self) -> String {
        let warnings = self.events.iter().filter_map(|event| match event {
            RunEvent::Warning(text) => Some(text.as_str()),
            _ => None,
        });
        warnings.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn story(&self) -> String {
        let mut story: Vec<String> = self.trace.iter().cloned().collect();
        for (index, worker) in self.workers.iter().enumerate() {
            story.push(format!("worker {index}: {}", worker.machine.summary()));
        }
        story.join("\n")
    }

    fn note(&mut self, text: String) {
        if self.trace.len() == 60 {
            self.trace.pop_front();
        }
        self.trace
            .push_back(format!("{:>12} us {text}", (self.now_ns - 10_000_000_000_000) / 1000));
    }

    fn now(&self) -> Now {
        Now { ns: self.now_ns, suspended_ns: self.suspended_ns, wall: UNIX_EPOCH }
    }

    fn step(&mut self) {
        let next = self.workers.iter().filter_map(Worker::next_ns).min();
        let next = next.unwrap_or(u64::MAX).min(self.conductor.deadline());
        assert!(next < u64::MAX, "nothing happens any more\n{}", self.story());
        self.now_ns = self.now_ns.max(next);
        for index in 0..self.workers.len() {
            self.step_worker(index);
        }
        if self.conductor.deadline() <= self.now_ns {
            self.tell(Event::Tick);
        }
    }

    fn step_worker(&mut self, index: usize) {
        let now_ns = self.now_ns;
        while let Some(message) = self.workers[index].arrived(now_ns) {
            let local_ns = self.workers[index].local(now_ns);
            match message {
                ToWorker::Command(command) => {
                    self.note(format!("to {index}: {command:?}").chars().take(140).collect());
                    let command = *command;
                    self.worker_event(index, machine::Event::Command { peer: PEER, command });
                }
                ToWorker::Datagram(Datagram::Ping { sequence, sent_ns }) => {
                    let pong = Datagram::Pong {
                        sequence,
                        sent_ns,
                        received_ns: local_ns,
                        answered_ns: local_ns,
                    };
                    self.workers[index].send_datagram(now_ns, pong);
                }
                ToWorker::Datagram(_) => {
                    self.worker_event(index, machine::Event::Alive { peer: PEER });
                }
            }
        }
        while let Some(event) = self.workers[index].due(now_ns) {
            self.worker_event(index, event);
        }
        if self.workers[index].deadline_ns().is_some_and(|at| at <= now_ns) {
            self.worker_event(index, machine::Event::Tick);
        }
        self.workers[index].beat(now_ns);
        while let Some(message) = self.workers[index].answered(now_ns) {
            let node = NodeIndex(u32::try_from(index).unwrap());
            let event = match message {
                ToFleet::Connected => Event::Connected(node),
                ToFleet::Notice(notice) => {
                    self.note(format!("from {index}: {notice:?}").chars().take(140).collect());
                    Event::Notice(node, notice)
                }
                ToFleet::Delivery(delivery) => Event::Delivery(node, delivery),
                ToFleet::Datagram(datagram) => Event::Datagram(node, datagram),
                ToFleet::Gone(why) => Event::Down(node, why),
            };
            self.tell(event);
        }
    }

    fn tell(&mut self, event: Event) {
        let now = self.now();
        self.conductor.handle(event, now);
        while let Some(effect) = self.conductor.poll_effect() {
            match effect {
                Effect::Send(node, command) => self.workers[node.at()]
                    .to_worker
                    .push_back((self.now_ns + TRIP_NS, ToWorker::Command(command))),
                Effect::SendDatagram(node, datagram) => {
                    let worker = &mut self.workers[node.at()];
                    if worker.passes() {
                        worker
                            .to_worker
                            .push_back((self.now_ns + TRIP_NS, ToWorker::Datagram(datagram)));
                    }
                }
                Effect::Emit(event) => {
                    self.note(format!("{event:?}").chars().take(140).collect());
                    self.events.push(*event);
                }
                Effect::Finish => {
                    self.finished = true;
                    // The goodbye closes the connections.
                    for index in 0..self.workers.len() {
                        if self.workers[index].alive && !self.workers[index].cut {
                            self.worker_event(index, machine::Event::Gone { peer: PEER });
                        }
                    }
                }
            }
        }
    }

    fn worker_event(&mut self, index: usize, event: machine::Event) {
        let now_ns = self.now_ns;
        let worker = &mut self.workers[index];
        if !worker.alive {
            return;
        }
        let local_ns = worker.local(now_ns);
        let effects = worker.machine.handle(event, local_ns);
        for effect in effects {
            worker.carry_out(effect, now_ns);
        }
        while let Some((_, delivery)) = worker.machine.take_delivery() {
            worker.to_fleet.push_back((now_ns + TRIP_NS, ToFleet::Delivery(Box::new(delivery))));
        }
    }
}

impl Worker {
    fn new(offset_ns: i64, now_ns: u64) -> Self {
        Self {
            machine: Machine::new(host_facts()),
            offset_ns,
            alive: true,
            cut: false,
            loss_percent: 0,
            datagrams: 0,
            to_worker: VecDeque::new(),
            to_fleet: VecDeque::from([(now_ns + 3 * TRIP_NS, ToFleet::Connected)]),
            own: Vec::new(),
            plan: None,
            crew: None,
            next_beat_ns: now_ns,
            hangs: false,
            manner: Manner::default(),
        }
    }

    fn local(&self, fleet_ns: u64) -> u64 {
        fleet_ns.checked_add_signed(self.offset_ns).unwrap()
    }

    fn fleet(&self, local_ns: u64) -> u64 {
        local_ns.checked_add_signed(-self.offset_ns).unwrap()
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.machine.next_deadline().map(|at| self.fleet(at))
    }

    fn next_ns(&self) -> Option<u64> {
        if !self.alive {
            return None;
        }
        let own = self.own.iter().map(|(at, _)| *at).min();
        let first = |at: Option<u64>| at.filter(|_| !self.cut);
        let came = first(self.to_worker.front().map(|(at, _)| *at));
        let went = first(self.to_fleet.front().map(|(at, _)| *at));
        [own, came, went, self.deadline_ns(), Some(self.next_beat_ns)].into_iter().flatten().min()
    }

    fn arrived(&mut self, now_ns: u64) -> Option<ToWorker> {
        let ready = !self.cut && self.to_worker.front().is_some_and(|(at, _)| *at <= now_ns);
        if ready { self.to_worker.pop_front().map(|(_, message)| message) } else { None }
    }

    fn answered(&mut self, now_ns: u64) -> Option<ToFleet> {
        let ready =
            self.alive && !self.cut && self.to_fleet.front().is_some_and(|(at, _)| *at <= now_ns);
        if ready { self.to_fleet.pop_front().map(|(_, message)| message) } else { None }
    }

    fn due(&mut self, now_ns: u64) -> Option<machine::Event> {
        let place = self.own.iter().position(|(at, _)| *at <= now_ns)?;
        Some(self.own.remove(place).1)
    }

    fn passes(&mut self) -> bool {
        self.datagrams += 1;
        // Scattered, and the same in every run.
        let drawn = self.datagrams.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        !self.cut && drawn % 100 >= self.loss_percent
    }

    fn send_datagram(&mut self, now_ns: u64, datagram: Datagram) {
        if self.passes() {
            self.to_fleet.push_back((now_ns + TRIP_NS, ToFleet::Datagram(datagram)));
        }
    }

    fn beat(&mut self, now_ns: u64) {
        if !self.alive || now_ns < self.next_beat_ns {
            return;
        }
        self.next_beat_ns = now_ns + u64::try_from(HEARTBEAT.as_nanos()).unwrap();
        let oldest_ns = match &self.crew {
            Some(crew) if self.hangs => now_ns - crew.began_ns,
            _ => 0,
        };
        let beat = Beat {
            sequence: now_ns,
            incarnation: 1,
            phase: self.machine.phase(),
            threads: 1,
            bytes: 0,
            oldest_ns,
        };
        if self.machine.holder().is_some() {
            self.send_datagram(now_ns, Datagram::Beat(beat));
        }
    }

    fn carry_out(&mut self, effect: machine::Effect, now_ns: u64) {
        use machine::{Effect, Event};
        let mut later = |ns: u64, event: Event| self.own.push((now_ns + ns, event));
        match effect {
            Effect::Send { notice, .. } => {
                self.to_fleet.push_back((now_ns + TRIP_NS, ToFleet::Notice(Box::new(notice))));
            }
            Effect::Inspect { ticket, .. } => {
                later(500_000, Event::Inspected { ticket, result: Ok(target_facts()) });
            }
            Effect::Observe { .. } | Effect::NetListen { .. } | Effect::NetRun { .. } => {
                panic!("no campaign asks for it")
            }
            Effect::Arm { ticket, plan } => {
                later(2_000_000, Event::Armed { ticket, result: Ok(2_000_000) });
                self.plan = Some(*plan);
            }
            Effect::Began { ticket } => self.begin(ticket, now_ns),
            Effect::StopCrew { ticket } => {
                if let Some(crew) = self.crew.take_if(|crew| crew.ticket == ticket) {
                    self.own.retain(|(_, event)| {
                        !matches!(event, Event::Interval { .. } | Event::Ended { .. })
                    });
                    let delivered =
                        (now_ns - crew.began_ns) / self.plan.as_ref().unwrap().interval_ns;
                    self.end(&crew, now_ns - crew.began_ns, now_ns, delivered);
                }
            }
            Effect::Settle { ticket, .. } => {
                later(
                    1_000_000,
                    Event::Settled { ticket, took_ns: Some(1_000_000), samples: vec![] },
                );
            }
            Effect::Clean { ticket, .. } => {
                later(3_000_000, Event::Removed { ticket, removal: Removal::default() });
            }
            Effect::CloseAll { reason } | Effect::Close { reason, .. } => {
                self.to_fleet.push_back((now_ns + TRIP_NS, ToFleet::Gone(reason)));
            }
            Effect::Exit => self.alive = false,
            Effect::DropCrew { .. } => self.crew = None,
            Effect::SetStart { .. } | Effect::CommitCrew { .. } => {}
        }
    }

    fn begin(&mut self, ticket: machine::Ticket, now_ns: u64) {
        let crew = Crew { ticket, began_ns: now_ns };
        let plan = self.plan.as_ref().unwrap();
        let length_ns = match plan.amount {
            Amount::Time { duration_ns, .. } => plan.ramp_ns + duration_ns,
            Amount::Share => {
                plan.threads.iter().map(|thread| thread.operations * OP_NS).max().unwrap()
            }
        };
        if !self.hangs {
            self.end(&crew, length_ns, now_ns + length_ns, 0);
        }
        self.crew = Some(crew);
    }

    /// Intervals and report of a crew whose threads issued operations for so long. The first
    /// `delivered` intervals have left already.
    fn end(&mut self, crew: &Crew, length_ns: u64, at_ns: u64, delivered: u64) {
        let plan = self.plan.as_ref().unwrap();
        let ticket = crew.ticket;
        let t0_worker_ns = self.local(crew.began_ns);
        let Delivered { intervals, ticks, report } =
            crew::deliver(plan, &self.manner, length_ns, t0_worker_ns);
        for interval in intervals.into_iter().filter(|i| u64::from(i.k) >= delivered) {
            let end_ns = u64::from(interval.k + 1) * plan.interval_ns;
            let at = (crew.began_ns + end_ns).min(at_ns);
            self.own.push((at, machine::Event::Interval { ticket, interval }));
        }
        let (ticks, report) = (ticks.into_iter().collect(), Box::new(report));
        self.own.push((at_ns, machine::Event::Ended { ticket, ticks, report }));
    }
}

fn host_facts() -> HostFacts {
    HostFacts {
        hostname: "h".to_owned(),
        boot_id: "b".to_owned(),
        net_namespace: 1,
        incarnation: 1,
        version: "0".to_owned(),
        kernel: "6".to_owned(),
        cpus: 2,
        memory_bytes: 1 << 30,
        stamp_clock: "tsc".to_owned(),
        stamp_resolution_ns: 1,
        stamp_cost_ns: 10,
        control_priority: true,
        setup: MachineSetup::default(),
    }
}

fn target_facts() -> TargetFacts {
    TargetFacts {
        fs_type: "fuse".to_owned(),
        mount_source: "s1:/pfs".to_owned(),
        mount_options: "rw".to_owned(),
        free_bytes: 1 << 40,
        total_bytes: 1 << 41,
        free_inodes: None,
        alignment: None,
        network: None,
        token: "t".to_owned(),
    }
}

/// Phases of all workers.
pub(crate) fn phases(world: &World) -> Vec<Phase> {
    world.workers.iter().map(|worker| worker.machine.phase()).collect()
}
