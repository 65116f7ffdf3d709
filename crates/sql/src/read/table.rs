//! Parses CREATE TABLE. Comments are dropped; any other unsupported part makes the whole table
//! unsupported.

use super::{DEEPEST, Read, Reader, parse};
use crate::ast::{Binary, Column, Expr, Generated, Literal, Numbered, Table, Type, Unary};
use crate::dialect::Family;
use crate::lexer;
use crate::render::PARTS;
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{
    self, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, CreateTable,
    CreateTableOptions, ForValues, GeneratedAs, GeneratedExpressionMode, PartitionBoundValue,
    SqlOption, Statement,
};

/// The result of CREATE TABLE.
pub(super) enum CreatedTable {
    Table(Box<Table>, Option<PartitionKind>),
    /// A partition of a PostgreSQL table.
    Part {
        of: String,
        name: String,
        values: ForValues,
    },
}

/// How a table is divided into partitions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PartitionKind {
    Hash,
    /// By lists or ranges of values. Where the bounds are, and with them whether there is
    /// a partition for every row, the partitions say.
    Values,
    /// By ranges that have a place for every row.
    AllValues,
}

impl Reader {
    /// Parses CREATE TABLE. The error has the name of the table, as far as it is known, and the
    /// reason.
    pub(super) fn create_table(self, text: &str) -> Result<CreatedTable, (Option<String>, String)> {
        let (rest, partition) = split_off_partition(text);
        // The PostgreSQL dialect of `sqlparser` lacks virtual columns.
        let generic = || parse(rest, Family::Other).filter(|_| self.family == Family::Postgres);
        let parsed = parse(rest, self.family).or_else(generic);
        let Some(Statement::CreateTable(mut create)) = parsed else {
            let name = lexer::outer_words(text).iter().find_map(|(_, w)| self.name_of_a_table(w));
            return Err((name, "it cannot be parsed".into()));
        };
        let Some(name) = self.table_name(&create.name) else {
            return Err((None, format!("its name is not read: {}", create.name)));
        };
        let named = |reason: String| (Some(name.clone()), reason);
        if let (Some(of), Some(values)) = (&create.partition_of, &create.for_values) {
            let part = self.part(&create, of, values).filter(|_| partition.is_none());
            let above = self.table_name(of);
            return part.ok_or((above, "a part with more than its bounds".into()));
        }
        let (partitioned_by, kind) = match partition {
            None => (None, None),
            Some(clause) => {
                let (column, kind) = self.partition(&clause).map_err(named)?;
                (Some(column), Some(kind))
            }
        };
        if let Some(columns) = self.columns_of_query(&create) {
            create.columns = columns;
            create.query = None;
        }
        let mut table = Table { name: name.clone(), partitioned_by, ..Table::default() };
        self.fill(&mut table, create).map_err(named)?;
        Ok(CreatedTable::Table(Box::new(table), kind))
    }

    /// The columns of CREATE TABLE AS, where each is a cast with a name.
    fn columns_of_query(self, create: &CreateTable) -> Option<Vec<ColumnDef>> {
        let query = create.query.as_ref().filter(|_| create.columns.is_empty())?;
        let ast::SetExpr::Select(select) = &*query.body else { return None };
        let column = |item: &ast::SelectItem| match item {
            ast::SelectItem::ExprWithAlias {
                expr: ast::Expr::Cast { data_type, .. },
                alias,
                ..
            } => Some(ColumnDef {
                name: alias.clone(),
                data_type: data_type.clone(),
                options: Vec::new(),
            }),
            _ => None,
        };
        let columns = select.projection.iter().map(column).collect::<Option<_>>();
        columns.filter(|_| self.family == Family::Postgres)
    }

    /// The word as a table name; none for the keywords that precede the name.
    fn name_of_a_table(self, word: &str) -> Option<String> {
        const BEFORE: [&str; 9] =
            ["create", "temporary", "temp", "unlogged", "global", "local", "table", "if", "not"];
        let word = ast::Ident::new(word);
        let name = self.table_ident(&word)?;
        let before = BEFORE.iter().chain(&["exists", "or", "replace"]);
        (!before.into_iter().any(|w| word.value.eq_ignore_ascii_case(w))).then_some(name)
    }

    fn part(
        self,
        create: &CreateTable,
        of: &ast::ObjectName,
        values: &ForValues,
    ) -> Option<CreatedTable> {
        let bare = CreateTableBuilder::new(create.name.clone())
            .partition_of(create.partition_of.clone())
            .for_values(create.for_values.clone())
            .build();
        let (name, of) = (self.table_name(&create.name)?, self.table_name(of)?);
        (bare == *create).then(|| CreatedTable::Part { of, name, values: values.clone() })
    }

    /// The column of a partition clause, and the kind of the partitions.
    fn partition(self, clause: &[String]) -> Read<(String, PartitionKind)> {
        let pieces: Vec<&str> = clause.iter().map(String::as_str).collect();
        let parts = PARTS.to_string();
        match (pieces.as_slice(), self.family) {
            (["partition", "by", "hash", "(", column, ")"], Family::Postgres) => {
                Ok(((*column).into(), PartitionKind::Hash))
            }
            (["partition", "by", "list" | "range", "(", column, ")"], Family::Postgres) => {
                Ok(((*column).into(), PartitionKind::Values))
            }
            (["partition", "by", "hash", "(", column, ")", "partitions", n], Family::Mysql)
                if *n == parts =>
            {
                Ok(((*column).into(), PartitionKind::Hash))
            }
            (
                ["partition", "by", "range", "(", column, ")", "(", .., "maxvalue", ")"],
                Family::Mysql,
            ) if !pieces.contains(&"subpartition") => {
                Ok(((*column).into(), PartitionKind::AllValues))
            }
            _ => Err("its partitions are not read".into()),
        }
    }

    /// The condition of the rows of one partition by list or range; none if it is not read.
    /// The default partition takes all other rows.
    pub(super) fn bounds(self, column: &str, values: ForValues) -> Option<Expr> {
        let column = || Box::new(Expr::Column { qualifier: None, name: column.into() });
        let literal = |e: ast::Expr| match self.expr(e, DEEPEST)? {
            Expr::Literal(literal) => Some(Expr::Literal(literal)),
            _ => None,
        };
        match values {
            ForValues::In(values) => {
                let items: Vec<Expr> = values.into_iter().map(literal).collect::<Option<_>>()?;
                let null = Expr::Literal(Literal::Null);
                let takes_null = items.contains(&null);
                let items: Vec<Expr> = items.into_iter().filter(|i| *i != null).collect();
                let listed = Expr::InList { of: column(), items: items.clone(), negated: false };
                let is_null = Expr::unary(Unary::IsNull, *column());
                match (items.is_empty(), takes_null) {
                    (false, false) => Some(listed),
                    (false, true) => Some(Expr::binary(Binary::Or, is_null, listed)),
                    (true, true) => Some(is_null),
                    (true, false) => None,
                }
            }
            ForValues::From { mut from, mut to } => {
                let (Some(from), Some(to), true, true) =
                    (from.pop(), to.pop(), from.is_empty(), to.is_empty())
                else {
                    return None;
                };
                let bound = |sign: Binary, value: PartitionBoundValue| match value {
                    PartitionBoundValue::Expr(value) => {
                        Some(Some(Expr::binary(sign, *column(), literal(value)?)))
                    }
                    PartitionBoundValue::MinValue if sign == Binary::AtLeast => Some(None),
                    PartitionBoundValue::MaxValue if sign == Binary::Less => Some(None),
                    PartitionBoundValue::MinValue | PartitionBoundValue::MaxValue => None,
                };
                let bounds = [bound(Binary::AtLeast, from)?, bound(Binary::Less, to)?];
                let known = Expr::unary(Unary::IsNotNull, *column());
                let both = bounds.into_iter().flatten();
                Some(both.fold(known, |all, one| Expr::binary(Binary::And, all, one)))
            }
            ForValues::Default => Some(Expr::Literal(Literal::Bool(true))),
            ForValues::With { .. } => None,
        }
    }

    fn fill(self, table: &mut Table, create: CreateTable) -> Read<()> {
        let understood = CreateTableBuilder::new(create.name.clone())
            .if_not_exists(create.if_not_exists)
            .columns(create.columns.clone())
            .constraints(create.constraints.clone())
            .table_options(create.table_options.clone())
            .hive_formats(
                create.hive_formats.clone().filter(|formats| *formats == Default::default()),
            )
            .without_rowid(create.without_rowid)
            .strict(create.strict)
            .build();
        if understood != create {
            return Err("it has a clause that is not read".into());
        }
        if create.columns.is_empty() {
            return Err("it has no columns".into());
        }
        for column in create.columns {
            self.column_definition(table, column)?;
        }
        for constraint in create.constraints {
            self.constraint(table, constraint)?;
        }
        table.options = options(create.table_options)?;
        match (create.without_rowid, create.strict) {
            (false, false) => {}
            (true, false) => table.options.push("without rowid".into()),
            (false, true) => table.options.push("strict".into()),
            (true, true) => table.options.push("without rowid, strict".into()),
        }
        self.complete(table)
    }

    /// Applies ALTER TABLE of a setup: new columns and constraints.
    pub(super) fn alter_table(self, table: &mut Table, alter: AlterTable) -> Read<()> {
        for operation in alter.operations {
            match operation {
                AlterTableOperation::AddColumn { column_def, column_position: None, .. } => {
                    self.column_definition(table, column_def)?;
                }
                AlterTableOperation::AddConstraint { constraint, not_valid: false } => {
                    self.constraint(table, constraint)?;
                }
                _ => return Err("it is altered".into()),
            }
        }
        self.complete(table)
    }

    /// Adds what follows from types and keys, and checks the columns of the keys.
    fn complete(self, table: &mut Table) -> Read<()> {
        self.number_by_type(table);
        if self.family != Family::Sqlite {
            for column in &mut table.columns {
                column.not_null |= table.primary_key.contains(&column.name);
            }
        }
        let known = |name: &String| table.column(name).is_some();
        let keys = table.primary_key.iter().chain(table.unique.iter().flatten());
        let all = keys.chain(&table.partitioned_by).all(known);
        all.then_some(()).ok_or_else(|| "a key names a column that it does not have".into())
    }

    /// Marks columns whose type makes the engine number them.
    fn number_by_type(self, table: &mut Table) {
        let Table { columns, primary_key, options, .. } = table;
        let rows_have_numbers = !options.iter().any(|o| o.starts_with("without rowid"));
        for column in columns.iter_mut().filter(|c| c.numbered.is_none()) {
            let Type::Other(of_type) = &column.of_type else { continue };
            let key = primary_key.len() == 1 && primary_key[0] == column.name;
            column.numbered = match (of_type.as_str(), self.family) {
                ("integer", Family::Sqlite) if key && rows_have_numbers => Some(Numbered::RowId),
                ("serial" | "bigserial" | "smallserial", Family::Postgres) => {
                    Some(Numbered::Serial)
                }
                _ => None,
            };
        }
    }

    fn column_definition(self, table: &mut Table, definition: ColumnDef) -> Read<()> {
        let ColumnDef { name, data_type, options } = definition;
        let name = self.column(&name).ok_or_else(|| format!("the name of column {name}"))?;
        let of_type =
            self.of_type(&data_type).ok_or_else(|| format!("the type of {name}: {data_type}"))?;
        let mut column = Column { name: name.clone(), of_type, ..Column::default() };
        for option in options {
            let unread = || format!("what is said of {name}");
            match option.option {
                ColumnOption::Null | ColumnOption::Comment(_) => {}
                ColumnOption::NotNull => column.not_null = true,
                ColumnOption::Default(value) => {
                    let value = self.expr(value, DEEPEST);
                    let Some(Expr::Literal(value)) = value else {
                        return Err(format!("the default of {name}"));
                    };
                    column.default = Some(of_the_type(value, &column.of_type, self.family));
                }
                ColumnOption::PrimaryKey(key) if table.primary_key.is_empty() => {
                    self.key_is_plain(&key).then_some(()).ok_or_else(unread)?;
                    table.primary_key = vec![name.clone()];
                }
                ColumnOption::Unique(unique) => {
                    let plain = self.is_plain_unique(&unique) && unique.columns.is_empty();
                    plain.then_some(()).ok_or_else(unread)?;
                    table.unique.push(vec![name.clone()]);
                }
                ColumnOption::ForeignKey(mut key) if self.family != Family::Mysql => {
                    key.columns = vec![ast::Ident::new(name.clone())];
                    table.foreign_keys.push(self.foreign_key(key)?);
                }
                ColumnOption::Check(check) => table.checks.push(self.check(check)?),
                ColumnOption::DialectSpecific(tokens) => {
                    let words: Vec<String> =
                        tokens.iter().map(|t| t.to_string().to_ascii_lowercase()).collect();
                    column.numbered = Some(match words.join(" ").as_str() {
                        "auto_increment" => Numbered::AutoIncrement,
                        "autoincrement" => Numbered::Autoincrement,
                        _ => return Err(unread()),
                    });
                }
                ColumnOption::Generated {
                    generated_as,
                    sequence_options,
                    generation_expr,
                    generation_expr_mode,
                    generated_keyword: _,
                } => {
                    if sequence_options.is_some_and(|options| !options.is_empty()) {
                        return Err(unread());
                    }
                    match (generation_expr, generated_as) {
                        (Some(from), _) => {
                            let from = self.expr(from, DEEPEST).ok_or_else(unread)?;
                            let stored = self.is_stored(generation_expr_mode).ok_or_else(unread)?;
                            column.generated = Some(Generated { from, stored });
                        }
                        (None, GeneratedAs::Always) => {
                            column.numbered = Some(Numbered::IdentityAlways);
                        }
                        (None, GeneratedAs::ByDefault) => {
                            column.numbered = Some(Numbered::IdentityByDefault);
                        }
                        (None, GeneratedAs::ExpStored) => return Err(unread()),
                    }
                }
                _ => return Err(unread()),
            }
        }
        table.columns.push(column);
        Ok(())
    }

    /// Whether a generated column is stored, with the default of the family.
    fn is_stored(self, mode: Option<GeneratedExpressionMode>) -> Option<bool> {
        match (mode, self.family) {
            (Some(GeneratedExpressionMode::Stored), _) => Some(true),
            (Some(GeneratedExpressionMode::Virtual), _) => Some(false),
            (None, Family::Sqlite | Family::Mysql | Family::Duckdb) => Some(false),
            (None, Family::Postgres | Family::Other) => None,
        }
    }
}

/// Splits the partition clause off a CREATE TABLE; the clause is returned in tokens.
fn split_off_partition(text: &str) -> (&str, Option<Vec<String>>) {
    let words = lexer::outer_words(text);
    let is = |at: usize, word: &str| words[at].1.eq_ignore_ascii_case(word);
    let place = (1..words.len()).rev().find(|at| is(at - 1, "partition") && is(*at, "by"));
    match place.map(|at| words[at - 1].0) {
        None => (text, None),
        Some(start) => {
            let pieces = lexer::pieces(&text[start..]);
            let clause = pieces.iter().map(|p| p.to_ascii_lowercase()).collect();
            (&text[..start], Some(clause))
        }
    }
}

fn options(options: CreateTableOptions) -> Read<Vec<String>> {
    let texts = match options {
        CreateTableOptions::None => Vec::new(),
        CreateTableOptions::Plain(options) => options
            .into_iter()
            .filter(|option| !matches!(option, SqlOption::Comment(_)))
            .map(|option| option.to_string())
            .collect(),
        other => vec![other.to_string()],
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_ (),=.".contains(c);
    if texts.iter().any(|text| !text.chars().all(plain)) {
        return Err("its options".into());
    }
    Ok(texts.iter().map(|text| text.to_ascii_lowercase()).collect())
}

/// Converts a default to the literal type of its column: dates are written as strings there, and
/// booleans as numbers in SQLite.
fn of_the_type(value: Literal, of_type: &Type, family: Family) -> Literal {
    match (value, of_type) {
        (Literal::Text(date), Type::Date) => Literal::Date(date),
        (Literal::Int(n @ (0 | 1)), Type::Bool) if family == Family::Sqlite => {
            Literal::Bool(n == 1)
        }
        (Literal::Decimal(hundredths), Type::Float) if hundredths % 25 == 0 => {
            Literal::Float(hundredths / 25)
        }
        (value, _) => value,
    }
}
