//! Scheduled cases whose statements tell: the same steps in the same order, with reads
//! of all rows before and after.

use super::history::{StatementTold, TransactionTold};
use super::tables::{origin_column, past_column, row_column, writes_column};
use super::{Entry, Heard, Instrument, LeftAlone, Present, Probe, Sent, Version, plain};
use crate::Case;
use crate::case::{Line, Origin, Parsed, Statement, Step};
use crate::history::{History, What};
use crate::oracle::executed;
use crate::semantics::Operation;
use crate::sql::dialect::Family;
use crate::sql::render::Renderer;
use crate::sql::{Kind, Stmt};
use std::collections::BTreeMap;

/// The session that looks at all rows before the others begin.
const BEFORE: &str = "isolde";

/// A case that tells, and what its steps mean.
#[derive(Clone)]
pub struct ToldCase {
    pub case: Case,
    /// For each of its steps, of which step of the original it is a part (none for what only
    /// looks), and what its answer tells.
    pub(super) steps: Vec<(Option<usize>, Probe)>,
    /// What its last reads tell.
    pub(super) finals: Vec<Probe>,
    /// Steps of the original that are sent as they were, and why.
    pub left_alone: Vec<(usize, LeftAlone)>,
    /// The texts of the original's steps.
    pub(super) texts: Vec<String>,
}

/// All that a run of such a case told.
pub struct CaseTold {
    pub transactions: Vec<TransactionTold>,
    pub first: Vec<Version>,
    pub last: Vec<Version>,
}

impl Instrument {
    /// The case as it is sent. Tables that a step changes unseen are given up first, since
    /// nothing can be claimed of them then.
    pub fn case(&mut self, case: &Case, operations: &[Operation]) -> ToldCase {
        self.told_case(case, operations, |_, _| None)
    }

    /// The same, and before each statement a read of what it will meet; see
    /// [`Instrument::referenced`].
    pub fn case_with_views(
        &mut self,
        case: &Case,
        operations: &[Operation],
        present: Present,
    ) -> ToldCase {
        self.told_case(case, operations, |instrument, statement| {
            instrument.view(&instrument.referenced(statement, present).viewed)
        })
    }

    fn told_case(
        &mut self,
        case: &Case,
        operations: &[Operation],
        view: impl Fn(&Instrument, &Stmt) -> Option<Sent>,
    ) -> ToldCase {
        while let Some(table) = self.changed_unseen(case, operations) {
            match table {
                Some(table) => self.give_up(&table),
                None => self.give_up_all(),
            }
        }
        let mut told = ToldCase {
            case: Case { steps: Vec::new(), finals: Vec::new(), ..case.clone() },
            steps: Vec::new(),
            finals: Vec::new(),
            left_alone: Vec::new(),
            texts: case.steps.iter().map(|s| s.sql.clone()).collect(),
        };
        for Sent { statement, probe } in self.reads_of_tables() {
            let sql = statement.render(&self.dialect);
            told.case.steps.push(Step::plain(BEFORE, &sql, Line::default()));
            told.steps.push((None, probe.clone()));
            told.case.finals.push(Statement { sql, line: Line::default() });
            told.finals.push(probe);
        }
        for (number, (step, operation)) in case.steps.iter().zip(operations).enumerate() {
            let sent = match self.sent(number, operation) {
                Ok(sent) => match (operation, sent.is_empty()) {
                    (Operation::Statement(statement), false) => {
                        view(self, statement).into_iter().chain(sent).collect()
                    }
                    _ => sent,
                },
                Err(why) => {
                    told.left_alone.push((number, why));
                    Vec::new()
                }
            };
            if sent.is_empty() {
                told.case.steps.push(step.clone());
                told.steps.push((Some(number), Probe::Nothing));
            }
            for Sent { statement, probe } in sent {
                let sql = statement.render(&self.dialect);
                let parsed = Parsed::known(statement, self.dialect.family);
                told.case.steps.push(Step { sql, parsed, origin: Origin(None), ..step.clone() });
                told.steps.push((Some(number), probe));
            }
        }
        told
    }

    /// What is sent in the place of a step; nothing where it is sent as it was written.
    fn sent(&self, number: usize, operation: &Operation) -> Result<Vec<Sent>, LeftAlone> {
        match operation {
            Operation::Statement(statement) => {
                let sent = self.statement(number as u64 + 1, statement)?;
                Ok(if sent == [plain(statement)] { Vec::new() } else { sent })
            }
            Operation::Opaque(_) => Err(LeftAlone("it is not understood")),
            _ => Ok(Vec::new()),
        }
    }

    /// A followed table that a step changes without a word; all of them if it may be any.
    fn changed_unseen(&self, case: &Case, operations: &[Operation]) -> Option<Option<String>> {
        let followed = |table: &str| self.place(table).is_some_and(|t| self.is_followed(t));
        for (number, (step, operation)) in case.steps.iter().zip(operations).enumerate() {
            if self.sent(number, operation).is_ok() {
                continue;
            }
            let writes = match operation {
                Operation::Statement(statement) => match statement.unprepared() {
                    Stmt::Truncate(table) | Stmt::AddColumn { table, .. } => Some(table.as_str()),
                    statement => statement.written_table(),
                },
                _ if matches!(step.kind(), Kind::Select | Kind::Other) => None,
                _ if self.followed.contains(&true) => return Some(None),
                _ => None,
            };
            if let Some(table) = writes.filter(|table| followed(table)) {
                return Some(Some(table.into()));
            }
        }
        None
    }

    fn give_up_all(&mut self) {
        self.followed.iter_mut().for_each(|followed| *followed = false);
    }

    /// What makes the tables of a setup tell, behind it: for whoever has rows already.
    pub fn alter_sql(&self) -> Vec<String> {
        let renderer = Renderer::new(&self.dialect);
        let mut sql = Vec::new();
        for (place, table) in self.schema.tables.iter().enumerate() {
            let name = renderer.name(&table.name);
            for column in self.columns_beside(place) {
                sql.push(format!("alter table {name} add column {}", renderer.column(&column)));
            }
            let row = row_column(place);
            // Whatever tells rows apart while nobody changes them.
            let own = match self.means.family {
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
            if !self.means.returns_written {
                empty.push(past_column(place));
            }
            let empty: String = empty.iter().map(|column| format!(", {column} = ''")).collect();
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

impl ToldCase {
    /// Of which step of the original a step is a part, and what its answer tells.
    pub fn step(&self, step: usize) -> (Option<usize>, &Probe) {
        let (original, probe) = &self.steps[step];
        (*original, probe)
    }

    /// What the parts of a step of the original tell.
    pub fn probes(&self, original: usize) -> impl Iterator<Item = &Probe> {
        let parts = self.steps.iter().filter(move |(of, _)| *of == Some(original));
        parts.map(|(_, probe)| probe)
    }

    /// What a run of the case told.
    pub fn tell(&self, instrument: &Instrument, history: &History) -> CaseTold {
        let heard = self.heard(instrument, history);
        let first = heard.iter().zip(&self.steps).filter(|(_, (of, _))| of.is_none());
        let first = first.filter_map(|(heard, _)| match heard {
            Some(Heard::Rows(versions)) => Some(versions.clone()),
            _ => None,
        });
        let finals = history.final_state.iter().zip(&self.finals);
        let last = finals.filter_map(|(rows, probe)| match instrument.hear(probe, &rows.rows) {
            Heard::Rows(versions) => Some(versions),
            _ => None,
        });
        CaseTold {
            transactions: self.transactions(history, &heard),
            first: first.flatten().collect(),
            last: last.flatten().collect(),
        }
    }

    /// For each step of the original the versions that were there when it was sent.
    pub fn views(&self, instrument: &Instrument, history: &History) -> BTreeMap<usize, Vec<Entry>> {
        let heard = self.heard(instrument, history);
        let views = self.steps.iter().zip(heard).filter_map(|((original, probe), heard)| {
            let (Probe::View, Some(Heard::Read(cells))) = (probe, heard) else { return None };
            Some(((*original)?, cells.into_iter().flatten().collect()))
        });
        views.collect()
    }

    /// For each step what its answer told; none where it failed or was never sent.
    fn heard(&self, instrument: &Instrument, history: &History) -> Vec<Option<Heard>> {
        let mut heard: Vec<Option<Heard>> = vec![None; self.steps.len()];
        for event in &history.events {
            let Some((step, (_, probe))) = event.step.and_then(|s| Some((s, self.steps.get(s)?)))
            else {
                continue;
            };
            heard[step] = match &event.what {
                What::Rows { rows, .. } => Some(instrument.hear(probe, rows)),
                What::Affected { count } => Some(probe.counted(Some(*count))),
                What::Done => Some(probe.counted(None)),
                _ => continue,
            };
        }
        heard
    }

    /// Whether a step comes before the statement for which it looks.
    pub fn looks(&self, step: usize) -> bool {
        let (original, probe) = &self.steps[step];
        let next = self.steps.get(step + 1);
        *probe == Probe::View
            || original.is_some() && next.is_some_and(|(next, _)| next == original)
    }

    /// The steps that look for a statement, but for those that look at all of a table.
    fn looked_before(&self, step: usize) -> impl Iterator<Item = usize> {
        let original = self.steps[step].0;
        let before = (0..step).rev().take_while(move |s| self.steps[*s].0 == original);
        let looks = before.filter(|s| self.steps[*s].1 != Probe::View);
        looks.collect::<Vec<_>>().into_iter().rev()
    }

    fn transactions(&self, history: &History, heard: &[Option<Heard>]) -> Vec<TransactionTold> {
        let mut all: Vec<(usize, TransactionTold)> = Vec::new();
        for transaction in executed(history) {
            let Some(first) = transaction.steps.first().copied() else { continue };
            // What is looked at before a statement by itself is a transaction of its own.
            let only_looks = transaction.steps.iter().all(|step| self.looks(*step));
            if history.steps[first].session == BEFORE || only_looks {
                continue;
            }
            let sent = |event: &crate::history::Event| {
                event.step == Some(first) && matches!(event.what, What::Sent { .. })
            };
            let begin = history.events.iter().position(sent).unwrap_or(0);
            let mut statements: Vec<StatementTold> = Vec::new();
            for step in &transaction.steps {
                let (Some(original), probe) = &self.steps[*step] else { continue };
                if *probe == Probe::View {
                    continue;
                }
                let (id, undone) = (*original as u64 + 1, transaction.undone.contains(step));
                let entry = heard[*step].clone().map(|heard| (probe.clone(), heard));
                // By itself it may have met others after a wait than those that were looked at.
                let met = transaction.autocommit && !history.outcome(*step).waited;
                let looked = self
                    .looked_before(*step)
                    .filter(|look| met && !transaction.steps.contains(look));
                let before = looked
                    .filter_map(|look| Some((self.steps[look].1.clone(), heard[look].clone()?)));
                match statements.last_mut() {
                    Some(last) if last.id == id => match entry {
                        Some(entry) => last.heard.push(entry),
                        // What was looked at before means nothing if it was not done.
                        None => (last.heard, last.undone) = (Vec::new(), true),
                    },
                    _ => statements.push(StatementTold {
                        id,
                        text: self.texts[*original].clone(),
                        undone: undone || entry.is_none(),
                        heard: before.chain(entry).collect(),
                    }),
                }
            }
            let session = transaction.session.clone();
            let told = TransactionTold {
                name: session.clone(),
                session,
                how: transaction.how,
                times: Some((begin as u64, transaction.ended_at.max(begin) as u64)),
                statements,
            };
            all.push((begin, told));
        }
        // Those of a session stand in the order in which it ran them.
        all.sort_by_key(|(begin, _)| *begin);
        let mut all: Vec<TransactionTold> = all.into_iter().map(|(_, told)| told).collect();
        let sessions: Vec<String> = all.iter().map(|t| t.session.clone()).collect();
        for (place, told) in all.iter_mut().enumerate() {
            let count = |to: usize| sessions[..to].iter().filter(|s| **s == told.session).count();
            if count(sessions.len()) > 1 {
                told.name = format!("{}.{}", told.session, count(place) + 1);
            }
        }
        all
    }
}
