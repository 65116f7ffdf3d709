//! `isolde explain --fix`: the case again, with what prevents its anomaly.

use super::show::safe_level;
use super::{ExplainedRun, explain_run};
use crate::exit_code::Failure;
use isolde_hunt::executor::Executor;
use isolde_model::case::Parsed;
use isolde_model::{Case, Level};
use isolde_reference::AnomalyClass;
use isolde_sql::{Family, Feature, Kind};

/// The runs that show whether the advice helps.
pub fn runs(
    executor: &mut Executor,
    case: &Case,
    level: Level,
    class: AnomalyClass,
) -> Result<Vec<ExplainedRun>, Failure> {
    let mut runs = Vec::new();
    let engine = &executor.runner.engine;
    let (info, safe) = (engine.info().clone(), safe_level(engine.profile(), level, class));
    let locking = matches!(class, AnomalyClass::LostUpdate | AnomalyClass::WriteSkew);
    if locking && info.dialect().has(Feature::ForUpdate) {
        let locked = with_locking_reads(case, info.family());
        let run = explain_run(executor, &locked, level)?;
        let variant = Some(format!("With SELECT … FOR UPDATE, at {level}"));
        runs.push(ExplainedRun { variant, ..run });
    }
    if let Some(safe) = safe {
        let mut case = case.clone();
        case.session_levels.clear();
        let run = explain_run(executor, &case, safe)?;
        runs.push(ExplainedRun { variant: Some(format!("At {safe}")), ..run });
    }
    Ok(runs)
}

/// The case with FOR UPDATE at the end of its plain queries.
fn with_locking_reads(case: &Case, family: Family) -> Case {
    let mut case = case.clone();
    for step in &mut case.steps {
        let plain = step.kind() == Kind::Select && !step.sql.to_lowercase().contains(" for ");
        if plain {
            step.sql = format!("{} for update", step.sql.trim_end_matches([';', ' ']));
            step.parsed = Parsed::later(family);
        }
    }
    case
}
