//! Current reads: what a statement finds that looks at the newest committed
//! rows, and looks while others commit.
//!
//! A statement that did not wait saw one state. One that waited went through
//! the rows while others ended: a row that they changed meanwhile may have
//! been seen before or after, by where the scan was. Which it was is a choice,
//! and the observed counts and rows decide.

use super::Stop;
use super::store::{Place, TxId, VersionId};
use super::transaction::End;
use super::version_tables::View;
use super::walk::Walk;

/// What a scan makes of rows that others hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// It waits for each, and sees what is left.
    Waits,
    /// It looks at the last committed version first, and may pass by.
    SemiConsistent,
}

impl Walk<'_> {
    /// The rows that a current read of some tables finds; of the others what
    /// a plain read would see.
    pub fn current_view(
        &mut self,
        tx: TxId,
        step: usize,
        current: &[usize],
        scan: Scan,
    ) -> Result<View, Stop> {
        let tables = self.store.tables.len();
        let mut view = View::with_capacity(tables);
        for table in 0..tables {
            if current.contains(&table) {
                let places: Vec<Place> = self.store.places(table).collect();
                let mut ids = Vec::new();
                for place in places {
                    ids.extend(self.seen_of(place, tx, step, scan));
                }
                view.push(ids);
            } else {
                view.push(self.plain_view_of(table, tx, step)?);
            }
        }
        Ok(view)
    }

    /// One of the versions of a row that the statement may have met; none when
    /// there was no row.
    fn seen_of(&mut self, place: Place, tx: TxId, step: usize, scan: Scan) -> Option<VersionId> {
        let states = self.states_of(place, tx, step, scan);
        let chosen = self.choices.choose(states.len());
        states[chosen]
    }

    /// The states of a row while the statement ran, the last one first.
    fn states_of(&self, place: Place, tx: TxId, step: usize, scan: Scan) -> Vec<Option<VersionId>> {
        let started = self.started.get(&step).copied().unwrap_or(self.now);
        let state = |moment: usize| {
            let counts = |t: TxId| t == tx || self.committed_before(t, moment);
            self.store.chain(place).last_of(counts).filter(|v| !v.dead)
        };
        let last = state(self.now + 1).map(|v| v.id);
        let mut states = vec![last];
        let held_at_start = self.store.chain(place).versions.iter().any(|v| {
            let open_then = match self.txs[v.by].end {
                End::Committed(at) => at >= started,
                End::Open => true,
                End::RolledBack => false,
            };
            v.by != tx && v.at < started && open_then
        });
        if held_at_start && scan == Scan::Waits {
            return states;
        }
        let commits = self.txs.iter().filter_map(|t| match t.end {
            End::Committed(at) if at >= started => Some(at),
            _ => None,
        });
        let mut moments: Vec<usize> = commits.collect();
        moments.push(started);
        moments.sort_unstable_by(|a, b| b.cmp(a));
        for moment in moments {
            let then = state(moment).map(|v| v.id);
            if !states.contains(&then) {
                states.push(then);
            }
        }
        // A row that changes its place may be missed on the way.
        if states.len() > 1 && !states.contains(&None) && self.moved(place, &states) {
            states.push(None);
        }
        states
    }

    /// Whether an indexed column differs between versions.
    fn moved(&self, place: Place, states: &[Option<VersionId>]) -> bool {
        let table = &self.subject.reading.schema.tables[place.table];
        let indexed = |name: &String| {
            table.is_in_a_key(name) || table.indexes.iter().any(|i| i.columns().contains(name))
        };
        let rows: Vec<_> = self
            .store
            .chain(place)
            .versions
            .iter()
            .filter(|v| states.contains(&Some(v.id)))
            .map(|v| &v.row)
            .collect();
        (0..table.columns.len()).any(|c| {
            indexed(&table.columns[c].name) && rows.windows(2).any(|w| !w[0][c].same(&w[1][c]))
        })
    }

    /// What a plain read of one table sees.
    pub fn plain_view_of(
        &mut self,
        table: usize,
        tx: TxId,
        step: usize,
    ) -> Result<Vec<VersionId>, Stop> {
        let Some(snapshot) = self.snapshot(tx, step) else {
            if self.may_be_taken(&[table], tx) {
                let why = "a dirty read beside a statement that waits is not modelled";
                return Err(Stop::not_modelled(step, why));
            }
            let now = self.newest_of_all(table);
            // A statement that waited may have looked before or after.
            let before = self.dirty.get(&step).map(|view| view[table].clone());
            let before = before.filter(|before| *before != now && !self.serial);
            return Ok(match before {
                Some(before) if self.choices.choose(2) == 1 => before,
                _ => now,
            });
        };
        let places = self.store.places(table);
        Ok(places.filter_map(|p| self.visible(p, tx, snapshot).map(|v| v.id)).collect())
    }

    /// The newest version of each row, committed or not.
    pub fn newest_of_all(&self, table: usize) -> Vec<VersionId> {
        let newest = |p: Place| self.store.chain(p).versions.last().filter(|v| !v.dead);
        self.store.places(table).filter_map(|p| newest(p).map(|v| v.id)).collect()
    }
}
