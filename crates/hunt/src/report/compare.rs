//! What differs, concurrent on the left and serial on the right.

use super::html::{code, escape, plural, text, value};
use isolde_core::Value;
use isolde_core::oracle::Difference;
use isolde_core::value::{Row, compare_rows};
use std::cmp::Ordering;

/// Rows of a result that are shown; those that differ come before the others.
const MOST_ROWS: usize = 40;
/// Columns up to which both results stand beside each other.
const MOST_BESIDE: usize = 6;

type Pair<'r> = (Option<&'r Row>, Option<&'r Row>);

pub fn differences(all: &[Difference]) -> String {
    let mut out = String::new();
    let mut plain = Vec::new();
    for difference in all {
        match difference {
            Difference::Final { query, columns, concurrent, serial, .. } => {
                let caption = format!("{} <span class=word>at the end</span>", code(query));
                out.push_str(&rows(&caption, columns, concurrent, serial));
            }
            Difference::Read { label, sql, concurrent, serial } => {
                let caption = format!("<b>{}</b> {}", text(label), code(sql));
                out.push_str(&rows(&caption, &[], concurrent, serial));
            }
            Difference::Success { label, sql, concurrent, serial } => {
                plain.push((label, sql, concurrent.clone(), serial.clone()));
            }
            Difference::Affected { label, sql, concurrent, serial } => {
                plain.push((label, sql, plural(*concurrent, "row"), plural(*serial, "row")));
            }
            Difference::Broken { label, sql, error } => {
                plain.push((label, sql, error.clone(), "must not happen in any run".into()));
            }
        }
    }
    if !plain.is_empty() {
        let lines: String = plain
            .iter()
            .map(|(label, sql, concurrent, serial)| {
                format!(
                    "<tr><td><b>{}</b> {}</td><td class=left>{}</td><td class=right>{}</td></tr>\n",
                    text(label),
                    code(sql),
                    text(concurrent),
                    text(serial)
                )
            })
            .collect();
        out.push_str(&format!(
            "<div class=scroll tabindex=0><table class=answers><thead><tr><th scope=col>statement\
             </th><th scope=col>concurrent</th><th scope=col>serial</th></tr></thead>\
             <tbody>{lines}</tbody></table></div>\n"
        ));
    }
    out
}

fn rows(caption: &str, columns: &[String], concurrent: &[Row], serial: &[Row]) -> String {
    let mut pairs = align(concurrent, serial);
    let hidden = pairs.len().saturating_sub(MOST_ROWS);
    if hidden > 0 {
        pairs.sort_by_key(equal);
        pairs.truncate(MOST_ROWS);
        pairs.sort_by(|a, b| order(a, b));
    }
    let widest = concurrent.iter().chain(serial).map(Vec::len).max().unwrap_or(0);
    let width = columns.len().max(widest).max(1);
    let names: String = (0..width)
        .map(|i| {
            let name = columns.get(i).map_or(String::new(), |c| text(c));
            format!("<th scope=col>{name}</th>")
        })
        .collect();
    let (head, body) = if width > MOST_BESIDE {
        (format!("<tr><th scope=col>run</th>{names}</tr>"), above_each_other(&pairs, width))
    } else {
        let over = format!(
            "<tr><th scope=colgroup colspan={width}>concurrent</th><th></th>\
             <th scope=colgroup colspan={width}>serial</th></tr>"
        );
        (format!("{over}<tr>{names}<th></th>{names}</tr>"), beside_each_other(&pairs, width))
    };
    let empty = if pairs.is_empty() { "<tr><td>no rows in either</td></tr>" } else { "" };
    let note = match hidden {
        0 => String::new(),
        n => format!("<p class=note>{} not shown here.</p>\n", plural(n as u64, "more line")),
    };
    format!(
        "<div class=scroll tabindex=0><table class=pair><caption>{caption}</caption>\
         <thead>{head}</thead><tbody>{body}{empty}</tbody></table></div>\n{note}"
    )
}

fn equal(pair: &Pair<'_>) -> bool {
    matches!(pair, (Some(a), Some(b)) if same(a, b))
}

fn beside_each_other(pairs: &[Pair<'_>], width: usize) -> String {
    let line = |pair: &Pair<'_>| {
        let (class, mark) = if equal(pair) { ("same", "=") } else { ("other", "≠") };
        let (left, right) =
            (side(pair.0, pair.1, width, "left"), side(pair.1, pair.0, width, "right"));
        format!("<tr class={class}>{left}<td class=mark>{mark}</td>{right}</tr>\n")
    };
    pairs.iter().map(line).collect()
}

/// Wide rows: side by side one half would be out of sight.
fn above_each_other(pairs: &[Pair<'_>], width: usize) -> String {
    let line = |name: &str, cells: String| format!("<tr><th scope=row>{name}</th>{cells}</tr>\n");
    pairs
        .iter()
        .map(|pair| {
            if equal(pair) {
                return line("both", side(pair.0, pair.1, width, "left"));
            }
            line("concurrent", side(pair.0, pair.1, width, "left"))
                + &line("serial", side(pair.1, pair.0, width, "right"))
        })
        .collect()
}

fn side(mine: Option<&Row>, other: Option<&Row>, width: usize, class: &str) -> String {
    let Some(mine) = mine else {
        return format!("<td class=none colspan={width}>{}</td>", escape("no such row"));
    };
    (0..width)
        .map(|i| {
            let differs = match (mine.get(i), other.map(|o| o.get(i))) {
                (Some(a), Some(Some(b))) => !a.same(b),
                (None, Some(None)) => false,
                _ => true,
            };
            let class = if differs { format!(" class={class}") } else { String::new() };
            format!("<td{class}>{}</td>", mine.get(i).map_or(String::new(), value))
        })
        .collect()
}

fn same(a: &[Value], b: &[Value]) -> bool {
    compare_rows(a, b) == Ordering::Equal
}

/// Equal rows beside each other; of the others, those with the same first
/// cell, which is mostly the key; the rest alone.
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

    fn row(id: i64, v: i64) -> Row {
        vec![Value::Int(id), Value::Int(v)]
    }

    #[test]
    fn rows_with_the_same_key_stand_beside_each_other() {
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
    fn only_the_cells_that_differ_are_marked() {
        let page = rows("q", &["id".into(), "v".into()], &[row(2, 20)], &[row(2, 21)]);
        assert!(page.contains("<td>2</td><td class=left>20</td>"), "{page}");
        assert!(page.contains("<td>2</td><td class=right>21</td>"), "{page}");
    }

    #[test]
    fn wide_rows_stand_above_each_other() {
        let wide = |last: i64| (0..9).chain([last]).map(Value::Int).collect::<Row>();
        let page = rows("q", &[], &[wide(1), wide(2)], &[wide(1), wide(3)]);
        for (run, times) in [("both", 1), ("concurrent", 1), ("serial", 1)] {
            assert_eq!(page.matches(&format!("<th scope=row>{run}</th>")).count(), times, "{run}");
        }
        assert!(page.contains("<td class=left>2</td></tr>"), "{page}");
    }

    #[test]
    fn of_many_rows_those_that_differ_are_shown() {
        let left: Vec<Row> = (0..1000).map(|i| row(i, i)).collect();
        let mut right = left.clone();
        right[900][1] = Value::Int(-1);
        let page = rows("q", &[], &left, &right);
        assert!(page.contains("<td class=right>-1</td>") && page.contains("960 more lines"));
    }

    #[test]
    fn values_and_names_are_escaped() {
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
        assert!(!differences(&all).contains("<img"));
    }
}
