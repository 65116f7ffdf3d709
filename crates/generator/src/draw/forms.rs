//! Draws forms of writes that few dialects have: MERGE, RETURNING, and ORDER BY with LIMIT.

use super::Sampler;
use super::scope;
use isolde_sql::dialect::Family;
use isolde_sql::{
    Binary, Class, Conflict, Delete, Expr, Feature, MatchKind, Merge, MergeAction, MergeClause,
    OrderKey, Select, SelectItem, Source, Stmt, Table, Type, Update, Write,
};

impl<'a> Sampler<'a> {
    /// MERGE by the primary key. No two rows of the source have the same key, because a row may
    /// be merged only once.
    pub fn merge(&mut self) -> Option<Stmt> {
        let table = self.table_to_write();
        let [key] = table.primary_key.as_slice() else { return None };
        let column = table.column(key)?;
        if column.of_type != Type::Int || table.partitioned_by.is_some() {
            return None;
        }
        let (source, second) = match self.random.chance(60) {
            true => self.literal_source(table, key),
            false => (self.table_source()?, None),
        };
        let of = |qualifier: &str, name: &str| Expr::Column {
            qualifier: Some(qualifier.into()),
            name: name.into(),
        };
        let mut clauses = Vec::new();
        if self.random.chance(35) {
            let (condition, action) = (Some(self.merge_condition(table)), self.match_action(table));
            clauses.push(MergeClause { kind: MatchKind::Matched, condition, action });
        }
        if self.random.chance(85) {
            let action = self.match_action(table);
            clauses.push(MergeClause { kind: MatchKind::Matched, condition: None, action });
        }
        if clauses.is_empty() || self.random.chance(75) {
            let columns: Vec<&str> = table.writable().map(|c| c.name.as_str()).collect();
            let values = table.writable().map(|c| match (c.name == *key, &second) {
                (true, _) => of("s", "v1"),
                (false, Some(name)) if c.name == *name => of("s", "v2"),
                (false, _) => Expr::Literal(self.draw(c)),
            });
            let values = values.collect();
            let columns = columns.into_iter().map(str::to_string).collect();
            let action = MergeAction::Insert { columns, values };
            clauses.push(MergeClause { kind: MatchKind::NotMatched, condition: None, action });
        }
        let on = Expr::binary(Binary::Equal, of("m", key), of("s", "v1"));
        let alias = Some("m".into());
        Some(Stmt::Write(Write::Merge(Merge {
            table: table.name.clone(),
            alias,
            source,
            on,
            clauses,
        })))
    }

    /// One or two rows with different keys, and a value for another column.
    fn literal_source(&mut self, table: &'a Table, key: &str) -> (Source, Option<String>) {
        let free: Vec<&isolde_sql::Column> = table
            .writable()
            .filter(|c| !table.is_in_a_key(&c.name) && c.of_type == Type::Int)
            .collect();
        let second = self.random.pick_any(&free).copied();
        let column = table.column(key).expect("the key is a column");
        let mut keys = vec![self.likely_value(column)];
        if self.random.chance(40) {
            keys.push(self.likely_value(column));
            keys.dedup();
        }
        let values = keys
            .into_iter()
            .map(|key| {
                let value = second.map(|c| Expr::Literal(self.draw(c)));
                std::iter::once(Expr::Literal(key)).chain(value).collect()
            })
            .collect();
        let names = if second.is_some() { vec!["v1", "v2"] } else { vec!["v1"] };
        let source = Source::Derived {
            lateral: false,
            select: Box::new(Select { values, ..Select::default() }),
            alias: Some("s".into()),
            columns: names.into_iter().map(str::to_string).collect(),
            view: None,
        };
        (source, second.map(|c| c.name.clone()))
    }

    /// The keys of another table.
    fn table_source(&mut self) -> Option<Source> {
        let table = self.table_to_read()?;
        let [key] = table.primary_key.as_slice() else { return None };
        if table.column(key)?.of_type != Type::Int {
            return None;
        }
        let filter = self.random.chance(60).then(|| self.predicate(&scope::of_table(table)));
        let select = Select {
            items: vec![SelectItem::Expression { of: Expr::column(key), alias: Some("v1".into()) }],
            from: Some(Source::named(&table.name)),
            filter,
            ..Select::default()
        };
        Some(Source::query(select, "s"))
    }

    fn merge_condition(&mut self, table: &'a Table) -> Expr {
        let columns = scope::of_columns(Some("m"), table.columns.iter());
        self.simple_condition(&columns)
    }

    fn match_action(&mut self, table: &'a Table) -> MergeAction {
        let free: Vec<&isolde_sql::Column> =
            table.writable().filter(|c| !table.is_in_a_key(&c.name)).collect();
        let changed = self.random.some_of(&free, 2);
        match self.random.weighted(&[if changed.is_empty() { 0 } else { 70 }, 20, 10]) {
            0 => {
                let mut sets = Vec::new();
                for column in changed {
                    let own =
                        Expr::Column { qualifier: Some("m".into()), name: column.name.clone() };
                    let number =
                        column.of_type.class() == Class::Integer && column.allows_arithmetic();
                    let foreign = table.foreign_keys.iter().any(|f| f.column == column.name);
                    let value = match number && !foreign && self.random.chance(60) {
                        true => Expr::binary(Binary::Plus, own, Expr::int(1)),
                        false => Expr::Literal(self.draw(column)),
                    };
                    sets.push((column.name.clone(), value));
                }
                MergeAction::Update(sets)
            }
            1 => MergeAction::Delete,
            _ => MergeAction::Nothing,
        }
    }

    /// An UPDATE or DELETE of the first rows in the order of the primary key.
    pub fn limited_write(&mut self) -> Option<Stmt> {
        let mut statement = if self.random.chance(60) { self.update()? } else { self.delete()? };
        let table = self.schema.table(statement.written_table()?)?;
        if table.primary_key.is_empty() {
            return None;
        }
        let descending = self.random.chance(30);
        let key =
            |name: &String| OrderKey { of: Expr::column(name), descending, nulls_first: None };
        let keys = table.primary_key.iter().map(key).collect();
        let most = Some(Expr::int(self.random.between(1, 4) as i64));
        match &mut statement {
            Stmt::Write(Write::Update(Update { order, limit, sets, .. })) => {
                // What is sorted by must not change.
                if sets.iter().any(|(column, _)| table.primary_key.contains(column)) {
                    return None;
                }
                (*order, *limit) = (keys, most);
            }
            Stmt::Write(Write::Delete(Delete { order, limit, .. })) => {
                (*order, *limit) = (keys, most);
            }
            _ => return None,
        }
        Some(statement)
    }

    /// Lets some writes return columns of the rows that they write.
    pub(super) fn perhaps_returning(&mut self, statement: &mut Stmt) {
        if self.depth == 0 || !self.has(Feature::Returning) || !self.random.chance(15) {
            return;
        }
        let Some(table) = statement.written_table().and_then(|name| self.schema.table(name)) else {
            return;
        };
        let columns: Vec<&isolde_sql::Column> = table.columns.iter().collect();
        let chosen = self.random.some_of(&columns, 3);
        let items: Vec<SelectItem> = chosen.iter().map(|c| Expr::column(&c.name).into()).collect();
        let updates = self.dialect.family != Family::Mysql;
        match statement {
            // MySQL's family also returns rows that an upsert leaves as they are.
            Stmt::Write(Write::Insert(insert))
                if updates || !matches!(insert.conflict, Conflict::Update { .. }) =>
            {
                insert.returning = items;
            }
            Stmt::Write(Write::Update(update)) if update.join.is_none() && updates => {
                update.returning = items;
            }
            Stmt::Write(Write::Delete(delete)) if delete.join.is_none() => {
                delete.returning = items;
            }
            _ => {}
        }
    }
}
