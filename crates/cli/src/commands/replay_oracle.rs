//! `isolde replay --oracle …`: cases on tables that tell which versions were read and
//! written, which cycles they form, and what the same statements do in other runs.

use super::explain::{open, read};
use super::replay_judged::{Judged, judged};
use super::replay_target::own_target;
use super::{Context, Levels, Outcome, parse_levels};
use crate::exit_code::{ExitCode, Failure};
use isolde_checker::Anomaly;
use isolde_core::Case;
use isolde_core::Level;
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::isolation::{self, Examination, Examined};
use isolde_core::oracle::{self, Oracle, is_ruled_out};
use isolde_core::semantics::Reading;
use isolde_hunt::HuntError;
use isolde_hunt::check::allowed;
use isolde_hunt::executor::{Executor, Fixture};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A case at one level of a target.
struct Seen {
    case: String,
    target: String,
    level: Level,
    /// What the level allows; none where its documentation does not say.
    allows: Option<Vec<isolde_core::Anomaly>>,
    what: Result<Examination, String>,
    texts: Vec<String>,
}

pub fn run(
    context: &Context<'_>,
    files: &[PathBuf],
    targets: &[String],
    levels: &[String],
    oracles: &[String],
) -> Outcome {
    let mut wanted_oracles = Vec::new();
    for name in oracles {
        match oracle::find(name) {
            Ok(oracle @ (Oracle::Isolation | Oracle::Topological | Oracle::Merged)) => {
                wanted_oracles.push(oracle);
            }
            _ => {
                let text = format!(
                    "replay judges by `isolation`, `topological` or `merged`, not by `{name}`"
                );
                return Err(Failure::new(ExitCode::Usage, text));
            }
        }
    }
    let levels = parse_levels(levels)?;
    let (mut all, mut worst): (Vec<Value>, _) = (Vec::new(), ExitCode::Fine);
    for file in files {
        let (case, seen) = read(file)?;
        let own = [own_target(context, &case, seen.as_ref())];
        for name in if targets.is_empty() { &own[..] } else { targets } {
            let target = context.parse_target(name)?;
            let mut executor = match open(context, &target, &case, None) {
                Ok(executor) => executor,
                Err(failure) => {
                    context.console.error(&format!("{target}: {}", failure.message));
                    worst = worst.worse(failure.code);
                    continue;
                }
            };
            let profile = executor.runner.engine.profile().clone();
            let wanted = match &levels {
                None => vec![case.level.unwrap_or(profile.default_level)],
                Some(Levels::All) => profile.level_names(),
                Some(Levels::These(levels)) => levels.clone(),
            };
            for level in wanted {
                let mut case = case.clone().read_as(executor.runner.engine.info().family());
                case.level = Some(level);
                executor.runner.check_levels(&case, None)?;
                for oracle in &wanted_oracles {
                    let (code, text, json) = match oracle {
                        Oracle::Isolation => {
                            let allows = allowed(&case, &profile);
                            let what = examined(&mut executor, &case, level, allows.as_deref())?;
                            let texts = case.steps.iter().map(|step| step.sql.clone()).collect();
                            let (case, target) = (case.id.clone(), target.to_string());
                            let seen = Seen { case, target, level, allows, what, texts };
                            (seen.code(), seen.text(), seen.json())
                        }
                        other => {
                            let judged = judged(&mut executor, (&case, level), *other)?;
                            let name = target.to_string();
                            let seen = Judged { case: &case, target: &name, level, oracle: *other };
                            (judged.code(), seen.text(&judged), seen.json(&judged))
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

fn examined(
    executor: &mut Executor,
    case: &Case,
    level: Level,
    allows: Option<&[isolde_core::Anomaly]>,
) -> Result<Result<Examination, String>, Failure> {
    let on = executor.runner.engine.info().clone();
    let reading = Reading::of_case(case, &on, level);
    let fixture = Fixture { versions: None, ..Fixture::of_case(case, &on, level) };
    let about = &Examined { case, reading: &reading, on: &on, allows };
    let inquiry = Inquiry::new(|desk| async move { isolation::examine(about, &desk).await });
    match executor.inquire((&fixture, case), inquiry, &mut Vec::new()) {
        Ok(examination) => Ok(examination),
        Err(HuntError::Fixture { error, .. }) => Ok(Err(format!("its tables: {error}"))),
        Err(error) => Err(error.into()),
    }
}

impl Seen {
    fn anomalies(&self) -> Vec<(&Anomaly, bool)> {
        let Ok(examination) = &self.what else { return Vec::new() };
        let of_data = examination.report.anomalies.iter().filter(|a| a.through.is_none());
        let ruled_out =
            |a: &Anomaly| self.allows.as_ref().is_some_and(|allows| is_ruled_out(a.class, allows));
        of_data.map(|anomaly| (anomaly, ruled_out(anomaly))).collect()
    }

    fn code(&self) -> ExitCode {
        match &self.what {
            Err(_) => ExitCode::Undecided,
            Ok(_) if self.anomalies().iter().any(|(_, ruled_out)| *ruled_out) => {
                ExitCode::Violation
            }
            Ok(_) => ExitCode::Fine,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} on {} at {}\n", self.case, self.target, self.level);
        let examination = match &self.what {
            Ok(examination) => examination,
            Err(why) => return format!("{text}  unknown: {why}\n"),
        };
        for (step, why) in &examination.left_alone {
            text.push_str(&format!("  left alone: {}: {why}\n", self.texts[*step]));
        }
        let anomalies = self.anomalies();
        if anomalies.is_empty() {
            text.push_str("  no anomaly: a serial order explains what was read and written\n");
        }
        for (anomaly, ruled_out) in anomalies {
            let allowed = match (ruled_out, &self.allows) {
                (true, _) => "ruled out by the level's documentation",
                (false, Some(_)) => "allowed at this level",
                (false, None) => "the level's documentation does not say",
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
        let (anomalies, left_alone) = match &self.what {
            Err(_) => (Vec::new(), Vec::new()),
            Ok(examination) => {
                let one = |(anomaly, ruled_out): (&Anomaly, bool)| {
                    json!({"class": anomaly.name(), "ruled_out": ruled_out,
                        "cycle": anomaly.sentences(&examination.history)})
                };
                let left = |(step, why): &(usize, isolde_core::instrument::LeftAlone)| json!({"sql": self.texts[*step], "why": why.0});
                let left = examination.left_alone.iter().map(left).collect();
                (self.anomalies().into_iter().map(one).collect::<Vec<_>>(), left)
            }
        };
        json!({"case": self.case, "target": self.target, "level": self.level,
            "unknown": self.what.as_ref().err(), "anomalies": anomalies,
            "left_alone": left_alone as Vec<Value>})
    }
}
