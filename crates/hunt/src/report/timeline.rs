//! A run as a timeline in HTML: a grid with a column a session and a row a
//! moment. The elements come in the order of time, so the page reads the same
//! without its style.

use super::html::{self, code, plural, text};
use super::layout::{Cell, Kind, Layout};
use isolde_core::History;
use isolde_core::history::{TxEnd, What};
use isolde_core::oracle::Difference;
use isolde_core::value::show_rows;

/// Moments that are shown.
const MOST_ROWS: usize = 120;
const LONGEST_ANSWER: usize = 300;
/// Characters of a line over all columns before statements get rails.
const MOST_BESIDE: usize = 240;
const LEGEND: &str = "<p class=legend>Time goes down. The line beside a session is its transaction: \
    green committed, red aborted, broken rolled back. A hatched bar is a wait.</p>\n";

pub fn timeline(history: &History, differences: &[Difference]) -> String {
    let layout = Layout::of(history);
    let shown = layout.rows.min(MOST_ROWS);
    let mut grid = String::new();
    for (lane, session) in layout.lanes.iter().enumerate() {
        let place = format!("--c:{};--e:{}", lane + 1, shown + 2);
        grid.push_str(&format!("<li class=lane style=\"{place}\">{}</li>", text(session)));
    }
    for span in layout.spans.iter().filter(|s| s.from < shown) {
        let class = end_class(span.how);
        let (from, to) = (span.from, span.to.min(shown - 1));
        grid.push_str(&bar(&format!("tx {class}"), span.lane, from, to));
    }
    for wait in layout.bars.iter().filter(|b| b.from < shown) {
        // It ends at the top of the row where the statement went on.
        let cut = wait.open || wait.to >= shown;
        let (class, to) = if cut { ("wait open", shown - 1) } else { ("wait", wait.to - 1) };
        grid.push_str(&bar(class, wait.lane, wait.from, to));
    }
    for cell in layout.cells.iter().filter(|c| c.row < shown) {
        grid.push_str(&cell_html(cell, differences));
    }
    let label = "Timeline: a column a session, time goes down";
    let class = if wants_rails(&layout) { "timeline rails" } else { "timeline" };
    let mut out = format!(
        "<div class=scroll tabindex=0 role=region aria-label=\"{label}\"><ol class=\"{class}\" \
         style=\"--lanes:{}\">{grid}</ol></div>\n",
        layout.lanes.len().max(1)
    );
    out.push_str(LEGEND);
    if shown < layout.rows {
        let more = plural((layout.rows - shown) as u64, "more moment");
        out.push_str(&format!("<p class=note>{more} not shown here.</p>\n"));
    }
    out
}

/// Where columns would be too narrow for the statements, sessions get thin
/// rails and all statements the width beside them. Narrow screens always do.
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
    layout.lanes.len() > 3 || mean * layout.lanes.len() > MOST_BESIDE
}

/// Row 1 of the grid holds the names of the sessions.
fn bar(class: &str, lane: usize, from: usize, to: usize) -> String {
    let place = format!("--c:{};--r:{};--e:{}", lane + 1, from + 2, to + 3);
    format!("<li class=\"{class}\" aria-hidden=true style=\"{place}\"></li>")
}

fn cell_html(cell: &Cell<'_>, differences: &[Difference]) -> String {
    let mut class = String::from("cell");
    let label = cell.step.map_or(String::new(), |s| format!("<b>{}</b> ", text(&s.label)));
    let sql = cell.step.map_or("", |s| s.sql.as_str());
    let mut inside = match cell.what {
        Kind::Statement(sql) => format!("{label}{}", code(sql)),
        Kind::Later => {
            class.push_str(" later");
            format!("{label}<span class=word>goes on</span>")
        }
        Kind::NotSent => {
            class.push_str(" not-sent");
            format!("{label}<s>{}</s>", code(sql))
        }
        Kind::Runner => {
            class.push_str(" not-sent");
            "<span class=word>Isolde</span>".into()
        }
    };
    for what in &cell.news {
        inside.push_str(&news(what));
    }
    let answered = cell.news.iter().any(|w| {
        matches!(w, What::Rows { .. } | What::Affected { .. } | What::Done | What::Error(_))
    });
    let serially =
        cell.step.filter(|_| answered).and_then(|s| serial_answer(&s.label, differences));
    if let Some(serially) = serially {
        class.push_str(" differs");
        let shown = text(&html::cut(&serially, LONGEST_ANSWER));
        inside.push_str(&format!("<span class=serially>serially: {shown}</span>"));
    }
    if cell.news.iter().any(|w| matches!(w, What::Error(_) | What::Cancelled)) {
        class.push_str(" failed");
    }
    format!(
        "<li class=\"{class}\" style=\"--c:{};--r:{}\">{inside}</li>\n",
        cell.lane + 1,
        cell.row + 2
    )
}

fn news(what: &What) -> String {
    let span = |class: &str, shown: &str| {
        format!("<span class=\"{class}\">{}</span>", text(&html::cut(shown, LONGEST_ANSWER)))
    };
    match what {
        What::Waiting { on } if on.is_empty() => span("waits", "waits"),
        What::Waiting { on } => span("waits", &format!("waits for {}", on.join(", "))),
        What::Rows { rows, .. } if rows.is_empty() => span("answer", "no rows"),
        What::Rows { rows, .. } => span("answer", &show_rows(rows)),
        What::Affected { count } => span("answer", &plural(*count, "row")),
        What::Error(error) => span("error", &format!("error {}: {}", error.code, error.message)),
        What::NotSent { why } => span("answer", &format!("not sent: {why}")),
        What::Ended { how, .. } => span(&format!("end {}", end_class(*how)), end_words(*how)),
        What::Cancelled => span("error", "cancelled by Isolde"),
        What::RolledBackByRunner { why } => span("answer", &format!("rolls back: {why}")),
        What::Sent { .. } | What::Resumed | What::Done => String::new(),
    }
}

pub fn end_class(how: TxEnd) -> &'static str {
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
        TxEnd::Lost => "✗ lost",
        TxEnd::Unknown => "? how it ended is not known",
    }
}

/// What a statement answered in the serial run, where that was different.
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
    use crate::report::tests::fixture;

    #[test]
    fn the_grid_has_lanes_bars_and_marks_where_the_layout_puts_them() {
        let page = timeline(&fixture("wait"), &[]);
        assert!(page.contains("style=\"--lanes:2\""));
        // s2.3 waits from row 4 to row 7 of the second lane.
        assert!(page.contains("<li class=\"wait\" aria-hidden=true style=\"--c:2;--r:6;--e:9\">"));
        assert_eq!(page.matches("✓ committed").count(), 2);
        let page = timeline(&fixture("deadlock"), &[]);
        assert!(page.contains("✗ aborted by the engine") && page.contains("↩ rolled back"));
        assert!(page.contains("error 1213: Deadlock found"));
        assert!(
            page.contains("it&#39;&#39;s &lt;b&gt;here&lt;/b&gt;") && !page.contains("<b>here")
        );
    }

    #[test]
    fn many_sessions_or_long_statements_get_rails() {
        let mut history = fixture("wait");
        assert!(!timeline(&history, &[]).contains("timeline rails"));
        history.steps.iter_mut().for_each(|s| s.sql = "select 1 ".repeat(30));
        assert!(timeline(&history, &[]).contains("timeline rails"));
    }

    #[test]
    fn a_statement_that_differs_says_what_it_did_serially() {
        let differs = Difference::Affected {
            label: "s2.3".into(),
            sql: String::new(),
            concurrent: 4,
            serial: 3,
        };
        let page = timeline(&fixture("wait"), &[differs]);
        assert_eq!(page.matches("serially: 3 rows").count(), 1, "once, where it answered");
    }

    #[test]
    fn a_very_long_run_is_cut_and_says_so() {
        let mut history = fixture("wait");
        let events = history.events.clone();
        for _ in 0..40 {
            history.events.extend(events.clone());
        }
        let page = timeline(&history, &[]);
        assert!(page.contains("more moments not shown here"));
        assert!(page.matches("<li class=\"cell").count() <= MOST_ROWS);
    }
}
