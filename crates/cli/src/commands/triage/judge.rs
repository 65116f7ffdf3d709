//! The judge that decides which of two reports is nearer to a finding: a program
//! of the user, or the built-in comparison.
//!
//! The program reads one question as JSON from its standard input and writes
//! one JSON object to its standard output; `docs/triage.md` has the protocol.
//! If it fails, takes too long or gives an invalid answer, the built-in judge
//! decides this and all further questions, and a note says so.

use isolde_model::Level;
use isolde_triage::{Answer, Features, Nearer, compare};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A report as the judge reads it.
#[derive(Clone, Debug, Serialize)]
pub struct ReportText {
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
    finding: &'a ReportText,
    candidates: [&'a ReportText; 2],
}

/// `{"nearer": 1, "same": true, "reason": "…"}`
#[derive(Deserialize)]
struct JudgeAnswer {
    /// 1 or 2; 0 when neither is.
    nearer: u8,
    same: bool,
    reason: String,
}

const PROTOCOL: u32 = 1;
const QUESTION: &str = "Which of the two candidates is a report of the same bug as the finding, or \
                        nearer to it? Answer with one JSON object: nearer (1, 2, or 0 for neither), \
                        same (whether the nearer one is the same bug), reason (one sentence).";
/// The maximum length of an answer, in bytes.
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

    /// Notes for the user on problems with the program.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Compares two candidates with a finding. The features are those of the
    /// finding and of the candidates. Every second time the candidates are
    /// swapped, since a program may prefer the first or the second place.
    pub fn compare(
        &mut self,
        finding: &ReportText,
        candidates: [&ReportText; 2],
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
                Ok(answer) => return decode(answer, swapped),
                Err(why) => {
                    let note = format!("the judge {why}; the built-in judge decides from here on");
                    self.notes.push(note);
                    self.command = None;
                }
            }
        }
        compare(of_finding, first, second)
    }
}

fn decode(answer: JudgeAnswer, swapped: bool) -> Answer {
    let nearer = match (answer.nearer, swapped) {
        (1, false) | (2, true) => Nearer::First,
        (2, false) | (1, true) => Nearer::Second,
        _ => Nearer::Neither,
    };
    Answer { nearer, same: answer.same && nearer != Nearer::Neither, reason: answer.reason }
}

/// Asks the program. The error completes a sentence that begins with "the judge".
fn ask(command: &str, timeout: Duration, question: &Question<'_>) -> Result<JudgeAnswer, String> {
    let text = serde_json::to_string(question).map_err(|e| format!("cannot be asked: {e}"))?;
    let mut child = Command::new("sh")
        .args(["-c", command])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|e| format!("does not start: {e}"))?;
    let output = exchange(&mut child, text, timeout);
    end(&mut child);
    let output = output?;
    let answer: JudgeAnswer = serde_json::from_str(output.trim()).map_err(|e| {
        let shown: String = output.trim().chars().take(60).collect();
        format!("gave an invalid answer (`{shown}`): {e}")
    })?;
    if answer.nearer > 2 {
        return Err(format!("answered nearer {}, which is not 0, 1 or 2", answer.nearer));
    }
    Ok(answer)
}

/// Sends the question and waits for the whole answer.
fn exchange(child: &mut Child, question: String, timeout: Duration) -> Result<String, String> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    std::thread::spawn(move || {
        // A program that answers without reading all its input is valid.
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
        return Err("broke off its answer".into());
    }
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => return Err(format!("failed: {status}")),
            Ok(None) if began.elapsed() < timeout => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => return Err(slow()),
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
    String::from_utf8(text).map_err(|_| "gave an answer that is not UTF-8".into())
}

/// Ends the program with all processes that it has started.
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
        let report = |name: &str| ReportText {
            name: name.into(),
            title: String::new(),
            level: None,
            wrong: String::new(),
            about: String::new(),
            case: String::new(),
        };
        let mut judge = Judge::new(Some(command), timeout);
        let features = Features::default();
        let candidates = [&report("one"), &report("two")];
        let all = [&features, &features, &features];
        let answer = judge.compare(&report("it"), candidates, all, again);
        (answer, judge.notes)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn judge_swaps_the_candidates_every_second_time() {
        let program = r#"cat > /dev/null; echo '{"nearer": 2, "same": true, "reason": "it is"}'"#;
        let (answer, notes) = judged(program, LONG, 0);
        assert_eq!(
            (answer.nearer, answer.same, answer.reason.as_str()),
            (Nearer::Second, true, "it is")
        );
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(judged(program, LONG, 1).0.nearer, Nearer::First);
        // The question has both candidates, in their order.
        let reads = r#"grep -q '"one".*"two"' && echo '{"nearer": 0, "same": true, "reason": ""}'"#;
        let (answer, notes) = judged(reads, LONG, 0);
        assert_eq!((answer.nearer, answer.same), (Nearer::Neither, false), "{notes:?}");
    }

    #[test]
    fn judge_that_fails_hangs_or_answers_nonsense_is_replaced_with_a_note() {
        let short = Duration::from_millis(100);
        for (command, timeout, expected) in [
            ("exit 3", LONG, "failed: exit status: 3"),
            ("sleep 600", short, "no answer within 100ms"),
            ("echo hello", LONG, "invalid answer (`hello`)"),
            (r#"echo '{"nearer": 7, "same": true, "reason": ""}'"#, LONG, "nearer 7"),
            (r#"echo '{"nearer": 1}'"#, LONG, "missing field"),
        ] {
            let (answer, notes) = judged(command, timeout, 0);
            assert_eq!(
                answer.nearer,
                Nearer::Neither,
                "equal features are no reason to prefer one"
            );
            assert!(notes.len() == 1 && notes[0].contains(expected), "{command}: {notes:?}");
            assert!(notes[0].contains("built-in"), "{notes:?}");
        }
    }
}
