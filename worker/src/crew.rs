//! The I/O threads of a point: armed together, started at one instant, ended or given up.

use std::{
    io,
    num::NonZero,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle, Thread},
};

use iofleet_shared::{
    ids::PointId,
    limits::INTERVAL_NS_MIN,
    stats::{NodeInterval, PointReport, Tick},
    wire::{Refusal, RefusalKind},
    work::{Files, Load, OpKind, WorkerPlan},
};
use rustix::thread::set_current_timer_slack;
use tokio::sync::mpsc;

use crate::{
    arrivals::ArrivalQueue,
    collector::{Collector, Member},
    engine::EngineError,
    files::own_table,
    host::placement::bind_thread,
    io_thread::{
        self, Account, Bench, Control, Glance, Seat, Watch, Whereabouts, await_start, seat,
    },
    recorder::Inlet,
    stamp::StampClock,
    target::OpenedFiles,
};

use outfit::{Outfit, Station};

mod outfit;

/// Stack of an I/O thread; what is not touched takes no memory.
const STACK: usize = 128 << 10;
/// Stack of the collector.
const COLLECTOR_STACK: usize = 512 << 10;

/// What a crew tells the daemon, through the channel given to [`Crew::arm`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few at a time, and nearly all are intervals")]
pub enum CrewEvent {
    /// A final interval; they come in order of k, none left out.
    Interval(NodeInterval),
    /// All threads have ended or were given up. Nothing follows.
    Ended {
        /// The spread series from tick 0, by kind of operation.
        ticks: Vec<(OpKind, Vec<Tick>)>,
        /// Complete but for what the daemon adds (`syncfs_ns`, `cpu_share`).
        report: Box<PointReport>,
    },
}

/// How a running crew stands, for heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrewStatus {
    /// Threads that have not ended.
    pub threads: u32,
    /// Payload so far, provisional.
    pub bytes: u64,
    /// Age of the oldest operation in flight, 0 if there is none.
    pub oldest_ns: u64,
}

/// Why a crew could not be armed. Nothing of it is left then.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// The plan contradicts itself.
    #[error("the plan of point {point} can't be armed: {what}")]
    Plan {
        /// Which point.
        point: PointId,
        /// What is wrong.
        what: &'static str,
    },
    /// A thread was refused.
    #[error(
        "the system refused I/O thread {thread} of this worker's {of}: {source}; \
         raise its limits of processes or memory, or use fewer threads per node"
    )]
    Thread {
        /// Its place among the worker's threads, from 1.
        thread: usize,
        /// How many were asked for.
        of: usize,
        /// What the system said.
        source: io::Error,
    },
    /// A buffer was refused.
    #[error(
        "no buffer of {bytes} bytes, aligned to {alignment}, for I/O thread {thread}: {source}; \
         use smaller blocks or fewer threads per node"
    )]
    Memory {
        /// Its number in the fleet.
        thread: u32,
        /// Size of the buffer.
        bytes: u64,
        /// Its alignment.
        alignment: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The engine can't be had.
    #[error("I/O thread {thread}: {source}")]
    Engine {
        /// Its number in the fleet.
        thread: u32,
        /// Why.
        source: EngineError,
    },
    /// A mapping was refused.
    #[error("I/O thread {thread} can't map its file: {source}")]
    Mapping {
        /// Its number in the fleet.
        thread: u32,
        /// What the system said.
        source: io::Error,
    },
    /// Its files don't open as the plan says.
    #[error("{}", .0.text)]
    Refused(Refusal),
    /// Its files can't be used.
    #[error("I/O thread {thread}: {text}")]
    Files {
        /// Its number in the fleet.
        thread: u32,
        /// Why.
        text: String,
    },
    /// It can't be bound to its cores.
    #[error("I/O thread {thread} can't be bound to its core: {source}")]
    Place {
        /// Its number in the fleet.
        thread: u32,
        /// What the system said.
        source: io::Error,
    },
    /// A thread ended before it was parked.
    #[error("an I/O thread ended while it was being armed")]
    Vanished,
}

impl CrewError {
    /// What the coordinator is told.
    #[must_use]
    pub fn into_refusal(self) -> Refusal {
        if let Self::Refused(refusal) = self {
            return refusal;
        }
        Refusal { kind: RefusalKind::Limit, point: None, text: self.to_string() }
    }
}

/// The threads of one point.
///
/// Parked by [`Crew::arm`], they begin to wait for T0 by [`Crew::set_start`], and do I/O if
/// [`Crew::commit`] came before T0. A crew that is dropped before it has a T0 is dismissed; one that
/// is dropped later is stopped.
#[derive(Debug)]
pub struct Crew {
    control: Arc<Control>,
    clock: StampClock,
    glances: Vec<Glance>,
    tids: Vec<i32>,
    threads: Vec<Thread>,
}

impl Crew {
    /// Starts the threads of `plan` and returns when all are parked, their files opened by `open`,
    /// their buffers filled and their memory touched. The stamp clock is calibrated anew.
    ///
    /// Blocks for as long as that takes. `events` should have room for some intervals; when it is
    /// full, intervals are held back here.
    ///
    /// # Errors
    /// When the plan contradicts itself, files don't open, or the system refuses threads or memory.
    /// All that was
    /// started has ended again then.
    pub fn arm(
        plan: Arc<WorkerPlan>,
        open: OpenFiles,
        mut clock: StampClock,
        memory_alignment: usize,
        events: mpsc::Sender<CrewEvent>,
    ) -> Result<Self, CrewError> {
        check(&plan)?;
        clock.refine();
        let outfit = |at| {
            let open = Arc::clone(&open);
            let outfit = move |station: &Station<'_>| {
                let opened = open(at).map_err(CrewError::Refused)?;
                station.outfit(opened)
            };
            Box::new(outfit) as MakeOutfit
        };
        let outfits = (0..plan.threads.len()).map(outfit).collect();
        let camp = Camp { plan, clock, memory_alignment };
        let crew = Self::muster(camp, outfits, events);
        // Not before: it may own descriptors, and must not end in the table of another thread.
        drop(open);
        crew
    }

    fn muster(
        camp: Camp,
        outfits: Vec<MakeOutfit>,
        events: mpsc::Sender<CrewEvent>,
    ) -> Result<Self, CrewError> {
        let cores = thread::available_parallelism().map_or(1, |cores| count(cores.get()));
        let control = Arc::new(Control::new(count(outfits.len()), cores));
        let arrivals = match camp.plan.load {
            Load::Open(arrivals) => Some(Arc::new(ArrivalQueue::new(&arrivals))),
            Load::Closed { .. } => None,
        };
        let clock = camp.clock;
        let handles = Vec::with_capacity(outfits.len());
        let mut mustering = Mustering { camp, arrivals, control, handles };
        match mustering.gather(outfits, events) {
            Ok((glances, tids)) => {
                let Mustering { control, handles, .. } = mustering;
                // Threads that are stuck are never joined, and so none is.
                let threads = handles.iter().map(|handle| handle.thread().clone()).collect();
                Ok(Self { control, clock, glances, tids, threads })
            }
            Err(error) => {
                mustering.dismiss();
                Err(error)
            }
        }
    }

    /// The threads begin to sleep towards T0, an instant of this machine's monotonic clock.
    /// Only the first T0 counts.
    pub fn set_start(&self, t0_worker_ns: u64) {
        self.control.set_t0(t0_worker_ns);
        self.wake();
    }

    /// The start is agreed on. Says whether that came in time: at T0 the crew decides, as one,
    /// whether there is any I/O.
    pub fn commit(&self) -> bool {
        self.control.commit()
    }

    /// Before T0 the threads leave without any I/O; later each after its operation in flight, which
    /// is awaited for as long as the plan says. A final fsync is left out. [`CrewEvent::Ended`] comes
    /// in every case.
    pub fn stop(&self) {
        self.control.stop();
        self.wake();
    }

    /// Its I/O threads, as the kernel numbers them.
    #[must_use]
    pub fn tids(&self) -> &[i32] {
        &self.tids
    }

    /// How the crew stands at `now_ns` of the monotonic clock.
    #[must_use]
    pub fn status(&self, now_ns: u64) -> CrewStatus {
        let mut status = CrewStatus::default();
        for glance in &self.glances {
            status.bytes += glance.bytes();
            match glance.whereabouts() {
                Whereabouts::AtWork => status.threads += 1,
                Whereabouts::InCall(since) => {
                    status.threads += 1;
                    let age_ns = now_ns.saturating_sub(self.clock.to_ns(since));
                    status.oldest_ns = status.oldest_ns.max(age_ns);
                }
                Whereabouts::Ended | Whereabouts::Taken => {}
            }
        }
        status
    }

    fn wake(&self) {
        self.threads.iter().for_each(Thread::unpark);
        self.control.wake_collector();
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if self.control.t0().is_none() && !self.control.is_stopped() {
            self.control.dismiss();
        } else {
            self.control.stop();
        }
        self.wake();
    }
}

/// Opens the files of the thread at a place of the plan; called on that thread.
pub type OpenFiles = Arc<dyn Fn(usize) -> Result<OpenedFiles, Refusal> + Send + Sync>;

/// What makes a thread's outfit, on that thread, so that its memory is near it.
type MakeOutfit = Box<dyn FnOnce(&Station<'_>) -> Result<Outfit, CrewError> + Send>;

/// What all threads of a crew are armed from.
#[derive(Debug, Clone)]
struct Camp {
    plan: Arc<WorkerPlan>,
    clock: StampClock,
    memory_alignment: usize,
}

/// What a parked thread leaves with who armed it.
struct Parked {
    at: usize,
    watch: Watch<Account>,
    inlets: Vec<Inlet>,
    open_ns: u64,
    remarks: Vec<String>,
    /// As the kernel numbers it.
    tid: i32,
}

/// A crew that is not complete.
struct Mustering {
    camp: Camp,
    arrivals: Option<Arc<ArrivalQueue>>,
    control: Arc<Control>,
    handles: Vec<JoinHandle<()>>,
}

impl Mustering {
    fn gather(
        &mut self,
        outfits: Vec<MakeOutfit>,
        events: mpsc::Sender<CrewEvent>,
    ) -> Result<(Vec<Glance>, Vec<i32>), CrewError> {
        let of = outfits.len();
        let (tell, hear) = sync_channel(of);
        let spawned = outfits.into_iter().enumerate().try_for_each(|(at, outfit)| {
            self.recruit(at, outfit, tell.clone()).map_err(|source| CrewError::Thread {
                thread: at + 1,
                of,
                source,
            })
        });
        drop(tell);
        spawned?;
        let (members, tids) = hear_all(&hear, of)?;
        let glances = members.iter().map(|member| member.watch.glance()).collect();
        let collector = Collector::new(
            Arc::clone(&self.camp.plan),
            Arc::clone(&self.control),
            self.camp.clock,
            members,
            self.arrivals.clone(),
            events,
        );
        let handle = thread::Builder::new()
            .name("collector".to_owned())
            .stack_size(COLLECTOR_STACK)
            .spawn(move || collector.run())
            .map_err(|source| CrewError::Thread { thread: of, of, source })?;
        self.control.set_collector(handle.thread().clone());
        Ok((glances, tids))
    }

    fn recruit(
        &mut self,
        at: usize,
        outfit: MakeOutfit,
        tell: SyncSender<Result<Parked, CrewError>>,
    ) -> io::Result<()> {
        let (camp, arrivals) = (self.camp.clone(), self.arrivals.clone());
        let control = Arc::clone(&self.control);
        let handle = thread::Builder::new()
            .name(format!("io-{}", self.camp.plan.threads[at].thread))
            .stack_size(STACK)
            .spawn(move || {
                serve(&camp, at, outfit, &control, arrivals.as_ref(), tell);
            })?;
        self.handles.push(handle);
        Ok(())
    }

    fn dismiss(self) {
        self.control.dismiss();
        for handle in self.handles {
            handle.thread().unpark();
            // A thread that panicked is gone as well.
            let _ = handle.join();
        }
    }
}

fn hear_all(
    hear: &Receiver<Result<Parked, CrewError>>,
    of: usize,
) -> Result<(Vec<Member>, Vec<i32>), CrewError> {
    let mut parked = Vec::with_capacity(of);
    for _ in 0..of {
        parked.push(hear.recv().map_err(|_| CrewError::Vanished)??);
    }
    parked.sort_unstable_by_key(|parked| parked.at);
    let tids = parked.iter().map(|parked| parked.tid).collect();
    let member =
        |Parked { watch, inlets, open_ns, remarks, .. }| Member { watch, inlets, open_ns, remarks };
    Ok((parked.into_iter().map(member).collect(), tids))
}

/// The life of an I/O thread.
fn serve(
    camp: &Camp,
    at: usize,
    outfit: MakeOutfit,
    control: &Control,
    arrivals: Option<&Arc<ArrivalQueue>>,
    tell: SyncSender<Result<Parked, CrewError>>,
) {
    /// Also a thread that panics has ended; dropped after the seat.
    struct Leaving<'a>(&'a Control);
    impl Drop for Leaving<'_> {
        fn drop(&mut self) {
            self.0.has_ended();
        }
    }
    let _leaving = Leaving(control);
    // The default would let the kernel wake it 50 us late.
    let _ = set_current_timer_slack(Some(NonZero::<u64>::MIN));
    let Camp { plan, clock, memory_alignment } = camp;
    let (clock, memory_alignment) = (*clock, *memory_alignment);
    let thread = plan.threads[at].thread;
    let station = Station { plan, at, memory_alignment, clock, control, arrivals };
    // A device is opened once, by whoever arms, for all threads.
    let shares = matches!(plan.threads[at].files, Files::Devices(_));
    let table = if shares { Ok(()) } else { own_table() };
    let placed = bind_thread(&plan.placement, at)
        .map_err(|source| CrewError::Place { thread, source })
        .and_then(|()| outfit(&station));
    let Outfit { engine, source, fittings, account, inlets, job, open_ns, mut remarks } =
        match placed {
            Ok(outfit) => outfit,
            Err(error) => {
                let _ = tell.send(Err(error));
                return;
            }
        };
    remarks.extend(table.err().map(|error| error.to_string()));
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    let (seat, watch) = seat(account);
    if tell.send(Ok(Parked { at, watch, inlets, open_ns, remarks, tid })).is_err() {
        return;
    }
    drop(tell);
    let Some(timeline) = await_start(control, clock) else {
        // Even closing an untouched file may hang on a mount that does.
        if let Ok((mut seat, ())) = seat.away(clock.now(), || drop(engine)) {
            seat.account().not_run();
        }
        return;
    };
    let bench = Bench { job: &job, timeline: &timeline, control };
    // Who was given up has nothing to say.
    let _: Result<Seat<_>, _> = io_thread::run(seat, engine, source, fittings, bench);
}

fn check(plan: &WorkerPlan) -> Result<(), CrewError> {
    let refuse = |what| Err(CrewError::Plan { point: plan.point, what });
    if plan.threads.is_empty() {
        return refuse("it has no threads");
    }
    if plan.interval_ns < INTERVAL_NS_MIN {
        return refuse("its interval is shorter than the shortest one");
    }
    Ok(())
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
