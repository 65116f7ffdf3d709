//! What an oracle is for the rest of the program.

use crate::judgement::Judgement;
use crate::options::OracleOption;
use crate::replay::SerialRun;
use crate::report::OracleReport;
use crate::run::ConcurrentRun;
use crate::tally::{CounterSet, OracleTally};
use isolde_model::difference::Difference;
use isolde_model::inquiry::Channel;
use isolde_reference::cause::Cause;
use std::pin::Pin;

/// A judgement that is under way.
pub type JudgementFuture<'a> = Pin<Box<dyn Future<Output = Judgement> + 'a>>;

/// The description of an oracle: one constant in its folder.
pub struct OracleDescription {
    /// Its name on the command line and in findings.
    pub name: &'static str,
    /// What it checks, in one sentence.
    pub about: &'static str,
    /// What it compares a run with: completes the sentence "Compared …".
    pub reference: &'static str,
    /// The names of the two runs of a difference.
    pub run_names: [&'static str; 2],
    pub judge: for<'a> fn(&'a ConcurrentRun<'a>, &'a Channel) -> JudgementFuture<'a>,
    /// Judges a run whose outcome is not known, too.
    pub judges_unknown_runs: bool,
    /// Judges runs that it makes itself, so that it can judge a case outside of a hunt.
    pub judges_own_runs: bool,
    /// Serial runs that it may leave in the folder of a finding.
    pub serial_runs: &'static [SerialRun],
    /// The cause of what this oracle alone objects to; none where the reference model must decide.
    pub cause: fn(&[&Difference], Option<&dyn OracleReport>) -> Option<Cause>,
    pub options: &'static [OracleOption],
    pub counters: Option<&'static CounterSet>,
    /// Lines for the terminal about its counters.
    pub summary: fn(&OracleTally) -> Vec<String>,
}

impl OracleDescription {
    /// An oracle without anything special, for the descriptions to start from.
    pub const PLAIN: OracleDescription = OracleDescription {
        name: "",
        about: "",
        reference: "",
        run_names: ["concurrently", "serially"],
        judge: |_, _| Box::pin(async { Judgement::unknown("there is no such oracle") }),
        judges_unknown_runs: false,
        judges_own_runs: false,
        serial_runs: &[],
        cause: |_, _| None,
        options: &[],
        counters: None,
        summary: |_| Vec::new(),
    };
}
