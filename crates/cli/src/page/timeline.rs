//! The timeline of a run in HTML: a grid with one column per session and one row
//! per moment. The elements are in temporal order, so the page also reads
//! correctly without its style.

use super::html::{NEW_LINE, code, cut, plural, text};
use super::layout::{Cell, Kind, Layout};
use super::why;
use isolde_model::History;
use isolde_model::difference::Difference;
use isolde_model::history::{EventKind, TxEnd};
use isolde_model::value::show_rows;
use isolde_reference::Account;
use maud::{Markup, html};

/// Maximum number of moments that are shown.
const MOST_ROWS: usize = 120;
const LONGEST_ANSWER: usize = 300;
/// Maximum width of all columns together, in characters, before the sessions
/// become rails.
const MOST_COLUMNS_WIDTH: usize = 240;
const LEGEND: &str = "Time runs downwards. The line next to a session is its transaction: green \
    committed, red aborted, dashed rolled back. A hatched bar is a lock wait.";

pub fn timeline(
    history: &History,
    differences: &[Difference],
    account: Option<&Account>,
) -> Markup {
    let layout = Layout::of(history);
    let shown = layout.rows.min(MOST_ROWS);
    let class = if wants_rails(&layout) { "timeline rails" } else { "timeline" };
    let label = "Timeline: one column per session, time runs downwards";
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            ol class=(class) style={ "--lanes:" (layout.lanes.len().max(1)) } {
                @for (lane, session) in layout.lanes.iter().enumerate() {
                    li.lane style={ "--c:" (lane + 1) ";--e:" (shown + 2) } { (text(session)) }
                }
                @for span in layout.spans.iter().filter(|s| s.from < shown) {
                    @let class = format!("tx {}", end_class(span.how));
                    (bar(&class, span.lane, span.from, span.to.min(shown - 1)))
                }
                @for wait in layout.bars.iter().filter(|b| b.from < shown) {
                    // It ends at the top of the row where the statement resumed.
                    @if wait.open || wait.to >= shown {
                        (bar("wait open", wait.lane, wait.from, shown - 1))
                    } @else {
                        (bar("wait", wait.lane, wait.from, wait.to - 1))
                    }
                }
                @for cell in layout.cells.iter().filter(|c| c.row < shown) {
                    (moment(cell, differences, account))
                    (NEW_LINE)
                }
            }
        }
        p.legend { (LEGEND) }
        @if shown < layout.rows {
            p.note { (plural((layout.rows - shown) as u64, "more moment")) " not shown here." }
        }
    }
}

/// Whether the columns would be too narrow for the statements: sessions then
/// become thin rails, and all statements share the width next to them. Narrow
/// screens always do that.
fn wants_rails(layout: &Layout<'_>) -> bool {
    let lengths: Vec<usize> = layout
        .cells
        .iter()
        .filter_map(|c| match c.what {
            Kind::Statement(sql) => Some(sql.chars().count()),
            _ => None,
        })
        .collect();
    let mean = lengths.iter().sum::<usize>() / lengths.len().max(1);
    layout.lanes.len() > 3 || mean * layout.lanes.len() > MOST_COLUMNS_WIDTH
}

/// Row 1 of the grid holds the names of the sessions.
fn bar(class: &str, lane: usize, from: usize, to: usize) -> Markup {
    let place = format!("--c:{};--r:{};--e:{}", lane + 1, from + 2, to + 3);
    html! { li class=(class) aria-hidden="true" style=(place) {} }
}

fn moment(cell: &Cell<'_>, differences: &[Difference], account: Option<&Account>) -> Markup {
    let answered = cell.events.iter().any(|w| {
        matches!(
            w,
            EventKind::Rows { .. }
                | EventKind::Affected { .. }
                | EventKind::Done
                | EventKind::Error(_)
        )
    });
    let serially =
        cell.step.filter(|_| answered).and_then(|s| serial_answer(&s.label, differences));
    let verdict = cell.step.filter(|_| answered).and_then(|s| why::of_step(&s.label, account?));
    let mut class = String::from("cell");
    match cell.what {
        Kind::Statement(_) => {}
        Kind::Resumed => class.push_str(" later"),
        Kind::NotSent | Kind::Runner => class.push_str(" not-sent"),
    }
    if serially.is_some() {
        class.push_str(" differs");
    }
    if cell.events.iter().any(|w| matches!(w, EventKind::Error(_) | EventKind::Cancelled)) {
        class.push_str(" failed");
    }
    html! {
        li class=(class) style={ "--c:" (cell.lane + 1) ";--r:" (cell.row + 2) } {
            @if let (Some(step), true) = (cell.step, cell.what != Kind::Runner) {
                b { (text(&step.label)) } " "
            }
            @match cell.what {
                Kind::Statement(sql) => (code(sql)),
                Kind::Resumed => span.word { "resumes" },
                Kind::NotSent => s { (code(cell.step.map_or("", |s| s.sql.as_str()))) },
                Kind::Runner => span.word { "Isolde" },
            }
            @for what in &cell.events { (event(what)) }
            @if let Some(serially) = serially {
                span.serially { "serially: " (text(&cut(&serially, LONGEST_ANSWER))) }
            }
            @if let Some(verdict) = verdict { (verdict) }
        }
    }
}

fn event(what: &EventKind) -> Markup {
    let (class, shown) = match what {
        EventKind::Waiting { on } if on.is_empty() => ("waits", "waits".into()),
        EventKind::Waiting { on } => ("waits", format!("waits for {}", on.join(", "))),
        EventKind::Rows { rows, .. } if rows.is_empty() => ("answer", "no rows".into()),
        EventKind::Rows { rows, .. } => ("answer", show_rows(rows)),
        EventKind::Affected { count } => ("answer", plural(*count, "row")),
        EventKind::Error(error) => ("error", format!("error {}: {}", error.code, error.message)),
        EventKind::NotSent { why } => ("answer", format!("not sent: {why}")),
        EventKind::Ended { how, .. } => {
            return html! { span class={ "end " (end_class(*how)) } { (end_words(*how)) } };
        }
        EventKind::Cancelled => ("error", "cancelled by Isolde".into()),
        EventKind::RolledBackByRunner { why } => ("answer", format!("rolls back: {why}")),
        EventKind::Sent { .. } | EventKind::Resumed | EventKind::Done => return html! {},
    };
    html! { span class=(class) { (text(&cut(&shown, LONGEST_ANSWER))) } }
}

fn end_class(how: TxEnd) -> &'static str {
    match how {
        TxEnd::Committed => "committed",
        TxEnd::RolledBack => "rolled-back",
        TxEnd::Aborted => "aborted",
        TxEnd::Lost | TxEnd::Unknown => "unknown",
    }
}

fn end_words(how: TxEnd) -> &'static str {
    match how {
        TxEnd::Committed => "✓ committed",
        TxEnd::RolledBack => "↩ rolled back",
        TxEnd::Aborted => "✗ aborted by the engine",
        TxEnd::Lost => "✗ connection lost",
        TxEnd::Unknown => "? outcome unknown",
    }
}

/// The result of a statement in the serial run, where it differed.
fn serial_answer(wanted: &str, differences: &[Difference]) -> Option<String> {
    differences.iter().find_map(|d| match d {
        Difference::Success { label, serial, .. } if label == wanted => Some(serial.clone()),
        Difference::Affected { label, serial, .. } if label == wanted => {
            Some(plural(*serial, "row"))
        }
        Difference::Read { label, serial, .. } if label == wanted => Some(show_rows(serial)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_testing::samples::recorded;

    fn page(history: &History, differences: &[Difference]) -> String {
        timeline(history, differences, None).into_string()
    }

    #[test]
    fn timeline_draws_lanes_bars_and_marks_of_the_layout() {
        let drawn = page(&recorded("wait"), &[]);
        assert!(drawn.contains("style=\"--lanes:2\""));
        // s2.3 waits from row 4 to row 7 of the second lane.
        assert!(
            drawn.contains("<li class=\"wait\" aria-hidden=\"true\" style=\"--c:2;--r:6;--e:9\">")
        );
        assert_eq!(drawn.matches("✓ committed").count(), 2);
        let drawn = page(&recorded("deadlock"), &[]);
        assert!(drawn.contains("✗ aborted by the engine") && drawn.contains("↩ rolled back"));
        assert!(drawn.contains("error 1213: Deadlock found"));
        assert!(drawn.contains("it''s &lt;b&gt;here&lt;/b&gt;") && !drawn.contains("<b>here"));
    }

    #[test]
    fn timeline_of_long_statements_has_rails() {
        let mut history = recorded("wait");
        assert!(!page(&history, &[]).contains("timeline rails"));
        history.steps.iter_mut().for_each(|s| s.sql = "select 1 ".repeat(30));
        assert!(page(&history, &[]).contains("timeline rails"));
    }

    #[test]
    fn timeline_shows_the_serial_result_where_it_differs() {
        let differs = Difference::Affected {
            label: "s2.3".into(),
            sql: String::new(),
            concurrent: 4,
            serial: 3,
        };
        let drawn = page(&recorded("wait"), &[differs]);
        assert_eq!(drawn.matches("serially: 3 rows").count(), 1, "once, where it answered");
    }

    #[test]
    fn timeline_of_a_very_long_run_is_cut() {
        let mut history = recorded("wait");
        let events = history.events.clone();
        for _ in 0..40 {
            history.events.extend(events.clone());
        }
        let drawn = page(&history, &[]);
        assert!(drawn.contains("more moments not shown here"));
        assert!(drawn.matches("<li class=\"cell").count() <= MOST_ROWS);
    }
}
