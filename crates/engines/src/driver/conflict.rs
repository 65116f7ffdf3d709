//! The one check of a driver that depends on its profile: two transactions
//! write the same row, and what becomes of the second one must be what the
//! profile's `waiting` announces. The runner relies on it: a statement that
//! blocks where none should would stop the whole run.

use super::lab::{Found, Lab, PATIENCE, fault, is_conflict};
use super::message::Message;
use crate::engine::TxStatus;
use isolde_core::history::{ErrorClass, ErrorEffect};
use isolde_core::profile::Waiting;
use serde_json::json;

pub fn conflict(lab: &mut Lab) -> Found<String> {
    let (one, two, three) = (lab.open()?, lab.open()?, lab.open()?);
    lab.table(one)?;
    lab.begin(one)?;
    lab.run(one, "update isolde_check set v = 11 where id = 1")?;
    lab.begin(two)?;
    let sql = "update isolde_check set v = 12 where id = 1";
    let id = lab.start(two, sql)?;
    let at_once = lab.answer(id, PATIENCE / 5)?;
    let waiting = lab.hello.profile.waiting;
    let Some(message) = at_once else {
        return blocked(lab, [one, two, three], id, waiting);
    };
    let Some(error) = lab.classify(&message, TxStatus::Open) else {
        lab.run(one, "rollback")?;
        // Some databases find the conflict only when it commits.
        return match waiting {
            Waiting::Never => Ok("both write; the conflict shows later".into()),
            _ => fault("waiting, or an error, for a second writer of a row", message.describe()),
        };
    };
    if !is_conflict(error.class) {
        let wanted =
            "an error of class busy, write_conflict, serialization, deadlock or lock_timeout";
        return fault(wanted, format!("class {:?}: {error}", error.class));
    }
    lab.run(one, "commit")?;
    if error.class != ErrorClass::Busy {
        lab.execute(two, "rollback")?;
        return Ok(format!("an error of class {:?} at once", error.class));
    }
    if waiting != Waiting::Retry {
        return fault("profile.waiting \"retry\", where class busy means: try again", "another");
    }
    if error.effect != ErrorEffect::Statement {
        return fault("effect `statement` with class busy", format!("{:?}", error.effect));
    }
    let again = lab.execute(two, sql)?;
    lab.execute(two, "rollback")?;
    match lab.classify(&again, TxStatus::Open) {
        None => Ok("busy, and free after the other's commit".into()),
        Some(e) if is_conflict(e.class) => {
            Ok(format!("busy, then an error of class {:?}", e.class))
        }
        Some(e) => fault("the statement to succeed after the other's commit", e.to_string()),
    }
}

/// The second writer's statement has not returned: the profile must say that
/// statements block, and all other sessions must go on.
fn blocked(lab: &Lab, who: [u64; 3], id: u64, waiting: Waiting) -> Found<String> {
    let [one, two, three] = who;
    match waiting {
        Waiting::Never | Waiting::Retry => {
            let said = format!("profile.waiting {}", json!(waiting));
            return fault(format!("an answer at once, as {said} says"), "the statement blocks");
        }
        Waiting::Probe => {
            let request = json!({"request": "waiting", "sessions": [one, two, three]});
            match lab.ask(request)? {
                Message::Waiting(waiters) if waiters.iter().any(|w| w.session == two) => {}
                other => {
                    let wanted = format!("`waiting` to list session {two}");
                    return fault(wanted, other.describe());
                }
            }
        }
        Waiting::Timeout => {}
    }
    lab.rows(three, "select 1")?;
    lab.run(one, "commit")?;
    match lab.answer(id, PATIENCE)? {
        Some(_) => {
            lab.execute(two, "rollback")?;
            Ok("the statement waits and ends after the other's commit".into())
        }
        None => fault("the statement to end after the other's commit", "it still waits"),
    }
}
