//! The ways to begin a transaction that concurrency models distinguish.

use crate::feature::Feature;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginForm {
    Plain,
    ReadOnly,
    ConsistentSnapshot,
    Immediate,
    Pessimistic,
    Optimistic,
}

impl BeginForm {
    pub const ALL: [BeginForm; 6] = [
        BeginForm::Plain,
        BeginForm::ReadOnly,
        BeginForm::ConsistentSnapshot,
        BeginForm::Immediate,
        BeginForm::Pessimistic,
        BeginForm::Optimistic,
    ];

    /// The feature that this form needs; the plain form needs none.
    pub fn feature(self) -> Option<Feature> {
        match self {
            BeginForm::Plain => None,
            BeginForm::ReadOnly => Some(Feature::ReadOnly),
            BeginForm::ConsistentSnapshot => Some(Feature::ConsistentSnapshot),
            BeginForm::Immediate => Some(Feature::Immediate),
            BeginForm::Pessimistic => Some(Feature::Pessimistic),
            BeginForm::Optimistic => Some(Feature::Optimistic),
        }
    }
}
