//! SQL that makes the engine evaluate MERGE on chosen row versions.

use super::evaluation::or_default;
use super::*;
use isolde_sql::render::Substitute;
use isolde_sql::{
    Join, JoinKind, MatchKind, Merge, MergeAction, MergeClause, Select, SelectItem, Unary,
};

impl VersionTables<'_> {
    /// Creates the versions that the UPDATE of a clause makes.
    pub fn merge_update(&self, merge: &Merge, clause: usize, views: Views<'_>) -> Vec<String> {
        let of = self.schema.table(&merge.table).expect("a table of the schema");
        let MergeAction::Update(sets) = &merge.clauses[clause].action else { return Vec::new() };
        let target = merge.alias.as_deref().unwrap_or(&merge.table);
        let written: Vec<&str> = of.writable().map(|c| c.name.as_str()).collect();
        let mut items = vec![made_mark(), version_of(target)];
        items.extend(written.iter().map(|column| match sets.iter().find(|(c, _)| c == column) {
            Some((_, value)) => or_default(of, column, value),
            None => qualified(target, column),
        }));
        let select = self.clause_rows(merge, clause, items, views);
        self.make(of, &written, &select)
    }

    /// The versions of the table that a clause applies to.
    pub fn merge_found(&self, merge: &Merge, clause: usize, views: Views<'_>) -> Vec<String> {
        let target = merge.alias.as_deref().unwrap_or(&merge.table);
        vec![self.clause_rows(merge, clause, vec![version_of(target)], views)]
    }

    /// Creates versions of the rows that the INSERT of a clause makes.
    pub fn merge_insert(&self, merge: &Merge, clause: usize, views: Views<'_>) -> Vec<String> {
        let of = self.schema.table(&merge.table).expect("a table of the schema");
        let MergeAction::Insert { columns, values } = &merge.clauses[clause].action else {
            return Vec::new();
        };
        let columns: Vec<&str> = match columns.is_empty() {
            true => of.writable().map(|c| c.name.as_str()).take(values.len()).collect(),
            false => columns.iter().map(String::as_str).collect(),
        };
        let mut items = vec![made_mark(), Expr::int(0)];
        items.extend(columns.iter().zip(values).map(|(column, e)| or_default(of, column, e)));
        let select = self.clause_rows(merge, clause, items, views);
        self.make(of, &columns, &select)
    }

    /// The versions of the table with a row of the source.
    pub fn merge_matches(&self, merge: &Merge, views: Views<'_>) -> Vec<String> {
        let target = merge.alias.as_deref().unwrap_or(&merge.table);
        let select = Select {
            items: vec![version_of(target).into()],
            from: Some(target_of(merge)),
            joins: vec![Join {
                on: Some(merge.on.clone()),
                ..Join::plain(JoinKind::Inner, merge.source.clone())
            }],
            ..Select::default()
        };
        vec![self.over(&select, views)]
    }

    /// The rows of the source.
    pub fn merge_sources(&self, merge: &Merge, views: Views<'_>) -> Vec<String> {
        let items = vec![Expr::int(1).into()];
        let from = Some(merge.source.clone());
        vec![self.over(&Select { items, from, ..Select::default() }, views)]
    }

    /// A query for the rows that a clause applies to.
    fn clause_rows(
        &self,
        merge: &Merge,
        clause: usize,
        items: Vec<Expr>,
        views: Views<'_>,
    ) -> String {
        let any = |source| Select {
            items: vec![Expr::int(1).into()],
            from: Some(source),
            filter: Some(merge.on.clone()),
            ..Select::default()
        };
        let none = |source| Expr::Exists { select: Box::new(any(source)), negated: true };
        let applies = applies(&merge.clauses, clause);
        let (from, join, filter) = match merge.clauses[clause].kind {
            MatchKind::Matched => (target_of(merge), Some(merge.source.clone()), applies),
            MatchKind::NotMatched => {
                (merge.source.clone(), None, none(target_of(merge)).and(applies))
            }
            MatchKind::NotMatchedBySource => {
                (target_of(merge), None, none(merge.source.clone()).and(applies))
            }
        };
        let join = join.map(|source| Join {
            on: Some(merge.on.clone()),
            ..Join::plain(JoinKind::Inner, source)
        });
        let select = Select {
            items: items.into_iter().map(SelectItem::from).collect(),
            from: Some(from),
            joins: join.into_iter().collect(),
            filter: Some(filter),
            ..Select::default()
        };
        self.over(&select, views)
    }

    fn over(&self, select: &Select, views: Views<'_>) -> String {
        let substitute: Substitute = &|name| self.instead(name, views);
        Renderer::reading(self.dialect, substitute).select(select)
    }
}

/// The written table, as the statement itself reads it.
fn target_of(merge: &Merge) -> Source {
    let mut source = Source::Table { name: merge.table.clone(), alias: merge.alias.clone() };
    mark_outer(&mut source);
    source
}

/// The condition under which a clause is the first that applies.
fn applies(clauses: &[MergeClause], clause: usize) -> Expr {
    let kind = clauses[clause].kind;
    let truth = || Expr::Literal(Literal::Bool(true));
    let fails = |earlier: &MergeClause| {
        let condition = earlier.condition.clone().unwrap_or_else(truth);
        Expr::unary(Unary::IsNotTrue, condition)
    };
    let earlier = clauses[..clause].iter().filter(|c| c.kind == kind).map(fails);
    let own = clauses[clause].condition.clone().unwrap_or_else(truth);
    earlier.fold(own, |all, one| all.and(one))
}
