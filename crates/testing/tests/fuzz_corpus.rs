//! Every fuzz target runs over its corpus and over seeded mutations of it. A
//! panic or a failed assertion in a target fails the test.

use isolde_model::random::Random;
use isolde_testing::fuzz::{TARGETS, Target};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

/// How many mutations each target gets; `ISOLDE_FUZZ_MUTATIONS` sets another
/// number.
const MUTATIONS: u64 = 500;

/// How long one input may take; the largest takes a fraction of a second.
const LONGEST: Duration = Duration::from_secs(20);

/// Tokens of the formats, so that damage is not only noise.
const PIECES: [&[u8]; 28] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b"\"",
    b"'",
    b"`",
    b"$$",
    b";",
    b":",
    b",",
    b"\n",
    b"\r\n",
    b"\0",
    b"--",
    b"/*",
    b"null",
    b"nil",
    b"-1",
    b"1e999",
    b"18446744073709551615",
    b"99999999999999999999",
    b"\xff\xff\xff\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xf0\x9d\x84\x9e",
];

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// The input with one to four changes: cut off, a piece removed, doubled or
/// replaced by noise, a bit flipped, a token inserted, a part of another input
/// inserted.
fn mutated(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.between(1, 4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.between(1, 40)).min(bytes.len());
        match random.below(12) {
            0 => bytes.truncate(at),
            1 | 2 => drop(bytes.drain(at..end)),
            3 | 4 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => bytes[at..end].iter_mut().take(8).for_each(|b| *b = random.word() as u8),
            6 | 7 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            8 if !other.is_empty() => {
                let from = random.below(other.len());
                let to = (from + random.between(1, 60)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            9 => drop(bytes.splice(at..end, random.pick(&PIECES).iter().copied())),
            _ => drop(bytes.splice(at..at, random.pick(&PIECES).iter().copied())),
        }
    }
    bytes
}

/// Runs a target: whether it accepts the input, or what the input was if it
/// panics.
fn run((name, target): (&str, Target), input: &[u8], origin: &str) -> Result<bool, String> {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| target(input)));
    if start.elapsed() > LONGEST {
        return Err(format!("{name}, {origin}: {:?}\n{}", start.elapsed(), input.escape_ascii()));
    }
    outcome.map_err(|_| {
        let shown = String::from_utf8_lossy(input);
        format!("{name}, {origin}:\n{shown}\n{}", input.escape_ascii())
    })
}

#[test]
fn fuzz_targets_survive_their_corpus_and_its_mutations() {
    let mutations = env::var("ISOLDE_FUZZ_MUTATIONS").ok().map(|n| n.parse().expect("a number"));
    let mutations = mutations.unwrap_or(MUTATIONS);
    let mut failures = Vec::new();
    for target @ (name, _) in TARGETS.iter().copied() {
        let start = Instant::now();
        let corpus = files(&fuzz_folder().join("corpus").join(name));
        assert!(!corpus.is_empty(), "the corpus of {name} is empty");
        for (file, input) in &corpus {
            match run(target, input, file) {
                // By their names, some files are refused.
                Ok(accepted) if accepted == file.starts_with("refused") => {
                    failures.push(format!("{name}, {file}: accepted is {accepted}"))
                }
                Ok(_) => {}
                Err(failure) => failures.push(failure),
            }
        }
        let (mut accepted, mut refused) = (0, 0);
        for number in 0..mutations {
            let mut random = Random::stream(1, name, number);
            let (file, input) = random.pick(&corpus);
            let (_, other) = random.pick(&corpus);
            let input = mutated(input, other, &mut random);
            match run(target, &input, &format!("mutation {number} of {file}")) {
                Ok(true) => accepted += 1,
                Ok(false) => refused += 1,
                Err(failure) => failures.push(failure),
            }
        }
        println!("{name}: {accepted} accepted, {refused} refused, {:?}", start.elapsed());
        if accepted == 0 || refused == 0 {
            failures.push(format!("{name}: {accepted} mutations accepted, {refused} refused"));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n\n"));
}

/// Targets that a list of them lacks would never run.
#[test]
fn fuzz_targets_corpora_and_programs_have_the_same_names() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names.len(), TARGETS.len(), "two targets have one name");
    let listed = |folder: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(fuzz_folder().join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.map(|path| path.file_stem().unwrap().to_str().unwrap().to_string()).collect()
    };
    assert_eq!(listed("corpus"), names);
    assert_eq!(listed("fuzz_targets"), names);
    let manifest = fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    for name in &names {
        let program = fuzz_folder().join("fuzz_targets").join(format!("{name}.rs"));
        assert!(fs::read_to_string(&program).unwrap().contains(&format!("\"{name}\"")), "{name}");
        let entry = format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
        assert!(manifest.contains(&entry), "fuzz/Cargo.toml lacks {name}");
    }
}
