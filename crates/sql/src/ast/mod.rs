//! The syntax tree of statements and schemas.

mod operator;
mod query;
mod schema;
mod statement;
mod transaction;
mod value;
mod view;
mod visit;
mod write;

pub use operator::{Aggregate, Binary, Function, Unary, WindowFunction};
pub use query::{
    Cte, Expr, Frame, FrameBound, FrameUnit, Grouping, Join, JoinKind, LockPatience, LockStrength,
    Locking, NamedWindow, Order, OrderKey, Over, Select, SelectItem, SetOperator, Source, Using,
    Window, sources_below,
};
pub use schema::{
    Column, ForeignKey, Generated, Index, IndexPart, Numbered, OnDelete, Schema, Table, View,
};
pub use statement::{Ddl, Stmt};
pub use transaction::{
    Access, Begin, BeginMode, Characteristics, Control, SetScope, SetTransaction,
};
pub use value::{Class, Literal, Type};
pub use write::{
    Conflict, Delete, Insert, InsertSource, MatchKind, Merge, MergeAction, MergeClause, TableJoin,
    Update, Write,
};
