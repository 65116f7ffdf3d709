//! Which tables and rows a statement reads and writes, as far as its text says.
//!
//! A row is known only where the statement looks for one value of one column
//! (`where id = 3`); everything else may be any row of its table.

use super::text::{Token, tokens};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// In small letters and without quotes.
    pub table: String,
    pub row: Option<(String, String)>,
    pub writes: bool,
}

impl Touch {
    /// Whether both may be about one row. Different values of the same column
    /// are the only proof that they are not.
    pub fn meets(&self, other: &Touch) -> bool {
        let apart = match (&self.row, &other.row) {
            (Some((column, value)), Some((other_column, other_value))) => {
                column == other_column && value != other_value
            }
            _ => false,
        };
        self.table == other.table && !apart
    }
}

pub(super) fn touches(sql: &str) -> Vec<Touch> {
    let all = tokens(sql, false);
    let mut found: Vec<Touch> = Vec::new();
    let mut add = |at: Option<usize>, writes: bool| {
        let Some(token) = at.and_then(|at| all.get(at)).filter(|t| t.word) else { return };
        let table = plain(token.text);
        if !found.iter().any(|t| t.table == table && t.writes >= writes) {
            found.push(Touch { table, row: None, writes });
        }
    };
    add(written(&all), true);
    for at in 0..all.len() {
        if !["from", "join"].iter().any(|word| all[at].text.eq_ignore_ascii_case(word)) {
            continue;
        }
        add(Some(at + 1), false);
        // `from a, b as c, d`
        let list = all[at + 1..].windows(2).take_while(|pair| pair[0].word || pair[0].text == ",");
        for (behind, pair) in list.enumerate() {
            if pair[0].text == "," {
                add(Some(at + 2 + behind), false);
            }
        }
    }
    if let [only] = &mut found[..] {
        only.row = one_row(&all);
    }
    found
}

/// Where the name of the table stands that the statement writes.
fn written(all: &[Token<'_>]) -> Option<usize> {
    const BETWEEN: [&str; 8] =
        ["only", "ignore", "low_priority", "or", "replace", "abort", "fail", "rollback"];
    let locks = |at: usize| at > 0 && all[at - 1].is("for");
    let at = (0..all.len()).find(|at| {
        all[*at].is("into") || all[*at].is("delete") || all[*at].is("update") && !locks(*at)
    })?;
    match all[at].is("delete") {
        true => (at..all.len()).find(|i| all[*i].is("from")).map(|from| from + 1),
        false => (at + 1..all.len()).find(|i| !BETWEEN.iter().any(|word| all[*i].is(word))),
    }
}

/// The column and value of `where column = value`, also beside other conditions.
fn one_row(all: &[Token<'_>]) -> Option<(String, String)> {
    const BEHIND: [&str; 6] = ["and", "order", "limit", "returning", "for", "lock"];
    if all.iter().any(|t| t.is("or") || t.is("union") || t.is("between")) {
        return None;
    }
    let filter = all.iter().position(|t| t.is("where"))?;
    (filter..all.len()).find_map(|at| {
        let begins = all[at].is("where") || all[at].is("and");
        let column = all.get(at + 1).filter(|t| begins && t.word && t.depth == 0)?;
        all.get(at + 2).filter(|t| t.text == "=")?;
        let minus = all.get(at + 3)?.text == "-";
        let value = all.get(at + 3 + usize::from(minus))?;
        let behind = all.get(at + 4 + usize::from(minus));
        let ends = behind.is_none_or(|t| BEHIND.iter().any(|word| t.is(word)));
        let number = value.text.starts_with(|c: char| c.is_ascii_digit());
        let sign = if minus { "-" } else { "" };
        (number && ends).then(|| (plain(column.text), format!("{sign}{}", value.text)))
    })
}

fn plain(name: &str) -> String {
    name.trim_matches(['"', '`']).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sql: &str) -> Vec<String> {
        let row = |t: &Touch| t.row.as_ref().map_or(String::new(), |(c, v)| format!(" {c}={v}"));
        let show =
            |t: &Touch| format!("{}{}{}", if t.writes { "w " } else { "r " }, t.table, row(t));
        touches(sql).iter().map(show).collect()
    }

    #[test]
    fn tables_are_told_by_how_they_are_used() {
        for (sql, expected) in [
            ("select * from t", &["r t"][..]),
            ("select * from \"T\" as a, u b join v on a.id = b.id", &["r t", "r u", "r v"]),
            ("select 1 from t where a in (select a from u) for update", &["r t", "r u"]),
            ("update only t set a = 1", &["w t"]),
            ("update or ignore t set a = (select 1 from u)", &["w t", "r u"]),
            ("insert into `t` (a) select a from u", &["w t", "r u"]),
            ("insert or replace into t values (1) on conflict (a) do update set a = 2", &["w t"]),
            ("delete from t using u where t.a = u.a", &["w t"]),
            ("with c as (select 1 from u) update t set a = 1", &["w t", "r u"]),
            ("commit", &[]),
        ] {
            assert_eq!(told(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_row_is_known_by_one_value_of_one_column() {
        for (sql, expected) in [
            ("update t set v = 1 where id = 3", "w t id=3"),
            ("select v from t where v > 1 and id = -3 order by v", "r t id=-3"),
            ("delete from t where id = 3 or v = 1", "w t"),
            ("delete from t where id = 3 + v", "w t"),
            ("delete from t where not id = 3", "w t"),
            ("delete from t where (id = 3)", "w t"),
            ("delete from t where v = 'x'", "w t"),
        ] {
            assert_eq!(told(sql), [expected], "{sql}");
        }
    }

    #[test]
    fn only_different_values_of_one_column_keep_two_statements_apart() {
        let meet = |a: &str, b: &str| touches(a)[0].meets(&touches(b)[0]);
        let third = "update t set v = 1 where id = 3";
        assert!(meet(third, "select * from t where id = 3"));
        assert!(meet(third, "select * from t where v = 4"));
        assert!(meet(third, "select * from t"));
        assert!(!meet(third, "select * from t where id = 4"));
        assert!(!meet(third, "select * from u"));
    }
}
