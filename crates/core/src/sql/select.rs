//! Queries, and how to walk them.

use super::expression::Expr;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    pub ctes: Vec<Cte>,
    pub distinct: bool,
    pub items: Vec<Expr>,
    pub from: Source,
    pub joins: Vec<Join>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub having: Option<Expr>,
    pub set_operation: Option<(SetOperator, Box<Select>)>,
    pub order: Order,
    pub locking: Option<Locking>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cte {
    pub name: String,
    pub select: Select,
}

/// A table or CTE, under another name where it occurs twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    pub kind: JoinKind,
    pub source: Source,
    pub on: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    UnionAll,
    Except,
    Intersect,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    None,
    /// By every column of the result: the one order in which ties are equal.
    AllItems { descending: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locking {
    pub strength: LockStrength,
    pub patience: LockPatience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStrength {
    Update,
    Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPatience {
    Wait,
    NoWait,
    SkipLocked,
}

impl Source {
    pub fn named(name: &str) -> Source {
        Source { name: name.into(), alias: None }
    }

    /// The name under which its columns are reached.
    pub fn visible_name(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

impl Select {
    /// All expressions in it, those of CTEs and subqueries too.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        for cte in &self.ctes {
            cte.select.visit(see);
        }
        self.items.iter().for_each(|e| e.visit(see));
        self.joins.iter().for_each(|j| j.on.visit(see));
        self.group_by.iter().for_each(|e| e.visit(see));
        self.filter.iter().chain(&self.having).for_each(|e| e.visit(see));
        if let Some((_, other)) = &self.set_operation {
            other.visit(see);
        }
    }

    /// The names of all tables and CTEs that it reads, at any depth.
    pub fn sources(&self) -> Vec<&str> {
        let mut names = vec![self.from.name.as_str()];
        names.extend(self.joins.iter().map(|j| j.source.name.as_str()));
        names.extend(self.ctes.iter().flat_map(|c| c.select.sources()));
        names.extend(self.set_operation.iter().flat_map(|(_, other)| other.sources()));
        let own = self.items.iter().chain(self.joins.iter().map(|j| &j.on));
        let own = own.chain(&self.filter).chain(&self.group_by).chain(&self.having);
        for expression in own {
            names.extend(sources_below(expression));
        }
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
