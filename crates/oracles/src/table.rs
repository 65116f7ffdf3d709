//! The table of oracles: the only place that lists them.

use crate::description::OracleDescription;
use crate::judgement::Judgement;
use crate::options::OracleOption;
use crate::replay::SerialRun;
use crate::report::OracleReport;
use crate::run::ConcurrentRun;
use crate::{
    crash, isolation, merged, semantics, topological, write_specific_serializability as wss,
};
use isolde_model::difference::Difference;
use isolde_model::inquiry::Channel;
use isolde_reference::cause::Cause;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Oracle {
    Semantics,
    TxWss,
    StmtWss,
    SerialReads,
    Crash,
    Isolation,
    Topological,
    Merged,
}

/// All oracles.
pub const ORACLES: &[Oracle] = &[
    Oracle::Semantics,
    Oracle::TxWss,
    Oracle::StmtWss,
    Oracle::SerialReads,
    Oracle::Crash,
    Oracle::Isolation,
    Oracle::Topological,
    Oracle::Merged,
];

/// The oracles of a hunt whose user has not chosen any: those that need no instrumented tables and
/// no runs of other cases.
pub const DEFAULT_ORACLES: &[Oracle] =
    &[Oracle::Semantics, Oracle::TxWss, Oracle::StmtWss, Oracle::SerialReads, Oracle::Crash];

impl Oracle {
    pub fn description(self) -> &'static OracleDescription {
        match self {
            Oracle::Semantics => &semantics::ORACLE,
            Oracle::TxWss => &wss::TRANSACTIONS,
            Oracle::StmtWss => &wss::STATEMENTS,
            Oracle::SerialReads => &wss::READS,
            Oracle::Crash => &crash::ORACLE,
            Oracle::Isolation => &isolation::ORACLE,
            Oracle::Topological => &topological::ORACLE,
            Oracle::Merged => &merged::ORACLE,
        }
    }

    pub fn name(self) -> &'static str {
        self.description().name
    }

    pub fn about(self) -> &'static str {
        self.description().about
    }

    pub fn options(self) -> &'static [OracleOption] {
        self.description().options
    }

    /// The cause of what this oracle alone objects to; none where the reference model must decide.
    pub fn cause(
        self,
        differences: &[&Difference],
        report: Option<&dyn OracleReport>,
    ) -> Option<Cause> {
        (self.description().cause)(differences, report)
    }

    /// Asks the oracle about a run.
    pub async fn inquire(self, run: &ConcurrentRun<'_>, channel: &Channel) -> Judgement {
        let description = self.description();
        match run.unknown() {
            Some(why) if !description.judges_unknown_runs => Judgement::unknown(why),
            _ => (description.judge)(run, channel).await,
        }
    }
}

impl std::fmt::Display for Oracle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The oracle of this name. The error lists all names.
pub fn find(name: &str) -> Result<Oracle, String> {
    ORACLES.iter().copied().find(|o| o.name() == name).ok_or_else(|| {
        let names: Vec<&str> = ORACLES.iter().map(|o| o.name()).collect();
        format!("`{name}` is not an oracle; there are {}", names.join(", "))
    })
}

/// The serial runs that oracles leave in the folder of a finding, each once.
pub fn serial_runs() -> Vec<SerialRun> {
    let mut runs: Vec<SerialRun> = Vec::new();
    for run in ORACLES.iter().flat_map(|oracle| oracle.description().serial_runs) {
        if !runs.contains(run) {
            runs.push(*run);
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn oracles_have_distinct_names_options_and_counters_and_are_found_by_name() {
        let names: BTreeSet<&str> = ORACLES.iter().map(|o| o.name()).collect();
        assert_eq!(names.len(), ORACLES.len());
        for oracle in ORACLES {
            assert_eq!(find(oracle.name()), Ok(*oracle));
            assert!(!oracle.about().is_empty() && !oracle.description().reference.is_empty());
        }
        let options: Vec<&str> =
            ORACLES.iter().flat_map(|o| o.options()).map(|option| option.name).collect();
        assert_eq!(options.iter().collect::<BTreeSet<_>>().len(), options.len());
        let keys: Vec<&str> =
            ORACLES.iter().filter_map(|o| o.description().counters).map(|set| set.key).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    }

    #[test]
    fn serial_runs_of_finding_folders_keep_their_file_names() {
        let names: Vec<&str> = serial_runs().iter().map(|run| run.name).collect();
        assert_eq!(names, ["serial-tx", "serial-stmt", "topological", "merged"]);
        assert!(serial_runs().iter().all(|run| run.file == format!("{}.json", run.name)));
    }
}
