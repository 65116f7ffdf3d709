//! The result of asking an oracle about a run.

use crate::replay::Replay;
use crate::report::OracleReport;
use isolde_model::History;
use isolde_model::difference::Difference;
use isolde_reference::Analysis;
use std::sync::Arc;

/// The verdict of an oracle, with the serial runs and the analysis that it is based on.
#[derive(Clone, Debug)]
pub struct Judgement {
    pub verdict: OracleVerdict,
    pub replays: Vec<(Replay, History)>,
    /// What the oracle found out beyond its verdict.
    pub report: Option<Arc<dyn OracleReport>>,
    /// The conclusions of the reference model about the run, where the oracle has asked it.
    pub analysis: Option<Box<Analysis>>,
}

impl Judgement {
    pub(crate) fn of(verdict: OracleVerdict) -> Judgement {
        Judgement { verdict, replays: Vec::new(), report: None, analysis: None }
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Judgement {
        Judgement::of(OracleVerdict::Unknown(why.into()))
    }

    pub(crate) fn with_replay(verdict: OracleVerdict, serial: (Replay, History)) -> Judgement {
        Judgement { replays: vec![serial], ..Judgement::of(verdict) }
    }

    pub(crate) fn with_report(
        verdict: OracleVerdict,
        report: impl OracleReport + 'static,
    ) -> Judgement {
        Judgement { report: Some(Arc::new(report)), ..Judgement::of(verdict) }
    }
}

/// The conclusion of one oracle about one run.
#[derive(Clone, Debug, PartialEq)]
pub enum OracleVerdict {
    Consistent,
    Violated(Vec<Difference>),
    /// The oracle cannot judge this run, for the reason given.
    Unknown(String),
}

impl OracleVerdict {
    pub fn differences(&self) -> Option<&[Difference]> {
        match self {
            OracleVerdict::Violated(differences) => Some(differences),
            _ => None,
        }
    }
}
