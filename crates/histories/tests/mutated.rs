//! Randomly damaged files of every format: reading ends with a history or an error, never with a
//! panic.

use flate2::Compression;
use flate2::write::GzEncoder;
use isolde_histories::{FORMATS, read, read_bytes};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;

const SAMPLES: [&[u8]; 7] = [
    b"{:index 0, :type :invoke, :process 0, :f :txn, :value [[:append :x 1] [:r \"y\" nil]]}\n\
      #jepsen.history.Op{:type :ok :process 0 :value [[:append :x 1] [:r \"y\" [3 -4 \"z\"]]]}\n\
      ; a comment\n#_ {:a (1 #{2} \\c)} {:type :info, :process :nemesis, :f :kill}\n",
    b"[{\"index\":0,\"type\":\"invoke\",\"process\":0,\"value\":[[\"w\",\"x\",1],[\"r\",2,null]]},\n\
      {\"index\":1,\"type\":\"ok\",\"process\":0,\"value\":[[\"w\",\"x\",1],[\"r\",2,\"\\u0061\"]]}]\n",
    b"r(1,0,0,1)\nw(1,5,0,1)\nw(2,0,1,7)\nw(3,9,1,-1)\nr(x,99999999999999999999,s,t)\n",
    b"w 0 1\nr 1 0\n-----\nr 0 1\n=====\nr 0 1\nw 1 2\n",
    b"// two\n[x:=1 y==?] [x:=2]!\n---\n[x==1]\n",
    b"[[{\"events\":[{\"Write\":{\"variable\":\"x\",\"version\":1}},[\"r\",\"y\",null]],\"committed\":true}]]",
    b"{\"isolde-history\":1}\n{\"session\":\"s1\",\"txn\":7,\"begin\":1,\"end\":9,\"ops\":[[\"r\",\"x\",3,\
      {\"locking\":true,\"sql\":\"q\"}],[\"w\",\"x\",4,{\"version\":2}],[\"r\",\"l\",[1,2]],\
      [\"predicate\",\"P\",[[\"x\",4]]]]}\n{\"order\":\"x\",\"versions\":[3,4]}\n\
      {\"predicate\":\"P\",\"satisfied-by\":[[\"x\",3]]}\n",
];

/// Tokens of the formats, so that damage is not only noise.
const PIECES: [&[u8]; 14] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"nil",
    b"-1",
    b"#_",
    b";",
    b"\\",
    b"\n",
    b"null",
    b"18446744073709551615",
    b"\xff\xfe",
];

fn binary() -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [0u64, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1].iter().flat_map(|field| field.to_le_bytes()).collect();
    bytes.push(1);
    bytes.extend([7u64, 8].iter().flat_map(|field| field.to_le_bytes()));
    bytes.extend([1, 1]);
    bytes
}

fn damage(bytes: &mut Vec<u8>, (position, what, piece): (u16, u8, u8)) {
    let position = usize::from(position) % (bytes.len() + 1);
    let piece = PIECES[usize::from(piece) % PIECES.len()];
    match what % 5 {
        0 => bytes.truncate(position),
        1 => drop(bytes.splice(position..position, piece.iter().copied())),
        2 if position < bytes.len() => bytes[position] = piece[0],
        3 if position < bytes.len() => bytes[position] ^= 1 << (what % 8),
        _ => drop(bytes.drain(position..(position + usize::from(what)).min(bytes.len()))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_damaged_file_panics(
        sample in 0..=SAMPLES.len(),
        format in 0..FORMATS.len() * 2,
        damages in prop::collection::vec(any::<(u16, u8, u8)>(), 1..6),
    ) {
        let mut bytes = SAMPLES.get(sample).map_or_else(binary, |sample| sample.to_vec());
        damages.into_iter().for_each(|position| damage(&mut bytes, position));
        let outcome = read_bytes("file", bytes, FORMATS.get(format));
        if let Err(error) = outcome {
            prop_assert!(!error.problem.is_empty());
        }
    }

    #[test]
    fn no_damaged_compressed_file_panics(
        zstd in any::<bool>(),
        damages in prop::collection::vec(any::<(u16, u8, u8)>(), 1..6),
    ) {
        let text: Vec<u8> = (0..80).flat_map(|n| format!("w({n},1,0,{n})\n").into_bytes()).collect();
        let mut bytes = match zstd {
            true => compress_to_vec(&text[..], CompressionLevel::Fastest),
            false => {
                let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
                packed.write_all(&text).unwrap();
                packed.finish().unwrap()
            }
        };
        damages.into_iter().for_each(|position| damage(&mut bytes, position));
        let _ = read_bytes("file", bytes, None);
    }

    #[test]
    fn no_log_of_cobra_panics(damages in prop::collection::vec(any::<(u16, u8, u8)>(), 1..6)) {
        let mut bytes = Vec::new();
        for (tag, fields) in [(b'S', 1), (b'R', 4), (b'W', 3), (b'C', 1), (b'S', 1), (b'A', 0)] {
            bytes.push(tag);
            bytes.extend([1u64; 4].iter().take(fields).flat_map(|field| field.to_be_bytes()));
        }
        damages.into_iter().for_each(|position| damage(&mut bytes, position));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("T1.log"), bytes).unwrap();
        let _ = read(folder.path(), None);
    }
}

#[test]
fn the_undamaged_samples_are_read() {
    for sample in SAMPLES.iter().map(|sample| sample.to_vec()).chain([binary()]) {
        let history = read_bytes("file", sample, None).unwrap().history;
        assert!(!history.is_empty());
    }
}
