//! Walks over the expressions and queries of a syntax tree.
//!
//! Each walk exists for shared and for mutable references. A macro defines both,
//! so that a new kind of node is added in one place. A query or statement is
//! walked from the queries in its FROM clause to its own expressions, an
//! expression from itself to its operands and then to its subquery.

use super::{
    Conflict, Ddl, Delete, Expr, Index, Insert, InsertSource, Merge, MergeAction, Order, OrderKey,
    Over, Select, SelectItem, Source, Stmt, Table, Update, Window, Write,
};

/// The names of the functions that a walk consists of, and those of the standard
/// library that it calls. `$a` is the lifetime that visited references keep; a
/// mutable walk has none, because it visits a node again as part of its parents.
macro_rules! define_walk {
    (
        references: [$($a:lifetime)?] [$($mut:tt)?],
        visit: $visit:ident,
        children: $children:ident,
        subquery: $subquery:ident,
        own_expressions: $own_expressions:ident,
        parts: $parts:ident,
        expression: $expression:ident,
        expressions: $expressions:ident,
        values: $values:ident,
        keys: $keys:ident,
        std: $iter:ident $as_ref:ident $as_deref:ident,
    ) => {
        impl Expr {
            /// The operands of this expression, without those inside a subquery.
            pub fn $children(&$($mut)? self) -> Vec<&$($mut)? Expr> {
                match self {
                    Expr::Column { .. } | Expr::Literal(_) | Expr::Incoming(_) | Expr::Default => {
                        Vec::new()
                    }
                    Expr::Exists { .. } | Expr::Scalar(_) => Vec::new(),
                    Expr::Unary(_, of)
                    | Expr::Cast { of, .. }
                    | Expr::InSelect { of, .. }
                    | Expr::Quantified { of, .. } => vec![of],
                    Expr::Row(cells) => cells.$iter().collect(),
                    Expr::Like { of, pattern, .. } => vec![of, pattern],
                    Expr::Binary(_, left, right) => vec![left, right],
                    Expr::InList { of, items, .. } => {
                        std::iter::once(&$($mut)? **of).chain(items).collect()
                    }
                    Expr::Between { of, low, high, .. } => vec![of, low, high],
                    Expr::Case { operand, branches, otherwise } => operand
                        .$as_deref()
                        .into_iter()
                        .chain(branches.$iter().flat_map(|(when, then)| [when, then]))
                        .chain(otherwise.$as_deref())
                        .collect(),
                    Expr::Call(_, arguments) => arguments.$iter().collect(),
                    Expr::Aggregate { of, order, filter, .. } => {
                        let keys = order.$iter().map(|key| &$($mut)? key.of);
                        of.$as_deref().into_iter().chain(keys).chain(filter.$as_deref()).collect()
                    }
                    Expr::Window { arguments, over, .. } => {
                        let own = match over {
                            Over::Named(_) => Vec::new(),
                            Over::Window(window) => window.$expressions().collect(),
                        };
                        arguments.$iter().chain(own).collect()
                    }
                }
            }

            /// The query that is an operand of this expression.
            pub fn $subquery(&$($mut)? self) -> Option<&$($mut)? Select> {
                match self {
                    Expr::InSelect { select, .. }
                    | Expr::Exists { select, .. }
                    | Expr::Quantified { select, .. }
                    | Expr::Scalar(select) => Some(select),
                    Expr::Column { .. }
                    | Expr::Literal(_)
                    | Expr::Unary(..)
                    | Expr::Binary(..)
                    | Expr::InList { .. }
                    | Expr::Between { .. }
                    | Expr::Like { .. }
                    | Expr::Case { .. }
                    | Expr::Cast { .. }
                    | Expr::Call(..)
                    | Expr::Row(_)
                    | Expr::Aggregate { .. }
                    | Expr::Window { .. }
                    | Expr::Incoming(_)
                    | Expr::Default => None,
                }
            }

            /// Visits this expression and all below it, those of subqueries included.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                see(self);
                self.$children().into_iter().for_each(|child| child.$visit(see));
                if let Some(select) = self.$subquery() {
                    select.$visit(see);
                }
            }
        }

        impl Window {
            /// The expressions by which it partitions and orders rows.
            pub fn $expressions(&$($mut)? self) -> impl Iterator<Item = &$($mut)? Expr> {
                let keys = self.order.$iter().map(|key| &$($mut)? key.of);
                self.partition.$iter().chain(keys)
            }
        }

        impl SelectItem {
            /// The expression of an item that is not `*`.
            pub fn $expression(&$($mut)? self) -> Option<&$($mut)? Expr> {
                match self {
                    SelectItem::Expression { of, .. } => Some(of),
                    SelectItem::All | SelectItem::AllOf(_) => None,
                }
            }
        }

        impl Order {
            /// The sort keys that the query names.
            pub fn $keys(&$($mut)? self) -> &$($mut)? [OrderKey] {
                match self {
                    Order::None | Order::AllItems { .. } => &$($mut)? [],
                    Order::By(keys) => keys,
                }
            }
        }

        impl Select {
            /// The expressions of this query itself, without those of the queries in it.
            pub fn $own_expressions(&$($mut)? self) -> impl Iterator<Item = &$($mut)? Expr> {
                self.items
                    .$iter()
                    .filter_map(SelectItem::$expression)
                    .chain(self.joins.$iter().filter_map(|join| join.on.$as_ref()))
                    .chain(&$($mut)? self.group_by)
                    .chain(&$($mut)? self.filter)
                    .chain(&$($mut)? self.having)
                    .chain(self.windows.$iter().flat_map(|named| named.window.$expressions()))
                    .chain(self.values.$iter().flatten())
                    .chain(self.order.$keys().$iter().map(|key| &$($mut)? key.of))
                    .chain(&$($mut)? self.limit)
                    .chain(&$($mut)? self.offset)
            }

            /// The queries in it that are not part of an expression: CTEs, derived tables,
            /// the other side of a set operation.
            pub fn $parts(&$($mut)? self) -> impl Iterator<Item = &$($mut)? Select> {
                let joined = self.joins.$iter().map(|join| &$($mut)? join.source);
                let derived = self.from.$iter().chain(joined).filter_map(|source| match source {
                    Source::Derived { select, .. } => Some(&$($mut)? **select),
                    Source::Table { .. } => None,
                });
                let ctes = self.ctes.$iter().map(|cte| &$($mut)? cte.select);
                ctes.chain(derived)
                    .chain(self.set_operation.$iter().map(|(_, other)| &$($mut)? **other))
            }

            /// Visits all expressions in it, those of the queries in it included.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                self.$parts().for_each(|part| part.$visit(see));
                self.$own_expressions().for_each(|e| e.$visit(see));
            }
        }

        impl Insert {
            /// Visits all expressions in it.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                match &$($mut)? self.source {
                    InsertSource::Values(rows) => {
                        rows.$iter().flatten().for_each(|e| e.$visit(see));
                    }
                    InsertSource::Select(select) => select.$visit(see),
                    InsertSource::Defaults => {}
                }
                if let Conflict::Update { sets, filter, .. } = &$($mut)? self.conflict {
                    sets.$iter().map(|(_, e)| e).chain(filter).for_each(|e| e.$visit(see));
                }
                let returned = self.returning.$iter().filter_map(SelectItem::$expression);
                returned.for_each(|e| e.$visit(see));
            }
        }

        impl Update {
            /// Visits all expressions in it.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                let join = self.join.$iter().filter_map(|join| join.on.$as_ref());
                join.chain(self.sets.$iter().map(|(_, e)| e))
                    .chain(&$($mut)? self.filter)
                    .chain(self.order.$iter().map(|key| &$($mut)? key.of))
                    .chain(&$($mut)? self.limit)
                    .chain(self.returning.$iter().filter_map(SelectItem::$expression))
                    .for_each(|e| e.$visit(see));
            }
        }

        impl Delete {
            /// Visits all expressions in it.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                let join = self.join.$iter().filter_map(|join| join.on.$as_ref());
                join.chain(&$($mut)? self.filter)
                    .chain(self.order.$iter().map(|key| &$($mut)? key.of))
                    .chain(&$($mut)? self.limit)
                    .chain(self.returning.$iter().filter_map(SelectItem::$expression))
                    .for_each(|e| e.$visit(see));
            }
        }

        impl MergeAction {
            /// The values that it stores.
            pub fn $values(&$($mut)? self) -> Vec<&$($mut)? Expr> {
                match self {
                    MergeAction::Update(sets) => sets.$iter().map(|(_, value)| value).collect(),
                    MergeAction::Insert { values, .. } => values.$iter().collect(),
                    MergeAction::Delete | MergeAction::Nothing => Vec::new(),
                }
            }
        }

        impl Merge {
            /// Visits all expressions in it.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                if let Source::Derived { select, .. } = &$($mut)? self.source {
                    select.$visit(see);
                }
                self.on.$visit(see);
                for clause in &$($mut)? self.clauses {
                    let condition = &$($mut)? clause.condition;
                    condition.$iter().for_each(|e| e.$visit(see));
                    clause.action.$values().into_iter().for_each(|e| e.$visit(see));
                }
            }
        }

        impl Index {
            /// Visits all expressions in it.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                let parts = self.parts.$iter().map(|part| &$($mut)? part.of);
                parts.chain(&$($mut)? self.only_where).for_each(|e| e.$visit(see));
            }
        }

        impl Table {
            /// Visits all expressions in the definition of the table.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                self.checks.$iter().for_each(|e| e.$visit(see));
                for column in &$($mut)? self.columns {
                    column.generated.$iter().for_each(|generated| generated.from.$visit(see));
                }
                self.indexes.$iter().for_each(|index| index.$visit(see));
            }
        }

        impl Stmt {
            /// Visits all expressions in it.
            pub fn $visit$(<$a>)?(
                &$($a)? $($mut)? self,
                see: &mut dyn FnMut(&$($a)? $($mut)? Expr),
            ) {
                match self {
                    Stmt::Select(select) => select.$visit(see),
                    Stmt::Write(Write::Insert(insert)) => insert.$visit(see),
                    Stmt::Write(Write::Update(update)) => update.$visit(see),
                    Stmt::Write(Write::Delete(delete)) => delete.$visit(see),
                    Stmt::Write(Write::Merge(merge)) => merge.$visit(see),
                    Stmt::Ddl(Ddl::CreateIndex { index, .. }) => index.$visit(see),
                    Stmt::Prepare { statement, .. } => statement.$visit(see),
                    Stmt::Ddl(Ddl::DropIndex { .. } | Ddl::AddColumn { .. } | Ddl::Truncate(_))
                    | Stmt::Control(_)
                    | Stmt::Execute(_) => {}
                }
            }
        }
    };
}

define_walk! {
    references: ['a] [],
    visit: visit,
    children: children,
    subquery: subquery,
    own_expressions: own_expressions,
    parts: parts,
    expression: expression,
    expressions: expressions,
    values: values,
    keys: keys,
    std: iter as_ref as_deref,
}

define_walk! {
    references: [] [mut],
    visit: visit_mut,
    children: children_mut,
    subquery: subquery_mut,
    own_expressions: own_expressions_mut,
    parts: parts_mut,
    expression: expression_mut,
    expressions: expressions_mut,
    values: values_mut,
    keys: keys_mut,
    std: iter_mut as_mut as_deref_mut,
}
