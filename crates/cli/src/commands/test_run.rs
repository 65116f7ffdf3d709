//! The cases of the library on one target: run, compared with what is
//! recorded, or recorded.

use super::test::Tested;
use super::test_record::Recorder;
use super::{Context, Levels};
use crate::exit_code::{ExitCode, Failure};
use crate::library::{self, Entry};
use isolde_core::case::{Case, Claim};
use isolde_core::history::TargetInfo;
use isolde_core::recording::{self, Departure, Outcomes, Place};
use isolde_core::{History, Level};
use isolde_engines::runner::{RunError, Runner};
use isolde_engines::target::Target;

pub struct Tester<'a> {
    context: &'a Context<'a>,
    target: &'a Target,
    runner: Runner,
    /// The server of the case at hand, if it needs one with options.
    own: Option<(Target, Runner)>,
    recorder: Option<&'a mut Recorder>,
}

/// What a run came to: a history, or the code with which the setup failed.
enum Ran {
    Through(Box<History>),
    Refused(String),
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
        levels: Option<&Levels>,
        only_recorded: bool,
    ) -> Result<(TargetInfo, Vec<Tested>), Failure> {
        let info = self.runner.engine.info().clone();
        let known = self.runner.engine.profile().level_names();
        let chosen: Vec<Level> = match levels {
            Some(Levels::These(wanted)) => {
                known.into_iter().filter(|l| wanted.contains(l)).collect()
            }
            _ => known,
        };
        let mut tested = Vec::new();
        for entry in entries.iter_mut().filter(|e| e.case.runs_on(&info.engine, &info.version)) {
            let recordings = recording::recordings(&entry.case);
            let here = recordings.iter().any(|(p, _)| p.on.expects(&info.engine, &info.version));
            if only_recorded && !here && !recordings.is_empty() {
                continue;
            }
            if !self.server_for(&entry.case)? {
                continue;
            }
            let mut seen = Vec::new();
            let done = self.at_levels(&entry.case, &chosen, &info, &mut tested, &mut seen);
            // What an interrupt left behind is as true as the rest.
            if let Some(recorder) = &mut self.recorder {
                recorder.save(self.context, entry, seen)?;
            }
            self.own = None;
            done?;
        }
        Ok((info, tested))
    }

    /// Starts what a case with server options needs; false if that cannot be
    /// had here, which is said and ends nothing else.
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
                // The rest of it is the log of a server that did not start.
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
        tested: &mut Vec<Tested>,
        seen: &mut Vec<(Place, Outcomes)>,
    ) -> Result<(), Failure> {
        for level in levels {
            let progress = format!("{} at {} on {}", case.id, level.short(), self.target);
            self.context.console.progress(&progress);
            let Some((one, outcomes)) = self.one(case, *level, info)? else { continue };
            seen.push((Place::new(&info.engine, &info.version, *level), outcomes));
            tested.push(one);
        }
        Ok(())
    }

    /// Runs the case, when recording as often as it takes. Nothing when the
    /// target does not have a level that the case names.
    fn one(
        &mut self,
        case: &Case,
        level: Level,
        info: &TargetInfo,
    ) -> Result<Option<(Tested, Outcomes)>, Failure> {
        let Some(ran) = self.play(case, level)? else { return Ok(None) };
        let recorded = recording::recorded_at(case, &info.engine, &info.version, level);
        let departures = recorded.as_ref().map(|r| compare(case, r, &ran));
        let as_recorded = |ran: &Ran| {
            recorded.as_ref().is_some_and(|recorded| compare(case, recorded, ran).is_empty())
        };
        let mut runs = vec![claims_of(case, &ran)];
        let showing = library::showing(case, &runs[0], level);
        let mut known = usize::from(as_recorded(&ran));
        while let Some(recorder) = &self.recorder
            && recorder.wants_more(&runs, known == runs.len())
        {
            let Some(again) = self.play(case, level)? else { break };
            known += usize::from(as_recorded(&again));
            runs.push(claims_of(case, &again));
        }
        let outcomes = match &recorded {
            // Nothing new: the file stays as it is.
            Some(recorded) if known == runs.len() => recorded.clone(),
            Some(recorded) if known > 0 => recording::united(recorded, recording::settle(&runs)),
            _ => recording::settle(&runs),
        };
        Ok(Some((Tested { case: case.id.clone(), level, showing, departures }, outcomes)))
    }

    /// A target that is gone is started once more: it may have died of the
    /// case before, in a statement that had nothing to lose.
    fn play(&mut self, case: &Case, level: Level) -> Result<Option<Ran>, Failure> {
        let (target, runner) = match &mut self.own {
            Some((target, runner)) => (&*target, runner),
            None => (self.target, &mut self.runner),
        };
        let mut tries = 0;
        loop {
            tries += 1;
            return match runner.run(case, Some(level)) {
                Ok(history) => Ok(Some(Ran::Through(Box::new(history)))),
                Err(RunError::Setup { error, .. }) => Ok(Some(Ran::Refused(error.code))),
                Err(RunError::NoSuchLevel { .. } | RunError::Level { .. }) => Ok(None),
                Err(RunError::Engine(error)) if tries < 2 => {
                    self.context.console.note(&format!(
                        "{} on {target}: {error}; starting the target anew",
                        case.id
                    ));
                    *runner = self.context.open(target)?;
                    continue;
                }
                Err(error) => Err(error.into()),
            };
        }
    }
}

fn claims_of(case: &Case, ran: &Ran) -> Vec<Claim> {
    match ran {
        Ran::Through(history) => recording::claims_of(case, history),
        Ran::Refused(code) => recording::refused_setup(code),
    }
}

fn compare(case: &Case, recorded: &Outcomes, ran: &Ran) -> Vec<Departure> {
    match ran {
        Ran::Through(history) => recording::departures(case, recorded, history),
        Ran::Refused(code) if recorded.contains(&recording::refused_setup(code)) => Vec::new(),
        Ran::Refused(code) => vec![Departure {
            expected: recorded
                .iter()
                .flatten()
                .next()
                .map_or_else(String::new, ToString::to_string),
            observed: format!("setup error {code}"),
        }],
    }
}
