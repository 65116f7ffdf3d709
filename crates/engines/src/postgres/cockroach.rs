//! CockroachDB through PostgreSQL's protocol.
//!
//! Written from its documentation and never run: no server was available. The
//! profile says so, and so does `isolde servers`.

use crate::engine::*;
use crate::fetch::install::Cache;
use crate::named_engine::NamedEngine;
use isolde_model::Value;

pub fn no_private_server(_: &NamedEngine, _: &Cache) -> EngineResult<Box<dyn Engine>> {
    Err(EngineError::Refused(
        "Isolde cannot start CockroachDB itself; start one and name it: \
         cockroach://root@127.0.0.1:26257/defaultdb"
            .into(),
    ))
}

/// Blocked sessions and lock holders, by CockroachDB's session names.
pub fn probe_sql() -> String {
    "select wt.session_id, ht.session_id \
     from crdb_internal.cluster_locks w \
     join crdb_internal.cluster_transactions wt on wt.id = w.txn_id \
     left join crdb_internal.cluster_locks h on h.lock_key = w.lock_key and h.granted \
     left join crdb_internal.cluster_transactions ht on ht.id = h.txn_id \
     where not w.granted"
        .into()
}

pub fn waits(
    outcome: &Outcome,
    sessions: &[SessionId],
    names: &[(SessionId, String)],
) -> Vec<WaitState> {
    let Outcome::Rows { rows, .. } = outcome else {
        return vec![WaitState::Free; sessions.len()];
    };
    let id_of = |value: Option<&Value>| match value {
        Some(Value::Text(name)) => names.iter().find(|(_, n)| n == name).map(|(id, _)| *id),
        _ => None,
    };
    sessions
        .iter()
        .map(|session| {
            let mine = || rows.iter().filter(|r| id_of(r.first()) == Some(*session));
            if mine().next().is_none() {
                return WaitState::Free;
            }
            WaitState::Waiting(mine().filter_map(|r| id_of(r.get(1))).collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_and_holders_are_mapped_by_session_names() {
        let text = |t: &str| Value::Text(t.into());
        let outcome = Outcome::Rows {
            columns: Vec::new(),
            rows: vec![vec![text("b"), text("a")], vec![text("stranger"), text("a")]],
        };
        let names = [(1, "a".to_string()), (2, "b".to_string())];
        let found = waits(&outcome, &[1, 2], &names);
        assert_eq!(found, [WaitState::Free, WaitState::Waiting(vec![1])]);
    }
}
