//! Random histories, written in each format that can be written, and read again.

use isolde_checker::{Builder, History, Status, Value};
use isolde_histories::{read_bytes, write_elle_edn, write_elle_json, write_own};
use proptest::prelude::*;

type Op = (u8, u8, u8, Vec<u8>);
type Txn = (u8, u8, bool, Vec<Op>);

fn transactions() -> impl Strategy<Value = Vec<Txn>> {
    let op = (0..6u8, 0..4u8, any::<u8>(), prop::collection::vec(any::<u8>(), 0..4));
    let txn = (0..4u8, 0..3u8, any::<bool>(), prop::collection::vec(op, 0..5));
    prop::collection::vec(txn, 0..12)
}

/// Registers have names, lists have numbers.
fn build(transactions: &[Txn], timed: bool) -> History {
    let mut builder = Builder::new();
    let mut now = 0;
    for (session, status, named, ops) in transactions {
        let session = builder.numbered_session(u64::from(*session));
        builder.begin(session);
        if *named {
            builder.name_transaction(&format!("the \"{now}\""));
        }
        if timed {
            builder.times(now, if *status == 2 { u64::MAX } else { now + 1 });
            now += 2;
        }
        for (kind, item, value, list) in ops {
            let register = builder.item(&format!("x{item}\\"));
            let list_item = builder.numbered_item(u64::from(*item));
            let text = builder.text_value(&format!("v \"{value}\n"));
            let value = Value(u64::from(*value));
            match kind {
                0 => builder.write(register, value),
                1 => builder.write(register, text),
                2 => builder.read(register, value),
                3 => builder.read(register, Value::INITIAL),
                4 => builder.append(list_item, value),
                _ => {
                    let list: Vec<Value> = list.iter().map(|v| Value(u64::from(*v))).collect();
                    builder.read_list(list_item, &list);
                }
            }
            builder.statement("select 'x'");
        }
        builder.end([Status::Committed, Status::Aborted, Status::Unknown][usize::from(*status)]);
    }
    builder.finish()
}

fn own(history: &History) -> String {
    let mut text = Vec::new();
    write_own(history, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The history in Elle's format, which keeps the results of reads only for committed transactions,
/// and no SQL texts.
fn elle(history: &History, edn: bool) -> String {
    let mut text = Vec::new();
    match edn {
        true => write_elle_edn(history, &mut text).unwrap(),
        false => write_elle_json(history, &mut text).unwrap(),
    }
    String::from_utf8(text).unwrap()
}

fn reread(text: &str) -> History {
    read_bytes("file", text.as_bytes().to_vec(), None).unwrap().history
}

proptest! {
    #[test]
    fn our_own_format_keeps_everything(transactions in transactions(), timed in any::<bool>()) {
        let text = own(&build(&transactions, timed));
        prop_assert_eq!(own(&reread(&text)), text);
    }

    #[test]
    fn elles_formats_keep_what_committed(
        mut transactions in transactions(),
        lists in any::<bool>(),
        timed in any::<bool>(),
        edn in any::<bool>(),
    ) {
        // Elle's histories have lists or registers, not both: nil is ambiguous.
        for (kind, ..) in transactions.iter_mut().flat_map(|(.., ops)| ops) {
            *kind = if lists { 4 + *kind % 2 } else { *kind % 4 };
        }
        let history = build(&transactions, timed);
        prop_assume!(!history.is_empty());
        let text = elle(&history, edn);
        let again = reread(&text);
        prop_assert_eq!(again.len(), history.len());
        prop_assert_eq!(again.has_times(), history.has_times());
        let committed = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.contains(":ok") || line.contains("\"ok\"")).map(str::to_string).collect()
        };
        prop_assert_eq!(committed(&elle(&again, edn)), committed(&text));
        let same = elle(&reread(&elle(&again, edn)), edn);
        prop_assert_eq!(&same, &elle(&again, edn));
        // Both formats are equivalent.
        prop_assert_eq!(own(&reread(&elle(&again, !edn))), own(&reread(&same)));
    }
}
