//! The added columns, and their contents before the first write.

use super::{Instrument, Probe, RowsOf, Sent};
use isolde_sql::dialect::Family;
use isolde_sql::fixture::Fixture;
use isolde_sql::{
    Binary, Column, Expr, Function, Literal, Select, SelectItem, Source, Table, Type,
};

/// Between a row and the numbers of the statements that wrote it. Neither has it.
pub(super) const WRITTEN_BY: char = '@';
/// Before each number of a list.
pub(super) const NEXT: char = ',';
/// Between the cells of an image, and behind it.
pub(super) const CELL: char = '/';
pub(super) const IMAGE: char = '|';
/// An image's cell that holds NULL; others are hexadecimal digits.
pub(super) const NULL_CELL: &str = "-";

/// The name of an added column contains the index of its table, so that it is never
/// ambiguous in a join.
pub(super) fn row_column(table: usize) -> String {
    format!("isolde_row_{table}")
}

pub(super) fn writes_column(table: usize) -> String {
    format!("isolde_writes_{table}")
}

pub(super) fn origin_column(table: usize) -> String {
    format!("isolde_origin_{table}")
}

pub(super) fn past_column(table: usize) -> String {
    format!("isolde_past_{table}")
}

pub(super) fn keys_column(table: usize) -> String {
    format!("isolde_keys_{table}")
}

impl Instrument {
    /// The name of a row in reports. Rows of the setup and inserted rows have different
    /// forms: `t#3`, `t#17.0`.
    pub fn row_name(&self, row: &str) -> String {
        let digits = row.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let table = row[..digits].parse::<usize>().ok();
        let table = table.and_then(|t| self.schema.tables.get(t));
        let name = table.map_or("", |t| t.name.as_str());
        let number = row[digits..].trim_start_matches(['r', 's']).trim_end_matches('+');
        format!("{name}#{number}")
    }

    /// The columns that a table gets.
    pub(super) fn added_columns(&self, table: usize) -> Vec<Column> {
        // In MySQL's family texts of the connection, of the database and of functions may have
        // different collations. They can be mixed with a binary one.
        let of_type = |base: &str| match self.capabilities.family {
            Family::Mysql => {
                Type::Other(format!("{base} character set utf8mb4 collate utf8mb4_bin"))
            }
            _ => Type::Text(None),
        };
        let column = |name: String, of_type: Type| Column { name, of_type, ..Column::default() };
        let texts = [row_column(table), writes_column(table), origin_column(table)];
        let mut columns: Vec<Column> = texts.map(|name| column(name, of_type("text"))).into();
        if !self.capabilities.returns_written {
            columns.push(column(past_column(table), of_type("mediumtext")));
        }
        if !self.changing_columns(table).is_empty() {
            columns.push(column(keys_column(table), of_type("text")));
        }
        columns
    }

    /// The fixture with the added columns in its tables; its rows are written by no statement.
    pub fn fixture(&self, fixture: &Fixture) -> Fixture {
        let mut observed = fixture.clone();
        for (place, table) in observed.schema.tables.iter_mut().enumerate() {
            table.columns.extend(self.added_columns(place));
        }
        for (place, rows) in observed.rows.iter_mut().enumerate() {
            let added = self.added_columns(place);
            for (number, row) in rows.iter_mut().enumerate() {
                let cell = |column: &Column| match &column.name {
                    name if *name == row_column(place) => first_row(place, number),
                    name if *name == keys_column(place) => self.first_image(place, row),
                    _ => String::new(),
                };
                let cells: Vec<Literal> =
                    added.iter().map(|column| Literal::Text(cell(column))).collect();
                row.extend(cells);
            }
        }
        observed
    }

    /// Reads whole tables, for the first rows and for the last.
    pub fn reads_of_tables(&self) -> Vec<Sent> {
        let tables =
            self.schema.tables.iter().enumerate().filter(|(place, _)| self.followed[*place]);
        tables.map(|(place, table)| self.stored(place, table)).collect()
    }

    fn stored(&self, place: usize, table: &Table) -> Sent {
        let select = Select {
            items: self.whole_row(place, &table.name),
            from: Some(Source::named(&table.name)),
            ..Select::default()
        };
        let what = RowsOf::Stored;
        let probe = Probe::Rows { own_columns: 0, table: place, what, predicate: None };
        Sent::new(select, probe)
    }

    /// All that is known of a row: its version, its origin, its past where that is kept,
    /// and its columns.
    pub(super) fn whole_row(&self, table: usize, qualifier: &str) -> Vec<SelectItem> {
        let column = |name: &str| column_of(qualifier, name).into();
        let mut items: Vec<SelectItem> =
            vec![self.version(table, qualifier).into(), column(&origin_column(table))];
        if !self.capabilities.returns_written {
            items.push(column(&past_column(table)));
        }
        items.extend(self.schema.tables[table].columns.iter().map(|c| column(&c.name)));
        items
    }

    /// The row and its list, as one text.
    pub(super) fn version(&self, table: usize, qualifier: &str) -> Expr {
        let version = [
            column_of(qualifier, &row_column(table)),
            text(&WRITTEN_BY.to_string()),
            column_of(qualifier, &writes_column(table)),
        ];
        self.joined(version.into_iter().chain(self.pending(table, qualifier)).collect())
    }

    /// Texts, one behind the other.
    pub(super) fn joined(&self, parts: Vec<Expr>) -> Expr {
        if self.capabilities.family == Family::Mysql {
            let concat = Function::Named("concat".into());
            let flat = parts.into_iter().flat_map(|part| match part {
                Expr::Call(function, parts) if function == concat => parts,
                other => vec![other],
            });
            return Expr::Call(concat.clone(), flat.collect());
        }
        let together = |left, right| Expr::binary(Binary::Concat, left, right);
        parts.into_iter().reduce(together).unwrap_or_else(|| text(""))
    }
}

/// A row of the setup: its table and its number.
fn first_row(table: usize, number: usize) -> String {
    format!("{table}r{number}")
}

pub(super) fn text(text: &str) -> Expr {
    Expr::Literal(Literal::text(text))
}

pub(super) fn column_of(qualifier: &str, name: &str) -> Expr {
    Expr::Column { qualifier: Some(qualifier.into()), name: name.into() }
}
