//! Changes of the schema among the steps of a case that are not modelled: what they may
//! affect is isolated, and the rest of the run is predicted.
//!
//! A change that is read as harmless (a trigger of simple effect, a right, a storage
//! parameter) affects no result. A new foreign key may make later writes fail. Of a
//! table that any other change names nothing is known once that change is sent.

use super::{Operation, Unmodelled};
use crate::case::Step;
use crate::history::{EventKind, History};
use isolde_sql::dialect::Family;
use isolde_sql::read::simple_trigger;
use isolde_sql::{Schema, Stmt, lexer};
use std::collections::BTreeSet;

/// What a change of the schema affects from the moment that it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaChange {
    /// The tables of which nothing is known any more.
    pub unknown: BTreeSet<String>,
    /// The tables whose writes may fail because of a new constraint.
    pub constrained: BTreeSet<String>,
}

impl SchemaChange {
    /// Reads a step that changes the schema; none if what it affects is not known.
    pub(super) fn read(
        step: &Step,
        family: Family,
        schema: &Schema,
        unmodelled: &Unmodelled,
    ) -> Option<SchemaChange> {
        if family != Family::Postgres || matches!(step.statement(), Some(s) if !s.is_ddl()) {
            return None;
        }
        let words: Vec<String> =
            lexer::pieces(&step.sql).iter().map(|p| p.to_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if unmodelled.has_inheritance()
            || words.iter().any(|word| word.starts_with('"') || *word == "cascade")
        {
            return None;
        }
        let known = |table: &str| schema.table(table).is_some();
        let unknown =
            || SchemaChange { unknown: unmodelled.touched(&words), ..SchemaChange::default() };
        match words.as_slice() {
            ["grant" | "revoke", ..]
            | ["comment", "on", ..]
            | ["create" | "alter" | "drop", "role" | "sequence", ..]
            | ["alter", "table", _, "owner", "to", _]
            | ["alter", "table", _, "set", "(", ..]
            | ["alter", "table", _, "validate", "constraint", _] => Some(SchemaChange::default()),
            // The triggers of a table that is modelled are simple.
            ["alter", "table", table, "disable" | "enable", "trigger", _] if known(table) => {
                Some(SchemaChange::default())
            }
            ["create", "trigger", ..]
                if simple_trigger(&step.sql, &unmodelled.trigger_functions)
                    .is_some_and(|(_, inserts_into)| inserts_into.is_empty()) =>
            {
                Some(SchemaChange::default())
            }
            ["create", "index", "concurrently", ..] => Some(SchemaChange::default()),
            ["drop", "index", "concurrently", name] if !is_unique_index(name, schema) => {
                Some(SchemaChange::default())
            }
            ["alter", "table", child, "add", "constraint", _, rest @ ..]
            | ["alter", "table", child, "add", rest @ ..]
                if known(child) =>
            {
                Some(new_key(child, rest, schema).unwrap_or_else(unknown))
            }
            ["alter" | "drop" | "create", "table", ..]
            | ["create", "temporary" | "temp" | "unlogged", "table", ..]
            | ["create" | "drop", "trigger", ..] => Some(unknown()),
            _ => None,
        }
    }
}

/// Whether an index may be unique: one of the setup is not, unless it is known to be.
fn is_unique_index(name: &str, schema: &Schema) -> bool {
    let mut indexes = schema.tables.iter().flat_map(|table| &table.indexes);
    indexes.find(|index| index.name == name).is_none_or(|index| index.unique)
}

/// A new foreign key that refuses to lose a parent.
fn new_key(child: &str, rest: &[&str], schema: &Schema) -> Option<SchemaChange> {
    let ["foreign", "key", "(", column, ")", "references", parent, rest @ ..] = rest else {
        return None;
    };
    let rest = match rest {
        ["(", _, ")", rest @ ..] => rest,
        rest => rest,
    };
    let plain = matches!(rest, [] | ["not", "valid"]);
    let table = schema.table(child)?;
    let known = table.column(column).is_some() && schema.table(parent).is_some();
    let constrained = BTreeSet::from([child.to_string(), (*parent).to_string()]);
    (plain && known).then(|| SchemaChange { constrained, ..SchemaChange::default() })
}

/// Applies the changes to the operations of a run, in the order in which its statements
/// were sent. Returns the tables whose rows are not known at the end.
pub(super) fn isolate(
    operations: &mut [Operation],
    changes: &[(usize, SchemaChange)],
    schema: &Schema,
    history: &History,
) -> BTreeSet<String> {
    let mut unknown: BTreeSet<String> = BTreeSet::new();
    for event in &history.events {
        let (EventKind::Sent { .. }, Some(step)) = (&event.what, event.step) else { continue };
        if let Some((_, change)) = changes.iter().find(|(at, _)| *at == step) {
            unknown.extend(change.unknown.iter().cloned());
            continue;
        }
        let (Operation::Statement(statement) | Operation::Unnumbered(statement)) =
            &operations[step]
        else {
            continue;
        };
        if let Some(table) = reached(statement, schema).intersection(&unknown).next() {
            let why =
                format!("the table {table} is not modelled: a statement changes its definition");
            operations[step] = Operation::Opaque(why);
        }
    }
    unknown
}

/// The tables that a statement names and, if it writes, those that foreign keys lead to.
fn reached(statement: &Stmt, schema: &Schema) -> BTreeSet<String> {
    let mut reached: BTreeSet<String> = statement.tables().into_iter().map(String::from).collect();
    if statement.written_table().is_none() {
        return reached;
    }
    loop {
        let linked = schema.tables.iter().flat_map(|t| {
            t.foreign_keys.iter().flat_map(|key| [(&t.name, &key.parent), (&key.parent, &t.name)])
        });
        let more: Vec<String> = linked
            .filter(|(from, to)| reached.contains(*from) && !reached.contains(*to))
            .map(|(_, to)| to.clone())
            .collect();
        if more.is_empty() {
            return reached;
        }
        reached.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use crate::case;
    use crate::history::{Event, SentStep, TargetInfo};
    use crate::parsed_case::ParsedCase;

    const SETUP: &str = "case: c\nsetup:\n  create table t (id int primary key, v int);\n  \
                         create table u (id int primary key);\n  \
                         create table c (id int primary key, f int references t (id));\n";

    /// Reads a case and applies the changes in the order of its steps.
    fn read_run(setup: &str, steps: &[&str]) -> ParsedCase {
        let steps: String = steps.iter().map(|step| format!("{step};\n")).collect();
        let case = case::parse(&format!("{SETUP}{setup}\n{steps}")).unwrap();
        let on = TargetInfo { engine: "postgres".into(), ..TargetInfo::default() };
        let read = ParsedCase::of_case(&case, &on, Level::ReadCommitted);
        let sent = |n: usize| Event {
            session: case.steps[n].session.clone(),
            step: Some(n),
            what: EventKind::Sent { as_sql: None },
        };
        let history = crate::History {
            isolde: String::new(),
            case: String::new(),
            on,
            level: None,
            seed: None,
            steps: (0..case.steps.len()).map(|n| SentStep::of(&case, n)).collect(),
            events: (0..case.steps.len()).map(sent).collect(),
            transactions: Vec::new(),
            final_state: Vec::new(),
            death: None,
        };
        read.in_run(&history).into_owned()
    }

    fn is_modelled(read: &ParsedCase, step: usize) -> bool {
        !matches!(read.operations[step], Operation::Opaque(_))
    }

    #[test]
    fn table_is_unknown_once_its_change_is_sent_and_not_before() {
        let steps = [
            "s1> select v from t",
            "s2> alter table t add w int",
            "s1> select v from t",
            "s1> select id from u",
        ];
        let read = read_run("", &steps);
        let modelled: Vec<bool> = (0..4).map(|n| is_modelled(&read, n)).collect();
        assert_eq!(modelled, [true, true, false, true]);
        assert!(read.unknown_tables.contains("t") && !read.unknown_tables.contains("u"));
    }

    #[test]
    fn writes_that_reach_a_changed_table_are_unknown_and_reads_are_not() {
        let steps = ["s2> alter table c drop f", "s1> select v from t", "s1> delete from t"];
        let read = read_run("", &steps);
        assert!(is_modelled(&read, 1) && !is_modelled(&read, 2));
        let steps = ["s2> drop table c, u", "s1> select id from u"];
        assert!(!is_modelled(&read_run("", &steps), 1));
    }

    #[test]
    fn new_foreign_key_may_make_writes_of_both_tables_fail() {
        let key = "s2> alter table u add constraint k foreign key (id) references t (id) not valid";
        let read = read_run("", &["s1> begin", key, "s1> delete from t where id = 1"]);
        assert!(is_modelled(&read, 2));
        assert!(read.may_fail("t") && read.may_fail("u") && !read.may_fail("c"));
        let cascades = key.replace("not valid", "on delete set null");
        let read = read_run("", &["s1> begin", &cascades, "s1> delete from t where id = 1"]);
        assert!(!is_modelled(&read, 2));
    }

    #[test]
    fn change_that_affects_no_result_leaves_its_table_known() {
        let function = "  create function f() returns trigger language plpgsql as 'begin return null; end;';\n";
        for change in [
            "create trigger g after update on t execute procedure f()",
            "grant select on t to public",
            "alter table t owner to r",
            "alter table t set (fillfactor = 50)",
            "alter sequence s restart with 5",
        ] {
            let read =
                read_run(function, &["s1> begin", &format!("s2> {change}"), "s1> select v from t"]);
            assert!(is_modelled(&read, 1) && is_modelled(&read, 2), "{change}");
            assert!(read.unknown_tables.is_empty(), "{change}");
        }
        let read = read_run(
            function,
            &[
                "s1> begin",
                "s2> create trigger g before update on t for each row execute procedure f()",
                "s1> update t set v = 1",
            ],
        );
        assert!(!is_modelled(&read, 2));
    }

    #[test]
    fn change_that_may_affect_more_than_it_names_is_not_isolated() {
        let read = read_run("", &["s1> begin", "s2> drop table t cascade", "s1> select id from u"]);
        assert!(!is_modelled(&read, 1));
        let inherits = "  create table d () inherits (u);\n";
        let read = read_run(inherits, &["s1> begin", "s2> alter table d no inherit u"]);
        assert!(!is_modelled(&read, 1));
    }
}
