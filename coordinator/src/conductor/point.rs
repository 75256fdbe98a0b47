//! One point, from arming to its outcome.
//!
//! ```text
//! Arming ──all armed──▶ Clocks ──maps good──▶ Starting ──all ready──▶ Running ──all reported──▶ Settling ──▶ next point
//!   │ refused              │                     │ not in time           │ one did not start        (clock samples)
//!   └──────────────────────┴─────────────────────┴───── Stopping ◀───────┘
//!                                                   └──▶ Arming once more, or the point has failed
//! ```

use std::collections::{BTreeMap, BTreeSet};

use iofleet_shared::{
    clock::ClockMap,
    ids::{NodeIndex, PointId},
    limits::{
        ARM_WITHIN, CLOCK_UNCERTAINTY_NS_MAX, GIVE_UP_AFTER, LEASE, SILENT_AFTER, STORE_WITHIN,
        as_ns,
    },
    stats::ThreadEnd,
    wire::{Command, Delivery, Notice, RefusalKind},
};

use super::{
    CLOCKS_WITHIN_NS, Conductor, Now, Stage,
    node::{LAST_BURST, POINT_BURST},
    part::{Answer, NodeRun},
    words,
};
use crate::{
    barrier::start_margin_ns,
    events::{NodeOutcome, PointOutcome, RunEvent},
    exit::Exit,
    scenario::OnFault,
};

/// How long the clock samples after a point may take.
const SETTLE_WITHIN_NS: u64 = 20_000_000;

/// A point that is under way.
#[derive(Debug)]
pub(super) struct PointRun {
    id: PointId,
    step: Step,
    nodes: BTreeMap<NodeIndex, NodeRun>,
    t0_fleet_ns: u64,
    t0_wall: std::time::SystemTime,
    /// End of the measured phase of a point by time.
    planned_end_ns: Option<u64>,
    interrupted: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Arming {
        by_ns: u64,
    },
    Clocks {
        by_ns: u64,
    },
    Starting {
        commit_by_ns: u64,
    },
    Running,
    /// All have reported; a last look at the clocks.
    Settling {
        by_ns: u64,
    },
    /// The point is taken back; then it is tried once more or has failed.
    Stopping {
        by_ns: u64,
        why: String,
        again: bool,
    },
}

impl PointRun {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.step, Step::Running)
    }

    pub(super) fn has(&self, node: NodeIndex) -> bool {
        self.nodes.contains_key(&node)
    }

    pub(super) fn deadline_ns(&self) -> u64 {
        match self.step {
            Step::Arming { by_ns }
            | Step::Clocks { by_ns }
            | Step::Settling { by_ns }
            | Step::Stopping { by_ns, .. } => by_ns,
            Step::Starting { commit_by_ns } => commit_by_ns,
            Step::Running => u64::MAX,
        }
    }

    fn all(&self, what: impl Fn(&NodeRun) -> bool) -> bool {
        self.nodes.values().all(what)
    }
}

impl Conductor {
    /// Begins the first point from this index on that can be begun; skips the others; ends the
    /// campaign after the last one.
    pub(super) fn next_point(&mut self, index: u32, now: Now) {
        let points = u32::try_from(self.config.plan.points.len()).unwrap_or(u32::MAX);
        for index in index..points {
            match self.arm(PointId { index, attempt: 0 }, now) {
                Ok(()) => return,
                Err(why) => self.skip(index, why),
            }
        }
        self.clean(now.ns);
    }

    fn skip(&mut self, index: u32, why: String) {
        self.emit(RunEvent::PointSkipped { index, why });
        self.ending.exit = self.ending.exit.worse(Exit::Partial);
    }

    /// Arms the workers that live; or says why the point can't be begun.
    fn arm(&mut self, id: PointId, now: Now) -> Result<(), String> {
        let point = &self.config.plan.points[id.index as usize];
        let mut nodes = BTreeMap::new();
        for index in point.active.iter().filter(|node| self.nodes[node.at()].lives()) {
            let dir = self.dataset(*index);
            if let Some(plan) = point.worker_plan(*index, dir, &self.manifest, id.attempt)? {
                nodes.insert(*index, NodeRun::new(plan));
            }
        }
        if nodes.is_empty() {
            return Err("none of its workers is left".to_owned());
        }
        self.emit(RunEvent::PointArming { index: id.index });
        for (index, run) in &nodes {
            self.manifest.begin(&run.plan);
            self.nodes[index.at()].start_burst(POINT_BURST);
            self.send(*index, Command::Arm(Box::new(run.plan.clone())));
        }
        let by_ns = now.ns.saturating_add(as_ns(ARM_WITHIN + GIVE_UP_AFTER));
        self.stage = Stage::Points(Box::new(PointRun {
            id,
            step: Step::Arming { by_ns },
            nodes,
            t0_fleet_ns: now.ns,
            t0_wall: now.wall,
            planned_end_ns: None,
            interrupted: false,
        }));
        Ok(())
    }

    pub(super) fn point_notice(&mut self, index: NodeIndex, notice: &Notice) {
        let Stage::Points(run) = &mut self.stage else { return };
        let (point, answer) = match notice {
            Notice::Armed { point, .. } => (point, Answer::Armed),
            Notice::Ready { point, .. } => (point, Answer::Ready),
            Notice::NotStarted { point, .. } => (point, Answer::NotStarted),
            Notice::Claimed(_)
            | Notice::Inspected(_)
            | Notice::NetListening { .. }
            | Notice::NetMeasured { .. }
            | Notice::Observing(_)
            | Notice::Observed(_)
            | Notice::Refused(_)
            | Notice::Released(_) => return,
        };
        if *point == run.id
            && let Some(node) = run.nodes.get_mut(&index)
        {
            node.answer = answer;
            if let Notice::NotStarted { why, .. } = notice
                && matches!(run.step, Step::Starting { .. } | Step::Running)
            {
                let why = format!("{}: {why}", self.nodes[index.at()].name);
                self.take_back(why, true);
            }
        }
    }

    pub(super) fn point_refused(&mut self, index: NodeIndex, kind: RefusalKind, text: &str) {
        let name = self.nodes[index.at()].name.clone();
        let Stage::Points(run) = &mut self.stage else { return };
        let stopping = matches!(run.step, Step::Stopping { .. });
        if run.nodes.get(&index).is_some_and(|node| node.lost.is_some()) {
            // It answers what was said before it was given up.
            return;
        }
        if let Some(node) = run.nodes.get_mut(&index) {
            node.answer = Answer::NotStarted;
        }
        if kind == RefusalKind::Phase && stopping {
            // It had nothing to stop.
            return;
        }
        let text = format!("{name}: {text}");
        if stopping { self.warn(text) } else { self.take_back(text, false) }
    }

    pub(super) fn point_delivery(&mut self, index: NodeIndex, delivery: Delivery) {
        let Stage::Points(run) = &mut self.stage else { return };
        let point = delivery.point;
        let taken_back = matches!(run.step, Step::Stopping { .. });
        let Some(node) = run.nodes.get_mut(&index).filter(|_| point == run.id) else { return };
        if node.lost.is_some() {
            return;
        }
        match node.take(delivery) {
            Ok(()) => {
                let through = node.next_number - 1;
                if taken_back && node.report.is_some() {
                    node.answer = Answer::NotStarted;
                }
                self.send(index, Command::Acknowledge { point, through });
            }
            Err(why) => self.lose(index, &why),
        }
    }

    /// A worker is out of the campaign, for good.
    pub(super) fn lose(&mut self, index: NodeIndex, why: &str) {
        let node = &mut self.nodes[index.at()];
        if node.lost.is_some() {
            return;
        }
        node.lost = Some(why.to_owned());
        let text = format!("{} is lost: {why}", node.name);
        self.warn(text);
        self.ending.exit = self.ending.exit.worse(Exit::Partial);
        let Stage::Points(run) = &mut self.stage else { return };
        let Some(part) = run.nodes.get_mut(&index) else { return };
        if part.report.is_none() {
            part.lost = Some(why.to_owned());
        }
        match run.step {
            Step::Arming { .. } | Step::Clocks { .. } | Step::Starting { .. } => {
                let name = &self.nodes[index.at()].name;
                let why = format!("{name} was lost before the start: {why}");
                self.take_back(why, true);
            }
            Step::Running | Step::Settling { .. } | Step::Stopping { .. } => {}
        }
    }

    /// Takes the point back from all workers: before T0 they dismiss their crews, after it they
    /// end what is in flight. `again`: it is tried once more if this was the first try.
    fn take_back(&mut self, why: String, again: bool) {
        let Stage::Points(run) = &mut self.stage else { return };
        let again = again && run.id.attempt == 0 && !run.interrupted;
        let point = run.id;
        let to_stop: Vec<NodeIndex> = run
            .nodes
            .iter()
            .filter(|(_, node)| !node.is_out() && node.answer != Answer::NotStarted)
            .map(|(index, _)| *index)
            .collect();
        run.step = Step::Stopping { by_ns: 0, why, again };
        for index in to_stop {
            self.send(index, Command::Stop { point });
        }
    }

    pub(super) fn interrupt_point(&mut self, now: Now) {
        let Stage::Points(run) = &mut self.stage else { return };
        run.interrupted = true;
        if !matches!(run.step, Step::Running | Step::Settling { .. }) {
            self.take_back("interrupted before it started".to_owned(), false);
            return;
        }
        let point = run.id;
        let by_ns = now.ns.saturating_add(as_ns(STORE_WITHIN));
        run.planned_end_ns = Some(by_ns);
        let still: Vec<NodeIndex> =
            run.nodes.iter().filter(|(_, node)| !node.is_out()).map(|(index, _)| *index).collect();
        for index in still {
            self.send(index, Command::Stop { point });
        }
    }

    pub(super) fn advance_point(&mut self, now: Now) {
        self.watch_silence(now);
        let Stage::Points(run) = &self.stage else { return };
        match run.step.clone() {
            Step::Arming { by_ns } => self.advance_arming(by_ns, now),
            Step::Clocks { by_ns } => self.advance_clocks(by_ns, now),
            Step::Starting { commit_by_ns } => self.advance_starting(commit_by_ns, now),
            Step::Running => self.advance_running(now),
            Step::Settling { by_ns } => {
                let bursting = run.nodes.keys().any(|node| {
                    let node = &self.nodes[node.at()];
                    node.lives() && node.burst > 0
                });
                if !bursting || now.ns >= by_ns {
                    self.conclude(None, now);
                }
            }
            Step::Stopping { by_ns, why, again } => self.advance_stopping(by_ns, why, again, now),
        }
    }

    fn advance_arming(&mut self, by_ns: u64, now: Now) {
        let Stage::Points(run) = &mut self.stage else { return };
        if run.all(|node| node.answer == Answer::Armed) {
            run.step = Step::Clocks { by_ns: now.ns.saturating_add(CLOCKS_WITHIN_NS) };
            self.advance_clocks(now.ns.saturating_add(CLOCKS_WITHIN_NS), now);
        } else if now.ns >= by_ns {
            let late = self.late(Answer::Armed, "was not armed in time");
            self.take_back(late, false);
        }
    }

    /// Who has not given this answer, with what that means.
    fn late(&self, wanted: Answer, text: &str) -> String {
        let Stage::Points(run) = &self.stage else { return String::new() };
        let late = run.nodes.iter().filter(|(_, node)| node.answer != wanted);
        let named: Vec<(String, String)> =
            late.map(|(index, _)| (self.nodes[index.at()].name.clone(), text.to_owned())).collect();
        words::group(&named)
    }

    fn advance_clocks(&mut self, by_ns: u64, now: Now) {
        let Stage::Points(run) = &self.stage else { return };
        let indexes: Vec<NodeIndex> = run.nodes.keys().copied().collect();
        let maps = self.freeze(&indexes, now.ns);
        let good = |map: &ClockMap| map.uncertainty_ns <= CLOCK_UNCERTAINTY_NS_MAX;
        let bursting = indexes.iter().any(|node| self.nodes[node.at()].burst > 0);
        match maps {
            Some(maps) if (!bursting && maps.values().all(good)) || now.ns >= by_ns => {
                self.start(maps, now);
            }
            None if now.ns >= by_ns => {
                let why = "a worker's clock could not be compared: it answers no pings".to_owned();
                self.take_back(why, true);
            }
            _ => {}
        }
    }

    fn start(&mut self, maps: BTreeMap<NodeIndex, ClockMap>, now: Now) {
        let trip = maps.keys().filter_map(|node| self.nodes[node.at()].clock.half_trip_ns()).max();
        let Stage::Points(run) = &mut self.stage else { return };
        let threads = run.nodes.values().map(|node| node.plan.threads.len()).max().unwrap_or(0);
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        let trip = trip.unwrap_or(0);
        let margin = start_margin_ns(trip, threads, run.id.attempt);
        run.t0_fleet_ns = now.ns.saturating_add(margin);
        run.t0_wall = now.wall + std::time::Duration::from_nanos(margin);
        // The commit needs a trip, and a worker takes none that comes in the last millisecond.
        let commit_by_ns = run.t0_fleet_ns.saturating_sub(2 * trip + 3_000_000);
        run.step = Step::Starting { commit_by_ns };
        let (point, t0_fleet_ns) = (run.id, run.t0_fleet_ns);
        for (index, map) in maps {
            if let Some(node) = run.nodes.get_mut(&index) {
                node.map = map;
            }
            let command = Command::Start { point, t0_fleet_ns, map };
            self.effects.push_back(super::Effect::Send(index, Box::new(command)));
        }
    }

    fn advance_starting(&mut self, commit_by_ns: u64, now: Now) {
        let Stage::Points(run) = &mut self.stage else { return };
        let point = run.id;
        if run.all(|node| node.answer == Answer::Ready) && now.ns <= run.t0_fleet_ns {
            run.step = Step::Running;
            let indexes: Vec<NodeIndex> = run.nodes.keys().copied().collect();
            let amount =
                run.nodes.values().next().map(|node| (node.plan.amount, node.plan.ramp_ns));
            if let Some((iofleet_shared::work::Amount::Time { duration_ns, .. }, ramp_ns)) = amount
            {
                run.planned_end_ns = Some(run.t0_fleet_ns + ramp_ns + duration_ns);
            }
            for index in indexes {
                self.send(index, Command::Commit { point });
            }
            self.emit(RunEvent::PointStarted { index: point.index });
        } else if now.ns >= commit_by_ns {
            let late = self.late(Answer::Ready, "was not ready in time for the start");
            self.take_back(late, true);
        }
    }

    fn advance_running(&mut self, now: Now) {
        let Stage::Points(run) = &mut self.stage else { return };
        if run.interrupted && run.planned_end_ns.is_some_and(|by| now.ns >= by) {
            for node in run.nodes.values_mut().filter(|node| !node.is_out()) {
                node.lost = Some("did not report in time after the interrupt".to_owned());
            }
        }
        if run.all(NodeRun::is_out) {
            run.step = Step::Settling { by_ns: now.ns.saturating_add(SETTLE_WITHIN_NS) };
            let indexes: Vec<NodeIndex> = run.nodes.keys().copied().collect();
            for index in indexes {
                self.nodes[index.at()].start_burst(LAST_BURST);
            }
        }
    }

    fn advance_stopping(&mut self, by_ns: u64, why: String, again: bool, now: Now) {
        let Stage::Points(run) = &mut self.stage else { return };
        let id = run.id;
        if by_ns == 0 {
            // The wait begins with the first look at the clock after the decision.
            let by_ns = now.ns.saturating_add(as_ns(GIVE_UP_AFTER));
            run.step = Step::Stopping { by_ns, why, again };
            return self.advance_point(now);
        }
        let out = |node: &NodeRun| node.is_out() || node.answer == Answer::NotStarted;
        if !run.all(out) && now.ns < by_ns {
            return;
        }
        let silent: Vec<NodeIndex> =
            run.nodes.iter().filter(|(_, node)| !out(node)).map(|(index, _)| *index).collect();
        for index in silent {
            self.lose(index, "did not answer to the end of a point");
        }
        if !again {
            return self.conclude(Some(why), now);
        }
        self.warn(format!("point {}: {why}; it is tried once more", id.index));
        if let Err(why) = self.arm(PointId { attempt: id.attempt + 1, ..id }, now) {
            self.skip(id.index, why);
            self.next_point(id.index + 1, now);
        }
    }

    /// Names the silent, and gives up those that stay silent.
    fn watch_silence(&mut self, now: Now) {
        let Stage::Points(run) = &self.stage else { return };
        let waits: Vec<NodeIndex> = run
            .nodes
            .iter()
            .filter(|(index, node)| !node.is_out() && self.nodes[index.at()].lives())
            .map(|(index, _)| *index)
            .collect();
        let silent: BTreeSet<NodeIndex> =
            waits.iter().copied().filter(|node| self.nodes[node.at()].is_silent(now.ns)).collect();
        // When no worker at all is heard, it is our own link that is cut.
        let own_link = self.nodes.len() > 1 && !self.any_heard(now.ns);
        let patience = if own_link { LEASE } else { GIVE_UP_AFTER };
        let from_ns = run.planned_end_ns.unwrap_or(0).max(self.link_back_ns);
        let mut named = Vec::new();
        for index in &silent {
            let node = &mut self.nodes[index.at()];
            if !node.silence_named {
                node.silence_named = true;
                named.push((node.name.clone(), format!("silent for {} s", SILENT_AFTER.as_secs())));
            }
        }
        if !named.is_empty() {
            self.warn(words::group(&named));
        }
        for index in silent {
            let heard_ns = self.nodes[index.at()].heard_ns;
            if now.ns >= from_ns.max(heard_ns).saturating_add(as_ns(patience)) {
                let seconds = now.ns.saturating_sub(heard_ns) / 1_000_000_000;
                self.lose(index, &format!("silent for {seconds} s"));
            }
        }
    }

    /// The point has ended: its outcome goes to the reporters, and the next one begins.
    fn conclude(&mut self, failed: Option<String>, now: Now) {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        let Stage::Points(run) = stage else {
            self.stage = stage;
            return;
        };
        let index = run.id.index;
        for node in run.nodes.values() {
            if let Some(report) = &node.report {
                self.mount_hung |=
                    report.threads.iter().any(|thread| thread.end == ThreadEnd::Stuck);
                self.manifest.record(&node.plan, &report.threads);
            }
        }
        let (interrupted, outcome) = (run.interrupted, self.outcome(*run, failed, now));
        let fault = outcome.nodes.values().any(|node| node.lost.is_some());
        self.emit(RunEvent::PointEnded(Box::new(outcome)));
        if interrupted {
            self.clean(now.ns);
        } else if fault
            && self.config.plan.points[index as usize].spec.params.on_fault == OnFault::Abort
        {
            let rest = self.config.plan.points.len();
            for later in index + 1..u32::try_from(rest).unwrap_or(u32::MAX) {
                self.skip(
                    later,
                    "an earlier point lost a worker, and `on_fault` is \"abort\"".to_owned(),
                );
            }
            self.clean(now.ns);
        } else {
            self.next_point(index + 1, now);
        }
    }

    fn outcome(&self, run: PointRun, failed: Option<String>, now: Now) -> PointOutcome {
        let mut nodes: BTreeMap<NodeIndex, NodeOutcome> = BTreeMap::new();
        for (index, node) in run.nodes {
            let NodeRun { map, intervals, ticks, samples, report, lost, .. } = node;
            let residual_ns = self.nodes[index.at()].clock.residual_ns(&map, now.ns);
            let outcome =
                NodeOutcome { intervals, ticks, samples, report, lost, clock: map, residual_ns };
            nodes.insert(index, outcome);
        }
        // Nodes that were lost in an earlier point had work in this one too.
        let point = &self.config.plan.points[run.id.index as usize];
        for index in &point.active {
            if let Some(why) = &self.nodes[index.at()].lost {
                nodes.entry(*index).or_insert_with(|| NodeOutcome {
                    intervals: Vec::new(),
                    ticks: BTreeMap::new(),
                    samples: Vec::new(),
                    report: None,
                    lost: Some(why.clone()),
                    clock: ClockMap::IDENTITY,
                    residual_ns: None,
                });
            }
        }
        PointOutcome {
            index: run.id.index,
            nodes,
            t0_wall: run.t0_wall,
            t0_fleet_ns: run.t0_fleet_ns,
            observers: Vec::new(),
            interrupted: run.interrupted,
            failed,
        }
    }
}
