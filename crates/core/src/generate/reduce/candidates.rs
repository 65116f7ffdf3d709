//! Smaller plans, one at a time.

use crate::generate::plan::{OpId, Plan};

/// Something that can be taken out of a plan. Names and numbers stay true when
/// other things are taken out first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    Table(String),
    Index {
        table: String,
        index: String,
    },
    Column {
        table: String,
        column: String,
    },
    /// Rows have no names; they are cut from the last to the first.
    Row {
        table: String,
        row: usize,
    },
    /// All rows of a table.
    Rows(String),
    /// Constraints and properties of a table, of which there are several.
    Constraints(String),
    /// The ways in which a transaction begins.
    Start(OpId),
    /// Parts of a statement.
    Parts(OpId),
    /// Fewer switches between sessions.
    Schedule,
    /// Plain values and names.
    Plain,
}

/// What is cut together: large pieces first.
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

/// The candidates of a pass. Nothing is built before it is asked for.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// The last is the next.
    left: Vec<Cut>,
    /// Ways of the next cut that have been tried in vain.
    tried: usize,
    /// A candidate has been handed out, and nobody has taken it.
    open: bool,
}

impl Candidates {
    pub fn of(plan: &Plan, pass: Pass) -> Candidates {
        Candidates { left: plan.cuts(pass), tried: 0, open: false }
    }

    /// The next candidate, made from the best plan so far: the one before, if
    /// it was taken.
    pub fn next(&mut self, best: &Plan) -> Option<Plan> {
        self.tried += usize::from(std::mem::take(&mut self.open));
        loop {
            match best.cut(self.left.last()?, self.tried) {
                Some(plan) => {
                    self.open = true;
                    return Some(plan);
                }
                None => self.drop_cut(),
            }
        }
    }

    /// The last candidate is the best plan from now on.
    pub fn taken(&mut self) {
        self.open = false;
        if self.left.last().is_some_and(|cut| !cut.has_several_ways()) {
            self.drop_cut();
        }
    }

    fn drop_cut(&mut self) {
        self.left.pop();
        self.tried = 0;
    }
}

impl Cut {
    fn has_several_ways(&self) -> bool {
        match self {
            Cut::Constraints(_) | Cut::Start(_) | Cut::Parts(_) | Cut::Schedule | Cut::Plain => {
                true
            }
            Cut::Table(_)
            | Cut::Index { .. }
            | Cut::Column { .. }
            | Cut::Row { .. }
            | Cut::Rows(_) => false,
        }
    }
}

impl Plan {
    /// From the first to the last; later ones depend on earlier ones, so the
    /// last is tried first.
    fn cuts(&self, pass: Pass) -> Vec<Cut> {
        let starts = || self.transactions.iter().map(|tx| tx.start_id);
        let statements = || self.transactions.iter().flat_map(|tx| &tx.statements).map(|p| p.id);
        let tables = || self.schema.tables.iter();
        match pass {
            Pass::Schema => {
                let mut cuts: Vec<Cut> =
                    tables().map(|t| Cut::Constraints(t.name.clone())).collect();
                for table in tables() {
                    let (name, indexes) = (&table.name, table.indexes.iter());
                    cuts.extend(
                        indexes.map(|i| Cut::Index { table: name.clone(), index: i.name.clone() }),
                    );
                }
                cuts.extend(tables().map(|t| Cut::Table(t.name.clone())));
                cuts
            }
            Pass::Data => {
                let mut cuts = Vec::new();
                for table in tables() {
                    let (name, columns) = (&table.name, table.columns.iter());
                    cuts.extend(
                        columns
                            .map(|c| Cut::Column { table: name.clone(), column: c.name.clone() }),
                    );
                }
                for (table, rows) in tables().zip(&self.rows) {
                    let row = |row| Cut::Row { table: table.name.clone(), row };
                    cuts.extend((0..rows.len()).map(row));
                }
                cuts.extend(tables().map(|t| Cut::Rows(t.name.clone())));
                cuts
            }
            Pass::Parts => starts().map(Cut::Start).chain(statements().map(Cut::Parts)).collect(),
            Pass::Schedule => vec![Cut::Schedule],
            Pass::Plain => vec![Cut::Plain],
        }
    }

    /// The plan without it, in the nth of its ways; none where there is no such
    /// way, or others need what would go.
    fn cut(&self, cut: &Cut, nth: usize) -> Option<Plan> {
        if nth > 0 && !cut.has_several_ways() {
            return None;
        }
        let table = |name: &str| self.schema.tables.iter().position(|t| t.name == name);
        match cut {
            Cut::Table(name) => self.without_table(table(name)?),
            Cut::Index { table: name, index } => {
                let table = table(name)?;
                let indexes = &self.schema.tables[table].indexes;
                self.without_index(table, indexes.iter().position(|i| i.name == *index)?)
            }
            Cut::Column { table: name, column } => {
                let table = table(name)?;
                let columns = &self.schema.tables[table].columns;
                self.without_column(table, columns.iter().position(|c| c.name == *column)?)
            }
            Cut::Rows(name) => self.without_rows(table(name)?),
            Cut::Schedule => self.fewer_switches(nth),
            Cut::Plain => self.plainer(nth),
            Cut::Row { table: name, row } => self.without_row(table(name)?, *row),
            Cut::Constraints(name) => self.simpler_schema(table(name)?, nth),
            Cut::Start(start) => self.simpler_transaction(*start, nth),
            Cut::Parts(id) => self.smaller_statement(*id, nth),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
