//! `isolde anomalies`: which classes of anomalies occur at which level, by running
//! transactions at full speed and checking their history.

use super::Outcome;
use super::context::{Context, LevelChoice};
use super::seed::new_seed;
use crate::args::anomalies::AnomaliesArgs;
use crate::exit_code::{ExitCode, Failure};
use crate::table::layout_within;
use isolde_checker::{Anomaly, Class, Status, check};
use isolde_engines::free_run::{FreeRun, OnAbort, Stop};
use isolde_engines::runner::Runner;
use isolde_hunt::workload::{Shape, Workload, WorkloadRecorder};
use isolde_model::Level;
use isolde_model::history::TargetInfo;
use isolde_oracles::is_ruled_out;
use serde_json::{Value, json};

/// One level of a target, and the anomalies that occurred at it.
struct Row {
    on: TargetInfo,
    level: Level,
    transactions: usize,
    committed: usize,
    found: Vec<FoundClass>,
}

/// A class of anomalies that occurred.
struct FoundClass {
    class: Class,
    count: usize,
    /// Whether the documentation of the level rules it out.
    is_ruled_out: bool,
    witness: Vec<String>,
}

pub fn run(context: &Context<'_>, args: &AnomaliesArgs) -> Outcome {
    let levels = LevelChoice::parse(&args.level)?;
    let targets = context.parse_targets(&args.targets)?;
    let seed = args.seed.unwrap_or_else(new_seed);
    let (rows, worst) = context.each_target(&targets, |mut runner| {
        let levels = LevelChoice::among(levels.as_ref(), &runner);
        let rows = levels.into_iter().map(|level| survey(context, &mut runner, level, args, seed));
        rows.collect::<Result<Vec<Row>, Failure>>()
    });
    let rows: Vec<Row> = rows.into_iter().flatten().collect();
    context.console.end_progress();
    if context.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        let version = env!("CARGO_PKG_VERSION");
        let all = json!({"isolde": version, "seed": seed, "levels": rows});
        context.console.print(&all.to_string());
    } else if !rows.is_empty() {
        context.console.print(table(context, &rows).trim_end());
        let any = rows.iter().any(|row| !row.found.is_empty());
        let each = humantime::format_duration(args.time);
        context.console.comment(&format!(
            "{} ({each} per level, seed {seed})",
            match any {
                true =>
                    "Anomalies per class; ! marks a class that the level's documentation rules out",
                false => "No anomaly occurred",
            }
        ));
        for row in &rows {
            context.console.print(row.witnesses().trim_end());
        }
    }
    let broken = rows.iter().flat_map(|row| &row.found).any(|found| found.is_ruled_out);
    Ok(worst.worse(if broken { ExitCode::Violation } else { ExitCode::Success }))
}

fn survey(
    context: &Context<'_>,
    runner: &mut Runner,
    level: Level,
    args: &AnomaliesArgs,
    seed: u64,
) -> Result<Row, Failure> {
    let on = runner.engine.info().clone();
    context.console.progress(&format!("{} {level}", on.target));
    let allows = runner.engine.profile().promise(level).and_then(|promise| promise.allows.clone());
    let shape =
        Shape { workload: Workload::ListAppend, keys: args.keys as usize, ..Shape::default() };
    let stop = Stop { transactions: None, time: Some(args.time) };
    let sessions = usize::from(args.sessions);
    let free = FreeRun { sessions, level: Some(level), on_abort: OnAbort::GiveUp, stop };
    let history = WorkloadRecorder { shape, free, seed }.run(runner)?.history;
    let report = check(&history);
    let found = |anomaly: &Anomaly| FoundClass {
        class: anomaly.class,
        count: anomaly.count,
        is_ruled_out: allows.as_ref().is_some_and(|allows| is_ruled_out(anomaly.class, allows)),
        witness: anomaly.sentences(&history),
    };
    // No isolation level of SQL restricts session order or real time.
    let of_data = report.anomalies.iter().filter(|anomaly| anomaly.through.is_none());
    Ok(Row {
        on,
        level,
        transactions: history.len(),
        committed: history
            .transactions()
            .filter(|t| history.status(*t) == Status::Committed)
            .count(),
        found: of_data.map(found).collect(),
    })
}

fn table(context: &Context<'_>, rows: &[Row]) -> String {
    let is_found =
        |class: &Class| rows.iter().flat_map(|row| &row.found).any(|found| found.class == *class);
    let columns: Vec<Class> = Class::ALL.into_iter().filter(is_found).collect();
    let mut lines = vec![
        ["".to_owned(), "committed".to_owned()]
            .into_iter()
            .chain(columns.iter().map(ToString::to_string))
            .collect::<Vec<_>>(),
    ];
    let mut last = String::new();
    for row in rows {
        let name = format!("{} {}", row.on.engine, row.on.version);
        if name != last {
            lines.push(vec![name.clone()]);
            last = name;
        }
        let mut line = vec![format!("  {}", row.level), row.committed.to_string()];
        for class in &columns {
            line.push(match row.found.iter().find(|found| found.class == *class) {
                None => "·".into(),
                Some(found) if found.is_ruled_out => format!("{}!", found.count),
                Some(found) => found.count.to_string(),
            });
        }
        lines.push(line);
    }
    layout_within(&lines, context.console.width(), &|_, _, text| text.to_owned())
}

impl Row {
    /// One witness per class; classes with the same cycle share one.
    fn witnesses(&self) -> String {
        let mut text = String::new();
        let mut shown: Vec<&FoundClass> = Vec::new();
        for found in &self.found {
            if shown.iter().any(|other| other.witness == found.witness) {
                continue;
            }
            let same = self.found.iter().filter(|other| other.witness == found.witness);
            let classes: Vec<&str> = same.map(|other| other.class.name()).collect();
            let (target, level) = (&self.on.target, self.level);
            text.push_str(&format!("\n{target} at {level}: {}\n", classes.join(", ")));
            for sentence in &found.witness {
                text.push_str(&format!("  {sentence}\n"));
            }
            shown.push(found);
        }
        text
    }

    fn json(&self) -> Value {
        let found = |found: &FoundClass| {
            json!({"class": found.class.name(), "count": found.count,
                "ruled_out": found.is_ruled_out, "witness": found.witness})
        };
        json!({"target": self.on, "level": self.level, "transactions": self.transactions,
            "committed": self.committed, "anomalies": self.found.iter().map(found).collect::<Vec<_>>()})
    }
}
