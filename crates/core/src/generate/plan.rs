//! A generated case in its parts: what the reducer edits and the hunt runs.

use super::make::Rows;
use crate::Level;
use crate::case::{Case, Line, Parsed, Setup, Statement, Step};
use crate::sql::dialect::Dialect;
use crate::sql::feature::Feature;
use crate::sql::render::{Renderer, listed};
use crate::sql::{Access, Begin, BeginMode, Characteristics, Literal, Schema, Stmt, Table};
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub number: u64,
    pub seed: u64,
    /// The level of every transaction that has none of its own.
    pub level: Option<Level>,
    pub schema: Schema,
    /// For each table its rows, a cell for each column.
    pub rows: Vec<Rows>,
    pub transactions: Vec<TxPlan>,
    /// Which transaction goes next, with its next item: its start, each of its
    /// statements, its end.
    pub schedule: Vec<usize>,
    pub dialect: Dialect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxPlan {
    /// Its session, which no other transaction shares.
    pub session: String,
    pub level: Option<Level>,
    pub start: Start,
    pub statements: Vec<Stmt>,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Explicit(BeginForm),
    /// Every statement for itself.
    Autocommit,
    /// `set autocommit = 0`: the first statement begins a transaction.
    AutocommitOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginForm {
    Plain,
    ReadOnly,
    ConsistentSnapshot,
    Immediate,
    Pessimistic,
    Optimistic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Commit,
    Rollback,
    /// Autocommitted statements have no end of their own.
    None,
}

impl BeginForm {
    pub const ALL: [BeginForm; 6] = [
        BeginForm::Plain,
        BeginForm::ReadOnly,
        BeginForm::ConsistentSnapshot,
        BeginForm::Immediate,
        BeginForm::Pessimistic,
        BeginForm::Optimistic,
    ];

    pub fn begin(self) -> Begin {
        let access = Some(Access::ReadOnly);
        let characteristics = Characteristics { access, ..Characteristics::default() };
        match self {
            BeginForm::Plain => Begin::default(),
            BeginForm::ReadOnly => Begin { characteristics, ..Begin::default() },
            BeginForm::ConsistentSnapshot => {
                Begin { consistent_snapshot: true, ..Begin::default() }
            }
            BeginForm::Immediate => BeginMode::Immediate.into(),
            BeginForm::Pessimistic => BeginMode::Pessimistic.into(),
            BeginForm::Optimistic => BeginMode::Optimistic.into(),
        }
    }

    pub fn feature(self) -> Option<Feature> {
        match self {
            BeginForm::Plain => None,
            BeginForm::ReadOnly => Some(Feature::ReadOnly),
            BeginForm::ConsistentSnapshot => Some(Feature::ConsistentSnapshot),
            BeginForm::Immediate => Some(Feature::Immediate),
            BeginForm::Pessimistic => Some(Feature::Pessimistic),
            BeginForm::Optimistic => Some(Feature::Optimistic),
        }
    }
}

/// One turn of a transaction in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Start(Start),
    Statement(&'a Stmt),
    End(End),
}

impl TxPlan {
    /// What its session sends, in order.
    pub fn sequence(&self) -> Vec<Item<'_>> {
        let start = (self.start != Start::Autocommit).then_some(Item::Start(self.start));
        let end = (self.end != End::None).then_some(Item::End(self.end));
        let statements = self.statements.iter().map(Item::Statement);
        start.into_iter().chain(statements).chain(end).collect()
    }

    /// How many turns it takes in the schedule.
    pub fn items(&self) -> usize {
        self.sequence().len()
    }

    /// The turn in which a statement is sent, counted from 0.
    pub fn turn_of_statement(&self, statement: usize) -> usize {
        statement + usize::from(self.start != Start::Autocommit)
    }
}

impl Item<'_> {
    pub fn statement(&self) -> Cow<'_, Stmt> {
        match self {
            Item::Start(Start::Explicit(form)) => Cow::Owned(Stmt::Begin(form.begin())),
            Item::Start(_) => Cow::Owned(Stmt::SetAutocommit(false)),
            Item::Statement(statement) => Cow::Borrowed(*statement),
            Item::End(End::Rollback) => Cow::Owned(Stmt::Rollback),
            Item::End(_) => Cow::Owned(Stmt::Commit),
        }
    }

    fn features(&self, tx: &TxPlan, schema: &Schema) -> Vec<Feature> {
        let mut found = self.statement().features(schema);
        if tx.start == Start::Autocommit {
            found.push(Feature::Autocommit);
        }
        if tx.level.is_some() {
            found.push(Feature::OwnLevel);
        }
        found
    }
}

impl Plan {
    /// The steps in the order of the schedule: which transaction, and what.
    pub fn steps(&self) -> Vec<(usize, Item<'_>)> {
        let sequences: Vec<Vec<Item>> = self.transactions.iter().map(TxPlan::sequence).collect();
        let mut next = vec![0; sequences.len()];
        let turn = |tx: &usize| {
            let item = sequences[*tx].get(next[*tx]).copied();
            next[*tx] += 1;
            item.map(|item| (*tx, item))
        };
        self.schedule.iter().filter_map(turn).collect()
    }

    /// Tables and indexes; the same for all plans of a block.
    pub fn create_sql(&self) -> Vec<String> {
        let renderer = Renderer::new(&self.dialect);
        self.schema.tables.iter().flat_map(|t| renderer.create_table(t)).collect()
    }

    /// Parents first.
    fn insert_sql(&self) -> Vec<String> {
        let tables = self.schema.tables.iter().zip(&self.rows);
        tables.filter_map(|(table, rows)| self.insert_rows(table, rows)).collect()
    }

    fn insert_rows(&self, table: &Table, rows: &Rows) -> Option<String> {
        let written: Vec<usize> =
            (0..table.columns.len()).filter(|c| table.columns[*c].generated.is_none()).collect();
        if rows.is_empty() || written.is_empty() {
            return None;
        }
        let renderer = Renderer::new(&self.dialect);
        let cells = |row: &Vec<Literal>| listed(&written, |c| renderer.literal(&row[*c]));
        Some(format!(
            "insert into {} ({}) values {}",
            table.name,
            listed(&written, |c| table.columns[*c].name.clone()),
            listed(rows, |row| format!("({})", cells(row)))
        ))
    }

    /// From any rows to the first rows: children go first and come last.
    pub fn reset_sql(&self) -> Vec<String> {
        let tables = self.schema.tables.iter().rev();
        let mut sql: Vec<String> = tables.map(|t| format!("delete from {}", t.name)).collect();
        sql.extend(self.insert_sql());
        sql
    }

    /// All columns of each table, by name.
    pub fn final_sql(&self) -> Vec<String> {
        let columns = |table: &Table| listed(&table.columns, |c| c.name.clone());
        let query = |table: &Table| format!("select {} from {}", columns(table), table.name);
        self.schema.tables.iter().map(query).collect()
    }

    /// `hunt/SEED/NUMBER`.
    pub fn id(&self) -> String {
        format!("hunt/{}/{}", self.seed, self.number)
    }

    pub fn to_case(&self) -> Case {
        let statement = |sql| Statement { sql, line: Line::default() };
        let setup: Vec<Statement> =
            self.create_sql().into_iter().chain(self.insert_sql()).map(statement).collect();
        let step = |(tx, item): (usize, Item)| {
            let statement = item.statement();
            let sql = statement.render(&self.dialect);
            let plain = Step::plain(&self.transactions[tx].session, &sql, Line::default());
            let parsed = Parsed::known(statement.into_owned(), self.dialect.family);
            Step { parsed, ..plain }
        };
        let own_level = |tx: &TxPlan| tx.level.map(|level| (tx.session.clone(), level));
        Case {
            id: self.id(),
            level: self.level,
            session_levels: self.transactions.iter().filter_map(own_level).collect(),
            setups: vec![Setup { on: Vec::new(), statements: setup, notes: Vec::new() }],
            steps: self.steps().into_iter().map(step).collect(),
            finals: self.final_sql().into_iter().map(statement).collect(),
            ..Case::default()
        }
    }

    pub fn statements(&self) -> impl Iterator<Item = &Stmt> {
        self.transactions.iter().flat_map(|tx| &tx.statements)
    }

    pub fn changes_schema(&self) -> bool {
        self.statements().any(Stmt::is_ddl)
    }

    pub fn has_savepoints(&self) -> bool {
        self.statements().any(|s| matches!(s, Stmt::Savepoint(_)))
    }

    /// For each step of the case what it exercises.
    pub fn features(&self) -> Vec<Vec<Feature>> {
        let of_step =
            |(tx, item): (usize, Item)| item.features(&self.transactions[tx], &self.schema);
        self.steps().into_iter().map(of_step).collect()
    }
}
