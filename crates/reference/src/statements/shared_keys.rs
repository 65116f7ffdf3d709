//! Upserts whose new rows share a key: engines fail, or leave out all but the first.

use crate::model::ReferenceModel;
use crate::stop::Stop;
use crate::world::{Place, TxId, Version, same_key};

impl ReferenceModel<'_> {
    /// New rows without those that share a key with an earlier one: where keys are checked
    /// in indexes, ON CONFLICT leaves them out. Whether every version does is not known, so
    /// that a run that this does not explain is not modelled.
    pub fn first_with_each_key(
        &mut self,
        (tx, step): (TxId, usize),
        table: usize,
        incoming: Vec<Version>,
    ) -> Result<Vec<Version>, Stop> {
        if !self.share_a_key(table, &incoming) {
            return Ok(incoming);
        }
        if self.search.choose(2) == 1 {
            let why = "what ON CONFLICT makes of new rows that share a key is not modelled";
            return Err(Stop::not_modelled(step, why));
        }
        let folds = self.case_insensitive_keys(tx);
        let mut first: Vec<Version> = Vec::new();
        for row in incoming {
            let shares = |key: usize| {
                let cells = self.key_of(table, key, &row);
                cells.is_some_and(|cells| {
                    first.iter().any(|other| {
                        let theirs = self.key_of(table, key, other);
                        theirs.is_some_and(|theirs| same_key(&cells, &theirs, folds))
                    })
                })
            };
            if !(0..self.keys[table].len()).any(shares) {
                first.push(row);
            }
        }
        Ok(first)
    }

    /// Whether two of these rows have the same key; NULLs are the same here.
    fn share_a_key(&self, table: usize, rows: &[Version]) -> bool {
        self.keys[table].iter().any(|key| {
            let same =
                |a: &Version, b: &Version| key.columns.iter().all(|c| a.row[*c].same(&b.row[*c]));
            rows.iter().enumerate().any(|(n, row)| rows[..n].iter().any(|other| same(other, row)))
        })
    }

    /// Whether an upsert fails that writes a row for the second time.
    pub fn writes_rows_once(&self, tx: TxId) -> bool {
        self.subject.reading.dialect.quirks.upsert_hits_once
            && !self.world.concurrency(tx).constraints.checked_in_indexes
    }

    /// Whether the current statement has written the newest version of a row.
    pub fn is_own_write(&self, place: Place, tx: TxId) -> bool {
        let newest = self.world.newest(place, tx);
        newest.is_some_and(|v| v.by == tx && v.statement == self.world.statement())
    }
}
