//! What prevents an anomaly. `isolde explain --fix` runs each remedy ([`super::fix`]).

use isolde_catalog::{BeginForm, SnapshotAt, concurrency_model};
use isolde_model::history::TargetInfo;
use isolde_model::{Level, Profile};
use isolde_reference::{AnomalyClass, NamedAnomaly};
use isolde_sql::Feature;

/// One way to prevent an anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// SELECT … FOR UPDATE instead of a plain SELECT.
    LockingReads,
    /// An UPDATE that computes the new value from the old one.
    AtomicUpdates,
    Level(Level),
}

impl Remedy {
    /// The remedy as an answer to "how do I prevent it?".
    pub fn text(self, class: AnomalyClass) -> String {
        match self {
            Remedy::LockingReads if class == AnomalyClass::WriteSkew => {
                "SELECT … FOR UPDATE of the rows that the decision depends on".into()
            }
            Remedy::LockingReads => "SELECT … FOR UPDATE before the write".into(),
            Remedy::AtomicUpdates => "a single UPDATE that computes the new value".into(),
            Remedy::Level(level) => level.name().into(),
        }
    }
}

/// What prevents an anomaly at a level, the least change first.
pub fn remedies(
    on: &TargetInfo,
    profile: &Profile,
    level: Level,
    anomaly: &NamedAnomaly,
) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    let locks = on.dialect().has(Feature::ForUpdate);
    let model = |level| concurrency_model(on, level, Some(BeginForm::Plain));
    match anomaly.class {
        AnomalyClass::LostUpdate => {
            remedies.extend(locks.then_some(Remedy::LockingReads));
            remedies.extend((!anomaly.keeps_values).then_some(Remedy::AtomicUpdates));
        }
        AnomalyClass::WriteSkew if locks => {
            // A lock on the rows that were found keeps no row out, unless gaps are
            // locked, too.
            let locks_gaps = level >= Level::RepeatableRead
                && model(level).is_some_and(|model| model.locking.gap_locks.is_some());
            if locks_gaps || !anomaly.misses_rows {
                remedies.push(Remedy::LockingReads);
            }
        }
        _ => {}
    }
    let prevents = |at: &Level| {
        let promise = profile.levels.iter().find(|promise| promise.level == *at);
        let allows = promise.and_then(|promise| promise.allows.as_ref());
        let repeats = || {
            model(*at).is_some_and(|model| {
                !matches!(model.snapshot.taken, SnapshotAt::Dirty | SnapshotAt::Statement)
            })
        };
        allows.is_some_and(|allows| !allows.contains(&anomaly.class.in_matrix()))
            || anomaly.plain_reads && repeats()
    };
    let stronger = profile.levels.iter().map(|promise| promise.level).filter(|at| *at > level);
    remedies.extend(stronger.filter(prevents).min().map(Remedy::Level));
    remedies
}
