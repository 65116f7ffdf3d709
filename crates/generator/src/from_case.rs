//! Converts a case from a file to a plan, if all of it can be parsed.

use super::plan::number_operations;
use super::{End, OpId, Plan, PlannedStatement, Start, TxPlan};
use isolde_model::case::{Case, Step};
use isolde_model::history::TargetInfo;
use isolde_model::parsed_case::begin_form;
use isolde_sql::dialect::Family;
use isolde_sql::fixture::{Fixture, Rows};
use isolde_sql::read::{schema, statement};
use isolde_sql::{Control, Expr, InsertSource, Kind, Literal, Schema, Stmt, Write, kind};

impl Plan {
    /// The tables, rows, transactions and schedule of a case. The error is the reason why it
    /// cannot be converted, as the end of a sentence.
    pub fn of_case(case: &Case, on: &TargetInfo) -> Result<Plan, String> {
        let dialect = on.dialect();
        let case = &case.clone().read_as(dialect.family);
        let setup: Vec<&str> =
            case.setup_for(&on.engine, &on.version).iter().map(|s| s.sql.as_str()).collect();
        let read = schema(setup.iter().copied(), dialect.family);
        if let Some(unread) = read.unread.first() {
            return Err(format!("a table of the setup is not read: {}", unread.reason));
        }
        if !read.schema.views.is_empty() {
            return Err("the setup makes a view".into());
        }
        let rows = first_rows(&setup, &read.schema, dialect.family)?;
        let (transactions, schedule) = read_transactions(case, &on.engine)?;
        let mut plan = Plan::of_fixture(Fixture { schema: read.schema, rows, dialect });
        plan.level = case.level;
        (plan.transactions, plan.schedule) = (transactions, schedule);
        Ok(plan)
    }
}

fn first_rows(setup: &[&str], schema: &Schema, family: Family) -> Result<Vec<Rows>, String> {
    let mut rows: Vec<Rows> = vec![Vec::new(); schema.tables.len()];
    for sql in setup.iter().filter(|sql| kind(sql) != Kind::Ddl) {
        let unread = || format!("a statement of the setup is not read: {sql}");
        let Some(Stmt::Write(Write::Insert(insert))) = statement(sql, family) else {
            return Err(unread());
        };
        let InsertSource::Values(values) = &insert.source else { return Err(unread()) };
        let place = schema.tables.iter().position(|t| t.name == insert.table).ok_or_else(unread)?;
        let table = &schema.tables[place];
        let all: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
        let named = if insert.columns.is_empty() { &all } else { &insert.columns };
        for row in values {
            let cell = |column: &isolde_sql::Column| -> Option<Literal> {
                match named.iter().position(|name| *name == column.name) {
                    Some(at) => match row.get(at)? {
                        Expr::Literal(literal) => Some(literal.clone()),
                        _ => None,
                    },
                    None if column.numbered.is_some() => None,
                    None => Some(column.default.clone().unwrap_or(Literal::Null)),
                }
            };
            let cells: Option<Vec<Literal>> = table.columns.iter().map(cell).collect();
            rows[place].push(cells.ok_or_else(unread)?);
        }
    }
    Ok(rows)
}

/// The transactions in the order of their starts, and the schedule.
fn read_transactions(case: &Case, engine: &str) -> Result<(Vec<TxPlan>, Vec<OpId>), String> {
    // `sent` has the transaction of each step and its role in the transaction.
    let mut transactions: Vec<TxPlan> = Vec::new();
    let mut open: Vec<(&str, usize)> = Vec::new();
    let mut off: Vec<&str> = Vec::new();
    let mut sent: Vec<(usize, Role)> = Vec::new();
    for step in &case.steps {
        let unread = || format!("a step is not read: {} {}", step.prompt(), step.sql);
        if step.anyway {
            return Err("a step is sent whatever became of its transaction".into());
        }
        let statement = step.statement().ok_or_else(unread)?;
        let current = open.iter().position(|(session, _)| *session == step.session);
        match (statement, current) {
            (Stmt::Control(Control::Begin(begin)), None) => {
                let form = begin_form(begin, engine)?;
                let mut tx = new_transaction(case, step, Start::Explicit(form));
                tx.level = step.level.or(begin.characteristics.level).or(tx.level);
                sent.push((transactions.len(), Role::Start));
                open.push((&step.session, transactions.len()));
                transactions.push(tx);
            }
            (Stmt::Control(Control::SetAutocommit(false)), None)
                if !off.contains(&step.session.as_str()) =>
            {
                off.push(&step.session);
                sent.push((transactions.len(), Role::Start));
                open.push((&step.session, transactions.len()));
                transactions.push(new_transaction(case, step, Start::AutocommitOff));
            }
            (_, None) if off.contains(&step.session.as_str()) => {
                return Err("a session goes on with autocommit off".into());
            }
            (Stmt::Control(end @ (Control::Commit | Control::Rollback)), Some(at)) => {
                let (_, tx) = open.remove(at);
                let commits = *end == Control::Commit;
                transactions[tx].end = if commits { End::Commit } else { End::Rollback };
                sent.push((tx, Role::End));
            }
            (
                Stmt::Control(
                    Control::Begin(_)
                    | Control::Commit
                    | Control::Rollback
                    | Control::SetAutocommit(_)
                    | Control::SetTransaction(_),
                ),
                _,
            ) => return Err(unread()),
            (other, current) => {
                let tx = current.map_or(transactions.len(), |at| open[at].1);
                if current.is_none() {
                    transactions.push(new_transaction(case, step, Start::Autocommit));
                }
                sent.push((tx, Role::Statement(transactions[tx].statements.len())));
                transactions[tx]
                    .statements
                    .push(PlannedStatement { id: OpId(0), statement: other.clone() });
            }
        }
    }
    number_operations(&mut transactions);
    let id = |(tx, sent): (usize, Role)| match sent {
        Role::Start => transactions[tx].start_id,
        Role::Statement(n) => transactions[tx].statements[n].id,
        Role::End => transactions[tx].end_id,
    };
    let schedule = sent.into_iter().map(id).collect();
    Ok((transactions, schedule))
}

/// The role of a step in its transaction.
enum Role {
    Start,
    Statement(usize),
    End,
}

fn new_transaction(case: &Case, step: &Step, start: Start) -> TxPlan {
    let own = case.session_levels.iter().find(|(name, _)| *name == step.session);
    TxPlan {
        session: step.session.clone(),
        level: own.map(|(_, level)| *level),
        start_id: OpId(0),
        start,
        statements: Vec::new(),
        end_id: OpId(0),
        end: End::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generator, Options};
    use isolde_model::Level;
    use isolde_model::case::{format, parse};
    use isolde_sql::Dialect;
    use std::collections::BTreeMap;

    fn on(engine: &str) -> TargetInfo {
        TargetInfo {
            target: engine.into(),
            engine: engine.into(),
            version: "15.1".into(),
            settings: BTreeMap::new(),
            follows: None,
        }
    }

    #[test]
    fn generated_case_is_converted_back_to_its_plan() {
        for engine in ["postgres", "sqlite", "mariadb"] {
            let options = Options::new(vec![Level::Serializable], Level::Serializable);
            let generator = Generator::new(Dialect::for_engine(engine, "15.1"), 5, options);
            let mut read = 0;
            for number in 0..60 {
                let text = format(&generator.plan(number).to_case());
                let case = parse(&text).unwrap();
                let Ok(plan) = Plan::of_case(&case, &on(engine)) else { continue };
                let again = Case { id: case.id.clone(), ..plan.to_case() };
                assert_eq!(format(&again), text);
                read += 1;
            }
            assert!(read > 30, "{engine}: {read} of 60");
        }
    }

    #[test]
    fn conversion_error_names_the_reason() {
        let of = |text: &str| Plan::of_case(&parse(text).unwrap(), &on("postgres")).unwrap_err();
        let table = "case: x\n\nsetup:\n  create table t (a int);\n";
        assert!(of(&format!("{table}\ns1> listen t;\n")).contains("listen t"));
        assert!(
            of(&format!("{table}  insert into t select 1;\n\ns1> select 1;\n")).contains("setup")
        );
        assert!(of(&format!("{table}\ns1(anyway)> commit;\n")).contains("whatever became"));
        assert!(
            of("case: x\n\nsetup:\n  create view v as select 1 as a;\n\ns1> select 1;\n")
                .contains("view")
        );
    }
}
