//! A case read from a file or from the folder of a finding, and the target
//! that runs it.

use super::context::Context;
use super::own_target::own_target;
use crate::exit_code::{ExitCode, Failure};
use crate::files::read_text;
use isolde_engines::fault::{self, Planted};
use isolde_engines::runner::Runner;
use isolde_engines::target::Target;
use isolde_hunt::HuntError;
use isolde_hunt::executor::Executor;
use isolde_hunt::recheck::{self, RecordedFinding};
use isolde_model::case;
use isolde_model::case::Case;
use std::path::{Path, PathBuf};

/// A case, with what its hunt recorded about it if it is a finding.
pub struct LoadedCase {
    pub case: Case,
    pub finding: Option<RecordedFinding>,
}

impl LoadedCase {
    /// Reads a case file, or the case in the folder of a finding.
    pub fn read(path: &Path) -> Result<LoadedCase, Failure> {
        let file: PathBuf = if path.is_dir() { path.join("case.case") } else { path.into() };
        let bad = |why: String| Failure::new(ExitCode::BadInput, why);
        if path.is_dir() && !file.exists() {
            return Err(bad(format!(
                "{} is not the folder of a finding: it has no case.case; a hunt writes such \
                 folders to findings/",
                path.display()
            )));
        }
        let text = read_text(&file)?;
        let case = case::parse(&text).map_err(|e| bad(format!("{}: {e}", file.display())))?;
        let finding = recheck::read_recorded(&file, &case).map_err(|e| bad(e.to_string()))?;
        Ok(LoadedCase { case, finding })
    }

    /// The target that `--on` names, else the case's own.
    pub fn target(&self, context: &Context<'_>, on: Option<&str>) -> Result<Target, Failure> {
        match on {
            Some(on) => context.parse_target(on),
            None => self.own_target(context),
        }
    }

    pub fn own_target(&self, context: &Context<'_>) -> Result<Target, Failure> {
        context.parse_target(&own_target(context, &self.case, self.finding.as_ref()))
    }

    /// Opens a target with the server options of the case.
    pub fn open(&self, context: &Context<'_>, target: &Target) -> Result<Executor, Failure> {
        Ok(Executor::new(open_for(context, target, &self.case)?))
    }

    /// Opens a target with the server options of the case and, if it is a
    /// finding, with the fault that was planted during its hunt.
    pub fn open_as_hunted(
        &self,
        context: &Context<'_>,
        target: &Target,
    ) -> Result<Executor, Failure> {
        let runner = open_for(context, target, &self.case)?;
        Ok(Executor::new(match &self.finding {
            Some(finding) => plant_fault_of(finding, runner)?,
            None => runner,
        }))
    }
}

fn open_for(context: &Context<'_>, target: &Target, case: &Case) -> Result<Runner, Failure> {
    match open_own_server(context, target, case)? {
        Some(runner) => Ok(runner),
        None => context.open(target),
    }
}

/// Starts a server with the options that a case needs; none if it needs no
/// options.
pub fn open_own_server(
    context: &Context<'_>,
    target: &Target,
    case: &Case,
) -> Result<Option<Runner>, Failure> {
    if case.server_options.is_empty() {
        return Ok(None);
    }
    let target = target
        .with_server_options(&case.server_options)
        .map_err(|why| Failure::new(ExitCode::Usage, why))?;
    context.open(&target).map(Some)
}

/// Plants the fault of a finding's hunt, so that its effect can be reproduced.
pub fn plant_fault_of(finding: &RecordedFinding, runner: Runner) -> Result<Runner, Failure> {
    let Some((name, rate)) = &finding.fault else { return Ok(runner) };
    let fault = fault::find(name).map_err(|e| Failure::new(ExitCode::BadInput, e))?;
    let planted = Planted { fault, rate: *rate, seed: finding.finding.seed };
    let mut faulty = Runner::new(fault::plant(runner.engine, planted));
    faulty.interrupted = runner.interrupted;
    Ok(faulty)
}

/// The id and the title of a case, for the heading of its output.
pub fn heading(case: &Case) -> String {
    match case.title.as_str() {
        "" => case.id.clone(),
        title => format!("{}  {title}", case.id),
    }
}

/// The failure of a run of a case. A server that breaks is a violation here:
/// the case was run to see whether it does.
pub fn failure_of_run(error: HuntError) -> Failure {
    match error {
        HuntError::Fixture { .. } => {
            Failure::new(ExitCode::BadInput, format!("the setup failed: {error}"))
        }
        HuntError::ServerFailure(_) => Failure::new(ExitCode::Violation, error.to_string()),
        other => other.into(),
    }
}
