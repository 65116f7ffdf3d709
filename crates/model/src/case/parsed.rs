//! What the text of a step says, as a typed statement.

use isolde_sql::dialect::Family;
use isolde_sql::{Stmt, read};
use std::sync::{Arc, OnceLock};

/// The parsed form of a statement's text: given at construction, or parsed at
/// the first access, since most runs of cases never need it. It takes no part in
/// comparisons, because the text determines it.
#[derive(Clone, Debug)]
pub struct Parsed {
    family: Family,
    statement: OnceLock<Option<Arc<Stmt>>>,
}

impl Parsed {
    /// Of a text in the SQL of a family.
    pub fn later(family: Family) -> Parsed {
        Parsed { family, statement: OnceLock::new() }
    }

    /// Of the text that the statement was written down to.
    pub fn known(statement: Stmt, family: Family) -> Parsed {
        Parsed { family, statement: OnceLock::from(Some(Arc::new(statement))) }
    }

    /// What `text` says; none when it cannot be read.
    pub(super) fn of(&self, text: &str) -> Option<&Stmt> {
        self.statement.get_or_init(|| read::statement(text, self.family).map(Arc::new)).as_deref()
    }

    /// Reads the text as another family does.
    pub(super) fn read_as(&mut self, family: Family) {
        if self.family != family {
            *self = Parsed::later(family);
        }
    }
}

impl PartialEq for Parsed {
    fn eq(&self, _: &Parsed) -> bool {
        true
    }
}
