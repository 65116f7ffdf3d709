//! Draws FROM clauses: tables, CTEs, derived tables, VALUES, and their joins.

use super::super::Sampler;
use super::{Surroundings, VisibleColumn};
use isolde_sql::{Binary, Class, Expr, Feature, Join, JoinKind, Select, Source, Using};

impl<'a> Sampler<'a> {
    /// A query that has only its sources yet, and what its expressions may use.
    pub(super) fn sources(
        &mut self,
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Option<(Select, Surroundings<'a>)> {
        let count = match depth {
            0 => 1,
            1 => 1 + self.random.weighted(&[70, 26, 4]),
            _ => 1 + self.random.weighted(&[45, 33, 22]),
        };
        let mut inside = around.clone();
        let mut select = Select::default();
        for place in 0..count {
            if place > 0 && depth > 1 && self.has(Feature::Lateral) && self.random.chance(12) {
                let (source, columns) = self.lateral(&inside, depth - 2)?;
                select.joins.push(Join::plain(JoinKind::Cross, source));
                inside.own.extend(columns);
                continue;
            }
            let (source, columns) = self.source(around, depth)?;
            if place == 0 {
                select.from = Some(source);
            } else {
                let join = self.join(source, &columns, &inside.own, place);
                select.joins.push(join);
            }
            inside.own.extend(columns);
        }
        // `a join (b join c on …) on …`: the condition of the first then may not use `c`.
        if count == 3
            && self.has(Feature::NestedJoin)
            && select.joins.iter().all(|j| j.on.is_some())
            && self.random.chance(40)
        {
            self.nest_joins(&mut select, &inside.own);
        }
        Some((select, inside))
    }

    fn source(
        &mut self,
        around: &Surroundings<'a>,
        depth: usize,
    ) -> Option<(Source, Vec<VisibleColumn<'a>>)> {
        let alias = self.fresh_name("r");
        if !around.ctes.is_empty() && self.random.chance(45) {
            let cte = self.random.pick(&around.ctes).clone();
            let columns = cte.columns.into_iter();
            let columns =
                columns.map(|c| VisibleColumn { qualifier: alias.clone(), ..c }).collect();
            return Some((Source::Table { name: cte.name, alias: Some(alias) }, columns));
        }
        if depth > 1 && self.has(Feature::DerivedTable) && self.random.chance(16) {
            let (select, columns) = self.named_columns(&around.apart(), depth - 2, &alias)?;
            return Some((Source::query(select, &alias), columns));
        }
        if depth > 1 && self.has(Feature::ValuesTable) && self.random.chance(7) {
            return Some(self.values_table(alias));
        }
        let table =
            if self.forbidden_tables.is_empty() { self.any_table() } else { self.table_to_read()? };
        let columns = table.columns.iter().map(|c| VisibleColumn::of_table(&alias, c)).collect();
        Some((Source::Table { name: table.name.clone(), alias: Some(alias) }, columns))
    }

    fn join(
        &mut self,
        source: Source,
        columns: &[VisibleColumn<'a>],
        before: &[VisibleColumn<'a>],
        place: usize,
    ) -> Join {
        let pairs: Vec<(&VisibleColumn, &VisibleColumn)> = before
            .iter()
            .flat_map(|l| columns.iter().map(move |r| (l, r)))
            .filter(|(l, r)| l.class == r.class && l.class != Class::Blob)
            .collect();
        let Some((left, right)) = self.random.pick_any(&pairs) else {
            return Join::plain(JoinKind::Cross, source);
        };
        let named: Vec<String> =
            pairs.iter().filter(|(l, r)| l.name == r.name).map(|(l, _)| l.name.clone()).collect();
        let (left, right) = (left.expr(), right.expr());
        let outer = if self.has(Feature::RightJoin) { 8 } else { 0 };
        let full = if self.has(Feature::FullJoin) { 6 } else { 0 };
        let cross = if place == 1 { 8 } else { 0 };
        let kind = match self.random.weighted(&[50, 34, outer, full, cross]) {
            0 => JoinKind::Inner,
            1 => JoinKind::Left,
            2 => JoinKind::Right,
            3 => JoinKind::Full,
            _ => return Join::plain(JoinKind::Cross, source),
        };
        // A name must be unique on either side.
        if place == 1
            && self.has(Feature::JoinUsing)
            && self.random.chance(50)
            && let Some(name) = self.random.pick_any(&named)
        {
            let using = Using::Columns(vec![name.clone()]);
            return Join { kind, source, on: None, using, nested: 0 };
        }
        // PostgreSQL can only compute a full join by equality.
        let equal = kind == JoinKind::Full || self.random.chance(80);
        let sign = if equal { Binary::Equal } else { Binary::AtMost };
        let on = Some(Expr::binary(sign, left, right));
        Join { kind, source, on, using: Using::Nothing, nested: 0 }
    }

    /// Moves the third source into parentheses with the second, if the conditions allow it.
    fn nest_joins(&mut self, select: &mut Select, columns: &[VisibleColumn<'a>]) {
        let name = |n: usize| select.joins[n].source.visible_name().map(str::to_string);
        let (second, third) = (name(0), name(1));
        let of = |name: &Option<String>| -> Vec<&VisibleColumn> {
            let fits = |c: &&VisibleColumn| Some(&c.qualifier) == name.as_ref();
            columns.iter().filter(fits).filter(|c| c.class != Class::Blob).collect()
        };
        let pairs: Vec<Expr> = of(&second)
            .iter()
            .flat_map(|l| of(&third).into_iter().map(move |r| (*l, r)))
            .filter(|(l, r)| l.class == r.class)
            .map(|(l, r)| Expr::binary(Binary::Equal, l.expr(), r.expr()))
            .collect();
        if let Some(on) = self.random.pick_any(&pairs) {
            select.joins[0].nested = 1;
            select.joins[1].on = Some(on.clone());
        }
    }

    /// A derived table that uses the columns of the sources before it.
    fn lateral(
        &mut self,
        before: &Surroundings<'a>,
        depth: usize,
    ) -> Option<(Source, Vec<VisibleColumn<'a>>)> {
        let alias = self.fresh_name("r");
        let outer = before.own.clone();
        let around = Surroundings { own: Vec::new(), outer, ctes: before.ctes.clone() };
        let (select, columns) = self.named_columns(&around, depth, &alias)?;
        let (select, view) = (Box::new(select), None);
        let (lateral, alias) = (true, Some(alias));
        Some((Source::Derived { lateral, select, alias, columns: Vec::new(), view }, columns))
    }

    /// A table of a few literal rows.
    fn values_table(&mut self, alias: String) -> (Source, Vec<VisibleColumn<'a>>) {
        const CLASSES: [Class; 4] = [Class::Integer, Class::Text, Class::Integer, Class::Date];
        let classes: Vec<Class> =
            (0..self.random.between(1, 3)).map(|_| *self.random.pick(&CLASSES)).collect();
        let rows = self.random.between(1, 4);
        let mut row = || -> Vec<Expr> {
            classes.iter().map(|class| Expr::Literal(self.literal(*class, true))).collect()
        };
        let values = (0..rows).map(|_| row()).collect();
        let names: Vec<String> = (1..=classes.len()).map(|n| format!("v{n}")).collect();
        let columns = names.iter().zip(&classes).map(|(name, class)| VisibleColumn {
            qualifier: alias.clone(),
            name: name.clone(),
            class: *class,
            small: *class == Class::Integer,
            stored: None,
        });
        let columns = columns.collect();
        let select = Box::new(Select { values, ..Select::default() });
        let (lateral, alias, view) = (false, Some(alias), None);
        (Source::Derived { lateral, select, alias, columns: names, view }, columns)
    }
}
