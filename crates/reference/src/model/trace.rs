//! The trace of a replay: the rules that explain each step, and what each saw.

use crate::version_tables::{VersionId, View};
use isolde_catalog::Rule;
use isolde_model::breach::Breach;
use isolde_model::value::Row;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// For each step the rules that explain it.
    rules: Vec<Vec<&'static Rule>>,
    /// Steps whose outcome the rules allow.
    settled: BTreeSet<usize>,
    /// When each statement read rows.
    looks: BTreeMap<usize, Look>,
    /// The row versions that statements read.
    views: Vec<ViewedRows>,
    /// What writes would do without the others.
    evaluations: Vec<WriteEvaluation>,
    /// What each blocked step waited for.
    waits: BTreeMap<usize, String>,
    /// The first breach that is about locking only.
    locking_breach: Option<(usize, &'static Rule, Breach)>,
    /// Steps that are not modelled, though they change nothing.
    unmodelled: BTreeMap<usize, String>,
}

/// The row versions that a statement read.
#[derive(Clone, Debug)]
pub struct ViewedRows {
    pub step: usize,
    pub tx: usize,
    /// The statement, counted over the whole run.
    pub statement: usize,
    /// For each table that it reads the versions in view.
    pub tables: Vec<(usize, Vec<VersionId>)>,
    /// The versions among them that were not committed, with their tables.
    pub uncommitted: Vec<(usize, VersionId)>,
    /// Writers that committed before this moment are in view.
    pub snapshot: usize,
    pub at: usize,
}

/// What the engine computed for a write on the version tables.
#[derive(Clone, Debug)]
pub struct WriteEvaluation {
    pub step: usize,
    pub table: usize,
    /// The rows among which it searched, and those that its subqueries read.
    pub view: View,
    pub inner: View,
    /// The versions that it found.
    pub found: Vec<VersionId>,
    /// The rows that it makes of them, or inserts.
    pub made: Vec<Row>,
}

/// When a statement read rows.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// None when it also sees what is not committed.
    pub snapshot: Option<usize>,
    pub at: usize,
    pub by: usize,
}

impl Trace {
    pub fn new(steps: usize) -> Trace {
        Trace { rules: vec![Vec::new(); steps], ..Trace::default() }
    }

    /// Records a rule that explains a step.
    pub fn cite(&mut self, step: usize, rule: &'static Rule) {
        if !self.cites(step, rule) {
            self.rules[step].push(rule);
        }
    }

    pub fn cites(&self, step: usize, rule: &'static Rule) -> bool {
        self.rules[step].contains(&rule)
    }

    /// For each step the rules that explain it.
    pub fn rules(&self) -> &[Vec<&'static Rule>] {
        &self.rules
    }

    /// Records that the outcome of a step is one that the rules allow.
    pub fn settle(&mut self, step: usize) {
        self.settled.insert(step);
    }

    pub fn settled(&self) -> &BTreeSet<usize> {
        &self.settled
    }

    pub fn record_look(&mut self, step: usize, look: Look) {
        self.looks.insert(step, look);
    }

    pub fn record_view(&mut self, view: ViewedRows) {
        self.views.push(view);
    }

    pub fn record_evaluation(&mut self, evaluation: WriteEvaluation) {
        self.evaluations.push(evaluation);
    }

    pub fn evaluations(&self) -> &[WriteEvaluation] {
        &self.evaluations
    }

    pub fn views(&self) -> &[ViewedRows] {
        &self.views
    }

    pub fn look(&self, step: usize) -> Option<Look> {
        self.looks.get(&step).copied()
    }

    pub fn looks(&self) -> impl Iterator<Item = (usize, Look)> {
        self.looks.iter().map(|(step, look)| (*step, *look))
    }

    pub fn record_wait(&mut self, step: usize, reason: String) {
        self.waits.insert(step, reason);
    }

    pub fn waits(&self) -> &BTreeMap<usize, String> {
        &self.waits
    }

    /// Records a breach that is about locking only, unless there was one before.
    pub fn record_locking_breach(&mut self, step: usize, rule: &'static Rule, breach: Breach) {
        self.locking_breach.get_or_insert((step, rule, breach));
    }

    pub fn locking_breach(&self) -> Option<&(usize, &'static Rule, Breach)> {
        self.locking_breach.as_ref()
    }

    /// Records why a step that changes nothing is not modelled.
    pub fn leave_unmodelled(&mut self, step: usize, why: &str) {
        self.unmodelled.insert(step, why.into());
    }

    pub fn unmodelled(&self) -> &BTreeMap<usize, String> {
        &self.unmodelled
    }
}
