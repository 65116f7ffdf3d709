//! Typed SQL: statements as syntax trees, and the dialects they are written in.
//!
//! ```text
//!   text ──lexer──► statements ──read──► Stmt ──render──► text of a Dialect
//!                                         ▲
//!                     generator, reducer ─┘
//! ```
//!
//! `ast` has the syntax tree: [`Stmt`] and the [`Schema`]. The generator and
//! [`read`] build it, [`render`] writes it as SQL of a [`Dialect`], `coverage`
//! lists the [`Feature`]s that a statement exercises. The [`lexer`] works on any
//! text, parsed or not: it finds where statements end and of which kind each is.
//! A [`Fixture`] is the tables and rows that a run starts from. Column names of
//! generated schemas are unique over all tables, so a name needs a qualifier
//! only where one table occurs twice.
//!
//! Dialects and their features are data of the catalogue of engines. This crate does no I/O.

#![forbid(unsafe_code)]

mod ast;
mod coverage;
pub mod fixture;
pub mod functions;
pub mod lexer;
pub mod read;
pub mod render;

pub use ast::*;
pub use coverage::type_feature;
pub use fixture::Fixture;
pub use isolde_catalog::{
    BeginForm, Dialect, Family, Feature, Features, Level, Selector, dialect, selector,
};
pub use lexer::*;
