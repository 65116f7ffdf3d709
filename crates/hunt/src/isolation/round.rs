//! One round: instrumented tables, sessions at full speed, and the checked history of the run.

use super::evaluate::evaluate;
use super::transactions::{SentTransaction, observations, run, times};
use crate::error::HuntError;
use isolde_checker::{Report, check};
use isolde_engines::engine::Outcome;
use isolde_engines::free_run::{FreeRun, OnAbort, Stop};
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Plan, TxPlan};
use isolde_model::history::ServerFailure;
use isolde_model::trace::Trace;
use isolde_model::value::{Row, Value};
use isolde_model::{Anomaly, Level};
use isolde_oracles::instrument::{
    ExtractedHistory, Instrument, ObservedRun, ProbeResult, Sent, TransactionObservations, Version,
};
use isolde_sql::Class;
use isolde_sql::fixture::Rows;
use isolde_sql::{Literal, Table, Type};
use std::time::Duration;

/// The shape of a round.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub sessions: usize,
    /// Keys range from 1 to this number; a small one makes hot rows.
    pub keys: usize,
    /// Transactions per round; lists grow with their number.
    pub transactions: u64,
    /// The longest time that a round may take.
    pub time: Duration,
    /// Evaluates predicates even where the level promises nothing about phantoms.
    pub all_predicates: bool,
}

/// A round that was run, with its trace, its history and the checker's report.
pub struct RoundRecord {
    pub plan: Plan,
    pub level: Level,
    /// The generated transactions, in the order of the trace.
    pub transactions: Vec<TxPlan>,
    pub trace: Trace,
    pub account: ExtractedHistory,
    pub report: Report,
    instrument: Instrument,
    observations: Vec<TransactionObservations>,
    first: Vec<Version>,
    last: Vec<Version>,
    /// For each transaction its name in the history, and for each statement sent the operation
    /// that it belongs to.
    sent: Vec<(String, Vec<usize>)>,
}

impl RoundRecord {
    /// The number of the transaction with this name in the history.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.sent.iter().position(|(called, _)| called == name)
    }

    /// The rows of each table after all transactions that had ended by this moment.
    pub fn rows_at(&self, moment: u64) -> Vec<Rows> {
        let observed = ObservedRun {
            instrument: &self.instrument,
            transactions: self.observations.clone(),
            first: self.first.clone(),
            last: self.last.clone(),
            writes_read: false,
        };
        let tables = observed.rows_at(moment).into_iter().zip(&self.plan.schema.tables);
        let literals = |row: &Row, table: &Table| {
            row.iter().zip(&table.columns).map(|(v, c)| literal(v, &c.of_type)).collect()
        };
        tables.map(|(rows, table)| rows.iter().map(|row| literals(row, table)).collect()).collect()
    }

    /// When each transaction began and ended.
    pub fn times(&self) -> Vec<(u64, u64)> {
        times(&self.trace)
    }

    /// The place of each operation of a transaction, where `place_of` gives the place of an
    /// operation of the trace; none for operations that were never sent.
    pub fn places(&self, transaction: usize, place_of: &dyn Fn(usize) -> u64) -> Vec<Option<u64>> {
        let operations = self.trace.operations.iter().enumerate();
        let of = operations.filter(|(_, o)| o.transaction as usize == transaction);
        let count = self.transactions[transaction].operations();
        let mut places = vec![None; count];
        for (sent, (at, _)) in self.sent[transaction].1.iter().zip(of) {
            // The probes of a statement belong to it. The last one of them takes effect.
            if let Some(of) = places.get_mut(*sent) {
                *of = Some(place_of(at));
            }
        }
        places
    }
}

/// The literal that writes a value that was read.
fn literal(value: &Value, of_type: &Type) -> Literal {
    match (value, of_type.class()) {
        (Value::Null, _) => Literal::Null,
        (Value::Bool(b), _) => Literal::Bool(*b),
        (Value::Int(n), _) => Literal::Int(*n),
        (Value::Float(f), _) => Literal::Number(format!("{f:?}")),
        (Value::Decimal(digits), _) => Literal::Number(digits.clone()),
        (Value::Bytes(bytes), _) => Literal::Blob(bytes.clone()),
        (Value::Text(text), Class::Date) => Literal::Date(text.clone()),
        (Value::Text(digits), Class::Integer | Class::Decimal | Class::Float | Class::Bool) => {
            Literal::Number(digits.clone())
        }
        (Value::Text(text), _) => Literal::Text(text.clone()),
    }
}

/// Runs a round in an empty database. The inner error is a server failure during the round.
pub fn run_round(
    runner: &mut Runner,
    generator: &Generator,
    number: u64,
    shape: &Shape,
) -> Result<Result<RoundRecord, ServerFailure>, HuntError> {
    let mut round = generator.round(number, shape.keys);
    let level = round.plan.level.unwrap_or(runner.engine.profile().default_level);
    let capabilities = runner.engine.info().capabilities();
    let instrument = Instrument::new(round.plan.schema.clone(), round.plan.dialect, capabilities);
    let setup = create_tables(runner, &instrument, &round.plan)?;
    let first = read_tables(runner, &instrument)?;
    let free = FreeRun {
        sessions: shape.sessions,
        level: Some(level),
        on_abort: OnAbort::GiveUp,
        stop: Stop { transactions: Some(shape.transactions), time: Some(shape.time) },
    };
    let (drawn, mut trace) = run(runner, &free, &instrument, &mut round)?;
    if let Some(death) = trace.death {
        return Ok(Err(death));
    }
    let last = read_tables(runner, &instrument)?;
    let allows = runner.engine.profile().promise(level).and_then(|p| p.allows.clone());
    let observed = ObservedRun {
        instrument: &instrument,
        transactions: observations(&drawn, &trace, &round.plan),
        first,
        last,
        writes_read: allows.as_ref().is_some_and(Vec::is_empty),
    };
    let phantoms_matter = allows
        .is_none_or(|allows| !allows.contains(&Anomaly::GSingle) || !allows.contains(&Anomaly::G2));
    let evaluated = if phantoms_matter || shape.all_predicates {
        evaluate(runner.engine.as_mut(), &instrument, observed.evaluations())
            .map_err(isolde_engines::runner::RunError::Engine)?
    } else {
        Vec::new()
    };
    trace.setup = setup;
    super::accesses::fill_in(&mut trace, &drawn, &observed);
    let account = observed.extract_history(&evaluated);
    let report = check(&account.history);
    let places = |drawn: &SentTransaction| drawn.sent.iter().map(|sent| sent.place).collect();
    let names = observed.transactions.iter().map(|transaction| transaction.name.clone());
    let sent = names.zip(drawn.iter().map(places)).collect();
    let ObservedRun { transactions: observations, first, last, .. } = observed;
    Ok(Ok(RoundRecord {
        plan: round.plan,
        level,
        transactions: drawn.into_iter().map(|drawn| drawn.plan).collect(),
        trace,
        account,
        report,
        instrument,
        observations,
        first,
        last,
        sent,
    }))
}

/// Creates the instrumented tables with their rows; returns the statements.
fn create_tables(
    runner: &mut Runner,
    instrument: &Instrument,
    plan: &Plan,
) -> Result<Vec<String>, HuntError> {
    let instrumented = plan.on_fixture(instrument.fixture(&plan.fixture()));
    runner.clear()?;
    let mut statements = instrumented.create_sql();
    statements.extend(instrumented.reset_sql());
    statements.extend(instrument.create_versions_sql());
    match runner.engine.batch(&statements).map_err(isolde_engines::runner::RunError::Engine)? {
        Outcome::Error(error) => Err(HuntError::Fixture { sql: statements.join(";\n  "), error }),
        _ => Ok(statements),
    }
}

/// All rows of all tables with their versions.
fn read_tables(runner: &mut Runner, instrument: &Instrument) -> Result<Vec<Version>, HuntError> {
    let mut all = Vec::new();
    for Sent { statement, probe, .. } in instrument.reads_of_tables() {
        let sql = statement.render(&instrument.dialect);
        match runner.engine.control(&sql).map_err(isolde_engines::runner::RunError::Engine)? {
            Outcome::Rows { rows, .. } => {
                if let ProbeResult::Rows(versions) = instrument.decode(&probe, &rows) {
                    all.extend(versions);
                }
            }
            Outcome::Error(error) => return Err(HuntError::Fixture { sql, error }),
            Outcome::Affected(_) | Outcome::Done => {}
        }
    }
    Ok(all)
}
