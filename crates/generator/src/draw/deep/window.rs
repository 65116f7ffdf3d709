//! Draws window functions.

use super::super::Sampler;
use super::{Surroundings, VisibleColumn};
use isolde_sql::{
    Class, Expr, Feature, Frame, FrameBound, FrameUnit, NamedWindow, OrderKey, Over, Select,
    SelectItem, Window, WindowFunction,
};

impl<'a> Sampler<'a> {
    /// Items with window functions over all rows in the order of all columns, so that only equal
    /// rows are ties. False if there is no column of a class.
    pub(super) fn add_windows(
        &mut self,
        select: &mut Select,
        classes: &[Class],
        inside: &Surroundings<'a>,
        exactly: bool,
    ) -> bool {
        let order: Vec<OrderKey> =
            inside.own.iter().map(|c| OrderKey::ascending(c.expr())).collect();
        let fit = |c: &&VisibleColumn| !matches!(c.class, Class::Float | Class::Blob);
        let groups: Vec<Expr> = inside.own.iter().filter(fit).map(VisibleColumn::expr).collect();
        let mut items: Vec<SelectItem> = Vec::new();
        for class in classes {
            // No literal, whose type PostgreSQL does not know, and no column of an outer query,
            // for which MariaDB returns wrong rows.
            let exact = |c: &&VisibleColumn| c.class == *class && c.is_exact();
            let columns: Vec<Expr> =
                inside.own.iter().filter(exact).map(VisibleColumn::expr).collect();
            let Some(of) = self.random.pick_any(&columns).cloned() else { return false };
            let number = *class == Class::Integer;
            use WindowFunction::*;
            let (function, arguments) = match self.random.below(16) {
                0 if number => (RowNumber, Vec::new()),
                1 if number => (Rank, Vec::new()),
                2 if number => (DenseRank, Vec::new()),
                3 if number => (Ntile, vec![Expr::int(self.random.between(2, 4) as i64)]),
                4 if number => (Count, Vec::new()),
                5 if number => (Count, vec![of]),
                6 if *class == Class::Float && !exactly => (PercentRank, Vec::new()),
                7 if *class == Class::Float && !exactly => (CumeDist, Vec::new()),
                7 => (NthValue, vec![of, Expr::int(self.random.between(1, 3) as i64)]),
                8 => (Lead, vec![of]),
                9 => (FirstValue, vec![of]),
                10 => (LastValue, vec![of]),
                11 => (Min, vec![of]),
                12 => (Max, vec![of]),
                13 => (Lag, vec![of, Expr::int(self.random.between(1, 2) as i64)]),
                _ => (Lag, vec![of]),
            };
            let partition =
                if self.random.chance(45) { self.random.some_of(&groups, 2) } else { Vec::new() };
            let frame = self.frame(function);
            let window = Window { partition, order: order.clone(), frame };
            let over = self.over(select, window);
            items.push(Expr::Window { function, arguments, over }.into());
        }
        select.items = items;
        true
    }

    /// A window, which the query may name.
    fn over(&mut self, select: &mut Select, window: Window) -> Over {
        if !self.has(Feature::NamedWindow) || !self.random.chance(30) {
            return Over::Window(window);
        }
        let name = self.fresh_name("w");
        select.windows.push(NamedWindow { name: name.clone(), window });
        Over::Named(name)
    }

    /// A frame for a function that has one. Rows are counted in a total order.
    fn frame(&mut self, function: WindowFunction) -> Option<Frame> {
        use WindowFunction::*;
        let framed = matches!(function, FirstValue | LastValue | NthValue | Count | Min | Max);
        if !framed || !self.has(Feature::WindowFrame) || !self.random.chance(40) {
            return None;
        }
        let rows = |m: &mut Self| m.random.between(1, 3) as u32;
        let start = match self.random.below(3) {
            0 => FrameBound::UnboundedPreceding,
            1 => FrameBound::Preceding(rows(self)),
            _ => FrameBound::CurrentRow,
        };
        let end = match self.random.below(4) {
            0 => None,
            1 => Some(FrameBound::CurrentRow),
            2 => Some(FrameBound::Following(rows(self))),
            _ => Some(FrameBound::UnboundedFollowing),
        };
        Some(Frame { unit: FrameUnit::Rows, start, end })
    }
}
