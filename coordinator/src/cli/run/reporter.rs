//! What a run shows and keeps: a thread of its own, so that a slow disk or terminal never holds the
//! conductor. Each point is stored, written and shown as it ends; nothing that was measured waits
//! for the end.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::mpsc::Receiver,
};

use iofleet_shared::{clock, ids::NodeIndex, wire::Removal};

use crate::{
    aggregate,
    cli::Failure,
    events::{Ending, NodeReady, PointOutcome, RunEvent},
    exit::Exit,
    json,
    live::Live,
    plan::Plan,
    record::{CampaignRecord, CampaignStatus, Histogram, PointRecord, PointStatus},
    report::Table,
    scenario::{FleetConfig, Scenario, require::Requirement, thresholds::Thresholds},
    store::Store,
    verdict::{self, Known},
};

/// Where a run's results go.
#[derive(Debug)]
pub(in crate::cli) struct Outputs {
    pub(in crate::cli) store: Store,
    pub(in crate::cli) json: Option<PathBuf>,
    /// Rows on standard output.
    pub(in crate::cli) table: bool,
    /// A live line on standard error.
    pub(in crate::cli) live: bool,
    pub(in crate::cli) binary: bool,
}

/// What the reporter leaves.
#[derive(Debug)]
pub(in crate::cli) struct Reported {
    pub(in crate::cli) record: CampaignRecord,
    pub(in crate::cli) exit: Exit,
    /// What is left on the target, for the last lines.
    pub(in crate::cli) left: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub(in crate::cli) struct Reporter {
    plan: Plan,
    fleet: FleetConfig,
    require: Vec<Requirement>,
    thresholds: Thresholds,
    nodes: Vec<NodeReady>,
    record: CampaignRecord,
    outputs: Outputs,
    table: Option<Table>,
    live: Option<Live>,
    exit: Exit,
    left: Option<String>,
}

/// Prints to standard output.
pub(in crate::cli) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let printed = writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush());
    super::super::printed(printed).map(drop)
}

/// Says something on standard error; with that gone there is nobody to tell.
pub(in crate::cli) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "iofleet: {text}");
}

impl Reporter {
    pub(in crate::cli) fn new(
        plan: Plan,
        scenario: &Scenario,
        record: CampaignRecord,
        outputs: Outputs,
    ) -> Self {
        let table = outputs.table.then(|| {
            let swept = plan.points.first().map(|point| point.spec.swept.clone());
            let keys: Vec<String> =
                swept.unwrap_or_default().into_iter().map(|(key, _)| key).collect();
            Table::new(&keys, outputs.binary)
        });
        let live = outputs.live.then(Live::default);
        Self {
            plan,
            fleet: scenario.fleet.clone(),
            require: scenario.require.clone(),
            thresholds: scenario.thresholds,
            nodes: Vec::new(),
            record,
            outputs,
            table,
            live,
            exit: Exit::Done,
            left: None,
        }
    }

    /// Takes events until the campaign's end.
    pub(in crate::cli) fn run(mut self, events: &Receiver<RunEvent>) -> Reported {
        while let Ok(event) = events.recv() {
            self.take(event);
        }
        Reported { record: self.record, exit: self.exit, left: self.left }
    }

    fn take(&mut self, event: RunEvent) {
        match event {
            RunEvent::FleetReady(nodes) => self.fleet_ready(nodes),
            RunEvent::PointArming { index } => {
                let text = self.describe(index);
                self.with_live(|live, err| live.arming(text, err));
            }
            RunEvent::PointStarted { .. } => {
                self.with_live(|live, err| live.started(clock::monotonic_ns(), err));
            }
            RunEvent::Progress { node, bytes, oldest_ns } => {
                let now_ns = clock::monotonic_ns();
                self.with_live(|live, err| live.progress(node, bytes, oldest_ns, now_ns, err));
            }
            RunEvent::Warning(text) => self.say(&text),
            RunEvent::PointEnded(outcome) => self.point_ended(&outcome),
            RunEvent::PointSkipped { index, why } => {
                if let Some(point) = self.plan.points.get(index as usize) {
                    let record = aggregate::skipped(point, &why);
                    self.keep(record, &[]);
                }
            }
            RunEvent::Cleaned(removals) => self.cleaned(&removals),
            RunEvent::Ended(ending) => self.ended(ending),
        }
    }

    fn fleet_ready(&mut self, nodes: Vec<NodeReady>) {
        self.record.nodes = nodes.iter().map(aggregate::node).collect();
        self.nodes = nodes;
        let begun = self.outputs.store.begin(&self.record);
        self.check(begun);
        if let Some(table) = &self.table {
            let header = table.header();
            self.show(&header);
        }
    }

    fn point_ended(&mut self, outcome: &PointOutcome) {
        let Some(plan) = self.plan.points.get(outcome.index as usize) else { return };
        let (record, histograms) = aggregate::assemble(plan, &self.fleet, &self.nodes, outcome);
        self.keep(record, &histograms);
    }

    /// Stores a point, writes the JSON anew, shows the row.
    fn keep(&mut self, point: PointRecord, histograms: &[Histogram]) {
        self.exit = self.exit.worse(aggregate::exit_of(&point));
        let stored = self.outputs.store.add_point(&self.record.campaign.id, &point, histograms);
        self.check(stored);
        if let Some(table) = &self.table {
            let row = table.row(&point);
            self.with_live(Live::clear);
            self.show(&row);
        }
        if let Some(why) = point.why.as_ref().filter(|_| point.status != PointStatus::Ok) {
            let text = format!("point {} {}: {why}", point.index, point.status.word());
            self.say(&text);
        }
        self.record.points.push(point);
        self.judge(true);
        self.write_json();
    }

    fn judge(&mut self, running: bool) {
        let known = Known { storage_bytes_per_s: self.fleet.storage_limit, running };
        verdict::judge_all(&mut self.record.points, known, &self.thresholds);
    }

    fn cleaned(&mut self, removals: &[(NodeIndex, Removal)]) {
        let mut left: Vec<&str> = removals
            .iter()
            .flat_map(|(_, removal)| removal.left.iter().map(String::as_str))
            .collect();
        left.sort_unstable();
        left.dedup();
        if !left.is_empty() {
            self.left = Some(format!("left on the target:\n  {}", left.join("\n  ")));
        }
    }

    fn ended(&mut self, ending: Ending) {
        self.with_live(Live::clear);
        self.exit = self.exit.worse(ending.exit);
        if let Some(message) = &ending.message {
            self.say(message);
        }
        let whole = self.record.points.iter().all(|point| point.status == PointStatus::Ok);
        self.record.campaign.status = if ending.exit == Exit::Interrupted {
            CampaignStatus::Interrupted
        } else if whole && self.record.points.len() == self.plan.points.len() {
            CampaignStatus::Complete
        } else {
            CampaignStatus::Partial
        };
        self.record.campaign.ended = Some(aggregate::rfc3339(clock::wall()));
        self.record.campaign.message = ending.message;
        self.record.repetitions = aggregate::repetitions(&self.record.points);
        self.record.load_curves = aggregate::load_curves(&self.record.points);
        self.judge(false);
        // It goes by the verdicts.
        self.record.scaling = aggregate::scaling(&self.record.points);
        let met = aggregate::requirements(&self.require, &self.record.points);
        if met.iter().any(|demand| !demand.passed) {
            self.exit = self.exit.worse(Exit::Required);
        }
        self.record.requirements = met;
        if !self.nodes.is_empty() {
            let finished = self.outputs.store.finish(&self.record);
            self.check(finished);
            self.write_json();
        }
    }

    fn write_json(&mut self) {
        if let Some(path) = self.outputs.json.clone() {
            let written = json::write(&path, &self.record);
            self.check(written);
        }
    }

    /// A result that can't be kept is said; the campaign goes on.
    fn check<E: std::error::Error>(&mut self, result: Result<(), E>) {
        if let Err(error) = result {
            self.exit = self.exit.worse(Exit::Fault);
            let text = iofleet_shared::transport::error_chain(&error);
            self.say(&text);
        }
    }

    /// A row that can't be shown is said once; the campaign goes on.
    fn show(&mut self, text: &str) {
        if let Err(failure) = print(text) {
            self.table = None;
            self.exit = self.exit.worse(failure.exit);
            self.say(&failure.text);
        }
    }

    fn describe(&self, index: u32) -> String {
        let point = self.plan.points.get(index as usize);
        let stage = point.map_or("", |point| point.spec.stage.as_str());
        let threads = point.map_or(0, |point| point.threads);
        let points = self.plan.points.len();
        format!("point {index} ({} of {points}): {stage}, {threads} threads", index + 1)
    }

    fn say(&mut self, text: &str) {
        self.with_live(Live::clear);
        complain(text);
    }

    fn with_live(&mut self, act: impl FnOnce(&mut Live, &mut dyn Write)) {
        if let Some(live) = &mut self.live {
            act(live, &mut io::stderr().lock());
        }
    }
}
