//! The comparison of the observed outcome of a statement with the allowed ones.

use crate::model::ReferenceModel;
use crate::stop::Stop;
use crate::world::{Chain, End, Store, TxId, Version};
use isolde_catalog::Rule;
use isolde_model::breach::{Breach, Obstacle, RowDiff};
use isolde_model::history::{DbError, ErrorClass, EventKind};
use isolde_model::parsed_case::Operation;
use isolde_model::transcript::reply_text;
use isolde_model::value::{Row, same_multiset};
use isolde_sql::BeginForm;
use isolde_sql::{Stmt, Write};

/// What a statement comes to if nothing is in its way.
pub enum Expected {
    Rows(Vec<Row>),
    Count(u64),
}

/// What may or must keep a statement from going through.
#[derive(Default)]
pub struct ExpectedErrors {
    required: Vec<RequiredError>,
    permitted: Vec<(ErrorClass, &'static Rule)>,
    /// The lock holder for which the statement would have to wait.
    blocked_by: Option<(&'static Rule, Obstacle)>,
}

/// An obstacle, with the error that it must lead to.
struct RequiredError {
    class: ErrorClass,
    rule: &'static Rule,
    obstacle: Obstacle,
}

impl ExpectedErrors {
    pub fn require(&mut self, class: ErrorClass, rule: &'static Rule, obstacle: Obstacle) {
        self.required.push(RequiredError { class, rule, obstacle });
    }

    /// Requires an error about a write conflict, of either class that engines use.
    pub fn conflict(&mut self, rule: &'static Rule, obstacle: Obstacle) {
        self.require(ErrorClass::Serialization, rule, obstacle.clone());
        self.require(ErrorClass::WriteConflict, rule, obstacle);
    }

    pub fn permit(&mut self, class: ErrorClass, rule: &'static Rule) {
        self.permitted.push((class, rule));
    }

    pub fn block(&mut self, rule: &'static Rule, obstacle: Obstacle) {
        self.blocked_by.get_or_insert((rule, obstacle));
    }

    /// Whether the statement cannot go through.
    pub fn is_certain(&self) -> bool {
        !self.required.is_empty()
    }

    /// What had to keep a statement from going through: obstacles that lead to an
    /// error first, and then the lock holder.
    fn breaches(&self) -> impl Iterator<Item = (&'static Rule, Breach)> {
        let certain = self.required.iter().map(|o| (o.rule, &o.obstacle));
        let held = self.blocked_by.iter().map(|(rule, obstacle)| (*rule, obstacle));
        let breach = |obstacle: &Obstacle| Breach::Proceeded { obstacle: obstacle.clone() };
        certain.chain(held).map(move |(rule, obstacle)| (rule, breach(obstacle)))
    }

    /// The rule by which an error of this class is allowed.
    fn explains(&self, class: ErrorClass) -> Option<&'static Rule> {
        let must = self.required.iter().find(|o| o.class == class).map(|o| o.rule);
        must.or_else(|| self.permitted.iter().find(|(c, _)| *c == class).map(|(_, rule)| *rule))
    }
}

impl ReferenceModel<'_> {
    /// Compares the expected outcome of a statement with the observed one. If the
    /// statement has failed, its changes to the store are undone.
    pub fn conclude(
        &mut self,
        tx: TxId,
        step: usize,
        expected: Expected,
        errors: ExpectedErrors,
        before: Option<Store>,
    ) -> Result<(), Stop> {
        let Some(reply) = self.subject.reply(step) else { return Ok(()) };
        self.record_visible_changes(tx, step);
        if let EventKind::Error(error) = reply {
            self.world.undo_statement(tx, before);
            self.commit_buffer.undo_statement(tx, self.world.statement());
            return self.failed(tx, step, error, &errors);
        }
        self.lets_through(step, &errors)?;
        let (rule, difference) = match (&expected, reply) {
            (Expected::Rows(rows), EventKind::Rows { rows: seen, .. }) => {
                let differs = !same_multiset(rows, seen);
                let diff = || Breach::Rows { diff: RowDiff::between(seen, rows) };
                (self.rule_of(tx, step), differs.then(diff))
            }
            (Expected::Count(count), EventKind::Affected { count: seen }) => {
                let (observed, predicted) = (*seen, *count);
                let breach = || Breach::RowCount { observed, predicted, returned: false };
                (self.rule_of(tx, step), (observed != predicted).then(breach))
            }
            (_, other) => {
                let why = format!("`{}` is no answer to such a statement", reply_text(other));
                return Err(Stop::NotModelled { step, why });
            }
        };
        match difference {
            Some(breach) => Err(Stop::Outside { step: Some(step), rule, breach }),
            None => {
                self.world.tx_mut(tx).has_read = true;
                Ok(())
            }
        }
    }

    /// A statement went through: nothing may have been in its way.
    fn lets_through(&mut self, step: usize, errors: &ExpectedErrors) -> Result<(), Stop> {
        for (rule, breach) in errors.breaches() {
            self.report(step, rule, breach)?;
        }
        Ok(())
    }

    /// An error: which rule allows it here?
    pub fn failed(
        &mut self,
        tx: TxId,
        step: usize,
        error: &DbError,
        errors: &ExpectedErrors,
    ) -> Result<(), Stop> {
        let concurrency = self.world.concurrency(tx);
        let (rules, may_abort) = (concurrency.rules, concurrency.conflicts.may_abort);
        let database = concurrency.has_single_writer();
        let others = self.others_open(tx);
        self.world.fail(tx);
        let rule = match error.class {
            ErrorClass::Deadlock if others && self.is_in_lock_cycle(step) => Some(rules.deadlock),
            ErrorClass::LockTimeout if others && self.subject.history.outcome(step).waited => {
                Some(rules.held_row)
            }
            ErrorClass::Busy if database && others => Some(rules.held_row),
            // A conflict that the model knows explains more than that the level may
            // abort any transaction.
            class @ ErrorClass::Serialization => errors.explains(class).or(may_abort),
            class => errors.explains(class),
        };
        let may_fail = || {
            let written = self.operation(step).and_then(Stmt::written_table);
            written.is_some_and(|table| self.subject.reading.may_fail(table))
        };
        if rule.is_none() && may_fail() || is_refused_for_its_role(error) {
            // A trigger or a constraint that is not modelled, or a right that is missing:
            // the statement has done nothing.
            return Ok(());
        }
        if error.class == ErrorClass::Deadlock {
            self.note_deadlock(tx, step);
        }
        match (rule, error.class) {
            (Some(rule), _) => {
                self.use_rule(step, rule);
                Ok(())
            }
            (None, class) if is_of_rules(class) && !is_of_a_value(error) => {
                let (code, message) = (error.code.clone(), error.message.clone());
                let breach = Breach::UnexpectedError { class, code, message };
                self.report(step, self.rule_of(tx, step), breach)
            }
            (None, _) => {
                if self.concerns_values(error) {
                    self.trace.record_own_error(step, self.rule_of(tx, step));
                }
                let why = format!("an error of its own: {}", error.code);
                Err(Stop::NotModelled { step, why })
            }
        }
    }

    /// Whether an error says something of the statement and its values, in a run in which the
    /// schema does not change.
    fn concerns_values(&self, error: &DbError) -> bool {
        let operations = &self.subject.reading.operations;
        let changes_schema = |operation: &Operation| match operation {
            Operation::Statement(statement) => statement.is_ddl(),
            Operation::Opaque(_) | Operation::Utility(_) => true,
            _ => false,
        };
        (error.class == ErrorClass::Rejected || is_of_a_value(error))
            && !operations.iter().any(changes_schema)
    }

    /// The rule by which a statement finds its rows: plain reads have one, and
    /// writes and locking reads another.
    fn rule_of(&self, tx: TxId, step: usize) -> &'static Rule {
        let rules = self.world.concurrency(tx).rules;
        match self.operation(step) {
            Some(Stmt::Select(select)) if select.locking.is_none() => rules.read,
            // A locking read that does not lock is a plain one.
            _ if self.trace.cites(step, rules.read) => rules.read,
            Some(Stmt::Write(Write::Insert(_))) if !self.trace.cites(step, rules.write) => {
                rules.unique
            }
            _ => rules.write,
        }
    }

    /// Whether a deadlock is possible: a lock cycle has at least one blocked
    /// statement, the victim's or another.
    fn is_in_lock_cycle(&self, victim: usize) -> bool {
        self.subject.history.outcome(victim).waited || !self.world.waiting().is_empty()
    }

    pub fn others_open(&self, tx: TxId) -> bool {
        self.world.transactions().any(|(other, t)| other != tx && t.end == End::Open)
    }

    pub fn begun(&mut self, tx: TxId, step: usize, form: BeginForm) -> Result<(), Stop> {
        let Some(reply) = self.subject.reply(step) else { return Ok(()) };
        if let EventKind::Error(error) = reply {
            return self.failed(tx, step, error, &ExpectedErrors::default());
        }
        if form == BeginForm::Immediate {
            let mut errors = ExpectedErrors::default();
            self.check_single_writer(tx, step, &mut errors);
            self.world.tx_mut(tx).writer = true;
            self.world.tx_mut(tx).began = self.world.started(step);
            // It has no snapshot yet that could be too old.
            if let Some((rule, obstacle)) = errors.blocked_by {
                self.report(step, rule, Breach::Proceeded { obstacle })?;
            }
        }
        Ok(())
    }

    /// COMMIT, ROLLBACK and the like; how the transaction ended is another
    /// event.
    pub async fn control(&mut self, tx: TxId, step: usize) -> Result<(), Stop> {
        let operation = &self.subject.reading.operations[step];
        let commits = matches!(operation, Operation::Commit);
        let mut errors =
            if commits { self.commit_errors(tx, step).await? } else { ExpectedErrors::default() };
        match self.subject.reply(step) {
            Some(EventKind::Error(error)) => {
                self.permit_conflicts(tx, &mut errors);
                self.failed(tx, step, error, &errors)?;
                if self.world.concurrency(tx).merges_at_commit() {
                    // It has ended, although the engine reports it as open.
                    self.world.remove_versions_of(tx);
                    self.world.tx_mut(tx).began = self.world.now();
                }
                Ok(())
            }
            Some(_) if commits => {
                self.lets_through(step, &errors)?;
                self.check_readers(tx, step)
            }
            Some(_) if matches!(operation, Operation::Rollback) => {
                self.use_rule(step, self.world.concurrency(tx).rules.rollback);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Where no statement waits, one that overlaps another transaction may fail.
    pub fn permit_conflicts(&self, tx: TxId, errors: &mut ExpectedErrors) {
        let concurrency = self.world.concurrency(tx);
        if concurrency.conflicts.fails_instead_of_waiting && self.world.overlaps_others(tx) {
            let rules = concurrency.rules;
            errors.permit(ErrorClass::WriteConflict, rules.changed_row);
            errors.permit(ErrorClass::Serialization, rules.changed_row);
            errors.permit(ErrorClass::Busy, rules.changed_row);
            errors.permit(ErrorClass::Constraint, rules.unique);
        }
    }

    /// Where the database has one writer, a write needs it for itself.
    pub fn check_single_writer(&mut self, tx: TxId, step: usize, errors: &mut ExpectedErrors) {
        let concurrency = self.world.concurrency(tx);
        if !concurrency.has_single_writer() {
            return;
        }
        let rules = concurrency.rules;
        let other =
            self.world.transactions().find(|(o, t)| *o != tx && t.end == End::Open && t.writer);
        if let Some((_, other)) = other {
            let obstacle = Obstacle::DatabaseLocked { holder: other.session.clone() };
            errors.block(rules.held_row, obstacle);
        }
        let since = self.kept_snapshot(tx, step);
        let after = |o: TxId| self.world.committed_since(o, since);
        let changed = |chain: &Chain| {
            let others = |v: &Version| v.by != tx && after(v.by);
            let of_others = chain.versions.iter().position(others);
            of_others.is_some_and(|at| {
                let now = chain.versions.iter().rev().find(|v| others(v)).filter(|v| !v.dead);
                let was = at.checked_sub(1).map(|before| &chain.versions[before]);
                was.filter(|v| !v.dead).map(|v| &v.row) != now.map(|v| &v.row)
            })
        };
        if self.world.chains().any(changed) {
            let obstacle = Obstacle::DatabaseChanged;
            errors.require(ErrorClass::Serialization, rules.changed_row, obstacle);
        } else if self.world.transactions().any(|(o, t)| o != tx && t.writer && after(o)) {
            errors.permit(ErrorClass::Serialization, rules.changed_row);
        }
    }
}

/// A value that its type does not hold, whatever others do: a data exception
/// of the standard.
fn is_of_a_value(error: &DbError) -> bool {
    error.sqlstate.as_ref().is_some_and(|state| state.starts_with("22"))
}

/// A right that the role of the session lacks, whatever others do.
pub fn is_refused_for_its_role(error: &DbError) -> bool {
    error.sqlstate.as_deref() == Some("42501")
}

/// Errors that rules are about; all others say something of the statement.
pub fn is_of_rules(class: ErrorClass) -> bool {
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
