//! Console blocks: the commands, what they need, and their output.

use crate::compare::{matches, refresh, without_volatile_words};
use crate::page::{Block, Page};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// One command of a console block and the output below it.
struct Sample {
    command: String,
    line: usize,
    output: Range<usize>,
    exit_code: Option<i32>,
}

impl Sample {
    fn expected<'a>(&self, page: &'a Page) -> &'a [String] {
        &page.lines[self.output.clone()]
    }
}

pub struct PageRun {
    /// How many commands were run.
    pub compared: usize,
    pub problems: Vec<String>,
    /// The page with the present output, where that is to be written.
    pub rewritten: Option<String>,
}

/// What became of a command.
struct Outcome {
    lines: Vec<String>,
    code: i32,
}

/// Runs the samples of a page and compares their output, or writes it into the page.
pub fn run_page(page: &Page, overwrite: bool) -> PageRun {
    let (ran, problems) = play(page);
    let mut run = PageRun { compared: ran.len(), problems, rewritten: None };
    let matches_page =
        |(sample, outcome): &(Sample, Outcome)| matches(sample.expected(page), &outcome.lines);
    if ran.iter().all(matches_page) {
        return run;
    }
    if !overwrite {
        let different = ran.iter().filter(|one| !matches_page(one));
        run.problems.extend(different.map(|(sample, outcome)| {
            difference(&page.place(sample.line), sample, page, &outcome.lines)
        }));
        return run;
    }
    // What a second run prints differently (times, ports) becomes a wildcard.
    let (again, _) = play(page);
    let pairs = ran.iter().zip(&again).filter(|(one, _)| !matches_page(one));
    let edits: Vec<(Range<usize>, Vec<String>)> = pairs
        .map(|((sample, first), (_, second))| {
            let stable = without_volatile_words(&first.lines, &second.lines);
            (sample.output.clone(), refresh(sample.expected(page), &stable))
        })
        .collect();
    run.rewritten = Some(with_edits(&page.lines, &edits));
    run
}

/// Runs the samples of a page, in the order of the page, in one temporary directory. Samples with
/// an unexpected exit code are problems and not among the results.
fn play(page: &Page) -> (Vec<(Sample, Outcome)>, Vec<String>) {
    let (mut ran, mut problems) = (Vec::new(), Vec::new());
    let mut directory: Option<tempfile::TempDir> = None;
    for block in &page.blocks {
        let is_run = block.language() == "console" && !block.has("excerpt");
        if !is_run && block.value("file").is_none() {
            continue;
        }
        let directory = directory.get_or_insert_with(working_directory).path();
        if let Some(name) = block.value("file") {
            let text = page.content(block).join("\n") + "\n";
            std::fs::write(directory.join(name), text).expect("a sample file can be written");
            continue;
        }
        let place = page.place(block.content.start - 1);
        match missing_server(block) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                note_skipped(&place, &reason);
                continue;
            }
            Err(problem) => {
                problems.push(format!("{place}: {problem}"));
                continue;
            }
        }
        for sample in samples(page, block) {
            let outcome = execute(&sample.command, directory);
            match exit_problem(&sample, &outcome) {
                None => ran.push((sample, outcome)),
                Some(problem) => {
                    let (place, lines) = (page.place(sample.line), outcome.lines.join("\n"));
                    problems.push(format!("{place}: $ {}: {problem}\n{lines}", sample.command));
                }
            }
        }
    }
    (ran, problems)
}

/// Blocks that show a command and are neither run nor marked as excerpts.
pub fn unmarked_samples(page: &Page) -> Vec<String> {
    page.blocks
        .iter()
        .filter_map(|block| Some((block, marking_problem(page, block)?)))
        .map(|(block, problem)| format!("{}: {problem}", page.place(block.content.start - 1)))
        .collect()
}

fn marking_problem(page: &Page, block: &Block) -> Option<String> {
    let content = page.content(block);
    if block.language() != "console" {
        let shows = content.iter().any(|line| line.trim_start().starts_with("$ isolde"));
        return shows.then(|| "a block with `$ isolde …` has the language `console`".into());
    }
    let unknown = block.info.iter().skip(1).find(|w| *w != "excerpt" && !w.starts_with("needs="));
    if let Some(word) = unknown {
        return Some(format!("`{word}` is neither `excerpt` nor `needs=…`"));
    }
    if !content.first().is_some_and(|line| line.starts_with("$ ")) {
        return Some("a console block begins with a command: `$ …`".into());
    }
    if !block.has("excerpt") {
        return None;
    }
    let below = page.lines[block.content.end + 1..].iter().find(|line| !line.trim().is_empty());
    let names_version = below.is_some_and(|line| {
        let version = line.split_once("Isolde ").map_or("", |(_, rest)| rest);
        version.starts_with(|c: char| c.is_ascii_digit())
    });
    let problem =
        "the line below an excerpt names the versions, such as `MySQL 9.7.4, Isolde 0.1.0`";
    (!names_version).then(|| problem.into())
}

/// A temporary directory with the library of cases in it.
fn working_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, directory.path().join(name)).expect("a link");
    };
    let places = [crate::root().join("cases"), Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")];
    let cases = places.iter().find(|place| place.is_dir()).expect("the library of cases");
    link(cases, "cases");
    std::fs::create_dir(directory.path().join(".bin")).expect("a folder");
    link(Path::new(env!("CARGO_BIN_EXE_isolde")), ".bin/isolde");
    directory
}

/// Runs a command line with `isolde` on the path. Both output streams are one, as on a terminal.
fn execute(command: &str, directory: &Path) -> Outcome {
    let path = std::env::var("PATH").unwrap_or_default();
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(directory).stdin(std::process::Stdio::null());
    shell.env("PATH", format!("{}:{path}", directory.join(".bin").display()));
    for variable in ["ISOLDE_JSON", "ISOLDE_QUIET", "ISOLDE_VIA", "ISOLDE_PASSWORD_FILE"] {
        shell.env_remove(variable);
    }
    shell.stdout(writer.try_clone().expect("the pipe again")).stderr(writer);
    let mut child = shell.spawn().expect("sh runs");
    // The command holds the writing end: without this, reading would never end.
    drop(shell);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("the output can be read");
    let status = child.wait().expect("sh ends");
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    Outcome { lines, code: status.code().unwrap_or(128) }
}

fn samples(page: &Page, block: &Block) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    for index in block.content.clone() {
        let line = &page.lines[index];
        let continued = samples.last_mut().filter(|s| s.command.ends_with('\\'));
        if let (Some(sample), Some(more)) = (continued, line.strip_prefix("> ")) {
            sample.command.truncate(sample.command.len() - 1);
            sample.command.push_str(more);
            sample.output = index + 1..index + 1;
        } else if let Some(command) = line.strip_prefix("$ ") {
            let (command, output) = (command.to_owned(), index + 1..index + 1);
            samples.push(Sample { command, line: index, output, exit_code: None });
        } else if let Some(sample) = samples.last_mut() {
            match line.strip_prefix("? ").and_then(|code| code.parse().ok()) {
                Some(code) => sample.exit_code = Some(code),
                None => sample.output.end = index + 1,
            }
        }
    }
    for sample in &mut samples {
        while !sample.output.is_empty() && page.lines[sample.output.end - 1].trim().is_empty() {
            sample.output.end -= 1;
        }
    }
    samples
}

fn exit_problem(sample: &Sample, outcome: &Outcome) -> Option<String> {
    match sample.exit_code {
        Some(code) if code != outcome.code => {
            Some(format!("exit code {} instead of {code}", outcome.code))
        }
        None if ![0, 1, 3].contains(&outcome.code) => Some(format!("exit code {}", outcome.code)),
        _ => None,
    }
}

fn difference(place: &str, sample: &Sample, page: &Page, actual: &[String]) -> String {
    let (expected, actual) = (sample.expected(page).join("\n"), actual.join("\n"));
    let diff = similar::TextDiff::from_lines(&expected, &actual);
    let diff = diff.unified_diff().header("the page", "the command").to_string();
    let hint = "(ISOLDE_DOCS=overwrite writes the output into the page)";
    format!("{place}: $ {}\n{diff}\n{hint}", sample.command)
}

fn with_edits(lines: &[String], edits: &[(Range<usize>, Vec<String>)]) -> String {
    let mut text = String::new();
    let mut push = |lines: &[String]| {
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
    };
    let mut from = 0;
    for (range, fresh) in edits {
        push(&lines[from..range.start]);
        push(fresh);
        from = range.end;
    }
    push(&lines[from..]);
    text
}

/// The reason to skip a block, if a server that it needs is not here; an error
/// if that server may not be missing.
fn missing_server(block: &Block) -> Result<Option<String>, String> {
    let Some(needs) = block.value("needs") else { return Ok(None) };
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        return Ok(Some(format!("{needs}: not in a quick run")));
    }
    for need in needs.split(',') {
        let (engine, version) = match need.split_once('@') {
            Some((engine, version)) => (engine, Some(version)),
            None => (need, None),
        };
        let fits = |one: &(String, String)| {
            one.0 == engine
                && version.is_none_or(|v| format!("{}.", one.1).starts_with(&format!("{v}.")))
        };
        match servers().iter().any(fits) {
            true => {}
            false if version.is_some() => return Ok(Some(format!("{need} is not here"))),
            false => return Err(format!("{need} is not here, and every test run needs it")),
        }
    }
    Ok(None)
}

/// Engines and versions that can be started here.
fn servers() -> &'static [(String, String)] {
    static SERVERS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    SERVERS.get_or_init(|| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_isolde")).args(["servers", "--json"]).output();
        let output = output.expect("isolde runs").stdout;
        let all: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        ["embedded", "machine", "cache"]
            .iter()
            .flat_map(|place| all[place].as_array().cloned().unwrap_or_default())
            .map(|one| (text(&one["engine"]), text(&one["version"])))
            .collect()
    })
}

/// Adds a line to the list of skipped tests that `./test` prints.
fn note_skipped(place: &str, reason: &str) {
    println!("skipped: {place}: {reason}");
    let Some(list) = std::env::var_os("ISOLDE_TEST_SKIPPED") else { return };
    let mut list =
        std::fs::OpenOptions::new().append(true).create(true).open(list).expect("a list");
    writeln!(list, "sample at {place}: {reason}").expect("the list can be written");
}
