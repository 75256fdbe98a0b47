//! Who has no certificate of the right kind gets nothing, and both sides say why.

use iofleet_shared::{
    transport::{self, ALPN, AcceptFailure, ConnectFailure, Flaw, Role, SERVER_NAME},
    wire::{Body, Command, Hello},
};

use crate::pki::{
    Authority, CLIENT, FUTURE, GOOD, PAST, Pair, SERVER, accept_one, connect_to, listening,
    raw_server, self_signed,
};

/// What is presented to a fleet's worker, and what is wrong with it.
fn impostors(fleet: &Authority) -> Vec<(&'static str, Option<Pair>, Flaw)> {
    let foreign = Authority::new("somebody else");
    let namesake = Authority::new("fleet");
    vec![
        ("no certificate", None, Flaw::Missing),
        ("self-signed", Some(self_signed(CLIENT)), Flaw::Foreign),
        ("another authority's", Some(foreign.issue(&[CLIENT], GOOD)), Flaw::Foreign),
        ("a namesake authority's", Some(namesake.issue(&[CLIENT], GOOD)), Flaw::Foreign),
        ("expired", Some(fleet.issue(&[CLIENT], PAST)), Flaw::Expired),
        ("not valid yet", Some(fleet.issue(&[CLIENT], FUTURE)), Flaw::NotYetValid),
        ("a worker's", Some(fleet.issue(&[SERVER], GOOD)), Flaw::WrongRole),
        ("of both roles", Some(fleet.issue(&[SERVER, CLIENT], GOOD)), Flaw::WrongRole),
        ("of no role", Some(fleet.issue(&[], GOOD)), Flaw::WrongRole),
    ]
}

#[tokio::test]
async fn impostors_are_told_why_on_both_sides() {
    let fleet = Authority::new("fleet");
    let (server, address) = listening(&fleet);
    for (what, pair, flaw) in impostors(&fleet) {
        let accepted = accept_one(&server);
        let client = fleet.raw_client(pair.as_ref(), ALPN);
        let error = connect_to(&client, address).await.expect_err(what);
        let ConnectFailure::Refused(found) = &error.why else { panic!("{what}: {error}") };
        assert_eq!(*found, flaw, "{what}");
        let error = accepted.await.unwrap().expect_err(what);
        let AcceptFailure::Certificate(found) = &error.why else { panic!("{what}: {error}") };
        assert_eq!(*found, flaw, "{what}");
    }
}

/// A peer that ignores the protocol and talks at once, as an attacker would.
#[tokio::test]
async fn impostors_read_nothing() {
    let fleet = Authority::new("fleet");
    let (server, address) = listening(&fleet);
    let claim =
        Command::Claim { campaign: "c".to_owned(), holder: "h".to_owned(), node: "n".to_owned() };
    for (what, pair, _) in impostors(&fleet) {
        let accepted = accept_one(&server);
        let client = fleet.raw_client(pair.as_ref(), ALPN);
        let connecting = client.connect(address, SERVER_NAME).unwrap();
        // The handshake may look finished from here; nothing must come of it.
        if let Ok(connection) = connecting.await {
            if let Ok((mut send, mut receive)) = connection.open_bi().await {
                let _ = send.write_all(&Hello::ours().encode()).await;
                let _ = send.write_all(&claim.encode().unwrap()).await;
                let mut byte = [0];
                assert!(receive.read(&mut byte).await.is_err(), "{what}");
            }
            assert!(connection.accept_uni().await.is_err(), "{what}");
            assert!(connection.read_datagram().await.is_err(), "{what}");
        }
        assert!(accepted.await.unwrap().is_err(), "{what}");
    }
}

#[tokio::test]
async fn impostors_of_a_worker_are_distrusted() {
    let fleet = Authority::new("fleet");
    let foreign = Authority::new("somebody else");
    let client = transport::client(&fleet.identity(Role::Coordinator), false).unwrap();
    let impostors = [
        ("self-signed", self_signed(SERVER), Flaw::Foreign),
        ("another authority's", foreign.issue(&[SERVER], GOOD), Flaw::Foreign),
        ("a namesake's", Authority::new("fleet").issue(&[SERVER], GOOD), Flaw::Foreign),
        ("expired", fleet.issue(&[SERVER], PAST), Flaw::Expired),
        ("not valid yet", fleet.issue(&[SERVER], FUTURE), Flaw::NotYetValid),
        ("a coordinator's", fleet.issue(&[CLIENT], GOOD), Flaw::WrongRole),
        ("of both roles", fleet.issue(&[SERVER, CLIENT], GOOD), Flaw::WrongRole),
        ("of no role", fleet.issue(&[], GOOD), Flaw::WrongRole),
    ];
    for (what, pair, flaw) in impostors {
        let server = raw_server(&pair);
        let address = server.local_addr().unwrap();
        let accepted = accept_one(&server);
        let error = connect_to(&client, address).await.expect_err(what);
        let ConnectFailure::Distrusted(found) = &error.why else { panic!("{what}: {error}") };
        assert_eq!(*found, flaw, "{what}");
        let error = accepted.await.unwrap().expect_err(what);
        let AcceptFailure::Distrusted(found) = &error.why else { panic!("{what}: {error}") };
        assert_eq!(*found, flaw, "{what}");
    }
}

#[tokio::test]
async fn a_worker_of_the_right_role_without_the_fleets_name_is_distrusted() {
    let fleet = Authority::new("fleet");
    let client = transport::client(&fleet.identity(Role::Coordinator), false).unwrap();
    let server = raw_server(&fleet.issue_for("elsewhere.example", &[SERVER], GOOD));
    let accepted = accept_one(&server);
    let error = connect_to(&client, server.local_addr().unwrap()).await.unwrap_err();
    assert!(matches!(&error.why, ConnectFailure::Distrusted(Flaw::Other(_))), "{error}");
    assert!(error.to_string().contains("elsewhere.example"), "{error}");
    assert!(accepted.await.unwrap().is_err());
}

#[tokio::test]
async fn another_application_is_named() {
    let fleet = Authority::new("fleet");
    let (server, address) = listening(&fleet);
    let accepted = accept_one(&server);
    let client = fleet.raw_client(Some(&fleet.issue(&[CLIENT], GOOD)), b"h3");
    let error = connect_to(&client, address).await.unwrap_err().to_string();
    assert!(error.contains("does not speak iofleet's protocol"), "{error}");
    assert!(accepted.await.unwrap().is_err());
}

#[tokio::test]
async fn a_refused_stranger_does_not_stand_in_the_way() {
    let fleet = Authority::new("fleet");
    let (server, address) = listening(&fleet);
    let refused = accept_one(&server);
    let stranger = fleet.raw_client(None, ALPN);
    assert!(connect_to(&stranger, address).await.is_err());
    assert!(refused.await.unwrap().is_err());
    let accepted = accept_one(&server);
    let client = transport::client(&fleet.identity(Role::Coordinator), false).unwrap();
    let link = connect_to(&client, address).await.unwrap();
    assert_eq!(link.peer, Hello::ours());
    assert_eq!(accepted.await.unwrap().unwrap().peer, Hello::ours());
}
