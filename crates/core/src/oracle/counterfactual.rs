//! The same case without a documented behaviour: what would have happened if
//! the engine did not do that?

use crate::case::{Line, Step};
use crate::sql::{self, Kind};
use crate::{Case, Level};

/// Every transaction at this level at least.
pub fn at_level(case: &Case, level: Level) -> Case {
    let mut changed = case.clone();
    changed.level = Some(case.level.map_or(level, |own| own.max(level)));
    for (_, own) in &mut changed.session_levels {
        *own = level.max(*own);
    }
    for step in &mut changed.steps {
        step.level = step.level.map(|own| own.max(level));
    }
    changed
}

/// Every statement that stands alone gets BEGIN and COMMIT. None when none
/// does.
pub fn in_transactions(case: &Case) -> Option<Case> {
    rewritten(case, |step, inside| {
        let alone = !inside && matches!(step.kind(), Kind::Select | Kind::Write);
        alone.then(|| vec!["begin".into(), step.sql.clone(), "commit".into()])
    })
}

/// Every UPDATE and DELETE of one table comes after a locking read with the
/// same predicate, which waits for whoever holds a row and then sees what is
/// committed. One that stood alone gets a transaction for it. None when there
/// is no such statement.
pub fn with_locking_reads(case: &Case) -> Option<Case> {
    rewritten(case, |step, inside| {
        let read = locking_read(&step.sql).filter(|_| step.kind() == Kind::Write)?;
        let pair = vec![read, step.sql.clone()];
        Some(if inside {
            pair
        } else {
            [vec!["begin".into()], pair, vec!["commit".into()]].concat()
        })
    })
}

/// The case with some steps replaced by others of the same session; `change`
/// is told whether a step stands inside of a transaction. None when nothing
/// changed.
fn rewritten(case: &Case, change: impl Fn(&Step, bool) -> Option<Vec<String>>) -> Option<Case> {
    let mut changed = case.clone();
    changed.steps.clear();
    let mut inside: Vec<&str> = Vec::new();
    for step in &case.steps {
        match step.kind() {
            Kind::Begin => inside.push(&step.session),
            Kind::Commit | Kind::Rollback => inside.retain(|s| *s != step.session),
            // SET autocommit = 0 opens a transaction without BEGIN.
            Kind::Other if step.sql.to_ascii_lowercase().contains("autocommit") => {
                inside.push(&step.session);
            }
            _ => {}
        }
        match change(step, inside.contains(&step.session.as_str())) {
            Some(statements) => {
                let replaced = |sql: String| Step::plain(&step.session, &sql, Line::default());
                changed.steps.extend(statements.into_iter().map(replaced));
            }
            None => changed.steps.push(step.clone()),
        }
    }
    (changed.steps.len() > case.steps.len()).then_some(changed)
}

/// `update t set … where P` and `delete from t where P` as
/// `select 1 from t where P for update`.
fn locking_read(sql: &str) -> Option<String> {
    let words = sql::outer_words(sql);
    let word = |i: usize| words.get(i).map(|(_, w)| w.to_ascii_lowercase());
    let has = |name: &str| words.iter().any(|(_, w)| w.eq_ignore_ascii_case(name));
    let table = match (word(0)?.as_str(), word(1)?.as_str(), word(2)?.as_str()) {
        ("update", _, "set") if !has("from") => 1,
        ("delete", "from", _) if !has("using") && !has("join") => 2,
        _ => return None,
    };
    let (start, name) = words[table];
    // `delete from t, u` and `delete t from …` are of several tables.
    if sql[start + name.len()..].trim_start().starts_with(',') {
        return None;
    }
    let filter = words.iter().find(|(_, w)| w.eq_ignore_ascii_case("where"));
    let filter = filter.map_or("", |(at, _)| sql[*at..].trim());
    let tail = words.iter().find(|(_, w)| {
        ["returning", "order", "limit"].iter().any(|stop| w.eq_ignore_ascii_case(stop))
    });
    if tail.is_some() {
        return None;
    }
    let space = if filter.is_empty() { "" } else { " " };
    Some(format!("select 1 from {name}{space}{filter} for update"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_one_table_has_a_locking_read_and_others_have_none() {
        for (sql, read) in [
            (
                "update t set a = (select 1 where b) where c = 'where'",
                Some("select 1 from t where c = 'where' for update"),
            ),
            ("delete from t", Some("select 1 from t for update")),
            ("delete from t where a in (1)", Some("select 1 from t where a in (1) for update")),
            ("update t set a = u.a from u where t.id = u.id", None),
            ("update t join u on t.id = u.id set t.a = 1", None),
            ("delete from t using u where t.id = u.id", None),
            ("insert into t values (1)", None),
        ] {
            assert_eq!(locking_read(sql).as_deref(), read, "{sql}");
        }
    }

    #[test]
    fn a_write_is_preceded_by_its_locking_read_in_a_transaction() {
        let text = "case: x\ns1> begin;\ns1> delete from t;\ns1> commit;\ns2> delete from t;\n";
        let case = crate::case::parse(text).expect("a case");
        let changed = with_locking_reads(&case).expect("two writes");
        let sql: Vec<String> =
            changed.steps.iter().map(|s| format!("{}> {}", s.session, s.sql)).collect();
        assert_eq!(
            sql,
            [
                "s1> begin",
                "s1> select 1 from t for update",
                "s1> delete from t",
                "s1> commit",
                "s2> begin",
                "s2> select 1 from t for update",
                "s2> delete from t",
                "s2> commit"
            ]
        );
        let none = crate::case::parse("case: x\ns2> insert into t values (1);\n").expect("a case");
        assert!(with_locking_reads(&none).is_none());
    }

    #[test]
    fn what_stands_alone_gets_a_transaction() {
        let text = "case: x\ns1> begin;\ns1> select 1;\ns1> commit;\ns1> select 2;\n";
        let case = crate::case::parse(text).expect("a case");
        let changed = in_transactions(&case).expect("one stands alone");
        let sql: Vec<&str> = changed.steps.iter().map(|s| s.sql.as_str()).collect();
        assert_eq!(sql, ["begin", "select 1", "commit", "begin", "select 2", "commit"]);
        assert!(in_transactions(&changed).is_none());
    }

    #[test]
    fn a_level_is_raised_and_never_lowered() {
        let text = "case: x\nlevel: read committed\nlevel s1: serializable\n\
                    s1> begin;\ns1> commit;\n";
        let case = crate::case::parse(text).expect("a case");
        let changed = at_level(&case, Level::RepeatableRead);
        assert_eq!(changed.session_level("s1", None), Some(Level::Serializable));
        assert_eq!(changed.session_level("s2", None), Some(Level::RepeatableRead));
    }
}
