//! A generated case in its parts: what the reducer edits and the hunt runs.

use super::make::Rows;
use crate::Level;
use crate::case::{Case, Line, Origin, Parsed, Setup, Statement, Step};
use crate::sql::dialect::Dialect;
use crate::sql::feature::Feature;
use crate::sql::render::{Renderer, listed};
use crate::sql::{Access, Begin, BeginMode, Characteristics, Literal, Schema, Stmt, Table};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An operation of a plan: it keeps its number when others are cut away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub number: u64,
    pub seed: u64,
    /// The level of every transaction that has none of its own.
    pub level: Option<Level>,
    pub schema: Schema,
    /// For each table its rows, a cell for each column.
    pub rows: Vec<Rows>,
    /// Those of one session stand in the order in which it runs them.
    pub transactions: Vec<TxPlan>,
    /// All operations in the order in which they are sent.
    pub schedule: Vec<OpId>,
    pub dialect: Dialect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxPlan {
    /// Its session, which may have run others before.
    pub session: String,
    /// In a session with several transactions, one that differs from the first
    /// must be begun by a statement, which then says it.
    pub level: Option<Level>,
    /// Of its start, whether or not it sends one: tells transactions apart.
    pub start_id: OpId,
    pub start: Start,
    pub statements: Vec<Planned>,
    /// Of its end, whether or not it sends one.
    pub end_id: OpId,
    pub end: End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub id: OpId,
    pub statement: Stmt,
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

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Start(Start),
    Statement(&'a Stmt),
    End(End),
}

impl TxPlan {
    /// What its session sends, in order.
    pub fn sequence(&self) -> Vec<(OpId, Item<'_>)> {
        let starts = self.start != Start::Autocommit;
        let start = starts.then_some((self.start_id, Item::Start(self.start)));
        let end = (self.end != End::None).then_some((self.end_id, Item::End(self.end)));
        let statements = self.statements.iter().map(|p| (p.id, Item::Statement(&p.statement)));
        start.into_iter().chain(statements).chain(end).collect()
    }

    /// How many operations it has.
    pub fn operations(&self) -> usize {
        self.sequence().len()
    }
}

/// Gives the operations of new transactions their numbers.
pub fn number_operations(transactions: &mut [TxPlan]) {
    let mut numbers = (0u32..).map(OpId);
    let mut next = || numbers.next().expect("a plan is small");
    for tx in transactions {
        tx.start_id = next();
        tx.statements.iter_mut().for_each(|planned| planned.id = next());
        tx.end_id = next();
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
    /// Tables and rows alone.
    pub fn of_tables(schema: Schema, rows: Vec<Rows>, dialect: Dialect) -> Plan {
        Plan {
            number: 0,
            seed: 0,
            level: None,
            schema,
            rows,
            transactions: Vec::new(),
            schedule: Vec::new(),
            dialect,
        }
    }

    /// The steps in the order of the schedule: which transaction, and what.
    pub fn steps(&self) -> Vec<(usize, Item<'_>)> {
        self.scheduled().into_iter().map(|(_, tx, item)| (tx, item)).collect()
    }

    fn scheduled(&self) -> Vec<(OpId, usize, Item<'_>)> {
        let sequences = self.transactions.iter().map(TxPlan::sequence).enumerate();
        let all: BTreeMap<OpId, (usize, Item)> = sequences
            .flat_map(|(tx, sequence)| sequence.into_iter().map(move |(id, i)| (id, (tx, i))))
            .collect();
        let known = |id: &OpId| all.get(id).map(|(tx, item)| (*id, *tx, *item));
        self.schedule.iter().filter_map(known).collect()
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
        let step = |(id, tx, item): (OpId, usize, Item)| {
            let statement = item.statement();
            let sql = statement.render(&self.dialect);
            let plain = Step::plain(&self.transactions[tx].session, &sql, Line::default());
            let parsed = Parsed::known(statement.into_owned(), self.dialect.family);
            let level = self.level_said_by(tx, &item);
            Step { parsed, level, origin: Origin(Some(id.0)), ..plain }
        };
        let own_level = |tx: &TxPlan| tx.level.map(|level| (tx.session.clone(), level));
        let first = |tx: &&TxPlan| self.first_of_session(tx).start_id == tx.start_id;
        Case {
            id: self.id(),
            level: self.level,
            session_levels: self.transactions.iter().filter(first).filter_map(own_level).collect(),
            setups: vec![Setup { on: Vec::new(), statements: setup, notes: Vec::new() }],
            steps: self.scheduled().into_iter().map(step).collect(),
            finals: self.final_sql().into_iter().map(statement).collect(),
            ..Case::default()
        }
    }

    /// The first transaction of the session; its level is the session's.
    pub(super) fn first_of_session<'p>(&'p self, tx: &'p TxPlan) -> &'p TxPlan {
        self.transactions.iter().find(|t| t.session == tx.session).unwrap_or(tx)
    }

    pub(super) fn level_of(&self, tx: &TxPlan) -> Option<Level> {
        tx.level.or(self.level)
    }

    /// The level that a step says itself, because its session has another.
    fn level_said_by(&self, tx: usize, item: &Item) -> Option<Level> {
        let tx = &self.transactions[tx];
        let differs = tx.level != self.first_of_session(tx).level;
        let begins = matches!(item, Item::Start(Start::Explicit(_)));
        tx.level.or(self.level).filter(|_| differs && begins)
    }

    pub fn statements(&self) -> impl Iterator<Item = &Stmt> {
        self.transactions.iter().flat_map(|tx| &tx.statements).map(|planned| &planned.statement)
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
