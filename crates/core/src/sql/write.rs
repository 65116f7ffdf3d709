//! Statements that change rows.

use super::expression::Expr;
use super::select::Select;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert {
    pub table: String,
    pub columns: Vec<String>,
    pub source: InsertSource,
    pub conflict: Conflict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertSource {
    Values(Vec<Vec<Expr>>),
    Select(Box<Select>),
}

/// What becomes of a row whose key is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    Fail,
    /// It is left out: INSERT IGNORE, or ON CONFLICT DO NOTHING.
    Ignore,
    /// The other row goes: REPLACE.
    Replace,
    /// The other row is changed. The key names what must collide, which only
    /// some dialects say.
    Update {
        key: Vec<String>,
        sets: Vec<(String, Expr)>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    pub table: String,
    /// Only a filter: what is set never depends on the other table, because
    /// which of several partners counts is nobody's promise.
    pub join: Option<TableJoin>,
    pub sets: Vec<(String, Expr)>,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    pub table: String,
    pub join: Option<TableJoin>,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableJoin {
    pub table: String,
    pub on: Expr,
}

impl Insert {
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match &self.source {
            InsertSource::Values(rows) => rows.iter().flatten().for_each(|e| e.visit(see)),
            InsertSource::Select(select) => select.visit(see),
        }
        if let Conflict::Update { sets, .. } = &self.conflict {
            sets.iter().for_each(|(_, e)| e.visit(see));
        }
    }
}

impl Update {
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        self.join.iter().for_each(|j| j.on.visit(see));
        self.sets.iter().for_each(|(_, e)| e.visit(see));
        self.filter.iter().for_each(|e| e.visit(see));
    }
}

impl Delete {
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        self.join.iter().for_each(|j| j.on.visit(see));
        self.filter.iter().for_each(|e| e.visit(see));
    }
}
