//! What was observed, against what the rules allow.

use super::finals::plain_query;
use super::rules::{Locks, Rule};
use super::store::{Chain, Store, TxId, Version};
use super::transaction::End;
use super::walk::Walk;
use super::{Operation, Stop};
use crate::generate::BeginForm;
use crate::history::{DbError, ErrorClass, What};
use crate::sql::Stmt;
use crate::transcript::reply_text;
use crate::value::{Row, rows_without, same_multiset};

/// What a statement comes to if nothing is in its way.
pub enum Expected {
    Rows(Vec<Row>),
    Count(u64),
}

/// What may or must keep a statement from going through.
#[derive(Default)]
pub struct Trouble {
    must: Vec<Obstacle>,
    may: Vec<(ErrorClass, &'static Rule)>,
    /// Somebody who is still at work holds what it needs.
    held: Option<(&'static Rule, String)>,
}

struct Obstacle {
    class: ErrorClass,
    rule: &'static Rule,
    why: String,
}

impl Trouble {
    pub fn must(&mut self, class: ErrorClass, rule: &'static Rule, why: impl Into<String>) {
        self.must.push(Obstacle { class, rule, why: why.into() });
    }

    /// The engine refuses it, and says so in its own way.
    pub fn conflict(&mut self, rule: &'static Rule, why: &str) {
        self.must(ErrorClass::Serialization, rule, why);
        self.must(ErrorClass::WriteConflict, rule, why);
    }

    pub fn may(&mut self, class: ErrorClass, rule: &'static Rule) {
        self.may.push((class, rule));
    }

    pub fn held(&mut self, rule: &'static Rule, why: String) {
        self.held.get_or_insert((rule, why));
    }

    /// Whether the statement cannot go through.
    pub fn is_certain(&self) -> bool {
        !self.must.is_empty()
    }

    /// A statement went through: nothing may have been in its way.
    fn lets_through(&self, step: usize) -> Result<(), Stop> {
        let certain = self.must.first().map(|o| (o.rule, &o.why));
        let in_the_way = certain.or(self.held.as_ref().map(|(rule, why)| (*rule, why)));
        let Some((rule, why)) = in_the_way else { return Ok(()) };
        let why = format!("it went through, but {why}");
        Err(Stop::Outside { step: Some(step), rule, why })
    }

    /// The rule by which an error of this class is allowed.
    fn explains(&self, class: ErrorClass) -> Option<&'static Rule> {
        let must = self.must.iter().find(|o| o.class == class).map(|o| o.rule);
        must.or_else(|| self.may.iter().find(|(c, _)| *c == class).map(|(_, rule)| *rule))
    }
}

impl Walk<'_> {
    /// Compares a statement with what was observed. When it failed, what it
    /// did to the store is taken back.
    pub fn conclude(
        &mut self,
        tx: TxId,
        step: usize,
        expected: Expected,
        trouble: Trouble,
        before: Option<Store>,
    ) -> Result<(), Stop> {
        let Some(reply) = self.subject.reply(step) else { return Ok(()) };
        let rules = self.conduct(tx).rules;
        self.may_have_been_seen(tx, step);
        if let What::Error(error) = reply {
            if let Some(before) = before {
                self.store = before;
            }
            self.locks.retain(|l| l.by != tx || l.statement != self.statements);
            self.leave_uncertain_marks(tx);
            self.table_locks.retain(|l| l.by != tx || l.statement != self.statements);
            self.taken_twice.retain(|t| t.by != tx || t.statement != self.statements);
            return self.failed(tx, step, error, &trouble);
        }
        trouble.lets_through(step)?;
        let (rule, difference) = match (&expected, reply) {
            (Expected::Rows(rows), What::Rows { rows: seen, .. }) => {
                let differs = !same_multiset(rows, seen);
                (self.rule_of(tx, step), differs.then(|| compared(seen, rows)))
            }
            (Expected::Count(count), What::Affected { count: seen }) => {
                let text = || format!("it changed {}; the rules say {count}", rows_in_words(*seen));
                (rules.write, (seen != count).then(text))
            }
            (Expected::Count(count), What::Rows { rows, .. }) => {
                let text = || {
                    let seen = rows_in_words(rows.len() as u64);
                    format!("it returned {seen}; the rules say {count}")
                };
                (rules.write, (rows.len() as u64 != *count).then(text))
            }
            (_, other) => {
                let why = format!("`{}` is no answer to such a statement", reply_text(other));
                return Err(Stop::NotModelled { step, why });
            }
        };
        match difference {
            Some(why) => Err(Stop::Outside { step: Some(step), rule, why }),
            None => {
                self.txs[tx].has_read = true;
                Ok(())
            }
        }
    }

    /// An error: which rule allows it here?
    fn failed(
        &mut self,
        tx: TxId,
        step: usize,
        error: &DbError,
        trouble: &Trouble,
    ) -> Result<(), Stop> {
        let conduct = self.conduct(tx);
        let (rules, may_abort) = (conduct.rules, conduct.may_abort);
        let database = conduct.locks == Locks::Database;
        let others = self.others_open(tx);
        self.poison(tx);
        let rule = match error.class {
            ErrorClass::Deadlock if others && self.somebody_waits(step) => Some(rules.deadlock),
            ErrorClass::LockTimeout if others && self.subject.history.outcome(step).waited => {
                Some(rules.held_row)
            }
            ErrorClass::Busy if database && others => Some(rules.held_row),
            ErrorClass::Serialization if may_abort.is_some() => may_abort,
            class => trouble.explains(class),
        };
        match (rule, error.class) {
            (Some(rule), _) => {
                self.use_rule(step, rule);
                Ok(())
            }
            (None, class) if is_of_rules(class) && !is_of_a_value(error) => {
                let why = format!(
                    "it failed with {} ({}), and no rule lets it fail here",
                    error.code, error.message
                );
                Err(Stop::Outside { step: Some(step), rule: self.rule_of(tx, step), why })
            }
            (None, _) => {
                let why = format!("an error of its own: {}", error.code);
                Err(Stop::NotModelled { step, why })
            }
        }
    }

    /// The rule by which a statement finds its rows: plain reads have one, and
    /// writes and locking reads another.
    fn rule_of(&self, tx: TxId, step: usize) -> &'static Rule {
        let rules = self.conduct(tx).rules;
        match self.operation(step) {
            Some(Stmt::Select(select)) if select.locking.is_none() => rules.read,
            // A locking read that does not lock is a plain one.
            _ if self.used[step].contains(&rules.read) => rules.read,
            _ => rules.write,
        }
    }

    /// An error ends what was done since the last savepoint, where it leaves
    /// nothing but a rollback: rows and locks are free at once.
    pub fn poison(&mut self, tx: TxId) {
        if !self.conduct(tx).poisons || self.txs[tx].autocommit {
            return;
        }
        self.txs[tx].failed = true;
        if self.conduct(tx).failed_holds {
            return;
        }
        let points = self.savepoints.get(&self.txs[tx].session);
        let since = points.and_then(|p| p.last()).map(|(_, before)| *before);
        self.store.roll_back(tx, since);
        self.locks.retain(|l| l.by != tx || since.is_some_and(|s| l.statement <= s));
    }

    /// A circle has at least one who waits: the victim itself, or another.
    fn somebody_waits(&self, victim: usize) -> bool {
        self.subject.history.outcome(victim).waited || !self.waiting.is_empty()
    }

    pub fn others_open(&self, tx: TxId) -> bool {
        self.txs.iter().enumerate().any(|(other, t)| other != tx && t.end == End::Open)
    }

    pub fn begun(&mut self, tx: TxId, step: usize, form: BeginForm) -> Result<(), Stop> {
        let Some(reply) = self.subject.reply(step) else { return Ok(()) };
        if let What::Error(error) = reply {
            return self.failed(tx, step, error, &Trouble::default());
        }
        if form == BeginForm::Immediate {
            let mut trouble = Trouble::default();
            self.needs_database(tx, step, &mut trouble);
            self.txs[tx].writer = true;
            self.txs[tx].began = self.started.get(&step).copied().unwrap_or(self.now);
            if let Some((rule, why)) = trouble.held {
                return Err(Stop::Outside { step: Some(step), rule, why });
            }
        }
        Ok(())
    }

    /// COMMIT, ROLLBACK and the like; how the transaction ended is another
    /// event.
    pub async fn control(&mut self, tx: TxId, step: usize) -> Result<(), Stop> {
        let operation = &self.subject.reading.operations[step];
        let commits = matches!(operation, Operation::Commit);
        let mut trouble =
            if commits { self.commit_trouble(tx, step).await? } else { Trouble::default() };
        match self.subject.reply(step) {
            Some(What::Error(error)) => {
                self.may_refuse(tx, &mut trouble);
                self.failed(tx, step, error, &trouble)?;
                if self.conduct(tx).merges_at_commit {
                    // It is over, though the engine says that it is open.
                    self.store.roll_back(tx, None);
                    self.txs[tx].began = self.now;
                }
                Ok(())
            }
            Some(_) if commits => {
                trouble.lets_through(step)?;
                self.commits_beside_readers(tx, step)
            }
            Some(_) if matches!(operation, Operation::Rollback) => {
                self.use_rule(step, self.conduct(tx).rules.rollback);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether another transaction was open at some time while this one was.
    pub fn met_others(&self, tx: TxId) -> bool {
        let since = self.txs[tx].began;
        let meets = |(other, t): (TxId, &super::transaction::Tx)| {
            other != tx
                && other != super::transaction::FIRST_ROWS
                && match t.end {
                    End::Open => true,
                    End::Committed(at) => at >= since,
                    End::RolledBack => false,
                }
        };
        self.txs.iter().enumerate().any(meets)
    }

    /// Where nobody waits, whatever meets another transaction may be refused.
    pub fn may_refuse(&self, tx: TxId, trouble: &mut Trouble) {
        let conduct = self.conduct(tx);
        if conduct.refuses && self.met_others(tx) {
            let rules = conduct.rules;
            trouble.may(ErrorClass::WriteConflict, rules.changed_row);
            trouble.may(ErrorClass::Serialization, rules.changed_row);
            trouble.may(ErrorClass::Busy, rules.changed_row);
            trouble.may(ErrorClass::Constraint, rules.unique);
        }
    }

    /// Who writes needs the database for itself, where there is one writer.
    pub fn needs_database(&mut self, tx: TxId, step: usize, trouble: &mut Trouble) {
        let conduct = self.conduct(tx);
        if conduct.locks != Locks::Database {
            return;
        }
        let rules = conduct.rules;
        let other =
            self.txs.iter().enumerate().find(|(o, t)| *o != tx && t.end == End::Open && t.writer);
        if let Some((_, other)) = other {
            let why = format!("{} is writing", other.session);
            trouble.held(rules.held_row, why);
        }
        let since = self.kept_snapshot(tx, step);
        let after = |o: TxId| matches!(self.txs[o].end, End::Committed(at) if at >= since);
        let changed = |chain: &Chain| {
            let others = |v: &Version| v.by != tx && after(v.by);
            let of_others = chain.versions.iter().position(others);
            of_others.is_some_and(|at| {
                let now = chain.versions.iter().rev().find(|v| others(v)).filter(|v| !v.dead);
                let was = at.checked_sub(1).map(|before| &chain.versions[before]);
                was.filter(|v| !v.dead).map(|v| &v.row) != now.map(|v| &v.row)
            })
        };
        if self.store.tables.iter().flatten().any(changed) {
            let why = "another has committed since it read";
            trouble.must(ErrorClass::Serialization, rules.changed_row, why);
        } else if (1..self.txs.len()).any(|o| o != tx && self.txs[o].writer && after(o)) {
            trouble.may(ErrorClass::Serialization, rules.changed_row);
        }
    }

    /// The rows at the end are those of the committed transactions.
    pub fn final_rows(&mut self) -> Result<(), Stop> {
        let subject = self.subject;
        let finals = &subject.history.final_state;
        for (place, table) in subject.reading.schema.tables.iter().enumerate() {
            let query = plain_query(table);
            let Some(seen) = finals.iter().find(|f| f.query == query) else { continue };
            let rows: Vec<Row> = self
                .store
                .places(place)
                .filter_map(|p| self.newest(p, super::transaction::FIRST_ROWS).filter(|v| !v.dead))
                .map(|v| (*v.row).clone())
                .collect();
            if !same_multiset(&rows, &seen.rows) {
                let rule = self.txs.iter().find_map(|t| t.conduct.as_ref());
                let Some(rule) = rule.map(|c| c.rules.rollback) else { return Ok(()) };
                let why =
                    format!("the final rows of {}: {}", table.name, compared(&seen.rows, &rows));
                return Err(Stop::Outside { step: None, rule, why });
            }
        }
        Ok(())
    }
}

fn rows_in_words(count: u64) -> String {
    if count == 1 { "1 row".into() } else { format!("{count} rows") }
}

/// A value that its type does not hold, whatever others do: a data exception
/// of the standard.
fn is_of_a_value(error: &DbError) -> bool {
    error.sqlstate.as_ref().is_some_and(|state| state.starts_with("22"))
}

/// Errors that rules are about; all others say something of the statement.
fn is_of_rules(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Deadlock
            | ErrorClass::Serialization
            | ErrorClass::WriteConflict
            | ErrorClass::LockTimeout
            | ErrorClass::Busy
            | ErrorClass::Constraint
            | ErrorClass::ReadOnly
    )
}

/// Two lists of rows, by what only one of them has.
pub fn compared(seen: &[Row], predicted: &[Row]) -> String {
    let (more, less) = (rows_without(seen, predicted), rows_without(predicted, seen));
    let text = |rows: &[Row]| {
        let cells = |row: &Row| {
            let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
            format!("({})", cells.join(", "))
        };
        rows.iter().map(cells).collect::<Vec<_>>().join(", ")
    };
    match (more.is_empty(), less.is_empty()) {
        (false, false) => format!("{} instead of {}", text(&more), text(&less)),
        (false, true) => format!("{} too many", text(&more)),
        (true, _) => format!("{} missing", text(&less)),
    }
}
