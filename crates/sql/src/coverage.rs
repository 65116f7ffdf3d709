//! The features that statements exercise.

use crate::ast::{
    Access, Aggregate, Begin, BeginMode, Binary, Conflict, Control, Ddl, Expr, Function, Grouping,
    Index, Insert, InsertSource, JoinKind, LockPatience, LockStrength, OnDelete, Order, Over,
    Schema, Select, SetOperator, Source, Stmt, Table, Type, Using, Window, Write,
};
use isolde_catalog::Feature;

impl Stmt {
    /// The features that it exercises, those of the tables that it writes included.
    pub fn features(&self, schema: &Schema) -> Vec<Feature> {
        let mut found = match self {
            Stmt::Select(_) => vec![Feature::Select],
            Stmt::Write(Write::Insert(_)) => vec![Feature::Insert],
            Stmt::Write(Write::Update(_)) => vec![Feature::Update],
            Stmt::Write(Write::Delete(_)) => vec![Feature::Delete],
            Stmt::Write(Write::Merge(_)) => vec![Feature::Merge],
            Stmt::Control(control) => control_features(control),
            Stmt::Ddl(Ddl::CreateIndex { .. }) => vec![Feature::CreateIndex],
            Stmt::Ddl(Ddl::DropIndex { .. }) => vec![Feature::DropIndex],
            Stmt::Ddl(Ddl::AddColumn { .. }) => vec![Feature::AddColumn],
            Stmt::Ddl(Ddl::Truncate(_)) => vec![Feature::Truncate],
            Stmt::Prepare { .. } | Stmt::Execute(_) => vec![Feature::Prepared],
        };
        add_details(self, schema, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn control_features(control: &Control) -> Vec<Feature> {
    match control {
        Control::Begin(begin) => begin_features(begin),
        Control::Commit => vec![Feature::Commit],
        Control::Rollback => vec![Feature::Rollback],
        Control::SetAutocommit(true) | Control::SetTransaction(_) => Vec::new(),
        Control::SetAutocommit(false) => vec![Feature::AutocommitOff],
        Control::Savepoint(_) => vec![Feature::Savepoint],
        Control::RollbackTo(_) => vec![Feature::RollbackTo],
        Control::Release(_) => vec![Feature::ReleaseSavepoint],
    }
}

fn begin_features(begin: &Begin) -> Vec<Feature> {
    let mode = match begin.mode {
        Some(BeginMode::Immediate) => Some(Feature::Immediate),
        Some(BeginMode::Pessimistic) => Some(Feature::Pessimistic),
        Some(BeginMode::Optimistic) => Some(Feature::Optimistic),
        Some(BeginMode::Deferred | BeginMode::Exclusive | BeginMode::Concurrent) | None => None,
    };
    let read_only = begin.characteristics.access == Some(Access::ReadOnly);
    mode.into_iter()
        .chain(read_only.then_some(Feature::ReadOnly))
        .chain(begin.consistent_snapshot.then_some(Feature::ConsistentSnapshot))
        .collect()
}

/// Adds the features of the parts of a statement to the one of its kind.
fn add_details(statement: &Stmt, schema: &Schema, found: &mut Vec<Feature>) {
    statement.visit(&mut |e| of_expression(e, found));
    match statement {
        Stmt::Select(select) => of_select(select, found),
        Stmt::Write(Write::Insert(insert)) => of_insert(insert, found),
        Stmt::Write(Write::Update(update)) => {
            let table = schema.table(&update.table);
            if update.sets.iter().any(|(c, _)| table.is_some_and(|t| t.is_in_a_key(c))) {
                found.push(Feature::KeyUpdate);
            }
            if update.join.is_some() {
                found.push(Feature::UpdateJoin);
            }
            if has_subquery(statement) {
                found.push(Feature::UpdateSubquery);
            }
        }
        Stmt::Write(Write::Delete(delete)) => {
            if delete.join.is_some() {
                found.push(Feature::DeleteJoin);
            }
            if has_subquery(statement) {
                found.push(Feature::DeleteSubquery);
            }
        }
        Stmt::Write(Write::Merge(merge)) => {
            if let Source::Derived { select, .. } = &merge.source {
                found.push(Feature::DerivedTable);
                of_select(select, found);
            }
        }
        Stmt::Ddl(Ddl::CreateIndex { index, .. }) => of_index(index, found),
        Stmt::Prepare { statement, .. } => found.extend(statement.features(schema)),
        Stmt::Ddl(Ddl::DropIndex { .. } | Ddl::AddColumn { .. } | Ddl::Truncate(_))
        | Stmt::Control(_)
        | Stmt::Execute(_) => {}
    }
    if let Stmt::Write(write) = statement {
        let (returning, limit) = match write {
            Write::Insert(insert) => (&insert.returning, &None),
            Write::Update(update) => (&update.returning, &update.limit),
            Write::Delete(delete) => (&delete.returning, &delete.limit),
            Write::Merge(_) => (&Vec::new(), &None),
        };
        let parts =
            [(!returning.is_empty(), Feature::Returning), (limit.is_some(), Feature::WriteLimit)];
        found.extend(parts.into_iter().filter(|(there, _)| *there).map(|(_, feature)| feature));
    }
    if let Some(table) = statement.written_table().and_then(|name| schema.table(name)) {
        of_table(table, schema, found);
    }
}

fn has_subquery(statement: &Stmt) -> bool {
    let mut any = false;
    statement.visit(&mut |e| any |= e.subquery().is_some());
    any
}

fn of_expression(expression: &Expr, found: &mut Vec<Feature>) {
    found.extend(match expression {
        Expr::Scalar(_) => Some(Feature::ScalarSubquery),
        Expr::InSelect { .. } => Some(Feature::InSubquery),
        Expr::Exists { .. } => Some(Feature::ExistsSubquery),
        Expr::Cast { .. } => Some(Feature::Cast),
        Expr::Quantified { .. } => Some(Feature::Quantified),
        Expr::Row(_) => Some(Feature::RowValue),
        Expr::Aggregate { filter: Some(_), .. } => Some(Feature::Filter),
        Expr::Aggregate { function: Aggregate::Concat, .. } => Some(Feature::Concatenation),
        Expr::Aggregate { .. } => Some(Feature::Aggregate),
        Expr::Window { over: Over::Window(Window { frame: Some(_), .. }), .. } => {
            Some(Feature::WindowFrame)
        }
        Expr::Window { .. } => Some(Feature::Window),
        Expr::Case { .. } => Some(Feature::CaseWhen),
        Expr::Call(Function::Named(_), _) => Some(Feature::ScalarFunction),
        Expr::Binary(
            Binary::BitAnd | Binary::BitOr | Binary::ShiftLeft | Binary::ShiftRight,
            ..,
        ) => Some(Feature::BitOperator),
        Expr::Column { .. }
        | Expr::Literal(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::InList { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::Call(..)
        | Expr::Incoming(_)
        | Expr::Default => None,
    });
    if let Some(select) = expression.subquery() {
        of_select(select, found);
    }
}

fn of_select(select: &Select, found: &mut Vec<Feature>) {
    for join in &select.joins {
        found.push(match join.kind {
            JoinKind::Inner | JoinKind::Cross | JoinKind::Comma => Feature::InnerJoin,
            JoinKind::Left => Feature::LeftJoin,
            JoinKind::Right => Feature::RightJoin,
            JoinKind::Full => Feature::FullJoin,
        });
        if join.using != Using::Nothing {
            found.push(Feature::JoinUsing);
        }
        if join.nested > 0 {
            found.push(Feature::NestedJoin);
        }
        let first = select.from.as_ref().and_then(Source::table);
        if first.is_some() && join.source.table() == first {
            found.push(Feature::SelfJoin);
        }
    }
    let strength = select.locking.as_ref().map(|l| l.strength);
    let patience = select.locking.as_ref().map(|l| l.patience);
    let updating = [LockStrength::Update, LockStrength::NoKeyUpdate].map(Some);
    let sharing = [LockStrength::Share, LockStrength::KeyShare].map(Some);
    let parts = [
        (!select.ctes.is_empty(), Feature::Cte),
        (select.from_and_joined().any(is_query), Feature::DerivedTable),
        (select.distinct, Feature::Distinct),
        (!select.group_by.is_empty(), Feature::GroupBy),
        (select.grouping == Grouping::Rollup, Feature::Rollup),
        (is_grouped_in_sets(select), Feature::GroupingSets),
        (!select.windows.is_empty(), Feature::NamedWindow),
        (!select.values.is_empty(), Feature::ValuesTable),
        (select.recursive, Feature::RecursiveCte),
        (select.limit.is_some(), Feature::Limit),
        (select.from_and_joined().any(is_lateral), Feature::Lateral),
        (select.having.is_some(), Feature::Having),
        (select.order != Order::None, Feature::OrderBy),
        (updating.contains(&strength), Feature::ForUpdate),
        (sharing.contains(&strength), Feature::ForShare),
        (patience == Some(LockPatience::NoWait), Feature::NoWait),
        (patience == Some(LockPatience::SkipLocked), Feature::SkipLocked),
    ];
    found.extend(parts.into_iter().filter(|(there, _)| *there).map(|(_, feature)| feature));
    if let Some((operator, _)) = &select.set_operation {
        found.push(match operator {
            SetOperator::Union | SetOperator::UnionAll => Feature::Union,
            SetOperator::Except | SetOperator::Intersect => Feature::ExceptIntersect,
        });
    }
    select.parts().for_each(|part| of_select(part, found));
}

fn is_grouped_in_sets(select: &Select) -> bool {
    matches!(select.grouping, Grouping::Cube | Grouping::Sets(_))
}

fn is_lateral(source: &Source) -> bool {
    matches!(source, Source::Derived { lateral: true, .. })
}

fn is_query(source: &Source) -> bool {
    matches!(source, Source::Derived { view: None, .. })
}

fn of_insert(insert: &Insert, found: &mut Vec<Feature>) {
    match &insert.source {
        InsertSource::Values(rows) if rows.len() > 1 => found.push(Feature::MultiRowInsert),
        InsertSource::Values(_) | InsertSource::Defaults => {}
        InsertSource::Select(select) => {
            found.push(Feature::InsertSelect);
            of_select(select, found);
        }
    }
    found.extend(match insert.conflict {
        Conflict::Fail => None,
        Conflict::Ignore | Conflict::DoNothing { .. } => Some(Feature::InsertIgnore),
        Conflict::Replace => Some(Feature::Replace),
        Conflict::Update { .. } => Some(Feature::Upsert),
    });
}

fn of_index(index: &Index, found: &mut Vec<Feature>) {
    let functional = |e: &Expr| !matches!(e, Expr::Column { .. });
    let parts = [
        (true, Feature::Index),
        (index.unique, Feature::UniqueIndex),
        (index.parts.len() > 1, Feature::MultiColumnIndex),
        (index.parts.iter().any(|p| p.descending), Feature::DescendingIndex),
        (index.parts.iter().any(|p| functional(&p.of)), Feature::FunctionalIndex),
        (index.only_where.is_some(), Feature::PartialIndex),
    ];
    found.extend(parts.into_iter().filter(|(there, _)| *there).map(|(_, feature)| feature));
}

fn of_table(table: &Table, schema: &Schema, found: &mut Vec<Feature>) {
    let children = schema.children(&table.name).flat_map(|child| &child.foreign_keys);
    let referring = children.filter(|key| key.parent == table.name);
    let references = table.foreign_keys.iter().chain(referring);
    for key in references {
        found.push(Feature::ForeignKey);
        let refuses = matches!(key.on_delete, OnDelete::Refuse | OnDelete::Restrict);
        if !refuses || key.update_cascades {
            found.push(Feature::ForeignKeyAction);
        }
    }
    for column in &table.columns {
        let generated = column.generated.as_ref().map(|g| g.stored);
        let parts = [
            (column.not_null, Feature::NotNull),
            (column.default.is_some(), Feature::Default),
            (generated == Some(true), Feature::GeneratedStored),
            (generated == Some(false), Feature::GeneratedVirtual),
        ];
        found.extend(parts.into_iter().filter(|(there, _)| *there).map(|(_, feature)| feature));
        found.extend(type_feature(&column.of_type));
    }
    let parts = [
        (!table.primary_key.is_empty(), Feature::PrimaryKey),
        (table.keys().iter().any(|k| k.len() > 1), Feature::CompositeKey),
        (!table.unique.is_empty(), Feature::UniqueKey),
        (!table.checks.is_empty(), Feature::Check),
        (table.partitioned_by.is_some(), Feature::Partition),
    ];
    found.extend(parts.into_iter().filter(|(there, _)| *there).map(|(_, feature)| feature));
    table.indexes.iter().for_each(|i| of_index(i, found));
}

pub fn type_feature(of_type: &Type) -> Option<Feature> {
    match of_type {
        Type::Int | Type::Text(Some(_)) | Type::Other(_) => None,
        Type::BigInt => Some(Feature::TypeBigInt),
        Type::Decimal => Some(Feature::TypeDecimal),
        Type::Float => Some(Feature::TypeFloat),
        Type::Text(None) => Some(Feature::TypeLongText),
        Type::Date => Some(Feature::TypeDate),
        Type::Bool => Some(Feature::TypeBool),
        Type::Blob => Some(Feature::TypeBlob),
    }
}
