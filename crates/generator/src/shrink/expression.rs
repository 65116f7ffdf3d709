//! Smaller expressions of the same type.

use isolde_sql::{Binary, Expr, Function, Grouping, Literal, Order, Over, Select, Type, Unary};

/// Copies of the expression, each with one part made smaller.
pub fn smaller(expression: &Expr) -> Vec<Expr> {
    let mut found = Vec::new();
    match expression {
        Expr::Binary(sign, left, right) if sign.is_logic() => {
            found.extend([(**left).clone(), (**right).clone()]);
        }
        Expr::Binary(Binary::Plus | Binary::Minus | Binary::Times, left, _) => {
            found.push((**left).clone());
        }
        Expr::Unary(Unary::Not, of) => found.push((**of).clone()),
        Expr::Call(Function::Coalesce | Function::NullIf | Function::Abs, arguments) => {
            found.extend(arguments.first().cloned());
        }
        // An argument may have the type of the result, or a literal may.
        Expr::Call(Function::Named(_), arguments) => found.extend(arguments.iter().cloned()),
        Expr::Case { branches, otherwise, .. } => {
            found.extend(otherwise.as_deref().cloned());
            found.extend(branches.iter().map(|(_, then)| then.clone()));
        }
        Expr::InList { of, items, negated } if items.len() > 1 => {
            for left_out in 0..items.len() {
                let mut items = items.clone();
                items.remove(left_out);
                found.push(Expr::InList { of: of.clone(), items, negated: *negated });
            }
        }
        _ => {}
    }
    found.extend(is_computed_number(expression).then(|| Expr::int(1)));
    for (place, child) in expression.children().into_iter().enumerate() {
        for new in smaller(child) {
            let mut whole = expression.clone();
            *whole.children_mut()[place] = new;
            found.push(whole);
        }
    }
    for new in expression.subquery().map(smaller_subquery).unwrap_or_default() {
        let mut whole = expression.clone();
        *whole.subquery_mut().expect("it has the one that was made smaller") = new;
        found.push(whole);
    }
    found
}

fn is_computed_number(expression: &Expr) -> bool {
    match expression {
        Expr::Binary(sign, ..) => matches!(
            sign,
            Binary::Plus | Binary::Minus | Binary::Times | Binary::Divide | Binary::Modulo
        ),
        Expr::Call(function, _) => matches!(function, Function::Abs | Function::Length),
        Expr::Unary(Unary::Negative, of) => !matches!(**of, Expr::Literal(_)),
        Expr::Scalar(_) => true,
        _ => false,
    }
}

/// A constant of this type in place of a computed value.
pub fn constant(value: &Expr, of: &Type) -> Option<Expr> {
    if matches!(value, Expr::Literal(_) | Expr::Default) {
        return None;
    }
    let plain = match of {
        Type::Int | Type::BigInt => Literal::Int(1),
        Type::Decimal => Literal::Decimal(100),
        Type::Float => Literal::Float(4),
        Type::Text(_) => Literal::Text("a".into()),
        Type::Date => Literal::Date("2020-01-01".into()),
        Type::Bool => Literal::Bool(true),
        Type::Blob | Type::Other(_) => return None,
    };
    Some(Expr::Literal(plain))
}

/// Variants of an optional condition: removed, or smaller.
pub fn smaller_condition(condition: &Option<Expr>) -> Vec<Option<Expr>> {
    match condition {
        None => Vec::new(),
        Some(e) => std::iter::once(None).chain(smaller(e).into_iter().map(Some)).collect(),
    }
}

/// Smaller copies of a query. They keep its columns, because the statement around it uses them.
pub fn smaller_subquery(select: &Select) -> Vec<Select> {
    let mut found = Vec::new();
    let mut add = |edit: &mut dyn FnMut(&mut Select)| {
        let mut copy = select.clone();
        edit(&mut copy);
        if copy != *select {
            found.push(copy);
        }
    };
    add(&mut |s| s.set_operation = None);
    add(&mut |s| s.distinct = false);
    add(&mut |s| s.having = None);
    add(&mut |s| s.grouping = Grouping::AllKeys);
    add(&mut |s| s.offset = None);
    add(&mut |s| (s.limit, s.offset) = (None, None));
    if select.limit.is_none() {
        add(&mut |s| s.order = Order::None);
    }
    for place in 0..select.joins.len() {
        if select.joins[place].nested == 0 && !uses_join(select, place) {
            add(&mut |s| s.remove_join(place));
        }
    }
    for (place, cte) in select.ctes.iter().enumerate() {
        let mut rest = select.clone();
        rest.ctes.remove(place);
        if !rest.sources().contains(&cte.name.as_str()) {
            add(&mut |s| drop(s.ctes.remove(place)));
        }
    }
    for place in 0..select.windows.len() {
        let name = &select.windows[place].name;
        let mut used = false;
        let names = |e: &Expr| matches!(e, Expr::Window { over: Over::Named(n), .. } if n == name);
        select.visit(&mut |e| used |= names(e));
        if !used {
            add(&mut |s| drop(s.windows.remove(place)));
        }
    }
    for place in (0..select.values.len()).filter(|_| select.values.len() > 1) {
        add(&mut |s| drop(s.values.remove(place)));
    }
    for (place, item) in select.items.iter().enumerate() {
        for new in item.expression().map(smaller).unwrap_or_default() {
            add(&mut |s| {
                if let Some(of) = s.items[place].expression_mut() {
                    *of = new.clone();
                }
            });
        }
    }
    for filter in smaller_condition(&select.filter) {
        add(&mut |s| s.filter = filter.clone());
    }
    let parts = select.parts().count();
    for place in 0..parts {
        for new in select.parts().nth(place).map(smaller_subquery).unwrap_or_default() {
            add(&mut |s| {
                if let Some(part) = s.parts_mut().nth(place) {
                    *part = new.clone();
                }
            });
        }
    }
    found
}

/// Whether anything but the condition of the join may use its source.
fn uses_join(select: &Select, place: usize) -> bool {
    let visible = select.joins[place].source.visible_name();
    let mut rest = select.clone();
    rest.remove_join(place);
    let mut used = false;
    rest.visit(&mut |e| {
        if let Expr::Column { qualifier, .. } = e {
            used |= qualifier.is_none() || qualifier.as_deref() == visible;
        }
    });
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_shrinks_to_its_operands_at_any_depth() {
        let is = |name: &str, n| Expr::binary(Binary::Equal, Expr::column(name), Expr::int(n));
        let inner = Expr::unary(Unary::Not, is("b", 2));
        let whole = is("a", 1).and(inner.clone());
        let smaller = smaller(&whole);
        assert!(smaller.contains(&is("a", 1)) && smaller.contains(&inner));
        assert!(smaller.contains(&is("a", 1).and(is("b", 2))));
        assert_eq!(smaller_condition(&Some(is("a", 1))), [None]);
    }

    #[test]
    fn computed_value_becomes_a_constant_of_its_type() {
        let sum = Expr::binary(Binary::Plus, Expr::column("a"), Expr::column("b"));
        let whole = Expr::binary(Binary::Equal, Expr::column("a"), sum.clone());
        let plain = Expr::binary(Binary::Equal, Expr::column("a"), Expr::int(1));
        assert!(smaller(&whole).contains(&plain));
        assert!(!smaller(&plain).contains(&plain));
        assert_eq!(constant(&sum, &Type::Int), Some(Expr::int(1)));
        let text = Some(Expr::Literal(Literal::Text("a".into())));
        assert_eq!(constant(&Expr::column("c"), &Type::Text(None)), text);
        assert_eq!(constant(&Expr::int(7), &Type::Int), None);
        assert_eq!(constant(&Expr::Default, &Type::Int), None);
    }
}
