//! Statements of TxCheck's generator, collected on MariaDB: a measure of what the reader can read.

use isolde_catalog::Dialect;
use isolde_sql::dialect::Family;
use isolde_sql::read;

/// The statements of the file, without its schemas and rows.
fn statements() -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut section = "";
    for line in include_str!("data/txcheck-effective.sql").lines() {
        match line.strip_prefix("-- ") {
            Some(comment) => section = comment,
            None if line.is_empty() => {}
            None if section.ends_with(": statements") => found.push(line.trim_end_matches(';')),
            None => {}
        }
    }
    found
}

#[test]
fn statements_of_txcheck_are_read_and_survive_rendering() {
    let dialect = Dialect::for_engine("mariadb", "10.11");
    let statements = statements();
    assert!(statements.len() > 300, "only {} statements", statements.len());
    let mut unread = Vec::new();
    for text in &statements {
        let Some(statement) = read::statement(text, Family::Mysql) else {
            unread.push(*text);
            continue;
        };
        let written = statement.render(&dialect);
        let again = read::statement(&written, Family::Mysql);
        assert_eq!(again, Some(statement), "{text}\nis rendered as\n{written}");
    }
    let share = unread.len() as f64 / statements.len() as f64;
    assert!(share <= 0.03, "{:.1}% are not read:\n{}", share * 100.0, unread.join("\n"));
}
