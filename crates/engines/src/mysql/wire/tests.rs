//! The wire client against bytes that no MySQL server sends.

use super::*;
use crate::connect::address::ServerAddress;
use crate::connect::hostile_peer::{never_finish, send, survives_harm};
use crate::engine::EngineError;
use crate::secret::Secret;
use isolde_model::history::ErrorClass;

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..3], &[sequence], body].concat()
}

/// The greeting, and OK to any response.
fn login_bytes() -> Vec<u8> {
    let capabilities = 0x000f_ffffu32.to_le_bytes();
    let hello = [
        &[10][..],
        b"8.0.33\0",
        &[7, 0, 0, 0],
        b"12345678\0",
        &capabilities[..2],
        &[45, 2, 0],
        &capabilities[2..],
        &[21],
        &[0; 10],
        b"123456789012\0",
        b"mysql_native_password\0",
    ]
    .concat();
    [packet(0, &hello), packet(2, &[0, 0, 0, 2, 0, 0, 0])].concat()
}

fn column() -> Vec<u8> {
    let mut body = Vec::new();
    for text in ["def", "d", "t", "t", "a", "a"] {
        body.push(u8::try_from(text.len()).unwrap());
        body.extend(text.as_bytes());
    }
    body.extend([0x0c, 63, 0, 11, 0, 0, 0, 3, 0, 0, 0, 0, 0]);
    body
}

const END: [u8; 5] = [0xfe, 0, 0, 1, 0];

/// Rows, and a second result, which is an error.
fn reply_bytes() -> Vec<u8> {
    [
        packet(1, &[1]),
        packet(2, &column()),
        packet(3, &END),
        packet(4, b"\x0242"),
        packet(5, &[0xfb]),
        packet(6, &[0xfe, 0, 0, 9, 0]),
        packet(7, b"\xff\xbd\x04#40001no"),
        packet(1, &[0, 0, 0, 1, 0, 0, 0]),
    ]
    .concat()
}

fn connect(port: u16) -> EngineResult<MySqlSession> {
    let address = ServerAddress::loopback(port, "u", Some(&Secret::new("p")));
    address.connect(None, &Arc::new(isolde_catalog::engines::profile("mysql", "")))
}

#[test]
fn a_reply_in_pieces_is_put_together() {
    let rows = [packet(1, &[1]), packet(2, &column()), packet(3, &END), packet(4, b"\x0242")];
    let bytes = [login_bytes(), rows.concat(), packet(5, &END)].concat();
    for pieces in [1, 7, 1000] {
        let (port, peer) = send(bytes.clone(), pieces);
        let mut session = connect(port).unwrap();
        session.start("select a from t");
        let reply = session.reply(Duration::from_secs(20)).unwrap();
        let rows = vec![vec![Value::Int(42)]];
        assert_eq!(reply.outcome, Outcome::Rows { columns: vec!["a".into()], rows });
        assert_eq!(reply.tx, Some(TxStatus::Open));
        drop(session);
        peer.join().unwrap();
    }
}

#[test]
fn torn_and_hostile_bytes_end_in_an_answer_or_an_error() {
    survives_harm("hostile mysql", &login_bytes(), &reply_bytes(), connect);
}

#[test]
fn absurd_numbers_of_columns_and_lengths_make_no_room() {
    let many = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    for body in [packet(1, &many), vec![0xff, 0xff, 0xff, 1, 1], packet(1, &[0xfc, 0, 0])] {
        let (port, peer) = send([login_bytes(), body].concat(), 1);
        let mut session = connect(port).unwrap();
        session.start("select 1");
        let reply = session.reply(Duration::from_secs(60)).unwrap();
        assert_eq!(reply.error().unwrap().class, ErrorClass::Lost, "{reply:?}");
        assert!(session.incoming.capacity() < 1 << 20);
        drop(session);
        peer.join().unwrap();
    }
}

#[test]
fn server_that_never_completes_the_login_hangs() {
    let (port, _peer) = never_finish(login_bytes()[..20].to_vec(), None);
    let error = connect(port).map(drop).unwrap_err();
    assert!(
        matches!(&error, EngineError::Hangs(why) if why.contains("login has not completed")),
        "{error}"
    );
}

#[test]
fn a_server_that_sends_without_end_takes_no_more_than_the_patience() {
    let start = [login_bytes(), packet(1, &[1]), packet(2, &column()), packet(3, &END)].concat();
    let (port, _peer) = never_finish(start, Some(packet(4, b"\x0242").repeat(500)));
    let mut session = connect(port).unwrap();
    session.start("select 1");
    assert!(session.reply(Duration::from_millis(5)).is_none());
}
