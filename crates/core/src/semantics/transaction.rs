//! Transactions of a walk, and the locks that they hold.

use super::rules::Conduct;
use super::store::{Place, TxId};

/// The transaction that everything is from that was there before.
pub const FIRST_ROWS: TxId = 0;

pub struct Tx {
    pub session: String,
    pub conduct: Option<Conduct>,
    pub began: usize,
    pub end: End,
    pub snapshot: Option<usize>,
    /// It has tried to write.
    pub writer: bool,
    /// A statement of it has gone through.
    pub has_read: bool,
    /// Only a rollback is left to it.
    pub failed: bool,
    pub read_only: bool,
    pub autocommit: bool,
    /// Its place in the history's list.
    pub recorded: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Open,
    Committed(usize),
    RolledBack,
}

/// How strongly a row is held, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl Strength {
    pub fn conflicts(self, other: Strength) -> bool {
        use Strength::{KeyShare, NoKeyUpdate, Share, Update};
        match (self, other) {
            (Update, _) | (_, Update) => true,
            (NoKeyUpdate, NoKeyUpdate | Share) | (Share, NoKeyUpdate) => true,
            (KeyShare, _) | (_, KeyShare) | (Share, Share) => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Lock {
    pub by: TxId,
    pub place: Place,
    pub strength: Strength,
    pub statement: usize,
}

/// What a transaction did to a row, where writers meet column by column.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub by: TxId,
    pub place: Place,
    /// None when it deleted the row.
    pub column: Option<usize>,
    /// False when it left the value as it was, or when its statement failed:
    /// then the engine may have noted it or not.
    pub certain: bool,
    pub statement: usize,
}

#[cfg(test)]
mod tests {
    use super::Strength::{self, KeyShare, NoKeyUpdate, Share, Update};

    #[test]
    fn locks_conflict_as_the_table_of_the_manual_has_it() {
        let all = [KeyShare, Share, NoKeyUpdate, Update];
        let table = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (one, row) in all.iter().zip(table) {
            let conflicts = all.map(|other: Strength| one.conflicts(other));
            assert_eq!(conflicts, row, "{one:?}");
        }
    }
}
