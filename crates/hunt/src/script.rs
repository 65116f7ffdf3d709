//! `script.sql` of a finding: the case for the engine's own client, with what
//! came of each statement and, where that is wrong, what is expected.

use crate::finding::Evidence;
use isolde_core::Case;
use isolde_core::history::FinalRows;
use isolde_core::oracle::Difference;
use isolde_core::script::{Results, write_sql_with};
use isolde_core::transcript::summary;
use isolde_core::value::show_rows;

pub fn script(evidence: &Evidence) -> String {
    let finding = &evidence.finding;
    let mut case = evidence.case.clone();
    case.about = format!(
        "On {} {}. Behind each statement stands what came of it and, where the committed\n\
         transactions one after the other give something else, what is expected.\n\
         To see whether it still happens: isolde replay case.case",
        finding.target, finding.server_version
    );
    let results = results(evidence);
    let written = write_sql_with(&case, &results);
    // Where no SQL sets a level, the script does without one.
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
        let came = summary(history, place);
        let wrong = differences.iter().find_map(|d| expected_of_step(d, &label));
        wrong.map_or(came.clone(), |expected| beside(&came, &expected))
    };
    let last = |rows: &FinalRows| {
        let came = match &rows.error {
            Some(error) => format!("error {}", error.code),
            None => show_rows(&rows.rows),
        };
        let wrong = differences.iter().find_map(|d| match d {
            Difference::Final { query, serial, .. } if *query == rows.query => Some(serial),
            _ => None,
        });
        wrong.map_or(came.clone(), |serial| beside(&came, &show_rows(serial)))
    };
    Results {
        steps: (0..case.steps.len()).map(step).collect(),
        finals: history.final_state.iter().map(last).collect(),
    }
}

fn beside(came: &str, expected: &str) -> String {
    format!("came: {came}; expected: {expected}")
}

fn expected_of_step(difference: &Difference, step: &str) -> Option<String> {
    match difference {
        Difference::Success { label, serial, .. } if label == step => Some(serial.clone()),
        Difference::Affected { label, serial, .. } if label == step => {
            Some(if *serial == 1 { "1 row".into() } else { format!("{serial} rows") })
        }
        Difference::Read { label, serial, .. } if label == step => Some(show_rows(serial)),
        Difference::Broken { label, .. } if label == step => Some("an answer".into()),
        _ => None,
    }
}
