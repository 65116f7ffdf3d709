//! MERGE: each row by the first clause that applies, and what becomes of rows that were changed
//! or deleted meanwhile.
//!
//! A row of the table that another transaction has changed since the snapshot is matched again in
//! its newest version. If it does not match any more, the row of the source is handled as not
//! matched. Which row of the source that is, is known only if the source has one row.

use super::insert::InsertStep;
use super::write::{RunningUpdate, Target};
use super::write_snapshot::Reads;
use crate::constraints::Change;
use crate::model::ReferenceModel;
use crate::outcome::{Expected, ExpectedErrors};
use crate::stop::Stop;
use crate::version_tables::{Fresh, Search, VersionId, View, Views, whole};
use crate::world::{Place, Strength, TxId, Version};
use isolde_catalog::{RowStorage, Waits};
use isolde_sql::{Conflict, Insert, InsertSource, MatchKind, Merge, MergeAction, Update};

/// A MERGE whose view is known.
#[derive(Clone, Copy)]
struct RunningMerge<'s> {
    tx: TxId,
    step: usize,
    table: usize,
    merge: &'s Merge,
    view: &'s View,
}

/// What becomes of one row.
enum Outcome {
    Update(Place, Fresh),
    Delete(Place),
    Insert(Version),
}

impl ReferenceModel<'_> {
    pub async fn merge_statement(
        &mut self,
        tx: TxId,
        step: usize,
        merge: &Merge,
    ) -> Result<(), Stop> {
        let table = self.table(&merge.table, step)?;
        let concurrency = self.world.concurrency(tx);
        if concurrency.locking.waits != Waits::Rows || concurrency.storage != RowStorage::Heap {
            return Err(Stop::not_modelled(step, "MERGE is not modelled on this engine"));
        }
        let how = Reads {
            table: &merge.table,
            update: true,
            may_read_consistently: false,
            search: None,
            scans_all: true,
            reads_others: true,
        };
        let (view, mut errors) = self.before_write(tx, step, how).await?;
        let running = RunningMerge { tx, step, table, merge, view: &view };
        let outcomes = self.merge_outcomes(running, &mut errors).await?;
        let before = self.world.save_rows();
        let mut done = Vec::new();
        for outcome in outcomes {
            self.apply(running, outcome, &mut done, &mut errors).await?;
        }
        for change in done.iter().filter(|change| change.old.is_some()) {
            self.check_keys(tx, step, change, &mut errors);
        }
        let count = done.len() as u64;
        self.check_foreign_keys(tx, step, done, &mut errors).await?;
        self.conclude(tx, step, Expected::Count(count), errors, Some(before))
    }

    /// What becomes of the rows of the table and the source.
    async fn merge_outcomes(
        &mut self,
        running: RunningMerge<'_>,
        errors: &mut ExpectedErrors,
    ) -> Result<Vec<Outcome>, Stop> {
        let RunningMerge { tx, step, table, merge, view } = running;
        let views = Views { outer: view, inner: view };
        let mut outcomes = Vec::new();
        let mut seen: Vec<VersionId> = Vec::new();
        let mut changed: Vec<(Place, Option<VersionId>)> = Vec::new();
        for (n, clause) in merge.clauses.iter().enumerate() {
            if clause.kind == MatchKind::NotMatched {
                continue;
            }
            let updates = match clause.action {
                MergeAction::Update(_) => {
                    let sql = self.tables.merge_update(merge, n, views);
                    let fresh = self.fresh(table, sql, Some(step)).await?;
                    fresh.into_iter().map(|f| (f.source, Some(f))).collect()
                }
                MergeAction::Delete => self.merged_ids(merge, n, views, step).await?,
                MergeAction::Insert { .. } | MergeAction::Nothing => Vec::new(),
            };
            for (id, fresh) in updates {
                if seen.contains(&id) {
                    let why = "a row that MERGE matches with several rows is not modelled";
                    return Err(Stop::not_modelled(step, why));
                }
                seen.push(id);
                let Some(place) = self.world.find(table, id) else { continue };
                match (self.target(place, id, tx), fresh) {
                    (Target::Same, Some(fresh)) => outcomes.push(Outcome::Update(place, fresh)),
                    (Target::Same, None) => outcomes.push(Outcome::Delete(place)),
                    (Target::Passed, _) => return Err(self.passed(tx, step)),
                    (Target::Gone, _) => changed.push((place, None)),
                    (Target::Changed(newest), _) => changed.push((place, Some(newest))),
                }
            }
        }
        for (place, newest) in changed {
            if self.target_changed(tx, step, errors) {
                self.permit_partition_move(place, tx, errors);
                outcomes.extend(self.merge_again(running, place, newest).await?);
            }
        }
        outcomes.extend(self.merge_insertions(running, views).await?);
        Ok(outcomes)
    }

    async fn merged_ids(
        &mut self,
        merge: &Merge,
        clause: usize,
        views: Views<'_>,
        step: usize,
    ) -> Result<Vec<(VersionId, Option<Fresh>)>, Stop> {
        let sql = self.tables.merge_found(merge, clause, views);
        let rows = self.evaluate(sql, Some(step)).await?;
        Ok(rows.iter().filter_map(|row| row.first().and_then(whole)).map(|id| (id, None)).collect())
    }

    /// What becomes of a row in its newest version, or of the row of the source if that does not
    /// match any more.
    async fn merge_again(
        &mut self,
        running: RunningMerge<'_>,
        place: Place,
        newest: Option<VersionId>,
    ) -> Result<Vec<Outcome>, Stop> {
        let RunningMerge { tx, step, table, merge, view } = running;
        let whole_view = Views { outer: view, inner: view };
        let sources =
            self.evaluate(self.tables.merge_sources(merge, whole_view), Some(step)).await?;
        if sources.len() != 1 {
            let why = "MERGE of several rows, one of which was changed meanwhile, is not modelled";
            return Err(Stop::not_modelled(step, why));
        }
        self.use_rule(step, self.world.concurrency(tx).rules.changed_row);
        let narrow = ReferenceModel::narrowed(view, table, newest.into_iter().collect());
        let views = Views { outer: &narrow, inner: view };
        let matches = self.evaluate(self.tables.merge_matches(merge, views), Some(step)).await?;
        if matches.is_empty() {
            return self.merge_insertions(running, views).await;
        }
        self.world.lock(place, tx, Strength::NoKeyUpdate);
        for (n, clause) in merge.clauses.iter().enumerate() {
            if clause.kind != MatchKind::Matched {
                continue;
            }
            let outcome = match &clause.action {
                MergeAction::Update(_) => {
                    let sql = self.tables.merge_update(merge, n, views);
                    let fresh = self.fresh(table, sql, Some(step)).await?.pop();
                    fresh.map(|fresh| Outcome::Update(place, fresh))
                }
                MergeAction::Delete => {
                    let found = self.merged_ids(merge, n, views, step).await?;
                    (!found.is_empty()).then_some(Outcome::Delete(place))
                }
                MergeAction::Insert { .. } | MergeAction::Nothing => None,
            };
            if let Some(outcome) = outcome {
                return Ok(vec![outcome]);
            }
        }
        Ok(Vec::new())
    }

    /// The rows to insert for rows of the source that match nothing in the view.
    async fn merge_insertions(
        &mut self,
        running: RunningMerge<'_>,
        views: Views<'_>,
    ) -> Result<Vec<Outcome>, Stop> {
        let RunningMerge { tx, step, table, merge, .. } = running;
        let mut outcomes = Vec::new();
        for (n, clause) in merge.clauses.iter().enumerate() {
            if matches!(clause.action, MergeAction::Insert { .. }) {
                let sql = self.tables.merge_insert(merge, n, views);
                for fresh in self.fresh(table, sql, Some(step)).await? {
                    outcomes.push(Outcome::Insert(self.world.version(fresh, tx)));
                }
            }
        }
        Ok(outcomes)
    }

    async fn apply(
        &mut self,
        running: RunningMerge<'_>,
        outcome: Outcome,
        done: &mut Vec<Change>,
        errors: &mut ExpectedErrors,
    ) -> Result<(), Stop> {
        let RunningMerge { tx, step, table, merge, view } = running;
        match outcome {
            Outcome::Update(place, fresh) => {
                let update = Update::of(&merge.table);
                let search = Search { table: &merge.table, alias: None, join: None, filter: None };
                let (inner, sets) = (view.clone(), Vec::new());
                let view = view.clone();
                let update = &update;
                let running = RunningUpdate { tx, step, table, search, update, sets, view, inner };
                let (changes, _) = self.write_targets(&running, vec![(place, fresh)], errors);
                done.extend(changes);
            }
            Outcome::Delete(place) => {
                let Some(old) = self.world.newest(place, tx).cloned() else { return Ok(()) };
                self.take(place, tx, Strength::Update, errors);
                self.remove_row(tx, place, old.clone());
                done.push(Change::new(place, Some(old), None));
            }
            Outcome::Insert(new) => {
                let insert = Insert {
                    table: merge.table.clone(),
                    alias: None,
                    columns: Vec::new(),
                    source: InsertSource::Defaults,
                    conflict: Conflict::Fail,
                    returning: Vec::new(),
                };
                let at = InsertStep { tx, step, table, insert: &insert, inner: view };
                self.insert_row(at, new, done, errors).await?;
            }
        }
        Ok(())
    }
}
