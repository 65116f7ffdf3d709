//! Draws the first rows of a case.

use isolde_model::random::Random;
use isolde_sql::{Literal, Schema, Table};

use isolde_sql::fixture::Rows;

/// Draws rows for each table, with one cell per column. Cells of generated columns hold NULL and
/// are never written.
///
/// Nested statements (a depth above 0) get more rows, so that some pass their conditions.
pub fn rows(random: &mut Random, schema: &Schema, depth: usize) -> Vec<Rows> {
    let weights: &[usize] = if depth == 0 { &[8, 42, 50] } else { &[3, 14, 55, 28] };
    let wanted = |random: &mut Random| match random.weighted(weights) {
        0 => 0,
        1 => random.between(1, 3),
        2 => random.between(4, 8),
        _ => random.between(9, 40),
    };
    draw_rows(random, schema, wanted)
}

/// Draws up to `count` rows per table; fewer if keys collide.
pub fn many_rows(random: &mut Random, schema: &Schema, count: usize) -> Vec<Rows> {
    draw_rows(random, schema, |_| count)
}

fn draw_rows(
    random: &mut Random,
    schema: &Schema,
    wanted: impl Fn(&mut Random) -> usize,
) -> Vec<Rows> {
    let mut all: Vec<Rows> = Vec::new();
    for table in &schema.tables {
        let wanted = wanted(random);
        let mut rows: Rows = Vec::new();
        for _ in 0..wanted {
            // After a few attempts with colliding keys the row is left out.
            let fitting = (0..6).find_map(|_| {
                let row = draw_row(random, schema, table, &all);
                (!collides(table, &rows, &row)).then_some(row)
            });
            rows.extend(fitting);
        }
        all.push(rows);
    }
    all
}

fn draw_row(random: &mut Random, schema: &Schema, table: &Table, all: &[Rows]) -> Vec<Literal> {
    let mut row = Vec::new();
    for column in &table.columns {
        let foreign = table.foreign_keys.iter().find(|f| f.column == column.name);
        row.push(if column.generated.is_some() {
            Literal::Null
        } else if let Some(key) = foreign {
            let parents = parent_values(schema, &key.parent, &key.parent_column, all);
            let null = parents.is_empty() || random.chance(15);
            if null { Literal::Null } else { random.pick(&parents).clone() }
        } else if !column.not_null && random.chance(15) {
            Literal::Null
        } else {
            random.pick(&column.pool).clone()
        });
    }
    row
}

fn parent_values(schema: &Schema, table: &str, column: &str, all: &[Rows]) -> Vec<Literal> {
    let place = schema.tables.iter().position(|t| t.name == table);
    let Some(place) = place else { return Vec::new() };
    let cell = schema.tables[place].columns.iter().position(|c| c.name == column);
    let Some(cell) = cell else { return Vec::new() };
    all[place].iter().map(|row| row[cell].clone()).collect()
}

/// Whether another row has one of its keys. NULLs never collide.
fn collides(table: &Table, rows: &Rows, row: &[Literal]) -> bool {
    table.keys().iter().any(|key| {
        let cells: Vec<usize> = key
            .iter()
            .filter_map(|name| table.columns.iter().position(|c| c.name == *name))
            .collect();
        let nulls = cells.iter().any(|c| row[*c].is_null());
        !nulls && rows.iter().any(|other| cells.iter().all(|c| other[*c] == row[*c]))
    })
}
