//! One round: tables, sessions at full speed, and the history they leave.

use super::evaluate::evaluate;
use crate::error::HuntError;
use isolde_checker::{Report, check};
use isolde_core::generate::{Generator, Item, Plan, Round, Rows, TxPlan};
use isolde_core::history::Death;
use isolde_core::instrument::{
    Account, Heard, Instrument, Means, Probe, Sent, StatementTold, Told, TransactionTold, Version,
    plain,
};
use isolde_core::sql::value::Class;
use isolde_core::sql::{Literal, Stmt, Table, Type};
use isolde_core::trace::Trace;
use isolde_core::value::{Row, Value};
use isolde_core::{Anomaly, Level};
use isolde_engines::engine::{Outcome, Reply};
use isolde_engines::free_run::{Answer, FreeRun, OnAbort, Statements, Stop};
use isolde_engines::runner::Runner;
use std::time::Duration;

/// How rounds are run.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub sessions: usize,
    /// Keys go from 1 to this: few make hot rows.
    pub keys: usize,
    /// Transactions of a round; lists grow with it.
    pub transactions: u64,
    /// No round takes longer.
    pub time: Duration,
    /// Predicates are evaluated whether or not the level says anything about phantoms.
    pub all_predicates: bool,
}

/// What a round was and left.
pub struct Played {
    pub plan: Plan,
    pub level: Level,
    /// What was drawn, in the order of the trace.
    pub transactions: Vec<TxPlan>,
    pub trace: Trace,
    pub account: Account,
    pub report: Report,
    instrument: Instrument,
    told: Vec<TransactionTold>,
    first: Vec<Version>,
    last: Vec<Version>,
    /// For each transaction its name in the history, and for each statement that its session
    /// sent which of its operations it is a part of.
    sent: Vec<(String, Vec<usize>)>,
}

impl Played {
    /// The transaction that the history calls so.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.sent.iter().position(|(called, _)| called == name)
    }

    /// The rows of each table when all that had ended by then had.
    pub fn rows_at(&self, moment: u64) -> Vec<Rows> {
        let told = Told {
            instrument: &self.instrument,
            transactions: self.told.clone(),
            first: self.first.clone(),
            last: self.last.clone(),
            writes_read: false,
        };
        let tables = told.rows_at(moment).into_iter().zip(&self.plan.schema.tables);
        let literals = |row: &Row, table: &Table| {
            row.iter().zip(&table.columns).map(|(v, c)| literal(v, &c.of_type)).collect()
        };
        tables.map(|(rows, table)| rows.iter().map(|row| literals(row, table)).collect()).collect()
    }

    /// When each transaction began and ended.
    pub fn times(&self) -> Vec<(u64, u64)> {
        times(&self.trace)
    }

    /// For each operation of a transaction its place, as `place_of` gives one to the
    /// operations of the trace; none for what was never sent.
    pub fn places(&self, transaction: usize, place_of: &dyn Fn(usize) -> u64) -> Vec<Option<u64>> {
        let operations = self.trace.operations.iter().enumerate();
        let of = operations.filter(|(_, o)| o.transaction as usize == transaction);
        let count = self.transactions[transaction].operations();
        let mut places = vec![None; count];
        for (sent, (at, _)) in self.sent[transaction].1.iter().zip(of) {
            // What is read beside a statement belongs to it; its effect comes with the last.
            if let Some(of) = places.get_mut(*sent) {
                *of = Some(place_of(at));
            }
        }
        places
    }
}

/// A value that was read, to be written again.
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

fn times(trace: &Trace) -> Vec<(u64, u64)> {
    let mut times = vec![(u64::MAX, 0); trace.transactions.len()];
    for operation in &trace.operations {
        let (begin, end) = &mut times[operation.transaction as usize];
        *begin = (*begin).min(operation.start);
        *end = (*end).max(operation.end);
    }
    times
}

/// A transaction as it was sent: for each statement of the session what it means.
pub(super) struct Drawn {
    pub plan: TxPlan,
    pub sent: Vec<Meaning>,
    pub heard: Vec<Option<Heard>>,
}

pub(super) struct Meaning {
    /// Which statement of the transaction, counting what begins and ends it.
    pub place: usize,
    pub id: u64,
    pub probe: Probe,
}

/// Runs a round in an empty database. A server that falls is in what comes back as an
/// error.
pub fn play(
    runner: &mut Runner,
    generator: &Generator,
    number: u64,
    shape: &Shape,
) -> Result<Result<Played, Death>, HuntError> {
    let mut round = generator.round(number, shape.keys);
    let level = round.plan.level.unwrap_or(runner.engine.profile().default_level);
    let (engine, version) = {
        let (engine, version) = runner.engine.info().understood_as();
        (engine.to_string(), version.to_string())
    };
    let means = Means::of(&engine, &version);
    let instrument = Instrument::new(round.plan.schema.clone(), round.plan.dialect, means);
    let setup = lay(runner, &instrument, &round.plan)?;
    let first = whole_tables(runner, &instrument)?;
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
    let last = whole_tables(runner, &instrument)?;
    let allows = runner.engine.profile().promise(level).and_then(|p| p.allows.clone());
    let told = Told {
        instrument: &instrument,
        transactions: told(&drawn, &trace, &round.plan),
        first,
        last,
        writes_read: allows.as_ref().is_some_and(Vec::is_empty),
    };
    let phantoms_matter = allows
        .is_none_or(|allows| !allows.contains(&Anomaly::GSingle) || !allows.contains(&Anomaly::G2));
    let evaluated = if phantoms_matter || shape.all_predicates {
        evaluate(runner.engine.as_mut(), &instrument, told.evaluations())
            .map_err(isolde_engines::runner::RunError::Engine)?
    } else {
        Vec::new()
    };
    trace.setup = setup;
    super::accesses::fill_in(&mut trace, &drawn, &told);
    let account = told.account(&evaluated);
    let report = check(&account.history);
    let places = |drawn: &Drawn| drawn.sent.iter().map(|meaning| meaning.place).collect();
    let names = told.transactions.iter().map(|transaction| transaction.name.clone());
    let sent = names.zip(drawn.iter().map(places)).collect();
    let Told { transactions: told, first, last, .. } = told;
    Ok(Ok(Played {
        plan: round.plan,
        level,
        transactions: drawn.into_iter().map(|drawn| drawn.plan).collect(),
        trace,
        account,
        report,
        instrument,
        told,
        first,
        last,
        sent,
    }))
}

fn lay(
    runner: &mut Runner,
    instrument: &Instrument,
    plan: &Plan,
) -> Result<Vec<String>, HuntError> {
    let told = instrument.plan(plan);
    runner.clear()?;
    let mut statements = told.create_sql();
    statements.extend(told.reset_sql());
    statements.extend(instrument.create_versions_sql());
    match runner.engine.batch(&statements).map_err(isolde_engines::runner::RunError::Engine)? {
        Outcome::Error(error) => Err(HuntError::Fixture { sql: statements.join(";\n  "), error }),
        _ => Ok(statements),
    }
}

fn whole_tables(runner: &mut Runner, instrument: &Instrument) -> Result<Vec<Version>, HuntError> {
    let mut all = Vec::new();
    for Sent { statement, probe } in instrument.reads_of_tables() {
        let sql = statement.render(&instrument.dialect);
        match runner.engine.control(&sql).map_err(isolde_engines::runner::RunError::Engine)? {
            Outcome::Rows { rows, .. } => {
                if let Heard::Rows(versions) = instrument.hear(&probe, &rows) {
                    all.extend(versions);
                }
            }
            Outcome::Error(error) => return Err(HuntError::Fixture { sql, error }),
            Outcome::Affected(_) | Outcome::Done => {}
        }
    }
    Ok(all)
}

fn run(
    runner: &mut Runner,
    free: &FreeRun,
    instrument: &Instrument,
    round: &mut Round,
) -> Result<(Vec<Drawn>, Trace), HuntError> {
    // Both closures look at what was drawn, one after the other.
    let drawn: std::cell::RefCell<Vec<Drawn>> = std::cell::RefCell::default();
    let mut next_id = 1;
    let mut next = |who: usize| {
        let plan = round.transaction(&format!("s{}", who + 1));
        let (sent, texts) = instrumented(instrument, &plan, &mut next_id);
        let heard = vec![None; sent.len()];
        drawn.borrow_mut().push(Drawn { plan, sent, heard });
        Some(Statements::from(texts))
    };
    let mut watch = |answer: &Answer<'_>| {
        let mut drawn = drawn.borrow_mut();
        let Some(of) = drawn.get_mut(answer.transaction as usize) else { return };
        let Some(place) = answer.statement.filter(|place| *place < of.sent.len()) else { return };
        of.heard[place] = heard(instrument, &of.sent[place].probe, answer.reply);
    };
    let trace = free.run_watched(runner, &mut next, &mut watch)?;
    Ok((drawn.into_inner(), trace))
}

fn heard(instrument: &Instrument, probe: &Probe, reply: &Reply) -> Option<Heard> {
    match &reply.outcome {
        Outcome::Rows { rows, .. } => Some(instrument.hear(probe, rows)),
        Outcome::Affected(count) => Some(probe.counted(Some(*count))),
        Outcome::Done => Some(probe.counted(None)),
        Outcome::Error(_) => None,
    }
}

/// What a session sends for a transaction. Statements that cannot be followed are not
/// sent at all.
fn instrumented(
    instrument: &Instrument,
    plan: &TxPlan,
    next_id: &mut u64,
) -> (Vec<Meaning>, Vec<String>) {
    let (mut meanings, mut texts) = (Vec::new(), Vec::new());
    for (place, (_, item)) in plan.sequence().into_iter().enumerate() {
        let statement = item.statement();
        let id = *next_id;
        *next_id += 1;
        let sent = match &item {
            Item::Start(_) | Item::End(_) => vec![plain(&statement)],
            Item::Statement(statement) => match instrument.statement(id, statement) {
                Ok(sent) => sent,
                Err(_) if statement.written_table().is_none() => vec![plain(statement)],
                Err(_) => continue,
            },
        };
        for Sent { statement, probe } in sent {
            texts.push(statement.render(&instrument.dialect));
            meanings.push(Meaning { place, id, probe });
        }
    }
    (meanings, texts)
}

/// What each transaction told.
fn told(drawn: &[Drawn], trace: &Trace, plan: &Plan) -> Vec<TransactionTold> {
    let times = times(trace);
    let mut count = vec![0; trace.sessions.len()];
    let mut all = Vec::new();
    for ((traced, drawn), times) in trace.transactions.iter().zip(drawn).zip(times) {
        let session = &trace.sessions[traced.session as usize];
        count[traced.session as usize] += 1;
        all.push(TransactionTold {
            name: format!("{session}.{}", count[traced.session as usize]),
            session: session.clone(),
            how: traced.how,
            times: Some(times),
            statements: statements(drawn, plan),
        });
    }
    all
}

fn statements(drawn: &Drawn, plan: &Plan) -> Vec<StatementTold> {
    let sequence = drawn.plan.sequence();
    let mut all: Vec<StatementTold> = Vec::new();
    // Savepoints, and how many statements there were before each.
    let mut savepoints: Vec<(String, usize)> = Vec::new();
    for (meaning, heard) in drawn.sent.iter().zip(&drawn.heard) {
        let Some((_, item)) = sequence.get(meaning.place) else { continue };
        let statement = item.statement();
        let Some(heard) = heard else {
            // Nothing was done, so what was looked at before means nothing. Should somebody
            // see it all the same, it was taken back.
            match all.last_mut() {
                Some(last) if last.id == meaning.id => {
                    (last.heard, last.undone) = (Vec::new(), true)
                }
                _ => all.push(StatementTold {
                    id: meaning.id,
                    text: statement.render(&plan.dialect),
                    heard: Vec::new(),
                    undone: true,
                }),
            }
            continue;
        };
        match &*statement {
            Stmt::Savepoint(name) => savepoints.push((name.clone(), all.len())),
            Stmt::RollbackTo(name) => {
                let from =
                    savepoints.iter().rev().find(|(n, _)| n == name).map_or(all.len(), |s| s.1);
                all[from..].iter_mut().for_each(|statement| statement.undone = true);
            }
            _ => {}
        }
        if meaning.probe == Probe::Nothing {
            continue;
        }
        let entry = (meaning.probe.clone(), heard.clone());
        match all.last_mut() {
            Some(last) if last.id == meaning.id => last.heard.push(entry),
            _ => all.push(StatementTold {
                id: meaning.id,
                text: statement.render(&plan.dialect),
                heard: vec![entry],
                undone: false,
            }),
        }
    }
    all
}
