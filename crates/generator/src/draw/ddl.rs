//! Draws DDL statements inside a case.

use super::Sampler;
use isolde_sql::Feature;
use isolde_sql::{Ddl, Expr, Index, IndexPart, Stmt, Table, Type};

impl<'a> Sampler<'a> {
    /// Draws a DDL statement; none if it does not fit the tables.
    pub fn ddl(&mut self) -> Option<Stmt> {
        let table = self.any_table();
        let kinds = [
            (Feature::CreateIndex, 40),
            (Feature::AddColumn, 30),
            (Feature::DropIndex, 15),
            (Feature::Truncate, 15),
        ];
        let weights = kinds.map(|(f, weight)| if self.has(f) { weight } else { 0 });
        match kinds[self.random.weighted(&weights)].0 {
            Feature::CreateIndex => self.create_index(table),
            Feature::AddColumn => Some(Stmt::Ddl(Ddl::AddColumn {
                table: table.name.clone(),
                column: self.fresh_name("z"),
                of_type: self.random.pick(&[Type::Int, Type::Text(Some(20))]).clone(),
            })),
            Feature::DropIndex => self.drop_index(table),
            _ => {
                // A table that a foreign key refers to cannot be truncated.
                let parent = self.schema.children(&table.name).next().is_some();
                (!parent).then(|| Stmt::Ddl(Ddl::Truncate(table.name.clone())))
            }
        }
    }

    fn create_index(&mut self, table: &'a Table) -> Option<Stmt> {
        let fit = |c: &&isolde_sql::Column| c.of_type.fits_a_key();
        let columns: Vec<String> = table.writable().filter(fit).map(|c| c.name.clone()).collect();
        if columns.is_empty() {
            return None;
        }
        let chosen = self.random.some_of(&columns, 2);
        let part = |name: &String| IndexPart { of: Expr::column(name), descending: false };
        let parts = chosen.iter().map(part).collect();
        let unique = table.partitioned_by.is_none() && self.random.chance(15);
        let name = self.fresh_name("n");
        let index = Index { name, unique, parts, only_where: None };
        Some(Stmt::Ddl(Ddl::CreateIndex { table: table.name.clone(), index }))
    }

    /// Unique indexes stay, because upserts name their columns, and so do those that a foreign key
    /// may need.
    fn drop_index(&mut self, table: &'a Table) -> Option<Stmt> {
        let foreign = |column: &String| table.foreign_keys.iter().any(|f| f.column == *column);
        let free = |i: &&Index| !i.unique && !i.columns().iter().any(foreign);
        let indexes: Vec<String> =
            table.indexes.iter().filter(free).map(|i| i.name.clone()).collect();
        let index = self.random.pick_any(&indexes)?.clone();
        Some(Stmt::Ddl(Ddl::DropIndex { table: Some(table.name.clone()), index }))
    }
}
