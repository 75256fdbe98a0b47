//! What the machine decided, carried out. Nothing here blocks: what might is handed to a helper
//! thread, and its answer comes back as an event.

use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, TryRecvError},
    },
    time::Duration,
};

use iofleet_shared::{
    clock::monotonic_ns,
    limits::{ARM_WITHIN, TARGET_CALL_WITHIN},
    stats::{ColdStart, HoleCheck},
    transport::CLOSE_DONE,
    wire::{NetOrder, Notice, Refusal, RefusalKind, Removal},
    work::{DatasetDir, TargetSpec, WorkerPlan},
};
use quinn::VarInt;
use tokio::sync::mpsc;

use super::{Daemon, Happening, helpers::NoAnswer};
use crate::{
    crew::{Crew, CrewError, CrewEvent, CrewStatus},
    host::{
        CpuTimes,
        links::{self, Counters, SYSFS},
    },
    machine::{Effect, Event, Ticket},
    netbench::{Measured, Reception},
    sampler::{self, Sampler, Sources},
};

/// Events of a crew that may wait for the loop.
const CREW_EVENTS_QUEUED: usize = 64;
/// How much longer than its own time a measurement of the network may take.
const NET_BEYOND: Duration = Duration::from_secs(20);
/// Shortest time between two samples of a machine that is observed.
const OBSERVE_NS_MIN: u64 = 10_000_000;
/// How often free space is looked at while a point writes.
const LOOK_AT_SPACE_EVERY: Duration = Duration::from_millis(250);
/// How long removal waits for a crew that leaves and closes its files.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// A crew, and what the daemon adds to its report.
pub(super) struct CrewSlot {
    pub(super) crew: Crew,
    pub(super) cpu_at_t0: Option<CpuTimes>,
    pub(super) sampler: Sampler,
    /// Where it writes, if it does.
    writes_to: Option<DatasetDir>,
    /// Ends the watch over free space when it is dropped.
    watch: Option<std::sync::mpsc::Sender<()>>,
    /// Why this daemon stopped it.
    pub(super) stopped: Option<String>,
    /// What was looked for in its files.
    pub(super) holes: Option<HoleCheck>,
    /// How caches were dropped before it.
    pub(super) cold: Option<ColdStart>,
    /// Closed when the crew's threads have left.
    gone: std::sync::mpsc::Receiver<()>,
}

/// What arming on a helper thread yields.
type ArmedCrew = (Crew, Sampler, Looked, mpsc::Receiver<CrewEvent>, u64);
/// What was seen and done to its files.
type Looked = (Option<HoleCheck>, Option<ColdStart>);

impl Daemon {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { peer, notice } => {
                if let Notice::Inspected(facts) = &notice {
                    self.network.clone_from(&facts.network);
                }
                if let Some(link) = self.links.get(&peer) {
                    link.notify(notice);
                }
            }
            Effect::Inspect { ticket, spec } => self.inspect(ticket, spec),
            Effect::Observe { ticket, interval_ns, interfaces } => {
                self.observe(ticket, interval_ns, &interfaces);
            }
            Effect::NetListen { ticket, token } => self.net_listen(ticket, token),
            Effect::NetRun { ticket, order } => self.net_run(ticket, order),
            Effect::Arm { ticket, plan } => self.arm(ticket, plan),
            Effect::SetStart { ticket, t0_worker_ns } => {
                if let Some(slot) = self.crews.get(&ticket) {
                    slot.crew.set_start(t0_worker_ns);
                    slot.sampler.start(t0_worker_ns);
                }
            }
            Effect::CommitCrew { ticket } => {
                if self.crews.get(&ticket).is_some_and(|slot| !slot.crew.commit()) {
                    self.handle(Event::CommitLate { ticket });
                }
            }
            Effect::Began { ticket } => {
                let now = self.host.cpu_times();
                if let Some(slot) = self.crews.get_mut(&ticket) {
                    slot.cpu_at_t0 = now;
                }
                self.watch_space(ticket);
            }
            Effect::StopCrew { ticket } => {
                if let Some(slot) = self.crews.get(&ticket) {
                    slot.crew.stop();
                }
            }
            Effect::DropCrew { ticket } => self.drop_crew(ticket),
            Effect::Settle { ticket, dir, flush } => self.settle(ticket, dir, flush),
            Effect::Clean { ticket, keep } => self.clean(ticket, keep),
            Effect::Close { peer, reason } => {
                if let Some(link) = self.links.get(&peer) {
                    link.close(&reason);
                }
            }
            Effect::CloseAll { reason } => {
                self.owes_goodbye = !self.links.is_empty();
                self.endpoint.close(VarInt::from_u32(CLOSE_DONE), reason.as_bytes());
            }
            Effect::Exit => self.end = Some(Ok(())),
        }
    }

    fn inspect(&mut self, ticket: Ticket, spec: TargetSpec) {
        self.min_free_milli = spec.min_free_milli;
        let path = spec.dir.path.clone();
        let targets = Arc::clone(&self.targets);
        let host = self.host.clone();
        let answer = self.helpers.call(TARGET_CALL_WITHIN, move || targets.inspect(&spec));
        self.report(async move {
            let result = answer.await.unwrap_or_else(|why| Err(no_answer(&host, &path, &why)));
            Happening::Event(Event::Inspected { ticket, result })
        });
    }

    /// Ports are read from sysfs, which does not block.
    fn observe(&mut self, ticket: Ticket, interval_ns: u64, interfaces: &[String]) {
        let result = self.begin_to_observe(ticket, interval_ns, interfaces);
        self.handle(Event::Answered { ticket, result: result.map_err(limit) });
    }

    fn begin_to_observe(
        &mut self,
        ticket: Ticket,
        interval_ns: u64,
        interfaces: &[String],
    ) -> Result<Notice, String> {
        let facts = links::of_host(Path::new(SYSFS), interfaces).map_err(|e| e.to_string())?;
        let sources = Sources {
            proc: self.host.proc().to_owned(),
            links: Some(Counters::of(Path::new(SYSFS), &facts)),
            threads: Vec::new(),
            interval_ns: interval_ns.max(OBSERVE_NS_MIN),
        };
        let (wanted, ended) = std::sync::mpsc::channel::<()>();
        let happenings = self.happenings.clone();
        sampler::observe(sources, move |sample| {
            let wanted = ended.try_recv() == Err(TryRecvError::Empty);
            wanted
                && happenings
                    .blocking_send(Happening::Event(Event::Observed { ticket, sample }))
                    .is_ok()
        })
        .map_err(|error| format!("can't start a thread to observe: {error}"))?;
        self.observer = Some(wanted);
        Ok(Notice::Observing(facts))
    }

    /// On the address on which coordinators are served; of an earlier reception nobody counts.
    fn net_listen(&mut self, ticket: Ticket, token: [u8; 16]) {
        let opened = self.endpoint.local_addr().and_then(|at| Reception::open(at.ip(), token));
        let result = match opened {
            Ok(reception) => {
                let port = reception.port();
                self.reception = Some(Arc::new(reception));
                Ok(Notice::NetListening { port })
            }
            Err(error) => Err(limit(format!("receiving from other nodes: {error}"))),
        };
        self.handle(Event::Answered { ticket, result });
    }

    fn net_run(&mut self, ticket: Ticket, order: NetOrder) {
        let Some(reception) = self.reception.clone() else {
            let result = Err(limit("a node that sends must receive first".to_owned()));
            return self.handle(Event::Answered { ticket, result });
        };
        let time = Duration::from_nanos(order.warm_ns.saturating_add(order.window_ns));
        let within = time.saturating_add(NET_BEYOND);
        let answer = self.helpers.call(within, move || reception.measure(&order));
        self.report(async move {
            let result = match answer.await {
                Ok(Ok(Measured { elapsed_ns, received })) => {
                    Ok(Notice::NetMeasured { elapsed_ns, received })
                }
                Ok(Err(text)) => Err(limit(text)),
                Err(why) => Err(limit(why.to_string())),
            };
            Happening::Event(Event::Answered { ticket, result })
        });
    }

    fn arm(&self, ticket: Ticket, plan: Box<WorkerPlan>) {
        let path = plan.dir.path.clone();
        let targets = Arc::clone(&self.targets);
        let host = self.host.clone();
        let clock = self.clock;
        let network = self.network.clone();
        let proc = host.proc().to_owned();
        let interval_ns = plan.interval_ns;
        let writes_to = plan.writes().then(|| plan.dir.clone());
        let answer = self.helpers.call(ARM_WITHIN, move || -> Result<ArmedCrew, Refusal> {
            let began_ns = monotonic_ns();
            let plan = Arc::from(plan);
            let holes = targets.look_for_holes(&plan)?;
            let cold = plan.cold.then(|| targets.drop_caches(&plan)).transpose()?;
            let opener = targets.opener(&plan)?;
            let (sender, events) = mpsc::channel(CREW_EVENTS_QUEUED);
            let alignment = targets.memory_alignment(&plan.dir);
            let open = move |at: usize| opener.open(at);
            let crew = Crew::arm(plan, Arc::new(open), clock, alignment, sender)
                .map_err(CrewError::into_refusal)?;
            let links = network.map(|network| Counters::of(Path::new(SYSFS), &network));
            let threads = crew.tids().to_vec();
            let sampler = Sampler::begin(Sources { proc, links, threads, interval_ns })
                .map_err(|error| limit(format!("sampling links and CPUs: {error}")))?;
            Ok((crew, sampler, (holes, cold), events, monotonic_ns().saturating_sub(began_ns)))
        });
        let happenings = self.happenings.clone();
        self.report(async move {
            match answer.await.unwrap_or_else(|why| Err(no_answer(&host, &path, &why))) {
                Ok((crew, sampler, (holes, cold), events, took_ns)) => {
                    let (present, gone) = std::sync::mpsc::channel();
                    tokio::spawn(forward(ticket, events, happenings, present));
                    let slot = CrewSlot {
                        crew,
                        cpu_at_t0: None,
                        sampler,
                        writes_to,
                        watch: None,
                        stopped: None,
                        holes,
                        cold,
                        gone,
                    };
                    Happening::CrewArmed { ticket, slot, took_ns }
                }
                Err(refusal) => Happening::Event(Event::Armed { ticket, result: Err(refusal) }),
            }
        });
    }

    /// Looks at the free space of what a crew writes to, on a thread of its own, until the crew is let
    /// go. A file system that does not answer is not watched meanwhile, and nothing waits for it.
    fn watch_space(&mut self, ticket: Ticket) {
        let min_free_milli = self.min_free_milli;
        let Some(slot) = self.crews.get_mut(&ticket).filter(|_| min_free_milli > 0) else { return };
        let Some(dir) = slot.writes_to.clone() else { return };
        let (watch, ended) = std::sync::mpsc::channel::<()>();
        slot.watch = Some(watch);
        let (targets, happenings) = (Arc::clone(&self.targets), self.happenings.clone());
        let started = self.helpers.spawn(move || {
            while ended.recv_timeout(LOOK_AT_SPACE_EVERY) == Err(RecvTimeoutError::Timeout) {
                match targets.too_full(&dir, min_free_milli) {
                    Ok(None) => {}
                    Ok(Some(why)) => {
                        // A loop that has ended has no crew either.
                        let _ = happenings.blocking_send(Happening::TooFull { ticket, why });
                        return;
                    }
                    Err(refusal) => tracing::warn!("free space: {}", refusal.text),
                }
            }
        });
        if let Err(error) = started {
            tracing::error!("can't start a thread to watch free space: {error}");
        }
    }

    /// Ends a crew that has filled its file system as far as it may.
    pub(super) fn too_full(&mut self, ticket: Ticket, why: String) {
        if let Some(slot) = self.crews.get_mut(&ticket) {
            tracing::warn!("{why}");
            slot.crew.stop();
            slot.stopped = Some(why);
        }
    }

    /// The crew's threads leave and close their files, which may take as long as the mount does;
    /// whoever removes files waits for that.
    fn drop_crew(&mut self, ticket: Ticket) {
        let Some(CrewSlot { crew, sampler, gone, .. }) = self.crews.remove(&ticket) else {
            return;
        };
        self.sampler = Some(Arc::new(sampler));
        let status = crew.status(monotonic_ns());
        self.last_status = CrewStatus { threads: 0, oldest_ns: 0, ..status };
        if let Err(error) = self.helpers.spawn(move || drop(crew)) {
            tracing::error!("can't start a thread to let a crew go: {error}");
        }
        self.leavers.retain(|leaver| leaver.try_recv() == Err(TryRecvError::Empty));
        self.leavers.push(gone);
    }

    /// Flushes, where there is anything to flush, and samples once more: what left the page cache by
    /// then is in the last sample.
    fn settle(&mut self, ticket: Ticket, dir: DatasetDir, flush: bool) {
        let targets = Arc::clone(&self.targets);
        // Who stops asks again, while the flush still holds its own hand on it.
        let sampler = self.sampler.clone();
        let last = sampler.clone();
        let answer = self.helpers.call(TARGET_CALL_WITHIN, move || {
            let flushed = flush.then(|| targets.sync_fs(&dir)).transpose();
            (flushed, last.map(|sampler| sampler.finish()).unwrap_or_default())
        });
        self.report(async move {
            let (took_ns, samples) = match answer.await {
                Ok((Ok(took_ns), samples)) => (took_ns, samples),
                Ok((Err(refusal), samples)) => {
                    tracing::warn!("{}", refusal.text);
                    (None, samples)
                }
                Err(why) => {
                    tracing::warn!("flushing the target's file system: {why}");
                    (None, sampler.map(|sampler| sampler.so_far()).unwrap_or_default())
                }
            };
            Happening::Event(Event::Settled { ticket, took_ns, samples })
        });
    }

    fn clean(&mut self, ticket: Ticket, keep: bool) {
        if let Some(reception) = self.reception.take() {
            reception.end();
        }
        self.observer = None;
        let targets = Arc::clone(&self.targets);
        let paths = targets.paths();
        let leavers = std::mem::take(&mut self.leavers);
        let answer = self.helpers.call(ARM_WITHIN, move || {
            wait_for(&leavers);
            targets.clean(keep)
        });
        self.report(async move {
            let removal = answer.await.unwrap_or_else(|why| {
                let left = paths.iter().map(|path| format!("{}: {why}", path.display()));
                Removal { files: 0, left: left.collect() }
            });
            Happening::Event(Event::Removed { ticket, removal })
        });
    }

    /// Brings an answer back into the loop.
    fn report(&self, answer: impl Future<Output = Happening> + Send + 'static) {
        let happenings = self.happenings.clone();
        tokio::spawn(async move {
            // A loop that has ended wants no answer.
            let _ = happenings.send(answer.await).await;
        });
    }
}

fn limit(text: String) -> Refusal {
    Refusal { kind: RefusalKind::Limit, point: None, text }
}

fn wait_for(leavers: &[std::sync::mpsc::Receiver<()>]) {
    for leaver in leavers {
        // Too late, or gone without a word: files are removed all the same.
        let _ = leaver.recv_timeout(CLOSED_WITHIN);
    }
}

async fn forward(
    ticket: Ticket,
    mut events: mpsc::Receiver<CrewEvent>,
    happenings: mpsc::Sender<Happening>,
    _present: std::sync::mpsc::Sender<()>,
) {
    while let Some(event) = events.recv().await {
        if happenings.send(Happening::Crew(ticket, event)).await.is_err() {
            return;
        }
    }
}

fn no_answer(host: &crate::host::Host, path: &str, why: &NoAnswer) -> Refusal {
    let (kind, text) = match why {
        NoAnswer::Late(within) => {
            let mount = host.mount_of_path(path.as_ref()).map_or_else(
                || path.to_owned(),
                |mount| format!("{} ({})", mount.point.display(), mount.fs_type),
            );
            let seconds = within.as_secs();
            let text = format!(
                "the mount at {mount} does not answer: nothing came back within {seconds} s"
            );
            (RefusalKind::Target, text)
        }
        NoAnswer::Thread(_) => (RefusalKind::Limit, why.to_string()),
        NoAnswer::Panicked => (RefusalKind::Internal, why.to_string()),
    };
    Refusal { kind, point: None, text }
}
