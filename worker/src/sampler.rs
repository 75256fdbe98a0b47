//! What the machine's own counters say while a point runs: a thread that reads them while the crew is
//! armed, at T0, at each boundary of the series, when the crew has ended and when all has settled.
//!
//! It shares nothing with the I/O threads. Each sample has the time at which it was really taken.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use iofleet_shared::{clock::monotonic_ns, limits::as_ns, stats::HostSample};

use crate::host::{
    ControlPriority,
    cpu::{Cores, counters},
    links::Counters,
};

/// Shortest time between two boundaries at which it reads: the counters of a port are no better.
const STEP_NS_MIN: u64 = 100_000_000;
/// Samples that are kept; of a longer point every second one, and so on.
const SAMPLES_MAX: usize = 16_384;
/// Threads whose scheduling is read; of more it takes too long.
const THREADS_MAX: usize = 256;
/// How long the last sample may take.
const LAST_WITHIN: Duration = Duration::from_secs(5);
/// The longest that it sleeps.
const IDLE: Duration = Duration::from_secs(3600);

/// What it reads.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The process file system.
    pub proc: PathBuf,
    /// Counters of the links, if there are any.
    pub links: Option<Counters>,
    /// The I/O threads.
    pub threads: Vec<i32>,
    /// Length of the intervals of the series.
    pub interval_ns: u64,
}

/// Samples until it is told to finish, or dropped.
#[derive(Debug)]
pub struct Sampler(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// What is asked of the thread, and what it has.
#[derive(Debug, Default)]
struct State {
    t0_ns: Option<u64>,
    /// Samples that were asked for beside those of the grid, and those of them that were taken.
    wanted: u32,
    taken: u32,
    leaves: bool,
    /// With times on the worker's clock.
    samples: Vec<(u64, HostSample)>,
}

impl Sampler {
    /// Begins with a first sample.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn begin(sources: Sources) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        shared.lock().wanted = 1;
        let sampler = Self(Arc::clone(&shared));
        thread::Builder::new().name("sampler".to_owned()).spawn(move || {
            // Late samples are still right, so that nothing depends on it.
            let _ = ControlPriority::take();
            Reader::new(sources).serve(&shared);
        })?;
        Ok(sampler)
    }

    /// T0 is known.
    pub fn start(&self, t0_ns: u64) {
        self.0.lock().t0_ns = Some(t0_ns);
        self.0.changed.notify_all();
    }

    /// Asks for a sample now; does not wait for it.
    pub fn note(&self) {
        self.0.lock().wanted += 1;
        self.0.changed.notify_all();
    }

    /// Takes a last sample, and gives all of them, in ns after T0.
    pub fn finish(&self) -> Vec<HostSample> {
        let mut state = self.0.lock();
        state.wanted += 1;
        self.0.changed.notify_all();
        let waits = |state: &mut State| state.taken < state.wanted;
        let waited = self.0.changed.wait_timeout_while(state, LAST_WITHIN, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.leaves = true;
        let samples = state.after_t0();
        drop(state);
        self.0.changed.notify_all();
        samples
    }

    /// What there is, for want of better.
    #[must_use]
    pub fn so_far(&self) -> Vec<HostSample> {
        self.0.lock().after_t0()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.0.lock().leaves = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// None without a T0: then nothing ran.
    fn after_t0(&self) -> Vec<HostSample> {
        let Some(t0_ns) = self.t0_ns else { return Vec::new() };
        let samples = self.samples.iter();
        samples
            .map(|(at_ns, sample)| HostSample {
                at_ns: at_ns.wrapping_sub(t0_ns).cast_signed(),
                ..sample.clone()
            })
            .collect()
    }

    /// Every second one goes. Of two the greater share of a core stays.
    fn thin(&mut self) {
        let mut kept: Vec<(u64, HostSample)> = Vec::with_capacity(SAMPLES_MAX);
        let mut gone: Option<u32> = None;
        for (at, (at_ns, mut sample)) in std::mem::take(&mut self.samples).into_iter().enumerate() {
            if at % 2 == 0 {
                sample.busiest_core_milli = sample.busiest_core_milli.max(gone.take());
                kept.push((at_ns, sample));
            } else {
                gone = sample.busiest_core_milli;
            }
        }
        self.samples = kept;
    }
}

/// Samples again and again, each in ns of the monotonic clock, for as long as they are taken.
///
/// # Errors
/// When there is no thread to be had.
pub fn observe(
    sources: Sources,
    mut take: impl FnMut(HostSample) -> bool + Send + 'static,
) -> io::Result<()> {
    let interval = Duration::from_nanos(sources.interval_ns);
    thread::Builder::new().name("observer".to_owned()).spawn(move || {
        let _ = ControlPriority::take();
        let mut reader = Reader::new(sources);
        let began_ns = monotonic_ns();
        for k in 1_u32.. {
            let (at_ns, sample) = reader.sample();
            if !take(HostSample { at_ns: at_ns.cast_signed(), ..sample }) {
                return;
            }
            let next_ns = began_ns.saturating_add(as_ns(interval.saturating_mul(k)));
            thread::sleep(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns())));
        }
    })?;
    Ok(())
}

/// The thread.
struct Reader {
    sources: Sources,
    cores: Option<Cores>,
    /// By thread; of one that has ended what it had.
    delays: BTreeMap<i32, u64>,
    step_ns: u64,
}

impl Reader {
    fn new(sources: Sources) -> Self {
        let interval = sources.interval_ns.max(1);
        let step_ns = STEP_NS_MIN.div_ceil(interval).max(1).saturating_mul(interval);
        Self { sources, cores: None, delays: BTreeMap::new(), step_ns }
    }

    fn serve(mut self, shared: &Shared) {
        // The boundary that comes next, counted from T0.
        let mut next = 0_u64;
        let mut state = shared.lock();
        while !state.leaves {
            let due_ns = state.t0_ns.map(|t0| t0.saturating_add(next.saturating_mul(self.step_ns)));
            let now_ns = monotonic_ns();
            let due = due_ns.is_some_and(|due| due <= now_ns);
            if !due && state.taken == state.wanted {
                let wait = due_ns.map_or(IDLE, |due| Duration::from_nanos(due - now_ns).min(IDLE));
                let waited = shared.changed.wait_timeout(state, wait);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let wanted = state.wanted;
            drop(state);
            let sample = self.sample();
            state = shared.lock();
            state.samples.push(sample);
            state.taken = wanted;
            if let Some(t0) = state.t0_ns.filter(|_| due) {
                // A boundary that was missed is not made up for.
                next = monotonic_ns().saturating_sub(t0) / self.step_ns + 1;
            }
            if state.samples.len() >= SAMPLES_MAX {
                state.thin();
                self.step_ns = self.step_ns.saturating_mul(2);
                next = next.div_ceil(2);
            }
            shared.changed.notify_all();
        }
    }

    fn sample(&mut self) -> (u64, HostSample) {
        let before_ns = monotonic_ns();
        let links = self.sources.links.as_ref().map(Counters::read).unwrap_or_default();
        let at_ns = before_ns.midpoint(monotonic_ns());
        let stat = fs::read_to_string(self.sources.proc.join("stat")).unwrap_or_default();
        let cores = Cores::parse(&stat);
        let busiest_core_milli =
            self.cores.as_ref().and_then(|earlier| cores.busiest_since(earlier));
        self.cores = Some(cores);
        let sample = HostSample {
            at_ns: 0,
            links,
            cpu: counters(&stat),
            busiest_core_milli,
            run_delay_ns: self.run_delay_ns(),
        };
        (at_ns, sample)
    }

    fn run_delay_ns(&mut self) -> Option<u64> {
        if self.sources.threads.len() > THREADS_MAX {
            return None;
        }
        for thread in &self.sources.threads {
            let path = self.sources.proc.join(format!("self/task/{thread}/schedstat"));
            let text = fs::read_to_string(path).unwrap_or_default();
            if let Some(delay) = text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()) {
                self.delays.insert(*thread, delay);
            }
        }
        // A thread of which nothing was ever known leaves the sum unknown.
        (self.delays.len() == self.sources.threads.len()).then(|| self.delays.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(interval_ns: u64) -> Sources {
        Sources {
            proc: "/proc".into(),
            links: None,
            threads: vec![rustix::thread::gettid().as_raw_nonzero().get()],
            interval_ns,
        }
    }

    /// Armed, at T0, at the boundaries, when asked, and at last: in order, each at its own time.
    #[test]
    fn samples_are_of_the_grid_and_of_when_they_were_asked_for() {
        let sampler = Sampler::begin(sources(100_000_000)).unwrap();
        let t0_ns = monotonic_ns() + 50_000_000;
        sampler.start(t0_ns);
        thread::sleep(Duration::from_nanos(t0_ns + 250_000_000 - monotonic_ns()));
        sampler.note();
        let samples = sampler.finish();
        let ended = (monotonic_ns() - t0_ns).cast_signed();
        let times: Vec<i64> = samples.iter().map(|sample| sample.at_ns).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(times[0] < 0 && times[times.len() - 1] <= ended, "{times:?}");
        // T0 and two boundaries, none before its time.
        let after: Vec<i64> = times.iter().copied().filter(|at| *at >= 0).collect();
        assert!(
            after.len() >= 4 && after[1] >= 100_000_000 && after[2] >= 200_000_000,
            "{times:?}"
        );
        assert!(samples.iter().all(|sample| sample.cpu.is_some() && sample.run_delay_ns.is_some()));
        assert_eq!(samples[0].busiest_core_milli, None);
    }

    #[test]
    fn without_a_t0_there_is_nothing() {
        assert_eq!(Sampler::begin(sources(1)).unwrap().finish(), []);
    }

    #[test]
    fn short_intervals_are_not_all_boundaries() {
        assert_eq!(Reader::new(sources(10_000_000)).step_ns, 100_000_000);
        assert_eq!(Reader::new(sources(30_000_000)).step_ns, 120_000_000);
        assert_eq!(Reader::new(sources(1_000_000_000)).step_ns, 1_000_000_000);
    }

    #[test]
    fn thinning_keeps_the_first_and_the_greatest_share() {
        let sample = |at_ns, milli| {
            let sample = HostSample {
                at_ns: 0,
                links: Vec::new(),
                cpu: None,
                busiest_core_milli: milli,
                run_delay_ns: None,
            };
            (at_ns, sample)
        };
        let samples = vec![sample(1, None), sample(2, Some(900)), sample(3, Some(100))];
        let mut state = State { samples, ..State::default() };
        state.thin();
        assert_eq!(state.samples, [sample(1, None), sample(3, Some(900))]);
    }
}
