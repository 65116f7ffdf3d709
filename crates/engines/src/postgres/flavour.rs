//! Which of the two servers that speak PostgreSQL's protocol it is.

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    Postgres,
    Cockroach,
}
