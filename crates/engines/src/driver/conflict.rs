//! The one check of a driver that depends on its profile: two transactions
//! write the same row, and the second one must behave as the profile's
//! `waiting` announces. The runner relies on it: a statement that blocks
//! unexpectedly would stop the whole run.

use super::harness::{CheckOutcome, Harness, PATIENCE, unexpected};
use super::message::Message;
use crate::engine::TxStatus;
use isolde_model::history::{ErrorClass, ErrorEffect};
use isolde_model::profile::Waiting;
use serde_json::json;

pub fn conflict(harness: &mut Harness) -> CheckOutcome<String> {
    let (one, two, three) = (harness.open()?, harness.open()?, harness.open()?);
    harness.table(one)?;
    harness.begin(one)?;
    harness.run(one, "update isolde_check set v = 11 where id = 1")?;
    harness.begin(two)?;
    let sql = "update isolde_check set v = 12 where id = 1";
    let id = harness.start(two, sql)?;
    let at_once = harness.answer(id, PATIENCE / 5)?;
    let waiting = harness.hello.profile.waiting;
    let Some(message) = at_once else {
        return blocked(harness, [one, two, three], id, waiting);
    };
    let Some(error) = harness.classify(&message, TxStatus::Open) else {
        harness.run(one, "rollback")?;
        // Some databases detect the conflict only at COMMIT.
        return match waiting {
            Waiting::Never => Ok("both write; the conflict shows later".into()),
            _ => {
                unexpected("waiting, or an error, for a second writer of a row", message.describe())
            }
        };
    };
    if !error.class.is_conflict() {
        let wanted =
            "an error of class busy, write_conflict, serialization, deadlock or lock_timeout";
        return unexpected(wanted, format!("class {:?}: {error}", error.class));
    }
    harness.run(one, "commit")?;
    if error.class != ErrorClass::Busy {
        harness.execute(two, "rollback")?;
        return Ok(format!("an error of class {:?} at once", error.class));
    }
    if waiting != Waiting::Retry {
        return unexpected(
            "profile.waiting \"retry\", where class busy means: try again",
            "another",
        );
    }
    if error.effect != ErrorEffect::Statement {
        return unexpected("effect `statement` with class busy", format!("{:?}", error.effect));
    }
    let again = harness.execute(two, sql)?;
    harness.execute(two, "rollback")?;
    match harness.classify(&again, TxStatus::Open) {
        None => Ok("busy, and free after the other's commit".into()),
        Some(e) if e.class.is_conflict() => {
            Ok(format!("busy, then an error of class {:?}", e.class))
        }
        Some(e) => unexpected("the statement to succeed after the other's commit", e.to_string()),
    }
}

/// The second writer's statement has not returned: the profile must announce
/// that statements block, and all other sessions must stay responsive.
fn blocked(
    harness: &Harness,
    sessions: [u64; 3],
    id: u64,
    waiting: Waiting,
) -> CheckOutcome<String> {
    let [one, two, three] = sessions;
    match waiting {
        Waiting::Never | Waiting::Retry => {
            let said = format!("profile.waiting {}", json!(waiting));
            return unexpected(
                format!("an answer at once, as {said} says"),
                "the statement blocks",
            );
        }
        Waiting::Probe => {
            let request = json!({"request": "waiting", "sessions": [one, two, three]});
            match harness.ask(request)? {
                Message::Waiting(waiters) if waiters.iter().any(|w| w.session == two) => {}
                other => {
                    let wanted = format!("`waiting` to list session {two}");
                    return unexpected(wanted, other.describe());
                }
            }
        }
        Waiting::Timeout => {}
    }
    harness.rows(three, "select 1")?;
    harness.run(one, "commit")?;
    match harness.answer(id, PATIENCE)? {
        Some(_) => {
            harness.execute(two, "rollback")?;
            Ok("the statement waits and ends after the other's commit".into())
        }
        None => unexpected("the statement to end after the other's commit", "it still waits"),
    }
}
