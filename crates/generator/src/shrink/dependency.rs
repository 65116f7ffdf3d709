//! Dependencies between the operations of a plan. Requirements: a statement requires the start of
//! its transaction, ROLLBACK TO its savepoint, EXECUTE its PREPARE, the use of an index or column
//! the statement that created it. Data: an operation that searches for a row by its key depends on
//! the one that inserted the row.
//!
//! This is less than a dependency on every version that was read. A row with many writers would
//! chain all of them, and a strategy would keep the whole chain for its last link. Trials decide
//! in any case.

use super::Candidates;
use super::candidates::Pass;
use crate::plan::{OpId, Plan, TxPlan};
use crate::reduce::{OperationGraph, Owner, Reducible};
use isolde_sql::{Binary, Control, Ddl, Expr, InsertSource, Literal, Stmt, Write};
use std::collections::{BTreeMap, BTreeSet};

/// An object that one operation creates and others use, with the transaction or session in which
/// it exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Resource<'a> {
    Savepoint(usize, &'a str),
    Prepared(&'a str, &'a str),
    Index(&'a str),
    Column(&'a str),
}

fn created_resource<'a>(
    statement: &'a Stmt,
    transaction: usize,
    session: &'a str,
) -> Option<Resource<'a>> {
    match statement {
        Stmt::Control(Control::Savepoint(name)) => Some(Resource::Savepoint(transaction, name)),
        Stmt::Prepare { name, .. } => Some(Resource::Prepared(session, name)),
        Stmt::Ddl(Ddl::CreateIndex { index, .. }) => Some(Resource::Index(&index.name)),
        Stmt::Ddl(Ddl::AddColumn { column, .. }) => Some(Resource::Column(column)),
        _ => None,
    }
}

fn used_resources<'a>(
    statement: &'a Stmt,
    transaction: usize,
    session: &'a str,
) -> Vec<Resource<'a>> {
    match statement {
        Stmt::Control(Control::RollbackTo(name) | Control::Release(name)) => {
            vec![Resource::Savepoint(transaction, name)]
        }
        Stmt::Execute(name) => vec![Resource::Prepared(session, name)],
        other => {
            let other = other.unprepared();
            let mut names: BTreeSet<&str> = match other {
                Stmt::Write(Write::Insert(insert)) => {
                    insert.columns.iter().map(String::as_str).collect()
                }
                Stmt::Write(Write::Update(update)) => {
                    update.sets.iter().map(|(name, _)| name.as_str()).collect()
                }
                _ => BTreeSet::new(),
            };
            other.visit(&mut |e| {
                if let Expr::Column { name, .. } = e {
                    names.insert(name);
                }
            });
            let index = match other {
                Stmt::Ddl(Ddl::DropIndex { index, .. }) => Some(Resource::Index(index)),
                _ => None,
            };
            names.into_iter().map(Resource::Column).chain(index).collect()
        }
    }
}

/// A value in a column of a table.
type Cell<'a> = (&'a str, &'a str, String);

/// The cells of keys in the rows of an INSERT.
fn inserted_cells<'a>(statement: &'a Stmt, plan: &'a Plan) -> Vec<Cell<'a>> {
    let Stmt::Write(Write::Insert(insert)) = statement.unprepared() else { return Vec::new() };
    let InsertSource::Values(rows) = &insert.source else { return Vec::new() };
    let Some(table) = plan.schema.table(&insert.table) else { return Vec::new() };
    let cell = |(column, value): (&'a String, &'a Expr)| match value {
        Expr::Literal(literal) if table.is_in_a_key(column) => {
            Some((table.name.as_str(), column.as_str(), spelled(literal)))
        }
        _ => None,
    };
    rows.iter().flat_map(|row| insert.columns.iter().zip(row).filter_map(cell)).collect()
}

/// The cells that the condition of a statement compares with literals.
fn searched_cells(statement: &Stmt) -> Vec<Cell<'_>> {
    let (table, filter) = match statement.unprepared() {
        Stmt::Write(Write::Update(update)) => (update.table.as_str(), &update.filter),
        Stmt::Write(Write::Delete(delete)) => (delete.table.as_str(), &delete.filter),
        Stmt::Select(select) => {
            let Some(table) = select.from.as_ref().and_then(|f| f.table()) else {
                return Vec::new();
            };
            (table, &select.filter)
        }
        _ => return Vec::new(),
    };
    let (mut cells, mut next): (Vec<Cell>, Vec<&Expr>) = (Vec::new(), filter.iter().collect());
    while let Some(e) = next.pop() {
        match e {
            Expr::Binary(Binary::And, left, right) => next.extend([&**left, &**right]),
            Expr::Binary(Binary::Equal, left, right) => {
                if let (Expr::Column { name, .. }, Expr::Literal(literal)) = (&**left, &**right) {
                    cells.push((table, name, spelled(literal)));
                }
            }
            _ => {}
        }
    }
    cells
}

fn spelled(literal: &Literal) -> String {
    format!("{literal:?}")
}

impl Plan {
    /// The operations in the order of the graph's nodes: for each transaction one node for its
    /// start and end together, then its statements.
    fn nodes(&self) -> Vec<OpId> {
        let of = |tx: &TxPlan| {
            let statements: Vec<OpId> = tx.statements.iter().map(|p| p.id).collect();
            std::iter::once(tx.start_id).chain(statements)
        };
        self.transactions.iter().flat_map(of).collect()
    }

    /// The statements in the order in which they are sent: node, transaction, statement.
    fn sent(&self) -> Vec<(usize, usize, &Stmt)> {
        let mut all: BTreeMap<OpId, (usize, usize, &Stmt)> = BTreeMap::new();
        let mut node = 0;
        for (place, tx) in self.transactions.iter().enumerate() {
            for planned in &tx.statements {
                node += 1;
                all.insert(planned.id, (node, place, &planned.statement));
            }
            node += 1;
        }
        self.schedule.iter().filter_map(|id| all.get(id).copied()).collect()
    }

    fn dependencies(&self) -> OperationGraph {
        let mut sessions: Vec<&str> = Vec::new();
        let mut places = Vec::new();
        let mut brackets = Vec::new();
        for (transaction, tx) in self.transactions.iter().enumerate() {
            let session = sessions.iter().position(|s| *s == tx.session).unwrap_or_else(|| {
                sessions.push(&tx.session);
                sessions.len() - 1
            });
            brackets.push(places.len());
            let place = Owner { session, transaction };
            places.extend(std::iter::repeat_n(place, 1 + tx.statements.len()));
        }
        let mut graph = OperationGraph::new(places);
        let mut creators: BTreeMap<Resource, usize> = BTreeMap::new();
        let mut inserts: BTreeMap<Cell, Option<usize>> = self.first_cells();
        for (node, transaction, statement) in self.sent() {
            let session = &self.transactions[transaction].session;
            graph.add_requirement(brackets[transaction], node);
            for resource in used_resources(statement, transaction, session) {
                if let Some(creator) = creators.get(&resource) {
                    graph.add_requirement(*creator, node);
                }
            }
            for cell in searched_cells(statement) {
                if let Some(Some(creator)) = inserts.get(&cell) {
                    graph.add_data_dependency(*creator, node);
                }
            }
            if let Some(resource) = created_resource(statement, transaction, session) {
                creators.insert(resource, node);
            }
            for cell in inserted_cells(statement, self) {
                // With several inserts of a key it is unknown which one created the row.
                inserts.entry(cell).and_modify(|creator| *creator = None).or_insert(Some(node));
            }
        }
        graph
    }

    /// The cells of the first rows, which no operation inserted.
    fn first_cells(&self) -> BTreeMap<Cell<'_>, Option<usize>> {
        let mut cells = BTreeMap::new();
        for (table, rows) in self.schema.tables.iter().zip(&self.rows) {
            for (column, literal) in rows.iter().flat_map(|row| table.columns.iter().zip(row)) {
                cells.insert((table.name.as_str(), column.name.as_str(), spelled(literal)), None);
            }
        }
        cells
    }
}

impl Reducible for Plan {
    type Simplifications = Candidates;

    fn graph(&self) -> OperationGraph {
        self.dependencies()
    }

    fn keeping(&self, kept: &[bool]) -> Plan {
        let gone = self.nodes().into_iter().zip(kept).filter(|(_, kept)| !**kept);
        self.without_operations(&gone.map(|(id, _)| id).collect())
    }

    fn simplifications(&self, pass: usize) -> Option<Candidates> {
        Pass::ALL.get(pass).map(|pass| Candidates::of(self, *pass))
    }

    fn next(candidates: &mut Candidates, best: &Plan) -> Option<Plan> {
        candidates.next(best)
    }

    fn accept(candidates: &mut Candidates) {
        candidates.accept();
    }
}
