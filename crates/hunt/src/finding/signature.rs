//! What a finding is called: its signature, by which equal findings are recognised, and its title.

use crate::run::{CheckResult, Violation};
use isolde_model::Verdict;
use isolde_model::case::Step;
use isolde_model::difference::Difference;
use isolde_model::difference::NO_SERIAL_ORDER;
use isolde_model::{Case, Level};
use isolde_reference::cause::Cause;
use isolde_sql as sql;
use isolde_sql::{Conflict, Control, Ddl, InsertSource, Kind, Stmt, Write};

/// The kinds of statements by session, such as `update | delete insert`: a case without its tables
/// and values.
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

/// The kind of a statement; none if it neither changes nor locks anything.
fn statement_word(step: &Step) -> Option<String> {
    let Some(statement) = step.statement() else { return word_of_text(&step.sql) };
    let word = match statement {
        Stmt::Select(select) if select.locking.is_some() => "locking-read",
        Stmt::Write(Write::Insert(insert)) => match (&insert.conflict, &insert.source) {
            (Conflict::Ignore | Conflict::DoNothing { .. } | Conflict::Update { .. }, _) => {
                "upsert"
            }
            (Conflict::Replace, _) => "replace",
            (Conflict::Fail, InsertSource::Select(_)) => "insert-select",
            (Conflict::Fail, InsertSource::Values(_) | InsertSource::Defaults) => "insert",
        },
        Stmt::Write(Write::Update(_)) => "update",
        Stmt::Write(Write::Delete(_)) => "delete",
        Stmt::Write(Write::Merge(_)) => "merge",
        Stmt::Control(Control::Rollback) => "rollback",
        Stmt::Control(Control::RollbackTo(_)) => "rollback-to",
        Stmt::Control(Control::Savepoint(_)) => "savepoint",
        Stmt::Control(Control::Release(_)) => "release",
        Stmt::Ddl(Ddl::CreateIndex { .. }) => "create",
        Stmt::Ddl(Ddl::DropIndex { .. }) => "drop",
        Stmt::Ddl(Ddl::AddColumn { .. }) => "alter",
        Stmt::Ddl(Ddl::Truncate(_)) => "truncate",
        Stmt::Select(_)
        | Stmt::Control(
            Control::Begin(_)
            | Control::Commit
            | Control::SetAutocommit(_)
            | Control::SetTransaction(_),
        )
        | Stmt::Prepare { .. }
        | Stmt::Execute(_) => return None,
    };
    Some(word.into())
}

/// The same by the words of a statement that cannot be parsed.
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

/// The signature of a finding; see [`super::Finding::signature`].
pub fn signature(case: &Case, violations: &[Violation], cause: &Cause) -> String {
    let mut kinds: Vec<&str> =
        violations.iter().flat_map(|v| &v.differences).map(|d| d.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let level = case.level.map_or("default", Level::short);
    format!("{} / {level} / {} / {}", cause.name(), kinds.join("+"), shape(case))
}

/// The title of a finding: what is wrong, in one line.
pub fn title(case: &Case, checked: &CheckResult, label: Verdict) -> String {
    let level = case.level.map_or("the default level", Level::name);
    let what = match checked.violations.first().and_then(|v| v.differences.first()) {
        Some(Difference::Final { .. }) => "the final rows are not those of the serial run",
        Some(Difference::Success { .. }) => {
            "a statement succeeds in one run and fails in the other"
        }
        Some(Difference::Affected { .. }) => {
            "a write affects another number of rows than in the serial run"
        }
        Some(Difference::Read { .. }) => "a read returns other rows than in the serial run",
        Some(Difference::Rule { rule, .. }) if rule == NO_SERIAL_ORDER => {
            "no serial order of the committed transactions explains it"
        }
        Some(Difference::Rule { label, .. }) if label.is_empty() => {
            "the final rows are not those that the rules of the level predict"
        }
        Some(Difference::Rule { .. }) => "a statement breaks a rule of its level",
        Some(Difference::Anomaly { class, meaning, .. }) => &format!("{class}, {meaning}"),
        Some(Difference::Broken { .. }) => {
            checked.concurrent.death.as_ref().map_or("the server fails", |d| d.how.name())
        }
        None => "nothing differs",
    };
    format!("{} at {level}: {what} ({})", label.name(), shape(case))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_generator::{Generator, Options};
    use isolde_model::case;
    use isolde_sql::Dialect;

    /// Signatures are stored, so the kind of a statement must not depend on whether it could be
    /// parsed.
    #[test]
    fn parsed_and_unparsed_statements_have_the_same_kind() {
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
    fn shape_lists_the_kinds_of_statements_by_session() {
        let of = |engine: &str, steps: &str| {
            shape(&case::parse(&format!("case: x\nengines: {engine}\n{steps}")).unwrap())
        };
        let locking = "s1> begin;\ns1> select a from t lock in share mode;\ns1> commit;\n\
                       s2> insert or replace into t values (1);\n";
        assert_eq!(of("sqlite", locking), "locking-read | replace");
        // Identifiers are not keywords, neither here nor in statements that cannot be parsed.
        let named =
            "s1> select a from t as conflict;\ns1> insert into t (a, duplicate) values (1, 2);\n";
        assert_eq!(of("sqlite", named), "insert");
        let opaque = "s1> insert into s.t values (1) on conflict do nothing;\ns1> xa start 'x';\n";
        assert_eq!(of("postgres", opaque), "upsert");
    }
}
