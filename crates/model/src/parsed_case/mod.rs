//! What a prediction knows of a case before it ran: its tables, and what each
//! step does.
//!
//! A generated plan is known as a whole. A case from a file is read, and what
//! is not read, or read and beyond the rules, is opaque, with the reason: a
//! prediction ends there.

pub mod numbering;
#[cfg(test)]
mod numbering_tests;
mod opaque;
pub mod pure_functions;
pub mod schema_changes;
mod session_functions;
pub mod utility;

use crate::case::Step;
use crate::history::{History, TargetInfo};
use crate::{Case, Level};
use isolde_sql::BeginForm;
use isolde_sql::dialect::Family;
use isolde_sql::fixture::Rows;
use isolde_sql::{
    Access, Begin, BeginMode, Control, Dialect, Expr, Kind, Schema, Select, SelectItem, SetScope,
    Stmt, Write,
};
use numbering::{Numbering, needs_numbers};
use opaque::Unmodelled;
use schema_changes::SchemaChange;
use session_functions::{
    asks_session, reads_catalogs, uses_advisory_locks, without_advisory_locks,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use utility::{TableLocks, Utility};

/// What a step does, as far as the prediction understands it.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// It makes tables or first rows, before the first statement of another session.
    Prepares,
    Begin(BeginForm),
    AutocommitOff,
    Commit,
    Rollback,
    Statement(Box<Stmt>),
    /// A statement that needs numbers from the engine, which a run decides.
    Unnumbered(Box<Stmt>),
    /// A statement that neither reads nor changes rows.
    Utility(Utility),
    Opaque(String),
}

/// A case as far as it is understood: its tables and what each step does.
#[derive(Clone, Debug)]
pub struct ParsedCase {
    pub schema: Schema,
    pub dialect: Dialect,
    pub operations: Vec<Operation>,
    /// The level of the transaction that each step would begin.
    pub levels: Vec<Level>,
    /// The first rows of each table, of a plan.
    pub first_rows: Option<Vec<Rows>>,
    /// The counters of numbered columns after the setup.
    pub numbering: Numbering,
    /// A statement may wait for a lock that is not modelled: an advisory lock, or one that
    /// a trigger takes.
    pub unknown_waits: bool,
    /// The tables whose triggers may fail.
    pub constrained: BTreeSet<String>,
    /// The BEGIN steps whose transaction waits for a snapshot of a serial order, if it is
    /// SERIALIZABLE.
    pub deferrable: BTreeSet<usize>,
    /// The steps that change the schema, with what they affect.
    pub changes: Vec<(usize, SchemaChange)>,
    /// The tables of which nothing is known at the end of the run.
    pub unknown_tables: BTreeSet<String>,
}

impl ParsedCase {
    /// A case from a file on an engine; `default` is the level of sessions for
    /// which the case names none.
    pub fn of_case(case: &Case, on: &TargetInfo, default: Level) -> ParsedCase {
        let dialect = on.dialect();
        let case = case.clone().read_as(dialect.family);
        let setup = ParsedCase::preparation(&case, on);
        let (schema, unmodelled) = Unmodelled::in_setup(&setup, &dialect);
        let preparing = preparing_steps(&case);
        let steps = case.steps.iter().enumerate().skip(preparing);
        let changes: Vec<(usize, SchemaChange)> = steps
            .filter_map(|(n, step)| {
                Some((n, SchemaChange::read(step, dialect.family, &schema, &unmodelled)?))
            })
            .collect();
        let operation = |(n, step): (usize, &Step)| match n < preparing {
            true => Operation::Prepares,
            false if changes.iter().any(|(at, _)| *at == n) => {
                Operation::Utility(Utility { takes_snapshot: true, locks: TableLocks::Any })
            }
            false => operation(step, &schema, &unmodelled, (on.understood_as().0, dialect.family))
                .unwrap_or_else(Operation::Opaque),
        };
        let numbering = Numbering::after_setup(&setup, &schema, dialect.family);
        let deferrable: BTreeSet<usize> = case
            .steps
            .iter()
            .enumerate()
            .filter(|(_, s)| is_deferrable(s))
            .map(|(n, _)| n)
            .collect();
        ParsedCase {
            operations: case.steps.iter().enumerate().map(operation).collect(),
            levels: levels(&case, dialect.family, default),
            dialect,
            schema,
            first_rows: None,
            numbering,
            unknown_waits: case
                .steps
                .iter()
                .any(|step| step.statement().is_some_and(uses_advisory_locks))
                || !unmodelled.triggered.is_empty()
                || !deferrable.is_empty(),
            deferrable,
            constrained: unmodelled.triggered.iter().cloned().collect(),
            changes,
            unknown_tables: BTreeSet::new(),
        }
    }

    /// Whether writes of a table may fail when a step is sent: it has a trigger, or a
    /// constraint that is not modelled.
    pub fn may_fail(&self, table: &str) -> bool {
        self.constrained.contains(table)
            || self.changes.iter().any(|(_, change)| change.constrained.contains(table))
    }

    /// The case as it ran: with the numbers that the engine gave to its statements, and
    /// without the statements that need a table which another one has changed.
    pub fn in_run(&self, history: &History) -> Cow<'_, ParsedCase> {
        let unnumbered = |operation: &Operation| matches!(operation, Operation::Unnumbered(_));
        if !self.operations.iter().any(unnumbered) && self.changes.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut operations = self.numbering.resolve(&self.operations, &self.schema, history);
        let unknown_tables =
            schema_changes::isolate(&mut operations, &self.changes, &self.schema, history);
        Cow::Owned(ParsedCase { operations, unknown_tables, ..self.clone() })
    }

    /// What makes the tables and first rows of a case: its setup, and those of
    /// its first steps that do the same.
    pub fn preparation<'c>(case: &'c Case, on: &TargetInfo) -> Vec<&'c str> {
        let setup = case.setup_for(&on.engine, &on.version);
        let steps = case.steps.iter().take(preparing_steps(case));
        setup.iter().map(|s| s.sql.as_str()).chain(steps.map(|s| s.sql.as_str())).collect()
    }
}

/// How many of the first steps do nothing but make tables, and rows in between:
/// a case typed in the REPL has no other setup.
fn preparing_steps(case: &Case) -> usize {
    let prepares = |step: &&Step| match step.kind() {
        Kind::Ddl => true,
        Kind::Write => matches!(step.statement(), Some(Stmt::Write(Write::Insert(_)))),
        _ => false,
    };
    let beginning: Vec<&Step> = case.steps.iter().take_while(prepares).collect();
    beginning.iter().rposition(|step| step.kind() == Kind::Ddl).map_or(0, |last| last + 1)
}

fn operation(
    step: &Step,
    schema: &Schema,
    unmodelled: &Unmodelled,
    (engine, family): (&str, Family),
) -> Result<Operation, String> {
    let Some(statement) = step.statement() else {
        if let Some(utility) = Utility::read(&step.sql, family) {
            return Ok(Operation::Utility(utility));
        }
        return Err(match step.kind() {
            Kind::Ddl => "changes of the schema are not modelled".into(),
            _ => "it is not read".into(),
        });
    };
    Ok(match statement {
        Stmt::Control(Control::Begin(begin)) => {
            let mut begin = *begin;
            if family == Family::Postgres {
                // It decides only when the first snapshot is taken (`ParsedCase::deferrable`).
                begin.characteristics.deferrable = None;
            }
            Operation::Begin(begin_form(&begin, engine)?)
        }
        Stmt::Control(Control::SetAutocommit(false)) => Operation::AutocommitOff,
        Stmt::Control(Control::Commit) => Operation::Commit,
        Stmt::Control(Control::Rollback) => Operation::Rollback,
        Stmt::Control(Control::SetTransaction(set))
            if set.characteristics.access.is_some() || set.characteristics.deferrable.is_some() =>
        {
            return Err("a mode that is set apart from BEGIN is not modelled".into());
        }
        other => {
            let other = schema.without_views(other);
            if reads_catalogs(&other, family, schema, |name| unmodelled.is_pure(name)) {
                return Ok(Operation::Utility(Utility {
                    takes_snapshot: true,
                    locks: TableLocks::None,
                }));
            }
            if asks_session(&other, family, |name| unmodelled.is_pure(name)) {
                let locks = match uses_advisory_locks(&other) {
                    true => TableLocks::Advisory,
                    false => TableLocks::None,
                };
                return Ok(Operation::Utility(Utility { takes_snapshot: true, locks }));
            }
            let other = without_advisory_locks(&other);
            if let Stmt::Select(select) = &other
                && select.locking.is_some()
                && select.reads_a_view()
            {
                return Err("which rows a locking read of a view locks is not modelled".into());
            }
            unmodelled.forbid(&other, schema, engine)?;
            let statement = Box::new(without_stars(&other, schema));
            match needs_numbers(&statement, schema, engine)? {
                true => Operation::Unnumbered(statement),
                false => Operation::Statement(statement),
            }
        }
    })
}

/// Whether a step begins a transaction that is READ ONLY DEFERRABLE.
fn is_deferrable(step: &Step) -> bool {
    match step.statement() {
        Some(Stmt::Control(Control::Begin(begin))) => {
            let characteristics = &begin.characteristics;
            characteristics.deferrable == Some(true)
                && characteristics.access == Some(Access::ReadOnly)
        }
        _ => false,
    }
}

/// The way to begin, among those that rules know.
pub fn begin_form(begin: &Begin, engine: &str) -> Result<BeginForm, String> {
    let characteristics = &begin.characteristics;
    if characteristics.deferrable == Some(true) {
        return Err("DEFERRABLE is not modelled".into());
    }
    let read_only = characteristics.access == Some(Access::ReadOnly);
    match (begin.mode, begin.consistent_snapshot, read_only) {
        (None | Some(BeginMode::Deferred), false, false) => Ok(BeginForm::Plain),
        (None, false, true) => Ok(BeginForm::ReadOnly),
        (None, true, false) => Ok(BeginForm::ConsistentSnapshot),
        (Some(BeginMode::Immediate), false, false) => Ok(BeginForm::Immediate),
        // With a write-ahead log there is no difference between the two.
        (Some(BeginMode::Exclusive), false, false) if engine.ends_with("+wal") => {
            Ok(BeginForm::Immediate)
        }
        (Some(BeginMode::Pessimistic), false, false) => Ok(BeginForm::Pessimistic),
        (Some(BeginMode::Optimistic), false, false) => Ok(BeginForm::Optimistic),
        _ => Err("this way to begin is not modelled".into()),
    }
}

/// A locking read with its columns by name: where it is evaluated, the tables
/// have a column more.
fn without_stars(statement: &Stmt, schema: &Schema) -> Stmt {
    let Stmt::Select(select) = statement else { return statement.clone() };
    if select.locking.is_none() {
        return statement.clone();
    }
    let columns = |name: &str| -> Vec<SelectItem> {
        let source = select.from_and_joined().find(|s| s.visible_name() == Some(name));
        let table = source.and_then(|s| s.table()).and_then(|t| schema.table(t));
        let columns = table.map_or(&[][..], |t| t.columns.as_slice());
        let column = |column: &str| {
            let qualifier = Some(name.to_string());
            SelectItem::from(Expr::Column { qualifier, name: column.into() })
        };
        columns.iter().map(|c| column(&c.name)).collect()
    };
    let item = |item: &SelectItem| match item {
        SelectItem::All => {
            let names = select.from_and_joined().filter_map(|s| s.visible_name());
            names.flat_map(columns).collect()
        }
        SelectItem::AllOf(name) => columns(name),
        SelectItem::Expression { .. } => vec![item.clone()],
    };
    let items = select.items.iter().flat_map(item).collect();
    Stmt::Select(Select { items, ..select.clone() })
}

/// The isolation levels that a session has set so far.
struct SessionLevels {
    session: Level,
    /// MySQL's SET TRANSACTION is for the next one.
    next: Option<Level>,
    /// PostgreSQL's is for the one that has just begun.
    begun: Option<usize>,
    open: bool,
}

/// For each step the level of the transaction that it would begin.
fn levels(case: &Case, family: Family, default: Level) -> Vec<Level> {
    let mut sessions: BTreeMap<&str, SessionLevels> = BTreeMap::new();
    let mut levels: Vec<Level> = Vec::new();
    for (n, step) in case.steps.iter().enumerate() {
        let state = sessions.entry(&step.session).or_insert_with(|| SessionLevels {
            session: case.session_level(&step.session, None).unwrap_or(default),
            next: None,
            begun: None,
            open: false,
        });
        let statement = step.statement();
        let own = match statement {
            Some(Stmt::Control(Control::Begin(begin))) => begin.characteristics.level,
            _ => None,
        };
        levels.push(step.level.or(own).or(state.next).unwrap_or(state.session));
        match statement {
            Some(Stmt::Control(Control::Begin(_))) => {
                (state.next, state.begun, state.open) = (None, Some(n), true);
            }
            Some(Stmt::Control(Control::Commit | Control::Rollback)) => {
                (state.next, state.begun, state.open) = (None, None, false);
            }
            Some(Stmt::Control(Control::SetTransaction(set))) => {
                let Some(level) = set.characteristics.level else { continue };
                match (set.scope, family) {
                    (SetScope::Session, _) => state.session = level,
                    (SetScope::Transaction, Family::Mysql) if !state.open => {
                        state.next = Some(level)
                    }
                    (SetScope::Transaction, Family::Postgres) => {
                        if let Some(begun) = state.begun {
                            levels[begun] = level;
                        }
                    }
                    (SetScope::Transaction, _) => {}
                }
            }
            Some(Stmt::Control(Control::SetAutocommit(_))) => {}
            _ => (state.next, state.begun) = (None, None),
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case;

    fn reading(engine: &str, text: &str) -> ParsedCase {
        let on = TargetInfo {
            target: engine.into(),
            engine: engine.into(),
            version: "18.0".into(),
            settings: BTreeMap::new(),
            follows: None,
        };
        ParsedCase::of_case(&case::parse(text).unwrap(), &on, Level::ReadCommitted)
    }

    const TABLE: &str = "case: t\n\nsetup:\n  create table t (id int primary key, v int);\n\n";

    #[test]
    fn steps_are_read_in_the_words_of_the_engine() {
        let text = format!(
            "{TABLE}s1> start transaction with consistent snapshot;\ns2> begin immediate;\n\
             s1> start transaction read only;\ns1> set autocommit = 0;\ns1> commit;\n\
             s1> rollback;\ns1> savepoint a;\ns1> select * from t;\n"
        );
        let read = reading("mysql", &text);
        assert_eq!(
            read.operations[..6],
            [
                Operation::Begin(BeginForm::ConsistentSnapshot),
                Operation::Begin(BeginForm::Immediate),
                Operation::Begin(BeginForm::ReadOnly),
                Operation::AutocommitOff,
                Operation::Commit,
                Operation::Rollback,
            ]
        );
        assert!(read.operations[6..].iter().all(|o| matches!(o, Operation::Statement(_))));
        assert_eq!(read.schema.tables.len(), 1);
    }

    #[test]
    fn unsupported_statement_is_opaque_with_a_reason() {
        let why =
            |engine: &str, step: &str| match &reading(engine, &format!("{TABLE}s1> {step};\n"))
                .operations
                .last()
                .unwrap()
            {
                Operation::Opaque(why) => Some(why.clone()),
                _ => None,
            };
        assert_eq!(why("postgres", "select v from t"), None);
        assert_eq!(why("sqlite+wal", "begin exclusive"), None);
        for (engine, step, reason) in [
            ("sqlite", "begin exclusive", "this way to begin"),
            ("postgres", "set transaction read only", "apart from BEGIN"),
            ("postgres", "fetch all from c", "not read"),
            ("postgres", "select v from t;\ns1> drop table t cascade", "changes of the schema"),
            ("postgres", "select pg_advisory_unlock(1) from t", "_unlock is not modelled"),
            ("postgres", "select v from u", "u is not known"),
        ] {
            let why = why(engine, step).unwrap_or_default();
            assert!(why.contains(reason), "{step}: {why}");
        }
    }

    #[test]
    fn levels_follow_the_case_its_sessions_its_steps_and_set_transaction() {
        use Level::{ReadCommitted, RepeatableRead, Serializable};
        let levels = |engine: &str, steps: &str| reading(engine, &format!("{TABLE}{steps}")).levels;
        let set = "set transaction isolation level serializable";
        // PostgreSQL: the one that has just begun, and no longer once it has read.
        let begun = format!("s1> begin;\ns1> {set};\ns1> commit;\ns1> begin;\n");
        let read = levels("postgres", &begun);
        assert_eq!((read[0], read[3]), (Serializable, ReadCommitted));
        let late = format!("s1> begin;\ns1> select v from t;\ns1> {set};\n");
        assert_eq!(levels("postgres", &late)[0], ReadCommitted);
        // MySQL: the next one, of this session.
        let next = format!("s1> {set};\ns2> begin;\ns1> begin;\ns1> commit;\ns1> begin;\n");
        let read = levels("mysql", &next);
        assert_eq!((read[1], read[2], read[4]), (ReadCommitted, Serializable, ReadCommitted));
        let own = "s1(repeatable read)> begin;\ns2> begin isolation level serializable;\n";
        assert_eq!(levels("postgres", own), [RepeatableRead, Serializable]);
        let session = "s1> set session characteristics as transaction isolation level \
                       serializable;\ns1> begin;\ns2> begin;\n";
        assert_eq!(levels("postgres", session), [ReadCommitted, Serializable, ReadCommitted]);
    }

    #[test]
    fn the_first_steps_may_make_the_tables() {
        let steps = "case: t\ns1> create table t (id int primary key);\n\
                     s1> insert into t values (1);\ns2> create table u (id int);\n\
                     s1> insert into t values (2);\ns1> create table late (id int);\n";
        let read = reading("postgres", steps);
        let prepares = |o: &Operation| *o == Operation::Prepares;
        assert!(read.operations.iter().all(prepares), "{:?}", read.operations);
        assert_eq!(read.schema.tables.len(), 3);
        // What others may already be in the way of is a change of the schema.
        let late = format!("{steps}s1> begin;\ns1> create table x (id int);\n");
        let read = reading("postgres", &late.replacen("s1> create table late (id int);\n", "", 1));
        let names: Vec<&str> = read.schema.tables.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["t", "u"]);
        assert_eq!(read.operations.iter().filter(|o| prepares(o)).count(), 3);
        assert!(matches!(read.operations[5], Operation::Utility(_)));
    }

    #[test]
    fn advisory_lock_in_a_condition_is_true_and_one_by_itself_reads_no_row() {
        let where_locked = "select v from t where pg_advisory_lock(7) is not null";
        let text = format!("{TABLE}s1> select pg_advisory_lock(7);\ns2> {where_locked};\n");
        let read = reading("postgres", &text);
        assert!(read.unknown_waits);
        assert!(matches!(read.operations[0], Operation::Utility(_)));
        let Operation::Statement(statement) = &read.operations[1] else { panic!("it is read") };
        assert_eq!(statement.render(&read.dialect), "select v from t where '' is not null");
        // What it returns is not known where it is no constant that is locked.
        let text = format!("{TABLE}s1> select v from t where pg_advisory_lock(v) is not null;\n");
        assert!(matches!(reading("postgres", &text).operations[0], Operation::Opaque(_)));
    }

    #[test]
    fn a_locking_read_names_its_columns() {
        let read = reading("postgres", &format!("{TABLE}s1> select * from t for update;\n"));
        let Operation::Statement(statement) = &read.operations[0] else { panic!("it is read") };
        let text = statement.render(&read.dialect);
        assert_eq!(text, "select t.\"id\", t.v from t for update");
    }
}
