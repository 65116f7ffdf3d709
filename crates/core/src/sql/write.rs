//! Statements that change rows.

use super::expression::Expr;
use super::select::{OrderKey, Select, SelectItem};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert {
    pub table: String,
    pub alias: Option<String>,
    /// Empty when none are named: all of the table's, in its order.
    pub columns: Vec<String>,
    pub source: InsertSource,
    pub conflict: Conflict,
    pub returning: Vec<SelectItem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertSource {
    Values(Vec<Vec<Expr>>),
    Select(Box<Select>),
    /// `default values`
    Defaults,
}

/// What becomes of a row whose key is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    Fail,
    /// It is left out: INSERT IGNORE of MySQL, INSERT OR IGNORE of SQLite,
    /// ON CONFLICT DO NOTHING elsewhere.
    Ignore,
    /// ON CONFLICT DO NOTHING where the dialect has another way to ignore, or
    /// with the key that must collide.
    DoNothing {
        key: Vec<String>,
    },
    /// The other row goes: REPLACE.
    Replace,
    /// The other row is changed. The key names what must collide, which only
    /// some dialects say.
    Update {
        key: Vec<String>,
        sets: Vec<(String, Expr)>,
        filter: Option<Expr>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    pub table: String,
    pub alias: Option<String>,
    /// In what is generated only a filter: which of several partners counts is
    /// nobody's promise, so what is set does not depend on the other table.
    pub join: Option<TableJoin>,
    /// With a join on MySQL's family a column may be the other table's: only
    /// the schema tells.
    pub sets: Vec<(String, Expr)>,
    pub filter: Option<Expr>,
    pub order: Vec<OrderKey>,
    pub limit: Option<Expr>,
    pub returning: Vec<SelectItem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    pub table: String,
    pub alias: Option<String>,
    pub join: Option<TableJoin>,
    pub filter: Option<Expr>,
    pub order: Vec<OrderKey>,
    pub limit: Option<Expr>,
    pub returning: Vec<SelectItem>,
}

/// A table beside the one that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableJoin {
    pub table: String,
    pub alias: Option<String>,
    /// None when every row of the one goes with every row of the other.
    pub on: Option<Expr>,
}

impl Insert {
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match &self.source {
            InsertSource::Values(rows) => rows.iter().flatten().for_each(|e| e.visit(see)),
            InsertSource::Select(select) => select.visit(see),
            InsertSource::Defaults => {}
        }
        if let Conflict::Update { sets, filter, .. } = &self.conflict {
            sets.iter().map(|(_, e)| e).chain(filter).for_each(|e| e.visit(see));
        }
        visit_items(&self.returning, see);
    }
}

impl Update {
    /// The table `name`, with nothing to change yet.
    pub fn of(name: &str) -> Update {
        Update {
            table: name.into(),
            alias: None,
            join: None,
            sets: Vec::new(),
            filter: None,
            order: Vec::new(),
            limit: None,
            returning: Vec::new(),
        }
    }

    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        self.join.iter().filter_map(|j| j.on.as_ref()).for_each(|e| e.visit(see));
        self.sets.iter().for_each(|(_, e)| e.visit(see));
        self.filter.iter().for_each(|e| e.visit(see));
        visit_end(&self.order, &self.limit, see);
        visit_items(&self.returning, see);
    }
}

impl Delete {
    /// All rows of the table `name`.
    pub fn from(name: &str) -> Delete {
        Delete {
            table: name.into(),
            alias: None,
            join: None,
            filter: None,
            order: Vec::new(),
            limit: None,
            returning: Vec::new(),
        }
    }

    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        self.join.iter().filter_map(|j| j.on.as_ref()).for_each(|e| e.visit(see));
        self.filter.iter().for_each(|e| e.visit(see));
        visit_end(&self.order, &self.limit, see);
        visit_items(&self.returning, see);
    }
}

fn visit_end<'a>(order: &'a [OrderKey], limit: &'a Option<Expr>, see: &mut dyn FnMut(&'a Expr)) {
    order.iter().map(|key| &key.of).chain(limit).for_each(|e| e.visit(see));
}

fn visit_items<'a>(items: &'a [SelectItem], see: &mut dyn FnMut(&'a Expr)) {
    items.iter().filter_map(SelectItem::expression).for_each(|e| e.visit(see));
}
