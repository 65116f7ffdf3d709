//! The documented exit codes.

use isolde_engines::engine::EngineError;
use isolde_engines::runner::RunError;
use isolde_hunt::HuntError;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitCode {
    Fine = 0,
    /// A violation, or an expectation that was not met.
    Violation = 1,
    /// The command line makes no sense (clap uses the same number).
    Usage = 2,
    Undecided = 3,
    /// A target could not be reached or did not start.
    Unreachable = 4,
    BadInput = 5,
    /// What was to be written could not be: a full disk, a folder that is
    /// somebody else's.
    Output = 6,
    Internal = 70,
    /// Ended by Ctrl-C, as shells count it.
    Interrupted = 130,
}

pub const TABLE: &str = "\
Exit codes:
  0    fine
  1    a violation, or an expectation that was not met
  2    the command line makes no sense
  3    undecided
  4    a target is unreachable or failed to start
  5    a bad input file
  6    the output cannot be written: a full disk, a folder that is not a hunt's
  70   an internal error: a defect of Isolde
  130  ended by Ctrl-C";

impl ExitCode {
    /// Of two outcomes the one that a script should hear about. Trouble with
    /// a target hides what it would have found, so it comes before findings;
    /// trouble with the output does not undo what was found.
    pub fn worse(self, other: ExitCode) -> ExitCode {
        let rank = |code: ExitCode| match code {
            ExitCode::Fine => 0,
            ExitCode::Undecided => 1,
            ExitCode::Output => 2,
            ExitCode::Violation => 3,
            ExitCode::Usage => 4,
            ExitCode::Unreachable => 5,
            ExitCode::BadInput => 6,
            ExitCode::Interrupted => 7,
            ExitCode::Internal => 8,
        };
        if rank(other) > rank(self) { other } else { self }
    }

    fn of_run(error: &RunError) -> ExitCode {
        match error {
            RunError::Engine(_) | RunError::NotBack(_) => ExitCode::Unreachable,
            RunError::Setup { .. } => ExitCode::BadInput,
            RunError::NoSuchLevel { .. } | RunError::Level { .. } => ExitCode::Usage,
            RunError::Interrupted => ExitCode::Interrupted,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code as u8)
    }
}

/// What ends a command, with the code that goes with it.
#[derive(Debug)]
pub struct Failure {
    pub code: ExitCode,
    pub message: String,
}

impl Failure {
    pub fn new(code: ExitCode, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    pub fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
        Failure::new(ExitCode::Output, format!("cannot write {}: {error}", path.display()))
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure::new(ExitCode::Unreachable, error.to_string())
    }
}

impl From<HuntError> for Failure {
    fn from(error: HuntError) -> Failure {
        use HuntError::*;
        let code = match &error {
            Run(error) => ExitCode::of_run(error),
            Broke(_) => ExitCode::Unreachable,
            Io { .. }
            | NoHunt(_)
            | OutputIsLink(_)
            | OutputIsFile(_)
            | OutputIsRoot(_)
            | MarkerNotPlain(_)
            | NotEmpty(_)
            | LinkInside(_)
            | Busy { .. }
            | NoNameToMove(_)
            | AllNamesTaken(_)
            | NotMoved { .. }
            | OutputIsPart { .. } => ExitCode::Output,
            NotAShard(_) => ExitCode::Usage,
            Fixture { .. }
            | Unusable { .. }
            | NothingToMerge
            | NotOneHunt { .. }
            | AnotherHunt { .. }
            | ShardTwice { .. }
            | ShardsUnlike(..)
            | NotAFinding { .. }
            | NotASignature { .. }
            | NoFindings(_)
            | NoSuchOracle(_)
            | NotAFolderName(_)
            | FolderMissing(_)
            | RunMissing(_)
            | RunUnreadable { .. }
            | RunDamaged { .. } => ExitCode::BadInput,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Failure::new(ExitCode::of_run(&error), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_hunt::error::Damage;
    use std::path::PathBuf;

    #[test]
    fn what_ends_a_hunt_has_the_code_that_the_table_gives_it() {
        let code = |error: HuntError| Failure::from(error).code;
        let path = || PathBuf::from("out");
        assert_eq!(code(HuntError::NotEmpty(path())), ExitCode::Output);
        let full = std::io::Error::other("no space left on device");
        assert_eq!(code(HuntError::Io { path: path(), error: full }), ExitCode::Output);
        let damaged = HuntError::Unusable { file: path(), why: Damage::Missing };
        assert_eq!(code(damaged), ExitCode::BadInput);
        assert_eq!(code(RunError::Interrupted.into()), ExitCode::Interrupted);
        let gone = EngineError::Lost("the server is gone".into());
        assert_eq!(code(RunError::Engine(gone).into()), ExitCode::Unreachable);
    }
}
