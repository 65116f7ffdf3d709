//! Which classes of anomalies a level's documentation rules out.

use isolde_checker::{Anomaly, Class, Report};
use isolde_model::difference::Difference;
use isolde_model::{Anomaly as Known, Verdict};
use isolde_reference::cause::Cause;

/// What a level lets happen and should not, the worst first. Of a level whose
/// documentation says nothing, only what is wrong on any engine is known to be
/// forbidden: versions that were never written, and reads that contradict the
/// transaction's own writes.
pub fn forbidden<'r>(report: &'r Report, allows: Option<&[Known]>) -> Vec<&'r Anomaly> {
    // No level of SQL promises anything about sessions or time.
    let of_data = report.anomalies.iter().filter(|anomaly| anomaly.through.is_none());
    let forbids = |class: Class| match allows {
        Some(allows) => is_ruled_out(class, allows),
        // What no engine can mean to allow.
        None => class == Class::Internal || is_ruled_out(class, &Known::ALL),
    };
    of_data.filter(|a| forbids(a.class)).collect()
}

/// Whether a level whose documentation allows these rules the class out.
pub fn is_ruled_out(class: Class, allows: &[Known]) -> bool {
    let known = match class {
        Class::G0 => Known::G0,
        Class::G1a => Known::G1a,
        Class::G1b => Known::G1b,
        Class::G1c => Known::G1c,
        Class::LostUpdate | Class::GCursor => Known::P4,
        Class::GSingle | Class::ReadSkew | Class::NonRepeatableRead | Class::ReadWriteSkew => {
            Known::GSingle
        }
        Class::WriteSkew | Class::G2Item => Known::G2Item,
        Class::G2 => Known::G2,
        // Built on what was rolled back: as bad as reading it, and then some.
        Class::DirtyUpdate => Known::G1a,
        // Where writes see more than the snapshot, so that updates are lost, a row whose key
        // another has changed is there twice: as the snapshot has it, and as this one wrote it.
        Class::Internal => Known::P4,
        // No level of any engine allows versions that were never written, or two orders of the
        // versions of a row.
        Class::FutureRead
        | Class::ThinAirRead
        | Class::DuplicateVersions
        | Class::IncompatibleOrders => return true,
        // No manual names these: a level that allows no anomaly rules them out.
        Class::GSIa | Class::GSIb | Class::GNonadjacent => return allows.is_empty(),
    };
    !allows.contains(&known)
}

/// The cause of anomalies that the documentation of the level rules out.
pub fn forbidden_cause(differences: &[&Difference]) -> Cause {
    let classes = differences.iter().filter_map(|d| match d {
        Difference::Anomaly { class, meaning, .. } => Some(format!("{class} ({meaning})")),
        _ => None,
    });
    let classes: Vec<String> = classes.collect();
    let text = format!("the documentation of the level rules out {}", classes.join(", "));
    Cause::new(Verdict::Bug, vec![text])
}
