//! The tables and rows that a statement reads and writes.
//!
//! The statement is typed ([`isolde_sql::read`]). A row is identified
//! only where the statement selects one integer value of one column
//! (`where id = 3`); everything else may be any row of its table.

use isolde_sql::Write;
use isolde_sql::{Binary, Expr, Literal, Source, Stmt, Unary};

/// One table that a statement reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// In lower case.
    pub table: String,
    /// Column and value that all accessed rows have, where they are known.
    pub row: Option<(String, i64)>,
    pub writes: bool,
}

impl Access {
    /// Whether both may be about one row. Different values of the same column
    /// are the only proof that they are not.
    pub fn overlaps(&self, other: &Access) -> bool {
        let disjoint = match (&self.row, &other.row) {
            (Some((column, value)), Some((other_column, other_value))) => {
                column == other_column && value != other_value
            }
            _ => false,
        };
        self.table == other.table && !disjoint
    }
}

/// What a statement accesses; nothing if it is opaque or no data statement.
pub(super) fn accesses(statement: Option<&Stmt>) -> Vec<Access> {
    let Some(statement) = statement.filter(|s| s.is_data()) else { return Vec::new() };
    let mut found: Vec<Access> = Vec::new();
    let mut add = |table: &str, writes: bool| {
        let table = table.to_lowercase();
        if !found.iter().any(|a| a.table == table && a.writes >= writes) {
            found.push(Access { table, row: None, writes });
        }
    };
    if let Some(written) = statement.written_table() {
        add(written, true);
    }
    let tables = statement.tables();
    tables.iter().for_each(|table| add(table, false));
    // With a subquery or a join, the filter is not about all accessed rows.
    if let ([only], [_]) = (&mut found[..], &tables[..]) {
        only.row = filter(statement).and_then(one_row);
    }
    found
}

/// The condition on the rows of the one table that the statement names.
fn filter(statement: &Stmt) -> Option<&Expr> {
    match statement {
        Stmt::Select(select) => {
            let plain = matches!(select.from, Some(Source::Table { .. }));
            select.filter.as_ref().filter(|_| plain && select.set_operation.is_none())
        }
        Stmt::Write(Write::Update(update)) => update.filter.as_ref(),
        Stmt::Write(Write::Delete(delete)) => delete.filter.as_ref(),
        _ => None,
    }
}

/// The column and value of `column = value`, alone or in a conjunction.
fn one_row(condition: &Expr) -> Option<(String, i64)> {
    match condition {
        Expr::Binary(Binary::And, left, right) => one_row(left).or_else(|| one_row(right)),
        Expr::Binary(Binary::Equal, left, right) => match left.as_ref() {
            Expr::Column { name, .. } => Some((name.to_lowercase(), integer(right)?)),
            _ => None,
        },
        _ => None,
    }
}

fn integer(value: &Expr) -> Option<i64> {
    match value {
        Expr::Literal(Literal::Int(number)) => Some(*number),
        Expr::Unary(Unary::Negative, of) => integer(of).and_then(i64::checked_neg),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_sql::{Family, read};

    fn of(sql: &str, family: Family) -> Vec<Access> {
        accesses(read::statement(sql, family).as_ref())
    }

    fn shown(sql: &str, family: Family) -> Vec<String> {
        let row = |a: &Access| a.row.as_ref().map_or(String::new(), |(c, v)| format!(" {c}={v}"));
        let show =
            |a: &Access| format!("{}{}{}", if a.writes { "w " } else { "r " }, a.table, row(a));
        of(sql, family).iter().map(show).collect()
    }

    #[test]
    fn accesses_distinguish_read_and_written_tables() {
        use Family::{Mysql, Postgres, Sqlite};
        for (family, sql, expected) in [
            (Postgres, "select * from t", &["r t"][..]),
            (Postgres, "select * from T a, u b join v on b.id = v.id", &["r t", "r u", "r v"]),
            (Postgres, "select 1 from t where a in (select a from u) for update", &["r t", "r u"]),
            (Sqlite, "update t set a = (select max(b) from u)", &["w t", "r u"]),
            (Mysql, "insert into `t` (a) select a from u", &["w t", "r u"]),
            (Sqlite, "insert into t values (1) on conflict (a) do update set a = 2", &["w t"]),
            (Postgres, "delete from t using u where t.a = u.a", &["w t", "r u"]),
            (Postgres, "commit", &[]),
        ] {
            assert_eq!(shown(sql, family), expected, "{sql}");
        }
    }

    #[test]
    fn accesses_of_an_opaque_statement_are_unknown() {
        for sql in ["update only t set a = 1", "update t set v = $$ from u $$", "vacuum t"] {
            assert_eq!(shown(sql, Family::Postgres), [""; 0], "{sql}");
        }
    }

    #[test]
    fn accesses_ignore_comments_and_strings() {
        let sql = "update t /*/ from u where */ set v = ' from u ' where id = 3 -- from u";
        assert_eq!(shown(sql, Family::Postgres), ["w t id=3"]);
    }

    #[test]
    fn a_row_is_identified_by_one_integer_of_one_column() {
        for (sql, expected) in [
            ("update t set v = 1 where id = 3", "w t id=3"),
            ("select v from t where v > 1 and id = -3 order by v", "r t id=-3"),
            ("delete from t where (id = 3)", "w t id=3"),
            ("delete from t where id = 3 or v = 1", "w t"),
            ("delete from t where id = 3 + v", "w t"),
            ("delete from t where not id = 3", "w t"),
            ("delete from t where v = 'x'", "w t"),
            ("update t set v = (select max(v) from t) where id = 3", "w t"),
        ] {
            assert_eq!(shown(sql, Family::Postgres), [expected], "{sql}");
        }
    }

    #[test]
    fn accesses_are_disjoint_only_with_different_values_of_one_column() {
        let overlap =
            |a: &str, b: &str| of(a, Family::Postgres)[0].overlaps(&of(b, Family::Postgres)[0]);
        let third = "update t set v = 1 where id = 3";
        assert!(overlap(third, "select * from t where id = 3"));
        assert!(overlap(third, "select * from t where v = 4"));
        assert!(overlap(third, "select * from t"));
        assert!(!overlap(third, "select * from t where id = 4"));
        assert!(!overlap(third, "select * from u"));
    }
}
