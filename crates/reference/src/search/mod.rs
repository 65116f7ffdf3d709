//! The search through what the rules leave open: choices, and the engine's
//! evaluations, which are computed once for all attempts.

mod choices;
mod eval_cache;

pub use choices::Choices;
pub use eval_cache::EvalCache;
use isolde_model::history::DbError;
use isolde_model::inquiry::Channel;
use isolde_model::value::Row;

/// One attempt of the search.
pub struct Search<'a> {
    channel: &'a Channel,
    cache: &'a mut EvalCache,
    choices: &'a mut Choices,
}

impl<'a> Search<'a> {
    pub fn new(
        channel: &'a Channel,
        cache: &'a mut EvalCache,
        choices: &'a mut Choices,
    ) -> Search<'a> {
        Search { channel, cache, choices }
    }

    /// One of `of` possibilities, counted from 0.
    pub fn choose(&mut self, of: usize) -> usize {
        self.choices.choose(of)
    }

    /// Whether every continuation from this state has failed before.
    pub fn has_failed(&mut self, state: u64) -> bool {
        self.choices.has_failed(state)
    }

    /// The rows of the last of the statements, evaluated by the engine.
    pub async fn evaluate(
        &mut self,
        step: Option<usize>,
        sql: Vec<String>,
    ) -> Result<Vec<Row>, DbError> {
        self.cache.evaluate(self.channel, step, sql).await
    }
}
