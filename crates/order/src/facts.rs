//! The operations and transactions of a trace, indexed for the rules.

use super::{Ambiguity, Edges};
use isolde_model::Level;
use isolde_model::history::{ErrorClass, TxEnd};
use isolde_model::profile::{ConcurrencyControl, Protocol, ReadVisibility};
use isolde_model::trace::Access;
use isolde_model::trace::{Accesses, Operation, OperationResult, Trace};
use isolde_sql as sql;
use isolde_sql::Kind;
use std::collections::HashMap;

pub(super) struct Facts<'t> {
    pub trace: &'t Trace,
    pub operations: &'t [Operation],
    pub control: ConcurrencyControl,
    /// The operations in the order in which they ended.
    pub by_end: Vec<u32>,
    /// By statement.
    kinds: Vec<Kind>,
    /// By statement: a SELECT that locks what it reads.
    locking: Vec<bool>,
    pub transactions: Vec<Transaction>,
    /// The operations of all transactions, one transaction after the other.
    by_transaction: Vec<u32>,
    /// Writes undone by ROLLBACK TO, each with the operation that undid it.
    pub undone: HashMap<u32, u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub how: TxEnd,
    pub level: Option<Level>,
    pub read_visibility: ReadVisibility,
    /// Its range in `by_transaction`.
    from: u32,
    to: u32,
    pub begin: Option<u32>,
    /// The first that read or wrote.
    pub first_statement: Option<u32>,
    /// The first read that locks nothing.
    pub first_read: Option<u32>,
    /// Its last COMMIT or ROLLBACK.
    pub end: Option<u32>,
    /// The failure after which the transaction could only end.
    pub doomed: Option<u32>,
}

impl<'t> Facts<'t> {
    pub fn of(trace: &'t Trace, protocol: Option<Protocol>) -> Facts<'t> {
        let operations = &trace.operations[..];
        let mut by_end: Vec<u32> = (0..place(operations.len())).collect();
        by_end.sort_by_key(|at| {
            let operation = &operations[*at as usize];
            (operation.end, operation.start)
        });
        let recorded = trace.control;
        let by_name = trace.level.map_or(ReadVisibility::Committed, ReadVisibility::by_name);
        let control = ConcurrencyControl {
            protocol: protocol.or(recorded.map(|c| c.protocol)).unwrap_or_default(),
            read_visibility: recorded.map_or(by_name, |c| c.read_visibility),
        };
        let mut facts = Facts {
            trace,
            operations,
            control,
            by_end,
            kinds: trace.statements.iter().map(|text| sql::kind(text)).collect(),
            locking: trace.statements.iter().map(|text| locks(text)).collect(),
            transactions: Vec::new(),
            by_transaction: Vec::new(),
            undone: HashMap::new(),
        };
        facts.group();
        for transaction in 0..facts.transactions.len() {
            facts.follow(transaction);
        }
        facts
    }

    fn group(&mut self) {
        let mut counts = vec![0u32; self.trace.transactions.len() + 1];
        self.operations.iter().for_each(|o| counts[o.transaction as usize + 1] += 1);
        for at in 1..counts.len() {
            counts[at] += counts[at - 1];
        }
        for (traced, ends) in self.trace.transactions.iter().zip(counts.windows(2)) {
            let read_visibility =
                traced.level.map_or(self.control.read_visibility, ReadVisibility::by_name);
            self.transactions.push(Transaction {
                how: traced.how,
                level: traced.level.or(self.trace.level),
                read_visibility,
                from: ends[0],
                to: ends[1],
                begin: None,
                first_statement: None,
                first_read: None,
                end: None,
                doomed: None,
            });
        }
        self.by_transaction = vec![0; self.operations.len()];
        for at in &self.by_end {
            let next = &mut counts[self.operations[*at as usize].transaction as usize];
            self.by_transaction[*next as usize] = *at;
            *next += 1;
        }
    }

    /// Finds the operations of a transaction that took its snapshot, ended it, or undid writes.
    fn follow(&mut self, number: usize) {
        let Transaction { from, to, how, .. } = self.transactions[number];
        let mut savepoints: Vec<(&str, usize)> = Vec::new();
        let mut writes: Vec<u32> = Vec::new();
        let mut undone: Vec<(u32, u32)> = Vec::new();
        let (mut begin, mut first_statement, mut first_read) = (None, None, None);
        let (mut end, mut doomed) = (None, None);
        for at in &self.by_transaction[from as usize..to as usize] {
            let kind = self.kind(*at);
            begin = begin.or(Some(*at));
            if kind.ends_transaction() {
                end = Some(*at);
            }
            if !self.is_done(*at) {
                doomed = doomed.or(Some(*at));
                continue;
            }
            if !kind.ends_transaction() || how == TxEnd::Committed {
                doomed = None;
            }
            let name = || sql::tokens(self.text(*at)).last().unwrap_or_default();
            match kind {
                Kind::Savepoint => savepoints.push((name(), writes.len())),
                Kind::RollbackTo => {
                    let back = name();
                    let since = savepoints.iter().rev().find(|(called, _)| *called == back);
                    let since = since.map_or(writes.len(), |(_, since)| *since);
                    undone.extend(writes.drain(since.min(writes.len())..).map(|w| (w, *at)));
                }
                Kind::Select | Kind::Write | Kind::Ddl => {
                    first_statement = first_statement.or(Some(*at));
                    if kind == Kind::Select && !self.is_locking(*at) {
                        first_read = first_read.or(Some(*at));
                    }
                }
                _ => {}
            }
            if !self.writes(*at).is_empty() {
                writes.push(*at);
            }
        }
        let of = &mut self.transactions[number];
        (of.begin, of.first_statement, of.first_read) = (begin, first_statement, first_read);
        (of.end, of.doomed) = (end, doomed.filter(|_| how != TxEnd::Committed));
        self.undone.extend(undone);
    }

    /// Counts the ambiguities that no rule will decide.
    pub fn note_open(&self, edges: &mut Edges<'_, '_>) {
        for at in &self.by_end {
            let operation = &self.operations[*at as usize];
            let silent = operation.accesses.is_none();
            match operation.result {
                OperationResult::Unanswered => edges.open(Ambiguity::Unanswered, *at, None),
                OperationResult::Error(ErrorClass::Poisoned) => {}
                OperationResult::Error(_) if !self.kind(*at).ends_transaction() => {
                    edges.open(Ambiguity::Failed, *at, None);
                }
                OperationResult::Error(_) => {}
                OperationResult::Rows(0) | OperationResult::Affected(0) => {}
                _ if silent && matches!(self.kind(*at), Kind::Select | Kind::Write | Kind::Ddl) => {
                    edges.open(Ambiguity::AccessUnknown, *at, None);
                }
                _ => {}
            }
        }
        for of in &self.transactions {
            if matches!(of.how, TxEnd::Lost | TxEnd::Unknown)
                && let Some(last) = of.end.or(of.begin)
            {
                edges.open(Ambiguity::EndUnknown, last, None);
            }
        }
    }

    pub fn operation(&self, at: u32) -> &'t Operation {
        &self.operations[at as usize]
    }

    pub fn transaction_of(&self, at: u32) -> &Transaction {
        &self.transactions[self.operation(at).transaction as usize]
    }

    pub fn operations_of(&self, transaction: usize) -> &[u32] {
        let of = &self.transactions[transaction];
        &self.by_transaction[of.from as usize..of.to as usize]
    }

    pub fn text(&self, at: u32) -> &'t str {
        &self.trace.statements[self.operation(at).statement as usize]
    }

    pub fn kind(&self, at: u32) -> Kind {
        self.kinds[self.operation(at).statement as usize]
    }

    pub fn is_done(&self, at: u32) -> bool {
        let result = self.operation(at).result;
        !matches!(result, OperationResult::Error(_) | OperationResult::Unanswered)
    }

    pub fn is_locking(&self, at: u32) -> bool {
        let operation = self.operation(at);
        let recorded = operation.accesses.as_ref().is_some_and(|a| a.lock.is_some());
        recorded || self.locking[operation.statement as usize]
    }

    pub fn accesses(&self, at: u32) -> Option<&'t Accesses> {
        self.operation(at).accesses.as_deref()
    }

    pub fn reads(&self, at: u32) -> &'t [Access] {
        self.accesses(at).map_or(&[], |accesses| &accesses.reads)
    }

    pub fn writes(&self, at: u32) -> &'t [Access] {
        self.accesses(at).map_or(&[], |accesses| &accesses.writes)
    }

    /// Whether the times allow `before` to have taken effect before `after`.
    pub fn can(&self, before: u32, after: u32) -> bool {
        self.operation(before).start <= self.operation(after).end
    }

    /// Whether the times alone imply that it did.
    pub fn must(&self, before: u32, after: u32) -> bool {
        self.operation(before).end < self.operation(after).start
    }

    /// The operation that committed a write; none if it was not committed. A transaction without
    /// an end of its own commits each statement by itself. The outcome of
    /// one that was lost at its COMMIT is not known; it counts if another has read from it.
    pub fn commit_of(&self, write: u32) -> Option<u32> {
        let of = self.transaction_of(write);
        if self.undone.contains_key(&write) {
            return None;
        }
        match of.how {
            TxEnd::Committed => Some(of.end.unwrap_or(write)),
            TxEnd::Lost | TxEnd::Unknown => of.end.filter(|end| self.kind(*end) == Kind::Commit),
            TxEnd::RolledBack | TxEnd::Aborted => None,
        }
    }

    /// The operation that released the locks of an operation: a later one, or itself.
    pub fn release_of(&self, taken: u32) -> u32 {
        let of = self.transaction_of(taken);
        if of.how == TxEnd::Committed {
            return of.end.unwrap_or(taken);
        }
        of.doomed.or(of.end).unwrap_or(taken)
    }
}

/// Whether the text of a SELECT has a locking clause.
fn locks(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["for update", "for share", "for no key update", "for key share", "in share mode"]
        .iter()
        .any(|words| lower.contains(words))
}

pub(super) fn place(index: usize) -> u32 {
    u32::try_from(index).expect("a trace has less than 2^32 of anything")
}
