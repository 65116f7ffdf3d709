//! What a setup makes that no prediction can follow, and the statements that
//! would need it.

use super::numbering::{is_number_function, is_sequence};
use super::pure_functions::is_pure;
use isolde_sql::read::{SchemaRead, schema};
use isolde_sql::{Cte, Dialect, Expr, Function, Schema, Stmt, Table, Write, lexer};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Unmodelled {
    /// Why no table is modelled: a trigger, a setting.
    everything: Option<String>,
    tables: BTreeMap<String, String>,
    /// A table that is not known has a foreign key to one that may be.
    unknown_child: bool,
}

/// What may stand behind the columns of a table and changes nothing.
const HARMLESS: [&str; 4] = ["engine=innodb", "without rowid", "strict", "without rowid, strict"];

/// The same, with any value.
const HARMLESS_PREFIXES: [&str; 5] =
    ["auto_increment=", "row_format=", "stats_persistent=", "charset=utf8", "defaultcharset=utf8"];

impl Unmodelled {
    /// The tables of a setup that a prediction can follow, and what it cannot.
    pub fn in_setup(setup: &[&str], dialect: &Dialect) -> (Schema, Unmodelled) {
        let setup: Vec<&str> =
            setup.iter().copied().filter(|sql| !is_sequence(sql, dialect.family)).collect();
        let SchemaRead { mut schema, unread } = schema(setup.iter().copied(), dialect.family);
        let mut found = Unmodelled::default();
        for one in unread {
            match one.table {
                Some(table) => {
                    found.tables.entry(table).or_insert(one.reason);
                }
                None => found.everything = found.everything.or(Some(one.reason)),
            }
        }
        if setup.iter().any(|sql| changes_the_server(sql)) {
            let why = "the setup changes a setting of the server";
            found.everything = found.everything.or(Some(why.into()));
        }
        schema.tables.retain(|table| match beyond(table) {
            Some(why) => {
                found.tables.insert(table.name.clone(), why.into());
                false
            }
            None => true,
        });
        let refers = |sql: &&str| sql.to_ascii_lowercase().contains("references");
        found.unknown_child = !found.tables.is_empty() && setup.iter().any(refers);
        (schema, found)
    }

    /// Why a statement is not modelled on these tables.
    pub fn forbid(&self, statement: &Stmt, schema: &Schema, engine: &str) -> Result<(), String> {
        if let Some(function) = impure(statement, engine) {
            return Err(format!("the function {function} is not modelled"));
        }
        let tables = statement.tables();
        if tables.is_empty() {
            return Ok(());
        }
        if let Some(why) = &self.everything {
            return Err(format!("the setup has something that is not modelled: {why}"));
        }
        let ctes: &[Cte] = match statement.unprepared() {
            Stmt::Select(select) => &select.ctes,
            _ => &[],
        };
        for name in tables {
            if let Some(why) = self.tables.get(name) {
                return Err(format!("the table {name} is not modelled: {why}"));
            }
            if schema.table(name).is_none() && !ctes.iter().any(|c| c.name == name) {
                return Err(format!("the table {name} is not known"));
            }
        }
        match statement.unprepared() {
            Stmt::Write(Write::Update(_) | Write::Delete(_)) if self.unknown_child => {
                Err("a table that is not modelled has a foreign key".into())
            }
            _ => Ok(()),
        }
    }
}

/// A function that may be an aggregate, look at a clock or take a lock.
fn impure<'s>(statement: &'s Stmt, engine: &str) -> Option<&'s str> {
    let mut found = None;
    statement.visit(&mut |e| {
        if let Expr::Call(Function::Named(name), _) = e
            && !is_pure(name)
            && !is_number_function(name, engine)
            && name != "pg_get_serial_sequence"
        {
            found = Some(name.as_str());
        }
    });
    found
}

/// Settings that outlive the connection of the setup.
fn changes_the_server(sql: &str) -> bool {
    let words: Vec<String> =
        lexer::outer_words(sql).iter().map(|(_, w)| w.to_ascii_lowercase()).collect();
    match words.first().map(String::as_str) {
        Some("pragma") => true,
        Some("set") => {
            let wide = ["global", "@@global", "persist", "@@persist"];
            words.iter().skip(1).take(1).any(|w| wide.iter().any(|g| w.starts_with(g)))
        }
        _ => false,
    }
}

/// What a table has that its version table would not have.
fn beyond(table: &Table) -> Option<&'static str> {
    let harmless = |option: &String| {
        let option = option.replace(' ', "");
        let prefixed = HARMLESS_PREFIXES.iter().any(|prefix| option.starts_with(prefix));
        HARMLESS.iter().any(|harmless| harmless.replace(' ', "") == option) || prefixed
    };
    (!table.options.iter().all(harmless)).then_some("its options are not modelled")
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_sql::read::statement;

    fn why(setup: &[&str], engine: &str, sql: &str) -> Option<String> {
        let dialect = Dialect::for_engine(engine, "18.0");
        let (schema, unmodelled) = Unmodelled::in_setup(setup, &dialect);
        let statement = statement(sql, dialect.family).expect("it is read");
        unmodelled.forbid(&statement, &schema, engine).err()
    }

    const T: &str = "create table t (id int primary key, v int)";

    #[test]
    fn unsupported_table_forbids_only_statements_on_it() {
        let setup = [T, "create table odd (id int primary key) inherits (t)"];
        let reason = why(&setup, "postgres", "select id from odd").unwrap();
        assert!(reason.contains("the table odd is not modelled"), "{reason}");
        assert_eq!(why(&setup, "postgres", "update t set v = 1"), None);
        let both = "select t.id from t join odd on odd.id = t.id";
        assert!(why(&setup, "postgres", both).is_some());
    }

    #[test]
    fn triggers_and_settings_forbid_everything() {
        let trigger = "create trigger g after insert on t begin delete from t; end";
        assert!(why(&[T, trigger], "sqlite", "select v from t").is_some());
        assert!(why(&[T, "pragma journal_mode = wal"], "sqlite", "select v from t").is_some());
        assert!(why(&[T, "set global autocommit = 0"], "mysql", "select v from t").is_some());
        assert_eq!(why(&[T, "insert into t values (1, 1)"], "sqlite", "select v from t"), None);
        assert_eq!(why(&[T, trigger], "sqlite", "select 1"), None);
    }

    #[test]
    fn a_foreign_key_of_a_table_that_is_not_read_forbids_deletes() {
        let child = "create table c (id int references t, primary key (id)) engine=myisam";
        assert!(why(&[T, child], "mysql", "delete from t").is_some());
        assert_eq!(why(&[T, child], "mysql", "select v from t"), None);
        assert_eq!(why(&[T], "mysql", "delete from t"), None);
    }

    #[test]
    fn only_functions_of_their_arguments_are_evaluated() {
        assert_eq!(why(&[T], "postgres", "select upper('a') from t"), None);
        for sql in ["select pg_sleep(1)", "update t set v = random()"] {
            let why = why(&[T], "postgres", sql).unwrap_or_default();
            assert!(why.contains("the function"), "{sql}: {why}");
        }
    }
}
