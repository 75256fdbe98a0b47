//! Making contact: hellos that do not fit, hosts that are not there, and what people read then.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use iofleet_shared::{
    transport::{
        self, ALPN, AcceptFailure, CLOSE_HELLO, ConnectFailure, EndpointError, Role, SERVER_NAME,
    },
    wire::{HELLO_BYTES, Hello, HelloError},
};
use quinn::ConnectionError;

use crate::pki::{
    Authority, CLIENT, GOOD, LONG, SERVER, accept_one, connect_to, listening, raw_server,
};

/// Long enough for a packet on loopback, short enough to wait for in vain.
const SHORT: Duration = Duration::from_millis(300);

fn from_the_future() -> Hello {
    Hello { oldest: 7, newest: 9, build: "9.9.9".to_owned() }
}

#[tokio::test]
async fn a_coordinator_of_another_version_is_told_in_words() {
    let fleet = Authority::new("fleet");
    let (server, address) = listening(&fleet);
    let accepted = accept_one(&server);
    let client = fleet.raw_client(Some(&fleet.issue(&[CLIENT], GOOD)), ALPN);
    let connection = client.connect(address, SERVER_NAME).unwrap().await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&from_the_future().encode()).await.unwrap();
    let mut bytes = [0; HELLO_BYTES];
    receive.read_exact(&mut bytes).await.unwrap();
    assert_eq!(Hello::decode(&bytes), Ok(Hello::ours()));
    let ConnectionError::ApplicationClosed(close) = connection.closed().await else {
        panic!("not closed by the worker");
    };
    assert_eq!(close.error_code, CLOSE_HELLO.into());
    let reason = String::from_utf8_lossy(&close.reason).into_owned();
    assert!(reason.contains("protocol 7 to 9"), "{reason}");
    let error = accepted.await.unwrap().unwrap_err();
    let AcceptFailure::Hello(HelloError::NoCommonVersion { build, .. }) = &error.why else {
        panic!("{error}");
    };
    assert_eq!(build, "9.9.9");
}

#[tokio::test]
async fn a_worker_of_another_version_is_named_and_told() {
    let fleet = Authority::new("fleet");
    let server = raw_server(&fleet.issue(&[SERVER], GOOD));
    let address = server.local_addr().unwrap();
    let old = tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        let mut bytes = [0; HELLO_BYTES];
        receive.read_exact(&mut bytes).await.unwrap();
        send.write_all(&from_the_future().encode()).await.unwrap();
        connection.closed().await
    });
    let client = transport::client(&fleet.identity(Role::Coordinator), false).unwrap();
    let error = connect_to(&client, address).await.unwrap_err();
    assert!(matches!(&error.why, ConnectFailure::Hello(HelloError::NoCommonVersion { .. })));
    let text = error.to_string();
    assert!(text.contains("9.9.9") && text.contains("install the same version"), "{text}");
    let told = transport::connection_words(&old.await.unwrap());
    assert!(told.contains("protocol 7 to 9"), "{told}");
}

#[tokio::test]
async fn a_peer_that_greets_with_something_else_is_turned_away() {
    let fleet = Authority::new("fleet");
    let (server, address) = listening(&fleet);
    let accepted = accept_one(&server);
    let client = fleet.raw_client(Some(&fleet.issue(&[CLIENT], GOOD)), ALPN);
    let connection = client.connect(address, SERVER_NAME).unwrap().await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&[b'x'; HELLO_BYTES]).await.unwrap();
    // Not even a hello comes back.
    assert!(receive.read_to_end(HELLO_BYTES).await.is_ok_and(|bytes| bytes.is_empty()));
    let error = accepted.await.unwrap().unwrap_err();
    assert!(matches!(error.why, AcceptFailure::Hello(HelloError::Foreign)), "{error}");
}

#[tokio::test]
async fn an_absent_worker_is_named_with_its_port() {
    let fleet = Authority::new("fleet");
    // Somebody else's socket, which never answers.
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let client = transport::client(&fleet.identity(Role::Coordinator), false).unwrap();
    let error = transport::connect(&client, "127.0.0.1", port, SHORT).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "127.0.0.1:{port}: no answer within 300ms: is iofleet-worker running there, and is \
             UDP port {port} open?"
        )
    );
    assert_eq!(error.tried, [SocketAddr::from((Ipv4Addr::LOCALHOST, port))]);
}

#[tokio::test]
async fn a_worker_that_does_not_greet_is_not_waited_for() {
    let fleet = Authority::new("fleet");
    let server = raw_server(&fleet.issue(&[SERVER], GOOD));
    let port = server.local_addr().unwrap().port();
    let mute = tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        connection.closed().await
    });
    let client = transport::client(&fleet.identity(Role::Coordinator), false).unwrap();
    // The handshake has to fit in, on a busy machine too.
    let within = Duration::from_secs(2);
    let error = transport::connect(&client, "127.0.0.1", port, within).await.unwrap_err();
    assert!(matches!(error.why, ConnectFailure::Mute(_)), "{error}");
    assert!(matches!(mute.await.unwrap(), ConnectionError::ApplicationClosed(_)));
}

#[tokio::test]
async fn names_and_both_families_of_addresses() {
    let fleet = Authority::new("fleet");
    let (server, address) = listening(&fleet);
    let both = transport::client(&fleet.identity(Role::Coordinator), true).unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let accepted = accept_one(&server);
        let link = transport::connect(&both, host, address.port(), LONG).await.unwrap();
        assert_eq!(link.peer, Hello::ours());
        assert!(accepted.await.unwrap().is_ok());
    }
    let v4 = transport::client(&fleet.identity(Role::Coordinator), false).unwrap();
    let error = transport::connect(&v4, "[::1]", address.port(), LONG).await.unwrap_err();
    assert!(matches!(error.why, ConnectFailure::NoRoute), "{error}");
    assert!(error.to_string().starts_with(&format!("[::1]:{}: ", address.port())), "{error}");
    let error = transport::connect(&v4, "no such host", 1, LONG).await.unwrap_err();
    assert!(matches!(error.why, ConnectFailure::Resolve(_)), "{error}");
}

#[tokio::test]
async fn endpoints_name_what_they_lack() {
    let fleet = Authority::new("fleet");
    let (server, address) = listening(&fleet);
    let error = transport::listen(address, &fleet.identity(Role::Worker)).unwrap_err();
    assert!(matches!(&error, EndpointError::Listen { .. }));
    let text = error.to_string();
    assert!(text.contains(&address.to_string()) && text.contains("another port"), "{text}");
    let text = transport::listen(address, &fleet.identity(Role::Coordinator)).unwrap_err();
    assert_eq!(text.to_string(), "a worker's keys are needed here, these are a coordinator's");
    let text = transport::client(&fleet.identity(Role::Worker), false).unwrap_err();
    assert_eq!(text.to_string(), "a coordinator's keys are needed here, these are a worker's");
    drop(server);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let bound = socket.local_addr().unwrap();
    let taken = transport::listen_on(socket, &fleet.identity(Role::Worker)).unwrap();
    assert_eq!(taken.local_addr().unwrap(), bound);
}
