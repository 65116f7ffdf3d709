//! The counts of a hunt. Those of blocks, workers and shards can be added.

use crate::finding::{Defect, Finding};
use isolde_model::Verdict;
use isolde_model::history::{DbError, ErrorClass, EventKind, TxEnd};
use isolde_model::{History, Level};
use isolde_oracles::OracleTallies;
use isolde_sql as sql;
use isolde_sql::Kind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Violations by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub bug: u64,
    pub documented: u64,
    pub undecided: u64,
    /// Results are right, but a statement waited, did not wait or was aborted
    /// where the rules say otherwise.
    #[serde(default)]
    pub locking: u64,
}

impl Counts {
    pub fn add(&mut self, label: Verdict) {
        match label {
            Verdict::Bug => self.bug += 1,
            Verdict::Documented => self.documented += 1,
            Verdict::Undecided => self.undecided += 1,
            Verdict::Locking => self.locking += 1,
            // A consistent run is no violation.
            Verdict::Consistent => {}
        }
    }

    fn merge(&mut self, other: Counts) {
        self.bug += other.bug;
        self.documented += other.documented;
        self.undecided += other.undecided;
        self.locking += other.locking;
    }

    pub fn total(self) -> u64 {
        self.bug + self.documented + self.undecided + self.locking
    }
}

/// In how many statements a feature appeared, and how many of those succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub appeared: u64,
    pub succeeded: u64,
}

/// How many statements succeeded, and how many of those returned or changed a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    pub succeeded: u64,
    pub effective: u64,
}

/// The counts of a hunt or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    pub cases: u64,
    /// Statements of the concurrent runs.
    pub statements: u64,
    /// Statements of all runs, including serial ones.
    pub statements_in_all: u64,
    /// Statements that the engine rejected for their syntax or types.
    pub invalid: u64,
    pub waited: u64,
    pub transactions: u64,
    pub aborted: u64,
    /// Cases whose schema or rows the engine rejected.
    pub not_run: u64,
    /// Violations that did not happen again; they are not among `violations`.
    pub not_confirmed: u64,
    /// Runs that differ from the serial run in commit order and that another serial
    /// order explains; they are not among `violations`.
    #[serde(default)]
    pub reordered: u64,
    /// Inconclusive cases, by reason.
    pub unknown: BTreeMap<String, u64>,
    /// Cases that the reference model predicted completely.
    #[serde(default)]
    pub predicted: u64,
    /// Cases with a part that is not modelled, by reason.
    #[serde(default)]
    pub not_modelled: BTreeMap<String, u64>,
    /// The counters of the oracles.
    #[serde(flatten)]
    pub oracles: OracleTallies,
    pub violations: Counts,
    pub by_level: BTreeMap<String, Counts>,
    pub by_oracle: BTreeMap<String, Counts>,
    /// Documented violations, by behaviour.
    pub by_behaviour: BTreeMap<String, u64>,
    pub features: BTreeMap<String, Coverage>,
    /// The effect of statements, by their kind.
    #[serde(default)]
    pub effects: BTreeMap<String, Effect>,
    /// Rejected statements by error code, with the first statement of each.
    pub refusals: BTreeMap<String, Refusal>,
    /// The signatures of all findings.
    pub signatures: BTreeSet<String>,
    /// Findings per defect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defects: BTreeMap<String, Defect>,
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *to.entry(key.clone()).or_default() += count;
    }
}

/// Statements that the engine rejected with one error code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    pub count: u64,
    pub message: String,
    pub sql: String,
}

impl Tally {
    pub fn valid_share(&self) -> f64 {
        if self.statements == 0 {
            return 1.0;
        }
        1.0 - self.invalid as f64 / self.statements as f64
    }

    /// Counts a concurrent run; `features` has the features of each step.
    pub fn count_run(&mut self, history: &History, features: &[Vec<&'static str>]) {
        self.cases += 1;
        self.transactions += history.transactions.len() as u64;
        let aborted = |how: TxEnd| matches!(how, TxEnd::Aborted | TxEnd::Lost);
        self.aborted += history.transactions.iter().filter(|t| aborted(t.how)).count() as u64;
        for event in &history.events {
            let Some(step) = event.step else { continue };
            match &event.what {
                EventKind::Sent { .. } => self.statements += 1,
                EventKind::Waiting { .. } => self.waited += 1,
                EventKind::Error(error) => {
                    self.count_features(features.get(step), false);
                    let sql = &history.steps[step].sql;
                    if is_invalid(error.class, sql) {
                        self.invalid += 1;
                        let refusal = self.refusals.entry(error.code.clone()).or_default();
                        if refusal.count == 0 {
                            refusal.message = error.message.clone();
                            refusal.sql = sql.clone();
                        }
                        refusal.count += 1;
                    }
                }
                EventKind::Rows { .. } | EventKind::Affected { .. } | EventKind::Done => {
                    self.count_features(features.get(step), true);
                    self.count_effect(features.get(step), &event.what);
                }
                _ => {}
            }
        }
    }

    fn count_effect(&mut self, features: Option<&Vec<&'static str>>, reply: &EventKind) {
        const KINDS: [&str; 5] = ["for update", "select", "insert", "update", "delete"];
        let is_effective = match reply {
            EventKind::Rows { rows, .. } => !rows.is_empty(),
            EventKind::Affected { count } => *count > 0,
            _ => return,
        };
        let has = |kind: &&&str| features.is_some_and(|all| all.contains(*kind));
        let Some(kind) = KINDS.iter().find(has) else { return };
        let effect = self.effects.entry((*kind).into()).or_default();
        effect.succeeded += 1;
        effect.effective += u64::from(is_effective);
    }

    /// Counts a case whose tables or rows the engine rejected.
    pub fn refused_schema(&mut self, sql: String, error: DbError) {
        self.not_run += 1;
        let refusal = self.refusals.entry(format!("schema {}", error.code)).or_default();
        if refusal.count == 0 {
            refusal.message = error.message;
            refusal.sql = sql;
        }
        refusal.count += 1;
    }

    /// Counts a confirmed violation. The hunt decides whether it is a finding: a documented one is
    /// only if the user asked for those.
    pub fn count_violation(&mut self, finding: &Finding) {
        let label = finding.cause.label;
        self.violations.add(label);
        let level = finding.level.map_or("default", Level::name);
        self.by_level.entry(level.into()).or_default().add(label);
        for oracle in &finding.oracles {
            self.by_oracle.entry(oracle.clone()).or_default().add(label);
        }
        if let Some(behaviour) = &finding.cause.behaviour {
            *self.by_behaviour.entry(behaviour.name.clone()).or_default() += 1;
        }
    }

    /// Counts a violation that is a finding.
    pub fn count_finding(&mut self, finding: &Finding) {
        self.count_violation(finding);
        self.note_signature(finding);
    }

    /// The number of distinct findings.
    pub fn distinct(&self) -> u64 {
        // Hunts of older versions have not recorded defects.
        if self.defects.is_empty() { self.signatures.len() } else { self.defects.len() }
            .try_into()
            .unwrap_or(u64::MAX)
    }

    pub fn note_signature(&mut self, finding: &Finding) {
        self.signatures.insert(finding.signature.clone());
        let defect = self.defects.entry(finding.defect().into()).or_default();
        defect.findings += 1;
        defect.add_name(finding.known.first());
    }

    fn count_features(&mut self, features: Option<&Vec<&'static str>>, succeeded: bool) {
        for feature in features.into_iter().flatten() {
            if !self.features.contains_key(*feature) {
                self.features.insert((*feature).into(), Coverage::default());
            }
            if let Some(coverage) = self.features.get_mut(*feature) {
                coverage.appeared += 1;
                coverage.succeeded += u64::from(succeeded);
            }
        }
    }

    pub fn merge(&mut self, other: &Tally) {
        self.cases += other.cases;
        self.statements += other.statements;
        self.statements_in_all += other.statements_in_all;
        self.invalid += other.invalid;
        self.waited += other.waited;
        self.transactions += other.transactions;
        self.aborted += other.aborted;
        self.not_run += other.not_run;
        self.not_confirmed += other.not_confirmed;
        self.reordered += other.reordered;
        self.violations.merge(other.violations);
        self.predicted += other.predicted;
        self.oracles.merge(&other.oracles);
        add(&mut self.not_modelled, &other.not_modelled);
        add(&mut self.unknown, &other.unknown);
        for (key, counts) in &other.by_level {
            self.by_level.entry(key.clone()).or_default().merge(*counts);
        }
        for (key, counts) in &other.by_oracle {
            self.by_oracle.entry(key.clone()).or_default().merge(*counts);
        }
        add(&mut self.by_behaviour, &other.by_behaviour);
        for (key, effect) in &other.effects {
            let mine = self.effects.entry(key.clone()).or_default();
            mine.succeeded += effect.succeeded;
            mine.effective += effect.effective;
        }
        for (key, coverage) in &other.features {
            let mine = self.features.entry(key.clone()).or_default();
            mine.appeared += coverage.appeared;
            mine.succeeded += coverage.succeeded;
        }
        for (code, refusal) in &other.refusals {
            let mine = self.refusals.entry(code.clone()).or_default();
            if mine.count == 0 {
                *mine = refusal.clone();
            } else {
                mine.count += refusal.count;
            }
        }
        self.signatures.extend(other.signatures.iter().cloned());
        for (key, defect) in &other.defects {
            let mine = self.defects.entry(key.clone()).or_default();
            mine.findings += defect.findings;
            mine.add_name(defect.known.as_ref());
        }
    }
}

/// Whether an error is about the syntax or the types of a statement. Type errors are in the class
/// `Other`, since the profile has none for them; the end of a transaction is never rejected so.
fn is_invalid(class: ErrorClass, sql: &str) -> bool {
    matches!(class, ErrorClass::Rejected | ErrorClass::Other)
        && !matches!(sql::kind(sql), Kind::Commit | Kind::Rollback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_tallies_add_up_and_keep_the_first_refusal_of_each_code() {
        let mut a = Tally { cases: 2, statements: 10, invalid: 1, ..Tally::default() };
        a.violations.add(Verdict::Bug);
        a.refusals
            .insert("1064".into(), Refusal { count: 1, message: "m".into(), sql: "first".into() });
        let mut b = Tally { cases: 3, statements: 10, invalid: 1, ..Tally::default() };
        b.violations.add(Verdict::Documented);
        b.refusals
            .insert("1064".into(), Refusal { count: 1, message: "m".into(), sql: "second".into() });
        b.signatures.insert("x".into());
        b.unknown.insert("cancelled".into(), 2);
        a.merge(&b);
        a.merge(&b);
        assert_eq!(a.unknown["cancelled"], 4);
        assert_eq!((a.cases, a.violations.total(), a.signatures.len()), (8, 3, 1));
        assert_eq!((a.refusals["1064"].count, a.refusals["1064"].sql.as_str()), (3, "first"));
        assert!((a.valid_share() - 0.9).abs() < 1e-9);
        assert!((Tally::default().valid_share() - 1.0).abs() < 1e-9);
    }
}
