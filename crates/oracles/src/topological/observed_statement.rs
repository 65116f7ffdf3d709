//! One statement of an observed run.

use super::moments::Moment;
use crate::instrument::{StatementId, StatementObservation};
use isolde_sql::Stmt;
use std::collections::BTreeMap;

/// A statement of a committed transaction.
pub struct ObservedStatement<'a> {
    pub id: StatementId,
    pub(super) transaction: usize,
    pub(super) statement: &'a Stmt,
    pub(super) observed: &'a StatementObservation,
    pub moment: Moment,
    /// For each row that it looked at, which of its versions.
    pub(super) places: BTreeMap<String, usize>,
}
