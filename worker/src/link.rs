//! One connection to a coordinator: thin tasks that move frames and datagrams, and say how the
//! connection ended. They decide nothing.
//!
//! Commands, notices, datagrams and deliveries have a task each, so that a stream of deliveries
//! that stalls holds up neither a notice nor a stop. A clock ping is answered here at once, with
//! stamps taken as near to the socket as can be.

use iofleet_shared::{
    clock::monotonic_ns,
    ids::{PeerId, PointId},
    transport::{
        CLOSE_DONE, ControlReceive, ControlSend, FrameSend, Link, LinkError, receive_datagram,
        send_datagram,
    },
    wire::{Command, Content, Datagram, Delivery, Notice},
};
use quinn::{Connection, VarInt};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinSet,
};

/// Notices that may wait for a coordinator that does not read them.
const NOTICES_QUEUED: usize = 64;
/// Deliveries that a link takes before QUIC has taken them; the rest waits in the machine.
const DELIVERIES_QUEUED: usize = 16;

/// What a link says.
#[derive(Debug)]
pub enum LinkEvent {
    /// A command came.
    Command(Command),
    /// A heartbeat came.
    Alive,
    /// The connection has ended; nothing follows.
    Ended(LinkEnd),
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkEnd {
    /// The daemon closed it.
    #[error("closed by this worker")]
    Here,
    /// The coordinator said that no command follows.
    #[error("the coordinator has ended its commands")]
    Finished,
    /// The coordinator left, vanished, or sent what can't be read.
    #[error("{0}")]
    Lost(String),
}

/// The daemon's end of a link.
#[derive(Debug)]
pub struct LinkHandle {
    connection: Connection,
    notices: Sender<Notice>,
    deliveries: Sender<Delivery>,
}

impl LinkHandle {
    /// Starts a link's tasks. Must be called inside a tokio runtime.
    #[must_use]
    pub fn start(link: Link, peer: PeerId, events: Sender<(PeerId, LinkEvent)>) -> Self {
        let (notices, notices_out) = channel(NOTICES_QUEUED);
        let (deliveries, deliveries_out) = channel(DELIVERIES_QUEUED);
        let connection = link.connection.clone();
        tokio::spawn(run(link, peer, events, notices_out, deliveries_out));
        Self { connection, notices, deliveries }
    }

    /// Sends a notice. A coordinator that does not read what it is told is given up.
    pub fn notify(&self, notice: Notice) {
        if self.notices.try_send(notice).is_err() {
            self.close("the coordinator does not read the worker's notices");
        }
    }

    /// Sends a datagram, which may get lost.
    pub fn send_datagram(&self, datagram: &Datagram) {
        // At the connection's end the tasks say so; a lost heartbeat is a lost heartbeat.
        let _ = send_datagram(&self.connection, datagram);
    }

    /// Where deliveries go as soon as there is room.
    #[must_use]
    pub fn deliveries(&self) -> &Sender<Delivery> {
        &self.deliveries
    }

    /// Ends the connection; [`LinkEvent::Ended`] follows.
    pub fn close(&self, reason: &str) {
        self.connection.close(VarInt::from_u32(CLOSE_DONE), reason.as_bytes());
    }
}

async fn run(
    link: Link,
    peer: PeerId,
    events: Sender<(PeerId, LinkEvent)>,
    notices: Receiver<Notice>,
    deliveries: Receiver<Delivery>,
) {
    let Link { connection, control, peer: _ } = link;
    let (send, receive) = control.split();
    let mut tasks = JoinSet::new();
    tasks.spawn(read_commands(receive, peer, events.clone()));
    tasks.spawn(write_notices(send, notices));
    tasks.spawn(answer_datagrams(connection.clone(), peer, events.clone()));
    tasks.spawn(write_deliveries(connection.clone(), deliveries));
    let first = tasks.join_next().await;
    let end = match first {
        Some(Ok(end)) => end,
        Some(Err(error)) => LinkEnd::Lost(format!("a task of the link failed: {error}")),
        None => LinkEnd::Here,
    };
    let reason = end.to_string();
    connection.close(VarInt::from_u32(CLOSE_DONE), reason.as_bytes());
    tasks.shutdown().await;
    // Without a daemon nobody wants to know.
    let _ = events.send((peer, LinkEvent::Ended(end))).await;
}

async fn read_commands(
    mut receive: ControlReceive,
    peer: PeerId,
    events: Sender<(PeerId, LinkEvent)>,
) -> LinkEnd {
    loop {
        match receive.receive::<Command>().await {
            Ok(Some(command)) => {
                if events.send((peer, LinkEvent::Command(command))).await.is_err() {
                    return LinkEnd::Here;
                }
            }
            Ok(None) => return LinkEnd::Finished,
            Err(error) => return ended_by(&error),
        }
    }
}

async fn write_notices(mut send: ControlSend, mut notices: Receiver<Notice>) -> LinkEnd {
    while let Some(notice) = notices.recv().await {
        if let Err(error) = send.send(&notice).await {
            return ended_by(&error);
        }
    }
    LinkEnd::Here
}

async fn answer_datagrams(
    connection: Connection,
    peer: PeerId,
    events: Sender<(PeerId, LinkEvent)>,
) -> LinkEnd {
    loop {
        let datagram = receive_datagram(&connection).await;
        let received_ns = monotonic_ns();
        match datagram {
            Ok(Datagram::Ping { sequence, sent_ns }) => {
                let answered_ns = monotonic_ns();
                let pong = Datagram::Pong { sequence, sent_ns, received_ns, answered_ns };
                let _ = send_datagram(&connection, &pong);
            }
            // One that finds no room is lost like one that the network lost.
            Ok(Datagram::Alive { .. }) => {
                let _ = events.try_send((peer, LinkEvent::Alive));
            }
            Ok(Datagram::Pong { .. } | Datagram::Beat(_)) | Err(LinkError::Codec(_)) => {}
            Err(error) => return ended_by(&error),
        }
    }
}

/// A stream for each point, in the order in which they come.
async fn write_deliveries(connection: Connection, mut deliveries: Receiver<Delivery>) -> LinkEnd {
    let mut stream: Option<(PointId, FrameSend)> = None;
    let mut unwanted = None;
    while let Some(delivery) = deliveries.recv().await {
        let point = delivery.point;
        if unwanted == Some(point) {
            continue;
        }
        if stream.as_ref().is_none_or(|(its, _)| *its != point) {
            match connection.open_uni().await {
                Ok(new) => stream = Some((point, FrameSend::new(new))),
                Err(error) => return ended_by(&error.into()),
            }
        }
        let Some((_, open)) = &mut stream else {
            continue;
        };
        match open.send(&delivery).await {
            Ok(()) if matches!(delivery.content, Content::Report(_)) => open.finish(),
            Ok(()) => {}
            // The coordinator ended this stream alone: it wants no more of the point.
            Err(LinkError::Broken(_)) => unwanted = Some(point),
            Err(error) => return ended_by(&error),
        }
    }
    LinkEnd::Here
}

fn ended_by(error: &LinkError) -> LinkEnd {
    LinkEnd::Lost(error.to_string())
}
