//! Makes writes and locking reads deep: their conditions, and the values that they store.

use super::super::Sampler;
use super::{Surroundings, VisibleColumn};
use isolde_sql::{
    Binary, Class, Column, Conflict, Expr, Function, InsertSource, Stmt, Table, Type, Write,
};

impl<'a> Sampler<'a> {
    /// Puts nested expressions into a shallow statement.
    pub(in super::super) fn deepened(&mut self, mut statement: Stmt) -> Stmt {
        let schema = self.schema;
        match &mut statement {
            Stmt::Write(Write::Update(update)) => {
                let Some(table) = schema.table(&update.table) else { return statement };
                let around = of_table(table);
                self.deepen_sets(&mut update.sets, table, &around);
                self.deepen_filter(&mut update.filter, &around);
            }
            Stmt::Write(Write::Delete(delete)) => {
                let Some(table) = schema.table(&delete.table) else { return statement };
                self.deepen_filter(&mut delete.filter, &of_table(table));
            }
            Stmt::Write(Write::Insert(insert)) => {
                let Some(table) = schema.table(&insert.table) else { return statement };
                match &mut insert.source {
                    InsertSource::Values(rows) => {
                        for row in rows {
                            for (name, cell) in insert.columns.iter().zip(row) {
                                self.deepen_cell(table, name, cell);
                            }
                        }
                    }
                    InsertSource::Select(select) => {
                        let source = select.from.as_ref().and_then(|s| s.table());
                        let source = source.and_then(|name| schema.table(name));
                        if let Some(source) = source {
                            self.deepen_filter(&mut select.filter, &of_table(source));
                        }
                    }
                    InsertSource::Defaults => {}
                }
                if let Conflict::Update { sets, .. } = &mut insert.conflict {
                    self.deepen_sets(sets, table, &of_table(table));
                }
            }
            Stmt::Select(select) if select.joins.is_empty() => {
                let source = select.from.as_ref().and_then(|s| s.table());
                if let Some(table) = source.and_then(|name| schema.table(name)) {
                    self.deepen_filter(&mut select.filter, &of_table(table));
                }
            }
            _ => {}
        }
        statement
    }

    /// Combines the condition with a nested one, or replaces it. A shallow one of two is kept, so
    /// that statements keep their effect.
    fn deepen_filter(&mut self, filter: &mut Option<Expr>, around: &Surroundings<'a>) {
        let depth = self.depth;
        let deep = self.condition(around, depth);
        *filter = Some(match filter.take() {
            Some(shallow) => match self.random.weighted(&[60, 25, 15]) {
                0 => Expr::binary(Binary::Or, shallow, deep),
                1 => deep,
                _ => shallow.and(deep),
            },
            None => deep,
        });
    }

    fn deepen_sets(
        &mut self,
        sets: &mut [(String, Expr)],
        table: &'a Table,
        around: &Surroundings<'a>,
    ) {
        let depth = self.depth;
        for (name, value) in sets {
            let Some(column) = free_column(table, name) else { continue };
            if self.random.chance(60)
                && let Some(new) = self.storable(column, around, depth)
            {
                *value = new;
            }
        }
    }

    fn deepen_cell(&mut self, table: &'a Table, name: &str, cell: &mut Expr) {
        let Some(column) = free_column(table, name) else { return };
        let depth = self.depth.min(3);
        if self.random.chance(25)
            && let Some(new) = self.storable(column, &Surroundings::default(), depth)
        {
            *cell = new;
        }
    }

    /// A value that the column can store without an error.
    fn storable(
        &mut self,
        column: &Column,
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Option<Expr> {
        let class = column.of_type.class();
        if matches!(class, Class::Blob | Class::Other) {
            return None;
        }
        let value = self.value(class, true, around, depth);
        let value = match &column.of_type {
            // Repeated updates must not reach the limits of the type.
            Type::Int | Type::BigInt => Expr::binary(Binary::Modulo, value, Expr::int(1000)),
            Type::Text(Some(length)) => {
                let arguments = vec![value, Expr::int(1), Expr::int(i64::from(*length))];
                Expr::Call(Function::Named("substr".into()), arguments)
            }
            _ => value,
        };
        Some(match column.not_null {
            true => {
                let instead = Expr::Literal(self.likely_value(column));
                Expr::Call(Function::Coalesce, vec![value, instead])
            }
            false => value,
        })
    }
}

/// A column that is in no key and refers to no other table.
fn free_column<'t>(table: &'t Table, name: &str) -> Option<&'t Column> {
    let refers = table.foreign_keys.iter().any(|f| f.column == name);
    let bound = refers || table.is_in_a_key(name);
    table.column(name).filter(|_| !bound)
}

fn of_table(table: &Table) -> Surroundings<'_> {
    let own = table.columns.iter().map(|c| VisibleColumn::of_table(&table.name, c)).collect();
    Surroundings { own, ..Surroundings::default() }
}
