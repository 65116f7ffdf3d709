//! The interface behind which the private results of an oracle travel through a hunt.

use crate::tally::OracleTally;
use isolde_model::History;
use isolde_reference::cause::Cause;
use serde_json::Value;

/// What one oracle found out about one case, beyond its verdict. The hunt stores reports, counts
/// them and writes their files without knowing the oracle.
pub trait OracleReport: std::fmt::Debug + Send + Sync {
    /// Additional files for the folder of a finding: names and contents.
    fn files(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Adds the case to the counters that the oracle's description declares.
    fn count(&self, _tally: &mut OracleTally) {}

    /// The cause of the violation, if the oracle has already determined it.
    fn cause(&self) -> Option<Cause> {
        None
    }

    /// The run that shows the violation, if it is not the concurrent run that all oracles judge.
    fn shown_run(&self) -> Option<&History> {
        None
    }

    /// Sentences for the explanation of a finding, before its differences.
    fn explanation(&self) -> Vec<String> {
        Vec::new()
    }

    /// Lines about the case for the terminal, before its differences.
    fn lines(&self) -> Vec<String> {
        Vec::new()
    }

    /// One line for the terminal about a case without differences.
    fn success(&self) -> Option<String> {
        None
    }

    /// All of it for programs.
    fn json(&self) -> Value {
        Value::Null
    }
}
