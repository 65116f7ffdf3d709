//! A peer that sends what no server should: for tests of the wire clients.

use crate::engine::{EngineResult, Session};
use isolde_model::history::ErrorClass;
use isolde_model::random::Random;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sends `bytes` in `pieces` to the client that connects, and reads until the
/// client closes the connection. Returns the port.
pub fn send(bytes: Vec<u8>, pieces: usize) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        for piece in bytes.chunks(bytes.len().div_ceil(pieces).max(1)) {
            // The client may have closed the connection.
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(std::net::Shutdown::Write);
        drain(&mut stream);
    });
    (port, peer)
}

/// Accepts a connection and sends nothing, or the same piece repeatedly.
pub fn never_finish(hello: Vec<u8>, again: Option<Vec<u8>>) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&hello).unwrap();
        if let Some(piece) = again {
            while stream.write_all(&piece).is_ok() {}
        }
        drain(&mut stream);
    });
    (port, peer)
}

fn drain(stream: &mut TcpStream) {
    let mut sink = [0; 4096];
    while stream.read(&mut sink).is_ok_and(|n| n > 0) {}
}

/// Damaged bytes: cut off, a piece lost or doubled, bytes changed, a length
/// made absurd, noise inserted.
pub fn harmed(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.between(1, 3) {
        let at = random.below(bytes.len().max(1)).min(bytes.len());
        let length = random.between(0, 12).min(bytes.len() - at);
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let piece = bytes[at..at + length].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => bytes[at..].iter_mut().take(length).for_each(|b| *b = random.word() as u8),
            4 => bytes[at..].iter_mut().take(4).for_each(|b| *b = 0xff),
            _ => {
                let noise: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
                bytes.splice(at..at, noise);
            }
        }
    }
    bytes
}

/// Connects to many peers whose login or reply is damaged: there is always an
/// answer or an error, and some of each kind.
pub fn survives_harm<S: Session>(
    stream: &str,
    login: &[u8],
    reply: &[u8],
    connect: impl Fn(u16) -> EngineResult<S>,
) {
    let (mut refused, mut lost, mut answered) = (0, 0, 0);
    for round in 0..600 {
        let mut random = Random::stream(1, stream, round);
        let bytes = match random.chance(30) {
            true => harmed(&[login, reply].concat(), &mut random),
            false => [login, &harmed(reply, &mut random)].concat(),
        };
        let (port, peer) = send(bytes, random.between(1, 9));
        match connect(port) {
            Err(_) => refused += 1,
            Ok(mut session) => {
                session.start("select a from t");
                // The peer closes the connection, so that there is always an
                // end.
                let reply = session.reply(Duration::from_secs(60)).unwrap();
                match reply.error() {
                    Some(error) if error.class == ErrorClass::Lost => lost += 1,
                    _ => answered += 1,
                }
            }
        }
        peer.join().unwrap();
    }
    assert!(refused > 20 && lost > 100 && answered > 20, "{refused} {lost} {answered}");
}
