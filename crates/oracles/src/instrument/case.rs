//! Instrumented scheduled cases: the same steps in the same order, with reads of all rows
//! before and after.

use super::actions::{self, Attribution};
use super::history::{StatementObservation, TransactionObservations};
use super::tables::{keys_column, origin_column, past_column, row_column, writes_column};
use super::{
    CurrentReadScope, Entry, Instrument, NotInstrumented, Probe, ProbeResult, Sent, Version, plain,
};
use isolde_model::Case;
use isolde_model::case::{Line, Origin, Parsed, Statement, Step};
use isolde_model::executed_transactions::executed_transactions;
use isolde_model::history::{EventKind, History};
use isolde_model::parsed_case::Operation;
use isolde_sql::dialect::Family;
use isolde_sql::render::Renderer;
use isolde_sql::{Ddl, Expr, Kind, Stmt, Update, Write};
use std::collections::BTreeMap;

/// The session that looks at all rows before the others begin.
const BEFORE: &str = "isolde";

/// An instrumented case, and what its steps reveal.
#[derive(Clone)]
pub struct InstrumentedCase {
    pub case: Case,
    /// For each of its steps the step of the original that it belongs to (none for the reads of
    /// whole tables), and what its result reveals.
    pub(super) steps: Vec<(Option<usize>, Probe)>,
    /// What its final reads reveal.
    pub(super) finals: Vec<Probe>,
    /// Steps of the original that are sent as they were, and why.
    pub not_instrumented: Vec<(usize, NotInstrumented)>,
    /// Steps of which some of what they read is not revealed, and why.
    pub unobserved: Vec<(usize, NotInstrumented)>,
    /// The texts of the original's steps.
    pub(super) texts: Vec<String>,
}

/// All observations of a run of such a case.
pub struct CaseObservations {
    pub transactions: Vec<TransactionObservations>,
    pub first: Vec<Version>,
    pub last: Vec<Version>,
    /// Whether the statement is known to which each action of a foreign key belongs.
    pub is_complete: bool,
    attribution: Attribution,
}

impl Instrument {
    /// The case as it is sent. Tables that a step changes unseen are given up first, since
    /// nothing can be claimed of them then.
    pub fn case(&mut self, case: &Case, operations: &[Operation]) -> InstrumentedCase {
        self.instrumented(case, operations, |_, _, _| None)
    }

    /// The same, and before each statement a read of the versions that it will read; see
    /// [`Instrument::referenced`]. `scopes` says for each step what it reads as it is.
    pub fn case_with_views(
        &mut self,
        case: &Case,
        operations: &[Operation],
        scopes: &[CurrentReadScope],
    ) -> InstrumentedCase {
        self.instrumented(case, operations, |instrument, step, statement| {
            instrument.view(&instrument.referenced(statement, scopes[step]).viewed)
        })
    }

    fn instrumented(
        &mut self,
        case: &Case,
        operations: &[Operation],
        view: impl Fn(&Instrument, usize, &Stmt) -> Option<Sent>,
    ) -> InstrumentedCase {
        while let Some(table) = self.untracked_change(case, operations) {
            match table {
                Some(table) => self.stop_tracking(&table),
                None => self.stop_tracking_all(),
            }
        }
        let mut observed = InstrumentedCase {
            case: Case { steps: Vec::new(), finals: Vec::new(), ..case.clone() },
            steps: Vec::new(),
            finals: Vec::new(),
            not_instrumented: Vec::new(),
            unobserved: Vec::new(),
            texts: case.steps.iter().map(|s| s.sql.clone()).collect(),
        };
        for Sent { statement, probe, .. } in self.reads_of_tables() {
            let sql = statement.render(&self.dialect);
            observed.case.steps.push(Step::plain(BEFORE, &sql, Line::default()));
            observed.steps.push((None, probe.clone()));
            observed.case.finals.push(Statement { sql, line: Line::default() });
            observed.finals.push(probe);
        }
        for (number, (step, operation)) in case.steps.iter().zip(operations).enumerate() {
            let sent = self.sent(number, operation).unwrap_or_else(|why| {
                observed.not_instrumented.push((number, why));
                Vec::new()
            });
            let look = match operation {
                Operation::Statement(statement) if !sent.is_empty() => {
                    view(self, number, statement)
                }
                _ => None,
            };
            let is_as_written = sent.is_empty();
            for Sent { statement, probe, unobserved } in look.into_iter().chain(sent) {
                let mut unobserved = unobserved;
                unobserved.dedup();
                observed.unobserved.extend(unobserved.into_iter().map(|why| (number, why)));
                let sql = statement.render(&self.dialect);
                let parsed = Parsed::known(statement, self.dialect.family);
                observed.case.steps.push(Step {
                    sql,
                    parsed,
                    origin: Origin(None),
                    ..step.clone()
                });
                observed.steps.push((Some(number), probe));
            }
            if is_as_written {
                observed.case.steps.push(step.clone());
                observed.steps.push((Some(number), Probe::Nothing));
            }
        }
        observed
    }

    /// What is sent in the place of a step; nothing where it is sent as it was written.
    fn sent(&self, number: usize, operation: &Operation) -> Result<Vec<Sent>, NotInstrumented> {
        match operation {
            Operation::Statement(statement) => {
                let sent = self.statement(number as u64 + 1, statement)?;
                Ok(if sent == [plain(statement)] { Vec::new() } else { sent })
            }
            Operation::Unnumbered(_) | Operation::Opaque(_) => {
                Err(NotInstrumented("it is not understood"))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// A followed table that a step changes without a word; all of them if it may be any.
    fn untracked_change(&self, case: &Case, operations: &[Operation]) -> Option<Option<String>> {
        let followed = |table: &str| self.place(table).is_some_and(|t| self.is_followed(t));
        for (number, (step, operation)) in case.steps.iter().zip(operations).enumerate() {
            if self.sent(number, operation).is_ok() {
                continue;
            }
            let writes = match operation {
                Operation::Statement(statement) => match statement.unprepared() {
                    Stmt::Ddl(Ddl::Truncate(table) | Ddl::AddColumn { table, .. }) => {
                        vec![table.as_str()]
                    }
                    Stmt::Write(Write::Update(Update { table, join, .. })) => {
                        std::iter::once(table)
                            .chain(join.as_ref().map(|j| &j.table))
                            .map(String::as_str)
                            .collect()
                    }
                    statement => statement.written_table().into_iter().collect(),
                },
                _ if matches!(step.kind(), Kind::Select | Kind::Other) => Vec::new(),
                _ if self.followed.contains(&true) => return Some(None),
                _ => Vec::new(),
            };
            if let Some(table) = writes.into_iter().find(|table| followed(table)) {
                return Some(Some(table.into()));
            }
        }
        None
    }

    fn stop_tracking_all(&mut self) {
        self.followed.iter_mut().for_each(|followed| *followed = false);
    }

    /// Instruments tables that a setup has created and filled.
    pub fn alter_sql(&self) -> Vec<String> {
        let renderer = Renderer::new(&self.dialect);
        let mut sql = Vec::new();
        for (place, table) in self.schema.tables.iter().enumerate() {
            let name = renderer.name(&table.name);
            for column in self.added_columns(place) {
                sql.push(format!("alter table {name} add column {}", renderer.column(&column)));
            }
            let row = row_column(place);
            // Any identity of a row that is stable while the table does not change.
            let own = match self.capabilities.family {
                Family::Postgres | Family::Other => {
                    let row = "replace(trim(both '()' from ctid::text), ',', '.')";
                    format!("'{place}r' || tableoid::oid::text || '.' || {row}")
                }
                Family::Sqlite | Family::Duckdb => format!("'{place}r' || rowid"),
                Family::Mysql => {
                    sql.push("set @isolde_rows = 0".into());
                    format!("concat('{place}r', (@isolde_rows := @isolde_rows + 1))")
                }
            };
            let mut empty = vec![writes_column(place), origin_column(place)];
            if !self.capabilities.returns_written {
                empty.push(past_column(place));
            }
            let mut empty: String = empty.iter().map(|column| format!(", {column} = ''")).collect();
            let keys = self.changing_columns(place);
            if !keys.is_empty() {
                let values = keys.into_iter().map(Expr::column).collect();
                let image = renderer.expr(&self.keys_image(values));
                empty.push_str(&format!(", {} = {image}", keys_column(place)));
            }
            sql.push(format!("update {name} set {row} = {own}{empty}"));
        }
        let views = self.views();
        let dropped = views.iter().rev();
        sql.extend(dropped.map(|view| format!("drop view {}", renderer.name(&view.name))));
        sql.extend(views.iter().map(|view| {
            format!(
                "create view {} as {}",
                renderer.name(&view.name),
                renderer.select(&view.select)
            )
        }));
        sql
    }
}

impl InstrumentedCase {
    /// Of which step of the original a step is a part, and what its result reveals.
    pub fn step(&self, step: usize) -> (Option<usize>, &Probe) {
        let (original, probe) = &self.steps[step];
        (*original, probe)
    }

    /// What the parts of a step of the original reveal.
    pub fn probes(&self, original: usize) -> impl Iterator<Item = &Probe> {
        let parts = self.steps.iter().filter(move |(of, _)| *of == Some(original));
        parts.map(|(_, probe)| probe)
    }

    /// Decodes the observations of a run of the case.
    pub fn observe(&self, instrument: &Instrument, history: &History) -> CaseObservations {
        let results = self.results(instrument, history);
        let first = results.iter().zip(&self.steps).filter(|(_, (of, _))| of.is_none());
        let first = first.filter_map(|(results, _)| match results {
            Some(ProbeResult::Rows(versions)) => Some(versions.clone()),
            _ => None,
        });
        let finals = history.final_state.iter().zip(&self.finals);
        let last = finals.filter_map(|(rows, probe)| match instrument.decode(probe, &rows.rows) {
            ProbeResult::Rows(versions) => Some(versions),
            _ => None,
        });
        let (mut first, mut last) = (first.flatten().collect(), last.flatten().collect());
        let mut transactions = self.transactions(history, &results);
        let attribution = actions::attribute(instrument, &mut transactions, &mut first, &mut last);
        let is_complete = attribution.is_complete();
        CaseObservations { transactions, first, last, is_complete, attribution }
    }

    /// For each step of the original the versions that were there when it was sent.
    pub fn views(
        &self,
        instrument: &Instrument,
        history: &History,
        observations: &CaseObservations,
    ) -> BTreeMap<usize, Vec<Entry>> {
        let results = self.results(instrument, history);
        let views = self.steps.iter().zip(results).filter_map(|((original, probe), results)| {
            let (Probe::View, Some(ProbeResult::Read(cells))) = (probe, results) else {
                return None;
            };
            let entries = cells.iter().flatten();
            let entries = entries.filter_map(|entry| observations.attribution.entry(entry));
            Some(((*original)?, entries.collect()))
        });
        views.collect()
    }

    /// The decoded result of each step; none where it failed or was never sent.
    fn results(&self, instrument: &Instrument, history: &History) -> Vec<Option<ProbeResult>> {
        let mut results: Vec<Option<ProbeResult>> = vec![None; self.steps.len()];
        for event in &history.events {
            let Some((step, (_, probe))) = event.step.and_then(|s| Some((s, self.steps.get(s)?)))
            else {
                continue;
            };
            results[step] = match &event.what {
                EventKind::Rows { rows, .. } => Some(instrument.decode(probe, rows)),
                EventKind::Affected { count } => Some(probe.counted(Some(*count))),
                EventKind::Done => Some(probe.counted(None)),
                _ => continue,
            };
        }
        results
    }

    /// Whether a step comes before the statement for which it looks.
    pub fn is_probe(&self, step: usize) -> bool {
        let (original, probe) = &self.steps[step];
        let next = self.steps.get(step + 1);
        *probe == Probe::View
            || original.is_some() && next.is_some_and(|(next, _)| next == original)
    }

    /// The steps that look for a statement, but for those that look at all of a table.
    fn probes_before(&self, step: usize) -> impl Iterator<Item = usize> {
        let original = self.steps[step].0;
        let before = (0..step).rev().take_while(move |s| self.steps[*s].0 == original);
        let is_probe = before.filter(|s| self.steps[*s].1 != Probe::View);
        is_probe.collect::<Vec<_>>().into_iter().rev()
    }

    fn transactions(
        &self,
        history: &History,
        results: &[Option<ProbeResult>],
    ) -> Vec<TransactionObservations> {
        let mut all: Vec<(usize, TransactionObservations)> = Vec::new();
        for transaction in executed_transactions(history) {
            let Some(first) = transaction.steps.first().copied() else { continue };
            // What is looked at before a statement by itself is a transaction of its own.
            let only_looks = transaction.steps.iter().all(|step| self.is_probe(*step));
            if history.steps[first].session == BEFORE || only_looks {
                continue;
            }
            let sent = |event: &isolde_model::history::Event| {
                event.step == Some(first) && matches!(event.what, EventKind::Sent { .. })
            };
            let begin = history.events.iter().position(sent).unwrap_or(0);
            let mut statements: Vec<StatementObservation> = Vec::new();
            for step in &transaction.steps {
                let (Some(original), probe) = &self.steps[*step] else { continue };
                if *probe == Probe::View {
                    continue;
                }
                let (id, undone) = (*original as u64 + 1, transaction.undone.contains(step));
                let entry = results[*step].clone().map(|results| (probe.clone(), results));
                // By itself it may have met others after a wait than those that were looked at.
                let met = transaction.autocommit && !history.outcome(*step).waited;
                let looked = self
                    .probes_before(*step)
                    .filter(|look| met && !transaction.steps.contains(look));
                let before = looked
                    .filter_map(|look| Some((self.steps[look].1.clone(), results[look].clone()?)));
                match statements.last_mut() {
                    Some(last) if last.id == id => match entry {
                        Some(entry) => last.results.push(entry),
                        // What was looked at before means nothing if it was not done.
                        None => (last.results, last.undone) = (Vec::new(), true),
                    },
                    _ => statements.push(StatementObservation {
                        id,
                        text: self.texts[*original].clone(),
                        undone: undone || entry.is_none(),
                        results: before.chain(entry).collect(),
                    }),
                }
            }
            let session = transaction.session.clone();
            let observed = TransactionObservations {
                name: session.clone(),
                session,
                how: transaction.how,
                times: Some((begin as u64, transaction.ended_at.max(begin) as u64)),
                statements,
            };
            all.push((begin, observed));
        }
        // Those of a session stand in the order in which it ran them.
        all.sort_by_key(|(begin, _)| *begin);
        let mut all: Vec<TransactionObservations> =
            all.into_iter().map(|(_, observed)| observed).collect();
        let sessions: Vec<String> = all.iter().map(|t| t.session.clone()).collect();
        for (place, observed) in all.iter_mut().enumerate() {
            let count =
                |to: usize| sessions[..to].iter().filter(|s| **s == observed.session).count();
            if count(sessions.len()) > 1 {
                observed.name = format!("{}.{}", observed.session, count(place) + 1);
            }
        }
        all
    }
}
