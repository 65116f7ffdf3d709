//! Version-set reads (TxCheck, section 3.2): just before a statement, which version of each
//! row it will meet in the tables that it looks at.

use super::{Instrument, Probe, Sent};
use isolde_catalog::CurrentReadScope;
use isolde_sql::{Conflict, InsertSource, Select, SelectItem, SetOperator, Source, Stmt, Write};
use std::collections::BTreeSet;

/// The tables whose rows decide what a statement does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Referenced {
    /// Read as its transaction sees them.
    pub viewed: BTreeSet<usize>,
    /// Read as they are at that moment, committed or its own.
    pub current: BTreeSet<usize>,
    /// A table that is not followed is among them.
    pub unfollowed: bool,
}

impl Instrument {
    /// What a statement looks at.
    pub fn referenced(&self, statement: &Stmt, scope: CurrentReadScope) -> Referenced {
        let mut found = Referenced::default();
        let (own, inner) = tables_of(statement);
        let current = scope != CurrentReadScope::Nothing
            && match statement {
                Stmt::Select(select) => select.locking.is_some(),
                _ => true,
            };
        let inner_too = scope == CurrentReadScope::OwnAndInner
            && match statement {
                Stmt::Write(Write::Update(_) | Write::Delete(_)) => true,
                Stmt::Write(Write::Insert(insert)) => {
                    matches!(insert.source, InsertSource::Select(_))
                }
                _ => false,
            };
        for name in &own {
            match self.place(name).filter(|place| self.is_followed(*place)) {
                Some(place) if current => found.current.insert(place),
                Some(place) => found.viewed.insert(place),
                None => true,
            };
        }
        for name in &inner {
            if let Some(place) = self.place(name).filter(|place| self.is_followed(*place)) {
                if !inner_too {
                    found.viewed.insert(place);
                }
                if current {
                    found.current.insert(place);
                }
            }
        }
        let followed = |name: &str| match self.place(name) {
            Some(place) => self.is_followed(place),
            // A CTE; what it reads is among the others.
            None => true,
        };
        found.unfollowed = !statement.tables().into_iter().all(followed);
        found
    }

    /// What may have made a statement fail: all that it looks at, and the rows that its keys
    /// are checked against as they are, in its own table and in those that foreign keys tie to it.
    pub fn checked(&self, statement: &Stmt, scope: CurrentReadScope) -> Referenced {
        let mut found = self.referenced(statement, scope);
        let Some(written) = statement.written_table() else { return found };
        for (place, table) in self.schema.tables.iter().enumerate() {
            let refers = |from: &str, to: &str| {
                let from = self.schema.tables.iter().find(|t| t.name == from);
                from.is_some_and(|t| t.foreign_keys.iter().any(|key| key.parent == to))
            };
            let tied = table.name == written
                || refers(written, &table.name)
                || refers(&table.name, written);
            if tied && self.is_followed(place) {
                found.current.insert(place);
            }
            found.unfollowed |= tied && !self.is_followed(place);
        }
        found
    }

    /// Reads the versions of all rows of some tables, in one statement.
    pub(super) fn view(&self, tables: &BTreeSet<usize>) -> Option<Sent> {
        let mut all: Option<Select> = None;
        for place in tables.iter().rev() {
            let name = &self.schema.tables[*place].name;
            let below = all.take().map(|below| (SetOperator::UnionAll, Box::new(below)));
            all = Some(Select {
                items: vec![SelectItem::from(self.version(*place, name))],
                from: Some(Source::named(name)),
                set_operation: below,
                ..Select::default()
            });
        }
        Some(Sent::new(all?, Probe::View))
    }
}

/// The tables that a statement itself reads, and those that are read inside of it.
fn tables_of(statement: &Stmt) -> (Vec<String>, Vec<String>) {
    let mut inner: Vec<String> = statement.tables().into_iter().map(str::to_string).collect();
    let mut own = Vec::new();
    let mut take = |name: &str| {
        if let Some(at) = inner.iter().position(|n| n == name) {
            own.push(inner.remove(at));
        }
    };
    match statement {
        Stmt::Select(select) => select.from_and_joined().filter_map(Source::table).for_each(take),
        Stmt::Write(Write::Update(update)) => take(&update.table),
        Stmt::Write(Write::Delete(delete)) => take(&delete.table),
        Stmt::Write(Write::Insert(insert)) => {
            take(&insert.table);
            // Of its own table nothing is looked at but keys, which are followed by themselves.
            if insert.conflict == Conflict::Fail {
                own.clear();
            }
        }
        _ => {}
    }
    (own, inner)
}
