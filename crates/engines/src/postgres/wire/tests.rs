//! The wire client against bytes that no PostgreSQL server sends.

use super::*;
use crate::connect::address::ServerAddress;
use crate::connect::hostile_peer::{never_finish, send, survives_harm};
use crate::engine::EngineError;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind], &length[..], body].concat()
}

/// AuthenticationOk, a parameter, the key, ReadyForQuery.
fn login_bytes() -> Vec<u8> {
    [
        message(b'R', &[0, 0, 0, 0]),
        message(b'S', b"server_version\x0015.1\0"),
        message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]),
        message(b'Z', b"I"),
    ]
    .concat()
}

fn reply_bytes() -> Vec<u8> {
    let column = [b"a\0".as_slice(), &[0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 0, 0, 0, 0, 0, 0]];
    [
        message(b'N', b"VLOG\0Mprocess 7 still waiting for ShareLock\0\0"),
        message(b'T', &[&[0, 1], &column.concat()[..]].concat()),
        message(b'D', &[0, 1, 0, 0, 0, 2, b'4', b'2']),
        message(b'D', &[0, 1, 0xff, 0xff, 0xff, 0xff]),
        message(b'E', b"VERROR\0C40001\0Mno\0\0"),
        message(b'C', b"SELECT 2\0"),
        message(b'Z', b"T"),
    ]
    .concat()
}

fn connect(port: u16) -> EngineResult<PgSession> {
    let address = ServerAddress::loopback(port, "u", None);
    address.connect(Some("d"), &Arc::new(isolde_catalog::engines::profile("postgres", "")))
}

#[test]
fn a_reply_in_pieces_is_put_together() {
    let bytes = [login_bytes(), reply_bytes()].concat();
    for pieces in [1, 7, 1000] {
        let (port, peer) = send(bytes.clone(), pieces);
        let mut session = connect(port).unwrap();
        session.start("select a from t");
        let reply = session.reply(Duration::from_secs(20)).unwrap();
        assert_eq!(reply.error().unwrap().code, "40001");
        assert_eq!(reply.tx, Some(TxStatus::Open));
        drop(session);
        peer.join().unwrap();
    }
}

#[test]
fn torn_and_hostile_bytes_end_in_an_answer_or_an_error() {
    survives_harm("hostile postgres", &login_bytes(), &reply_bytes(), connect);
}

#[test]
fn an_absurd_length_is_refused_before_room_is_made_for_it() {
    for length in [0x7fff_ffff_u32, 0xffff_ffff, 0x1000_0001] {
        let bytes = [login_bytes(), vec![b'D'], length.to_be_bytes().to_vec()].concat();
        let (port, peer) = send(bytes, 1);
        let mut session = connect(port).unwrap();
        session.start("select 1");
        let reply = session.reply(Duration::from_secs(60)).unwrap();
        assert!(reply.error().unwrap().message.contains("exceeds the limit"), "{reply:?}");
        assert!(session.incoming.capacity() < 1 << 20);
        drop(session);
        peer.join().unwrap();
    }
}

#[test]
fn server_that_never_completes_the_login_hangs() {
    let (port, _peer) = never_finish(Vec::new(), None);
    let error = connect(port).map(drop).unwrap_err();
    assert!(
        matches!(&error, EngineError::Hangs(why) if why.contains("login has not completed")),
        "{error}"
    );
}

#[test]
fn a_server_that_sends_without_end_takes_no_more_than_the_patience() {
    let notice = message(b'N', b"VLOG\0Mbla\0\0").repeat(500);
    let (port, _peer) = never_finish(login_bytes(), Some(notice));
    let mut session = connect(port).unwrap();
    session.start("select 1");
    assert!(session.reply(Duration::from_millis(5)).is_none());
}
