//! LIMIT: which rows it leaves is known if ORDER BY leaves no ties, or if it leaves
//! all of them.

use crate::model::ReferenceModel;
use crate::stop::Stop;
use crate::version_tables::{Search, VersionId, View, Views, whole};
use isolde_model::value::Row;
use isolde_sql::{Expr, Literal, Order, OrderKey, Schema, Select, SelectItem, Source, Table};

const UNKNOWN: &str = "which rows LIMIT leaves is not modelled";

impl ReferenceModel<'_> {
    /// Evaluates a query on the versions of a view.
    pub async fn evaluate_select(
        &mut self,
        step: usize,
        select: &Select,
        view: &View,
    ) -> Result<Vec<Row>, Stop> {
        if !leaves_rows_open(select, &self.subject.reading.schema) {
            let sql = self.tables.select(select, view);
            let rows = self.evaluate(sql, Some(step)).await?;
            return self.or_materialised(step, select, view, rows).await;
        }
        let all = Select { order: Order::None, limit: None, offset: None, ..select.clone() };
        let sql = self.tables.select(&all, view);
        let rows = self.evaluate(sql, Some(step)).await?;
        let rows = self.or_materialised(step, &all, view, rows).await?;
        let cuts = limit(select).is_none_or(|most| most < rows.len());
        if cuts && rows.windows(2).any(|two| two[0] != two[1]) {
            return Err(Stop::not_modelled(step, UNKNOWN));
        }
        if !cuts {
            return Ok(rows);
        }
        let sql = self.tables.select(select, view);
        self.evaluate(sql, Some(step)).await
    }

    /// The number of rows after which a locking read stops; none without LIMIT.
    pub fn locking_limit(&self, step: usize, select: &Select) -> Result<Option<usize>, Stop> {
        if select.limit.is_none() && select.offset.is_none() {
            return Ok(None);
        }
        let open = leaves_rows_open(select, &self.subject.reading.schema);
        match limit(select).filter(|_| !open) {
            Some(most) => Ok(Some(most)),
            None => Err(Stop::not_modelled(step, UNKNOWN)),
        }
    }

    /// The versions that an UPDATE or DELETE with LIMIT acts on: the first of those
    /// that match, in the order of its keys.
    pub async fn first_matches(
        &mut self,
        step: usize,
        search: Search<'_>,
        (order, most): (&[OrderKey], &Expr),
        views: Views<'_>,
    ) -> Result<Vec<VersionId>, Stop> {
        let of = self.subject.reading.schema.table(search.table);
        let total = of.is_some_and(|table| covers_a_key(order, table, search.name(), &[]));
        let Some(most) = whole_number(most).filter(|_| total && search.join.is_none()) else {
            return Err(Stop::not_modelled(step, UNKNOWN));
        };
        let sql = self.tables.found_in_order(search, order, views);
        let rows = self.evaluate(sql, Some(step)).await?;
        Ok(rows.iter().filter_map(|row| row.first().and_then(whole)).take(most).collect())
    }
}

/// The number of a LIMIT without OFFSET.
fn limit(select: &Select) -> Option<usize> {
    select.limit.as_ref().filter(|_| select.offset.is_none()).and_then(whole_number)
}

fn whole_number(expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Literal(Literal::Int(n)) => usize::try_from(*n).ok(),
        _ => None,
    }
}

/// Whether the engine may choose which rows LIMIT leaves.
pub fn leaves_rows_open(select: &Select, schema: &Schema) -> bool {
    if select.limit.is_none() && select.offset.is_none() {
        return false;
    }
    let Order::By(keys) = &select.order else { return select.order == Order::None };
    let plain = select.ctes.is_empty()
        && select.set_operation.is_none()
        && select.group_by.is_empty()
        && !select.distinct
        && select.joins.is_empty();
    let Some(Source::Table { name, alias }) = select.from.as_ref().filter(|_| plain) else {
        return true;
    };
    let qualifier = alias.as_deref().unwrap_or(name);
    !schema.table(name).is_some_and(|of| covers_a_key(keys, of, qualifier, &select.items))
}

/// Whether no two rows of a table are equal in these keys of ORDER BY.
fn covers_a_key(order: &[OrderKey], of: &Table, qualifier: &str, items: &[SelectItem]) -> bool {
    let sorted: Vec<&str> =
        order.iter().filter_map(|key| sort_column(&key.of, qualifier, items)).collect();
    let not_null = |name: &String| of.column(name).is_some_and(|column| column.not_null);
    let partial = |key: &Vec<String>| {
        of.indexes.iter().any(|i| i.columns() == *key && i.only_where.is_some())
    };
    let keys = of.keys();
    let mut usable =
        keys.iter().filter(|key| !key.is_empty() && !partial(key) && key.iter().all(not_null));
    usable.any(|key| key.iter().all(|column| sorted.contains(&column.as_str())))
}

/// The column that a key of ORDER BY stands for: by name, or by its place in the
/// select list.
fn sort_column<'e>(key: &'e Expr, qualifier: &str, items: &'e [SelectItem]) -> Option<&'e str> {
    let item = |of: &'e Expr| match of {
        Expr::Column { qualifier: None, name } => Some(name.as_str()),
        Expr::Column { qualifier: Some(q), name } if q == qualifier => Some(name.as_str()),
        _ => None,
    };
    match key {
        Expr::Literal(Literal::Int(_)) => {
            let place = whole_number(key)?.checked_sub(1)?;
            let known = items.iter().take(place + 1).all(|i| i.expression().is_some());
            items.get(place).filter(|_| known).and_then(SelectItem::expression).and_then(item)
        }
        Expr::Column { qualifier: None, name } => {
            // An alias hides the column of that name.
            let hides = |i: &&SelectItem| matches!(i, SelectItem::Expression { alias: Some(alias), .. } if alias == name);
            match items.iter().find(hides) {
                Some(other) => other.expression().and_then(item).filter(|column| column == name),
                None => Some(name),
            }
        }
        other => item(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_sql::dialect::Family;
    use isolde_sql::{Stmt, read};

    fn is_open(sql: &str) -> bool {
        let setup =
            "create table t (id int primary key, a int not null, b int, unique (a), unique (b))";
        let schema = read::schema([setup], Family::Postgres).schema;
        let Some(Stmt::Select(select)) = read::statement(sql, Family::Postgres) else {
            panic!("{sql} is not read");
        };
        leaves_rows_open(&select, &schema)
    }

    #[test]
    fn order_by_a_key_that_cannot_be_null_leaves_no_ties() {
        for order in ["id", "t.id desc", "b, id", "a", "1", "1 desc, 2"] {
            assert!(!is_open(&format!("select id, b from t order by {order} limit 1")), "{order}");
        }
    }

    #[test]
    fn order_that_leaves_ties_leaves_the_rows_open() {
        for sql in [
            "select id from t limit 1",
            "select id from t order by b limit 1",
            "select b as id from t order by id limit 1",
            "select distinct id from t order by id limit 1",
            "select t.id from t join t as u on true order by t.id limit 1",
            "select id from t offset 1",
        ] {
            assert!(is_open(sql), "{sql}");
        }
        assert!(!is_open("select b from t order by b"));
    }
}
