//! Reads and writes between nodes.

/// A read of a version that another transaction wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub item: u32,
    /// The node that wrote the version, or [`INITIAL`].
    pub writer: u32,
    /// The position of the version in the known version order of the item, counted from 1;
    /// 0 is the initial version. [`UNKNOWN_POSITION`] if the known order does not contain it.
    pub position: u32,
    /// The index of the operation in the history.
    pub op: u32,
}

/// The position of a version that the known version order does not contain.
pub(crate) const UNKNOWN_POSITION: u32 = u32::MAX;

/// The last write of a transaction to an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub item: u32,
    pub op: u32,
}

/// A predicate read, with the matched versions whose writer is known.
#[derive(Clone, Debug)]
pub(crate) struct PredicateRead {
    pub node: u32,
    pub op: u32,
    /// Item and writer of each matched version.
    pub matched: Vec<(u32, u32)>,
}

/// The node number of a transaction that does not count as committed.
pub(crate) const NO_NODE: u32 = u32::MAX;
