//! Smaller expressions of the same type.

use isolde_sql::{Binary, Expr, Function, Literal, Select, Type, Unary};

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

/// Smaller copies of a subquery. They keep its columns, because the statement around it
/// uses them.
pub fn smaller_subquery(select: &Select) -> Vec<Select> {
    let with_filter = |filter| Select { filter, ..select.clone() };
    smaller_condition(&select.filter).into_iter().map(with_filter).collect()
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
