//! `isolde faults`: plants each fault and shows which oracles detect it.

use super::Outcome;
use super::context::Context;
use super::hunt::{chosen_levels, open_engine};
use crate::args::faults::FaultsArgs;
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::{interrupt, table};
use isolde_engines::fault::{self, Concerns, FAULTS, Fault, Planted};
use isolde_generator::{Generator, Options};
use isolde_hunt::fault_trial::{self, Detection, FaultTrial};
use isolde_oracles::ORACLES;
use serde_json::json;

/// Further cases for the slower oracles, after the first has detected the fault.
const MORE_CASES: u64 = 600;

/// A fault, and the oracles that detected it or why it cannot be planted.
struct Row {
    fault: &'static Fault,
    outcome: Result<Vec<Detection>, String>,
}

pub fn run(context: &Context<'_>, args: &FaultsArgs) -> Outcome {
    let chosen: Vec<&'static Fault> = if args.fault.is_empty() {
        FAULTS.iter().collect()
    } else {
        let found: Result<Vec<_>, String> = args.fault.iter().map(|n| fault::find(n)).collect();
        found.map_err(|e| Failure::new(ExitCode::Usage, e))?
    };
    if args.list {
        let rows: Vec<Vec<String>> = chosen
            .iter()
            .map(|f| {
                vec![f.name.into(), concerns(f).into(), format!("{}; strikes {}", f.about, f.when)]
            })
            .collect();
        context.console.print(&table::layout(&rows, 90, &|_, _, text| text.to_string()));
        return Ok(ExitCode::Success);
    }
    let target = context.parse_target(&args.target)?;
    let mut rows = Vec::new();
    let mut name = String::new();
    for fault in chosen {
        let planted = Planted { fault, rate: args.fault_rate, seed: args.seed };
        context.console.progress(&format!("{} on {target}", fault.name));
        let plain = target.open(&context.options)?;
        let info = plain.info().clone();
        name = format!("{} {}", info.engine, info.version);
        if let Some(why) = fault.unsupported_on(&info.engine, plain.profile()) {
            rows.push(Row { fault, outcome: Err(why.into()) });
            continue;
        }
        let levels = chosen_levels(&args.level, plain.profile())?;
        let options = Options::new(levels, plain.profile().default_level);
        let engine = open_engine(context, &target, Some(planted))?;
        let dialect = info.dialect();
        let generator = Generator::new(dialect, args.seed, options);
        let trial = FaultTrial {
            generator: &generator,
            oracles: ORACLES,
            cases: args.cases,
            more: if fault.concerns == Concerns::Server { 0 } else { MORE_CASES },
            interrupted: interrupt::is_requested,
        };
        let sightings = fault_trial::run(&trial, engine, plain)?;
        rows.push(Row { fault, outcome: Ok(sightings) });
    }
    context.console.end_progress();
    if context.json {
        context.console.print(&as_json(&name, args, &rows).to_string());
    } else {
        show(context, &name, args, &rows);
    }
    Ok(code_of(&rows))
}

/// A fault in writes that no oracle detects is a gap in the oracles.
fn code_of(rows: &[Row]) -> ExitCode {
    let missed = |row: &Row| {
        row.fault.concerns == Concerns::Writes && row.outcome.as_ref().is_ok_and(Vec::is_empty)
    };
    if rows.iter().any(missed) { ExitCode::Violation } else { ExitCode::Success }
}

fn concerns(fault: &Fault) -> &'static str {
    match fault.concerns {
        Concerns::Writes => "writes",
        Concerns::Reads => "reads",
        Concerns::Server => "server",
    }
}

fn show(context: &Context<'_>, name: &str, args: &FaultsArgs, rows: &[Row]) {
    let console = context.console;
    let mut head = vec!["fault".to_string(), "concerns".to_string()];
    head.extend(ORACLES.iter().map(|o| o.name().to_string()));
    let mut cells = vec![head];
    for row in rows {
        let mut line = vec![row.fault.name.to_string(), concerns(row.fault).to_string()];
        match &row.outcome {
            Err(why) => line.push(format!("cannot be planted: {why}")),
            Ok(sightings) => line.extend(ORACLES.iter().map(|oracle| {
                match sightings.iter().find(|s| s.oracle == oracle.name()) {
                    Some(s) if s.cases == 1 => format!("1 case, {:.1} s", s.seconds),
                    Some(s) => format!("{} cases, {:.1} s", s.cases, s.seconds),
                    None => "–".to_string(),
                }
            })),
        }
        cells.push(line);
    }
    console.print(&console.paint(
        Style::Strong,
        &format!(
            "{name}, rate {}, seed {}, at most {} cases",
            args.fault_rate, args.seed, args.cases
        ),
    ));
    console.print(&table::layout(&cells, 70, &|r, _, text| match (r, text) {
        (0, _) => console.paint(Style::Strong, text),
        (_, "–") => console.paint(Style::Dim, text),
        _ => text.to_string(),
    }));
    console.comment(
        "Cases and time until the fault was detected; –: not detected.\nThe write-specific oracles \
         (tx-wss, stmt-wss) compare final rows and the effects of writes;\nthey ignore what reads \
         return, except at SERIALIZABLE, where the serial order is the commit order.",
    );
}

fn as_json(name: &str, args: &FaultsArgs, rows: &[Row]) -> serde_json::Value {
    let faults: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| match &row.outcome {
            Ok(sightings) => json!({
                "fault": row.fault.name, "concerns": concerns(row.fault), "caught": sightings,
            }),
            Err(why) => json!({
                "fault": row.fault.name, "concerns": concerns(row.fault), "unsupported": why,
            }),
        })
        .collect();
    json!({"target": name, "seed": args.seed, "rate": args.fault_rate, "cases": args.cases,
           "faults": faults})
}
