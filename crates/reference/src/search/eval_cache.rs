//! A cache of what the engine has evaluated for a prediction.

use isolde_model::history::DbError;
use isolde_model::inquiry::Channel;
use isolde_model::value::Row;
use std::collections::HashMap;

type Request = (Option<usize>, Vec<String>);

#[derive(Default)]
pub struct EvalCache {
    /// By step as well, because two steps with the same SQL make versions of
    /// their own.
    responses: HashMap<Request, Result<Vec<Row>, DbError>>,
}

impl EvalCache {
    /// The rows of the last of the statements.
    pub async fn evaluate(
        &mut self,
        channel: &Channel,
        step: Option<usize>,
        sql: Vec<String>,
    ) -> Result<Vec<Row>, DbError> {
        let request = (step, sql);
        if let Some(known) = self.responses.get(&request) {
            return known.clone();
        }
        let response = channel.evaluate(request.1.clone()).await;
        self.responses.insert(request, response.clone());
        response
    }
}
