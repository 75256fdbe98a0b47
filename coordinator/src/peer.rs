//! A thin task per worker: connects, moves frames and datagrams, reports how it ended. It decides
//! nothing.

use std::sync::{Arc, OnceLock};

use iofleet_shared::{
    clock::monotonic_ns,
    ids::NodeIndex,
    limits::CONNECT_WITHIN,
    transport::{self, Control, FrameReceive},
    wire::{Command, Datagram, Delivery, Notice},
};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use crate::{conductor::Event, scenario::WorkerAddress};

/// Commands that may wait for one worker; a worker that lets more pile up is cut off.
const COMMANDS: usize = 256;
/// Events of the whole fleet that may wait for the conductor.
pub const EVENTS: usize = 4_096;
/// Close code of an ordinary goodbye.
const GOODBYE: u32 = 0;

/// An event with the instant at which it came, so that a queue costs no accuracy.
#[derive(Debug)]
pub struct Arrived {
    /// Fleet time.
    pub at_ns: u64,
    /// What.
    pub event: Event,
}

/// The conductor's end of a worker's connection.
#[derive(Debug)]
pub struct Peer {
    commands: mpsc::Sender<Command>,
    connection: Arc<OnceLock<quinn::Connection>>,
    task: AbortHandle,
}

impl Peer {
    /// Begins to connect; the outcome comes as an event.
    #[must_use]
    pub fn spawn(
        node: NodeIndex,
        address: WorkerAddress,
        endpoint: quinn::Endpoint,
        events: mpsc::Sender<Arrived>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (commands, outgoing) = mpsc::channel(COMMANDS);
        let connection = Arc::new(OnceLock::new());
        let slot = Arc::clone(&connection);
        let task = tasks.spawn(async move {
            let why = run(node, &address, &endpoint, &events, outgoing, &slot).await;
            report(&events, Event::Down(node, why)).await;
        });
        Self { commands, connection, task }
    }

    /// Queues a command; false if the worker lets too many pile up.
    #[must_use]
    pub fn send(&self, command: Command) -> bool {
        self.commands.try_send(command).is_ok()
    }

    /// Sends a datagram now. Datagrams may be lost on the way, so that nothing is reported.
    pub fn send_datagram(&self, datagram: Datagram) {
        let Some(connection) = self.connection.get() else { return };
        let datagram = match datagram {
            Datagram::Ping { sequence, .. } => Datagram::Ping { sequence, sent_ns: monotonic_ns() },
            other @ (Datagram::Pong { .. } | Datagram::Alive { .. } | Datagram::Beat(_)) => other,
        };
        if let Err(error) = transport::send_datagram(connection, &datagram) {
            tracing::debug!(%error, "datagram not sent");
        }
    }

    /// Says goodbye; what was received is acknowledged already.
    pub fn close(&self) {
        if let Some(connection) = self.connection.get() {
            connection.close(GOODBYE.into(), b"goodbye");
        }
        self.task.abort();
    }
}

async fn report(events: &mpsc::Sender<Arrived>, event: Event) {
    // The conductor is gone only when the campaign has ended.
    let _ = events.send(Arrived { at_ns: monotonic_ns(), event }).await;
}

/// Runs until the connection ends; the reason in words.
async fn run(
    node: NodeIndex,
    address: &WorkerAddress,
    endpoint: &quinn::Endpoint,
    events: &mpsc::Sender<Arrived>,
    mut outgoing: mpsc::Receiver<Command>,
    slot: &OnceLock<quinn::Connection>,
) -> String {
    let link = match transport::connect(endpoint, &address.host, address.port, CONNECT_WITHIN).await
    {
        Ok(link) => link,
        Err(error) => return transport::error_chain(&error),
    };
    let connection = link.connection.clone();
    let _ = slot.set(connection.clone());
    let Control { mut send, receive } = link.control;
    report(events, Event::Connected(node)).await;

    let mut readers = JoinSet::new();
    readers.spawn(read_notices(node, receive, events.clone()));
    readers.spawn(read_datagrams(node, connection.clone(), events.clone()));
    readers.spawn(read_deliveries(node, connection.clone(), events.clone()));
    loop {
        tokio::select! {
            command = outgoing.recv() => {
                let Some(command) = command else { return "the campaign ended".to_owned() };
                if let Err(error) = send.send(&command).await {
                    return transport::error_chain(&error);
                }
            }
            ended = readers.join_next() => {
                return match ended {
                    Some(Ok(why)) => why,
                    Some(Err(error)) => format!("a task of this connection failed: {error}"),
                    None => "the connection has ended".to_owned(),
                };
            }
        }
    }
}

async fn read_notices(
    node: NodeIndex,
    mut receive: FrameReceive,
    events: mpsc::Sender<Arrived>,
) -> String {
    loop {
        match receive.receive::<Notice>().await {
            Ok(Some(notice)) => report(&events, Event::Notice(node, Box::new(notice))).await,
            Ok(None) => return "the worker ended the conversation".to_owned(),
            Err(error) => return transport::error_chain(&error),
        }
    }
}

async fn read_datagrams(
    node: NodeIndex,
    connection: quinn::Connection,
    events: mpsc::Sender<Arrived>,
) -> String {
    loop {
        match connection.read_datagram().await {
            Ok(bytes) => match transport::decode_datagram(&bytes) {
                Ok(datagram) => report(&events, Event::Datagram(node, datagram)).await,
                Err(error) => return format!("sent a datagram that can't be read: {error}"),
            },
            Err(error) => return transport::connection_words(&error),
        }
    }
}

async fn read_deliveries(
    node: NodeIndex,
    connection: quinn::Connection,
    events: mpsc::Sender<Arrived>,
) -> String {
    loop {
        let stream = match connection.accept_uni().await {
            Ok(stream) => stream,
            Err(error) => return transport::connection_words(&error),
        };
        let mut frames = FrameReceive::new(stream);
        loop {
            match frames.receive::<Delivery>().await {
                Ok(Some(delivery)) => {
                    report(&events, Event::Delivery(node, Box::new(delivery))).await;
                }
                Ok(None) => break,
                Err(error) => return transport::error_chain(&error),
            }
        }
    }
}
