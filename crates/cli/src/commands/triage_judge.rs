//! Who decides which of two reports is nearer to a finding: a program that
//! the user names, or the judge that is built in.
//!
//! The program gets one question as JSON on its standard input and answers
//! with one object on its standard output; `docs/triage.md` has the protocol.
//! If it fails, takes too long or answers something else, the built-in judge
//! decides that and everything after it, and a note says so.

use isolde_core::Level;
use isolde_core::triage::{Answer, Features, Nearer, compare};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A report as the judge reads it.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    pub name: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    pub wrong: String,
    pub about: String,
    pub case: String,
}

#[derive(Serialize)]
struct Question<'a> {
    protocol: u32,
    question: &'static str,
    finding: &'a Told,
    candidates: [&'a Told; 2],
}

/// `{"nearer": 1, "same": true, "reason": "…"}`
#[derive(Deserialize)]
struct Said {
    /// 1 or 2; 0 when neither is.
    nearer: u8,
    same: bool,
    reason: String,
}

const PROTOCOL: u32 = 1;
const QUESTION: &str = "Which of the two candidates is a report of the same bug as the finding, or \
                        nearer to it? Answer with one JSON object: nearer (1, 2, or 0 for neither), \
                        same (whether the nearer one is the same bug), reason (one sentence).";
/// What an answer may be long at most.
const LONGEST_ANSWER: u64 = 1 << 20;

pub struct Judge {
    command: Option<String>,
    timeout: Duration,
    notes: Vec<String>,
}

impl Judge {
    pub fn new(command: Option<&str>, timeout: Duration) -> Judge {
        Judge { command: command.map(str::to_string), timeout, notes: Vec::new() }
    }

    /// What people should know of how it went.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// `features` are those of the finding and of the two candidates. Asked
    /// again, the candidates are shown the other way round: who reads them may
    /// prefer a place.
    pub fn compare(
        &mut self,
        finding: &Told,
        candidates: [&Told; 2],
        [of_finding, first, second]: [&Features; 3],
        again: usize,
    ) -> Answer {
        if let Some(command) = &self.command {
            let swapped = again % 2 == 1;
            let [a, b] = candidates;
            let shown = if swapped { [b, a] } else { [a, b] };
            let question =
                Question { protocol: PROTOCOL, question: QUESTION, finding, candidates: shown };
            match ask(command, self.timeout, &question) {
                Ok(said) => return answer(said, swapped),
                Err(why) => {
                    let note = format!("the judge {why}; the built-in one decides from here on");
                    self.notes.push(note);
                    self.command = None;
                }
            }
        }
        compare(of_finding, first, second)
    }
}

fn answer(said: Said, swapped: bool) -> Answer {
    let nearer = match (said.nearer, swapped) {
        (1, false) | (2, true) => Nearer::First,
        (2, false) | (1, true) => Nearer::Second,
        _ => Nearer::Neither,
    };
    Answer { nearer, same: said.same && nearer != Nearer::Neither, reason: said.reason }
}

/// The error is the end of a sentence about the judge.
fn ask(command: &str, timeout: Duration, question: &Question<'_>) -> Result<Said, String> {
    let text = serde_json::to_string(question).map_err(|e| format!("cannot be asked: {e}"))?;
    let mut child = Command::new("sh")
        .args(["-c", command])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|e| format!("does not start: {e}"))?;
    let answer = talk(&mut child, text, timeout);
    end(&mut child);
    let answer = answer?;
    let said: Said = serde_json::from_str(answer.trim()).map_err(|e| {
        let shown: String = answer.trim().chars().take(60).collect();
        format!("answered something else (`{shown}`): {e}")
    })?;
    if said.nearer > 2 {
        return Err(format!("answered nearer {}, which is not 0, 1 or 2", said.nearer));
    }
    Ok(said)
}

fn talk(child: &mut Child, question: String, timeout: Duration) -> Result<String, String> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    std::thread::spawn(move || {
        // One that answers without reading to the end is no failure.
        stdin.map(|mut pipe| pipe.write_all(question.as_bytes()))
    });
    let (send, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.map(|pipe| pipe.take(LONGEST_ANSWER).read_to_end(&mut text));
        send.send((text, read.is_some_and(|r| r.is_ok()))).ok();
    });
    let began = Instant::now();
    let slow = || format!("gave no answer within {}", humantime::format_duration(timeout));
    let (text, whole) = answer.recv_timeout(timeout).map_err(|_| slow())?;
    if !whole {
        return Err("could not be heard to the end".into());
    }
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => return Err(format!("failed: {status}")),
            Ok(None) if began.elapsed() < timeout => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => return Err(slow()),
            Err(error) => return Err(format!("is lost: {error}")),
        }
    }
    String::from_utf8(text).map_err(|_| "answered what is no text".into())
}

/// Ends it with all that it has started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Ok(None) = child.try_wait()
        && let Some(group) = group
    {
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
    }
    child.wait().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(command: &str, timeout: Duration, again: usize) -> (Answer, Vec<String>) {
        let told = |name: &str| Told {
            name: name.into(),
            title: String::new(),
            level: None,
            wrong: String::new(),
            about: String::new(),
            case: String::new(),
        };
        let mut judge = Judge::new(Some(command), timeout);
        let features = Features::default();
        let candidates = [&told("one"), &told("two")];
        let all = [&features, &features, &features];
        let answer = judge.compare(&told("it"), candidates, all, again);
        (answer, judge.notes)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_program_answers_and_is_shown_the_pair_the_other_way_round_the_second_time() {
        let says = r#"cat > /dev/null; echo '{"nearer": 2, "same": true, "reason": "it is"}'"#;
        let (answer, notes) = judged(says, LONG, 0);
        assert_eq!(
            (answer.nearer, answer.same, answer.reason.as_str()),
            (Nearer::Second, true, "it is")
        );
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(judged(says, LONG, 1).0.nearer, Nearer::First);
        // What it is asked has both candidates, in the order that counts.
        let reads = r#"grep -q '"one".*"two"' && echo '{"nearer": 0, "same": true, "reason": ""}'"#;
        let (answer, notes) = judged(reads, LONG, 0);
        assert_eq!((answer.nearer, answer.same), (Nearer::Neither, false), "{notes:?}");
    }

    #[test]
    fn what_fails_hangs_or_talks_nonsense_is_replaced_with_a_note() {
        let short = Duration::from_millis(100);
        for (command, timeout, said) in [
            ("exit 3", LONG, "failed: exit status: 3"),
            ("sleep 600", short, "no answer within 100ms"),
            ("echo hello", LONG, "something else (`hello`)"),
            (r#"echo '{"nearer": 7, "same": true, "reason": ""}'"#, LONG, "nearer 7"),
            (r#"echo '{"nearer": 1}'"#, LONG, "missing field"),
        ] {
            let (answer, notes) = judged(command, timeout, 0);
            assert_eq!(
                answer.nearer,
                Nearer::Neither,
                "the built-in judge cannot tell these apart"
            );
            assert!(notes.len() == 1 && notes[0].contains(said), "{command}: {notes:?}");
            assert!(notes[0].contains("built-in"), "{notes:?}");
        }
    }
}
