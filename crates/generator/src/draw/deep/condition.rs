//! Draws conditions.

use super::super::Sampler;
use super::{Surroundings, VisibleColumn};
use isolde_sql::{Binary, Class, Expr, Feature, Literal, Unary};

impl<'a> Sampler<'a> {
    /// Draws a condition. At depth 0 it compares one column with values that are stored.
    pub(super) fn condition(&mut self, around: &Surroundings<'a>, depth: usize) -> Expr {
        if depth == 0 || self.random.chance(15) {
            return self.simple_test(around);
        }
        let below = depth - 1;
        let subquery = |f: Feature, weight| if self.has(f) { weight } else { 0 };
        let in_select = subquery(Feature::InSubquery, 17);
        let exists = subquery(Feature::ExistsSubquery, 17);
        let quantified = subquery(Feature::Quantified, 5);
        let row = subquery(Feature::RowValue, 4);
        let weights = [14, 12, 5, 24, 6, 6, 5, 4, in_select, exists, quantified, row];
        let drawn = match self.random.weighted(&weights) {
            0 => Some(self.condition(around, below).and(self.condition(around, below))),
            1 => {
                let left = self.condition(around, below);
                Some(Expr::binary(Binary::Or, left, self.condition(around, below)))
            }
            2 => Some(Expr::unary(Unary::Not, self.condition(around, below))),
            3 => Some(self.compared_values(around, below)),
            4 => Some(self.between_values(around, below)),
            5 => Some(self.in_values(around, below)),
            6 => {
                let class = self.class_in(around);
                let sign = *self.random.pick(&[Unary::IsNull, Unary::IsNotNull]);
                Some(Expr::unary(sign, self.value(class, false, around, below)))
            }
            7 => Some(self.like(around, below)),
            8 => self.in_query(around, below),
            9 => self.exists_query(around, below),
            10 => self.quantified_query(around, below),
            _ => self.row_in_query(around, below),
        };
        drawn.unwrap_or_else(|| self.simple_test(around))
    }

    /// A class that columns in sight have.
    pub(super) fn class_in(&mut self, around: &Surroundings<'a>) -> Class {
        let from = if around.own.is_empty() { &around.outer } else { &around.own };
        let usable = |c: &&VisibleColumn| !matches!(c.class, Class::Blob | Class::Other);
        let classes: Vec<Class> = from.iter().filter(usable).map(|c| c.class).collect();
        self.random.pick_any(&classes).copied().unwrap_or(Class::Integer)
    }

    /// A test of one column with values that are stored, so that rows pass it.
    pub(super) fn simple_test(&mut self, around: &Surroundings<'a>) -> Expr {
        let from = if around.own.is_empty() { &around.outer } else { &around.own };
        let usable = |c: &&VisibleColumn| !matches!(c.class, Class::Blob | Class::Other);
        let columns: Vec<VisibleColumn> = from.iter().filter(usable).cloned().collect();
        let Some(column) = self.random.pick_any(&columns) else {
            let (left, right) = (self.literal(Class::Integer, true), Literal::Int(5));
            return Expr::binary(Binary::Less, Expr::Literal(left), Expr::Literal(right));
        };
        let of = column.expr();
        match self.random.below(6) {
            0 => Expr::unary(*self.random.pick(&[Unary::IsNull, Unary::IsNotNull]), of),
            1 => {
                let items = (0..3).map(|_| Expr::Literal(self.value_near(column))).collect();
                Expr::InList { of: Box::new(of), items, negated: self.random.chance(20) }
            }
            _ => {
                let sign = *self.random.pick(&Binary::COMPARISONS);
                Expr::binary(sign, of, Expr::Literal(self.value_near(column)))
            }
        }
    }

    fn value_near(&mut self, column: &VisibleColumn<'a>) -> Literal {
        match column.stored {
            Some(stored) => self.likely_value(stored),
            None => self.literal(column.class, false),
        }
    }

    fn compared_values(&mut self, around: &Surroundings<'a>, below: usize) -> Expr {
        let class = self.class_in(around);
        let sign = *self.random.pick(&Binary::COMPARISONS);
        let left = self.value(class, false, around, below);
        Expr::binary(sign, left, self.value(class, false, around, below))
    }

    fn between_values(&mut self, around: &Surroundings<'a>, below: usize) -> Expr {
        let class = self.class_in(around);
        let mut value = || Box::new(self.value(class, false, around, below));
        let (of, low, high) = (value(), value(), value());
        Expr::Between { of, low, high, negated: self.random.chance(40) }
    }

    fn in_values(&mut self, around: &Surroundings<'a>, below: usize) -> Expr {
        let class = self.class_in(around);
        let of = Box::new(self.value(class, false, around, below));
        // A list that begins with a subquery is taken for one by some parsers.
        let mut items = vec![self.leaf(class, false, around)];
        let count = self.random.between(1, 3);
        items.extend((0..count).map(|_| self.value(class, false, around, below / 2)));
        Expr::InList { of, items, negated: self.random.chance(40) }
    }

    fn like(&mut self, around: &Surroundings<'a>, below: usize) -> Expr {
        let of = Box::new(self.value(Class::Text, false, around, below));
        let pattern = *self.random.pick(&["a%", "%b%", "_", "%", "%t"]);
        let pattern = Box::new(Expr::Literal(Literal::text(pattern)));
        Expr::Like { of, pattern, negated: self.random.chance(40) }
    }

    fn in_query(&mut self, around: &Surroundings<'a>, below: usize) -> Option<Expr> {
        let class = self.class_in(around);
        let of = Box::new(self.value(class, false, around, below));
        let (select, _) = self.query(Some(&[class]), &around.inside(), below)?;
        Some(Expr::InSelect { of, select: Box::new(select), negated: self.random.chance(35) })
    }

    fn quantified_query(&mut self, around: &Surroundings<'a>, below: usize) -> Option<Expr> {
        let class = self.class_in(around);
        let (sign, all) = (*self.random.pick(&Binary::COMPARISONS), self.random.chance(50));
        let of = Box::new(self.value(class, false, around, below));
        let (select, _) = self.query(Some(&[class]), &around.inside(), below)?;
        Some(Expr::Quantified { sign, of, all, select: Box::new(select) })
    }

    /// `(a, b) in (select …)`, or a comparison of two rows.
    fn row_in_query(&mut self, around: &Surroundings<'a>, below: usize) -> Option<Expr> {
        let classes = [self.class_in(around), self.class_in(around)];
        let row =
            |m: &mut Self| Expr::Row(classes.iter().map(|c| m.leaf(*c, false, around)).collect());
        let of = row(self);
        if self.random.chance(30) {
            return Some(Expr::binary(Binary::Equal, of, row(self)));
        }
        let (select, _) = self.query(Some(&classes), &around.inside(), below)?;
        let (of, select) = (Box::new(of), Box::new(select));
        Some(Expr::InSelect { of, select, negated: self.random.chance(35) })
    }

    fn exists_query(&mut self, around: &Surroundings<'a>, below: usize) -> Option<Expr> {
        let (select, _) = self.query(None, &around.inside(), below)?;
        Some(Expr::Exists { select: Box::new(select), negated: self.random.chance(35) })
    }
}
