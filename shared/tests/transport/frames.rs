//! What a link carries, and where it stops.

use std::future::ready;

use iofleet_shared::{
    ids::PointId,
    limits::FRAME_BYTES_MAX,
    transport::{self, FrameReceive, FrameSend, LinkError},
    wire::{
        Body, CodecError, Command, Content, Datagram, Delivery, HEADER_BYTES, Notice, Refusal,
        RefusalKind, Removal,
    },
    work::OpKind,
};

use crate::pki::joined;

const POINT: PointId = PointId { index: 3, attempt: 0 };

fn refused(length: usize) -> Notice {
    Notice::Refused(Refusal {
        kind: RefusalKind::Target,
        point: Some(POINT),
        text: "x".repeat(length),
    })
}

#[tokio::test]
async fn commands_and_notices_come_in_order_and_end_cleanly() {
    let mut both = joined().await;
    for index in 0..100 {
        let point = PointId { index, attempt: 0 };
        both.coordinator.control.send.send(&Command::Commit { point }).await.unwrap();
    }
    both.coordinator.control.send.finish();
    for index in 0..100 {
        let command: Option<Command> = both.worker.control.receive.receive().await.unwrap();
        assert_eq!(command, Some(Command::Commit { point: PointId { index, attempt: 0 } }));
    }
    assert_eq!(both.worker.control.receive.receive::<Command>().await.unwrap(), None);
    both.coordinator.control.send.delivered().await.unwrap();
    let notice = Notice::Released(Removal { files: 4, left: vec!["/a".to_owned()] });
    both.worker.control.send.send(&notice).await.unwrap();
    let received = both.coordinator.control.receive.receive().await.unwrap();
    assert_eq!(received, Some(notice));
}

#[tokio::test]
async fn the_largest_frame_passes_and_a_larger_one_is_not_sent() {
    let both = joined().await;
    let (mut send, _) = both.worker.control.split();
    let (_, mut receive) = both.coordinator.control.split();
    let room = FRAME_BYTES_MAX as usize - 1024;
    let sender = tokio::spawn(async move {
        send.send(&refused(room)).await.unwrap();
        let error = send.send(&refused(room + 2048)).await.unwrap_err();
        assert!(matches!(error, LinkError::Codec(CodecError::Length(_))), "{error}");
        send.send(&refused(5)).await.unwrap();
        send
    });
    assert_eq!(receive.receive().await.unwrap(), Some(refused(room)));
    assert_eq!(receive.receive().await.unwrap(), Some(refused(5)));
    drop(sender.await.unwrap());
}

#[tokio::test]
async fn a_stalled_delivery_stream_does_not_delay_control() {
    let mut both = joined().await;
    let stream = both.worker.connection.open_uni().await.unwrap();
    // Never read: it runs into its window and stays there.
    let stalled = tokio::spawn(async move {
        let mut frames = FrameSend::new(stream);
        let filler = Delivery {
            point: POINT,
            number: 0,
            content: Content::Ticks {
                op: OpKind::Write,
                first: 0,
                ticks: vec![Default::default(); 60_000],
            },
        };
        loop {
            if frames.send(&filler).await.is_err() {
                return;
            }
        }
    });
    let unread = both.coordinator.connection.accept_uni().await.unwrap();
    for _ in 0..20 {
        both.coordinator.control.send.send(&Command::Stop { point: POINT }).await.unwrap();
        let command: Option<Command> = both.worker.control.receive.receive().await.unwrap();
        assert_eq!(command, Some(Command::Stop { point: POINT }));
        both.worker.control.send.send(&refused(1)).await.unwrap();
        assert_eq!(both.coordinator.control.receive.receive().await.unwrap(), Some(refused(1)));
    }
    drop(unread);
    stalled.abort();
}

#[tokio::test]
async fn deliveries_have_streams_of_their_own() {
    let both = joined().await;
    let stream = both.worker.connection.open_uni().await.unwrap();
    let mut send = FrameSend::new(stream);
    let delivery = |number| Delivery {
        point: POINT,
        number,
        content: Content::Ticks { op: OpKind::Write, first: 0, ticks: Vec::new() },
    };
    send.send(&delivery(0)).await.unwrap();
    send.send(&delivery(1)).await.unwrap();
    send.finish();
    let mut receive = FrameReceive::new(both.coordinator.connection.accept_uni().await.unwrap());
    assert_eq!(receive.receive().await.unwrap(), Some(delivery(0)));
    assert_eq!(receive.receive().await.unwrap(), Some(delivery(1)));
    assert_eq!(receive.receive::<Delivery>().await.unwrap(), None);
    send.delivered().await.unwrap();
}

#[tokio::test]
async fn forged_frames_are_refused_before_their_body() {
    let good = Command::Commit { point: POINT }.encode().unwrap();
    let forged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        change(&mut frame);
        frame
    };
    // Without a single byte of body behind the header: waiting for it would never end.
    let too_long = forged(&|frame| {
        frame.truncate(HEADER_BYTES);
        frame[8..].copy_from_slice(&(FRAME_BYTES_MAX + 1).to_le_bytes());
    });
    let other_kind = forged(&|frame| {
        frame.truncate(HEADER_BYTES);
        frame[6] = 2;
    });
    let foreign = forged(&|frame| frame[0] = b'X');
    let short = forged(&|frame| frame.truncate(HEADER_BYTES + 1));
    let stub = forged(&|frame| frame.truncate(HEADER_BYTES - 1));
    let length = CodecError::Length(FRAME_BYTES_MAX + 1).to_string();
    let kind = CodecError::Kind { found: 2, expected: 1 }.to_string();
    let unfinished = LinkError::Unfinished.to_string();
    for (frame, words) in [
        (too_long, length),
        (other_kind, kind),
        (foreign, CodecError::Magic.to_string()),
        (short, unfinished.clone()),
        (stub, unfinished),
    ] {
        let both = joined().await;
        let mut stream = both.worker.connection.open_uni().await.unwrap();
        stream.write_all(&frame).await.unwrap();
        stream.finish().unwrap();
        let stream = both.coordinator.connection.accept_uni().await.unwrap();
        let error = FrameReceive::new(stream).receive::<Command>().await.unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}

#[tokio::test]
async fn a_coordinator_has_one_stream_and_no_more() {
    let both = joined().await;
    let connection = &both.coordinator.connection;
    tokio::select! {
        biased;
        _ = connection.open_bi() => panic!("a second control stream"),
        _ = connection.open_uni() => panic!("a stream to the worker"),
        () = ready(()) => {}
    }
    tokio::select! {
        biased;
        _ = both.worker.connection.open_bi() => panic!("a stream of commands from a worker"),
        () = ready(()) => {}
    }
}

#[tokio::test]
async fn datagrams_go_both_ways_and_damaged_ones_are_named() {
    let both = joined().await;
    let ping = Datagram::Ping { sequence: 1, sent_ns: u64::MAX };
    transport::send_datagram(&both.coordinator.connection, &ping).unwrap();
    assert_eq!(transport::receive_datagram(&both.worker.connection).await.unwrap(), ping);
    let pong = Datagram::Pong { sequence: 1, sent_ns: u64::MAX, received_ns: 5, answered_ns: 6 };
    transport::send_datagram(&both.worker.connection, &pong).unwrap();
    assert_eq!(transport::receive_datagram(&both.coordinator.connection).await.unwrap(), pong);
    both.coordinator.connection.send_datagram(b"nothing of ours".to_vec().into()).unwrap();
    let error = transport::receive_datagram(&both.worker.connection).await.unwrap_err();
    assert!(matches!(error, LinkError::Codec(CodecError::Magic)), "{error}");
}

#[tokio::test]
async fn the_end_of_a_connection_is_told_in_words() {
    let mut both = joined().await;
    both.worker.connection.close(transport::CLOSE_DONE.into(), b"the daemon is stopping");
    let error = both.coordinator.control.receive.receive::<Notice>().await.unwrap_err();
    assert_eq!(error.to_string(), "the peer closed the connection: the daemon is stopping");
    let error = both.worker.control.send.send(&refused(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "the connection was closed by this side");
    let ping = Datagram::Alive { sequence: 1 };
    let error = transport::send_datagram(&both.worker.connection, &ping).unwrap_err();
    assert!(matches!(error, LinkError::Connection(_)), "{error}");
}
