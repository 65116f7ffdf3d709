//! Turns a run of an instrumented case into a run of the original case, without the added columns
//! and statements.

use super::{Instrument, InstrumentedCase, Probe};
use isolde_model::case::{Case, Step};
use isolde_model::history::{Event, EventKind, FinalRows, History, SentStep, Transaction};
use isolde_model::value::{Row, compare_rows};
use isolde_sql::render::Renderer;
use isolde_sql::{Select, SelectItem, Source};

/// The session of statements that run by themselves.
pub const ALONE: &str = "autocommit";

impl InstrumentedCase {
    /// The results of the original statements, numbered as in the original case, without probes;
    /// of the final rows, their own columns.
    pub fn plain(&self, original: &Case, instrument: &Instrument, observed: &History) -> History {
        let mut plain = observed.clone();
        plain.steps = (0..original.steps.len()).map(|n| SentStep::of(original, n)).collect();
        plain.events = observed.events.iter().filter_map(|event| self.event(event)).collect();
        // Probes have transactions of their own.
        let mut places = Vec::new();
        plain.transactions.clear();
        for transaction in &observed.transactions {
            let (begin, is_probe) =
                (self.steps[transaction.begin].0, self.is_probe(transaction.begin));
            places.push(plain.transactions.len());
            if let Some(begin) = begin.filter(|_| !(is_probe && transaction.autocommit)) {
                plain.transactions.push(Transaction { begin, ..transaction.clone() });
            }
        }
        for event in &mut plain.events {
            if let EventKind::Ended { transaction, .. } = &mut event.what {
                *transaction = places[*transaction];
            }
        }
        let finals = observed.final_state.iter().zip(&self.finals);
        plain.final_state =
            finals.filter_map(|(rows, probe)| instrument.own_rows(rows, probe)).collect();
        plain
    }

    /// Some of its statements one after the other in one session, each by itself, and the
    /// steps of the original that they are.
    pub fn alone(&self, order: &[usize]) -> InstrumentedCase {
        let last = |step: &usize| self.steps.iter().rposition(|(of, _)| of.as_ref() == Some(step));
        let parts: Vec<usize> = order.iter().filter_map(last).collect();
        let step = |part: &usize| Step {
            session: ALONE.into(),
            level: None,
            anyway: false,
            ..self.case.steps[*part].clone()
        };
        let numbered = |(n, part): (usize, &usize)| (Some(n), self.steps[*part].1.clone());
        InstrumentedCase {
            case: Case {
                steps: parts.iter().map(step).collect(),
                session_levels: Vec::new(),
                expectations: Vec::new(),
                ..self.case.clone()
            },
            steps: parts.iter().enumerate().map(numbered).collect(),
            finals: self.finals.clone(),
            not_instrumented: Vec::new(),
            unobserved: Vec::new(),
            texts: order.iter().map(|step| self.texts[*step].clone()).collect(),
        }
    }

    fn event(&self, event: &Event) -> Option<Event> {
        let Some(step) = event.step else { return Some(event.clone()) };
        let (Some(number), probe) = self.steps.get(step)? else { return None };
        let is_last = self.steps.get(step + 1).is_none_or(|(next, _)| *next != Some(*number));
        if !is_last {
            return None;
        }
        let what = match &event.what {
            EventKind::Sent { .. } => EventKind::Sent { as_sql: None },
            EventKind::Rows { columns, rows } => match probe {
                Probe::Rows { own_columns: 0, .. } => {
                    EventKind::Affected { count: rows.len() as u64 }
                }
                Probe::Read { own_columns, .. } | Probe::Rows { own_columns, .. } => {
                    EventKind::Rows {
                        columns: columns[..*own_columns].to_vec(),
                        rows: rows.iter().filter_map(|row| probe.own_row(row)).collect(),
                    }
                }
                Probe::Nothing | Probe::View | Probe::Count => event.what.clone(),
            },
            other => other.clone(),
        };
        Some(Event { session: event.session.clone(), step: Some(*number), what })
    }
}

impl Instrument {
    /// The final rows of a table without the added columns.
    fn own_rows(&self, observed: &FinalRows, probe: &Probe) -> Option<FinalRows> {
        let Probe::Rows { table, .. } = probe else { return None };
        let table = &self.schema.tables[*table];
        let hidden = observed.columns.len().checked_sub(table.columns.len())?;
        let mut rows: Vec<Row> = observed.rows.iter().map(|row| row[hidden..].to_vec()).collect();
        rows.sort_by(|a, b| compare_rows(a, b));
        let items = table.columns.iter().map(|c| isolde_sql::Expr::column(&c.name).into());
        let select = Select {
            items: items.collect::<Vec<SelectItem>>(),
            from: Some(Source::named(&table.name)),
            ..Select::default()
        };
        Some(FinalRows {
            query: Renderer::new(&self.dialect).select(&select),
            columns: observed.columns[hidden..].to_vec(),
            rows,
            error: observed.error.clone(),
        })
    }
}
