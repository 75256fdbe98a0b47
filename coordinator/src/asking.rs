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
    conductor::Event,
    peer::{Arrived, EVENTS, Peer},
    scenario::WorkerAddress,
};

/// Why a conversation ended.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// What stands in the way, by node.
    #[error("{}", lines(.0))]
    Nodes(Vec<(String, String)>),
    /// Ctrl-C, SIGTERM or SIGHUP.
    #[error("interrupted")]
    Interrupted,
    /// The system refuses signal handlers.
    #[error("can't listen for signals")]
    Signals(#[source] std::io::Error),
}

/// A line for what several nodes say alike.
fn lines(nodes: &[(String, String)]) -> String {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for (node, text) in nodes {
        match said.iter_mut().find(|(known, _)| known == text) {
            Some((_, names)) => names.push(node),
            None => said.push((text, vec![node])),
        }
    }
    let lines = said.iter().map(|(text, names)| format!("{}: {text}", names.join(", ")));
    lines.collect::<Vec<_>>().join("\n")
}

/// A conversation. Ends with [`Asking::leave`].
pub struct Asking {
    names: Vec<String>,
    peers: Vec<Peer>,
    arrived: mpsc::Receiver<Arrived>,
    signals: Signals,
    beat: Interval,
    beats: u64,
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
            _tasks: tasks,
        };
        // A worker that can't be reached says so itself in this time.
        asking.wait(&Answer::Connected, CONNECT_WITHIN + ANSWER_WITHIN).await?;
        let claim = |node: &String| Command::Claim {
            campaign: campaign.to_owned(),
            holder: holder.to_owned(),
            node: node.clone(),
        };
        let claims = asking.names.iter().map(claim).collect();
        if let Err(error) = asking.ask(claims, ANSWER_WITHIN).await {
            asking.leave().await;
            return Err(error);
        }
        Ok(asking)
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
        for (peer, command) in self.peers.iter().zip(commands) {
            // One that takes no more is lost, and says so.
            let _ = peer.send(command);
        }
        let notices = self.wait(&Answer::Notice, within).await?;
        Ok(notices.into_iter().flatten().collect())
    }

    /// Lets the workers go.
    pub async fn leave(mut self) {
        for peer in &self.peers {
            let _ = peer.send(Command::Release { keep: true });
        }
        // What they say to it changes nothing any more.
        let _ = self.wait(&Answer::Notice, REMOVE_WITHIN).await;
        for peer in &self.peers {
            peer.close();
        }
        tokio::time::sleep(GOODBYE).await;
    }

    async fn wait(
        &mut self,
        what: &Answer,
        within: Duration,
    ) -> Result<Vec<Option<Notice>>, AskError> {
        let until = Instant::now() + within;
        let mut answers: Vec<Option<Result<Option<Notice>, String>>> = vec![None; self.peers.len()];
        while answers.iter().any(Option::is_none) {
            tokio::select! {
                biased;
                () = self.signals.next() => return Err(AskError::Interrupted),
                Some(Arrived { event, .. }) = self.arrived.recv() => take(event, what, &mut answers),
                _ = self.beat.tick() => self.beat(),
                () = sleep_until(until) => break,
            }
        }
        self.all(answers, within)
    }

    fn beat(&mut self) {
        self.beats += 1;
        for peer in &self.peers {
            peer.send_datagram(Datagram::Alive { sequence: self.beats });
        }
    }

    fn all(
        &self,
        answers: Vec<Option<Result<Option<Notice>, String>>>,
        within: Duration,
    ) -> Result<Vec<Option<Notice>>, AskError> {
        let mut good = Vec::with_capacity(answers.len());
        let mut bad = Vec::new();
        for (name, answer) in self.names.iter().zip(answers) {
            match answer {
                Some(Ok(notice)) => good.push(notice),
                Some(Err(why)) => bad.push((name.clone(), why)),
                None => {
                    let why = format!("no answer within {} s", within.as_secs());
                    bad.push((name.clone(), why));
                }
            }
        }
        if bad.is_empty() { Ok(good) } else { Err(AskError::Nodes(bad)) }
    }
}

fn take(event: Event, what: &Answer, answers: &mut [Option<Result<Option<Notice>, String>>]) {
    let (index, answer) = match (event, what) {
        (Event::Connected(index), Answer::Connected) => (index, Ok(None)),
        (Event::Down(index, why), _) => (index, Err(why)),
        (Event::Notice(index, Notice::Refused(refusal)), _) => (index, Err(refusal.text)),
        (Event::Notice(index, notice), Answer::Notice) => (index, Ok(Some(notice))),
        _ => return,
    };
    if let Some(slot) = answers.get_mut(index.at()) {
        *slot = Some(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_say_alike_is_one_line() {
        let said = |node: &str, text: &str| (node.to_owned(), text.to_owned());
        let nodes = [said("a", "gone"), said("b", "full"), said("c", "gone")];
        assert_eq!(lines(&nodes), "a, c: gone\nb: full");
    }
}
