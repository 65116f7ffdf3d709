//! A finding: a violation that was confirmed, with its cause, its reduced
//! case and everything that shows it.

use crate::cause::{Cause, Label};
use crate::check::{Checked, Violation};
use crate::confirm::Rate;
use isolde_core::case::Step;
use isolde_core::oracle::{Difference, NO_SERIAL_ORDER};
use isolde_core::semantics::Account;
use isolde_core::sql::{self, Conflict, InsertSource, Kind, Stmt};
use isolde_core::triage::Features;
use isolde_core::{Case, History, Level};
use serde::{Deserialize, Serialize};

/// One line of `findings.jsonl`, and `finding.json` in the finding's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The folder's name: the case number.
    pub id: String,
    pub case_number: u64,
    pub seed: u64,
    pub target: String,
    pub server_version: String,
    pub level: Option<Level>,
    pub oracles: Vec<String>,
    pub cause: Cause,
    pub rate: Rate,
    /// What tells it from other findings; equal for what looks like the same.
    pub signature: String,
    pub title: String,
    pub explanation: Vec<String>,
    pub differences: Vec<Difference>,
    /// What went wrong, in words: the same for findings of one defect.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub defect: String,
    /// What triage compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The case of the library that it is an instance of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// The case in its text form, reduced if that was possible.
    pub case: String,
    /// For each of its steps the operation of the generated case that it is,
    /// which keeps its number when others are cut away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced_by: Option<Reduction>,
    /// What the rules say of each statement of the concurrent run, where the
    /// engine has rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

impl Finding {
    /// What it is grouped by: the defect, or of a hunt that did not know it
    /// the signature.
    pub fn defect(&self) -> &str {
        if self.defect.is_empty() { &self.signature } else { &self.defect }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reduction {
    pub statements_before: usize,
    pub statements_after: usize,
    pub trials: u32,
    /// The hunt ended before the search did: a smaller case may do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Everything that goes into a finding's folder.
pub struct Evidence {
    pub finding: Finding,
    /// As it was generated.
    pub original: Case,
    /// What was reported: reduced, or the original.
    pub case: Case,
    pub concurrent: History,
    pub serial: Vec<(String, History)>,
    /// Other files for its folder, by name.
    pub files: Vec<(&'static str, String)>,
}

/// `update | delete | insert` by session: what a case does, without its
/// tables and values.
pub fn shape(case: &Case) -> String {
    let sessions: Vec<String> = case
        .sessions()
        .iter()
        .map(|session| {
            let words: Vec<String> = case
                .steps
                .iter()
                .filter(|s| s.session == *session)
                .filter_map(statement_word)
                .collect();
            words.join(" ")
        })
        .filter(|words| !words.is_empty())
        .collect();
    let mut sessions = sessions;
    sessions.sort();
    sessions.join(" | ")
}

/// What a statement is, if it does something to rows or to what is kept.
fn statement_word(step: &Step) -> Option<String> {
    let Some(statement) = step.statement() else { return word_of_text(&step.sql) };
    let word = match statement {
        Stmt::Select(select) if select.locking.is_some() => "locking-read",
        Stmt::Insert(insert) => match (&insert.conflict, &insert.source) {
            (Conflict::Ignore | Conflict::DoNothing { .. } | Conflict::Update { .. }, _) => {
                "upsert"
            }
            (Conflict::Replace, _) => "replace",
            (Conflict::Fail, InsertSource::Select(_)) => "insert-select",
            (Conflict::Fail, InsertSource::Values(_) | InsertSource::Defaults) => "insert",
        },
        Stmt::Update(_) => "update",
        Stmt::Delete(_) => "delete",
        Stmt::Rollback => "rollback",
        Stmt::RollbackTo(_) => "rollback-to",
        Stmt::Savepoint(_) => "savepoint",
        Stmt::Release(_) => "release",
        Stmt::CreateIndex { .. } => "create",
        Stmt::DropIndex { .. } => "drop",
        Stmt::AddColumn { .. } => "alter",
        Stmt::Truncate(_) => "truncate",
        Stmt::Select(_)
        | Stmt::Begin(_)
        | Stmt::Commit
        | Stmt::SetAutocommit(_)
        | Stmt::SetTransaction(_)
        | Stmt::Prepare { .. }
        | Stmt::Execute(_) => return None,
    };
    Some(word.into())
}

/// The same by the words, for a statement that cannot be read.
fn word_of_text(text: &str) -> Option<String> {
    let words = sql::outer_words(text);
    let first = words.first()?.1.to_ascii_lowercase();
    match sql::kind(text) {
        Kind::Begin | Kind::Commit | Kind::Other => None,
        Kind::Rollback => Some("rollback".into()),
        Kind::RollbackTo => Some("rollback-to".into()),
        Kind::Select => {
            let opens = |w: &str| ["for", "lock"].iter().any(|o| w.eq_ignore_ascii_case(o));
            let locking = words.iter().any(|(_, w)| opens(w));
            locking.then(|| "locking-read".into())
        }
        Kind::Write if first == "insert" => {
            let has = |word: &str| words.iter().any(|(_, w)| w.eq_ignore_ascii_case(word));
            let kind = if has("conflict") || has("duplicate") || has("ignore") {
                "upsert"
            } else if has("select") {
                "insert-select"
            } else {
                "insert"
            };
            Some(kind.into())
        }
        // CockroachDB's word for REPLACE.
        Kind::Write if first == "upsert" => Some("replace".into()),
        _ => Some(first),
    }
}

pub fn signature(case: &Case, violations: &[Violation], cause: &Cause) -> String {
    let mut kinds: Vec<&str> =
        violations.iter().flat_map(|v| &v.differences).map(|d| d.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let level = case.level.map_or("default", Level::short);
    format!("{} / {level} / {} / {}", cause.name(), kinds.join("+"), shape(case))
}

/// One line that says what is wrong.
pub fn title(case: &Case, checked: &Checked, label: Label) -> String {
    let level = case.level.map_or("the default level", Level::name);
    let what = match checked.violations.first().and_then(|v| v.differences.first()) {
        Some(Difference::Final { .. }) => "the final rows are not those of the serial run",
        Some(Difference::Success { .. }) => {
            "a statement that succeeds in the one run fails in the other"
        }
        Some(Difference::Affected { .. }) => {
            "a write changes more or fewer rows than in the serial run"
        }
        Some(Difference::Read { .. }) => "a read returns other rows than in the serial run",
        Some(Difference::Rule { rule, .. }) if rule == NO_SERIAL_ORDER => {
            "no serial order of the committed transactions explains it"
        }
        Some(Difference::Rule { label, .. }) if label.is_empty() => {
            "the final rows are not what the rules of the level leave"
        }
        Some(Difference::Rule { .. }) => "a statement does what no rule of its level allows",
        Some(Difference::Anomaly { class, meaning, .. }) => &format!("{class}, {meaning}"),
        Some(Difference::Broken { .. }) => {
            checked.concurrent.death.as_ref().map_or("the engine breaks", |d| d.how.name())
        }
        None => "nothing differs",
    };
    format!("{} at {level}: {what} ({})", label.name(), shape(case))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::case;
    use isolde_core::generate::{Dialect, Generator, Options};

    /// Signatures are stored, so what a statement is called may not hang on
    /// whether it could be read.
    #[test]
    fn generated_statements_are_called_by_what_their_words_say() {
        for engine in ["sqlite", "postgres", "mysql", "mariadb", "tidb", "duckdb", "cockroach"] {
            let dialect = Dialect::for_engine(engine, "9");
            let mut options = Options::new(Vec::new(), Level::Serializable);
            (options.ddl, options.prepared) = (true, true);
            let generator = Generator::new(dialect, 5, options);
            for number in (0..600).step_by(3) {
                for step in generator.plan(number).to_case().steps {
                    assert_eq!(statement_word(&step), word_of_text(&step.sql), "{}", step.sql);
                }
            }
        }
    }

    #[test]
    fn a_shape_is_made_of_what_statements_do() {
        let of = |engine: &str, steps: &str| {
            shape(&case::parse(&format!("case: x\nengines: {engine}\n{steps}")).unwrap())
        };
        let locking = "s1> begin;\ns1> select a from t lock in share mode;\ns1> commit;\n\
                       s2> insert or replace into t values (1);\n";
        assert_eq!(of("sqlite", locking), "locking-read | replace");
        // Names are no words, neither here nor in what cannot be read.
        let named =
            "s1> select a from t as conflict;\ns1> insert into t (a, duplicate) values (1, 2);\n";
        assert_eq!(of("sqlite", named), "insert");
        let opaque = "s1> insert into s.t values (1) on conflict do nothing;\ns1> xa start 'x';\n";
        assert_eq!(of("postgres", opaque), "upsert");
    }
}
