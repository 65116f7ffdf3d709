//! Queries, and how to walk them.

use super::expression::Expr;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    pub ctes: Vec<Cte>,
    pub distinct: bool,
    pub items: Vec<SelectItem>,
    /// None for a query of values alone.
    pub from: Option<Source>,
    pub joins: Vec<Join>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub having: Option<Expr>,
    /// In a chain of several all operators are the same, and it does not
    /// matter where one begins.
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
    /// Empty when its columns have the names that the query gives them.
    pub columns: Vec<String>,
    pub select: Select,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A table or CTE, under another name where it occurs twice.
    Table { name: String, alias: Option<String> },
    Derived {
        select: Box<Select>,
        alias: Option<String>,
        /// The view whose query it is, if it was written as one.
        view: Option<String>,
    },
}

/// Joined with all that stands before it. Behind a comma that is only the
/// last source, which is the same as long as no join is RIGHT or FULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    pub kind: JoinKind,
    pub source: Source,
    /// Only an inner join may lack it, and all that have no condition do.
    pub on: Option<Expr>,
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
    /// By every column of the result: the one order in which ties are equal.
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
    /// FOR UPDATE OF these; empty means all.
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

impl SelectItem {
    pub fn expression(&self) -> Option<&Expr> {
        match self {
            SelectItem::Expression { of, .. } => Some(of),
            SelectItem::All | SelectItem::AllOf(_) => None,
        }
    }
}

impl SelectItem {
    /// The name of the column; none where the engine makes one up.
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

    /// The name under which its columns are reached.
    pub fn visible_name(&self) -> Option<&str> {
        match self {
            Source::Table { name, alias } => Some(alias.as_deref().unwrap_or(name)),
            Source::Derived { alias, .. } => alias.as_deref(),
        }
    }

    pub fn derived(&self) -> Option<&Select> {
        match self {
            Source::Table { .. } => None,
            Source::Derived { select, .. } => Some(select),
        }
    }
}

impl Order {
    pub fn keys(&self) -> &[OrderKey] {
        match self {
            Order::None | Order::AllItems { .. } => &[],
            Order::By(keys) => keys,
        }
    }
}

impl Select {
    /// What stands behind FROM, in order.
    pub fn from_and_joined(&self) -> impl Iterator<Item = &Source> {
        self.from.iter().chain(self.joins.iter().map(|j| &j.source))
    }

    /// The expressions of this query itself.
    pub fn own_expressions(&self) -> impl Iterator<Item = &Expr> {
        self.items
            .iter()
            .filter_map(SelectItem::expression)
            .chain(self.joins.iter().filter_map(|j| j.on.as_ref()))
            .chain(&self.group_by)
            .chain(&self.filter)
            .chain(&self.having)
            .chain(self.order.keys().iter().map(|key| &key.of))
            .chain(&self.limit)
            .chain(&self.offset)
    }

    pub fn own_expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let items = self.items.iter_mut().filter_map(|item| match item {
            SelectItem::Expression { of, .. } => Some(of),
            SelectItem::All | SelectItem::AllOf(_) => None,
        });
        let keys = match &mut self.order {
            Order::None | Order::AllItems { .. } => &mut [][..],
            Order::By(keys) => keys,
        };
        items
            .chain(self.joins.iter_mut().filter_map(|j| j.on.as_mut()))
            .chain(&mut self.group_by)
            .chain(&mut self.filter)
            .chain(&mut self.having)
            .chain(keys.iter_mut().map(|key| &mut key.of))
            .chain(&mut self.limit)
            .chain(&mut self.offset)
    }

    /// Queries in it that are not part of an expression: CTEs, derived
    /// tables, the other side of a set operation.
    pub fn parts(&self) -> impl Iterator<Item = &Select> {
        let ctes = self.ctes.iter().map(|c| &c.select);
        let derived = self.from_and_joined().filter_map(Source::derived);
        ctes.chain(derived).chain(self.set_operation.iter().map(|(_, other)| &**other))
    }

    /// All expressions in it, those of CTEs and subqueries too.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        self.parts().for_each(|part| part.visit(see));
        self.own_expressions().for_each(|e| e.visit(see));
    }

    /// The names of all tables and CTEs that it reads, at any depth.
    pub fn sources(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.from_and_joined().filter_map(Source::table).collect();
        names.extend(self.parts().flat_map(Select::sources));
        names.extend(self.own_expressions().flat_map(sources_below));
        names
    }
}

/// The tables that the subqueries of an expression read.
pub fn sources_below(expression: &Expr) -> Vec<&str> {
    let mut names: Vec<&str> = expression.subquery().map(Select::sources).unwrap_or_default();
    for child in expression.children() {
        names.extend(sources_below(child));
    }
    names
}
