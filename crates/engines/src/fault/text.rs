//! The few shapes of statements that some faults rewrite.
//!
//! Whatever does not fit a shape exactly is left alone: a fault that changed a
//! statement in a way it does not announce would teach the oracles nothing.

use isolde_core::Level;
use isolde_core::sql::{self, Kind};

pub(super) struct Token<'a> {
    pub text: &'a str,
    at: usize,
    /// How many parentheses are open around it.
    pub depth: usize,
    pub word: bool,
}

impl Token<'_> {
    pub fn is(&self, word: &str) -> bool {
        self.word && self.depth == 0 && self.text.eq_ignore_ascii_case(word)
    }
}

/// Words, quoted names and single marks; strings and comments are passed over.
/// `escapes`: a backslash keeps a quote from closing, as in MySQL.
pub(super) fn tokens(sql: &str, escapes: bool) -> Vec<Token<'_>> {
    let mut found: Vec<Token<'_>> = Vec::new();
    let (mut at, mut depth) = (0, 0usize);
    while let Some(first) = sql[at..].chars().next() {
        let rest = &sql[at..];
        let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '@';
        let (length, word, keep) = if plain(first) {
            (rest.find(|c| !plain(c)).unwrap_or(rest.len()), true, true)
        } else if rest.starts_with("--") {
            (rest.find('\n').unwrap_or(rest.len()), false, false)
        } else if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |i| i + 2), false, false)
        } else if matches!(first, '\'' | '"' | '`') {
            (quoted(rest, first, escapes && first != '`'), first != '\'', first != '\'')
        } else {
            (first.len_utf8(), false, !first.is_whitespace())
        };
        if first == ')' {
            depth = depth.saturating_sub(1);
        }
        if keep {
            found.push(Token { text: &rest[..length], at, depth, word });
        }
        if first == '(' {
            depth += 1;
        }
        at += length;
    }
    found
}

/// The length of what is quoted, both marks included.
fn quoted(text: &str, mark: char, escapes: bool) -> usize {
    let mut kept = false;
    for (i, c) in text.char_indices().skip(1) {
        if c == mark && !kept {
            return i + 1;
        }
        kept = escapes && c == '\\' && !kept;
    }
    text.len()
}

/// `update T set …` or `delete from T`, with or without `where P` and `returning …`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change<'a> {
    pub table: &'a str,
    /// Everything before the predicate.
    pub head: &'a str,
    pub predicate: Option<&'a str>,
    /// `returning …`, or nothing.
    pub returning: &'a str,
}

impl<'a> Change<'a> {
    pub fn parse(sql: &'a str, escapes: bool) -> Option<Change<'a>> {
        let sql = sql::without_trailing_comment(sql);
        let all = tokens(sql, escapes);
        let name = |i: usize| all.get(i).filter(|t| t.word);
        let is = |i: usize, word: &str| all.get(i).is_some_and(|t| t.is(word));
        let (table, body) = if is(0, "update") && is(2, "set") {
            (name(1)?, 3)
        } else if is(0, "delete")
            && is(1, "from")
            && (all.len() == 3 || is(3, "where") || is(3, "returning"))
        {
            (name(2)?, 3)
        } else {
            return None;
        };
        const MORE: [&str; 6] = ["from", "join", "using", "order", "limit", "window"];
        if all[body..].iter().any(|t| MORE.iter().any(|w| t.is(w))) {
            return None;
        }
        let returning = all[body..].iter().find(|t| t.is("returning")).map(|t| t.at);
        let (sql, returning) = sql.split_at(returning.unwrap_or(sql.len()));
        let before = |t: &&Token<'_>| t.at < sql.len();
        let cut = all[body..].iter().filter(before).find(|t| t.is("where")).map(|t| t.at);
        Some(Change {
            table: table.text,
            head: sql[..cut.unwrap_or(sql.len())].trim_end(),
            predicate: cut.map(|at| sql[at + "where".len()..].trim()),
            returning: returning.trim_end(),
        })
    }

    /// The same change of so many rows at most, without a comment at its end.
    pub fn limited(&self, rows: i64) -> String {
        let Change { head, returning, .. } = self;
        let limited = match self.predicate {
            Some(predicate) => format!("{head} where {predicate} limit {rows} {returning}"),
            None => format!("{head} limit {rows} {returning}"),
        };
        limited.trim_end().into()
    }

    /// The same change where its predicate and `more` hold.
    pub fn and(&self, more: &str) -> String {
        let Change { head, returning, .. } = self;
        let narrowed = match self.predicate {
            Some(predicate) => format!("{head} where ({predicate}) and {more} {returning}"),
            None => format!("{head} where {more} {returning}"),
        };
        narrowed.trim_end().into()
    }

    /// A query of `what` over the rows that match, with `tail` behind it.
    pub fn select(&self, what: &str, tail: &str) -> String {
        match self.predicate {
            Some(predicate) => {
                format!("select {what} from {} where {predicate}{tail}", self.table)
            }
            None => format!("select {what} from {}{tail}", self.table),
        }
    }
}

/// `insert into T [(columns)] values (…), … [returning …]` and nothing else behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Insert<'a> {
    pub table: &'a str,
    /// None when the statement does not list them.
    pub columns: Option<Vec<&'a str>>,
    pub rows: u64,
    /// From the table on, without RETURNING and without a comment at the end.
    pub rest: &'a str,
    /// RETURNING and what follows; empty where there is none.
    pub returning: &'a str,
}

impl<'a> Insert<'a> {
    pub fn parse(sql: &'a str, escapes: bool) -> Option<Insert<'a>> {
        let sql = sql::without_trailing_comment(sql);
        let all = tokens(sql, escapes);
        if !(all.first()?.is("insert") && all.get(1)?.is("into") && all.get(2)?.word) {
            return None;
        }
        let values = all.iter().position(|t| t.is("values"))?;
        let behind = &all[values + 1..];
        let outer = behind.iter().position(|t| t.word && t.depth == 0);
        if outer.is_some_and(|at| !behind[at].is("returning")) {
            return None;
        }
        let (behind, end) = match outer {
            Some(at) => (&behind[..at], behind[at].at),
            None => (behind, sql.len()),
        };
        let columns = match &all[3..values] {
            [] => None,
            [open, inner @ .., close] if open.text == "(" && close.text == ")" => {
                Some(inner.iter().filter(|t| t.word).map(|t| t.text).collect())
            }
            _ => return None,
        };
        let rows = behind.iter().filter(|t| t.text == "(" && t.depth == 0).count();
        Some(Insert {
            table: all[2].text,
            columns,
            rows: u64::try_from(rows).unwrap_or(1),
            rest: sql[all[2].at..end].trim_end(),
            returning: &sql[end..],
        })
    }
}

/// A query that takes no locks of its own and leaves nothing behind.
pub(super) fn is_plain_read(sql: &str) -> bool {
    let reads = sql::kind(sql) == Kind::Select && !sql::taints_session(sql);
    let all = tokens(sql, false);
    let begins = all.first().is_some_and(|t| t.is("select") || t.is("with") || t.is("values"));
    reads && begins && !all.iter().any(|t| t.is("for") || t.is("lock") || t.is("into"))
}

/// Not AND CHAIN, nor the end of a two-phase transaction.
pub(super) fn is_plain_rollback(sql: &str) -> bool {
    let all = tokens(sql, false);
    all.iter().all(|t| ["rollback", "abort", "work", "transaction"].iter().any(|w| t.is(w)))
}

/// The level that a BEGIN or a SET asks for: `… isolation level read committed`.
pub(super) fn level_asked_for(sql: &str) -> Option<Level> {
    let all = tokens(sql, false);
    let at = all.windows(2).position(|w| w[0].is("isolation") && w[1].is("level"))?;
    let name: Vec<&str> = all[at + 2..].iter().take(2).map(|t| t.text).collect();
    name.join(" ").parse().ok().or_else(|| name.first()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_change_is_taken_apart_and_others_are_left_alone() {
        let change = Change::parse("update \"t\" set a = 'where', b = (1) where a > 2 -- x", false);
        let change = change.unwrap();
        assert_eq!(change.head, "update \"t\" set a = 'where', b = (1)");
        assert_eq!(change.and("c"), "update \"t\" set a = 'where', b = (1) where (a > 2) and c");
        assert_eq!(change.select("x", " y"), "select x from \"t\" where a > 2 y");
        let all = Change::parse("delete from t", false).unwrap();
        assert_eq!((all.predicate, all.and("c").as_str()), (None, "delete from t where c"));
        for other in [
            "update t as x set a = 1",
            "update t, u set a = 1",
            "update t set a = 1 from u where t.a = u.a",
            "delete from t using u where t.a = u.a",
            "delete from t where a = 1 order by a limit 1",
            "insert into t values (1)",
        ] {
            assert_eq!(Change::parse(other, false), None, "{other}");
        }
        let returning = Change::parse("update t set a = 1 where b returning a", false).unwrap();
        assert_eq!(returning.and("c"), "update t set a = 1 where (b) and c returning a");
        assert_eq!(returning.limited(2), "update t set a = 1 where b limit 2 returning a");
        let nested = "update t set a = 1 where a in (select a from u order by a)";
        assert!(Change::parse(nested, false).is_some());
    }

    #[test]
    fn an_insert_tells_its_columns_and_how_many_rows_it_has() {
        let insert = Insert::parse("insert into t (a, b) values (1, f(2)), (3, ')')", false);
        let insert = insert.unwrap();
        assert_eq!((insert.rows, insert.columns), (2, Some(vec!["a", "b"])));
        assert_eq!(Insert::parse("insert into t values (1)", false).unwrap().columns, None);
        let insert =
            Insert::parse("insert into t values (1), (2) returning (a), b", false).unwrap();
        assert_eq!((insert.rows, insert.rest), (2, "t values (1), (2)"));
        assert_eq!(insert.returning, "returning (a), b");
        assert_eq!(Insert::parse("insert into t values ('a\\'b)')", true).unwrap().rows, 1);
        for other in [
            "insert into t select * from u",
            "insert ignore into t values (1)",
            "insert into t values (1) on conflict do nothing",
            "insert into t values (1) as n returning a",
        ] {
            assert_eq!(Insert::parse(other, false), None, "{other}");
        }
    }

    #[test]
    fn reads_that_lock_are_not_plain() {
        assert!(is_plain_read("select * from t where a in (select 1 for update)"));
        assert!(!is_plain_read("select * from t for update"));
        assert!(!is_plain_read("select * from t lock in share mode"));
        assert!(!is_plain_read("show tables"));
        assert!(is_plain_rollback("ROLLBACK work"));
        assert!(!is_plain_rollback("rollback and chain"));
    }

    #[test]
    fn the_level_of_a_transaction_is_read_from_what_begins_it() {
        let asked = level_asked_for;
        assert_eq!(asked("begin isolation level read committed"), Some(Level::ReadCommitted));
        assert_eq!(
            asked("set transaction isolation level SERIALIZABLE"),
            Some(Level::Serializable)
        );
        assert_eq!(
            asked("start transaction isolation level serializable, read only"),
            Some(Level::Serializable)
        );
        assert_eq!(asked("begin"), None);
    }
}
