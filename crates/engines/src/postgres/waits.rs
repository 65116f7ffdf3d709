//! Reads lock waits and lock holders from PostgreSQL's views.

use super::cockroach;
use super::engine::Postgres;
use super::flavour::Flavour;
use crate::engine::*;
use isolde_model::Value;

impl Postgres {
    pub(super) fn wait_states(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        if self.flavour == Flavour::Cockroach {
            let sql = cockroach::probe_sql();
            let outcome = self.control(&sql)?;
            return Ok(cockroach::waits(&outcome, sessions, &self.names));
        }
        let sql = self.probe_sql(sessions);
        let rows = match self.control(&sql)? {
            Outcome::Rows { rows, .. } => rows,
            other => return Err(EngineError::Refused(format!("the lock view answered {other:?}"))),
        };
        let number = |v: Option<&Value>| match v {
            Some(Value::Int(i)) => u64::try_from(*i).ok(),
            _ => None,
        };
        let holders = |session: &SessionId| -> Vec<SessionId> {
            rows.iter()
                .filter(|r| number(r.first()) == Some(*session))
                .filter_map(|r| number(r.get(1)))
                // 0 is a prepared transaction. A session outside of the run
                // (autovacuum, another user) releases its lock by itself: not a
                // wait of the case.
                .filter(|holder| *holder == 0 || self.opened.contains(holder))
                .collect()
        };
        Ok(sessions
            .iter()
            .map(|s| match holders(s) {
                on if on.is_empty() => WaitState::Free,
                on => WaitState::Waiting(on),
            })
            .collect())
    }

    fn probe_sql(&self, sessions: &[SessionId]) -> String {
        let list: Vec<String> = sessions.iter().map(SessionId::to_string).collect();
        let safe = if self.major >= 10 { " || pg_safe_snapshot_blocking_pids(p)" } else { "" };
        format!(
            "select p, b from unnest(array[{}]::int[]) p, unnest(pg_blocking_pids(p){safe}) b",
            list.join(",")
        )
    }
}
