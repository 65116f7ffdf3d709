//! Draws groups and aggregates.

use super::super::Sampler;
use super::{Surroundings, VisibleColumn};
use isolde_sql::{
    Aggregate, Binary, Class, Expr, Family, Feature, Grouping, OrderKey, Select, SelectItem, Type,
};

impl<'a> Sampler<'a> {
    pub(super) fn add_groups(
        &mut self,
        select: &mut Select,
        classes: &[Class],
        inside: &Surroundings<'a>,
        below: usize,
    ) -> bool {
        let mut groups: Vec<Expr> = Vec::new();
        let mut items: Vec<SelectItem> = Vec::new();
        for class in classes {
            let columns: Vec<Expr> = inside
                .own
                .iter()
                .filter(|c| c.class == *class && c.is_exact() && *class != Class::Float)
                .map(VisibleColumn::expr)
                .collect();
            let column = self.random.pick_any(&columns).cloned();
            match column {
                Some(column) if self.random.chance(45) => {
                    groups.push(column.clone());
                    items.push(column.into());
                }
                _ => items.push(self.aggregate_of(*class, inside, below).into()),
            }
        }
        if groups.is_empty() {
            return false;
        }
        select.items = items;
        select.group_by = groups;
        select.grouping = self.grouping(select.group_by.len());
        if self.has(Feature::Having) && self.random.chance(40) {
            let sign = *self.random.pick(&Binary::COMPARISONS);
            let left = self.aggregate_of(Class::Integer, inside, below.min(1));
            select.having =
                Some(Expr::binary(sign, left, Expr::int(self.random.between(0, 3) as i64)));
        }
        true
    }

    /// An exact value over a group. Sums of floats depend on the order of the rows.
    pub(super) fn aggregate_of(
        &mut self,
        class: Class,
        inside: &Surroundings<'a>,
        below: usize,
    ) -> Expr {
        let own = inside.without_outer();
        if class == Class::Text && self.has(Feature::Concatenation) && self.random.chance(30) {
            let exact = |c: &&VisibleColumn| c.class == class;
            let columns: Vec<Expr> =
                own.own.iter().filter(exact).map(VisibleColumn::expr).collect();
            if let Some(of) = self.random.pick_any(&columns).cloned() {
                return Expr::Aggregate {
                    function: Aggregate::Concat,
                    order: vec![OrderKey::ascending(of.clone())],
                    of: Some(Box::new(of)),
                    distinct: true,
                    filter: None,
                };
            }
        }
        let of = self.value(class, true, &own, below.min(1));
        let mut call = match self.random.below(5) {
            0 if class == Class::Integer => Expr::count_all(),
            1 if class == Class::Integer => Expr::aggregate(Aggregate::Count, of),
            2 if class == Class::Integer && self.has(Feature::Cast) => return self.sum(of),
            3 => Expr::aggregate(Aggregate::Min, of),
            _ => Expr::aggregate(Aggregate::Max, of),
        };
        if let Expr::Aggregate { of: Some(_), distinct, .. } = &mut call {
            *distinct = self.random.chance(25);
        }
        if self.has(Feature::Filter) && self.random.chance(20) {
            let condition = self.condition(&own, below.min(1));
            if let Expr::Aggregate { filter, .. } = &mut call {
                *filter = Some(Box::new(condition));
            }
        }
        call
    }

    /// A sum of small numbers, as an integer: its own type differs among engines.
    fn sum(&mut self, of: Expr) -> Expr {
        let of = Box::new(Expr::aggregate(Aggregate::Sum, of));
        let to = match self.dialect.family {
            Family::Mysql => Type::Other("signed".into()),
            _ => Type::BigInt,
        };
        Expr::Cast { of, to }
    }

    /// How the keys of GROUP BY are combined.
    fn grouping(&mut self, keys: usize) -> Grouping {
        let (rollup, sets) = (self.has(Feature::Rollup), self.has(Feature::GroupingSets));
        match self.random.weighted(&[80, if rollup { 10 } else { 0 }, if sets { 10 } else { 0 }]) {
            0 => Grouping::AllKeys,
            1 => Grouping::Rollup,
            _ if self.random.chance(40) => Grouping::Cube,
            _ => {
                let all: Vec<usize> = (0..keys).collect();
                let mut sets = vec![all.clone(), Vec::new()];
                sets.extend(all.into_iter().filter(|_| keys > 1).map(|place| vec![place]));
                Grouping::Sets(sets)
            }
        }
    }
}
