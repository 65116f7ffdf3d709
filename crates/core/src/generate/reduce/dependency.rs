//! What operations need of each other: a statement the beginning of its transaction, the
//! way back to a savepoint the savepoint, an execution what was prepared, a use of an index
//! or column what made it. And whom they met: who looks for a row by its key, and finds it
//! only because another operation inserted it, hangs on that one.
//!
//! That is less than every version that was read. A row that many have written would chain
//! all of them to each other, and a strategy would keep the whole chain for its last link.
//! Trials decide in any case.

use super::Candidates;
use super::candidates::Pass;
use crate::generate::plan::{OpId, Plan, TxPlan};
use crate::reduce::{Graph, Place, Subject};
use crate::sql::{Binary, Expr, InsertSource, Literal, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Something that one operation makes and others use, and who knows of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing<'a> {
    Savepoint(usize, &'a str),
    Prepared(&'a str, &'a str),
    Index(&'a str),
    Column(&'a str),
}

fn made<'a>(statement: &'a Stmt, transaction: usize, session: &'a str) -> Option<Thing<'a>> {
    match statement {
        Stmt::Savepoint(name) => Some(Thing::Savepoint(transaction, name)),
        Stmt::Prepare { name, .. } => Some(Thing::Prepared(session, name)),
        Stmt::CreateIndex { index, .. } => Some(Thing::Index(&index.name)),
        Stmt::AddColumn { column, .. } => Some(Thing::Column(column)),
        _ => None,
    }
}

fn used<'a>(statement: &'a Stmt, transaction: usize, session: &'a str) -> Vec<Thing<'a>> {
    match statement {
        Stmt::RollbackTo(name) | Stmt::Release(name) => vec![Thing::Savepoint(transaction, name)],
        Stmt::Execute(name) => vec![Thing::Prepared(session, name)],
        other => {
            let other = other.unprepared();
            let mut names: BTreeSet<&str> = match other {
                Stmt::Insert(insert) => insert.columns.iter().map(String::as_str).collect(),
                Stmt::Update(update) => update.sets.iter().map(|(name, _)| name.as_str()).collect(),
                _ => BTreeSet::new(),
            };
            other.visit(&mut |e| {
                if let Expr::Column { name, .. } = e {
                    names.insert(name);
                }
            });
            let index = match other {
                Stmt::DropIndex { index, .. } => Some(Thing::Index(index)),
                _ => None,
            };
            names.into_iter().map(Thing::Column).chain(index).collect()
        }
    }
}

/// A value in a column of a table.
type Cell<'a> = (&'a str, &'a str, String);

/// The cells of keys that rows of an INSERT have.
fn inserted<'a>(statement: &'a Stmt, plan: &'a Plan) -> Vec<Cell<'a>> {
    let Stmt::Insert(insert) = statement.unprepared() else { return Vec::new() };
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

/// The cells that the condition of a statement asks for.
fn looked_for(statement: &Stmt) -> Vec<Cell<'_>> {
    let (table, filter) = match statement.unprepared() {
        Stmt::Update(update) => (update.table.as_str(), &update.filter),
        Stmt::Delete(delete) => (delete.table.as_str(), &delete.filter),
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
    /// The numbers of its operations as its graph counts them: for each transaction its
    /// bracket (its beginning and its end go together), then its statements.
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

    fn dependencies(&self) -> Graph {
        let mut sessions: Vec<&str> = Vec::new();
        let mut places = Vec::new();
        let mut brackets = Vec::new();
        for (transaction, tx) in self.transactions.iter().enumerate() {
            let session = sessions.iter().position(|s| *s == tx.session).unwrap_or_else(|| {
                sessions.push(&tx.session);
                sessions.len() - 1
            });
            brackets.push(places.len());
            let place = Place { session, transaction };
            places.extend(std::iter::repeat_n(place, 1 + tx.statements.len()));
        }
        let mut graph = Graph::new(places);
        let mut makers: BTreeMap<Thing, usize> = BTreeMap::new();
        let mut inserts: BTreeMap<Cell, Option<usize>> = self.first_cells();
        for (node, transaction, statement) in self.sent() {
            let session = &self.transactions[transaction].session;
            graph.carry(brackets[transaction], node);
            for thing in used(statement, transaction, session) {
                if let Some(maker) = makers.get(&thing) {
                    graph.carry(*maker, node);
                }
            }
            for cell in looked_for(statement) {
                if let Some(Some(maker)) = inserts.get(&cell) {
                    graph.feed(*maker, node);
                }
            }
            if let Some(thing) = made(statement, transaction, session) {
                makers.insert(thing, node);
            }
            for cell in inserted(statement, self) {
                // Who of several made the row is not known.
                inserts.entry(cell).and_modify(|maker| *maker = None).or_insert(Some(node));
            }
        }
        graph
    }

    /// What is there from the beginning was made by nobody.
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

impl Subject for Plan {
    type Inside = Candidates;

    fn graph(&self) -> Graph {
        self.dependencies()
    }

    fn keeping(&self, kept: &[bool]) -> Plan {
        let gone = self.nodes().into_iter().zip(kept).filter(|(_, kept)| !**kept);
        self.without_operations(&gone.map(|(id, _)| id).collect())
    }

    fn inside(&self, pass: usize) -> Option<Candidates> {
        Pass::ALL.get(pass).map(|pass| Candidates::of(self, *pass))
    }

    fn next(inside: &mut Candidates, best: &Plan) -> Option<Plan> {
        inside.next(best)
    }

    fn taken(inside: &mut Candidates) {
        inside.taken();
    }
}
