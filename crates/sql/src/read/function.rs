//! Parses calls of functions, aggregates and window functions.

use super::Reader;
use super::expression::bytes;
use super::name::of_function;
use crate::ast::{Aggregate, Expr, Function, Literal, WindowFunction};
use crate::dialect::Family;
use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, OrderByExpr, WindowSpec, WindowType,
};

impl Reader {
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

    fn window(
        self,
        name: &str,
        all: bool,
        mut arguments: Vec<Expr>,
        over: WindowType,
        depth: usize,
    ) -> Option<Expr> {
        let WindowType::WindowSpec(WindowSpec {
            window_name: None,
            partition_by,
            order_by,
            window_frame: None,
        }) = over
        else {
            return None;
        };
        let (function, wanted) = match name {
            "row_number" => (WindowFunction::RowNumber, 0),
            "rank" => (WindowFunction::Rank, 0),
            "count" if all => (WindowFunction::Count, 0),
            "count" => (WindowFunction::Count, 1),
            "max" => (WindowFunction::Max, 1),
            "lag" => (WindowFunction::Lag, 1),
            _ => return None,
        };
        if arguments.len() != wanted || all && function != WindowFunction::Count {
            return None;
        }
        let ascending = |key: OrderByExpr| {
            let key = self.order_key(key, depth)?;
            (!key.descending && key.nulls_first.is_none()).then_some(key.of)
        };
        Some(Expr::Window {
            function,
            of: arguments.pop().map(Box::new),
            partition: self.exprs(partition_by, depth)?,
            order: order_by.into_iter().map(ascending).collect::<Option<_>>()?,
        })
    }
}
