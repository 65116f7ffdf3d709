//! The server dies under a statement.

use super::moment::{Moment, Next};
use super::session::lost;

pub(super) fn crash(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_write() {
        return None;
    }
    m.world.crash();
    Some(Next::Answer(lost("the server crashed while it ran this (planted)")))
}
