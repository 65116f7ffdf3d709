//! The documented exit codes, and the failures that lead to them.

use isolde_engines::engine::EngineError;
use isolde_engines::runner::RunError;
use isolde_hunt::HuntError;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitCode {
    Success = 0,
    /// A violation, or an expectation that was not met.
    Violation = 1,
    /// An invalid command line (clap uses the same number).
    Usage = 2,
    Undecided = 3,
    /// A target could not be reached or did not start.
    Unreachable = 4,
    BadInput = 5,
    /// The output could not be written: the disk is full, or the folder is not
    /// the output of a hunt.
    Output = 6,
    Internal = 70,
    /// Ended by Ctrl-C, numbered as shells do.
    Interrupted = 130,
}

pub const TABLE: &str = "\
Exit codes:
  0    no violation found
  1    violation found, or an expectation not met
  2    invalid command line
  3    undecided: a violation is neither proven nor ruled out
  4    target unreachable, or its server did not start
  5    invalid input file
  6    output cannot be written (disk full, or the folder is not a hunt's)
  70   internal error: a defect in Isolde
  130  interrupted by Ctrl-C";

impl ExitCode {
    /// The more important of two outcomes, which becomes the exit code. A target
    /// that fails hides findings, so it comes before findings; output that
    /// cannot be written does not undo what was found, so it comes after them.
    pub fn worse(self, other: ExitCode) -> ExitCode {
        let rank = |code: ExitCode| match code {
            ExitCode::Success => 0,
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
            RunError::Engine(_) | RunError::NotRestored(_) => ExitCode::Unreachable,
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

/// Why a command failed: the message for the user, and the exit code.
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

impl From<serde_json::Error> for Failure {
    /// A value of ours that cannot be written as JSON.
    fn from(error: serde_json::Error) -> Failure {
        Failure::new(ExitCode::Internal, error.to_string())
    }
}

impl From<HuntError> for Failure {
    fn from(error: HuntError) -> Failure {
        use HuntError::*;
        let code = match &error {
            Run(error) => ExitCode::of_run(error),
            ServerFailure(_) => ExitCode::Unreachable,
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
    fn each_error_of_a_hunt_has_its_exit_code() {
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
        let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
        let error = serde_json::to_string(&unwritable).unwrap_err();
        assert_eq!(Failure::from(error).code, ExitCode::Internal);
    }
}
