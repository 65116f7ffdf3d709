//! The layout of a history as a timeline: one lane per session, one row per
//! moment, and one bar per lock wait, from where the statement blocked to where
//! it resumed.
//!
//! A moment is a submission, or a result that arrived after an event of another
//! session. So a lower row is a later moment, and the result of a statement that
//! did not block is in the row of its submission.

use isolde_model::History;
use isolde_model::history::{EventKind, SentStep, TxEnd};

#[derive(Debug, Default)]
pub struct Layout<'h> {
    pub lanes: Vec<&'h str>,
    pub rows: usize,
    pub cells: Vec<Cell<'h>>,
    pub bars: Vec<Bar>,
    pub spans: Vec<Span>,
}

#[derive(Debug)]
pub struct Cell<'h> {
    pub lane: usize,
    pub row: usize,
    pub step: Option<&'h SentStep>,
    pub what: Kind<'h>,
    /// The events of the statement, in their order.
    pub events: Vec<&'h EventKind>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind<'h> {
    /// A statement, as it was sent to the server.
    Statement(&'h str),
    /// A statement of an earlier row resumes.
    Resumed,
    NotSent,
    /// An action of the runner.
    Runner,
}

#[derive(Debug, PartialEq)]
pub struct Bar {
    pub lane: usize,
    pub from: usize,
    /// The row where the statement resumed; the last row if it never did.
    pub to: usize,
    pub open: bool,
}

/// An explicit transaction, from its first statement to its end.
#[derive(Debug, PartialEq)]
pub struct Span {
    pub lane: usize,
    pub from: usize,
    pub to: usize,
    pub how: TxEnd,
}

impl<'h> Layout<'h> {
    /// Expects a history in which every number that refers to a step or a
    /// transaction has one; see [`isolde_hunt::finding_folder`].
    pub fn of(history: &'h History) -> Layout<'h> {
        let mut layout = Layout::default();
        for step in &history.steps {
            layout.lane(&step.session);
        }
        // The last cell of each step, and the bar of its current lock wait.
        let mut at: Vec<Option<usize>> = vec![None; history.steps.len()];
        let mut waits: Vec<Option<usize>> = vec![None; history.steps.len()];
        let mut ends: Vec<Option<usize>> = vec![None; history.transactions.len()];
        for event in &history.events {
            let lane = layout.lane(&event.session);
            let step = event.step.and_then(|i| history.steps.get(i).map(|s| (i, s)));
            match (&event.what, step) {
                (EventKind::Sent { as_sql }, Some((i, s))) => {
                    let sql = as_sql.as_deref().unwrap_or(&s.sql);
                    at[i] = Some(layout.open(lane, Some(s), Kind::Statement(sql)));
                }
                (EventKind::NotSent { .. }, Some((i, s))) => {
                    let cell = layout.open(lane, Some(s), Kind::NotSent);
                    layout.cells[cell].events.push(&event.what);
                    at[i] = Some(cell);
                }
                (EventKind::Waiting { .. }, Some((i, _))) => {
                    let Some(cell) = at[i] else { continue };
                    layout.cells[cell].events.push(&event.what);
                    let from = layout.cells[cell].row;
                    // Another lock holder later is still the same wait.
                    if waits[i].is_none() {
                        waits[i] = Some(layout.bars.len());
                        layout.bars.push(Bar { lane, from, to: from, open: true });
                    }
                }
                (EventKind::Resumed, Some((i, s))) => {
                    let cell = layout.open(lane, Some(s), Kind::Resumed);
                    layout.close(waits[i].take(), cell);
                    at[i] = Some(cell);
                }
                (_, Some((i, s))) => {
                    let cell = match at[i] {
                        // The lowest row: no other session had an event since.
                        Some(cell)
                            if waits[i].is_none() && layout.cells[cell].row + 1 == layout.rows =>
                        {
                            cell
                        }
                        _ => layout.open(lane, Some(s), Kind::Resumed),
                    };
                    layout.close(waits[i].take(), cell);
                    at[i] = Some(cell);
                    layout.cells[cell].events.push(&event.what);
                }
                (_, None) => {
                    let lowest = layout.cells.iter().rposition(|c| c.row + 1 == layout.rows);
                    let joins = lowest
                        .filter(|c| layout.cells[*c].lane == lane)
                        .filter(|_| matches!(event.what, EventKind::Ended { .. }));
                    let cell = joins.unwrap_or_else(|| layout.open(lane, None, Kind::Runner));
                    layout.cells[cell].events.push(&event.what);
                }
            }
            if let EventKind::Ended { transaction, .. } = event.what
                && let Some(end) = ends.get_mut(transaction)
            {
                *end = Some(layout.rows.saturating_sub(1));
            }
        }
        let last = layout.rows.saturating_sub(1);
        layout.bars.iter_mut().filter(|b| b.open).for_each(|b| b.to = last);
        layout.place_transactions(history, &ends);
        layout
    }

    fn lane(&mut self, session: &'h str) -> usize {
        self.lanes.iter().position(|l| *l == session).unwrap_or_else(|| {
            self.lanes.push(session);
            self.lanes.len() - 1
        })
    }

    fn open(&mut self, lane: usize, step: Option<&'h SentStep>, what: Kind<'h>) -> usize {
        self.cells.push(Cell { lane, row: self.rows, step, what, events: Vec::new() });
        self.rows += 1;
        self.cells.len() - 1
    }

    fn close(&mut self, bar: Option<usize>, cell: usize) {
        let row = self.cells[cell].row;
        if let Some(bar) = bar.and_then(|b| self.bars.get_mut(b)) {
            (bar.to, bar.open) = (row, false);
        }
    }

    fn place_transactions(&mut self, history: &'h History, ends: &[Option<usize>]) {
        for (transaction, end) in history.transactions.iter().zip(ends) {
            if transaction.autocommit {
                continue;
            }
            let Some(first) = history.steps.get(transaction.begin) else { continue };
            let begin = self.cells.iter().find(|c| c.step.is_some_and(|s| std::ptr::eq(s, first)));
            let Some(begin) = begin else { continue };
            let (lane, from) = (begin.lane, begin.row);
            let to = end.unwrap_or(self.rows.saturating_sub(1)).max(from);
            self.spans.push(Span { lane, from, to, how: transaction.how });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_testing::samples::recorded;

    fn cell<'l, 'h>(layout: &'l Layout<'h>, label: &str) -> Vec<&'l Cell<'h>> {
        layout.cells.iter().filter(|c| c.step.is_some_and(|s| s.label == label)).collect()
    }

    #[test]
    fn cells_are_in_the_lane_of_their_session_and_in_submission_order() {
        let history = recorded("wait");
        let layout = Layout::of(&history);
        assert_eq!(layout.lanes, ["s1", "s2"]);
        let places: Vec<(usize, usize)> = layout.cells.iter().map(|c| (c.lane, c.row)).collect();
        let lanes = [0, 1, 0, 1, 1, 0, 0, 1, 1, 1];
        assert_eq!(places, lanes.iter().enumerate().map(|(r, l)| (*l, r)).collect::<Vec<_>>());
    }

    #[test]
    fn bar_of_a_lock_wait_ends_where_the_statement_resumed() {
        let history = recorded("wait");
        let layout = Layout::of(&history);
        let [sent, resumed] = cell(&layout, "s2.3")[..] else { panic!("two cells") };
        assert_eq!((sent.row, resumed.row, resumed.what), (4, 7, Kind::Resumed));
        let expected = Bar { lane: 1, from: 4, to: 7, open: false };
        assert_eq!(layout.bars, [expected]);
        // It resumed after the COMMIT that released the lock.
        assert_eq!(cell(&layout, "s1.4")[0].row, 6);
        assert!(matches!(resumed.events[..], [EventKind::Affected { .. }]));
    }

    #[test]
    fn span_of_a_deadlock_victim_ends_at_its_error() {
        let history = recorded("deadlock");
        let layout = Layout::of(&history);
        let victim = cell(&layout, "s2.3")[0];
        assert!(matches!(victim.events[..], [EventKind::Error(_), EventKind::Ended { .. }]));
        assert_eq!(cell(&layout, "s2.4")[0].what, Kind::NotSent);
        let ends: Vec<(usize, TxEnd)> = layout.spans.iter().map(|s| (s.lane, s.how)).collect();
        assert_eq!(ends, [(0, TxEnd::Committed), (1, TxEnd::Aborted), (2, TxEnd::RolledBack)]);
        assert_eq!(layout.spans[1].to, victim.row);
        assert!(layout.bars.iter().all(|b| b.from < b.to && !b.open));
    }

    #[test]
    fn bar_of_a_statement_that_never_resumes_is_open() {
        let mut history = recorded("wait");
        history.events.retain(|e| {
            e.step != Some(4) || !matches!(e.what, EventKind::Resumed | EventKind::Affected { .. })
        });
        let layout = Layout::of(&history);
        assert_eq!((layout.bars[0].to, layout.bars[0].open), (layout.rows - 1, true));
    }

    #[test]
    fn layout_of_any_order_of_events_fits_its_grid() {
        let check = |history: &History| {
            let layout = Layout::of(history);
            assert!(
                layout.cells.iter().all(|c| c.row < layout.rows && c.lane < layout.lanes.len())
            );
            assert!(layout.bars.iter().all(|b| b.from <= b.to && b.to < layout.rows));
            assert!(layout.bars.iter().all(|b| b.open || b.from < b.to));
            assert!(layout.spans.iter().all(|s| s.from <= s.to && s.to < layout.rows));
        };
        for name in ["wait", "deadlock", "serialization"] {
            let whole = recorded(name);
            for i in 0..whole.events.len() {
                let mut less = whole.clone();
                less.events.remove(i);
                check(&less);
                less.events.truncate(i);
                check(&less);
                for j in 0..i {
                    let mut other = whole.clone();
                    other.events.swap(i, j);
                    check(&other);
                }
                let mut doubled = whole.clone();
                doubled.events.insert(i, whole.events[i].clone());
                check(&doubled);
            }
        }
    }
}
