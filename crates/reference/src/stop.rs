//! The reasons for which a replay ends before the last event of its run.

use isolde_catalog::Rule;
use isolde_model::breach::Breach;
use isolde_model::history::DbError;

/// Why a replay stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    Outside {
        step: Option<usize>,
        rule: &'static Rule,
        breach: Breach,
    },
    NotModelled {
        step: usize,
        why: String,
    },
    /// Every continuation from this state has failed before.
    Tried,
    /// The engine refuses to evaluate what the prediction needs.
    Refused {
        step: usize,
        error: DbError,
    },
}

impl Stop {
    pub fn not_modelled(step: usize, why: &str) -> Stop {
        Stop::NotModelled { step, why: why.into() }
    }
}
