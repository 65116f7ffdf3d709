//! How the reference model identifies transactions and rows.

/// A transaction, by its index in the order of their beginnings.
pub type TxId = usize;

/// The committed pseudo-transaction that wrote the initial rows.
pub const FIRST_ROWS: TxId = 0;

/// Where a row is: table and chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub table: usize,
    pub chain: usize,
}
