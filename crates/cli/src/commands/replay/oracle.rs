//! `isolde replay --oracle …`: checks cases with an oracle that a hunt uses on
//! request. `isolation` runs them on instrumented tables and reports dependency
//! cycles; `serial_oracle.rs` has the oracles that compare with other runs.

use super::serial_oracle::{CaseCheck, check_case};
use crate::args::replay::ReplayArgs;
use crate::commands::Outcome;
use crate::commands::context::{Context, LevelChoice};
use crate::commands::loaded_case::LoadedCase;
use crate::exit_code::{ExitCode, Failure};
use isolde_checker::Anomaly;
use isolde_hunt::HuntError;
use isolde_hunt::check::allowed;
use isolde_hunt::executor::{Executor, Fixture};
use isolde_model::Case;
use isolde_model::Level;
use isolde_model::inquiry::Inquiry;
use isolde_model::parsed_case::ParsedCase;
use isolde_oracles as oracle;
use isolde_oracles::instrumented_run::Examined;
use isolde_oracles::isolation;
use isolde_oracles::isolation::Examination;
use isolde_oracles::{ORACLES, Oracle, is_ruled_out};
use serde_json::{Value, json};

/// A case at one level of a target, checked for dependency cycles.
struct IsolationCheck {
    case: String,
    target: String,
    level: Level,
    /// The anomalies that the level allows; none if its documentation does not
    /// say.
    allows: Option<Vec<isolde_model::Anomaly>>,
    /// The examination, or why there is none.
    examination: Result<Examination, String>,
    statements: Vec<String>,
}

pub fn run(context: &Context<'_>, args: &ReplayArgs) -> Outcome {
    let oracles = parse_oracles(&args.oracle)?;
    let levels = LevelChoice::parse(&args.level)?;
    let (mut all, mut worst): (Vec<Value>, _) = (Vec::new(), ExitCode::Success);
    for file in &args.files {
        let loaded = LoadedCase::read(file)?;
        let targets = match args.on.as_slice() {
            [] => vec![loaded.own_target(context)?],
            named => context.parse_targets(named)?,
        };
        for target in targets {
            let mut executor = match loaded.open(context, &target) {
                Ok(executor) => executor,
                Err(failure) => {
                    context.console.error(&format!("{target}: {}", failure.message));
                    worst = worst.worse(failure.code);
                    continue;
                }
            };
            let profile = executor.runner.engine.profile().clone();
            let wanted = match &levels {
                None => vec![loaded.case.level.unwrap_or(profile.default_level)],
                Some(LevelChoice::All) => profile.level_names(),
                Some(LevelChoice::These(levels)) => levels.clone(),
            };
            for level in wanted {
                let mut case = loaded.case.clone().read_as(executor.runner.engine.info().family());
                case.level = Some(level);
                executor.runner.check_levels(&case, None)?;
                for oracle in &oracles {
                    let target = target.to_string();
                    let (code, text, json) = match oracle {
                        Oracle::Isolation => {
                            let check = check_isolation(&mut executor, &case, level, target)?;
                            (check.code(), check.text(), check.json())
                        }
                        other => {
                            let result = check_case(&mut executor, (&case, level), *other)?;
                            let check =
                                CaseCheck { case: &case, target: &target, level, oracle: *other };
                            (result.code(), check.text(&result), check.json(&result))
                        }
                    };
                    worst = worst.worse(code);
                    if !context.json {
                        context.console.print(text.trim_end());
                    }
                    all.push(json);
                }
            }
        }
    }
    if context.json {
        context.console.print(&Value::from(all).to_string());
    }
    Ok(worst)
}

fn parse_oracles(names: &[String]) -> Result<Vec<Oracle>, Failure> {
    let mut oracles = Vec::new();
    for name in names {
        match oracle::find(name) {
            Ok(oracle) if oracle.description().judges_own_runs => oracles.push(oracle),
            _ => {
                let own = ORACLES.iter().filter(|oracle| oracle.description().judges_own_runs);
                let names: Vec<String> = own.map(|oracle| format!("`{oracle}`")).collect();
                let text = format!("replay --oracle takes {}, not `{name}`", names.join(" or "));
                return Err(Failure::new(ExitCode::Usage, text));
            }
        }
    }
    Ok(oracles)
}

fn check_isolation(
    executor: &mut Executor,
    case: &Case,
    level: Level,
    target: String,
) -> Result<IsolationCheck, Failure> {
    let allows = allowed(case, executor.runner.engine.profile());
    let examination = examine(executor, case, level, allows.as_deref())?;
    let statements = case.steps.iter().map(|step| step.sql.clone()).collect();
    Ok(IsolationCheck { case: case.id.clone(), target, level, allows, examination, statements })
}

/// Examines the dependencies of a run, or says why that is impossible.
fn examine(
    executor: &mut Executor,
    case: &Case,
    level: Level,
    allows: Option<&[isolde_model::Anomaly]>,
) -> Result<Result<Examination, String>, Failure> {
    let on = executor.runner.engine.info().clone();
    let reading = ParsedCase::of_case(case, &on, level);
    let fixture = Fixture { versions: None, ..Fixture::of_case(case, &on, level) };
    let about = &Examined { case, reading: &reading, on: &on, allows };
    let inquiry = Inquiry::new(|channel| async move { isolation::examine(about, &channel).await });
    match executor.inquire((&fixture, case), inquiry, &mut Vec::new()) {
        Ok(examination) => Ok(examination),
        Err(HuntError::Fixture { error, .. }) => {
            Ok(Err(format!("creating the tables failed: {error}")))
        }
        Err(error) => Err(error.into()),
    }
}

impl IsolationCheck {
    /// The anomalies of the data, and whether the level rules each of them out.
    fn anomalies(&self) -> Vec<(&Anomaly, bool)> {
        let Ok(examination) = &self.examination else { return Vec::new() };
        let of_data = examination.report.anomalies.iter().filter(|a| a.through.is_none());
        let ruled_out =
            |a: &Anomaly| self.allows.as_ref().is_some_and(|allows| is_ruled_out(a.class, allows));
        of_data.map(|anomaly| (anomaly, ruled_out(anomaly))).collect()
    }

    fn code(&self) -> ExitCode {
        match &self.examination {
            Err(_) => ExitCode::Undecided,
            Ok(_) if self.anomalies().iter().any(|(_, ruled_out)| *ruled_out) => {
                ExitCode::Violation
            }
            Ok(_) => ExitCode::Success,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} on {} at {}\n", self.case, self.target, self.level);
        let examination = match &self.examination {
            Ok(examination) => examination,
            Err(why) => return format!("{text}  unknown: {why}\n"),
        };
        for (step, why) in &examination.not_instrumented {
            text.push_str(&format!("  not instrumented: {}: {why}\n", self.statements[*step]));
        }
        let anomalies = self.anomalies();
        if anomalies.is_empty() {
            text.push_str("  no anomaly: the reads and writes have a serial order\n");
        }
        for (anomaly, ruled_out) in anomalies {
            let allowed = match (ruled_out, &self.allows) {
                (true, _) => "ruled out by the level's documentation",
                (false, Some(_)) => "allowed at this level",
                (false, None) => "the level's documentation does not mention it",
            };
            let name = anomaly.name();
            text.push_str(&format!("  {name}, {}: {allowed}\n", anomaly.class.meaning()));
            for sentence in anomaly.sentences(&examination.history) {
                text.push_str(&format!("    {sentence}\n"));
            }
        }
        text
    }

    fn json(&self) -> Value {
        let (anomalies, left_alone) = match &self.examination {
            Err(_) => (Vec::new(), Vec::new()),
            Ok(examination) => {
                let one = |(anomaly, ruled_out): (&Anomaly, bool)| {
                    json!({"class": anomaly.name(), "ruled_out": ruled_out,
                        "cycle": anomaly.sentences(&examination.history)})
                };
                let left = |(step, why): &(usize, isolde_oracles::instrument::NotInstrumented)| json!({"sql": self.statements[*step], "why": why.0});
                let left = examination.not_instrumented.iter().map(left).collect();
                (self.anomalies().into_iter().map(one).collect::<Vec<_>>(), left)
            }
        };
        json!({"case": self.case, "target": self.target, "level": self.level,
            "unknown": self.examination.as_ref().err(), "anomalies": anomalies,
            "left_alone": left_alone as Vec<Value>})
    }
}
