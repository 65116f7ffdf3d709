//! The cases of the library on one target: runs them, and compares the results
//! with the recordings or records them.

use super::CaseResult;
use super::record::Recorder;
use crate::commands::context::{Context, LevelChoice};
use crate::exit_code::{ExitCode, Failure};
use crate::library::{self, Entry};
use isolde_engines::runner::{RunError, Runner};
use isolde_engines::target::Target;
use isolde_model::case::{Case, Claim};
use isolde_model::history::TargetInfo;
use isolde_model::recording;
use isolde_model::recording::{Outcomes, RecordingMismatch, RecordingTarget};
use isolde_model::{History, Level};

pub struct Tester<'a> {
    context: &'a Context<'a>,
    target: &'a Target,
    runner: Runner,
    /// The server of the current case, if it needs one with options.
    own: Option<(Target, Runner)>,
    recorder: Option<&'a mut Recorder>,
}

/// The result of a run: a history, or the error code of the setup.
enum RunResult {
    Completed(Box<History>),
    SetupRefused(String),
}

impl<'a> Tester<'a> {
    pub fn new(
        context: &'a Context<'a>,
        target: &'a Target,
        runner: Runner,
        recorder: Option<&'a mut Recorder>,
    ) -> Tester<'a> {
        Tester { context, target, runner, own: None, recorder }
    }

    pub fn run(
        &mut self,
        entries: &mut [Entry],
        levels: Option<&LevelChoice>,
        only_recorded: bool,
    ) -> Result<(TargetInfo, Vec<CaseResult>), Failure> {
        let info = self.runner.engine.info().clone();
        let chosen = LevelChoice::among(levels, &self.runner);
        let mut results = Vec::new();
        for entry in entries.iter_mut().filter(|e| e.case.runs_on(&info.engine, &info.version)) {
            let recordings = recording::recordings(&entry.case);
            let here = recordings.iter().any(|(p, _)| p.on.expects(&info.engine, &info.version));
            if only_recorded && !here && !recordings.is_empty() {
                continue;
            }
            if !self.server_for(&entry.case)? {
                continue;
            }
            let mut recordings = Vec::new();
            let done = self.at_levels(&entry.case, &chosen, &info, &mut results, &mut recordings);
            // After an interrupt, the runs that ended are as valid as any.
            if let Some(recorder) = &mut self.recorder {
                recorder.save(self.context, entry, recordings)?;
            }
            self.own = None;
            done?;
        }
        Ok((info, results))
    }

    /// Starts the server of a case with server options. False if that is
    /// impossible here: the case is skipped with a note.
    fn server_for(&mut self, case: &Case) -> Result<bool, Failure> {
        if case.server_options.is_empty() {
            return Ok(true);
        }
        let opened = self
            .target
            .with_server_options(&case.server_options)
            .map_err(|why| Failure::new(ExitCode::Usage, why))
            .and_then(|target| Ok((target.clone(), self.context.open(&target)?)));
        match opened {
            Ok(own) => self.own = Some(own),
            Err(failure) if failure.code == ExitCode::Interrupted => return Err(failure),
            Err(failure) => {
                // The other lines are the log of a server that did not start.
                let why = failure.message.lines().next().unwrap_or_default();
                let text = format!("{} skipped on {}: {why}", case.id, self.target);
                self.context.console.note(&text);
            }
        }
        Ok(self.own.is_some())
    }

    fn at_levels(
        &mut self,
        case: &Case,
        levels: &[Level],
        info: &TargetInfo,
        results: &mut Vec<CaseResult>,
        recordings: &mut Vec<(RecordingTarget, Outcomes)>,
    ) -> Result<(), Failure> {
        for level in levels {
            let progress = format!("{} at {} on {}", case.id, level.short(), self.target);
            self.context.console.progress(&progress);
            let Some((result, outcomes)) = self.at_level(case, *level, info)? else { continue };
            recordings.push((RecordingTarget::new(&info.engine, &info.version, *level), outcomes));
            results.push(result);
        }
        Ok(())
    }

    /// Runs the case; when recording, until its outcomes are settled. None if
    /// the target lacks a level that the case names.
    fn at_level(
        &mut self,
        case: &Case,
        level: Level,
        info: &TargetInfo,
    ) -> Result<Option<(CaseResult, Outcomes)>, Failure> {
        let Some(ran) = self.run_case(case, level)? else { return Ok(None) };
        let recorded = recording::recorded_at(case, &info.engine, &info.version, level);
        let recording_mismatches = recorded.as_ref().map(|r| compare(case, r, &ran));
        let as_recorded = |ran: &RunResult| {
            recorded.as_ref().is_some_and(|recorded| compare(case, recorded, ran).is_empty())
        };
        let mut runs = vec![claims_of(case, &ran)];
        let status = library::status(case, &runs[0], level);
        let mut known = usize::from(as_recorded(&ran));
        while let Some(recorder) = &self.recorder
            && recorder.wants_more(&runs, known == runs.len())
        {
            let Some(again) = self.run_case(case, level)? else { break };
            known += usize::from(as_recorded(&again));
            runs.push(claims_of(case, &again));
        }
        let outcomes = match &recorded {
            // Nothing new: the file does not change.
            Some(recorded) if known == runs.len() => recorded.clone(),
            Some(recorded) if known > 0 => recording::united(recorded, recording::settle(&runs)),
            _ => recording::settle(&runs),
        };
        Ok(Some((
            CaseResult { case: case.id.clone(), level, status, recording_mismatches },
            outcomes,
        )))
    }

    /// Runs the case once. A target that is gone is started once more: the
    /// previous case may have crashed it in its last statement.
    fn run_case(&mut self, case: &Case, level: Level) -> Result<Option<RunResult>, Failure> {
        let (target, runner) = match &mut self.own {
            Some((target, runner)) => (&*target, runner),
            None => (self.target, &mut self.runner),
        };
        let mut tries = 0;
        loop {
            tries += 1;
            return match runner.run(case, Some(level)) {
                Ok(history) => Ok(Some(RunResult::Completed(Box::new(history)))),
                Err(RunError::Setup { error, .. }) => Ok(Some(RunResult::SetupRefused(error.code))),
                Err(RunError::NoSuchLevel { .. } | RunError::Level { .. }) => Ok(None),
                Err(RunError::Engine(error)) if tries < 2 => {
                    self.context
                        .console
                        .note(&format!("{} on {target}: {error}; restarting the target", case.id));
                    *runner = self.context.open(target)?;
                    continue;
                }
                Err(error) => Err(error.into()),
            };
        }
    }
}

fn claims_of(case: &Case, ran: &RunResult) -> Vec<Claim> {
    match ran {
        RunResult::Completed(history) => recording::claims_of(case, history),
        RunResult::SetupRefused(code) => recording::refused_setup(code),
    }
}

fn compare(case: &Case, recorded: &Outcomes, ran: &RunResult) -> Vec<RecordingMismatch> {
    match ran {
        RunResult::Completed(history) => recording::recording_mismatches(case, recorded, history),
        RunResult::SetupRefused(code) if recorded.contains(&recording::refused_setup(code)) => {
            Vec::new()
        }
        RunResult::SetupRefused(code) => vec![RecordingMismatch {
            expected: recorded
                .iter()
                .flatten()
                .next()
                .map_or_else(String::new, ToString::to_string),
            observed: format!("setup error {code}"),
        }],
    }
}
