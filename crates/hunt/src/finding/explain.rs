//! Explains a finding in plain sentences, and shows its differences side by side.

use crate::run::{CheckResult, Rate};
use isolde_model::Case;
use isolde_model::difference::Difference;
use isolde_model::executed_transactions::{ExecutedTransaction, executed_transactions};
use isolde_model::history::TxEnd;
use isolde_model::value::{Row, compare_rows};
use isolde_reference::cause::Cause;
use std::cmp::Ordering;

/// The explanation of a finding, one sentence per entry.
pub fn sentences(case: &Case, checked: &CheckResult, cause: &Cause, rate: Rate) -> Vec<String> {
    let mut all = Vec::new();
    let transactions = executed_transactions(&checked.concurrent);
    let mut level = case.level.map_or("the default level".to_string(), |l| l.to_string());
    for (session, own) in &case.session_levels {
        level.push_str(&format!(", {session} at {own}"));
    }
    all.push(format!("The statements ran concurrently at {level}. {}", endings(&transactions)));
    let waits = checked.concurrent.events.iter().filter_map(|e| match &e.what {
        isolde_model::history::EventKind::Waiting { on } => {
            let holders =
                if on.is_empty() { String::new() } else { format!(" for {}", on.join(", ")) };
            e.step.map(|s| format!("{} waited{holders}", case.label(s)))
        }
        _ => None,
    });
    let waits: Vec<String> = waits.collect();
    if !waits.is_empty() {
        all.push(format!("Lock waits: {}.", waits.join(", ")));
    }
    if let Some(death) = &checked.concurrent.death {
        all.push(format!("During the run {death}."));
        if checked.concurrent.events.is_empty() {
            all.push(
                "No statement of the case had been sent yet: an earlier case may be the reason."
                    .into(),
            );
        }
    }
    for violation in &checked.violations {
        let oracle = violation.oracle.description();
        let reference = oracle.reference;
        let earlier = checked.violations.iter().take_while(|v| v.oracle != violation.oracle);
        if earlier.into_iter().any(|v| v.differences == violation.differences) {
            all.push(format!("Compared {reference} ({}): the same differences.", violation.oracle));
            continue;
        }
        all.push(format!("Compared {reference} ({}):", violation.oracle));
        if let Some(report) = checked.report(violation.oracle) {
            all.extend(report.explanation());
        }
        all.extend(violation.differences.iter().map(|d| difference_in(d, oracle.run_names)));
    }
    all.push(match (rate.deterministic(), rate.confirmed()) {
        (true, _) => format!("It happened in every one of {} runs.", rate.runs),
        (false, true) => format!("It happened in {} of {} runs.", rate.seen, rate.runs),
        (false, false) if rate.runs == 1 => "It was not repeated.".into(),
        (false, false) => format!("It did not happen again in {} runs.", rate.runs - 1),
    });
    all.push(format!("Cause: {}.", cause.name()));
    if let Some(behaviour) = &cause.behaviour {
        all.push(format!("Documented: {} <{}>.", behaviour.about, behaviour.link));
    }
    all.extend(cause.evidence.iter().map(|e| format!("Evidence: {e}.")));
    all
}

fn endings(transactions: &[ExecutedTransaction]) -> String {
    let committed: Vec<&str> =
        transactions.iter().filter(|t| t.committed()).map(|t| t.session.as_str()).collect();
    let mut text = match committed.len() {
        0 => "No transaction committed".to_string(),
        1 => format!("Only {} committed", committed[0]),
        _ => format!("Committed, in this order: {}", committed.join(", ")),
    };
    for t in transactions.iter().filter(|t| !t.committed()) {
        let how = match t.how {
            TxEnd::RolledBack => "rolled back",
            TxEnd::Aborted => "was aborted by the engine",
            _ => "was lost",
        };
        text.push_str(&format!("; {} {how}", t.session));
    }
    text.push('.');
    text
}

/// Rows for a sentence, shortened: the folder of the finding has all of them.
fn show_rows(rows: &[Row]) -> String {
    const MOST: usize = 8;
    if rows.is_empty() {
        return "no rows".into();
    }
    let mut shown: Vec<String> = rows.iter().take(MOST).map(short_row).collect();
    if rows.len() > MOST {
        shown.push(format!("and {} more", rows.len() - MOST));
    }
    shown.join(" ")
}

fn count(rows: u64) -> String {
    if rows == 1 { "1 row".into() } else { format!("{rows} rows") }
}

fn short_row(row: &Row) -> String {
    const LONGEST: usize = 24;
    let cells: Vec<String> = row
        .iter()
        .map(|value| {
            let text = value.to_string();
            match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        })
        .collect();
    format!("({})", cells.join(", "))
}

/// A difference between the concurrent and the serial run, as a sentence.
pub fn difference(difference: &Difference) -> String {
    difference_in(difference, CONCURRENT_AND_SERIAL)
}

/// The names of the two runs of a difference.
const CONCURRENT_AND_SERIAL: [&str; 2] = ["concurrently", "serially"];

fn difference_in(difference: &Difference, [here, there]: [&str; 2]) -> String {
    match difference {
        Difference::Final { query, only_concurrent, only_serial, .. } => format!(
            "`{query}`: extra {here} {}; missing {}.",
            show_rows(only_concurrent),
            show_rows(only_serial)
        ),
        Difference::Success { label, concurrent, serial, .. } => {
            format!("{label} {here}: {concurrent}; {there}: {serial}.")
        }
        Difference::Affected { label, concurrent, serial, .. } => {
            format!("{label} affected {} {here} and {serial} {there}.", count(*concurrent))
        }
        Difference::Read { label, concurrent, serial, .. } => format!(
            "{label} returned {} {here} and {} {there}.",
            show_rows(concurrent),
            show_rows(serial)
        ),
        Difference::Rule { label, rule, about, page, why, .. } => {
            let colon = if label.is_empty() { "" } else { ": " };
            let page = if page.is_empty() { String::new() } else { format!(" ({page})") };
            format!("{label}{colon}{why}. Rule {rule}: {about}{page}.")
        }
        Difference::Anomaly { class, meaning, cycle } => {
            format!("{class}, {meaning}: {}.", cycle.join("; "))
        }
        Difference::Broken { label, error, .. } => format!("{label}: {error}."),
    }
}

/// Two columns, concurrent on the left and serial on the right; a mark between them shows rows
/// that only one has.
pub fn side_by_side(differences: &[Difference]) -> String {
    let mut out = String::new();
    for d in differences {
        match d {
            Difference::Final { query, columns, concurrent, serial, .. } => {
                out.push_str(&format!("{query}   ({})\n", columns.join(", ")));
                out.push_str(&two_columns(concurrent, serial));
            }
            Difference::Read { label, sql, concurrent, serial } => {
                out.push_str(&format!("{label}> {sql}\n"));
                out.push_str(&two_columns(concurrent, serial));
            }
            other => {
                out.push_str(&difference(other));
                out.push('\n');
            }
        }
        out.push('\n');
    }
    out
}

fn two_columns(left: &[Row], right: &[Row]) -> String {
    let mut right: Vec<&Row> = right.iter().collect();
    let width = left.iter().map(|l| short_row(l).chars().count()).max().unwrap_or(0);
    let width = width.max("concurrent".len());
    let line = |l: &str, mark: &str, r: &str| {
        let pad = " ".repeat(width.saturating_sub(l.chars().count()));
        format!("  {l}{pad}  {mark}  {r}").trim_end().to_string() + "\n"
    };
    let mut out = line("concurrent", " ", "serial");
    for row in left {
        let same = right.iter().position(|r| compare_rows(r, row) == Ordering::Equal);
        match same {
            Some(at) => {
                let other = right.remove(at);
                out.push_str(&line(&short_row(row), "=", &short_row(other)));
            }
            None => out.push_str(&line(&short_row(row), "<", "")),
        }
    }
    for row in &right {
        out.push_str(&line("", ">", &short_row(row)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_model::Value;

    #[test]
    fn equal_rows_share_a_line_and_other_rows_are_on_their_side() {
        let row = |i: i64| vec![Value::Int(i)];
        let text = two_columns(&[row(1), row(2)], &[row(2), row(3)]);
        assert_eq!(
            text,
            "  concurrent     serial\n  (1)         <\n  (2)         =  (2)\n              >  (3)\n"
        );
    }
}
