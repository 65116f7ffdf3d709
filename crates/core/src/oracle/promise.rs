//! Which classes of anomalies a level's documentation rules out.

use crate::Anomaly as Known;
use isolde_checker::{Anomaly, Class, Report};

/// What a level lets happen and should not, the worst first. Of a level whose
/// documentation says nothing, nothing is known to be forbidden.
pub fn forbidden<'r>(report: &'r Report, allows: Option<&[Known]>) -> Vec<&'r Anomaly> {
    // No level of SQL promises anything about sessions or time.
    let of_data = report.anomalies.iter().filter(|anomaly| anomaly.through.is_none());
    of_data.filter(|a| allows.is_some_and(|allows| is_ruled_out(a.class, allows))).collect()
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
        // No level of any engine shows what nobody wrote, or a row's versions in two orders.
        Class::FutureRead
        | Class::ThinAirRead
        | Class::DuplicateVersions
        | Class::IncompatibleOrders => return true,
        // Nobody documents these by name: a level that lets nothing through rules them out.
        Class::GSIa | Class::GSIb | Class::GNonadjacent => return allows.is_empty(),
    };
    !allows.contains(&known)
}
