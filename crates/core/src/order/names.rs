//! Operations in words.

use super::{Irregular, Noted, Open};
use crate::Trace;

/// Names operations for people.
pub struct Names<'t> {
    trace: &'t Trace,
    /// The how-manieth of its session each transaction is.
    numbers: Vec<u32>,
}

impl<'t> Names<'t> {
    pub fn new(trace: &'t Trace) -> Names<'t> {
        let mut count = vec![0; trace.sessions.len()];
        let number = |of: &crate::trace::TracedTransaction| {
            let next = &mut count[of.session as usize];
            *next += 1;
            *next
        };
        Names { trace, numbers: trace.transactions.iter().map(number).collect() }
    }

    /// The transaction and the statement: `s1.3 update t set …`.
    pub fn operation(&self, at: u32) -> String {
        const LONGEST: usize = 70;
        let operation = &self.trace.operations[at as usize];
        let session = &self.trace.sessions[operation.session as usize];
        let number = self.numbers[operation.transaction as usize];
        let text = &self.trace.statements[operation.statement as usize];
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{session}.{number} {}…", &text[..end]),
            None => format!("{session}.{number} {text}"),
        }
    }

    /// The first of what was noted, each in words.
    pub fn of(&self, noted: &Noted) -> Vec<String> {
        let name = |(at, other): &(u32, Option<u32>)| match other {
            Some(other) => format!("{}; {}", self.operation(*at), self.operation(*other)),
            None => self.operation(*at),
        };
        noted.first.iter().map(name).collect()
    }
}

impl Irregular {
    pub fn name(self) -> &'static str {
        match self {
            Irregular::DirtyRead => "dirty-read",
            Irregular::StaleRead => "stale-read",
            Irregular::BeyondSnapshot => "beyond-snapshot",
            Irregular::TornSnapshot => "torn-snapshot",
            Irregular::LockNotHeld => "lock-not-held",
            Irregular::NotValidated => "not-validated",
            Irregular::NoTimestamps => "no-timestamps",
            Irregular::Circle => "circle",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Irregular::DirtyRead => "reads of what was not committed",
            Irregular::StaleRead => "reads of what had been overwritten before",
            Irregular::BeyondSnapshot => "reads of what was committed after the snapshot",
            Irregular::TornSnapshot => "transactions whose reads fit no one snapshot",
            Irregular::LockNotHeld => "writes of what another had written and not ended",
            Irregular::NotValidated => "commits that validation should have refused",
            Irregular::NoTimestamps => "conflicts that no order of timestamps explains",
            Irregular::Circle => "orders that contradict each other",
        }
    }
}

impl Open {
    pub fn name(self) -> &'static str {
        match self {
            Open::AccessUnknown => "access-unknown",
            Open::Failed => "failed",
            Open::Unanswered => "unanswered",
            Open::EndUnknown => "end-unknown",
            Open::BesideTakenBack => "beside-taken-back",
            Open::WhichCommit => "which-commit",
            Open::TimestampsOpen => "timestamps-open",
            Open::CutOff => "cut-off",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Open::AccessUnknown => "statements of which the trace does not say what they accessed",
            Open::Failed => "failed statements, placed by their times",
            Open::Unanswered => "statements without an answer",
            Open::EndUnknown => "transactions of which nobody knows whether they committed",
            Open::BesideTakenBack => "reads beside a write that was taken back",
            Open::WhichCommit => "commits that one of several others made fail",
            Open::TimestampsOpen => "pairs of writes with more than one possible order",
            Open::CutOff => "groups of transactions whose orders were too many to try",
        }
    }
}
