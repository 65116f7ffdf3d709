//! What a setup makes that no prediction can follow, and the statements that
//! would need it.

use super::numbering::{is_number_function, is_sequence};
use super::pure_functions::is_pure;
use isolde_sql::read::{SchemaRead, TriggerFunction, schema};
use isolde_sql::{
    Conflict, Cte, Dialect, Expr, Function, Index, Schema, Stmt, Table, Write, lexer,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct Unmodelled {
    /// Why no table is modelled: a trigger, a setting.
    everything: Option<String>,
    tables: BTreeMap<String, String>,
    /// The tables that a table refers to which is not known.
    parents: Vec<String>,
    /// Functions of the setup, whatever their names mean elsewhere.
    functions: Vec<String>,
    /// The table that each partition belongs to.
    part_of: BTreeMap<String, String>,
    /// Functions that triggers of simple effect may execute.
    pub trigger_functions: Vec<TriggerFunction>,
    /// The tables whose triggers write others, which are not modelled.
    pub triggered: Vec<String>,
    /// Some table inherits from another.
    inherits: bool,
}

/// What may stand behind the columns of a table and changes nothing.
const HARMLESS: [&str; 4] = ["engine=innodb", "without rowid", "strict", "without rowid, strict"];

/// The same, with any value.
const HARMLESS_PREFIXES: [&str; 6] = [
    "with(",
    "auto_increment=",
    "row_format=",
    "stats_persistent=",
    "charset=utf8",
    "defaultcharset=utf8",
];

impl Unmodelled {
    /// The tables of a setup that a prediction can follow, and what it cannot.
    pub fn in_setup(setup: &[&str], dialect: &Dialect) -> (Schema, Unmodelled) {
        let setup: Vec<&str> =
            setup.iter().copied().filter(|sql| !is_sequence(sql, dialect.family)).collect();
        let SchemaRead { mut schema, unread, functions, part_of, trigger_functions, triggered } =
            schema(setup.iter().copied(), dialect.family);
        let inherits = setup.iter().any(|sql| sql.to_ascii_lowercase().contains("inherit"));
        let mut found = Unmodelled {
            functions,
            part_of,
            trigger_functions,
            triggered,
            inherits,
            ..Unmodelled::default()
        };
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
        let functions = found.functions.clone();
        let pure = |name: &str| is_pure(name) && !functions.iter().any(|f| f == name);
        schema.tables.retain(|table| match beyond(table, &pure) {
            Some(why) => {
                found.tables.insert(table.name.clone(), why.into());
                false
            }
            None => true,
        });
        found.remove_children(&mut schema);
        if !found.tables.is_empty() {
            found.parents = setup.iter().flat_map(|sql| parents(sql)).collect();
            let known = schema.tables.iter().flat_map(|t| &t.foreign_keys);
            for key in known {
                let at = found.parents.iter().position(|p| p.eq_ignore_ascii_case(&key.parent));
                at.map(|at| found.parents.remove(at));
            }
        }
        (schema, found)
    }

    /// Whether a query of one table may find the rows of another.
    pub fn has_inheritance(&self) -> bool {
        self.inherits
    }

    /// The tables that a statement names, and those that the partitions among them belong to.
    pub fn touched(&self, words: &[&str]) -> BTreeSet<String> {
        let above = words.iter().filter_map(|word| self.part_of.get(*word).cloned());
        words.iter().map(|word| (*word).to_string()).chain(above).collect()
    }

    /// Removes the tables whose parent is not modelled.
    fn remove_children(&mut self, schema: &mut Schema) {
        loop {
            let orphan =
                |t: &Table| t.foreign_keys.iter().any(|key| self.tables.contains_key(&key.parent));
            let Some(at) = schema.tables.iter().position(orphan) else { return };
            let why = "its foreign key refers to a table that is not modelled";
            self.tables.insert(schema.tables.remove(at).name, why.into());
        }
    }

    /// Why a statement is not modelled on these tables.
    pub fn forbid(&self, statement: &Stmt, schema: &Schema, engine: &str) -> Result<(), String> {
        if let Some(function) = self.impure(statement, engine) {
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
            Stmt::Write(write)
                if !matches!(write, Write::Insert(insert) if insert.conflict == Conflict::Fail)
                    && self.is_parent(write.table(), schema) =>
            {
                Err("a table that is not modelled has a foreign key".into())
            }
            _ => Ok(()),
        }
    }

    /// Whether a table that is not modelled refers to a table, or to one that writes of it reach
    /// through other foreign keys.
    fn is_parent(&self, table: &str, schema: &Schema) -> bool {
        let mut reached = vec![table];
        let mut next = 0;
        while next < reached.len() {
            let children = schema.children(reached[next]).map(|child| child.name.as_str());
            let fresh: Vec<&str> = children.filter(|child| !reached.contains(child)).collect();
            reached.extend(fresh);
            next += 1;
        }
        reached
            .iter()
            .any(|table| self.parents.iter().any(|parent| parent.eq_ignore_ascii_case(table)))
    }

    /// Whether the value of a function depends only on its arguments.
    pub fn is_pure(&self, name: &str) -> bool {
        is_pure(name) && !self.functions.iter().any(|function| function == name)
    }

    /// A function that may be an aggregate, look at a clock or take a lock.
    fn impure<'s>(&self, statement: &'s Stmt, engine: &str) -> Option<&'s str> {
        let mut found = None;
        statement.visit(&mut |e| {
            if let Expr::Call(Function::Named(name), _) = e {
                let known = self.is_pure(name)
                    || is_number_function(name, engine)
                    || name == "pg_get_serial_sequence";
                if !known {
                    found = Some(name.as_str());
                }
            }
        });
        found
    }
}

/// The tables that the foreign keys of a statement refer to.
fn parents(sql: &str) -> Vec<String> {
    let pieces = lexer::pieces(sql);
    let name = |piece: &str| piece.trim_matches(['"', '`']).to_lowercase();
    let behind = pieces
        .windows(4)
        .map(<[&str]>::to_vec)
        .chain((2..=3.min(pieces.len())).map(|n| pieces[pieces.len() - n..].to_vec()));
    behind
        .filter(|window| window[0].eq_ignore_ascii_case("references"))
        .map(|window| match window.as_slice() {
            [_, _, ".", table] => name(table),
            window => name(window[1]),
        })
        .collect()
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
fn beyond(table: &Table, is_pure: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    let harmless = |option: &String| {
        let option = option.replace(' ', "");
        let prefixed = HARMLESS_PREFIXES.iter().any(|prefix| option.starts_with(prefix));
        HARMLESS.iter().any(|harmless| harmless.replace(' ', "") == option) || prefixed
    };
    // Its parts are evaluated for every version.
    let opaque = |index: &Index| {
        let mut opaque = false;
        index.visit(&mut |e| {
            opaque |= matches!(e, Expr::Call(Function::Named(name), _) if !is_pure(name));
        });
        index.unique && opaque
    };
    match () {
        () if !table.options.iter().all(harmless) => Some("its options are not modelled"),
        () if table.indexes.iter().any(opaque) => {
            Some("a unique index of a function that is not modelled")
        }
        () => None,
    }
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
        let setup = [T, "create unlogged table odd (id int primary key)"];
        let reason = why(&setup, "postgres", "select id from odd").unwrap();
        assert!(reason.contains("the table odd is not modelled"), "{reason}");
        assert_eq!(why(&setup, "postgres", "update t set v = 1"), None);
        let both = "select t.id from t join odd on odd.id = t.id";
        assert!(why(&setup, "postgres", both).is_some());
    }

    #[test]
    fn unique_index_of_a_function_needs_one_that_is_modelled() {
        let index = |of: &str| format!("create unique index on t ({of})");
        let read = "select v from t";
        assert_eq!(why(&[T, &index("lower(v::text)")], "postgres", read), None);
        assert!(why(&[T, &index("f(v)")], "postgres", read).is_some());
        let own = "create function lower(text) returns text language sql as 'select $1'";
        assert!(why(&[T, own, &index("lower(v::text)")], "postgres", read).is_some());
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
    fn trigger_forbids_only_statements_that_may_fire_it() {
        let other = "create table u (id int primary key)";
        let trigger = "create trigger g before update on t for each row execute function f()";
        assert!(why(&[T, other, trigger], "postgres", "update t set v = 1").is_some());
        assert_eq!(why(&[T, other, trigger], "postgres", "update u set id = 1"), None);
        let child = "create table u (id int primary key, f int references t (id))";
        assert!(why(&[T, child, trigger], "postgres", "insert into u values (1, 1)").is_some());
        let child = "create table t (id int primary key, v int references u (id))";
        assert!(why(&[other, child, trigger], "postgres", "delete from u").is_some());
        assert_eq!(why(&[other, child, trigger], "postgres", "insert into u values (1)"), None);
    }

    #[test]
    fn function_of_the_setup_is_not_evaluated_elsewhere() {
        let function = "create function upper(int) returns int language sql as 'select $1'";
        assert_eq!(why(&[T], "postgres", "select upper('a') from t"), None);
        assert!(why(&[T, function], "postgres", "select upper('a') from t").is_some());
        assert_eq!(why(&[T, function], "postgres", "select v from t"), None);
    }

    #[test]
    fn only_functions_of_their_arguments_are_evaluated() {
        assert_eq!(why(&[T], "postgres", "select upper('a') from t"), None);
        for sql in ["update t set v = pg_sleep(1)", "update t set v = random()"] {
            let why = why(&[T], "postgres", sql).unwrap_or_default();
            assert!(why.contains("the function"), "{sql}: {why}");
        }
    }
}
