//! When faults strike: what has to hold in the run, as the real bug would need
//! it. None of these holds in a serial run. What is asked here is known when
//! the statement goes out; that it had to wait is known with its answer, and
//! asked of [`Moment::watch`] there.

use super::moment::Moment;
use super::touch::Touch;
use isolde_core::Level;
use isolde_core::sql::Kind;

pub(super) fn any_row(rows: &[Touch]) -> Vec<Touch> {
    rows.iter().map(|t| Touch { row: None, ..t.clone() }).collect()
}

fn written(m: &Moment<'_>) -> Vec<Touch> {
    m.touches.iter().filter(|t| t.writes).cloned().collect()
}

/// Another transaction is open; whether the statement had to wait for it is
/// told later.
pub(super) fn may_wait(m: &Moment<'_>) -> bool {
    m.watch.sure || m.world.others_open(m.me)
}

/// Another session waits for a lock. Where nothing ever waits: another open
/// transaction uses what this statement, or its transaction, has written.
pub(super) fn others_wait(m: &Moment<'_>) -> bool {
    m.world.traffic(|traffic| match m.world.never_waits {
        false => traffic.others_wait(m.me),
        true if m.kind == Kind::Write => traffic.others_use(m.me, &any_row(&written(m))),
        true => traffic.others_use(m.me, &any_row(&traffic.own_writes(m.me))),
    })
}

/// Another open transaction has written rows of a table that is written here.
pub(super) fn table_is_held(m: &Moment<'_>) -> bool {
    let tables = any_row(&written(m));
    m.world.traffic(|traffic| traffic.others_hold(m.me, &tables))
}

/// Another transaction has used a table that this one has written while this
/// one was open.
pub(super) fn own_table_was_used(m: &Moment<'_>) -> bool {
    m.world.traffic(|traffic| {
        let tables = any_row(&traffic.own_writes(m.me));
        traffic.others_use(m.me, &tables) || traffic.changed_since_begin(m.me, &tables)
    })
}

/// The same, or the transaction has had to wait.
pub(super) fn met_others(m: &Moment<'_>) -> bool {
    m.note.waited || own_table_was_used(m)
}

/// Another transaction has written to a table that is written here while this
/// transaction was open, whether or not it has ended since.
pub(super) fn table_has_changed(m: &Moment<'_>) -> bool {
    let tables = any_row(&written(m));
    m.world.traffic(|traffic| {
        traffic.others_hold(m.me, &tables) || traffic.changed_since_begin(m.me, &tables)
    })
}

/// There is a version of the rows that are written here that was committed
/// after this transaction began.
pub(super) fn rows_have_changed(m: &Moment<'_>) -> bool {
    m.world.traffic(|traffic| traffic.changed_since_begin(m.me, &written(m)))
}

/// Such rows have changed, or may turn out to have when the statement has
/// waited.
pub(super) fn rows_may_have_changed(m: &Moment<'_>) -> bool {
    rows_have_changed(m) || may_wait(m)
}

/// There is a version of these rows that was committed after this transaction
/// began, and the level is one that keeps to what was there at the beginning.
pub(super) fn snapshot_is_old(m: &Moment<'_>) -> bool {
    m.level >= Level::RepeatableRead
        && m.world.traffic(|traffic| traffic.changed_since_begin(m.me, m.touches))
}

/// These rows have changed since the first of the open transactions began.
pub(super) fn older_version_exists(m: &Moment<'_>) -> bool {
    m.world.traffic(|traffic| traffic.changed_since_all_began(m.touches))
}

/// Another open transaction has written these rows, and the level hides that.
pub(super) fn is_dirty(m: &Moment<'_>) -> bool {
    m.level > Level::ReadUncommitted
        && m.world.traffic(|traffic| traffic.others_hold(m.me, m.touches))
}

/// The same for a level that a weaker one is below.
pub(super) fn is_dirty_above_the_weakest(m: &Moment<'_>) -> bool {
    m.world.weakest.is_some_and(|weakest| m.level > weakest)
        && m.world.traffic(|traffic| traffic.others_hold(m.me, m.touches))
}
