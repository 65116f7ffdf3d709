//! Smaller plans, one at a time.

use crate::plan::{OpId, Plan};

/// A part of a plan that can be removed or simplified. Its names and numbers stay valid when other
/// parts are removed first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Simplification {
    Table(String),
    Index {
        table: String,
        index: String,
    },
    Column {
        table: String,
        column: String,
    },
    /// Rows have no names; they are removed from the last to the first.
    Row {
        table: String,
        row: usize,
    },
    /// All rows of a table.
    Rows(String),
    /// Constraints and properties of a table, one per variant.
    Constraints(String),
    /// How a transaction begins.
    Start(OpId),
    /// Parts of a statement.
    Parts(OpId),
    /// Fewer switches between sessions.
    Schedule,
    /// Plain values and names.
    Plain,
}

/// Simplifications that are tried together, large ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    Schema,
    Data,
    Parts,
    Schedule,
    Plain,
}

impl Pass {
    pub const ALL: [Pass; 5] = [Pass::Schema, Pass::Data, Pass::Parts, Pass::Schedule, Pass::Plain];
}

/// The candidates of a pass, each built only when it is requested.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// The last is the next.
    left: Vec<Simplification>,
    /// Variants of the next simplification that were rejected.
    tried: usize,
    /// The last returned candidate was not accepted so far.
    open: bool,
}

impl Candidates {
    pub fn of(plan: &Plan, pass: Pass) -> Candidates {
        Candidates { left: plan.simplifications(pass), tried: 0, open: false }
    }

    /// The next candidate, made from the best plan so far, which is the last candidate if that was
    /// accepted.
    pub fn next(&mut self, best: &Plan) -> Option<Plan> {
        self.tried += usize::from(std::mem::take(&mut self.open));
        loop {
            match best.simplify(self.left.last()?, self.tried) {
                Some(plan) => {
                    self.open = true;
                    return Some(plan);
                }
                None => self.drop_simplification(),
            }
        }
    }

    /// Accepts the last candidate as the best plan.
    pub fn accept(&mut self) {
        self.open = false;
        if self.left.last().is_some_and(|simplify| !simplify.has_variants()) {
            self.drop_simplification();
        }
    }

    fn drop_simplification(&mut self) {
        self.left.pop();
        self.tried = 0;
    }
}

impl Simplification {
    fn has_variants(&self) -> bool {
        match self {
            Simplification::Constraints(_)
            | Simplification::Start(_)
            | Simplification::Parts(_)
            | Simplification::Schedule
            | Simplification::Plain => true,
            Simplification::Table(_)
            | Simplification::Index { .. }
            | Simplification::Column { .. }
            | Simplification::Row { .. }
            | Simplification::Rows(_) => false,
        }
    }
}

impl Plan {
    /// The simplifications of a pass, in the order of the plan. Later parts depend on earlier
    /// ones, so the last is tried first.
    fn simplifications(&self, pass: Pass) -> Vec<Simplification> {
        let starts = || self.transactions.iter().map(|tx| tx.start_id);
        let statements = || self.transactions.iter().flat_map(|tx| &tx.statements).map(|p| p.id);
        let tables = || self.schema.tables.iter();
        match pass {
            Pass::Schema => {
                let mut simplifications: Vec<Simplification> =
                    tables().map(|t| Simplification::Constraints(t.name.clone())).collect();
                for table in tables() {
                    let (name, indexes) = (&table.name, table.indexes.iter());
                    simplifications.extend(indexes.map(|i| Simplification::Index {
                        table: name.clone(),
                        index: i.name.clone(),
                    }));
                }
                simplifications.extend(tables().map(|t| Simplification::Table(t.name.clone())));
                simplifications
            }
            Pass::Data => {
                let mut simplifications = Vec::new();
                for table in tables() {
                    let (name, columns) = (&table.name, table.columns.iter());
                    simplifications.extend(columns.map(|c| Simplification::Column {
                        table: name.clone(),
                        column: c.name.clone(),
                    }));
                }
                for (table, rows) in tables().zip(&self.rows) {
                    let row = |row| Simplification::Row { table: table.name.clone(), row };
                    simplifications.extend((0..rows.len()).map(row));
                }
                simplifications.extend(tables().map(|t| Simplification::Rows(t.name.clone())));
                simplifications
            }
            Pass::Parts => starts()
                .map(Simplification::Start)
                .chain(statements().map(Simplification::Parts))
                .collect(),
            Pass::Schedule => vec![Simplification::Schedule],
            Pass::Plain => vec![Simplification::Plain],
        }
    }

    /// The plan with the nth variant of a simplification; none if there is no such variant, or if
    /// others need what it would remove.
    fn simplify(&self, simplify: &Simplification, nth: usize) -> Option<Plan> {
        if nth > 0 && !simplify.has_variants() {
            return None;
        }
        let table = |name: &str| self.schema.tables.iter().position(|t| t.name == name);
        match simplify {
            Simplification::Table(name) => self.without_table(table(name)?),
            Simplification::Index { table: name, index } => {
                let table = table(name)?;
                let indexes = &self.schema.tables[table].indexes;
                self.without_index(table, indexes.iter().position(|i| i.name == *index)?)
            }
            Simplification::Column { table: name, column } => {
                let table = table(name)?;
                let columns = &self.schema.tables[table].columns;
                self.without_column(table, columns.iter().position(|c| c.name == *column)?)
            }
            Simplification::Rows(name) => self.without_rows(table(name)?),
            Simplification::Schedule => self.with_fewer_switches(nth),
            Simplification::Plain => self.plainer(nth),
            Simplification::Row { table: name, row } => self.without_row(table(name)?, *row),
            Simplification::Constraints(name) => self.simpler_schema(table(name)?, nth),
            Simplification::Start(start) => self.simpler_transaction(*start, nth),
            Simplification::Parts(id) => self.smaller_statement(*id, nth),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
