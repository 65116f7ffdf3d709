//! The account of a lock wait: what each lock holder holds, and by which rule.
//!
//! The model knows the rows that transactions have locked for certain, and the
//! tables that they have scanned, where they may have locked more. An INSERT whose
//! keys no row has, in a table without foreign keys, has no row to wait for: where
//! scans lock gaps, it waits for a gap.

use crate::model::ReferenceModel;
use crate::world::TxId;
use isolde_catalog::{Rule, Waits};
use isolde_model::Value;
use isolde_sql::{
    Binary, Class, Conflict, Expr, Insert, InsertSource, Literal, Select, Source, Stmt, Write,
};
use std::collections::BTreeSet;

/// What a lock holder holds, in words, and the rule by which it blocks others.
struct Hold {
    text: String,
    rule: &'static Rule,
}

impl ReferenceModel<'_> {
    /// Records the lock holders that a statement waits or would have waited for, and
    /// cites the rules.
    pub fn note_holders(&mut self, verb: &str, (tx, step): (TxId, usize), holders: &[TxId]) {
        let holds: Vec<(TxId, Hold)> =
            holders.iter().map(|other| (*other, self.hold_of(*other, tx, step))).collect();
        let named = |(other, hold): &(TxId, Hold)| {
            format!("{}, which {}", self.world.session(*other), hold.text)
        };
        let text = holds.iter().map(named).collect::<Vec<_>>().join("; or for ");
        self.trace.note(step, format!("{verb} {text}"));
        for (_, hold) in holds {
            self.use_rule(step, hold.rule);
        }
    }

    /// What another transaction holds that blocks a statement.
    fn hold_of(&self, other: TxId, tx: TxId, step: usize) -> Hold {
        let concurrency = self.world.concurrency(tx);
        let rule = concurrency.rules.held_row;
        if concurrency.locking.waits == Waits::Database {
            let writes = self.world.tx(other).writer;
            let text = if writes { "is writing" } else { "is reading" };
            return Hold { text: text.into(), rule };
        }
        if let Some(hold) = self.hold_of_gap(other, tx, step) {
            return hold;
        }
        let wanted = self.may_lock(tx, step);
        let names = |tables: &BTreeSet<usize>| {
            let schema = &self.subject.reading.schema.tables;
            let names: Vec<&str> = tables.iter().map(|t| schema[*t].name.as_str()).collect();
            names.join(", ")
        };
        let locks = self.world.locks().filter(|l| l.by == other).map(|l| l.place.table);
        let locked: BTreeSet<usize> = locks.filter(|t| wanted.contains(t)).collect();
        let text = match locked.is_empty() {
            false => format!("holds rows of {}", names(&locked)),
            true => {
                let scanned = self.world.scanned(other);
                format!("may have locked what it scanned in {}", names(&(&scanned & &wanted)))
            }
        };
        Hold { text, rule }
    }

    /// The gap that another transaction has locked and an INSERT would insert into. None
    /// if it may wait for a row.
    fn hold_of_gap(&self, other: TxId, tx: TxId, step: usize) -> Option<Hold> {
        let rule = self.world.concurrency(tx).locking.gap_locks?;
        let Some(Stmt::Write(Write::Insert(insert))) = self.operation(step) else { return None };
        let schema = &self.subject.reading.schema.tables;
        let table = schema.iter().position(|t| t.name == insert.table)?;
        let of = &schema[table];
        let is_linked = !of.foreign_keys.is_empty()
            || schema.iter().any(|t| t.foreign_keys.iter().any(|f| f.parent == of.name));
        if is_linked {
            return None;
        }
        let mut primary = Vec::new();
        for key in 0..self.keys[table].len() {
            for cells in self.new_keys(insert, table, key)?.into_iter().flatten() {
                if self.has_ever_been(table, key, &cells) {
                    return None;
                }
                if self.keys[table][key].primary {
                    primary.push(cells);
                }
            }
        }
        let scans = self.world.scans_of(other, table);
        let scans: Vec<usize> = scans.into_iter().filter(|s| self.locks_gaps(*s)).collect();
        if scans.is_empty() {
            return None;
        }
        let covering: Vec<usize> =
            scans.iter().copied().filter(|s| self.may_cover(*s, table, &primary)).collect();
        let scans = if covering.is_empty() { scans } else { covering };
        let label = |step: &usize| self.subject.history.steps[*step].label.as_str();
        let scans: Vec<&str> = scans.iter().map(label).collect();
        let text =
            format!("has locked the gap of {} for the new row ({})", of.name, scans.join(", "));
        Some(Hold { text, rule })
    }

    /// Whether a step locks the gaps that it scans: all but a plain INSERT.
    fn locks_gaps(&self, step: usize) -> bool {
        !matches!(
            self.operation(step),
            Some(Stmt::Write(Write::Insert(insert)))
                if insert.conflict == Conflict::Fail
                    && !matches!(insert.source, InsertSource::Select(_))
        )
    }

    /// The cells of one key in each row of an INSERT; none for a row with NULL. None as
    /// a whole if they are not integers that the statement names.
    fn new_keys(
        &self,
        insert: &Insert,
        table: usize,
        key: usize,
    ) -> Option<Vec<Option<Vec<Value>>>> {
        let of = &self.subject.reading.schema.tables[table];
        let InsertSource::Values(rows) = &insert.source else { return None };
        let place = |column: usize| match insert.columns.is_empty() {
            true => of.writable().position(|c| c.name == of.columns[column].name),
            false => insert.columns.iter().position(|c| *c == of.columns[column].name),
        };
        let cell = |row: &Vec<Expr>, column: usize| {
            let given = place(column).and_then(|place| row.get(place));
            let literal = match given {
                Some(Expr::Literal(literal)) => Some(literal),
                Some(_) => return None,
                None => of.columns[column].default.as_ref(),
            };
            match literal {
                None | Some(Literal::Null) => Some(Value::Null),
                Some(Literal::Int(n)) => Some(Value::Int(*n)),
                Some(_) => None,
            }
        };
        let key = &self.keys[table][key];
        let is_integer =
            |c: &usize| of.columns.get(*c).is_some_and(|c| c.of_type.class() == Class::Integer);
        if key.condition.is_some() || !key.columns.iter().all(is_integer) {
            return None;
        }
        let cells = |row: &Vec<Expr>| -> Option<Option<Vec<Value>>> {
            let cells: Option<Vec<Value>> = key.columns.iter().map(|c| cell(row, *c)).collect();
            cells.map(|cells| (!cells.contains(&Value::Null)).then_some(cells))
        };
        rows.iter().map(cells).collect()
    }

    /// Whether any version of a row, deleted or not, has a key.
    fn has_ever_been(&self, table: usize, key: usize, cells: &[Value]) -> bool {
        let versions = self.world.tables()[table].iter().flat_map(|chain| &chain.versions);
        versions.into_iter().any(|v| self.key_of(table, key, v).as_deref() == Some(cells))
    }

    /// Whether the gaps that a step scanned may contain one of the new primary keys: a
    /// search for one primary key that is not there locks one gap.
    fn may_cover(&self, step: usize, table: usize, new: &[Vec<Value>]) -> bool {
        let Some(searched) = self.searched_key(step, table) else { return true };
        let [primary] = self.subject.reading.schema.tables[table].primary_key.as_slice() else {
            return true;
        };
        let columns = &self.subject.reading.schema.tables[table].columns;
        let Some(column) = columns.iter().position(|c| c.name == *primary) else { return true };
        let whole = |value: &Value| match value {
            Value::Int(n) => Some(*n),
            _ => None,
        };
        let versions = self.world.tables()[table].iter().flat_map(|chain| &chain.versions);
        let there: Vec<i64> = versions.filter_map(|v| whole(&v.row[column])).collect();
        let new = new.iter().filter_map(|cells| cells.first().and_then(whole));
        let mut covered = new.map(|n| (n.min(searched), n.max(searched)));
        covered.any(|(low, high)| !there.iter().any(|n| (low..=high).contains(n)))
    }

    /// The integer that a step compares the primary key with, if that is its condition.
    fn searched_key(&self, step: usize, table: usize) -> Option<i64> {
        let filter =
            match self.operation(step)? {
                Stmt::Select(Select {
                    from: Some(Source::Table { .. }), joins, filter, ..
                }) if joins.is_empty() => filter,
                Stmt::Write(Write::Update(update)) if update.join.is_none() => &update.filter,
                Stmt::Write(Write::Delete(delete)) if delete.join.is_none() => &delete.filter,
                _ => return None,
            };
        let Some(Expr::Binary(Binary::Equal, left, right)) = filter else { return None };
        let primary = &self.subject.reading.schema.tables[table].primary_key;
        match (&**left, &**right) {
            (Expr::Column { name, .. }, Expr::Literal(Literal::Int(n)))
                if *primary == [name.clone()] =>
            {
                Some(*n)
            }
            _ => None,
        }
    }

    /// Records for the victim of a deadlock which statements wait for each other.
    pub fn note_deadlock(&mut self, tx: TxId, step: usize) {
        let session = self.world.session(tx).to_string();
        let steps = &self.subject.history.steps;
        let others: Vec<&str> = self
            .world
            .waiting()
            .iter()
            .filter(|waiting| steps[**waiting].session != session)
            .map(|waiting| steps[*waiting].label.as_str())
            .collect();
        if others.is_empty() {
            return;
        }
        let others = others.join(" and ");
        if !self.subject.history.outcome(step).waited {
            let locking = &self.world.concurrency(tx).locking;
            let holders = match locking.waits {
                Waits::Rows | Waits::Scans => self.users_of_tables(tx, step),
                Waits::Database | Waits::Never | Waits::Unknown => Vec::new(),
            };
            let waits = |holder: &TxId| {
                let session = self.world.session(*holder);
                self.world.waiting().iter().any(|w| steps[*w].session == session)
            };
            let holders: Vec<TxId> = holders.into_iter().filter(waits).collect();
            if !holders.is_empty() {
                self.note_holders("would wait for", (tx, step), &holders);
            }
        }
        self.trace.note(step, format!("it and {others} wait for each other"));
    }
}
