//! The features of a finding: texts of the form `name: value` that two
//! findings share or do not. What went wrong comes first; then what ran.

use super::deviation::{self, Deviation};
use super::pattern;
use super::run::{Run, Subject, end_word};
use isolde_model::Level;
use isolde_sql::Expr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// What went wrong.
    pub deviation: Deviation,
    /// The labelled edges between statements, whatever sessions are called.
    pub pattern: String,
    /// Its statements without names and values, session by session.
    pub shapes: Vec<String>,
    /// All features, by name and value.
    pub all: BTreeSet<String>,
}

impl Features {
    pub fn of(subject: Subject<'_>) -> Features {
        let run = Run::of(subject);
        let deviation = deviation::of(&run);
        let mut all = BTreeSet::new();
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                all.insert(format!("{name}: {value}"));
            }
        };
        what_went_wrong(&deviation, &mut add);
        where_it_ran(&subject, &mut add);
        what_ran(&run, &mut add);
        how_it_ran(&run, &mut add);
        schema(&run, &mut add);
        for edge in pattern::edges(&run) {
            add("edge", &edge);
        }
        for difference in subject.differences {
            add("difference", difference.kind());
            if let isolde_model::difference::Difference::Anomaly { class, .. } = difference {
                add("anomaly", class);
            }
        }
        for oracle in subject.oracles {
            add("oracle", oracle);
        }
        let pattern = pattern::canonical(&run);
        add("pattern", &pattern);
        Features { deviation, pattern, shapes: shapes(&run), all }
    }

    /// The key of the defect: findings with the same key are the same defect.
    pub fn key(&self) -> String {
        self.deviation.key()
    }
}

type Add<'a> = &'a mut dyn FnMut(&str, &str);

fn what_went_wrong(deviation: &Deviation, add: Add<'_>) {
    add("wrong", &deviation.how);
    add("rule", deviation.rule.as_deref().unwrap_or("none"));
    add("at", &deviation.at);
    for (name, values) in [
        ("between", &deviation.between),
        ("rows", &deviation.rows),
        ("others", &deviation.holders),
        ("after", &deviation.after),
    ] {
        add(name, &values.join(" and "));
    }
    add("it waited", if deviation.waited { "yes" } else { "no" });
    add("wrong at", &format!("{} at {}", deviation.how, deviation.at));
    add("key", &deviation.key());
}

fn where_it_ran(subject: &Subject<'_>, add: Add<'_>) {
    let (engine, mode) = subject.engine.split_once('+').unwrap_or((subject.engine, "plain"));
    add("engine", engine);
    add("mode", mode);
    let line: Vec<&str> = subject.version.split(['.', '-']).take(2).collect();
    add("version", &format!("{engine} {}", line.join(".")));
    add("level", subject.level.map_or("default", Level::name));
}

fn what_ran(run: &Run<'_>, add: Add<'_>) {
    for statement in &run.statements {
        add("statement", statement.kind);
        if statement.rows_given.is_some_and(|n| n > 1) {
            add("statement", "insert of several rows");
        }
    }
    for step in &run.case.steps {
        let Some(statement) = step.statement() else { continue };
        statement.visit(&mut |expression| {
            if matches!(expression, Expr::InSelect { .. } | Expr::Exists { .. } | Expr::Scalar(_)) {
                add("statement", "a subquery");
            }
        });
        if let isolde_sql::Stmt::Select(select) = statement
            && let Some(locking) = &select.locking
        {
            add("locking read", &format!("{:?} {:?}", locking.strength, locking.patience));
        }
    }
    for transaction in &run.transactions {
        add("transaction", &shape_of(run, transaction));
    }
    add("sessions", &run.case.sessions().len().to_string());
}

/// What a transaction does, kind by kind, and how it ends.
fn shape_of(run: &Run<'_>, transaction: &super::run::Transaction) -> String {
    let kinds = transaction.steps.iter().map(|s| run.statements[*s].kind);
    let mut kinds: Vec<&str> =
        kinds.filter(|k| !matches!(*k, "begin" | "commit" | "rollback")).collect();
    kinds.dedup();
    let end = transaction.end.map_or("", end_word);
    let alone = if transaction.autocommit { "alone " } else { "" };
    format!("{alone}{} {end}", kinds.join(", ")).trim().to_string()
}

fn how_it_ran(run: &Run<'_>, add: Add<'_>) {
    let waits = (0..run.statements.len()).filter(|s| run.waited(*s));
    for step in waits {
        add("waited", run.statements[step].kind);
    }
    add("somebody waited", if run.has_lock_wait() { "yes" } else { "no" });
    for step in 0..run.statements.len() {
        if let Some(class) = run.failed(step) {
            add("failed", &format!("{} with {class:?}", run.statements[step].kind));
        }
    }
    let explicit = run.transactions.iter().filter(|t| !t.autocommit);
    for transaction in explicit {
        if let Some(end) = transaction.end {
            add("a transaction", end_word(end));
        }
    }
    let has = |kind: &str| run.statements.iter().any(|s| s.kind == kind);
    add("savepoints", if has("savepoint") { "yes" } else { "no" });
}

fn schema(run: &Run<'_>, add: Add<'_>) {
    for table in &run.schema.tables {
        add("key", if table.primary_key.is_empty() { "no primary key" } else { "primary key" });
        if !table.unique.is_empty() || table.indexes.iter().any(|i| i.unique) {
            add("key", "unique");
        }
        if table.indexes.iter().any(|i| !i.unique) {
            add("index", "yes");
        }
        if !table.foreign_keys.is_empty() {
            add("constraint", "foreign key");
        }
        if !table.checks.is_empty() {
            add("constraint", "check");
        }
        if table.columns.iter().any(|c| c.not_null) {
            add("constraint", "not null");
        }
        if table.partitioned_by.is_some() {
            add("partitions", "yes");
        }
    }
    add("tables", &run.schema.tables.len().to_string());
}

/// The statements of each session in their order, without names and values;
/// the sessions in an order that their names do not change.
fn shapes(run: &Run<'_>) -> Vec<String> {
    let mut all: Vec<String> = run
        .case
        .sessions()
        .iter()
        .map(|session| {
            let mine =
                run.case.steps.iter().zip(&run.statements).filter(|(s, _)| s.session == *session);
            mine.map(|(_, statement)| statement.shape.as_str()).collect::<Vec<_>>().join("; ")
        })
        .collect();
    all.sort();
    all
}
