//! Result tables as libpq's PQprint draws them: columns as wide as their
//! widest cell, numbers to the right, a blank line at the end.

/// An empty string for a result without columns, as the original has it.
pub fn print_table(columns: &[String], rows: &[Vec<Option<String>>]) -> String {
    if columns.is_empty() {
        return String::new();
    }
    let cell = |row: &Vec<Option<String>>, column: usize| -> String {
        row.get(column).and_then(Option::clone).unwrap_or_default()
    };
    let mut text = String::new();
    // Widths count bytes, not characters: C's printf does.
    let widths: Vec<usize> = (0..columns.len())
        .map(|c| rows.iter().map(|r| cell(r, c).len()).max().unwrap_or(0).max(columns[c].len()))
        .collect();
    let left: Vec<bool> =
        (0..columns.len()).map(|c| rows.iter().any(|r| !looks_numeric(&cell(r, c)))).collect();
    let mut line = |cells: &[String]| {
        for (c, cell) in cells.iter().enumerate() {
            if c > 0 {
                text.push('|');
            }
            let padding = " ".repeat(widths[c].saturating_sub(cell.len()));
            match left[c] {
                true => text.extend([cell.as_str(), &padding]),
                false => text.extend([padding.as_str(), cell]),
            }
        }
        text.push('\n');
    };
    line(columns);
    let dashes: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    line(&[dashes.join("+")]);
    for row in rows {
        let cells: Vec<String> = (0..columns.len()).map(|c| cell(row, c)).collect();
        line(&cells);
    }
    let plural = if rows.len() == 1 { "" } else { "s" };
    text.push_str(&format!("({} row{plural})\n\n", rows.len()));
    text
}

/// Empty cells and NULLs say nothing against a column of numbers.
fn looks_numeric(cell: &str) -> bool {
    let fits = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'E' | 'e' | ' ' | '-');
    cell.is_empty()
        || (cell.chars().all(fits)
            && !cell.starts_with(['E', 'e'])
            && cell.ends_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_right_and_text_goes_left() {
        let row = |a: &str, b: Option<&str>| vec![Some(a.to_string()), b.map(str::to_string)];
        let columns = ["id".to_string(), "name".to_string()];
        assert_eq!(
            print_table(&columns, &[row("1", Some("x")), row("100", None)]),
            " id|name\n---+----\n  1|x   \n100|    \n(2 rows)\n\n"
        );
        assert_eq!(print_table(&columns, &[]), "id|name\n--+----\n(0 rows)\n\n");
        assert_eq!(print_table(&[], &[vec![]]), "");
    }
}
