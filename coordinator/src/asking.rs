//! A conversation with all workers of a fleet outside of a campaign: each is asked something, and
//! each answers once.

use std::time::Duration;

use iofleet_shared::{
    ids::NodeIndex,
    limits::{ANSWER_WITHIN, CONNECT_WITHIN, HEARTBEAT, REMOVE_WITHIN},
    wire::{Command, Datagram, Notice},
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, Interval, interval, sleep_until},
};

use crate::{
    campaign::{GOODBYE, Signals},
    conductor::{Event, words::group},
    peer::{Arrived, EVENTS, Peer},
    scenario::WorkerAddress,
};

/// Why a conversation ended.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// What stands in the way, by node.
    #[error("{}", group(.0))]
    Nodes(Vec<(String, String)>),
    /// Ctrl-C, SIGTERM or SIGHUP.
    #[error("interrupted")]
    Interrupted,
    /// The system refuses signal handlers.
    #[error("can't listen for signals")]
    Signals(#[source] std::io::Error),
}

/// A conversation. Ends with [`Asking::leave`].
pub struct Asking {
    names: Vec<String>,
    peers: Vec<Peer>,
    arrived: mpsc::Receiver<Arrived>,
    signals: Signals,
    beat: Interval,
    beats: u64,
    /// Why a worker answers no more.
    lost: Vec<Option<String>>,
    _tasks: JoinSet<()>,
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").field("names", &self.names).finish_non_exhaustive()
    }
}

/// What of the fleet is waited for.
enum Answer {
    Connected,
    Notice,
}

impl Asking {
    /// Connects to all workers that can be reached.
    ///
    /// # Errors
    /// When the user interrupts, or signals can't be heard.
    pub async fn connect(
        workers: &[WorkerAddress],
        endpoint: &quinn::Endpoint,
    ) -> Result<Self, AskError> {
        let signals = Signals::listen().map_err(AskError::Signals)?;
        let (events, arrived) = mpsc::channel(EVENTS);
        let mut tasks = JoinSet::new();
        let peers = (0_u32..).zip(workers).map(|(index, address)| {
            let (endpoint, events) = (endpoint.clone(), events.clone());
            Peer::spawn(NodeIndex(index), address.clone(), endpoint, events, &mut tasks)
        });
        let mut asking = Self {
            names: workers.iter().map(|worker| worker.name.clone()).collect(),
            peers: peers.collect(),
            arrived,
            signals,
            beat: interval(HEARTBEAT),
            beats: 0,
            lost: vec![None; workers.len()],
            _tasks: tasks,
        };
        // A worker that can't be reached says so itself in this time.
        asking.wait(&Answer::Connected, CONNECT_WITHIN + ANSWER_WITHIN).await?;
        Ok(asking)
    }

    /// Connects to all workers and claims them.
    ///
    /// # Errors
    /// When one can't be reached or is held by another.
    pub async fn claim(
        workers: &[WorkerAddress],
        endpoint: &quinn::Endpoint,
        campaign: &str,
        holder: &str,
    ) -> Result<Self, AskError> {
        let mut asking = Self::connect(workers, endpoint).await?;
        let claims = asking.claims(campaign, holder);
        if let Err(error) = asking.ask(claims, ANSWER_WITHIN).await {
            asking.leave().await;
            return Err(error);
        }
        Ok(asking)
    }

    /// Why each worker answers no more; none of those that do.
    #[must_use]
    pub fn lost(&self) -> &[Option<String>] {
        &self.lost
    }

    /// What claims each worker.
    #[must_use]
    pub fn claims(&self, campaign: &str, holder: &str) -> Vec<Command> {
        let claim = |node: &String| Command::Claim {
            campaign: campaign.to_owned(),
            holder: holder.to_owned(),
            node: node.clone(),
        };
        self.names.iter().map(claim).collect()
    }

    /// Asks each worker something, and waits for the answer of each.
    ///
    /// # Errors
    /// What any worker refuses, and who is lost or silent.
    pub async fn ask(
        &mut self,
        commands: Vec<Command>,
        within: Duration,
    ) -> Result<Vec<Notice>, AskError> {
        let answers = self.ask_each(commands, within).await?;
        let mut notices = Vec::with_capacity(answers.len());
        let mut bad = Vec::new();
        for (name, answer) in self.names.iter().zip(answers) {
            match answer {
                Ok(notice) => notices.push(notice),
                Err(why) => bad.push((name.clone(), why)),
            }
        }
        if bad.is_empty() { Ok(notices) } else { Err(AskError::Nodes(bad)) }
    }

    /// Asks each worker something: the answer of each, or why there is none.
    ///
    /// # Errors
    /// When the user interrupts.
    pub async fn ask_each(
        &mut self,
        commands: Vec<Command>,
        within: Duration,
    ) -> Result<Vec<Result<Notice, String>>, AskError> {
        for (at, command) in commands.into_iter().enumerate() {
            if self.lost[at].is_none() && !self.peers[at].send(command) {
                self.lost[at] = Some("takes no more commands".to_owned());
            }
        }
        let answers = self.wait(&Answer::Notice, within).await?;
        let silent = || "gave another answer than it was asked for".to_owned();
        Ok(answers.into_iter().map(|answer| answer.and_then(|n| n.ok_or_else(silent))).collect())
    }

    /// Lets the workers go. Nothing was made.
    pub async fn leave(self) {
        self.release(true).await;
    }

    /// Lets the workers go, which remove what they made.
    pub async fn clean(self) {
        self.release(false).await;
    }

    async fn release(mut self, keep: bool) {
        for peer in &self.peers {
            let _ = peer.send(Command::Release { keep });
        }
        // What they say to it changes nothing any more.
        let _ = self.wait(&Answer::Notice, REMOVE_WITHIN).await;
        for peer in &self.peers {
            peer.close();
        }
        tokio::time::sleep(GOODBYE).await;
    }

    /// The answer of each worker. One that is lost stays so.
    async fn wait(
        &mut self,
        what: &Answer,
        within: Duration,
    ) -> Result<Vec<Result<Option<Notice>, String>>, AskError> {
        let until = Instant::now() + within;
        let lost = self.lost.iter();
        let mut answers: Vec<Option<Result<Option<Notice>, String>>> =
            lost.map(|lost| lost.clone().map(Err)).collect();
        while answers.iter().any(Option::is_none) {
            tokio::select! {
                biased;
                () = self.signals.next() => return Err(AskError::Interrupted),
                Some(Arrived { event, .. }) = self.arrived.recv() => {
                    self.take(event, what, &mut answers);
                }
                _ = self.beat.tick() => self.beat(),
                () = sleep_until(until) => break,
            }
        }
        let late = || format!("no answer within {} s", within.as_secs());
        let all = answers.into_iter().zip(&mut self.lost);
        Ok(all
            .map(|(answer, lost)| {
                answer.unwrap_or_else(|| Err(lost.get_or_insert_with(late).clone()))
            })
            .collect())
    }

    fn take(
        &mut self,
        event: Event,
        what: &Answer,
        answers: &mut [Option<Result<Option<Notice>, String>>],
    ) {
        let (index, answer) = match (event, what) {
            (Event::Connected(index), Answer::Connected) => (index, Ok(None)),
            (Event::Down(index, why), _) => {
                self.lost[index.at()] = Some(why.clone());
                (index, Err(why))
            }
            (Event::Notice(index, notice), what) => match (*notice, what) {
                (Notice::Refused(refusal), _) => (index, Err(refusal.text)),
                (notice, Answer::Notice) => (index, Ok(Some(notice))),
                (_, Answer::Connected) => return,
            },
            _ => return,
        };
        if let Some(slot) = answers.get_mut(index.at()) {
            *slot = Some(answer);
        }
    }

    fn beat(&mut self) {
        self.beats += 1;
        for peer in &self.peers {
            peer.send_datagram(Datagram::Alive { sequence: self.beats });
        }
    }
}
