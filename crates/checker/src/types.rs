//! Types and constants that all decision procedures share.

/// The writer of initial versions, in place of a transaction.
pub const INITIAL: u32 = u32::MAX;

/// No transaction, version, node or literal.
pub(crate) const NONE: u32 = u32::MAX;

/// The orders that a level requires besides the dependencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequiredOrders {
    /// Session order: the transactions of one session, one after the other.
    pub sessions: bool,
    /// Real-time order: a transaction that ended before another one began comes before it.
    pub times: bool,
}
