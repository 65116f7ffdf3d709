//! The values that an overwrite loses, and the names of rows, for people.

use crate::model::ReferenceModel;
use crate::world::{Place, TxId, Version};
use isolde_sql::{Conflict, Expr, Stmt, Write};

impl ReferenceModel<'_> {
    /// The values that a transaction wrote to a row and another one has overwritten:
    /// ` (110)`, or ` (a = 1, b = 2)`. None if the later write keeps or includes them, as
    /// `set v = v + 1` does.
    pub(super) fn lost_values(&self, place: Place, writer: TxId, later: TxId) -> Option<String> {
        let versions = &self.world.chain(place).versions;
        let last = versions.iter().rposition(|v| v.by == writer)?;
        let before = versions[..last].iter().rev().find(|v| v.by != writer);
        let lost = &versions[last];
        let differs =
            |column: &usize| before.is_none_or(|b| !b.row[*column].same(&lost.row[*column]));
        let columns = &self.subject.reading.schema.tables[place.table].columns;
        let changed: Vec<usize> = (0..columns.len()).filter(differs).collect();
        let overwriting: Vec<&Version> =
            versions[last + 1..].iter().filter(|v| v.by == later).collect();
        // A write of the same value may have left no version.
        let discards = |v: &&Version| changed.iter().any(|c| self.discards(v, &columns[*c].name));
        if !overwriting.is_empty() && !overwriting.iter().any(discards) {
            return None;
        }
        let cell = |c: &usize| match changed.len() {
            1 => lost.row[*c].to_string(),
            _ => format!("{} = {}", columns[*c].name, lost.row[*c]),
        };
        let cells: Vec<String> = changed.iter().map(cell).collect();
        Some(match lost.dead || cells.is_empty() || before.is_none() {
            true => String::new(),
            false => format!(" ({})", cells.join(", ")),
        })
    }

    /// Whether the statement that wrote a version gives a column a value that does not
    /// depend on the one before.
    fn discards(&self, version: &Version, column: &str) -> bool {
        let view = self.trace.views().iter().find(|view| view.statement == version.statement);
        let sets = match view.and_then(|view| self.operation(view.step)) {
            Some(Stmt::Write(Write::Update(update))) => &update.sets,
            Some(Stmt::Write(Write::Insert(insert))) => match &insert.conflict {
                Conflict::Update { sets, .. } => sets,
                _ => return true,
            },
            _ => return true,
        };
        let Some((_, value)) = sets.iter().find(|(name, _)| name == column) else { return false };
        let mut depends = false;
        value.visit(&mut |e| {
            depends |= matches!(e, Expr::Column { name, .. } if name == column);
        });
        !depends
    }

    /// A row by its primary key: `account 1`.
    pub(super) fn row_name(&self, place: Place) -> String {
        let table = &self.subject.reading.schema.tables[place.table];
        let columns = table.columns.iter().zip(0..);
        let keys: Vec<usize> = columns
            .filter(|(column, _)| table.primary_key.contains(&column.name))
            .map(|(_, n)| n)
            .collect();
        let first = self.world.chain(place).versions.first();
        match first {
            Some(version) if !keys.is_empty() => {
                let cells: Vec<String> = keys.iter().map(|n| version.row[*n].to_string()).collect();
                format!("{} {}", table.name, cells.join(", "))
            }
            _ => format!("a row of {}", table.name),
        }
    }
}
