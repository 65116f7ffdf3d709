//! Queries and expressions, which contain each other.

use super::operator::{Aggregate, Binary, Function, Unary, WindowFunction};
use super::value::{Literal, Type};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    Column {
        qualifier: Option<String>,
        name: String,
    },
    Literal(Literal),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    InList {
        of: Box<Expr>,
        items: Vec<Expr>,
        negated: bool,
    },
    Between {
        of: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    Like {
        of: Box<Expr>,
        pattern: Box<Expr>,
        negated: bool,
    },
    /// With an operand, each branch has a value that the operand is compared with.
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Cast {
        of: Box<Expr>,
        to: Type,
    },
    Call(Function, Vec<Expr>),
    InSelect {
        of: Box<Expr>,
        select: Box<Select>,
        negated: bool,
    },
    Exists {
        select: Box<Select>,
        negated: bool,
    },
    /// A scalar subquery. Generated ones are aggregates without groups, so they return exactly one
    /// row.
    Scalar(Box<Select>),
    /// A comparison with some or all rows of a query: `a > all (select …)`.
    Quantified {
        sign: Binary,
        of: Box<Expr>,
        all: bool,
        select: Box<Select>,
    },
    /// A row value: `(a, b)`.
    Row(Vec<Expr>),
    /// Without an argument it is `count(*)`.
    Aggregate {
        function: Aggregate,
        of: Option<Box<Expr>>,
        distinct: bool,
        /// The order of the values that it combines.
        order: Vec<OrderKey>,
        /// FILTER (WHERE …).
        filter: Option<Box<Expr>>,
    },
    /// Without an argument, COUNT is `count(*)`.
    Window {
        function: WindowFunction,
        arguments: Vec<Expr>,
        over: Over,
    },
    /// In an upsert, the value that was to be inserted.
    Incoming(String),
    /// In a write, the default of the column.
    Default,
}

/// The window of a window function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// One of those that the query names.
    Named(String),
    Window(Window),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub partition: Vec<Expr>,
    pub order: Vec<OrderKey>,
    pub frame: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedWindow {
    pub name: String,
    pub window: Window,
}

/// The rows of its partition that a window function sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    /// The current row, if absent.
    pub end: Option<FrameBound>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(u32),
    CurrentRow,
    Following(u32),
    UnboundedFollowing,
}

/// How the keys of GROUP BY are combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    #[default]
    AllKeys,
    /// All keys, all but the last, and so on, down to none.
    Rollup,
    Cube,
    /// Each set has the places of its keys.
    Sets(Vec<Vec<usize>>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// Whether the CTEs may read themselves.
    pub recursive: bool,
    pub ctes: Vec<Cte>,
    /// The rows of VALUES. If there are any, the query has neither a select list nor sources.
    pub values: Vec<Vec<Expr>>,
    pub distinct: bool,
    pub items: Vec<SelectItem>,
    /// None for a query without FROM.
    pub from: Option<Source>,
    pub joins: Vec<Join>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub grouping: Grouping,
    pub having: Option<Expr>,
    /// The windows that window functions name.
    pub windows: Vec<NamedWindow>,
    /// In a chain all operators are the same, and associativity does not matter.
    pub set_operation: Option<(SetOperator, Box<Select>)>,
    pub order: Order,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    pub locking: Option<Locking>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectItem {
    Expression {
        of: Expr,
        alias: Option<String>,
    },
    /// `*`
    All,
    /// `t.*`
    AllOf(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cte {
    pub name: String,
    /// Empty if the columns keep the names from the query.
    pub columns: Vec<String>,
    pub select: Select,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A table or CTE, with an alias where it occurs twice.
    Table { name: String, alias: Option<String> },
    Derived {
        /// Whether it may use the columns of the sources before it.
        lateral: bool,
        select: Box<Select>,
        alias: Option<String>,
        /// Empty if the columns keep the names from the query.
        columns: Vec<String>,
        /// The view that this query replaces, if any.
        view: Option<String>,
    },
}

/// A source joined with all sources before it. In SQL, a join after a comma applies only to the
/// last source, which makes no difference unless it is RIGHT or FULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    pub kind: JoinKind,
    pub source: Source,
    /// Absent in joins without a condition: cross joins, commas, and inner joins written without
    /// ON.
    pub on: Option<Expr>,
    pub using: Using,
    /// How many of the joins that follow are in parentheses with its source: two in
    /// `a left join (b join c join d) on …`.
    pub nested: usize,
}

/// The columns of both sides that a join compares by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Using {
    #[default]
    Nothing,
    Columns(Vec<String>),
    /// NATURAL: all columns with the same name.
    SameNames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
    Comma,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    UnionAll,
    Except,
    Intersect,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    None,
    /// By every column of the result, so that only equal rows are ties.
    AllItems {
        descending: bool,
    },
    By(Vec<OrderKey>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderKey {
    pub of: Expr,
    pub descending: bool,
    pub nulls_first: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locking {
    pub strength: LockStrength,
    /// The tables of FOR UPDATE OF; empty means all.
    pub of: Vec<String>,
    pub patience: LockPatience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStrength {
    Update,
    NoKeyUpdate,
    Share,
    KeyShare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPatience {
    Wait,
    NoWait,
    SkipLocked,
    /// `wait 5`
    Seconds(u32),
}

impl Expr {
    pub fn column(name: &str) -> Expr {
        Expr::Column { qualifier: None, name: name.into() }
    }

    pub fn int(n: i64) -> Expr {
        Expr::Literal(Literal::Int(n))
    }

    pub fn binary(sign: Binary, left: Expr, right: Expr) -> Expr {
        Expr::Binary(sign, Box::new(left), Box::new(right))
    }

    pub fn unary(sign: Unary, of: Expr) -> Expr {
        Expr::Unary(sign, Box::new(of))
    }

    pub fn and(self, other: Expr) -> Expr {
        Expr::binary(Binary::And, self, other)
    }

    pub fn count_all() -> Expr {
        let (of, distinct, order, filter) = (None, false, Vec::new(), None);
        Expr::Aggregate { function: Aggregate::Count, of, distinct, order, filter }
    }

    pub fn aggregate(function: Aggregate, of: Expr) -> Expr {
        let (of, distinct) = (Some(Box::new(of)), false);
        Expr::Aggregate { function, of, distinct, order: Vec::new(), filter: None }
    }
}

impl OrderKey {
    pub fn ascending(of: Expr) -> OrderKey {
        OrderKey { of, descending: false, nulls_first: None }
    }
}

impl SelectItem {
    /// The name of the result column; none where the engine chooses one.
    pub fn name(&self) -> Option<&str> {
        match self {
            SelectItem::Expression { alias: Some(alias), .. } => Some(alias),
            SelectItem::Expression { of: Expr::Column { name, .. }, alias: None } => Some(name),
            SelectItem::Expression { .. } | SelectItem::All | SelectItem::AllOf(_) => None,
        }
    }
}

impl From<Expr> for SelectItem {
    fn from(of: Expr) -> SelectItem {
        SelectItem::Expression { of, alias: None }
    }
}

impl Source {
    pub fn named(name: &str) -> Source {
        Source::Table { name: name.into(), alias: None }
    }

    /// The name of the table or CTE; none for a derived table.
    pub fn table(&self) -> Option<&str> {
        match self {
            Source::Table { name, .. } => Some(name),
            Source::Derived { .. } => None,
        }
    }

    /// The name that qualifies its columns.
    pub fn visible_name(&self) -> Option<&str> {
        match self {
            Source::Table { name, alias } => Some(alias.as_deref().unwrap_or(name)),
            Source::Derived { alias, .. } => alias.as_deref(),
        }
    }

    /// A query in FROM.
    pub fn query(select: Select, alias: &str) -> Source {
        Source::Derived {
            lateral: false,
            select: Box::new(select),
            alias: Some(alias.into()),
            columns: Vec::new(),
            view: None,
        }
    }

    pub fn derived(&self) -> Option<&Select> {
        match self {
            Source::Table { .. } => None,
            Source::Derived { select, .. } => Some(select),
        }
    }
}

impl Join {
    /// A join without a condition.
    pub fn plain(kind: JoinKind, source: Source) -> Join {
        Join { kind, source, on: None, using: Using::Nothing, nested: 0 }
    }
}

impl Select {
    /// Removes the join at a place. Joins that were in parentheses with its source remain.
    pub fn remove_join(&mut self, place: usize) {
        self.joins.remove(place);
        for (before, join) in self.joins[..place].iter_mut().enumerate() {
            if before + join.nested >= place {
                join.nested -= 1;
            }
        }
    }

    /// The sources in FROM, in order.
    pub fn from_and_joined(&self) -> impl Iterator<Item = &Source> {
        self.from.iter().chain(self.joins.iter().map(|j| &j.source))
    }

    /// The keys of ORDER BY as expressions, also where the query names them by their
    /// places in the select list.
    pub fn order_keys(&self) -> Vec<OrderKey> {
        let expression = |key: &OrderKey| {
            let place = match key.of {
                Expr::Literal(Literal::Int(n)) => usize::try_from(n - 1).ok(),
                _ => None,
            };
            let item = place.and_then(|n| self.items.get(n)).and_then(SelectItem::expression);
            OrderKey { of: item.unwrap_or(&key.of).clone(), ..key.clone() }
        };
        match &self.order {
            Order::None => Vec::new(),
            Order::By(keys) => keys.iter().map(expression).collect(),
            Order::AllItems { descending } => {
                let items = self.items.iter().filter_map(SelectItem::expression).cloned();
                let key = |of| OrderKey { of, descending: *descending, nulls_first: None };
                items.map(key).collect()
            }
        }
    }

    /// The names of all tables and CTEs that it reads, at any depth.
    pub fn sources(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.from_and_joined().filter_map(Source::table).collect();
        names.extend(self.parts().flat_map(Select::sources));
        names.extend(self.own_expressions().flat_map(sources_below));
        names
    }
}

/// The tables and CTEs that the subqueries of an expression read.
pub fn sources_below(expression: &Expr) -> Vec<&str> {
    let mut names: Vec<&str> = expression.subquery().map(Select::sources).unwrap_or_default();
    for child in expression.children() {
        names.extend(sources_below(child));
    }
    names
}
