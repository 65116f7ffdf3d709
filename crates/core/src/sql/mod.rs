//! One room for SQL: a typed statement that can be walked, made smaller and
//! written down in each dialect, and the words of statements that nobody has
//! parsed.
//!
//! The generator and [`read`] fill the typed statements, the renderer writes
//! them down for a [`Dialect`]; [`words`] and [`mod@split`] say of any text
//! where statements end and what kind each is. Column names of generated schemas are unique over all
//! tables, so a name needs a qualifier only where one table occurs twice.

pub(crate) mod coverage;
pub mod dialect;
pub mod expression;
pub mod feature;
pub mod read;
pub mod render;
pub mod render_schema;
pub mod render_select;
pub mod render_write;
pub mod schema;
pub mod select;
pub mod split;
pub mod statement;
pub mod transaction;
pub mod value;
pub mod view;
mod visit_mut;
pub mod words;
pub mod write;

pub use dialect::{Dialect, Family};
pub use expression::{Aggregate, Binary, Expr, Function, Unary, WindowFunction};
pub use feature::{Feature, Features};
pub use schema::{
    Column, ForeignKey, Generated, Index, IndexPart, Numbered, OnDelete, Schema, Table, View,
};
pub use select::{
    Cte, Join, JoinKind, LockPatience, LockStrength, Locking, Order, OrderKey, Select, SelectItem,
    SetOperator, Source,
};
pub use split::{Split, split};
pub use statement::Stmt;
pub use transaction::{Access, Begin, BeginMode, Characteristics, SetScope, SetTransaction};
pub use value::{Literal, Type};
pub use words::*;
pub use write::{Conflict, Delete, Insert, InsertSource, TableJoin, Update};
