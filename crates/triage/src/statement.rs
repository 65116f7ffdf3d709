//! What a statement is to triage: its kind, the tables it reads and writes,
//! and its shape without names and values.

use isolde_model::case::Step;
use isolde_sql as sql;
use isolde_sql::{
    Conflict, Control, Expr, Insert, InsertSource, Kind, Literal, Schema, Stmt, Update, Write,
};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementProfile {
    /// `update`, `update of a key`, `upsert`, `commit`.
    pub kind: &'static str,
    pub reads: BTreeSet<String>,
    pub writes: Option<String>,
    /// How many rows an INSERT gives in so many words.
    pub rows_given: Option<usize>,
    /// An UPDATE that sets a value to NULL.
    pub sets_null: bool,
    pub shape: String,
}

impl StatementProfile {
    pub fn of(step: &Step, schema: &Schema) -> StatementProfile {
        match step.statement() {
            Some(statement) => of_statement(statement, &step.sql, schema),
            None => of_text(&step.sql, schema),
        }
    }

    /// Whether it reads or writes rows.
    pub fn is_data(&self) -> bool {
        self.writes.is_some() || !self.reads.is_empty()
    }

    /// The class of statements it is one of: what a rule is about.
    pub fn class(&self) -> &'static str {
        match self.kind {
            "commit" | "rollback" | "final rows" => self.kind,
            "select" => "read",
            "locking read" => "locking read",
            _ if self.writes.is_some() => "write",
            _ => self.kind,
        }
    }
}

fn of_statement(statement: &Stmt, text: &str, schema: &Schema) -> StatementProfile {
    let statement = statement.unprepared();
    let names: BTreeSet<String> =
        statement.tables().into_iter().map(|name| name.to_ascii_lowercase()).collect();
    let writes = statement.written_table().map(str::to_ascii_lowercase);
    let written_only = matches!(statement, Stmt::Write(Write::Insert(i)) if !is_upsert(i));
    let mut reads = names;
    if let Some(table) = writes.as_ref().filter(|_| written_only) {
        let selects = matches!(statement, Stmt::Write(Write::Insert(Insert { source: InsertSource::Select(select), .. }))
            if select.sources().iter().any(|s| s.eq_ignore_ascii_case(table)));
        if !selects {
            reads.remove(table);
        }
    }
    let rows_given = match statement {
        Stmt::Write(Write::Insert(Insert { source: InsertSource::Values(rows), .. })) => {
            Some(rows.len())
        }
        _ => None,
    };
    let is_null = |(_, of): &(String, Expr)| *of == Expr::Literal(Literal::Null);
    let sets_null =
        matches!(statement, Stmt::Write(Write::Update(update)) if update.sets.iter().any(is_null));
    let kind = kind_of(statement, schema);
    StatementProfile { kind, reads, writes, rows_given, sets_null, shape: shape(text) }
}

fn is_upsert(insert: &Insert) -> bool {
    !matches!(insert.conflict, Conflict::Fail)
}

fn kind_of(statement: &Stmt, schema: &Schema) -> &'static str {
    match statement {
        Stmt::Select(select) if select.locking.is_some() => "locking read",
        Stmt::Select(_) => "select",
        Stmt::Write(Write::Insert(insert)) => match (&insert.conflict, &insert.source) {
            (Conflict::Ignore | Conflict::DoNothing { .. }, _) => "insert or nothing",
            (Conflict::Update { .. }, _) => "insert or update",
            (Conflict::Replace, _) => "replace",
            (Conflict::Fail, InsertSource::Select(_)) => "insert-select",
            (Conflict::Fail, InsertSource::Values(_) | InsertSource::Defaults) => "insert",
        },
        Stmt::Write(Write::Update(update)) if moves_a_key(update, schema) => "update of a key",
        Stmt::Write(Write::Update(_)) => "update",
        Stmt::Write(Write::Delete(_)) => "delete",
        Stmt::Write(Write::Merge(_)) => "merge",
        Stmt::Control(
            Control::Begin(_) | Control::SetAutocommit(_) | Control::SetTransaction(_),
        ) => "begin",
        Stmt::Control(Control::Commit) => "commit",
        Stmt::Control(Control::Rollback) => "rollback",
        Stmt::Control(Control::RollbackTo(_)) => "rollback to",
        Stmt::Control(Control::Savepoint(_)) => "savepoint",
        Stmt::Control(Control::Release(_)) => "release",
        Stmt::Ddl(_) => "ddl",
        Stmt::Prepare { .. } | Stmt::Execute(_) => "execute",
    }
}

/// Whether it sets a column that a key or an index has.
fn moves_a_key(update: &Update, schema: &Schema) -> bool {
    let Some(table) = schema.tables.iter().find(|t| t.name.eq_ignore_ascii_case(&update.table))
    else {
        return false;
    };
    let mut keys: BTreeSet<&str> = table.primary_key.iter().map(String::as_str).collect();
    keys.extend(table.unique.iter().flatten().map(String::as_str));
    for part in table.indexes.iter().flat_map(|i| &i.parts) {
        part.of.visit(&mut |e| {
            if let Expr::Column { name, .. } = e {
                keys.insert(name);
            }
        });
    }
    update.sets.iter().any(|(column, _)| keys.iter().any(|k| k.eq_ignore_ascii_case(column)))
}

/// The same by the words, for a statement that cannot be read.
fn of_text(text: &str, schema: &Schema) -> StatementProfile {
    let words = sql::outer_words(text);
    let has = |word: &str| words.iter().any(|(_, w)| w.eq_ignore_ascii_case(word));
    let first = words.first().map_or("", |(_, w)| w);
    let first = first.to_ascii_lowercase();
    let kind = match (sql::kind(text), first.as_str()) {
        (Kind::Begin, _) => "begin",
        (Kind::Commit, _) => "commit",
        (Kind::Rollback, _) => "rollback",
        (Kind::RollbackTo, _) => "rollback to",
        (Kind::Savepoint, _) => "savepoint",
        (Kind::Ddl, _) => "ddl",
        (Kind::Select, _) if has("for") || has("lock") => "locking read",
        (Kind::Select, _) => "select",
        (Kind::Write, "insert") if has("nothing") || has("ignore") => "insert or nothing",
        (Kind::Write, "insert") if has("conflict") || has("duplicate") => "insert or update",
        (Kind::Write, "insert") if has("select") => "insert-select",
        (Kind::Write, "insert") => "insert",
        (Kind::Write, "replace" | "upsert") => "replace",
        (Kind::Write, "update") => "update",
        (Kind::Write, "delete") => "delete",
        _ => "other",
    };
    let named = schema.tables.iter().filter(|t| has(&t.name));
    let named: Vec<String> = named.map(|t| t.name.to_ascii_lowercase()).collect();
    let writes = (sql::kind(text) == Kind::Write).then(|| named.first().cloned()).flatten();
    let reads = match kind {
        "insert" => BTreeSet::new(),
        _ => named.into_iter().collect(),
    };
    StatementProfile { kind, reads, writes, rows_given: None, sets_null: false, shape: shape(text) }
}

/// The words of a statement with every name and value left out, so that what
/// was generated twice for the same purpose looks the same.
fn shape(text: &str) -> String {
    let mut shape: Vec<String> = Vec::new();
    for word in sql::pieces(text) {
        let lower = word.to_ascii_lowercase();
        if KEYWORDS.contains(&lower.as_str()) {
            shape.push(lower);
        } else if !is_sign(word) && shape.last().is_none_or(|last| last != "_") {
            shape.push("_".into());
        }
    }
    shape.join(" ")
}

/// Words that say what a statement does.
const KEYWORDS: &[&str] = &[
    "select",
    "insert",
    "update",
    "delete",
    "replace",
    "from",
    "where",
    "values",
    "set",
    "join",
    "left",
    "on",
    "conflict",
    "duplicate",
    "key",
    "do",
    "nothing",
    "ignore",
    "order",
    "limit",
    "group",
    "having",
    "union",
    "exists",
    "in",
    "between",
    "for",
    "share",
    "skip",
    "locked",
    "nowait",
    "with",
    "distinct",
    "null",
    "begin",
    "commit",
    "rollback",
    "savepoint",
    "to",
    "release",
    "using",
    "returning",
    "case",
    "not",
    "or",
    "and",
    "is",
    "read",
    "only",
];

fn is_sign(piece: &str) -> bool {
    piece.len() == 1 && !piece.starts_with(char::is_alphanumeric)
}
