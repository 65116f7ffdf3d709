//! Parses calls of functions, aggregates and window functions.

use super::Reader;
use super::expression::{bytes, optional};
use super::name::of_function;
use crate::ast::{
    Aggregate, Expr, Frame, FrameBound, FrameUnit, Function, Literal, NamedWindow, OrderKey, Over,
    Window, WindowFunction,
};
use crate::dialect::Family;
use sqlparser::ast::{
    self, CeilFloorKind, DateTimeField, DuplicateTreatment, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, NamedWindowDefinition,
    NamedWindowExpr, Value, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};

impl Reader {
    pub(super) fn function(self, function: ast::Function, depth: usize) -> Option<Expr> {
        let ast::Function {
            name,
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(arguments),
            within_group,
            filter,
            null_treatment: None,
            over,
        } = function
        else {
            return None;
        };
        let name = of_function(&name)?;
        let FunctionArgumentList { duplicate_treatment, args, clauses } = arguments;
        let (order, separator) = self.clauses(clauses, depth)?;
        let clear = order.is_empty() && separator.is_none() && filter.is_none();
        if !within_group.is_empty() {
            return None;
        }
        let filter = optional(filter, |e| Some(Box::new(self.expr(*e, depth)?)))?;
        let distinct = match duplicate_treatment {
            None => false,
            Some(DuplicateTreatment::Distinct) => true,
            Some(DuplicateTreatment::All) => return None,
        };
        let all = matches!(args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        let arguments = if all { Vec::new() } else { self.arguments(args, depth)? };
        match over {
            Some(over) if !distinct && clear => self.window(&name, all, arguments, over, depth),
            Some(_) => None,
            None => {
                if let Some(of) = self.concatenated(&name, separator.as_deref(), &arguments) {
                    // In another order, or in none, texts may be combined in several ways.
                    if let [key] = order.as_slice()
                        && key.of == of
                    {
                        let (function, of) = (Aggregate::Concat, Some(Box::new(of)));
                        return Some(Expr::Aggregate { function, of, distinct, order, filter });
                    }
                }
                if separator.is_some() {
                    return None;
                }
                let call = self.call(name, all, distinct, arguments)?;
                match call {
                    Expr::Aggregate { function, of, distinct, .. } => {
                        Some(Expr::Aggregate { function, of, distinct, order, filter })
                    }
                    other => clear.then_some(other),
                }
            }
        }
    }

    /// The order and the separator of the values that an aggregate combines.
    fn clauses(
        self,
        clauses: Vec<FunctionArgumentClause>,
        depth: usize,
    ) -> Option<(Vec<OrderKey>, Option<String>)> {
        let (mut order, mut separator) = (Vec::new(), None);
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) => {
                    let keys = keys.into_iter().map(|key| self.order_key(key, depth));
                    order = keys.collect::<Option<_>>()?;
                }
                FunctionArgumentClause::Separator(value) => match value.value {
                    Value::SingleQuotedString(text) => separator = Some(text),
                    _ => return None,
                },
                _ => return None,
            }
        }
        Some((order, separator))
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
            "bit_and" => Some(Aggregate::BitAnd),
            "bit_or" => Some(Aggregate::BitOr),
            "bool_and" => Some(Aggregate::BoolAnd),
            "bool_or" => Some(Aggregate::BoolOr),
            _ => None,
        };
        if let Some(function) = aggregate {
            // SQLite's min(a, b) is no aggregate.
            if all != arguments.is_empty() || all && function != Aggregate::Count {
                return None;
            } else if arguments.len() < 2 {
                let of = arguments.pop().map(Box::new);
                let (order, filter) = (Vec::new(), None);
                let call = Expr::Aggregate { function, of, distinct, order, filter };
                return (!(all && distinct)).then_some(call);
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
            WindowType::WindowSpec(over) => Over::Window(self.window_definition(over, depth)?),
            WindowType::NamedWindow(name) => Over::Named(self.column(&name)?),
        };
        let function = WindowFunction::from_name(name)?;
        let (least, most) = function.arguments();
        let fits = match all {
            true => function == WindowFunction::Count,
            false => (least..=most).contains(&arguments.len()),
        };
        fits.then_some(Expr::Window { function, arguments, over })
    }

    fn window_definition(self, window: WindowSpec, depth: usize) -> Option<Window> {
        let WindowSpec { window_name: None, partition_by, order_by, window_frame } = window else {
            return None;
        };
        let order = order_by.into_iter().map(|key| self.order_key(key, depth));
        Some(Window {
            partition: self.exprs(partition_by, depth)?,
            order: order.collect::<Option<_>>()?,
            frame: optional(window_frame, frame)?,
        })
    }

    /// The windows that a query names. One that is defined by another is not supported.
    pub(super) fn named_windows(
        self,
        definitions: Vec<NamedWindowDefinition>,
        depth: usize,
    ) -> Option<Vec<NamedWindow>> {
        let read = |NamedWindowDefinition(name, definition)| {
            let NamedWindowExpr::WindowSpec(window) = definition else { return None };
            let window = self.window_definition(window, depth)?;
            Some(NamedWindow { name: self.column(&name)?, window })
        };
        definitions.into_iter().map(read).collect()
    }

    /// The texts that a call combines with commas between them, if it does that.
    fn concatenated(self, name: &str, separator: Option<&str>, arguments: &[Expr]) -> Option<Expr> {
        let comma = |e: &Expr| *e == Expr::Literal(Literal::text(","));
        match (name, self.family, arguments, separator) {
            ("group_concat", Family::Mysql, [of], None | Some(",")) => Some(of.clone()),
            ("group_concat", Family::Sqlite, [of], None) => Some(of.clone()),
            ("group_concat", Family::Sqlite, [of, by], None) if comma(by) => Some(of.clone()),
            ("string_agg", Family::Postgres | Family::Duckdb, [of, by], None) if comma(by) => {
                Some(of.clone())
            }
            _ => None,
        }
    }
}

fn frame(frame: WindowFrame) -> Option<Frame> {
    let unit = match frame.units {
        WindowFrameUnits::Rows => FrameUnit::Rows,
        WindowFrameUnits::Range => FrameUnit::Range,
        WindowFrameUnits::Groups => FrameUnit::Groups,
    };
    Some(Frame { unit, start: bound(frame.start_bound)?, end: optional(frame.end_bound, bound)? })
}

fn bound(bound: WindowFrameBound) -> Option<FrameBound> {
    let rows = |e: &ast::Expr| match e {
        ast::Expr::Value(value) => match &value.value {
            Value::Number(digits, false) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    };
    Some(match bound {
        WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
        WindowFrameBound::Preceding(None) => FrameBound::UnboundedPreceding,
        WindowFrameBound::Preceding(Some(n)) => FrameBound::Preceding(rows(&n)?),
        WindowFrameBound::Following(None) => FrameBound::UnboundedFollowing,
        WindowFrameBound::Following(Some(n)) => FrameBound::Following(rows(&n)?),
    })
}
