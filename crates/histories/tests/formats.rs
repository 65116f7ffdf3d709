//! Every format is read as expected (shown in Isolde's own format), and damaged files are rejected
//! with the right message.

use isolde_checker::History;
use isolde_histories::{Format, ReadError, read, read_bytes, write_own};
use std::fs;
use std::path::Path;

fn history(text: impl AsRef<[u8]>, format: &str) -> History {
    let read = read_bytes("file", text.as_ref().to_vec(), None).unwrap();
    assert_eq!(read.format.name, format);
    read.history
}

fn error(text: impl AsRef<[u8]>) -> String {
    read_bytes("file", text.as_ref().to_vec(), None).err().expect("it is wrong").to_string()
}

/// The history in Isolde's own format, without the header line.
fn own_lines(history: &History) -> Vec<String> {
    let mut text = Vec::new();
    write_own(history, &mut text).unwrap();
    String::from_utf8(text).unwrap().lines().skip(1).map(str::to_string).collect()
}

const ELLE: &str = r#"; two clients and a nemesis
{:index 0, :time 1, :type :invoke, :process 0, :f :txn, :value [[:append :x 1] [:r "y" nil]]}
{:index 1 :type :invoke :process 1 :f :txn :value [[:append :x 2]]}
{:index 2, :type :info, :process :nemesis, :f :start-partition, :value nil}
#jepsen.history.Op{:index 3, :type :ok, :process 0, :f :txn, :value [[:append :x 1] [:r "y" []]]}
{:index 4, :type :fail, :process 1, :f :txn, :value [[:append :x 2]], :error [:conflict "a \"b\""]}
{:index 5, :type :invoke, :process 1, :f :txn,
 :value [[:append y 3]
         [:r :x nil]]}
#_ {:index 6, :type :ok, :process 1}
{:index 7, :type :info, :process 1, :f :txn, :value [:timeout]}
{:index 8, :type :invoke, :process 2, :f :txn, :value [[:append :x 9]]}
"#;

#[test]
fn operations_of_elle_become_transactions_by_their_process() {
    let expected = [
        r#"{"session":0,"txn":3,"status":"committed","begin":1,"end":3,"ops":[["append","x",1],["r","y",[]]]}"#,
        r#"{"session":1,"txn":4,"status":"aborted","begin":2,"end":4,"ops":[["append","x",2]]}"#,
        r#"{"session":1,"txn":7,"status":"unknown","begin":5,"ops":[["append","y",3]]}"#,
        r#"{"session":2,"txn":8,"status":"unknown","begin":7,"ops":[["append","x",9]]}"#,
    ];
    assert_eq!(own_lines(&history(ELLE, "elle-edn")), expected);
    let vector = format!("[{ELLE}]");
    assert_eq!(own_lines(&history(vector, "elle-edn")), expected);
}

#[test]
fn json_of_elle_is_read_as_lines_and_as_an_array() {
    let lines = r#"{"index":0,"type":"invoke","process":0,"value":[["w","x",1],["r",2,null]]}
{"index":1,"type":"ok","process":0,"value":[["w","x",1],["r",2,null]], "extra": {"a": [1, "}"]}}
{"type":"ok","process":3,"f":"txn","value":[["r","x",1],["w","x","\u0061"],["w",2,-5]]}"#;
    let expected = [
        r#"{"session":0,"txn":1,"status":"committed","begin":1,"end":2,"ops":[["w","x",1],["r",2,null]]}"#,
        r#"{"session":3,"status":"committed","begin":0,"ops":[["r","x",1],["w","x","a"],["w",2,"-5"]]}"#,
    ];
    assert_eq!(own_lines(&history(lines, "elle-json")), expected);
    let array = format!("[{}]", lines.replace('\n', ",\n"));
    assert_eq!(own_lines(&history(array, "elle-json")), expected);
    let pretty = format!("[\n{}\n]", lines.replace('\n', ",").replace("\"value\"", "\n \"value\""));
    assert_eq!(own_lines(&history(pretty, "elle-json")), expected);
}

#[test]
fn without_invocations_there_are_no_times_and_without_processes_no_sessions() {
    let history = history(
        "{:type :ok :value [[:w 1 1]]}\n{:type :ok :value [[:r 1 1] [:r 2 nil]]}",
        "elle-edn",
    );
    assert!(!history.has_times() && !history.has_sessions());
    let expected = [
        r#"{"status":"committed","ops":[["w",1,1]]}"#,
        r#"{"status":"committed","ops":[["r",1,1],["r",2,null]]}"#,
    ];
    assert_eq!(own_lines(&history), expected);
}

#[test]
fn nil_is_an_empty_list_where_lists_are_appended_to() {
    let both = "{:type :ok :value [[:r 1 nil] [:r 2 nil] [:append 1 5] [:w 2 6]]}";
    let expected =
        r#"{"status":"committed","ops":[["r",1,[]],["r",2,null],["append",1,5],["w",2,6]]}"#;
    assert_eq!(own_lines(&history(both, "elle-edn")), [expected]);
}

/// Where processes are consecutive in the file, only the clock gives the real-time order.
#[test]
fn times_of_elle_count_if_all_operations_have_one_that_does_not_decrease() {
    let lines = |times: [&str; 4]| {
        let [a, b, c, d] = times.map(|time| match time {
            "" => String::new(),
            time => format!(" :time {time}"),
        });
        format!(
            "{{:type :invoke :process 0 :value [[:w x 1]]{a}}}\n\
             {{:type :ok :process 0 :value [[:w x 1]]{b}}}\n\
             {{:type :invoke :process 1 :value [[:r x nil]]{c}}}\n\
             {{:type :ok :process 1 :value [[:r x 1]]{d}}}\n"
        )
    };
    let times = |text: String| -> Vec<(u64, u64)> {
        let history = history(text, "elle-edn");
        history.transactions().filter_map(|txn| history.times(txn)).collect()
    };
    assert_eq!(times(lines(["3000", "4000", "1000", "5000"])), [(3000, 4000), (1000, 5000)]);
    let positions = [(1, 2), (3, 4)];
    for broken in [
        ["", "", "", ""],
        ["3000", "", "1000", "5000"],
        ["3000", "4000", "5000", "1000"],
        ["3000", "-4000", "5000", "6000"],
        ["7", "7", "7", "7"],
    ] {
        assert_eq!(times(lines(broken)), positions, "{broken:?}");
    }
}

#[test]
fn lines_of_plume_may_be_interleaved_and_zero_is_the_initial_value() {
    let text = "r(1,0,0,1)\nw(1,5,0,1)\r\nw(2,0,1,7)\nw(1,6,0,2)\nr(2,0,1,7)\n\nw(3,9,1,-1)\n";
    let expected = [
        r#"{"session":0,"txn":1,"status":"committed","ops":[["r",1,null],["w",1,5]]}"#,
        r#"{"session":1,"txn":7,"status":"committed","ops":[["w",2,0],["r",2,0]]}"#,
        r#"{"session":0,"txn":2,"status":"committed","ops":[["w",1,6]]}"#,
        r#"{"session":1,"status":"aborted","ops":[["w",3,9]]}"#,
    ];
    assert_eq!(own_lines(&history(text, "plume")), expected);
}

#[test]
fn a_transaction_of_plume_that_continues_later_is_an_error() {
    let error = error("w(1,1,0,1)\nw(1,2,0,2)\nw(1,3,0,1)\n");
    assert!(error.starts_with("file:3: transaction 1 continues here"), "{error}");
}

#[test]
fn awdits_separators_end_transactions_and_sessions() {
    let text = "w 0 1\nr 1 0\n-----\nr 0 1\n=====\nr 0 1\nw 1 2\n\n";
    let expected = [
        r#"{"session":1,"status":"committed","ops":[["w",0,1],["r",1,null]]}"#,
        r#"{"session":1,"status":"committed","ops":[["r",0,1]]}"#,
        r#"{"session":2,"status":"committed","ops":[["r",0,1],["w",1,2]]}"#,
    ];
    assert_eq!(own_lines(&history(text, "awdit")), expected);
}

#[test]
fn dbcop_text_and_both_kinds_of_dbcop_json_are_equivalent() {
    let expected = [
        r#"{"session":1,"status":"committed","ops":[["w","x",1],["r","y",null]]}"#,
        r#"{"session":1,"status":"aborted","ops":[["w","x",2]]}"#,
        r#"{"session":2,"status":"committed","ops":[["r","x",1]]}"#,
    ];
    let text = "// two sessions\n[x:=1 y==?] [x:=2]!\n---\n[x==1] // the end\n";
    assert_eq!(own_lines(&history(text, "dbcop-text")), expected);
    let bare = r#"[[{"events":[{"Write":{"variable":"x","version":1}},{"Read":{"variable":"y","version":null}}],"committed":true},
        {"events":[["w","x",2]],"committed":false}],[{"events":[["r","x",1]],"committed":true}]]"#;
    assert_eq!(own_lines(&history(bare, "dbcop-json")), expected);
    let whole = format!(r#"{{"params":{{"id":0}},"info":"","start":"","end":"","data":{bare}}}"#);
    assert_eq!(own_lines(&history(whole, "dbcop-json")), expected);
}

fn bincode() -> Vec<u8> {
    let fields = |fields: &[u64]| -> Vec<u8> {
        fields.iter().flat_map(|field| field.to_le_bytes()).collect()
    };
    let event = |write: u8, variable: u64, value: u64, done: u8| -> Vec<u8> {
        [vec![write], fields(&[variable, value]), vec![done]].concat()
    };
    [
        fields(&[0, 2, 2, 1, 2]),
        fields(&[4]),
        b"info".to_vec(),
        // No start, no end, two sessions; the first has one transaction of two events.
        fields(&[0, 0, 2, 1, 2]),
        event(1, 7, 3, 1),
        event(0, 8, 0, 1),
        vec![1],
        fields(&[1, 2]),
        event(0, 7, 3, 1),
        event(1, 7, 4, 0),
        vec![0],
    ]
    .concat()
}

#[test]
fn dbcop_binary_is_read_and_every_prefix_is_truncated() {
    let expected = [
        r#"{"session":1,"status":"committed","ops":[["w",7,3],["r",8,null]]}"#,
        r#"{"session":2,"status":"aborted","ops":[["r",7,3]]}"#,
    ];
    let bytes = bincode();
    assert_eq!(own_lines(&history(&bytes, "dbcop-binary")), expected);
    for end in 40..bytes.len() {
        let error = error(&bytes[..end]);
        assert!(error.contains("truncated"), "{end}: {error}");
    }
}

fn cobra_log(entries: &[(u8, &[u64])]) -> Vec<u8> {
    let entry = |(tag, fields): &(u8, &[u64])| {
        let fields = fields.iter().flat_map(|field| field.to_be_bytes());
        std::iter::once(*tag).chain(fields).collect::<Vec<u8>>()
    };
    entries.iter().flat_map(entry).collect()
}

#[test]
fn each_log_of_cobra_is_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let initial = 0xbebe_ebee;
    let (read_1, write_1) = ([initial, initial, 5, 0], [100, 5, 77]);
    let first = cobra_log(&[
        (b'S', &[1]),
        (b'R', &read_1),
        (b'W', &write_1),
        (b'C', &[1]),
        (b'S', &[2]),
        (b'A', &[]),
    ]);
    write("T0.log", &first);
    write("T1.log", &cobra_log(&[(b'S', &[3]), (b'R', &[1, 100, 5, 77]), (b'C', &[3])]));
    write("notes.txt", b"not a log");
    let expected = [
        r#"{"session":"T0","txn":1,"status":"committed","ops":[["r",5,null],["w",5,100]]}"#,
        r#"{"session":"T0","txn":2,"status":"aborted","ops":[]}"#,
        r#"{"session":"T1","txn":3,"status":"committed","ops":[["r",5,100]]}"#,
    ];
    let found = read(folder.path(), None).unwrap();
    assert_eq!(found.format.name, "cobra");
    assert_eq!(own_lines(&found.history), expected);
    write("T2.log", &first[..first.len() - 12]);
    let error = read(folder.path(), None).err().unwrap().to_string();
    assert!(error.contains("T2.log: byte") && error.contains("truncated"), "{error}");
}

const OWN: &str = r#"{"isolde-history":1}
{"session":"s1","txn":"T7","status":"committed","begin":1,"end":9,"ops":[["r","x",3,{"locking":true,"sql":"select 1"}],["w","x",4],["append","l",5],["r","l",[1,2,5]],["r","z",null]]}
{"txn":8,"status":"unknown","begin":2,"ops":[["predicate","P",[["x",4]]]]}
{"status":"aborted","begin":0,"ops":[["w","y","text"]]}
{"order":"x","versions":[3,4]}
{"predicate":"P","satisfied-by":[["x",3],["x",4]]}
"#;

#[test]
fn our_own_format_is_written_as_it_was_read() {
    let history = history(OWN, "isolde");
    assert_eq!(own_lines(&history), OWN.lines().skip(1).collect::<Vec<_>>());
}

#[test]
fn explicit_versions_give_their_order() {
    let text = r#"{"ops":[["w","x",7,{"version":2}],["r","x",null]]}
{"ops":[["r","x",7,{"version":1}]]}
{"ops":[["w","x",7,{"version":1}]]}"#;
    let expected = [
        r#"{"status":"committed","ops":[["w","x","7@2"],["r","x",null]]}"#,
        r#"{"status":"committed","ops":[["r","x","7@1"]]}"#,
        r#"{"status":"committed","ops":[["w","x","7@1"]]}"#,
        r#"{"order":"x","versions":["7@1","7@2"]}"#,
    ];
    assert_eq!(own_lines(&history(text, "isolde")), expected);
}

#[test]
fn errors_name_the_line_and_the_problem() {
    let plain = [
        ("w(1,2,3,4)\nr(1,2,3)\n", "file:2: expected r(key,value,session,txn)"),
        ("w(1,2,3,4)\nr(1,2", "truncated"),
        ("w 1 2\nwrite 1\n", "file:2: expected `r KEY VALUE`"),
        ("[x:=1]\n\n[x=1]\n", "file:3: `x=1` is none of"),
        ("[x:=1]\n[x==1", "file:2: expected a transaction"),
        (r#"{"isolde-history":2}"#, "file:1: version 2 of the format"),
        ("{\"isolde-history\":1}\n{\"ops\":[[\"q\",1,2]]}", "file:2: `q` is none of"),
        ("{\"isolde-history\":1}\n{\"opps\":[]}\n", "file:2: unknown field `opps`"),
        ("{\"isolde-history\":1}\n{\"ops\":[[\"r\"", "truncated"),
        ("{:type :ok :value [[:r 1 2]]}\n{:type :okay}\n", "file:2: :type is invoke, ok, fail"),
        ("{:type :ok :value [[:r 1 2]]}\n{:value []}\n", "file:2: this operation has no :type"),
        ("{:type :ok\n :value [[:x 1 2]]}", "file:1: `[:x 1 2]` is none of"),
        ("{:type :ok :value [[:r 1 2]]}\n{:type :ok :value [[:r", "file:2: the file ends in the"),
        ("[{:type :ok :value [[:r 1 2]]}\n", "file:2: the file ends before the bracket of line 1"),
        ("{:type :ok}\n}", "file:2: expected an operation"),
        ("{\"type\":\"ok\",\n\"value\":[[\"r\" 1]]}", "file:2: expected"),
        ("[{\"type\":\"ok\"}]\n[{\"type\":\"ok\"}]", "file:2: there is data after the end"),
        ("{:type :invoke :f :transfer :value {:from 1}}", "`:f :transfer`"),
        ("[[{\"events\":[],\n\"committed\":tru", "file:2: the file ends in the middle"),
        ("hello", "--format takes isolde"),
        ("  \n", "the file is empty"),
    ];
    for (text, expected) in plain {
        let error = error(text);
        assert!(error.contains(expected), "{text:?}\n{error}");
    }
}

#[test]
fn a_requested_format_is_used_and_a_detected_one_is_named_in_errors() {
    let plume = Format::named("PolySI").unwrap();
    let wrong = |format| read_bytes("f", b"w(1,1,1)".to_vec(), format).err().unwrap().to_string();
    assert!(wrong(None).ends_with("(read as plume; --format takes another)"));
    assert!(!wrong(Some(plume)).contains("--format"));
    assert!(Format::named("nothing").is_none());
}

#[test]
fn a_missing_file_and_an_empty_folder_are_named() {
    let missing: ReadError = read(Path::new("/no/such/file"), None).err().unwrap();
    assert!(missing.to_string().starts_with("/no/such/file: "));
    let folder = tempfile::tempdir().unwrap();
    let empty = read(folder.path(), None).err().unwrap().to_string();
    assert!(empty.contains("there is no history in this folder"), "{empty}");
}

#[test]
fn the_example_of_the_format_specification_is_valid() {
    let page = fs::read_to_string("../../docs/history-format.md").unwrap();
    let example = page.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let history = history(example, "isolde");
    assert_eq!((history.len(), history.session_count(), history.item_count()), (5, 2, 2));
    let schema = fs::read_to_string("../../docs/history.schema.json").unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    // Every field of a line of the example is in the schema.
    for line in example.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let fits = |kind: &serde_json::Value| {
            line.as_object().unwrap().keys().all(|key| kind["properties"].get(key).is_some())
        };
        assert!(schema["oneOf"].as_array().unwrap().iter().any(fits), "{line}");
    }
}
