//! A small typed SQL: just what is generated, as data that can be walked,
//! made smaller and written down in each dialect.
//!
//! Column names are unique over all tables of a schema, so a name needs a
//! qualifier only where one table occurs twice.

pub mod expression;
pub mod render;
pub mod render_schema;
pub mod render_write;
pub mod schema;
pub mod select;
pub mod statement;
pub mod value;
pub mod write;

pub use expression::{Aggregate, Binary, Expr, Function, Unary, WindowFunction};
pub use schema::{Column, ForeignKey, Generated, Index, IndexPart, OnDelete, Schema, Table};
pub use select::{
    Cte, Join, JoinKind, LockPatience, LockStrength, Locking, Order, Select, SetOperator, Source,
};
pub use statement::Stmt;
pub use value::{Literal, Type};
pub use write::{Conflict, Delete, Insert, InsertSource, TableJoin, Update};
