//! The conductor of a campaign: what each worker is told and when, as a state machine. Pure: no
//! sockets, no threads, no clock; `now` is an argument.
//!
//! Methods come in three families. [`Conductor::handle`] takes what happened; afterwards
//! [`Conductor::poll_effect`] is drained until it gives nothing; then nothing happens until the next
//! event or [`Conductor::deadline`], at which an [`Event::Tick`] is due.
//!
//! ```text
//! Gathering ──all claimed, inspected, clocks known──▶ Points ──no more, fault, interrupt──▶ Cleaning ──▶ Ended
//!     └───────────── anything refused ─────────────────────────────────────────────────────▲
//! ```

use std::collections::{BTreeMap, VecDeque};

use iofleet_shared::{
    clock::ClockMap,
    ids::NodeIndex,
    limits::{
        ANSWER_WITHIN, CLOCK_UNCERTAINTY_NS_MAX, CONNECT_WITHIN, HEARTBEAT, REMOVE_WITHIN,
        SILENT_AFTER, TARGET_CALL_WITHIN, as_ns,
    },
    wire::{Beat, Command, Datagram, Delivery, Notice, RefusalKind, Removal},
    work::DatasetDir,
};

use crate::{
    events::{Ending, NodeReady, RunEvent},
    exit::Exit,
    plan::{Manifest, Plan},
};

use node::{Connection, FIRST_BURST, Node};
use point::PointRun;

mod node;
mod part;
mod point;
pub(crate) mod same;
pub(crate) mod words;

/// Distance of the pings of a burst.
const BURST_STEP_NS: u64 = 500_000;
/// How long a burst of pings may take before a point goes on with what it has.
const CLOCKS_WITHIN_NS: u64 = 500_000_000;
/// How long removal may take at an ordinary end, as long as the worker gives signs of life.
const CLEAN_WITHIN_NS: u64 = 600_000_000_000;

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A worker's connection is up.
    Connected(NodeIndex),
    /// A worker's connection could not be made, or ended, and why.
    Down(NodeIndex, String),
    /// Something came on a control stream.
    Notice(NodeIndex, Box<Notice>),
    /// Something came on a delivery stream.
    Delivery(NodeIndex, Box<Delivery>),
    /// A datagram came.
    Datagram(NodeIndex, Datagram),
    /// The user (or the system) wants the campaign to end.
    Interrupt,
    /// The deadline has come.
    Tick,
}

/// What is to be done.
#[derive(Debug)]
pub enum Effect {
    /// Send on a control stream.
    Send(NodeIndex, Box<Command>),
    /// Send a datagram; the ping's stamp is made anew where it is sent.
    SendDatagram(NodeIndex, Datagram),
    /// Tell the reporters.
    Emit(Box<RunEvent>),
    /// Close all connections; nothing follows.
    Finish,
}

/// The moment of an event.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Fleet time: the coordinator's monotonic clock.
    pub ns: u64,
    /// Time that the machine has spent suspended since boot.
    pub suspended_ns: u64,
    /// For people.
    pub wall: std::time::SystemTime,
}

/// What a campaign is.
#[derive(Debug, Clone)]
pub struct Config {
    /// Campaign id; also the dataset's name.
    pub campaign: String,
    /// Who runs it, as workers tell a second coordinator.
    pub holder: String,
    /// Names of the nodes, in host-list order.
    pub nodes: Vec<String>,
    /// `target.path` of each node, its placeholders expanded.
    pub paths: Vec<String>,
    /// Leave the files.
    pub keep: bool,
    /// The points.
    pub plan: Plan,
}

#[derive(Debug)]
enum Stage {
    /// Connecting, claiming, inspecting; clocks. Since when.
    Gathering {
        since_ns: u64,
        refused: Vec<(String, String)>,
    },
    Points(Box<PointRun>),
    Cleaning {
        by_ns: u64,
    },
    Ended,
}

/// See the module.
#[derive(Debug)]
pub struct Conductor {
    config: Config,
    nodes: Vec<Node>,
    stage: Stage,
    manifest: Manifest,
    effects: VecDeque<Effect>,
    ending: Ending,
    interrupts: u32,
    /// Threads were given up in an operation.
    mount_hung: bool,
    /// When the first worker was heard again after all had been silent: our own link was cut, and
    /// the others have their patience from then on.
    link_back_ns: u64,
    next_beat_ns: u64,
    next_burst_ns: u64,
    suspended_ns: u64,
}

impl Conductor {
    /// A campaign at its beginning; the connections are being made.
    #[must_use]
    pub fn new(config: Config, now: Now) -> Self {
        let nodes = config.nodes.iter().map(|name| Node::new(name.clone(), now.ns)).collect();
        Self {
            config,
            nodes,
            stage: Stage::Gathering { since_ns: now.ns, refused: Vec::new() },
            manifest: Manifest::default(),
            effects: VecDeque::new(),
            ending: Ending { exit: Exit::Done, message: None },
            interrupts: 0,
            mount_hung: false,
            link_back_ns: 0,
            next_beat_ns: now.ns,
            next_burst_ns: now.ns,
            suspended_ns: now.suspended_ns,
        }
    }

    /// Takes an event; drain [`Conductor::poll_effect`] afterwards.
    pub fn handle(&mut self, event: Event, now: Now) {
        if matches!(self.stage, Stage::Ended) {
            return;
        }
        self.notice_sleep(now);
        match event {
            Event::Connected(node) => self.on_connected(node, now.ns),
            Event::Down(node, why) => self.on_down(node, &why),
            Event::Notice(node, notice) => self.on_notice(node, *notice, now),
            Event::Delivery(node, delivery) => {
                self.heard(node, now.ns);
                self.point_delivery(node, *delivery);
            }
            Event::Datagram(node, datagram) => self.on_datagram(node, datagram, now.ns),
            Event::Interrupt => self.on_interrupt(now),
            Event::Tick => {}
        }
        self.send_beats(now.ns);
        self.advance(now);
    }

    /// The next thing to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When the next [`Event::Tick`] is due.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        let burst = self.nodes.iter().any(|node| node.is_up() && node.burst > 0);
        let mut next = self.next_beat_ns;
        if burst {
            next = next.min(self.next_burst_ns);
        }
        match &self.stage {
            Stage::Gathering { .. } => next,
            Stage::Ended => u64::MAX,
            Stage::Points(run) => next.min(run.deadline_ns()),
            Stage::Cleaning { by_ns } => next.min(*by_ns),
        }
    }

    fn emit(&mut self, event: RunEvent) {
        self.effects.push_back(Effect::Emit(Box::new(event)));
    }

    fn warn(&mut self, text: String) {
        self.emit(RunEvent::Warning(text));
    }

    fn send(&mut self, node: NodeIndex, command: Command) {
        self.effects.push_back(Effect::Send(node, Box::new(command)));
    }

    fn indexes(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(NodeIndex)
    }

    fn dataset(&self, node: NodeIndex) -> DatasetDir {
        DatasetDir {
            path: self.config.paths[node.at()].clone(),
            name: self.config.campaign.clone(),
            campaign: self.config.campaign.clone(),
        }
    }

    fn heard(&mut self, node: NodeIndex, now_ns: u64) {
        if !self.any_heard(now_ns) {
            self.link_back_ns = now_ns;
        }
        let node = &mut self.nodes[node.at()];
        let back = node.silence_named && node.lost.is_none();
        node.heard_ns = now_ns;
        node.silence_named = false;
        if back {
            let text = format!("{} answers again", node.name);
            self.warn(text);
        }
    }

    fn what_it_made(&self, index: NodeIndex, why: &str) -> String {
        let DatasetDir { path, name, .. } = self.dataset(index);
        format!("{path}/iofleet-{name}, as far as {} made it ({why})", self.nodes[index.at()].name)
    }

    fn any_heard(&self, now_ns: u64) -> bool {
        self.nodes.iter().any(|node| node.lives() && !node.is_silent(now_ns))
    }

    fn notice_sleep(&mut self, now: Now) {
        if now.suspended_ns.abs_diff(self.suspended_ns) > CLOCK_UNCERTAINTY_NS_MAX {
            self.suspended_ns = now.suspended_ns;
            for node in &mut self.nodes {
                node.clock.new_epoch();
                node.start_burst(FIRST_BURST);
            }
            self.warn("this machine slept: the clocks of the fleet are asked anew".to_owned());
        }
    }

    fn on_connected(&mut self, index: NodeIndex, now_ns: u64) {
        let (campaign, holder) = (self.config.campaign.clone(), self.config.holder.clone());
        let node = &mut self.nodes[index.at()];
        node.connection = Connection::Up;
        node.heard_ns = now_ns;
        node.start_burst(FIRST_BURST);
        let name = node.name.clone();
        self.send(index, Command::Claim { campaign, holder, node: name });
    }

    fn on_down(&mut self, index: NodeIndex, why: &str) {
        let node = &mut self.nodes[index.at()];
        let name = node.name.clone();
        node.connection = Connection::Down(why.to_owned());
        match &mut self.stage {
            Stage::Gathering { refused, .. } => refused.push((name, why.to_owned())),
            Stage::Points(_) => self.lose(index, why),
            Stage::Cleaning { .. } | Stage::Ended => {}
        }
    }

    fn on_notice(&mut self, index: NodeIndex, notice: Notice, now: Now) {
        self.heard(index, now.ns);
        match notice {
            Notice::Claimed(facts) => {
                self.nodes[index.at()].host = Some(facts);
                let spec = self.config.plan.target_spec(index, self.dataset(index));
                self.send(index, Command::Inspect(Box::new(spec)));
            }
            Notice::Inspected(facts) => self.nodes[index.at()].target = Some(facts),
            Notice::Refused(refusal) => self.on_refused(index, refusal.kind, &refusal.text),
            Notice::Released(removal) => self.nodes[index.at()].released = Some(removal),
            // Nobody asks for it in a campaign.
            Notice::NetListening { .. }
            | Notice::NetMeasured { .. }
            | Notice::Observing(_)
            | Notice::Observed(_) => {}
            Notice::Armed { .. } | Notice::Ready { .. } | Notice::NotStarted { .. } => {
                self.point_notice(index, &notice);
            }
        }
    }

    fn on_refused(&mut self, index: NodeIndex, kind: RefusalKind, text: &str) {
        let name = self.nodes[index.at()].name.clone();
        match &mut self.stage {
            Stage::Gathering { refused, .. } => refused.push((name, text.to_owned())),
            Stage::Points(_) => self.point_refused(index, kind, text),
            Stage::Cleaning { .. } | Stage::Ended => {
                // It removes nothing then; there is nothing to wait for.
                let left = vec![self.what_it_made(index, text)];
                self.nodes[index.at()].released = Some(Removal { files: 0, left });
            }
        }
    }

    fn on_datagram(&mut self, index: NodeIndex, datagram: Datagram, now_ns: u64) {
        self.heard(index, now_ns);
        match datagram {
            Datagram::Pong { sent_ns, received_ns, answered_ns, .. } => {
                let clock = &mut self.nodes[index.at()].clock;
                clock.add(sent_ns, received_ns, answered_ns, now_ns);
            }
            Datagram::Beat(beat) => self.on_beat(index, &beat),
            // Only a coordinator sends these.
            Datagram::Ping { .. } | Datagram::Alive { .. } => {}
        }
    }

    fn on_beat(&mut self, index: NodeIndex, beat: &Beat) {
        let Stage::Points(run) = &self.stage else { return };
        if !run.is_running() || !run.has(index) {
            return;
        }
        self.name_stuck(index, beat.oldest_ns);
        let Beat { bytes, oldest_ns, .. } = *beat;
        self.emit(RunEvent::Progress { node: index, bytes, oldest_ns });
    }

    /// An operation that takes longer than a peer's silence would is named, and again each time
    /// its age has doubled.
    fn name_stuck(&mut self, index: NodeIndex, oldest_ns: u64) {
        let node = &mut self.nodes[index.at()];
        let least = as_ns(SILENT_AFTER);
        if oldest_ns < least {
            node.stuck_named_ns = 0;
        } else if oldest_ns >= 2 * node.stuck_named_ns {
            node.stuck_named_ns = oldest_ns;
            let seconds = oldest_ns / 1_000_000_000;
            let text = format!("{}: an operation has not returned for {seconds} s", node.name);
            self.warn(text);
        }
    }

    fn on_interrupt(&mut self, now: Now) {
        self.interrupts += 1;
        self.ending.exit = Exit::Interrupted;
        if self.interrupts > 1 {
            self.end("interrupted twice: left at once; files may be left on the target");
            return;
        }
        self.ending.message = Some("interrupted".to_owned());
        match &self.stage {
            Stage::Gathering { .. } => self.clean(now.ns),
            Stage::Points(_) => self.interrupt_point(now),
            Stage::Cleaning { .. } | Stage::Ended => {}
        }
    }

    fn send_beats(&mut self, now_ns: u64) {
        let beat = now_ns >= self.next_beat_ns;
        let burst = now_ns >= self.next_burst_ns;
        if beat {
            self.next_beat_ns = now_ns + as_ns(HEARTBEAT);
        }
        if burst {
            self.next_burst_ns = now_ns + BURST_STEP_NS;
        }
        for index in self.indexes() {
            let node = &mut self.nodes[index.at()];
            if !node.is_up() {
                continue;
            }
            if beat {
                let sequence = node.next_sequence();
                self.effects.push_back(Effect::SendDatagram(index, Datagram::Alive { sequence }));
            }
            let node = &mut self.nodes[index.at()];
            if beat || (burst && node.burst > 0) {
                node.burst = node.burst.saturating_sub(1);
                let sequence = node.next_sequence();
                let ping = Datagram::Ping { sequence, sent_ns: now_ns };
                self.effects.push_back(Effect::SendDatagram(index, ping));
            }
        }
    }

    /// Whatever follows from the state and the time.
    fn advance(&mut self, now: Now) {
        match &self.stage {
            Stage::Gathering { since_ns, .. } => self.advance_gathering(*since_ns, now),
            Stage::Points(_) => self.advance_point(now),
            Stage::Cleaning { by_ns } => self.advance_cleaning(*by_ns, now.ns),
            Stage::Ended => {}
        }
    }

    fn advance_gathering(&mut self, since_ns: u64, now: Now) {
        let waited_ns = now.ns.saturating_sub(since_ns);
        let limit = CONNECT_WITHIN + ANSWER_WITHIN + TARGET_CALL_WITHIN;
        let late = waited_ns >= as_ns(limit);
        let clocks_late = waited_ns >= as_ns(CONNECT_WITHIN + ANSWER_WITHIN);
        let Stage::Gathering { refused, .. } = &mut self.stage else { return };
        let mut waiting = 0_usize;
        for node in &self.nodes {
            let answered = refused.iter().any(|(name, _)| *name == node.name);
            let ready = node.target.is_some()
                && (node.burst == 0 || clocks_late)
                && node.clock.samples() > 0;
            if answered || ready {
                continue;
            }
            if late {
                let text = match (&node.connection, &node.host) {
                    (Connection::Connecting, _) => "no connection".to_owned(),
                    (_, None) => "connected, but does not answer".to_owned(),
                    _ => format!("did not say within {} s what its target is", limit.as_secs()),
                };
                refused.push((node.name.clone(), text));
            } else {
                waiting += 1;
            }
        }
        if waiting > 0 {
            return;
        }
        if refused.is_empty() && !self.config.plan.node_directories() {
            let nodes = self.nodes.iter();
            let seen = nodes.filter_map(|node| Some((&*node.name, node.target.as_ref()?)));
            refused.extend(same::strangers(seen));
        }
        if refused.is_empty() {
            self.fleet_ready(now);
        } else {
            self.ending.exit = self.ending.exit.worse(Exit::Fleet);
            let mut refused = std::mem::take(refused);
            // In host-list order, whoever answered first.
            refused.sort_by_key(|(name, _)| self.nodes.iter().position(|node| node.name == *name));
            self.ending.message =
                Some(format!("the fleet is not ready\n{}", words::group(&refused)));
            self.clean(now.ns);
        }
    }

    fn fleet_ready(&mut self, now: Now) {
        let ready = self.nodes.iter().filter_map(|node| {
            Some(NodeReady {
                name: node.name.clone(),
                host: node.host.clone()?,
                target: node.target.clone()?,
                clock: node.clock.map(now.ns)?,
            })
        });
        let ready = ready.collect();
        self.emit(RunEvent::FleetReady(ready));
        self.next_point(0, now);
    }

    fn clean(&mut self, now_ns: u64) {
        let within = if self.interrupts > 0 || self.mount_hung {
            as_ns(REMOVE_WITHIN)
        } else {
            CLEAN_WITHIN_NS
        };
        if self.mount_hung {
            let seconds = REMOVE_WITHIN.as_secs();
            self.warn(format!(
                "removing files on a mount that did not answer before: given up after {seconds} s"
            ));
        }
        let keep = self.config.keep;
        for index in self.indexes() {
            if self.nodes[index.at()].is_held() {
                self.send(index, Command::Release { keep });
            }
        }
        self.stage = Stage::Cleaning { by_ns: now_ns.saturating_add(within) };
    }

    fn advance_cleaning(&mut self, by_ns: u64, now_ns: u64) {
        let waits =
            |node: &Node| node.is_held() && node.released.is_none() && !node.is_silent(now_ns);
        if now_ns < by_ns && self.nodes.iter().any(waits) {
            return;
        }
        let mut removals = Vec::new();
        for index in self.indexes() {
            let node = &mut self.nodes[index.at()];
            if node.host.is_none() {
                continue;
            }
            let why = match &node.connection {
                Connection::Down(why) => why.clone(),
                Connection::Connecting | Connection::Up => "it did not answer".to_owned(),
            };
            let removal = node.released.take().unwrap_or_else(|| Removal {
                files: 0,
                left: vec![self.what_it_made(index, &why)],
            });
            removals.push((index, removal));
        }
        self.emit(RunEvent::Cleaned(removals));
        self.finish();
    }

    fn end(&mut self, message: &str) {
        self.ending.message = Some(message.to_owned());
        self.finish();
    }

    fn finish(&mut self) {
        let ending = self.ending.clone();
        self.emit(RunEvent::Ended(ending));
        self.effects.push_back(Effect::Finish);
        self.stage = Stage::Ended;
    }

    /// The frozen maps of the given nodes; none while one of them has no sample.
    fn freeze(&self, nodes: &[NodeIndex], now_ns: u64) -> Option<BTreeMap<NodeIndex, ClockMap>> {
        nodes.iter().map(|node| Some((*node, self.nodes[node.at()].clock.map(now_ns)?))).collect()
    }
}
