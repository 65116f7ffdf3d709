//! Parses SQL into typed statements.
//!
//! `sqlparser` takes the text apart, and what it finds is moved into our own
//! types field by field: whatever has no room there makes the whole statement
//! opaque. It is better to know nothing of a statement than something wrong.
//! Transaction control and locking clauses, of which `sqlparser` knows too
//! little, are read from their words ([`control`], `locking`).

mod constraint;
mod control;
mod expression;
mod from;
mod function;
mod locking;
mod merge;
mod name;
mod schema;
#[cfg(test)]
mod schema_tests;
mod select;
mod sqlite;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod write;

pub use control::control;
pub use schema::{SchemaRead, Unread, schema};

use crate::ast::{Ddl, Stmt};
use crate::dialect::Family;
use crate::lexer;
use sqlparser::ast::{AlterTable, AlterTableOperation, ObjectType, Statement, Truncate};
use sqlparser::dialect::{Dialect, DuckDbDialect, GenericDialect, MySqlDialect, PostgreSqlDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

/// The maximum number of tokens of a statement. Statements written by hand have fewer, and trees
/// that `sqlparser` builds without recursion stay within the stack.
const MOST_TOKENS: usize = 4000;

/// The maximum depth of an expression.
const DEEPEST: usize = 120;

/// Parses one statement in the SQL of a family; none if any part of it is not supported.
pub fn statement(text: &str, family: Family) -> Option<Stmt> {
    if let Some(control) = control(text) {
        return Some(control);
    }
    if let Some((name, inner)) = control::prepared(text) {
        return Some(Stmt::Prepare { name, statement: Box::new(statement(&inner, family)?) });
    }
    // TABLE t is SELECT * FROM t.
    if let ["table", name] = lexer::pieces(&text.to_ascii_lowercase()).as_slice()
        && family == Family::Postgres
    {
        return statement(&format!("select * from {name}"), family);
    }
    let (rest, locking) = locking::split_off(text);
    let (rest, upsert) = locking::without_upsert(rest, family);
    let reader = Reader::new(family);
    let mut read = reader.statement(parse(&rest, family)?)?;
    if upsert {
        write::make_replace(&mut read)?;
    }
    match locking {
        Some(locking) => locking::attach(read, locking),
        None => Some(read),
    }
}

/// The name and the text of the statement that a PREPARE prepares.
pub fn prepared_text(text: &str) -> Option<(String, String)> {
    control::prepared(text)
}

/// Parses a text that is one statement with `sqlparser`.
fn parse(text: &str, family: Family) -> Option<Statement> {
    // MySQL executes such comments, other engines do not.
    if text.contains("/*!") || has_ambiguous_hexadecimal(text, family) {
        return None;
    }
    let dialect = dialect(family);
    let tokens = Tokenizer::new(dialect, text).tokenize_with_location().ok()?;
    if tokens.len() > MOST_TOKENS {
        return None;
    }
    let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens);
    let mut statements = parser.parse_statements().ok()?;
    let only = statements.pop()?;
    // The parser stops at END and ignores the rest.
    let all = parser.peek_token_ref().token == Token::EOF;
    (statements.is_empty() && all).then_some(only)
}

/// Whether the text has `0x10`, a number in SQLite, which `sqlparser` does not distinguish from
/// `x'10'`.
fn has_ambiguous_hexadecimal(text: &str, family: Family) -> bool {
    let hexadecimal = |word: &str| word.starts_with("0x") || word.starts_with("0X");
    family != Family::Mysql && lexer::pieces(text).iter().any(|piece| hexadecimal(piece))
}

fn dialect(family: Family) -> &'static dyn Dialect {
    match family {
        Family::Sqlite => &sqlite::Sqlite,
        Family::Postgres => &PostgreSqlDialect {},
        Family::Mysql => &MySqlDialect {},
        Family::Duckdb => &DuckDbDialect {},
        Family::Other => &GenericDialect {},
    }
}

/// A part of a schema, or the reason why it is not read.
type Read<T> = Result<T, String>;

/// Moves the syntax tree of `sqlparser` into our types.
#[derive(Clone, Copy)]
struct Reader {
    family: Family,
}

impl Reader {
    fn new(family: Family) -> Reader {
        Reader { family }
    }
}

impl Reader {
    fn statement(self, parsed: Statement) -> Option<Stmt> {
        match parsed {
            Statement::Query(query) => Some(Stmt::Select(self.query(*query, DEEPEST)?)),
            Statement::Insert(insert) => Some(Stmt::from(self.insert(insert)?)),
            Statement::Update(update) => Some(Stmt::from(self.update(update)?)),
            Statement::Delete(delete) => Some(Stmt::from(self.delete(delete)?)),
            Statement::Merge(merge) => Some(Stmt::from(self.merge(merge)?)),
            Statement::Truncate(truncate) => self.truncate(truncate),
            Statement::AlterTable(alter) => self.add_column(alter),
            Statement::CreateIndex(create) => {
                let (table, index) = self.create_index(create).ok()?;
                Some(Stmt::Ddl(Ddl::CreateIndex { table, index }))
            }
            Statement::Drop {
                object_type: ObjectType::Index,
                if_exists: false,
                names,
                cascade: false,
                restrict: false,
                purge: false,
                temporary: false,
                table,
            } => {
                let [index] = names.as_slice() else { return None };
                let table = match table {
                    Some(table) => Some(self.table_name(&table)?),
                    None => None,
                };
                Some(Stmt::Ddl(Ddl::DropIndex { table, index: self.column_of(index)? }))
            }
            _ => None,
        }
    }

    fn truncate(self, truncate: Truncate) -> Option<Stmt> {
        let Truncate {
            table_names,
            partitions: None,
            table: _,
            if_exists: false,
            identity: None,
            cascade: None,
            on_cluster: None,
        } = truncate
        else {
            return None;
        };
        match table_names.as_slice() {
            [target] if !target.only && !target.has_asterisk => {
                Some(Stmt::Ddl(Ddl::Truncate(self.table_name(&target.name)?)))
            }
            _ => None,
        }
    }

    /// ADD COLUMN with a name and a type; nothing else is supported.
    fn add_column(self, alter: AlterTable) -> Option<Stmt> {
        let AlterTable {
            name,
            if_exists: false,
            only: false,
            operations,
            location: None,
            on_cluster: None,
            table_type: None,
            end_token: _,
        } = alter
        else {
            return None;
        };
        let mut operations = operations.into_iter();
        let Some(AlterTableOperation::AddColumn {
            column_keyword: _,
            if_not_exists: false,
            column_def,
            column_position: None,
        }) = operations.next()
        else {
            return None;
        };
        if operations.next().is_some() || !column_def.options.is_empty() {
            return None;
        }
        Some(Stmt::Ddl(Ddl::AddColumn {
            table: self.table_name(&name)?,
            column: self.column(&column_def.name)?,
            of_type: self.of_type(&column_def.data_type)?,
        }))
    }
}
