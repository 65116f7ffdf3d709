//! The conditions under which faults strike, each as the corresponding real bug
//! would need it. None of them holds in a serial run. They are evaluated when a
//! statement is sent; whether it was blocked is known only with its answer, and
//! then [`Moment::watch`] reports it.

use super::access::Access;
use super::moment::Moment;
use isolde_model::Level;
use isolde_sql::Kind;

pub(super) fn any_row(rows: &[Access]) -> Vec<Access> {
    rows.iter().map(|t| Access { row: None, ..t.clone() }).collect()
}

fn written(m: &Moment<'_>) -> Vec<Access> {
    m.accesses.iter().filter(|t| t.writes).cloned().collect()
}

/// Another transaction is open; whether the statement is blocked by it is known
/// later.
pub(super) fn may_wait(m: &Moment<'_>) -> bool {
    m.watch.sure || m.world.others_open(m.me)
}

/// Another session waits for a lock. On engines that never block: another open
/// transaction accesses rows that this statement, or its transaction, has
/// written.
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

/// Another transaction has accessed a table that this one has written while
/// this one was open.
pub(super) fn own_table_was_used(m: &Moment<'_>) -> bool {
    m.world.traffic(|traffic| {
        let tables = any_row(&traffic.own_writes(m.me));
        traffic.others_use(m.me, &tables) || traffic.changed_since_begin(m.me, &tables)
    })
}

/// The same, or the transaction has been blocked.
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

/// A version of the rows that are written here was committed after this
/// transaction began.
pub(super) fn rows_have_changed(m: &Moment<'_>) -> bool {
    m.world.traffic(|traffic| traffic.changed_since_begin(m.me, &written(m)))
}

/// Such rows have changed, or may have when the statement was blocked.
pub(super) fn rows_may_have_changed(m: &Moment<'_>) -> bool {
    rows_have_changed(m) || may_wait(m)
}

/// A version of these rows was committed after this transaction began, and the
/// level reads from the snapshot of the beginning.
pub(super) fn snapshot_is_old(m: &Moment<'_>) -> bool {
    m.level >= Level::RepeatableRead
        && m.world.traffic(|traffic| traffic.changed_since_begin(m.me, m.accesses))
}

/// These rows have changed since the first of the open transactions began.
pub(super) fn older_version_exists(m: &Moment<'_>) -> bool {
    m.world.traffic(|traffic| traffic.changed_since_all_began(m.accesses))
}

/// Another open transaction has written these rows, and the level hides that.
pub(super) fn is_dirty(m: &Moment<'_>) -> bool {
    m.level > Level::ReadUncommitted
        && m.world.traffic(|traffic| traffic.others_hold(m.me, m.accesses))
}

/// The same, at a level that is not the weakest.
pub(super) fn is_dirty_above_the_weakest(m: &Moment<'_>) -> bool {
    m.world.weakest.is_some_and(|weakest| m.level > weakest)
        && m.world.traffic(|traffic| traffic.others_hold(m.me, m.accesses))
}
