//! How a list of writers names the action of a foreign key.

use super::StatementId;
use isolde_model::random::fingerprint;

/// In a list of writers, an action whose statement is not known yet.
const UNKNOWN: StatementId = 1 << 63;
/// Before an image in a list of writers.
pub(super) const CHANGED: char = '!';

/// The writer that a word of a list names: a statement, or an action that left an image.
pub(super) fn writer(word: &str) -> Option<StatementId> {
    match word.strip_prefix(CHANGED) {
        Some(image) => Some(action(image)),
        None => word.parse().ok(),
    }
}

pub(super) fn action(image: &str) -> StatementId {
    UNKNOWN | fingerprint(image) >> 1
}

pub(super) fn is_unknown(writer: StatementId) -> bool {
    writer & UNKNOWN != 0
}
