//! The differences: concurrent run on the left, serial run on the right.

use super::html::{NEW_LINE, code, plural, text, value};
use isolde_model::Value;
use isolde_model::difference::Difference;
use isolde_model::value::{Row, compare_rows};
use maud::{Markup, html};
use std::cmp::Ordering;

/// Maximum number of rows of a result; rows that differ have priority.
const MOST_ROWS: usize = 40;
/// Maximum number of columns with which both results are side by side.
const MOST_SIDE_BY_SIDE: usize = 6;

type Pair<'r> = (Option<&'r Row>, Option<&'r Row>);

pub fn differences(all: &[Difference]) -> Markup {
    let plain: Vec<Markup> = all.iter().filter_map(result_line).collect();
    html! {
        @for difference in all {
            @match difference {
                Difference::Final { query, columns, concurrent, serial, .. } => {
                    @let caption = html! { (code(query)) " " span.word { "final rows" } };
                    (rows(&caption, columns, concurrent, serial))
                }
                Difference::Read { label, sql, concurrent, serial } => {
                    (rows(&statement(label, sql), &[], concurrent, serial))
                }
                Difference::Anomaly { class, meaning, cycle } => {
                    p { b { (text(class)) } ", " (text(meaning)) ":" }
                    ol { @for edge in cycle { li { (text(edge)) } } }
                }
                _ => {}
            }
        }
        @if !plain.is_empty() {
            div.scroll tabindex="0" {
                table.answers {
                    thead {
                        tr {
                            th scope="col" { "statement" }
                            th scope="col" { "concurrent" }
                            th scope="col" { "serial" }
                        }
                    }
                    tbody { @for line in &plain { (line) (NEW_LINE) } }
                }
            }
        }
    }
}

fn statement(label: &str, sql: &str) -> Markup {
    html! { b { (text(label)) } " " (code(sql)) }
}

/// A difference without rows, as a line of the table of results.
fn result_line(difference: &Difference) -> Option<Markup> {
    let (label, sql, concurrent, serial) = match difference {
        Difference::Final { .. } | Difference::Read { .. } | Difference::Anomaly { .. } => {
            return None;
        }
        Difference::Success { label, sql, concurrent, serial } => {
            (label, sql, concurrent.clone(), serial.clone())
        }
        Difference::Affected { label, sql, concurrent, serial } => {
            (label, sql, plural(*concurrent, "row"), plural(*serial, "row"))
        }
        Difference::Rule { label, sql, rule, about, why, .. } => {
            (label, sql, why.clone(), format!("{rule}: {about}"))
        }
        Difference::Broken { label, sql, error } => {
            (label, sql, error.clone(), "must never happen".into())
        }
    };
    Some(html! {
        tr {
            td { (statement(label, sql)) }
            td.left { (text(&concurrent)) }
            td.right { (text(&serial)) }
        }
    })
}

fn rows(caption: &Markup, columns: &[String], concurrent: &[Row], serial: &[Row]) -> Markup {
    let mut pairs = align(concurrent, serial);
    let hidden = pairs.len().saturating_sub(MOST_ROWS);
    if hidden > 0 {
        pairs.sort_by_key(equal);
        pairs.truncate(MOST_ROWS);
        pairs.sort_by(|a, b| order(a, b));
    }
    let widest = concurrent.iter().chain(serial).map(Vec::len).max().unwrap_or(0);
    let width = columns.len().max(widest).max(1);
    let names = html! {
        @for i in 0..width {
            th scope="col" { @if let Some(name) = columns.get(i) { (text(name)) } }
        }
    };
    html! {
        div.scroll tabindex="0" {
            table.pair {
                caption { (caption) }
                @if width > MOST_SIDE_BY_SIDE {
                    thead { tr { th scope="col" { "run" } (names) } }
                    tbody { (one_above_the_other(&pairs, width)) (nothing(&pairs)) }
                } @else {
                    thead {
                        tr {
                            th scope="colgroup" colspan=(width) { "concurrent" }
                            th {}
                            th scope="colgroup" colspan=(width) { "serial" }
                        }
                        tr { (names) th {} (names) }
                    }
                    tbody { (side_by_side(&pairs, width)) (nothing(&pairs)) }
                }
            }
        }
        @if hidden > 0 {
            p.note { (plural(hidden as u64, "more line")) " not shown here." }
        }
    }
}

fn nothing(pairs: &[Pair<'_>]) -> Markup {
    html! { @if pairs.is_empty() { tr { td { "no rows in either" } } } }
}

fn equal(pair: &Pair<'_>) -> bool {
    matches!(pair, (Some(a), Some(b)) if same(a, b))
}

fn side_by_side(pairs: &[Pair<'_>], width: usize) -> Markup {
    html! {
        @for pair in pairs {
            @let (class, mark) = if equal(pair) { ("same", "=") } else { ("other", "≠") };
            tr class=(class) {
                (side(pair.0, pair.1, width, "left"))
                td.mark { (mark) }
                (side(pair.1, pair.0, width, "right"))
            }
            (NEW_LINE)
        }
    }
}

/// For wide rows, of which half would be out of sight side by side.
fn one_above_the_other(pairs: &[Pair<'_>], width: usize) -> Markup {
    html! {
        @for pair in pairs {
            @let both = equal(pair);
            tr {
                th scope="row" { @if both { "both" } @else { "concurrent" } }
                (side(pair.0, pair.1, width, "left"))
            }
            @if !both {
                tr { th scope="row" { "serial" } (side(pair.1, pair.0, width, "right")) }
            }
            (NEW_LINE)
        }
    }
}

fn side(mine: Option<&Row>, other: Option<&Row>, width: usize, class: &str) -> Markup {
    let Some(mine) = mine else {
        return html! { td.none colspan=(width) { "no such row" } };
    };
    let differs = |i: usize| match (mine.get(i), other.map(|o| o.get(i))) {
        (Some(a), Some(Some(b))) => !a.same(b),
        (None, Some(None)) => false,
        _ => true,
    };
    html! {
        @for i in 0..width {
            td class=[differs(i).then_some(class)] { @if let Some(cell) = mine.get(i) { (value(cell)) } }
        }
    }
}

fn same(a: &[Value], b: &[Value]) -> bool {
    compare_rows(a, b) == Ordering::Equal
}

/// Pairs equal rows; then rows with the same first cell, which is mostly the
/// key; the remaining rows are alone.
fn align<'r>(left: &'r [Row], right: &'r [Row]) -> Vec<Pair<'r>> {
    let mut alone: Vec<&Row> = right.iter().collect();
    let mut pairs = Vec::new();
    let mut open = Vec::new();
    for row in left {
        match alone.iter().position(|r| same(row, r)) {
            Some(at) => pairs.push((Some(row), Some(alone.remove(at)))),
            None => open.push(row),
        }
    }
    for row in open {
        let like = |r: &&Row| matches!((row.first(), r.first()), (Some(a), Some(b)) if a.same(b));
        let partner = alone.iter().position(like).map(|at| alone.remove(at));
        pairs.push((Some(row), partner));
    }
    pairs.extend(alone.into_iter().map(|row| (None, Some(row))));
    pairs.sort_by(order);
    pairs
}

fn order(a: &Pair<'_>, b: &Pair<'_>) -> Ordering {
    let row = |p: &Pair<'_>| p.0.or(p.1).cloned().unwrap_or_default();
    compare_rows(&row(a), &row(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: &[String], concurrent: &[Row], serial: &[Row]) -> String {
        rows(&html! { "q" }, columns, concurrent, serial).into_string()
    }

    fn row(id: i64, v: i64) -> Row {
        vec![Value::Int(id), Value::Int(v)]
    }

    #[test]
    fn align_pairs_rows_with_the_same_key() {
        let (left, right) =
            ([row(1, 10), row(2, 20), row(4, 40)], [row(1, 10), row(2, 21), row(3, 30)]);
        let pairs = align(&left, &right);
        let expected: [Pair<'_>; 4] = [
            (Some(&left[0]), Some(&right[0])),
            (Some(&left[1]), Some(&right[1])),
            (None, Some(&right[2])),
            (Some(&left[2]), None),
        ];
        assert_eq!(pairs, expected);
    }

    #[test]
    fn rows_marks_only_cells_that_differ() {
        let page = shown(&["id".into(), "v".into()], &[row(2, 20)], &[row(2, 21)]);
        assert!(page.contains("<td>2</td><td class=\"left\">20</td>"), "{page}");
        assert!(page.contains("<td>2</td><td class=\"right\">21</td>"), "{page}");
    }

    #[test]
    fn rows_puts_wide_rows_one_above_the_other() {
        let wide = |last: i64| (0..9).chain([last]).map(Value::Int).collect::<Row>();
        let page = shown(&[], &[wide(1), wide(2)], &[wide(1), wide(3)]);
        for (run, times) in [("both", 1), ("concurrent", 1), ("serial", 1)] {
            assert_eq!(
                page.matches(&format!("<th scope=\"row\">{run}</th>")).count(),
                times,
                "{run}"
            );
        }
        assert!(page.contains("<td class=\"left\">2</td></tr>"), "{page}");
    }

    #[test]
    fn rows_prefers_rows_that_differ() {
        let left: Vec<Row> = (0..1000).map(|i| row(i, i)).collect();
        let mut right = left.clone();
        right[900][1] = Value::Int(-1);
        let page = shown(&[], &left, &right);
        assert!(page.contains("<td class=\"right\">-1</td>") && page.contains("960 more lines"));
    }

    #[test]
    fn differences_escapes_values_and_names() {
        let evil = "</table><img src=x onerror=alert(1)>";
        let all = [
            Difference::Read {
                label: evil.into(),
                sql: evil.into(),
                concurrent: vec![vec![Value::Text(evil.into())]],
                serial: vec![],
            },
            Difference::Broken { label: evil.into(), sql: evil.into(), error: evil.into() },
            Difference::Final {
                query: evil.into(),
                columns: vec![evil.into()],
                concurrent: vec![],
                serial: vec![],
                only_concurrent: vec![],
                only_serial: vec![],
            },
        ];
        assert!(!differences(&all).into_string().contains("<img"));
    }
}
