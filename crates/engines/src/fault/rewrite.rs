//! Statements that some faults replace the client's with.
//!
//! Only a statement of exactly the expected shape is rewritten. A fault that
//! changed a statement in a way that it does not announce would be of no use
//! for testing oracles.

use isolde_model::Level;
use isolde_sql::Control;
use isolde_sql::Write;
use isolde_sql::render::Renderer;
use isolde_sql::{
    Binary, Conflict, Delete, Dialect, Expr, Insert, InsertSource, LockPatience, LockStrength,
    Locking, Order, OrderKey, Select, Source, Stmt, Update, read,
};

/// An UPDATE or DELETE of one table, without alias, join, ORDER BY and LIMIT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Update(Update),
    Delete(Delete),
}

impl Change {
    pub fn of(statement: &Stmt) -> Option<Change> {
        match statement {
            Stmt::Write(Write::Update(u)) if u.alias.is_none() && u.join.is_none() => {
                (u.order.is_empty() && u.limit.is_none()).then(|| Change::Update(u.clone()))
            }
            Stmt::Write(Write::Delete(d)) if d.alias.is_none() && d.join.is_none() => {
                (d.order.is_empty() && d.limit.is_none()).then(|| Change::Delete(d.clone()))
            }
            _ => None,
        }
    }

    fn table_and_filter(&self) -> (&str, &Option<Expr>) {
        match self {
            Change::Update(update) => (&update.table, &update.filter),
            Change::Delete(delete) => (&delete.table, &delete.filter),
        }
    }

    fn statement(self) -> Stmt {
        match self {
            Change::Update(update) => Stmt::Write(Write::Update(update)),
            Change::Delete(delete) => Stmt::Write(Write::Delete(delete)),
        }
    }

    /// The same change of at most `rows` rows.
    pub fn limited(mut self, rows: i64) -> Stmt {
        let limit = Some(Expr::int(rows));
        match &mut self {
            Change::Update(update) => update.limit = limit,
            Change::Delete(delete) => delete.limit = limit,
        }
        self.statement()
    }

    /// The same change without the row that comes first by `locator`, a column
    /// that identifies a row's physical place.
    pub fn without_first(mut self, locator: &str) -> Stmt {
        let column = || Expr::column(locator);
        let mut first = self.query(column());
        let key = OrderKey { of: column(), descending: false, nulls_first: None };
        first.order = Order::By(vec![key]);
        first.limit = Some(Expr::int(1));
        let other = Expr::binary(Binary::Unequal, column(), Expr::Scalar(Box::new(first)));
        let filter = match &mut self {
            Change::Update(update) => &mut update.filter,
            Change::Delete(delete) => &mut delete.filter,
        };
        *filter = Some(match filter.take() {
            Some(condition) => condition.and(other),
            None => other,
        });
        self.statement()
    }

    /// `select count(*) … for update` over the rows that match.
    pub fn locked_count(&self) -> Stmt {
        let mut count = self.query(Expr::count_all());
        count.locking = Some(Locking {
            strength: LockStrength::Update,
            of: Vec::new(),
            patience: LockPatience::Wait,
        });
        Stmt::Select(count)
    }

    fn query(&self, item: Expr) -> Select {
        let (table, filter) = self.table_and_filter();
        Select {
            items: vec![item.into()],
            from: Some(Source::named(table)),
            filter: filter.clone(),
            ..Select::default()
        }
    }
}

/// `insert into T [(columns)] values (…), … [returning …]`, without an alias
/// and a conflict clause.
pub(super) fn plain_insert(statement: &Stmt) -> Option<&Insert> {
    match statement {
        Stmt::Write(Write::Insert(insert)) => {
            let plain = insert.alias.is_none()
                && insert.conflict == Conflict::Fail
                && matches!(insert.source, InsertSource::Values(_));
            plain.then_some(insert)
        }
        _ => None,
    }
}

/// How many rows a plain insert has.
pub(super) fn row_count(insert: &Insert) -> u64 {
    match &insert.source {
        InsertSource::Values(rows) => u64::try_from(rows.len()).unwrap_or(1),
        InsertSource::Select(_) | InsertSource::Defaults => 1,
    }
}

/// The same insert, which replaces rows that have its key.
pub(super) fn replace(insert: &Insert, dialect: &Dialect) -> String {
    let conflict = Conflict::Replace;
    Stmt::Write(Write::Insert(Insert { conflict, ..insert.clone() })).render(dialect)
}

/// The same insert on PostgreSQL, which has no REPLACE: rows that violate the
/// constraint get the rejected values in these columns.
pub(super) fn upsert(
    insert: &Insert,
    constraint: &str,
    columns: &[String],
    dialect: &Dialect,
) -> String {
    let renderer = Renderer::new(dialect);
    let plain = Stmt::Write(Write::Insert(Insert { returning: Vec::new(), ..insert.clone() }))
        .render(dialect);
    let set = |column: &String| {
        let column = renderer.name(column);
        format!("{column} = excluded.{column}")
    };
    let sets: Vec<String> = columns.iter().map(set).collect();
    let returning = match insert.returning.is_empty() {
        true => String::new(),
        false => format!(" returning {}", renderer.items(&insert.returning)),
    };
    format!(
        "{plain} on conflict on constraint {constraint} do update set {}{returning}",
        sets.join(", ")
    )
}

/// The level that a BEGIN or SET TRANSACTION requests.
pub(super) fn requested_level(sql: &str) -> Option<Level> {
    match read::control(sql)? {
        Stmt::Control(Control::Begin(begin)) => begin.characteristics.level,
        Stmt::Control(Control::SetTransaction(set)) => set.characteristics.level,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_sql::Family;

    fn read(sql: &str, family: Family) -> Stmt {
        read::statement(sql, family).unwrap_or_else(|| panic!("opaque: {sql}"))
    }

    #[test]
    fn a_plain_change_is_rewritten() {
        let sqlite = Dialect::for_engine("sqlite", "3.46");
        let sql = "update \"T x\" set a = 'where', b = (1) where a > 2 or b = 1 returning a -- x";
        let change = Change::of(&read(sql, Family::Sqlite)).unwrap();
        let rewritten = change.clone().without_first("rowid").render(&sqlite);
        assert_eq!(
            rewritten,
            "update `t x` set a = 'where', b = 1 where ((a > 2) or (b = 1)) and (`rowid` <> \
             (select `rowid` from `t x` where (a > 2) or (b = 1) order by `rowid` limit 1)) \
             returning a"
        );
        let mariadb = Dialect::for_engine("mariadb", "11.8");
        let sql = "update t set a = 'it\\'s' where b = 1 returning a";
        let change = Change::of(&read("delete from t", Family::Mysql)).unwrap();
        assert_eq!(change.locked_count().render(&mariadb), "select count(*) from t for update");
        assert_eq!(change.limited(2).render(&mariadb), "delete from t limit 2");
        let change = Change::of(&read(sql, Family::Mysql)).unwrap();
        assert_eq!(
            change.limited(2).render(&mariadb),
            "update t set a = 'it''s' where b = 1 limit 2 returning a"
        );
    }

    #[test]
    fn a_change_of_another_shape_is_not_rewritten() {
        for (family, sql) in [
            (Family::Postgres, "update t as x set a = 1"),
            (Family::Postgres, "update t set a = 1 from u where t.a = u.a"),
            (Family::Postgres, "delete from t using u where t.a = u.a"),
            (Family::Mysql, "delete from t where a = 1 order by a limit 1"),
            (Family::Mysql, "insert into t values (1)"),
        ] {
            assert_eq!(Change::of(&read(sql, family)), None, "{sql}");
        }
    }

    #[test]
    fn a_plain_insert_becomes_a_replace_or_an_upsert() {
        let statement =
            read("insert into t (a, b) values (1, 2), (3, ')') returning a", Family::Sqlite);
        let insert = plain_insert(&statement).unwrap();
        assert_eq!(row_count(insert), 2);
        let sqlite = Dialect::for_engine("sqlite", "3.46");
        assert_eq!(
            replace(insert, &sqlite),
            "replace into t (a, b) values (1, 2), (3, ')') returning a"
        );
        let statement = read("insert into t values (')', 1) returning a, \"B\"", Family::Postgres);
        let postgres = Dialect::for_engine("postgres", "18");
        let columns = ["a".to_string(), "B".to_string()];
        assert_eq!(
            upsert(plain_insert(&statement).unwrap(), "\"t_pkey\"", &columns, &postgres),
            "insert into t values (')', 1) on conflict on constraint \"t_pkey\" do update set \
             a = excluded.a, \"B\" = excluded.\"B\" returning a, \"B\""
        );
    }

    #[test]
    fn an_insert_with_a_conflict_clause_is_not_plain() {
        for (family, sql) in [
            (Family::Mysql, "insert into t select * from u"),
            (Family::Mysql, "insert ignore into t values (1)"),
            (Family::Postgres, "insert into t values (1) on conflict do nothing"),
        ] {
            assert_eq!(plain_insert(&read(sql, family)), None, "{sql}");
        }
    }

    #[test]
    fn the_level_of_a_transaction_is_read_from_its_begin() {
        let level = requested_level;
        assert_eq!(level("begin isolation level read committed"), Some(Level::ReadCommitted));
        assert_eq!(
            level("set transaction isolation level SERIALIZABLE"),
            Some(Level::Serializable)
        );
        assert_eq!(
            level("start transaction isolation level serializable, read only"),
            Some(Level::Serializable)
        );
        assert_eq!(level("begin"), None);
    }
}
