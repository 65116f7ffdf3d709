//! `script.sql` of a finding: the case for the engine's own client, with the result of each
//! statement and, where that is wrong, the expected one.

use super::evidence::Evidence;
use isolde_interop::script::{Results, write_sql_with};
use isolde_model::Case;
use isolde_model::difference::Difference;
use isolde_model::history::FinalRows;
use isolde_model::transcript::summary;
use isolde_model::value::show_rows;

/// The text of `script.sql`.
pub fn script(evidence: &Evidence) -> String {
    let finding = &evidence.finding;
    let mut case = evidence.case.clone();
    case.about = format!(
        "On {} {}. Each statement is followed by its result and, where a serial run of the\n\
         committed transactions gives another one, by the expected result.\n\
         To check whether it still happens: isolde replay case.case",
        finding.target, finding.server_version
    );
    let results = results(evidence);
    let written = write_sql_with(&case, &results);
    // Where no SQL sets a level, the script sets none.
    written.or_else(|_| write_sql_with(&without_levels(case), &results)).unwrap_or_default()
}

fn without_levels(mut case: Case) -> Case {
    case.level = None;
    case.session_levels.clear();
    case
}

fn results(evidence: &Evidence) -> Results {
    let (case, history) = (&evidence.case, &evidence.concurrent);
    let differences = &evidence.finding.differences;
    let step = |place: usize| {
        let label = case.label(place);
        let observed = summary(history, place);
        let wrong = differences.iter().find_map(|d| expected_of_step(d, &label));
        wrong.map_or(observed.clone(), |expected| with_expected(&observed, &expected))
    };
    let last = |rows: &FinalRows| {
        let observed = match &rows.error {
            Some(error) => format!("error {}", error.code),
            None => show_rows(&rows.rows),
        };
        let wrong = differences.iter().find_map(|d| match d {
            Difference::Final { query, serial, .. } if *query == rows.query => Some(serial),
            _ => None,
        });
        wrong.map_or(observed.clone(), |serial| with_expected(&observed, &show_rows(serial)))
    };
    Results {
        steps: (0..case.steps.len()).map(step).collect(),
        finals: history.final_state.iter().map(last).collect(),
    }
}

fn with_expected(observed: &str, expected: &str) -> String {
    format!("observed: {observed}; expected: {expected}")
}

fn expected_of_step(difference: &Difference, step: &str) -> Option<String> {
    match difference {
        Difference::Success { label, serial, .. } if label == step => Some(serial.clone()),
        Difference::Affected { label, serial, .. } if label == step => {
            Some(if *serial == 1 { "1 row".into() } else { format!("{serial} rows") })
        }
        Difference::Read { label, serial, .. } if label == step => Some(show_rows(serial)),
        Difference::Broken { label, .. } if label == step => Some("a response".into()),
        _ => None,
    }
}
