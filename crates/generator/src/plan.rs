//! A generated case in its parts, which the reducer edits and the hunt runs.

use isolde_model::Level;
use isolde_model::case::{Case, Line, Origin, Parsed, Setup, Statement, Step};
use isolde_model::parsed_case::{Operation, ParsedCase};
use isolde_sql::Feature;
use isolde_sql::dialect::Dialect;
use isolde_sql::fixture::{self, Fixture, Rows};
use isolde_sql::{BeginForm, Control, Schema, Stmt};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The number of an operation of a plan. It stays the same when other operations are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub number: u64,
    pub seed: u64,
    /// The level of every transaction that has none of its own.
    pub level: Option<Level>,
    pub schema: Schema,
    /// The rows of each table, with one cell per column.
    pub rows: Vec<Rows>,
    /// The transactions of one session are in the order in which it runs them.
    pub transactions: Vec<TxPlan>,
    /// All operations in the order in which they are sent.
    pub schedule: Vec<OpId>,
    pub dialect: Dialect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxPlan {
    /// Its session, which may have run others before.
    pub session: String,
    /// The level, if it is not that of the plan. If it differs from that of the session's first
    /// transaction, the transaction must have a BEGIN, which then sets it.
    pub level: Option<Level>,
    /// The number of its start, whether or not it sends one; identifies the transaction.
    pub start_id: OpId,
    pub start: Start,
    pub statements: Vec<PlannedStatement>,
    /// The number of its end, whether or not it sends one.
    pub end_id: OpId,
    pub end: End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStatement {
    pub id: OpId,
    pub statement: Stmt,
}

impl From<Stmt> for PlannedStatement {
    /// An operation without a number; `number_operations` sets it.
    fn from(statement: Stmt) -> PlannedStatement {
        PlannedStatement { id: OpId(0), statement }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Explicit(BeginForm),
    /// Every statement is a transaction of its own.
    Autocommit,
    /// `set autocommit = 0`: the first statement begins a transaction.
    AutocommitOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Commit,
    Rollback,
    /// Autocommitted statements have no end of their own.
    None,
}

/// One operation of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Start(Start),
    Statement(&'a Stmt),
    End(End),
}

impl TxPlan {
    /// The operations that its session sends, in order.
    pub fn sequence(&self) -> Vec<(OpId, Item<'_>)> {
        let starts = self.start != Start::Autocommit;
        let start = starts.then_some((self.start_id, Item::Start(self.start)));
        let end = (self.end != End::None).then_some((self.end_id, Item::End(self.end)));
        let statements = self.statements.iter().map(|p| (p.id, Item::Statement(&p.statement)));
        start.into_iter().chain(statements).chain(end).collect()
    }

    /// The number of its operations.
    pub fn operations(&self) -> usize {
        self.sequence().len()
    }
}

/// Numbers the operations of new transactions.
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
            Item::Start(Start::Explicit(form)) => {
                Cow::Owned(Stmt::Control(Control::Begin((*form).into())))
            }
            Item::Start(_) => Cow::Owned(Stmt::Control(Control::SetAutocommit(false))),
            Item::Statement(statement) => Cow::Borrowed(*statement),
            Item::End(End::Rollback) => Cow::Owned(Stmt::Control(Control::Rollback)),
            Item::End(_) => Cow::Owned(Stmt::Control(Control::Commit)),
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
    /// Tables and rows without transactions.
    pub fn of_fixture(fixture: Fixture) -> Plan {
        Plan {
            number: 0,
            seed: 0,
            level: None,
            schema: fixture.schema,
            rows: fixture.rows,
            transactions: Vec::new(),
            schedule: Vec::new(),
            dialect: fixture.dialect,
        }
    }

    /// The steps in the order of the schedule: transaction and operation.
    pub fn steps(&self) -> Vec<(usize, Item<'_>)> {
        self.scheduled().into_iter().map(|(_, tx, item)| (tx, item)).collect()
    }

    fn scheduled(&self) -> Vec<(OpId, usize, Item<'_>)> {
        let sequences = self.transactions.iter().map(TxPlan::sequence).enumerate();
        let all: BTreeMap<OpId, (usize, Item)> = sequences
            .flat_map(|(tx, sequence)| sequence.into_iter().map(move |(id, i)| (id, (tx, i))))
            .collect();
        let find = |id: &OpId| all.get(id).map(|(tx, item)| (*id, *tx, *item));
        self.schedule.iter().filter_map(find).collect()
    }

    /// CREATE statements; the same for all plans of a block.
    pub fn create_sql(&self) -> Vec<String> {
        fixture::create_sql(&self.schema, &self.dialect)
    }

    /// Statements that restore the first rows, whatever the tables contain.
    pub fn reset_sql(&self) -> Vec<String> {
        fixture::reset_sql(&self.schema, &self.rows, &self.dialect)
    }

    /// One query per table that reads all its columns, by name.
    pub fn final_sql(&self) -> Vec<String> {
        fixture::final_sql(&self.schema)
    }

    /// The tables and rows that the plan starts from.
    pub fn fixture(&self) -> Fixture {
        Fixture { schema: self.schema.clone(), rows: self.rows.clone(), dialect: self.dialect }
    }

    /// The same transactions on other tables and rows.
    pub fn on_fixture(&self, fixture: Fixture) -> Plan {
        Plan { schema: fixture.schema, rows: fixture.rows, ..self.clone() }
    }

    /// `hunt/SEED/NUMBER`.
    pub fn id(&self) -> String {
        format!("hunt/{}/{}", self.seed, self.number)
    }

    fn fixture_sql(&self) -> Vec<String> {
        let mut sql = self.create_sql();
        sql.extend(fixture::insert_sql(&self.schema, &self.rows, &self.dialect));
        sql
    }

    pub fn to_case(&self) -> Case {
        let statement = |sql| Statement { sql, line: Line::default() };
        let setup: Vec<Statement> = self.fixture_sql().into_iter().map(statement).collect();
        let step = |(id, tx, item): (OpId, usize, Item)| {
            let statement = item.statement();
            let sql = statement.render(&self.dialect);
            let plain = Step::plain(&self.transactions[tx].session, &sql, Line::default());
            let parsed = Parsed::known(statement.into_owned(), self.dialect.family);
            let level = self.explicit_level(tx, &item);
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

    /// The level that a step sets itself because its session has another one.
    fn explicit_level(&self, tx: usize, item: &Item) -> Option<Level> {
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
        self.statements().any(|s| matches!(s, Stmt::Control(Control::Savepoint(_))))
    }

    /// The features that each step of the case exercises.
    pub fn features(&self) -> Vec<Vec<Feature>> {
        let of_step =
            |(tx, item): (usize, Item)| item.features(&self.transactions[tx], &self.schema);
        self.steps().into_iter().map(of_step).collect()
    }
}

impl From<&Plan> for ParsedCase {
    fn from(plan: &Plan) -> ParsedCase {
        let operation = |item: Item| match item {
            Item::Start(Start::Explicit(form)) => Operation::Begin(form),
            Item::Start(_) => Operation::AutocommitOff,
            Item::Statement(statement) => Operation::Statement(Box::new(statement.clone())),
            Item::End(End::Rollback) => Operation::Rollback,
            Item::End(_) => Operation::Commit,
        };
        let level = |tx: usize| plan.transactions[tx].level.or(plan.level);
        let steps = plan.steps();
        ParsedCase {
            schema: plan.schema.clone(),
            dialect: plan.dialect,
            first_rows: Some(plan.rows.clone()),
            levels: steps.iter().filter_map(|(tx, _)| level(*tx)).collect(),
            operations: steps.into_iter().map(|(_, item)| operation(item)).collect(),
            numbering: Default::default(),
            unknown_waits: false,
            constrained: Default::default(),
            deferrable: Default::default(),
            changes: Vec::new(),
            unknown_tables: Default::default(),
        }
    }
}
