//! The text form of a trace: there and back, and what is refused.

use super::*;
use crate::history::{ErrorClass, FailureKind, TxEnd};
use crate::profile::{Protocol, ReadVisibility};
use crate::trace::Recorder;

fn sample() -> Trace {
    let on = TargetInfo { target: "t".into(), engine: "e".into(), ..TargetInfo::default() };
    let mut recorder = Recorder::new(on, Some(Level::Serializable), vec!["s1".into(), "s2".into()]);
    recorder.controlled(ConcurrencyControl {
        protocol: Protocol::Occ,
        read_visibility: ReadVisibility::SnapshotOfBegin,
    });
    recorder.set_up(vec!["create table t (id int)".into()]);
    let begin = recorder.statement("begin");
    let update = recorder.statement("update t set v = 'a\n\"b\"' where id = 1");
    let first = recorder.begin(0, None);
    let item = recorder.item("t/1");
    let mut at = 0;
    let mut add = |recorder: &mut Recorder, transaction, statement, result, accesses| {
        at += 10;
        recorder.operation(Operation {
            session: 0,
            transaction,
            statement,
            start: at,
            end: at + 5,
            result,
            accesses,
        });
    };
    add(&mut recorder, first, begin, OperationResult::Done, None);
    let version = |version| vec![Access { item, version }];
    let accesses = Accesses { reads: version(0), writes: version(4), lock: Some(Lock::Exclusive) };
    add(&mut recorder, first, update, OperationResult::Affected(1), Some(Box::new(accesses)));
    recorder.end(first, TxEnd::Aborted);
    let second = recorder.begin(0, Some(first));
    let deadlock = OperationResult::Error(ErrorClass::Deadlock);
    add(&mut recorder, second, update, deadlock, None);
    add(&mut recorder, second, update, OperationResult::Rows(7), None);
    add(&mut recorder, second, update, OperationResult::Unanswered, None);
    recorder.begin(1, None);
    recorder.finish(Some(ServerFailure { how: FailureKind::Died, why: "killed".into(), log: None }))
}

fn lines(trace: &Trace) -> Vec<String> {
    trace.lines().collect()
}

fn read(lines: &[String]) -> Result<Trace, TraceError> {
    Trace::from_lines(lines.iter().map(String::as_str))
}

#[test]
fn trace_round_trips() {
    let trace = sample();
    let text = lines(&trace);
    assert_eq!(read(&text).as_ref(), Ok(&trace));
    assert!(text.iter().all(|line| !line.contains('\n')));
    let at = |start: &str| text.iter().position(|line| line.starts_with(start)).unwrap();
    assert!(at("{\"item\"") < at("{\"op\":{\"session\":0,\"transaction\":0,\"statement\":1"));
    let op = &text[at("{\"op\":{\"session\":0,\"transaction\":0,\"statement\":1")];
    assert!(
        op.ends_with("\"result\":{\"affected\":1},\"reads\":[[0,0]],\"writes\":[[0,4]],\"lock\":\"exclusive\"}}"),
        "{op}"
    );
    assert!(text.last().unwrap().starts_with("{\"end\":{\"operations\":5,\"transactions\":3"));
    let empty = Trace::default();
    assert_eq!(read(&lines(&empty)), Ok(empty));
}

#[test]
fn every_line_is_needed() {
    let text = lines(&sample());
    for left_out in 0..text.len() {
        let mut less = text.clone();
        less.remove(left_out);
        assert!(read(&less).is_err(), "without {}", text[left_out]);
    }
    let broken_off = read(&text[..text.len() - 1]).unwrap_err();
    assert!(broken_off.why.contains("broken off"), "{broken_off}");
}

#[test]
fn malformed_trace_is_refused_with_its_line() {
    let text = lines(&sample());
    for (from, to, why) in [
        ("\"format\":2", "\"format\":3", "format"),
        ("\"start\":20,\"end\":25", "\"start\":26,\"end\":25", "ends before"),
        ("\"reads\":[[0,0]]", "\"reads\":[[9,0]]", "item 9"),
        ("\"repeats\":0", "\"repeats\":8", "no transaction 8"),
        ("\"rows\":7", "\"rows\":-7", "invalid"),
        ("\"session\":1", "\"session\":5", "no session 5"),
        ("{\"op\"", "{\"opera\"", "unknown variant"),
    ] {
        let changed: Vec<String> = text.iter().map(|line| line.replace(from, to)).collect();
        assert_ne!(changed, text, "{from}");
        let error = read(&changed).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("line "), "{from}: {error}");
    }
    let twice = [text[0].clone(), text[0].clone()];
    assert_eq!(read(&twice).unwrap_err().line, 2);
}
