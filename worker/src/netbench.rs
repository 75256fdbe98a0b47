//! The network alone: memory to memory over TCP streams between nodes.
//!
//! Every node receives, and counts by sender; nobody counts what it sends, for that may lie in a
//! buffer of its own. Senders connect, show the token that the coordinator dealt out, and send only
//! once the receiver has taken it: a worker can't be made to flood a host that does not play along.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use iofleet_shared::{
    clock::monotonic_ns,
    limits::as_ns,
    wire::{NetFlow, NetOrder, NetReceived},
};

/// What a sender shows first: the token and its number.
const HELLO_BYTES: usize = 20;
/// The receiver's answer.
const WELCOME: u8 = 1;
/// Bytes of a send or receive.
const PIECE_BYTES: usize = 256 << 10;
/// How long a peer may take to connect, and to say hello.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// How often a receiver without bytes looks whether it is to end, and a listener for senders.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Senders go on for so long after their own time, so that nobody's window is cut short.
const TAIL: Duration = Duration::from_millis(500);
/// How soon a measurement ends that is ended before its time.
const END_WITHIN: Duration = Duration::from_millis(100);
/// Streams that one node may send in all.
pub const STREAMS_MAX: usize = 4_096;

/// Bytes by sender.
type Counters = Arc<Mutex<Vec<(u32, Arc<AtomicU64>)>>>;

/// A node that receives, until it is dropped.
#[derive(Debug)]
pub struct Reception {
    port: u16,
    counters: Counters,
    ended: Arc<AtomicBool>,
}

/// What a node measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Length of the time.
    pub elapsed_ns: u64,
    /// What came in it, by sender.
    pub received: Vec<NetReceived>,
}

impl Reception {
    /// Receives on an address, at a port that the system chooses, from who shows the token.
    ///
    /// # Errors
    /// When there is no such port or no thread to be had.
    pub fn open(address: IpAddr, token: [u8; 16]) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(address, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let (counters, ended) = (Counters::default(), Arc::new(AtomicBool::new(false)));
        let hall = Hall { token, counters: Arc::clone(&counters), ended: Arc::clone(&ended) };
        thread::Builder::new()
            .name("net-accept".to_owned())
            .spawn(move || hall.accept(&listener))?;
        Ok(Self { port, counters, ended })
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends as ordered, and counts what comes after the warm-up for as long as ordered. Blocks for
    /// that time.
    ///
    /// # Errors
    /// What stands in the way of a stream, in words; then nothing is measured.
    pub fn measure(&self, order: &NetOrder) -> Result<Measured, String> {
        let began_ns = monotonic_ns();
        let first_ns = began_ns.saturating_add(order.warm_ns);
        let until_ns = first_ns.saturating_add(order.window_ns).saturating_add(as_ns(TAIL));
        let senders = send_all(order, until_ns, &self.ended)?;
        self.sleep_until(first_ns)?;
        let (first_ns, before) = (monotonic_ns(), self.counts());
        self.sleep_until(first_ns.saturating_add(order.window_ns))?;
        let (elapsed_ns, after) = (monotonic_ns() - first_ns, self.counts());
        for sender in senders {
            sender.join().map_err(|_| "a sending thread panicked".to_owned())??;
        }
        let bytes_before =
            |from| before.iter().find(|(known, _)| *known == from).map_or(0, |(_, bytes)| *bytes);
        let received = after
            .into_iter()
            .map(|(from, bytes)| NetReceived { from, bytes: bytes - bytes_before(from) })
            .collect();
        Ok(Measured { elapsed_ns, received })
    }

    /// Ends it, and what it sends: nobody waits for it any more.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Sleeps, and looks now and then whether it is to end.
    fn sleep_until(&self, until_ns: u64) -> Result<(), String> {
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return Err("the measurement was ended before its time".to_owned());
            }
            let left_ns = until_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                return Ok(());
            }
            thread::sleep(Duration::from_nanos(left_ns).min(END_WITHIN));
        }
    }

    /// Totals by sender, of all its streams.
    fn counts(&self) -> Vec<(u32, u64)> {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.iter().map(|(from, bytes)| (*from, bytes.load(Ordering::Relaxed))).collect()
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the threads of a reception share.
#[derive(Clone)]
struct Hall {
    token: [u8; 16],
    counters: Counters,
    ended: Arc<AtomicBool>,
}

impl Hall {
    fn accept(&self, listener: &TcpListener) {
        while !self.ended.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, from)) => {
                    let hall = self.clone();
                    let name = "net-receive".to_owned();
                    let started = thread::Builder::new().name(name).spawn(move || {
                        if let Err(error) = hall.receive(stream) {
                            tracing::debug!("receiving from {from}: {error}");
                        }
                    });
                    if let Err(error) = started {
                        tracing::warn!("can't start a thread to receive from {from}: {error}");
                    }
                }
                Err(_) => thread::sleep(LOOK_EVERY),
            }
        }
    }

    fn receive(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(HELLO_WITHIN))?;
        let mut hello = [0; HELLO_BYTES];
        stream.read_exact(&mut hello)?;
        let (token, from) = hello.split_at(self.token.len());
        if token != self.token {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the token is another"));
        }
        let from = u32::from_le_bytes(from.try_into().map_err(io::Error::other)?);
        let counter = self.counter(from);
        stream.write_all(&[WELCOME])?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        let mut piece = vec![0; PIECE_BYTES];
        while !self.ended.load(Ordering::Relaxed) {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(bytes) => {
                    counter.fetch_add(bytes as u64, Ordering::Relaxed);
                }
                Err(error) if waits(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One for all streams of a sender.
    fn counter(&self, from: u32) -> Arc<AtomicU64> {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, counter)) = counters.iter().find(|(known, _)| *known == from) {
            return Arc::clone(counter);
        }
        let counter = Arc::new(AtomicU64::new(0));
        counters.push((from, Arc::clone(&counter)));
        counter
    }
}

fn waits(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Connects all streams before the first byte flows.
fn send_all(
    order: &NetOrder,
    until_ns: u64,
    ended: &Arc<AtomicBool>,
) -> Result<Vec<JoinHandle<Result<(), String>>>, String> {
    let count: usize = order.flows.iter().map(|flow| flow.streams as usize).sum();
    if count > STREAMS_MAX {
        return Err(format!("{count} streams of one node, more than {STREAMS_MAX}"));
    }
    let mut streams = Vec::with_capacity(count);
    for flow in &order.flows {
        for _ in 0..flow.streams {
            let stream = connect(flow, order)
                .map_err(|error| format!("to {} port {}: {error}", flow.address, flow.port))?;
            streams.push(stream);
        }
    }
    let spawn = |stream| {
        let ended = Arc::clone(ended);
        thread::Builder::new()
            .name("net-send".to_owned())
            .spawn(move || send(stream, until_ns, &ended))
            .map_err(|error| format!("can't start a thread: {error}"))
    };
    streams.into_iter().map(spawn).collect()
}

fn connect(flow: &NetFlow, order: &NetOrder) -> io::Result<TcpStream> {
    let address: IpAddr = flow.address.parse().map_err(io::Error::other)?;
    let to = SocketAddr::new(address, flow.port);
    let mut stream = TcpStream::connect_timeout(&to, HELLO_WITHIN)?;
    stream.set_read_timeout(Some(HELLO_WITHIN))?;
    let mut hello = [0; HELLO_BYTES];
    hello[..order.token.len()].copy_from_slice(&order.token);
    hello[order.token.len()..].copy_from_slice(&order.me.to_le_bytes());
    stream.write_all(&hello)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    // A receiver that no longer reads must not hold the sender.
    stream.set_write_timeout(Some(HELLO_WITHIN))?;
    Ok(stream)
}

fn send(mut stream: TcpStream, until_ns: u64, ended: &AtomicBool) -> Result<(), String> {
    let piece = vec![0x5a; PIECE_BYTES];
    while monotonic_ns() < until_ns && !ended.load(Ordering::Relaxed) {
        match stream.write(&piece) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let to =
                    stream.peer_addr().map_or_else(|_| "a node".to_owned(), |to| to.to_string());
                return Err(format!("sending to {to}: {error}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn order(me: u32, token: [u8; 16], to: &[(u16, u32)]) -> NetOrder {
        let flow = |&(port, streams)| NetFlow { address: HERE.to_string(), port, streams };
        NetOrder {
            me,
            token,
            flows: to.iter().map(flow).collect(),
            warm_ns: 50_000_000,
            window_ns: 200_000_000,
        }
    }

    /// Two nodes send to a third, one of them by two streams: each is counted under its own number.
    #[test]
    fn what_is_received_is_counted_by_sender() {
        let token = [7; 16];
        let nodes: Vec<_> = (0..3).map(|_| Reception::open(HERE, token).unwrap()).collect();
        let third = nodes[2].port();
        let orders =
            [order(0, token, &[(third, 1)]), order(1, token, &[(third, 2)]), order(2, token, &[])];
        let measured: Vec<Measured> = thread::scope(|scope| {
            let running: Vec<_> = nodes
                .iter()
                .zip(&orders)
                .map(|(node, order)| scope.spawn(|| node.measure(order).unwrap()))
                .collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut senders: Vec<u32> = measured[2].received.iter().map(|r| r.from).collect();
        senders.sort_unstable();
        assert_eq!(senders, [0, 1]);
        assert!(measured[2].received.iter().all(|received| received.bytes > 0));
        assert!(measured[2].elapsed_ns >= 200_000_000);
        assert!(measured[..2].iter().all(|measured| measured.received.is_empty()));
    }

    /// Who leaves ends what was to go on for an hour.
    #[test]
    fn a_measurement_can_be_ended() {
        let node = Reception::open(HERE, [1; 16]).unwrap();
        let hour =
            NetOrder { window_ns: 3_600_000_000_000, ..order(0, [1; 16], &[(node.port(), 1)]) };
        let why = thread::scope(|scope| {
            let measuring = scope.spawn(|| node.measure(&hour));
            while node.counts().is_empty() {
                thread::sleep(LOOK_EVERY);
            }
            node.end();
            measuring.join().unwrap().unwrap_err()
        });
        assert!(why.contains("before its time"), "{why}");
    }

    #[test]
    fn another_token_is_not_let_in() {
        let node = Reception::open(HERE, [1; 16]).unwrap();
        let why = node.measure(&order(0, [2; 16], &[(node.port(), 1)])).unwrap_err();
        assert!(why.contains(&format!("127.0.0.1 port {}", node.port())), "{why}");
        assert!(node.counts().is_empty());
    }

    #[test]
    fn a_node_that_does_not_listen_is_named() {
        let gone = TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap().port();
        let node = Reception::open(HERE, [1; 16]).unwrap();
        let why = node.measure(&order(0, [1; 16], &[(gone, 1)])).unwrap_err();
        assert!(why.contains("refused"), "{why}");
    }

    #[test]
    fn absurd_numbers_of_streams_are_refused() {
        let node = Reception::open(HERE, [1; 16]).unwrap();
        let why = node.measure(&order(0, [1; 16], &[(node.port(), u32::MAX)])).unwrap_err();
        assert!(why.contains("more than 4096"), "{why}");
    }
}
