//! Changes by the actions of foreign keys, which write rows that no statement names.
//!
//! ON DELETE CASCADE takes rows away. ON DELETE SET NULL and ON UPDATE CASCADE change a column
//! without a mark, so tables with such keys have one column more: the *image* of these columns as
//! the last statement left them. Where it differs, a version ends with the image of what is there
//! (`0r1@,4,!7.`), and the next write keeps that in its list. What a key refers to, and what
//! became of that row, tells which statement it was:
//!
//! ```text
//!   row 1r2 of the child, key 5 ──► row 0r1 of the parent with key 5 ──► deleted by statement 4
//!                                                                   └─► key 7, by statement 6
//! ```

use super::action_mark::{CHANGED, action, is_unknown};
use super::decode::{Entry, ProbeResult, Version};
use super::history::TransactionObservations;
use super::tables::{column_of, text};
use super::{Instrument, Probe, RowsOf, StatementId};
use isolde_model::Value;
use isolde_model::history::TxEnd;
use isolde_model::value::Row;
use isolde_sql::dialect::Family;
use isolde_sql::{Binary, Class, Expr, ForeignKey, Function, Literal, OnDelete, Table, Type};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// After each value of an image.
const END: &str = ".";
/// A value of an image that is NULL.
const NULL: &str = "-";

/// A foreign key with an action, by positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    pub(super) child: usize,
    pub(super) column: usize,
    pub(super) parent: usize,
    pub(super) parent_column: usize,
    deletes: bool,
    nulls: bool,
    updates: bool,
}

impl Action {
    fn changes(&self) -> bool {
        self.nulls || self.updates
    }
}

/// The columns of a table that actions change.
fn changing(table: &Table) -> impl Iterator<Item = &ForeignKey> {
    table
        .foreign_keys
        .iter()
        .filter(|key| key.on_delete == OnDelete::SetNull || key.update_cascades)
}

impl Instrument {
    /// The foreign keys with actions.
    pub(super) fn actions(&self) -> Vec<Action> {
        let tables = &self.schema.tables;
        let mut all = Vec::new();
        for (child, table) in tables.iter().enumerate() {
            for key in &table.foreign_keys {
                let at = |table: &Table, column: &str| {
                    table.columns.iter().position(|c| c.name == column)
                };
                let deletes = key.on_delete == OnDelete::Cascade;
                let nulls = key.on_delete == OnDelete::SetNull;
                let (Some(parent), Some(column)) =
                    (self.place(&key.parent), at(table, &key.column))
                else {
                    continue;
                };
                let Some(parent_column) = at(&tables[parent], &key.parent_column) else { continue };
                let updates = key.update_cascades;
                if deletes || nulls || updates {
                    all.push(Action {
                        child,
                        column,
                        parent,
                        parent_column,
                        deletes,
                        nulls,
                        updates,
                    });
                }
            }
        }
        all
    }

    /// Whether actions change a table in a way that cannot be followed.
    pub(super) fn has_untracked_actions(&self, table: usize) -> bool {
        let all = self.actions();
        let own: Vec<&Action> = all.iter().filter(|action| action.child == table).collect();
        let keys = &self.schema.tables[table].foreign_keys;
        let with_actions = |key: &&ForeignKey| {
            key.update_cascades || matches!(key.on_delete, OnDelete::Cascade | OnDelete::SetNull)
        };
        let is_number = |action: &&Action| {
            let of_type = &self.schema.tables[table].columns[action.column].of_type;
            of_type.class() == Class::Integer
        };
        own.len() < keys.iter().filter(with_actions).count()
            || !own.iter().all(is_number)
            || own.iter().any(|action| self.refers_to_itself(action.child, action.parent, &all))
    }

    /// Whether actions may lead from a table back to it.
    fn refers_to_itself(&self, child: usize, parent: usize, all: &[Action]) -> bool {
        let mut reached = vec![parent];
        let mut next = 0;
        while let Some(table) = reached.get(next).copied() {
            next += 1;
            let above = all.iter().filter(|action| action.child == table).map(|a| a.parent);
            let new: Vec<usize> = above.filter(|parent| !reached.contains(parent)).collect();
            reached.extend(new);
        }
        reached.contains(&child)
    }

    /// The tables of which an action deletes rows when rows of a table are deleted.
    pub(super) fn cascades_from(&self, table: usize) -> Vec<Action> {
        self.actions().into_iter().filter(|a| a.parent == table && a.deletes).collect()
    }

    /// The tables that actions change when rows of a table are changed or deleted.
    pub(super) fn changed_with(&self, table: usize) -> Vec<usize> {
        self.actions().into_iter().filter(|a| a.parent == table).map(|a| a.child).collect()
    }

    /// The columns of a table that actions change.
    pub(super) fn changing_columns(&self, table: usize) -> Vec<&str> {
        changing(&self.schema.tables[table]).map(|key| key.column.as_str()).collect()
    }

    /// The image of values, as an expression.
    pub(super) fn keys_image(&self, values: Vec<Expr>) -> Expr {
        let to = match self.capabilities.family {
            Family::Mysql => Type::Other("char".into()),
            _ => Type::Text(None),
        };
        let one = |value: Expr| {
            let cast = Expr::Cast { of: Box::new(value), to: to.clone() };
            [Expr::Call(Function::Coalesce, vec![cast, text(NULL)]), text(END)]
        };
        self.joined(values.into_iter().flat_map(one).collect())
    }

    /// The end of a version whose row an action has changed; nothing for a table without such
    /// actions.
    pub(super) fn pending(&self, table: usize, qualifier: &str) -> Option<Expr> {
        let columns = self.changing_columns(table);
        if columns.is_empty() {
            return None;
        }
        let values: Vec<Expr> =
            columns.into_iter().map(|name| column_of(qualifier, name)).collect();
        let image = self.keys_image(values);
        let kept = column_of(qualifier, &super::tables::keys_column(table));
        let changed = self.joined(vec![text(&format!(",{CHANGED}")), image.clone()]);
        Some(Expr::Case {
            operand: None,
            branches: vec![(Expr::binary(Binary::Equal, kept, image), text(""))],
            otherwise: Some(Box::new(changed)),
        })
    }

    /// The image of a row of the setup.
    pub(super) fn first_image(&self, table: usize, row: &[Literal]) -> String {
        let columns = &self.schema.tables[table].columns;
        let value = |name: &str| {
            let at = columns.iter().position(|c| c.name == name);
            match at.and_then(|at| row.get(at)) {
                Some(Literal::Int(n)) => n.to_string(),
                Some(Literal::Number(digits)) => digits.clone(),
                _ => NULL.into(),
            }
        };
        self.changing_columns(table).into_iter().map(|name| value(name) + END).collect()
    }

    /// The image of the columns of a row that actions change.
    fn image_of(&self, table: usize, row: &Row) -> String {
        let names = self.changing_columns(table);
        let columns = &self.schema.tables[table].columns;
        let value = |name: &str| {
            let at = columns.iter().position(|c| c.name == name);
            at.and_then(|at| row.get(at)).and_then(shown).unwrap_or_else(|| NULL.into())
        };
        names.into_iter().map(|name| value(name) + END).collect()
    }
}

/// A value of a key as text; none for NULL.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Int(n) => Some(n.to_string()),
        Value::Text(text) | Value::Decimal(text) => Some(text.clone()),
        other => Some(format!("{other:?}")),
    }
}

/// A row, and its list of writers as it was read.
type ReadList = (String, Vec<StatementId>);

/// What the actions of one statement left of a row.
type Step = (StatementId, Row);

/// The most actions in a row without another write of that row.
const MOST_STEPS: usize = 4;

/// Which statements actions belong to: those since the last write, at the end of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Attribution {
    by_list: HashMap<ReadList, Vec<Step>>,
    /// Rows with an action of which that is not known.
    lost: BTreeSet<String>,
}

/// How a row of a parent was changed: its values before and, unless it was deleted, after.
struct Transition {
    table: usize,
    by: StatementId,
    before: Row,
    after: Option<Row>,
}

/// All that the observations say about rows, by their lists as they were read.
struct Known<'i> {
    instrument: &'i Instrument,
    actions: Vec<Action>,
    lists: BTreeMap<String, BTreeSet<Vec<StatementId>>>,
    contents: HashMap<ReadList, Row>,
    deletions: Vec<Transition>,
    attribution: Attribution,
    /// Rows that an action deleted, with their last versions.
    removed: Vec<(StatementId, Version)>,
}

/// Completes the observations of a run by what actions did, and says which of their statements it
/// was. `first` and `last` are all rows before and after.
pub(super) fn attribute(
    instrument: &Instrument,
    transactions: &mut [TransactionObservations],
    first: &mut Vec<Version>,
    last: &mut Vec<Version>,
) -> Attribution {
    let actions = instrument.actions();
    if actions.is_empty() {
        return Attribution::default();
    }
    let mut known = Known {
        instrument,
        actions,
        lists: BTreeMap::new(),
        contents: HashMap::new(),
        deletions: Vec::new(),
        attribution: Attribution::default(),
        removed: Vec::new(),
    };
    first.iter().chain(last.iter()).for_each(|version| known.version(version));
    let mut lasting: BTreeSet<StatementId> = BTreeSet::new();
    let mut gone: BTreeSet<String> = BTreeSet::new();
    for transaction in transactions.iter() {
        for statement in &transaction.statements {
            let lasts = transaction.how == TxEnd::Committed && !statement.undone;
            lasting.extend(lasts.then_some(statement.id));
            for (probe, results) in &statement.results {
                known.results(statement.id, probe, results);
                if let (Probe::Rows { what: RowsOf::Deleted, .. }, ProbeResult::Rows(rows)) =
                    (probe, results)
                    && lasts
                {
                    gone.extend(rows.iter().map(|version| version.entry.row.clone()));
                }
            }
        }
    }
    gone.extend(last.iter().map(|version| version.entry.row.clone()));
    let returns = instrument.capabilities.returns_written;
    while known.attribute_changes()
        // Elsewhere a probe has read what is deleted, and not all writes are known.
        || returns && known.attribute_deletions(&lasting, &mut gone)
    {}
    known.give_up_the_rest();
    let Known { attribution, removed, .. } = known;
    attribution.apply_to(first);
    attribution.apply_to(last);
    for statement in transactions.iter_mut().flat_map(|t| &mut t.statements) {
        statement.results.iter_mut().for_each(|(_, results)| attribution.apply(results));
        let changed = attribution.versions_left_by(statement.id);
        let removed = removed.iter().filter(|(by, _)| *by == statement.id);
        let removed = removed.filter_map(|(_, version)| {
            Some(Version { entry: attribution.entry(&version.entry)?, ..version.clone() })
        });
        for (what, rows) in [(RowsOf::Written, changed), (RowsOf::Deleted, removed.collect())] {
            for version in rows {
                let Some(table) = version.entry.table() else { continue };
                let probe = Probe::Rows { own_columns: 0, table, what, predicate: None };
                statement.results.push((probe, ProbeResult::Rows(vec![version])));
            }
        }
    }
    attribution
}

impl Known<'_> {
    fn entry(&mut self, entry: &Entry) {
        self.lists.entry(entry.row.clone()).or_default().insert(entry.writes.clone());
    }

    fn version(&mut self, version: &Version) {
        let Version { entry, origin, past, holds } = version;
        self.entry(entry);
        origin.iter().for_each(|origin| self.entry(origin));
        self.contents.insert((entry.row.clone(), entry.writes.clone()), holds.clone());
        // The images stand for the lists before each statement, but not before actions.
        let direct = (0..entry.writes.len()).rev().filter(|at| !is_unknown(entry.writes[*at]));
        for (at, image) in direct.zip(past.iter().rev()) {
            let before = (entry.row.clone(), entry.writes[..at].to_vec());
            self.contents.entry(before).or_insert_with(|| image.clone());
        }
    }

    fn results(&mut self, id: StatementId, probe: &Probe, results: &ProbeResult) {
        match results {
            ProbeResult::Nothing | ProbeResult::Count(_) => {}
            ProbeResult::Read(cells) => {
                cells.iter().flatten().for_each(|entry| self.entry(entry));
            }
            ProbeResult::Rows(rows) => {
                rows.iter().for_each(|version| self.version(version));
                let Probe::Rows { what: RowsOf::Deleted | RowsOf::Replaced, table, .. } = probe
                else {
                    return;
                };
                for version in rows {
                    let (table, before) = (*table, version.holds.clone());
                    self.deletions.push(Transition { table, by: id, before, after: None });
                }
            }
        }
    }

    /// What became of the rows of a table, as far as their contents are known.
    fn transitions(&self, table: usize) -> Vec<Transition> {
        let mut all: Vec<Transition> = Vec::new();
        for (row, lists) in &self.lists {
            if (Entry { row: row.clone(), writes: Vec::new() }).table() != Some(table) {
                continue;
            }
            for list in lists {
                for at in 0..list.len() {
                    let held = |to: usize| self.contents.get(&(row.clone(), list[..to].to_vec()));
                    let (Some(by), Some(before)) = (self.by(row, &list[..=at]), held(at)) else {
                        continue;
                    };
                    let (before, after) = (before.clone(), held(at + 1).cloned());
                    // Without what it held afterwards it may have been anything.
                    if after.is_some() {
                        all.push(Transition { table, by, before, after });
                    }
                }
            }
        }
        for Transition { by, before, .. } in self.deletions.iter().filter(|t| t.table == table) {
            all.push(Transition { table, by: *by, before: before.clone(), after: None });
        }
        all
    }

    /// The last writer of a list.
    fn by(&self, row: &str, list: &[StatementId]) -> Option<StatementId> {
        let last = *list.last()?;
        match is_unknown(last) {
            false => Some(last),
            true => {
                let steps = self.attribution.by_list.get(&(row.to_string(), list.to_vec()))?;
                steps.last().map(|(by, _)| *by)
            }
        }
    }

    /// Finds statements of actions that changed rows. Whether there were any.
    fn attribute_changes(&mut self) -> bool {
        let mut found = Vec::new();
        for (row, lists) in &self.lists {
            for list in lists {
                let open = (0..list.len()).find(|at| self.by(row, &list[..=*at]).is_none());
                let Some(at) = open else { continue };
                if let Some(steps) = self.steps_to(row, &list[..=at]) {
                    found.push(((row.clone(), list[..=at].to_vec()), steps));
                }
            }
        }
        let progress = !found.is_empty();
        for (list, steps) in found {
            let last = steps.last().map(|(_, holds)| holds.clone());
            self.contents.extend(last.map(|holds| (list.clone(), holds)));
            self.attribution.by_list.insert(list, steps);
        }
        progress
    }

    /// The statements whose actions led to the end of a list. None unless exactly one sequence
    /// fits.
    fn steps_to(&self, row: &str, list: &[StatementId]) -> Option<Vec<Step>> {
        let (wanted, before) = list.split_last()?;
        let table = (Entry { row: row.to_string(), writes: Vec::new() }).table()?;
        let old = self.contents.get(&(row.to_string(), before.to_vec()))?;
        // What a generated column holds then is not known.
        if self.instrument.schema.tables[table].columns.iter().any(|c| c.generated.is_some()) {
            return None;
        }
        let mut fits: Vec<Vec<Step>> = Vec::new();
        let mut open: Vec<Vec<Step>> = vec![Vec::new()];
        while let Some(steps) = open.pop() {
            let held = steps.last().map_or(old, |(_, holds)| holds);
            for (by, holds) in self.next_steps(table, held) {
                if steps.iter().any(|(earlier, _)| *earlier == by) {
                    continue;
                }
                let is_wanted = action(&self.instrument.image_of(table, &holds)) == *wanted;
                let longer: Vec<Step> = steps.iter().cloned().chain([(by, holds)]).collect();
                if is_wanted {
                    fits.push(longer.clone());
                }
                if longer.len() < MOST_STEPS {
                    open.push(longer);
                }
            }
        }
        if fits.len() == 1 { fits.pop() } else { None }
    }

    /// What actions may have made of a row.
    fn next_steps(&self, table: usize, held: &Row) -> Vec<Step> {
        let mut found: Vec<Step> = Vec::new();
        for of in self.actions.iter().filter(|a| a.child == table && a.changes()) {
            let Some(key) = held.get(of.column).and_then(shown) else { continue };
            for change in self.transitions(of.parent) {
                let at = |row: &Row| row.get(of.parent_column).cloned();
                if at(&change.before).as_ref().and_then(shown).as_ref() != Some(&key) {
                    continue;
                }
                let new = match &change.after {
                    None if of.nulls => Some(Value::Null),
                    Some(after) if of.updates => at(after),
                    _ => None,
                };
                let Some(new) = new.filter(|new| shown(new).as_ref() != Some(&key)) else {
                    continue;
                };
                let mut holds = held.clone();
                holds[of.column] = new;
                if !found.contains(&(change.by, holds.clone())) {
                    found.push((change.by, holds));
                }
            }
        }
        found
    }

    /// Finds statements of actions that deleted rows: those that are gone without a statement
    /// that says so. Whether there were any.
    fn attribute_deletions(
        &mut self,
        lasting: &BTreeSet<StatementId>,
        gone: &mut BTreeSet<String>,
    ) -> bool {
        let mut found = Vec::new();
        for (row, lists) in &self.lists {
            let entry = Entry { row: row.clone(), writes: Vec::new() };
            let Some(table) = entry.table() else { continue };
            let is_lasting = |id: &StatementId| lasting.contains(id);
            if gone.contains(row) || !entry.inserted_by().as_ref().is_none_or(is_lasting) {
                continue;
            }
            let all_last = |list: &&Vec<StatementId>| {
                (0..list.len())
                    .all(|at| self.by(row, &list[..=at]).as_ref().is_some_and(is_lasting))
            };
            let Some(list) = lists.iter().filter(all_last).max_by_key(|list| list.len()) else {
                continue;
            };
            let Some(holds) = self.contents.get(&(row.clone(), list.clone())) else { continue };
            let mut fits: BTreeSet<StatementId> = BTreeSet::new();
            for of in self.actions.iter().filter(|a| a.child == table && a.deletes) {
                let Some(key) = holds.get(of.column).and_then(shown) else { continue };
                let deletes = self.deletions.iter().filter(|t| t.table == of.parent);
                let of_key = |t: &&Transition| {
                    t.before.get(of.parent_column).and_then(shown).as_ref() == Some(&key)
                };
                fits.extend(deletes.filter(of_key).map(|t| t.by).filter(is_lasting));
            }
            if let (1, Some(by)) = (fits.len(), fits.first()) {
                let entry = Entry { row: row.clone(), writes: list.clone() };
                let (origin, past) = (Vec::new(), Vec::new());
                let version = Version { entry, origin, past, holds: holds.clone() };
                found.push((*by, table, version));
            }
        }
        let progress = !found.is_empty();
        for (by, table, version) in found {
            gone.insert(version.entry.row.clone());
            let before = version.holds.clone();
            self.deletions.push(Transition { table, by, before, after: None });
            self.removed.push((by, version));
        }
        progress
    }

    fn give_up_the_rest(&mut self) {
        for (row, lists) in &self.lists {
            let is_open = |list: &Vec<StatementId>| {
                (0..list.len()).any(|at| self.by(row, &list[..=at]).is_none())
            };
            if lists.iter().any(is_open) {
                self.attribution.lost.insert(row.clone());
            }
        }
    }
}

impl Attribution {
    /// Whether the statement of each action is known.
    pub(super) fn is_complete(&self) -> bool {
        self.lost.is_empty()
    }

    /// An entry with the statements of actions in its list; none of a row of which they are not
    /// known.
    pub(super) fn entry(&self, entry: &Entry) -> Option<Entry> {
        if self.lost.contains(&entry.row) {
            return None;
        }
        let mut writes = Vec::new();
        for (at, id) in entry.writes.iter().enumerate() {
            match is_unknown(*id) {
                false => writes.push(*id),
                true => {
                    let list = (entry.row.clone(), entry.writes[..=at].to_vec());
                    writes.extend(self.by_list.get(&list)?.iter().map(|(by, _)| *by));
                }
            }
        }
        Some(Entry { row: entry.row.clone(), writes })
    }

    /// The versions of rows that actions of a statement left.
    fn versions_left_by(&self, statement: StatementId) -> Vec<Version> {
        let mut found = Vec::new();
        for ((row, list), steps) in &self.by_list {
            let before = Entry { row: row.clone(), writes: list[..list.len() - 1].to_vec() };
            let Some(mut entry) = self.entry(&before) else { continue };
            for (by, holds) in steps {
                entry.writes.push(*by);
                if *by == statement {
                    let (origin, past) = (Vec::new(), Vec::new());
                    found.push(Version {
                        entry: entry.clone(),
                        origin,
                        past,
                        holds: holds.clone(),
                    });
                }
            }
        }
        let key = |version: &Version| (version.entry.row.clone(), version.entry.writes.clone());
        found.sort_by_key(key);
        found.dedup();
        found
    }

    fn apply_to(&self, versions: &mut Vec<Version>) {
        let resolved = versions.drain(..).filter_map(|version| {
            let origin = version.origin.iter().filter_map(|entry| self.entry(entry)).collect();
            Some(Version { entry: self.entry(&version.entry)?, origin, ..version })
        });
        *versions = resolved.collect();
    }

    fn apply(&self, results: &mut ProbeResult) {
        match results {
            ProbeResult::Nothing | ProbeResult::Count(_) => {}
            ProbeResult::Read(cells) => {
                for cell in cells {
                    *cell = cell.iter().filter_map(|entry| self.entry(entry)).collect();
                }
            }
            ProbeResult::Rows(versions) => self.apply_to(versions),
        }
    }
}
