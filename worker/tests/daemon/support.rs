//! A daemon on a thread of its own, keys for it, and a scripted coordinator.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
    thread::JoinHandle,
    time::Duration,
};

use iofleet_shared::{
    clock::{ClockMap, monotonic_ns},
    ids::PointId,
    transport::{
        ControlSend, FrameReceive, Identity, Link, Role, SERVER_NAME, client, connect,
        receive_datagram, send_datagram,
    },
    wire::{Command, Datagram, Delivery, Notice},
    work::{Amount, DatasetDir, Fsync, OpKind, SizeShare, TargetSpec, WorkerPlan},
};
use iofleet_worker::daemon::{DaemonConfig, RunError, run_on};
use quinn::{Connection, Endpoint};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio::{
    sync::{
        mpsc::{Receiver, channel},
        oneshot,
    },
    time::timeout,
};

use crate::fixture;

/// Enough for anything that is not meant to fail by time.
pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const POINT: PointId = PointId { index: 0, attempt: 0 };
pub(crate) const MIB: u64 = 1 << 20;

/// Keys of a fleet.
pub(crate) struct Keys {
    authority: CertificateParams,
    key: KeyPair,
    certificate: String,
}

impl Keys {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = authority.self_signed(&key).unwrap().pem();
        Self { authority, key, certificate }
    }

    /// The authority's certificate, PEM.
    pub(crate) fn authority(&self) -> &str {
        &self.certificate
    }

    /// A certificate of that role and its key, PEM.
    pub(crate) fn pair(&self, role: Role) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap();
        params.extended_key_usages = vec![match role {
            Role::Coordinator => ExtendedKeyUsagePurpose::ClientAuth,
            Role::Worker => ExtendedKeyUsagePurpose::ServerAuth,
        }];
        let issuer = Issuer::from_params(&self.authority, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        (certificate, key.serialize_pem())
    }

    pub(crate) fn identity(&self, role: Role) -> Identity {
        let (certificate, key) = self.pair(role);
        Identity::from_pem(&self.certificate, &certificate, &key, role).unwrap()
    }
}

/// A daemon that runs until it is stopped or dropped.
pub(crate) struct Daemon {
    pub(crate) address: SocketAddr,
    keys: Keys,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl Daemon {
    pub(crate) fn start(root: &Path) -> Self {
        let keys = Keys::new();
        let config = DaemonConfig {
            roots: vec![root.to_owned()],
            devices: vec![],
            allow_local: true,
            identity: keys.identity(Role::Worker),
        };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            run_on(socket, config, async {
                let _ = stopped.await;
            })
        });
        Self { address, keys, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) async fn coordinator(&self) -> Coordinator {
        let endpoint = client(&self.keys.identity(Role::Coordinator), false).unwrap();
        let host = self.address.ip().to_string();
        let link = connect(&endpoint, &host, self.address.port(), LONG).await.unwrap();
        Coordinator::new(endpoint, link)
    }

    /// Tells it to stop, without waiting.
    pub(crate) fn tell_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Waits for its end.
    pub(crate) fn join(&mut self) -> Result<(), RunError> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Says what the test says, and keeps what it hears.
pub(crate) struct Coordinator {
    pub(crate) connection: Connection,
    send: ControlSend,
    notices: Receiver<Notice>,
    deliveries: Receiver<Delivery>,
    datagrams: Receiver<Datagram>,
    _endpoint: Endpoint,
}

impl Coordinator {
    fn new(endpoint: Endpoint, link: Link) -> Self {
        let Link { connection, control, .. } = link;
        let (send, mut receive) = control.split();
        let (notices_in, notices) = channel(64);
        tokio::spawn(async move {
            while let Ok(Some(notice)) = receive.receive::<Notice>().await {
                let _ = notices_in.send(notice).await;
            }
        });
        let (deliveries_in, deliveries) = channel(64);
        let streams = connection.clone();
        tokio::spawn(async move {
            while let Ok(stream) = streams.accept_uni().await {
                let mut stream = FrameReceive::new(stream);
                while let Ok(Some(delivery)) = stream.receive::<Delivery>().await {
                    let _ = deliveries_in.send(delivery).await;
                }
            }
        });
        let (datagrams_in, datagrams) = channel(1024);
        let carrier = connection.clone();
        tokio::spawn(async move {
            while let Ok(datagram) = receive_datagram(&carrier).await {
                let _ = datagrams_in.try_send(datagram);
            }
        });
        Self { connection, send, notices, deliveries, datagrams, _endpoint: endpoint }
    }

    pub(crate) async fn say(&mut self, command: Command) {
        self.send.send(&command).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Notice {
        timeout(LONG, self.notices.recv()).await.unwrap().expect("a notice")
    }

    pub(crate) async fn ask(&mut self, command: Command) -> Notice {
        self.say(command).await;
        self.hear().await
    }

    pub(crate) async fn delivery(&mut self) -> Delivery {
        timeout(LONG, self.deliveries.recv()).await.unwrap().expect("a delivery")
    }

    pub(crate) fn ping(&self, sequence: u64) {
        let ping = Datagram::Ping { sequence, sent_ns: monotonic_ns() };
        send_datagram(&self.connection, &ping).unwrap();
    }

    pub(crate) async fn datagram(&mut self) -> Datagram {
        timeout(LONG, self.datagrams.recv()).await.unwrap().expect("a datagram")
    }

    pub(crate) async fn claim(&mut self, campaign: &str) -> Notice {
        let campaign = campaign.to_owned();
        let holder = "ann@laptop, pid 12".to_owned();
        self.ask(Command::Claim { campaign, holder, node: "n1".to_owned() }).await
    }

    /// Claims, inspects and arms.
    pub(crate) async fn prepare(&mut self, plan: &WorkerPlan) {
        assert!(matches!(self.claim(&plan.dir.campaign).await, Notice::Claimed(_)));
        let notice = self.ask(Command::Inspect(Box::new(spec(&plan.dir)))).await;
        assert!(matches!(notice, Notice::Inspected(_)), "{notice:?}");
        let notice = self.ask(Command::Arm(Box::new(plan.clone()))).await;
        assert!(matches!(notice, Notice::Armed { point: POINT, .. }), "{notice:?}");
    }

    /// Gives T0 and the commit; returns T0.
    pub(crate) async fn start(&mut self) -> u64 {
        let t0 = monotonic_ns() + 200_000_000;
        let map = ClockMap::IDENTITY;
        let notice = self.ask(Command::Start { point: POINT, t0_fleet_ns: t0, map }).await;
        assert!(
            matches!(notice, Notice::Ready { point: POINT, t0_worker_ns, .. } if t0_worker_ns == t0),
            "{notice:?}"
        );
        self.say(Command::Commit { point: POINT }).await;
        t0
    }
}

pub(crate) fn dataset(root: &Path) -> DatasetDir {
    DatasetDir {
        path: root.join("t").display().to_string(),
        name: "d".to_owned(),
        campaign: "c1".to_owned(),
    }
}

pub(crate) fn spec(dir: &DatasetDir) -> TargetSpec {
    TargetSpec {
        bytes: 4 * MIB,
        files: 2,
        min_free_milli: 0,
        allow_holes: false,
        threads: 2,
        buffer_bytes: 2 * MIB,
        ..fixture::target_spec(dir.clone())
    }
}

/// Two threads write 2 MiB each, in blocks of 64 KiB, into a file of their own.
pub(crate) fn plan(root: &Path, amount: Amount) -> WorkerPlan {
    let thread = |thread: u32| {
        let files = fixture::named(&format!("f{thread}"), 2 * MIB);
        fixture::thread(thread, &[OpKind::Write], files, 32)
    };
    WorkerPlan {
        point: POINT,
        blocks: vec![SizeShare { bytes: 64 << 10, weight: 1 }],
        fsync: Fsync::None,
        amount,
        interval_ns: 100 * fixture::MS,
        stuck_after_ns: 10_000 * fixture::MS,
        ..fixture::plan(dataset(root), vec![thread(0), thread(1)])
    }
}
