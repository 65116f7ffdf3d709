//! How the reader interprets Leopard's files, and which files it rejects.

use super::*;
use crate as order;

const ONE: &str = r#"[
  {"threadID":0,"transactionID":"0,0","operationID":"0,0,0","sql":"","operationTraceType":"START","startTimestamp":1,"finishTimestamp":2,"isolationLevel":"READ_COMMITTED"},
  {"threadID":0,"transactionID":"0,0","operationID":"0,0,1","sql":"update t set a = 5 where id = 1","operationTraceType":"UPDATE","startTimestamp":3,"finishTimestamp":5,"isolationLevel":"READ_COMMITTED","traceLockMode":"EXCLUSIVE_LOCK","readMode":null,"readTupleList":null,"writeTupleList":[{"table":"t","primaryKey":"1","valueMap":{"a":"5"}}]},
  {"threadID":0,"transactionID":"0,0","operationID":"0,0,2","sql":"","operationTraceType":"COMMIT","startTimestamp":6,"finishTimestamp":20,"isolationLevel":"READ_COMMITTED"}
]"#;

const OTHER: &str = r#"[
  {"threadID":1,"transactionID":"1,0","operationID":"1,0,0","sql":"","operationTraceType":"START","startTimestamp":1,"finishTimestamp":2},
  {"threadID":1,"transactionID":"1,0","operationID":"1,0,1","sql":"select a, b from t where id = 1","operationTraceType":"SELECT","startTimestamp":7,"finishTimestamp":18,"traceLockMode":"NON_LOCK","readMode":"CONSISTENT_READ","readTupleList":[{"table":"t","primaryKey":"1","valueMap":{"a":"5","b":"0"}}]},
  {"threadID":1,"transactionID":"1,0","operationID":"1,0,2","sql":"","operationTraceType":"ROLLBACK","startTimestamp":21,"finishTimestamp":22}
]"#;

fn read_texts(one: &str, other: &str) -> Result<Trace, LeopardError> {
    read(&[("thread-0.json".into(), one.into()), ("thread-1.json".into(), other.into())])
}

#[test]
fn leopard_folder_is_read_as_a_trace() {
    let trace = read_texts(ONE, OTHER).unwrap();
    assert_eq!((trace.sessions.len(), trace.operations.len()), (2, 6));
    assert_eq!(trace.level, Some(Level::ReadCommitted));
    assert_eq!(trace.items, ["t/1", "t/1/a", "t/1/b"]);
    let inferred = order::infer(&trace, None, order::BUDGET).unwrap();
    let place = |sql: &str| {
        let of = |at: &u32| {
            let operation = &trace.operations[*at as usize];
            trace.statements[operation.statement as usize].starts_with(sql)
        };
        inferred.order.iter().position(of).unwrap()
    };
    // They overlap, and the read observed the committed value.
    assert!(place("commit") < place("select"));
    assert_eq!(inferred.violation_count(), 0);
}

#[test]
fn invalid_leopard_record_is_refused_with_file_and_element() {
    for (from, to, why) in [
        (
            "\"startTimestamp\":7,\"finishTimestamp\":18",
            "\"startTimestamp\":7,\"finishTimestamp\":6",
            "ends before",
        ),
        ("\"startTimestamp\":7,", "\"startTimestamp\":1,", "sends it at"),
        ("\"START\"", "\"SELECT\"", "has no START"),
        ("\"SELECT\",\"startTimestamp\":7", "\"SELEKT\",\"startTimestamp\":7", "SELEKT"),
    ] {
        let changed = OTHER.replacen(from, to, 1);
        assert_ne!(changed, OTHER, "{from}");
        let result = read_texts(ONE, &changed);
        let error = result.unwrap_err().to_string();
        assert!(error.contains(why), "{from}: {error}");
        assert!(error.contains("thread-1.json: element "), "{error}");
    }
    let broken_off = read_texts(ONE, &OTHER[..OTHER.len() - 10]).unwrap_err();
    assert!(broken_off.line.is_some(), "{broken_off}");
}

#[test]
fn unwritten_value_is_the_initial_one_or_an_error() {
    let again = r#",{"threadID":1,"transactionID":"1,0","operationID":"1,0,3","sql":"select b","operationTraceType":"SELECT","startTimestamp":19,"finishTimestamp":20,"readTupleList":[{"table":"t","primaryKey":"1","valueMap":{"b":"7"}}]},
  {"threadID":1,"transactionID":"1,0","operationID":"1,0,2","sql":"","operationTraceType":"ROLLBACK""#;
    let from = r#",
  {"threadID":1,"transactionID":"1,0","operationID":"1,0,2","sql":"","operationTraceType":"ROLLBACK""#;
    let changed = OTHER.replacen(from, again, 1);
    assert_ne!(changed, OTHER);
    let error = read_texts(ONE, &changed).unwrap_err().to_string();
    assert!(error.contains("which no operation wrote"), "{error}");
}
