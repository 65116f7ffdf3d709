//! Parses calls of functions, aggregates and window functions.

use super::Reader;
use super::expression::bytes;
use super::name::of_function;
use crate::ast::{Aggregate, Expr, Function, Literal, WindowFunction};
use crate::dialect::Family;
use sqlparser::ast::{
    self, CeilFloorKind, DateTimeField, DuplicateTreatment, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, NamedWindowDefinition, NamedWindowExpr, WindowSpec,
    WindowType,
};

impl Reader<'_> {
    pub(super) fn function(self, function: ast::Function, depth: usize) -> Option<Expr> {
        let ast::Function {
            name,
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(arguments),
            within_group,
            filter: None,
            null_treatment: None,
            over,
        } = function
        else {
            return None;
        };
        let name = of_function(&name)?;
        let FunctionArgumentList { duplicate_treatment, args, clauses } = arguments;
        if !within_group.is_empty() || !clauses.is_empty() {
            return None;
        }
        let distinct = match duplicate_treatment {
            None => false,
            Some(DuplicateTreatment::Distinct) => true,
            Some(DuplicateTreatment::All) => return None,
        };
        let all = matches!(args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        let arguments = if all { Vec::new() } else { self.arguments(args, depth)? };
        match over {
            Some(over) if !distinct => self.window(&name, all, arguments, over, depth),
            Some(_) => None,
            None => self.call(name, all, distinct, arguments),
        }
    }

    fn arguments(self, args: Vec<FunctionArg>, depth: usize) -> Option<Vec<Expr>> {
        let argument = |arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => self.expr(e, depth),
            _ => None,
        };
        args.into_iter().map(argument).collect()
    }

    fn call(
        self,
        name: String,
        all: bool,
        distinct: bool,
        mut arguments: Vec<Expr>,
    ) -> Option<Expr> {
        let aggregate = match name.as_str() {
            "count" => Some(Aggregate::Count),
            "min" => Some(Aggregate::Min),
            "max" => Some(Aggregate::Max),
            "sum" => Some(Aggregate::Sum),
            "avg" => Some(Aggregate::Avg),
            _ => None,
        };
        if let Some(function) = aggregate {
            // SQLite's min(a, b) is no aggregate.
            if all != arguments.is_empty() || all && function != Aggregate::Count {
                return None;
            } else if arguments.len() < 2 {
                let of = arguments.pop().map(Box::new);
                return (!(all && distinct)).then_some(Expr::Aggregate { function, of, distinct });
            }
        }
        if all || distinct {
            return None;
        }
        if let ("unhex", Family::Duckdb, [Expr::Literal(Literal::Text(digits))]) =
            (name.as_str(), self.family, arguments.as_slice())
        {
            return Some(Expr::Literal(Literal::Blob(bytes(digits)?)));
        }
        let function = match name.as_str() {
            "coalesce" => Function::Coalesce,
            "nullif" => Function::NullIf,
            "abs" => Function::Abs,
            "length" => Function::Length,
            _ => Function::Named(name),
        };
        Some(Expr::Call(function, arguments))
    }

    /// A function that `sqlparser` has a syntax of its own for.
    pub(super) fn keyword_function(self, parsed: ast::Expr, depth: usize) -> Option<Expr> {
        let plain = CeilFloorKind::DateTimeField(DateTimeField::NoDateTime);
        let (name, arguments) = match parsed {
            ast::Expr::Floor { expr, field } if field == plain => ("floor", vec![*expr]),
            ast::Expr::Ceil { expr, field } if field == plain => ("ceil", vec![*expr]),
            ast::Expr::Trim { expr, trim_where: None, trim_what: None, trim_characters: None } => {
                ("trim", vec![*expr])
            }
            ast::Expr::Substring {
                expr,
                substring_from: Some(from),
                substring_for,
                special: _,
                shorthand,
            } => {
                let name = if shorthand { "substr" } else { "substring" };
                (name, [*expr, *from].into_iter().chain(substring_for.map(|e| *e)).collect())
            }
            _ => return None,
        };
        Some(Expr::Call(Function::Named(name.into()), self.exprs(arguments, depth)?))
    }

    fn window(
        self,
        name: &str,
        all: bool,
        arguments: Vec<Expr>,
        over: WindowType,
        depth: usize,
    ) -> Option<Expr> {
        let over = match over {
            WindowType::WindowSpec(over) => over,
            WindowType::NamedWindow(name) => {
                let name = name.value.to_lowercase();
                self.windows.iter().find(|(other, _)| *other == name)?.1.clone()
            }
        };
        let WindowSpec { window_name: None, partition_by, order_by, window_frame: None } = over
        else {
            return None;
        };
        let function = WindowFunction::from_name(name)?;
        let (least, most) = function.arguments();
        let fits = match all {
            true => function == WindowFunction::Count,
            false => (least..=most).contains(&arguments.len()),
        };
        let order = order_by.into_iter().map(|key| self.order_key(key, depth));
        fits.then_some(Expr::Window {
            function,
            arguments,
            partition: self.exprs(partition_by, depth)?,
            order: order.collect::<Option<_>>()?,
        })
    }
}

/// The windows that a query names. One that is defined by another is not supported.
pub(super) fn named_windows(
    definitions: Vec<NamedWindowDefinition>,
) -> Option<Vec<(String, WindowSpec)>> {
    let read = |NamedWindowDefinition(name, definition)| {
        let NamedWindowExpr::WindowSpec(window) = definition else { return None };
        window.window_name.is_none().then(|| (name.value.to_lowercase(), window))
    };
    definitions.into_iter().map(read).collect()
}
