//! Operations in words.

use super::{Ambiguity, Occurrences, ProtocolViolation};
use isolde_model::Trace;

/// Names operations for people.
pub struct Names<'t> {
    trace: &'t Trace,
    /// The how-manieth of its session each transaction is.
    numbers: Vec<u32>,
}

impl<'t> Names<'t> {
    pub fn new(trace: &'t Trace) -> Names<'t> {
        let mut count = vec![0; trace.sessions.len()];
        let number = |of: &isolde_model::trace::TracedTransaction| {
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
    pub fn of(&self, occurrences: &Occurrences) -> Vec<String> {
        let name = |(at, other): &(u32, Option<u32>)| match other {
            Some(other) => format!("{}; {}", self.operation(*at), self.operation(*other)),
            None => self.operation(*at),
        };
        occurrences.first.iter().map(name).collect()
    }
}

impl ProtocolViolation {
    pub fn name(self) -> &'static str {
        match self {
            ProtocolViolation::DirtyRead => "dirty-read",
            ProtocolViolation::StaleRead => "stale-read",
            ProtocolViolation::BeyondSnapshot => "beyond-snapshot",
            ProtocolViolation::TornSnapshot => "torn-snapshot",
            ProtocolViolation::LockNotHeld => "lock-not-held",
            ProtocolViolation::NotValidated => "not-validated",
            ProtocolViolation::NoTimestamps => "no-timestamps",
            ProtocolViolation::Circle => "circle",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            ProtocolViolation::DirtyRead => "reads of what was not committed",
            ProtocolViolation::StaleRead => "reads of what had been overwritten before",
            ProtocolViolation::BeyondSnapshot => "reads of what was committed after the snapshot",
            ProtocolViolation::TornSnapshot => "transactions whose reads fit no one snapshot",
            ProtocolViolation::LockNotHeld => "writes of what another had written and not ended",
            ProtocolViolation::NotValidated => "commits that validation should have refused",
            ProtocolViolation::NoTimestamps => "conflicts that no order of timestamps explains",
            ProtocolViolation::Circle => "orders that contradict each other",
        }
    }
}

impl Ambiguity {
    pub fn name(self) -> &'static str {
        match self {
            Ambiguity::AccessUnknown => "access-unknown",
            Ambiguity::Failed => "failed",
            Ambiguity::Unanswered => "unanswered",
            Ambiguity::EndUnknown => "end-unknown",
            Ambiguity::ConcurrentWithUndone => "beside-taken-back",
            Ambiguity::WhichCommit => "which-commit",
            Ambiguity::TimestampsOpen => "timestamps-open",
            Ambiguity::CutOff => "cut-off",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Ambiguity::AccessUnknown => {
                "statements of which the trace does not say what they accessed"
            }
            Ambiguity::Failed => "failed statements, placed by their times",
            Ambiguity::Unanswered => "statements without an answer",
            Ambiguity::EndUnknown => "transactions whose outcome is not known",
            Ambiguity::ConcurrentWithUndone => "reads concurrent with a write that was rolled back",
            Ambiguity::WhichCommit => "commits that one of several others made fail",
            Ambiguity::TimestampsOpen => "pairs of writes with more than one possible order",
            Ambiguity::CutOff => "groups of transactions whose orders were too many to try",
        }
    }
}
