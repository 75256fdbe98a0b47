//! The network alone: nodes send to each other, memory to memory, and the receivers count.
//!
//! A node's tx is what all others received of it, its rx what it received of all: nobody counts what
//! still lies in a sender's buffers. Each receiver counts for a time of its own, after a warm-up;
//! all are told at once, and senders go on a little longer than that.

use std::{net::IpAddr, time::Duration};

use iofleet_shared::{
    limits::ANSWER_WITHIN,
    wire::{Command, NetFlow, NetOrder, NetReceived, Notice},
};
use serde::Serialize;

use crate::{
    asking::{AskError, Asking},
    scenario::WorkerAddress,
};

/// How much longer than its own time a phase may take: connecting, and the senders' end.
const BEYOND: Duration = Duration::from_secs(25);

/// What is measured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// All nodes: the clients, and then those that they measure against.
    pub workers: Vec<WorkerAddress>,
    /// How many of them are clients.
    pub clients: usize,
    /// TCP streams from each sender to each of its receivers.
    pub streams: u32,
    /// Time before what is received counts.
    pub warm: Duration,
    /// Time for which it counts.
    pub window: Duration,
}

/// Who sends to whom at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// For people.
    pub name: &'static str,
    /// Sender and receiver, by number.
    pub flows: Vec<(usize, usize)>,
}

/// What came of a phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseResult {
    /// Its name.
    pub phase: String,
    /// Payload of TCP per second of all nodes together.
    pub bytes_per_s: f64,
    /// By node.
    pub nodes: Vec<NodeResult>,
}

/// What a node sent and received.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeResult {
    /// Its name.
    pub node: String,
    /// Payload of TCP per second that others received of it; null where it was to send nothing.
    pub tx_bytes_per_s: Option<f64>,
    /// Payload of TCP per second that it received; null where nothing was sent to it.
    pub rx_bytes_per_s: Option<f64>,
}

/// The phases of a fleet: against other hosts, clients send to all of them, receive from all of
/// them, and do both at once; among themselves, half sends to the other half, then the other way
/// round, and then each sends to the next.
#[must_use]
pub fn phases(clients: usize, others: usize) -> Vec<Phase> {
    if others > 0 {
        let pairs = || (0..clients).flat_map(|c| (clients..clients + others).map(move |s| (c, s)));
        let send: Vec<_> = pairs().collect();
        let receive: Vec<_> = pairs().map(|(client, other)| (other, client)).collect();
        let both = send.iter().chain(&receive).copied().collect();
        return vec![
            Phase { name: "clients send", flows: send },
            Phase { name: "clients receive", flows: receive },
            Phase { name: "both at once", flows: both },
        ];
    }
    let half = clients / 2;
    let there: Vec<_> = (0..half).map(|from| (from, from + half)).collect();
    let back = there.iter().map(|&(from, to)| (to, from)).collect();
    let ring = (0..clients).map(|from| (from, (from + 1) % clients)).collect();
    vec![
        Phase { name: "half to half", flows: there },
        Phase { name: "and back", flows: back },
        Phase { name: "each to the next", flows: ring },
    ]
}

/// Runs all phases on workers that were claimed, telling each as it ends.
///
/// # Errors
/// When a node can't do it, is lost, or the user interrupts.
pub async fn run(
    asking: &mut Asking,
    settings: &Settings,
    token: [u8; 16],
    mut tell: impl FnMut(&PhaseResult),
) -> Result<Vec<PhaseResult>, AskError> {
    let addresses = addresses(&settings.workers).await?;
    let mut results = Vec::new();
    for phase in phases(settings.clients, settings.workers.len() - settings.clients) {
        let ports = listen(asking, settings, token).await?;
        let orders: Vec<Command> = (0..settings.workers.len())
            .map(|me| order(me, &phase, settings, token, (&addresses, &ports)))
            .collect();
        let within = settings.warm + settings.window + BEYOND;
        let measured = asking.ask(orders, within).await?;
        let result = result(&phase, settings, &measured);
        tell(&result);
        results.push(result);
    }
    Ok(results)
}

/// What names mean here is what they mean to the workers: they are told addresses.
async fn addresses(workers: &[WorkerAddress]) -> Result<Vec<IpAddr>, AskError> {
    let mut addresses = Vec::with_capacity(workers.len());
    for worker in workers {
        let found = tokio::net::lookup_host((worker.host.as_str(), worker.port)).await;
        let address = found.ok().and_then(|mut found| found.next()).ok_or_else(|| {
            AskError::Nodes(vec![(worker.name.clone(), "its name has no address".to_owned())])
        })?;
        addresses.push(address.ip());
    }
    Ok(addresses)
}

async fn listen(
    asking: &mut Asking,
    settings: &Settings,
    token: [u8; 16],
) -> Result<Vec<u16>, AskError> {
    let commands = settings.workers.iter().map(|_| Command::NetListen { token }).collect();
    let notices = asking.ask(commands, ANSWER_WITHIN).await?;
    let mut ports = Vec::with_capacity(notices.len());
    for (worker, notice) in settings.workers.iter().zip(&notices) {
        let Notice::NetListening { port } = notice else {
            let why = format!("it was to listen, and answers {notice:?}");
            return Err(AskError::Nodes(vec![(worker.name.clone(), why)]));
        };
        ports.push(*port);
    }
    Ok(ports)
}

fn order(
    me: usize,
    phase: &Phase,
    settings: &Settings,
    token: [u8; 16],
    (addresses, ports): (&[IpAddr], &[u16]),
) -> Command {
    let mine = phase.flows.iter().filter(|(from, _)| *from == me);
    let flow = |&(_, to): &(usize, usize)| NetFlow {
        address: addresses[to].to_string(),
        port: ports[to],
        streams: settings.streams,
    };
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Command::NetRun(NetOrder {
        me: number(me),
        token,
        flows: mine.map(flow).collect(),
        warm_ns: ns(settings.warm),
        window_ns: ns(settings.window),
    })
}

fn result(phase: &Phase, settings: &Settings, measured: &[Notice]) -> PhaseResult {
    let mut tx = vec![0.0; measured.len()];
    let mut rx = vec![0.0; measured.len()];
    for (to, notice) in measured.iter().enumerate() {
        let Notice::NetMeasured { elapsed_ns, received } = notice else { continue };
        for NetReceived { from, bytes } in received {
            let rate = to_f64(*bytes) / (to_f64(*elapsed_ns) / 1e9);
            rx[to] += rate;
            if let Some(sender) = tx.get_mut(*from as usize) {
                *sender += rate;
            }
        }
    }
    let node = |at: usize| NodeResult {
        node: settings.workers[at].name.clone(),
        tx_bytes_per_s: phase.flows.iter().any(|(from, _)| *from == at).then_some(tx[at]),
        rx_bytes_per_s: phase.flows.iter().any(|(_, to)| *to == at).then_some(rx[at]),
    };
    PhaseResult {
        phase: phase.name.to_owned(),
        bytes_per_s: rx.iter().sum(),
        nodes: (0..measured.len()).map(node).collect(),
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of a count are enough")]
fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_and_others_meet_all_of_each_other() {
        let [send, receive, both] = &phases(2, 2)[..] else { panic!("three") };
        assert_eq!(send.flows, [(0, 2), (0, 3), (1, 2), (1, 3)]);
        assert_eq!(receive.flows, [(2, 0), (3, 0), (2, 1), (3, 1)]);
        assert_eq!(both.flows.len(), 8);
    }

    /// Of three nodes one has no partner in the halves, and its turn in the ring.
    #[test]
    fn among_themselves_each_sends_and_receives() {
        let [there, back, ring] = &phases(3, 0)[..] else { panic!("three") };
        assert_eq!((&there.flows[..], &back.flows[..]), (&[(0, 1)][..], &[(1, 0)][..]));
        assert_eq!(ring.flows, [(0, 1), (1, 2), (2, 0)]);
    }

    fn settings(nodes: usize) -> Settings {
        let worker = |n: usize| WorkerAddress {
            name: format!("n{n}"),
            host: "127.0.0.1".to_owned(),
            port: 7737,
        };
        Settings {
            workers: (0..nodes).map(worker).collect(),
            clients: nodes,
            streams: 1,
            warm: Duration::ZERO,
            window: Duration::from_secs(1),
        }
    }

    /// Node 1 received 200 bytes of node 0 in 2 s, node 2 received 300 bytes of node 1 in 1 s.
    #[test]
    fn what_receivers_count_is_the_senders_rate() {
        let phase = Phase { name: "p", flows: vec![(0, 1), (1, 2)] };
        let measured = |elapsed_ns, received: &[(u32, u64)]| Notice::NetMeasured {
            elapsed_ns,
            received: received.iter().map(|&(from, bytes)| NetReceived { from, bytes }).collect(),
        };
        let notices = [
            measured(1_000_000_000, &[]),
            measured(2_000_000_000, &[(0, 200)]),
            measured(1_000_000_000, &[(1, 300)]),
        ];
        let result = result(&phase, &settings(3), &notices);
        let rates: Vec<_> =
            result.nodes.iter().map(|node| (node.tx_bytes_per_s, node.rx_bytes_per_s)).collect();
        assert_eq!(rates, [(Some(100.0), None), (Some(300.0), Some(100.0)), (None, Some(300.0))]);
        assert!((result.bytes_per_s - 400.0).abs() < 1e-9);
    }
}
