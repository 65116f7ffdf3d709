//! INSERT, row by row: keys that are taken, and what becomes of them.

use super::Stop;
use super::cells::written_columns;
use super::commit::TakenTwice;
use super::conclude::{Expected, Trouble};
use super::constraints::Clash;
use super::foreign::Change;
use super::rules::{Changed, Locks};
use super::store::{Place, TxId, Version, same_key};
use super::transaction::Strength;
use super::version_tables::Put;
use super::walk::Walk;
use super::write_view::{Assigned, Reads};
use crate::Value;
use crate::history::ErrorClass;
use crate::sql::{Conflict, Insert, InsertSource, Type};

impl Walk<'_> {
    pub async fn insert(&mut self, tx: TxId, step: usize, insert: &Insert) -> Result<(), Stop> {
        let table = self.table(&insert.table, step)?;
        let how = Reads {
            table: &insert.table,
            update: false,
            may_read_consistently: matches!(insert.source, InsertSource::Select(_)),
            search: None,
            reads_others: matches!(insert.source, InsertSource::Select(_)),
        };
        let (view, mut trouble) = self.before_write(tx, step, how).await?;
        let inner = self.inner_of_write(tx, step, &view)?;
        let sql = self.tables.incoming(insert, &inner);
        let incoming = self.fresh(table, sql, Some(step)).await?;
        let incoming: Vec<Version> =
            incoming.into_iter().map(|fresh| self.version(fresh, tx)).collect();
        let acts = insert.conflict != Conflict::Fail;
        if acts && self.conduct(tx).checks_indexes && self.share_a_key(table, &incoming) {
            let why = "what ON CONFLICT makes of new rows that share a key is not modelled";
            return Err(Stop::not_modelled(step, why));
        }
        let before = self.store.clone();
        let mut done = Vec::new();
        let mut count = 0;
        for new in incoming {
            let row = (table, insert);
            count += self.insert_row(tx, step, row, new, &mut done, &mut trouble).await?;
        }
        self.all_foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    /// Whether two of these rows have the same key; NULLs are the same here.
    fn share_a_key(&self, table: usize, rows: &[Version]) -> bool {
        self.keys[table].iter().any(|key| {
            let same =
                |a: &Version, b: &Version| key.columns.iter().all(|c| a.row[*c].same(&b.row[*c]));
            rows.iter().enumerate().any(|(n, row)| rows[..n].iter().any(|other| same(other, row)))
        })
    }

    /// One row of an INSERT; how many rows it counts for.
    async fn insert_row(
        &mut self,
        tx: TxId,
        step: usize,
        (table, insert): (usize, &Insert),
        mut new: Version,
        done: &mut Vec<Change>,
        trouble: &mut Trouble,
    ) -> Result<u64, Stop> {
        let conduct = self.conduct(tx);
        let (rules, counts_changed) = (conduct.rules, conduct.counts_changed_rows);
        let (forgives, any_key) = (conduct.ignore_forgives_all, conduct.upserts_on_any_key);
        let foreign_keys_by_row = conduct.foreign_keys_by_row;
        if insert.conflict == Conflict::Ignore && self.ignores_constraints() {
            if forgives {
                new = self.without_nulls(tx, step, table, new).await?;
            }
            let mut broken = Trouble::default();
            self.holds_rules_of_row(tx, table, &new, &mut broken);
            let orphan = forgives && !self.has_parents(tx, table, &new);
            if broken.is_certain() || orphan {
                self.may_have_been_added(step, table, new.id);
                if forgives {
                    // MariaDB 10.11 fails on a CHECK all the same, 11.8 does not.
                    trouble.may(ErrorClass::Constraint, rules.constraint);
                }
                return Ok(0);
            }
        } else if !self.conduct(tx).conflicts_before_checks {
            self.holds_rules_of_row(tx, table, &new, trouble);
        }
        let alone = self.conduct(tx).alone_is_optimistic && self.txs[tx].autocommit;
        if alone && insert.conflict == Conflict::Ignore && self.key_is_committed(tx, table, &new) {
            // It locks nothing, so it does not wait for who is taking the key away.
            return Ok(0);
        }
        let clashes = self.seen_clashes(tx, step, table, None, &new);
        // The first key that is taken decides, unless its row goes.
        let decided = matches!(insert.conflict, Conflict::Ignore | Conflict::Update { .. })
            && clashes.iter().any(|(_, c)| matches!(c, Clash::Taken(_)));
        for (_, clash) in clashes.iter().filter(|_| !decided) {
            if let Clash::Held(by) = clash {
                let why = format!("{} is writing a row with its key", self.txs[*by].session);
                trouble.held(rules.unique, why);
            }
        }
        let acts = insert.conflict != Conflict::Fail;
        let arbiter = match &insert.conflict {
            Conflict::Update { key, .. } => self.arbiter(table, key),
            _ => None,
        };
        let concerns = |key: usize| acts && arbiter.is_none_or(|arbiter| arbiter == key);
        let sees = |key: &usize| {
            let seen = |c: &Clash| matches!(c, Clash::Taken(_) | Clash::Gone(_));
            concerns(*key) && clashes.iter().any(|(k, c)| k == key && seen(c))
        };
        let unseen = clashes.iter().any(|(k, c)| matches!(c, Clash::Unseen) && !sees(k));
        let taken: Vec<(usize, Place)> = clashes
            .into_iter()
            .filter_map(|(key, clash)| match clash {
                Clash::Taken(place) => Some((key, place)),
                Clash::Gone(place) if concerns(key) => Some((key, place)),
                Clash::Held(_) | Clash::Unseen | Clash::Gone(_) => None,
            })
            .collect();
        if unseen {
            let rule = if acts { rules.upsert } else { rules.unique };
            trouble.must(ErrorClass::Constraint, rule, "a row that it does not see has its key");
        }
        if foreign_keys_by_row && !taken.is_empty() && !self.has_parents(tx, table, &new) {
            // The index of the foreign key may come before that of the key.
            trouble.may(ErrorClass::Constraint, rules.foreign);
        }
        let by_primary = |(key, _): &(usize, Place)| self.keys[table][*key].primary;
        if !taken.is_empty() && !taken.iter().any(by_primary) {
            self.may_have_been_added(step, table, new.id);
        }
        let mut replaced = 0;
        let mut unseen = Vec::new();
        match &insert.conflict {
            _ if taken.is_empty() => {}
            Conflict::Fail if self.buffers(tx) && !self.has_taken(tx, &taken) => unseen = taken,
            Conflict::Fail => {
                trouble.must(ErrorClass::Constraint, rules.unique, "its key is taken");
                return Ok(0);
            }
            Conflict::Ignore | Conflict::DoNothing { .. } => {
                for (_, place) in taken {
                    if !self.ignores_what_it_sees(tx, step, place) {
                        self.sees_conflict(tx, step, place, trouble);
                    }
                }
                self.use_upsert_rule(tx, step);
                return Ok(0);
            }
            Conflict::Replace => {
                let merges = self.merges(tx);
                self.use_rule(step, if merges { rules.upsert } else { rules.unique });
                let mut gone: Vec<Place> = taken.into_iter().map(|(_, place)| place).collect();
                gone.dedup();
                for place in gone {
                    let old = self.newest(place, tx).filter(|v| !v.dead).cloned();
                    let Some(old) = old else { continue };
                    if self.merges(tx) {
                        let same = counts_changed && old.row == new.row;
                        replaced += if same {
                            self.choices.choose(2) as u64
                        } else {
                            counts_changed.into()
                        };
                        done.push(self.delete_row((tx, step), place, old, trouble));
                        continue;
                    }
                    self.take(place, tx, Strength::Update, trouble);
                    if counts_changed && old.row == new.row && self.choices.choose(2) == 0 {
                        // A row that is replaced by its equal may stay as it is.
                        return Ok(1);
                    }
                    replaced += u64::from(counts_changed);
                    self.remove_row(tx, place, old.clone());
                    done.push(Change { place, old: Some(old), new: None });
                }
            }
            Conflict::Update { sets, .. } => {
                let hit = if any_key {
                    taken.get(self.choices.choose(taken.len()))
                } else {
                    taken.iter().find(|(k, _)| Some(*k) == arbiter)
                };
                let Some((_, place)) = hit.copied() else {
                    trouble.must(ErrorClass::Constraint, rules.unique, "its key is taken");
                    return Ok(0);
                };
                self.use_upsert_rule(tx, step);
                self.sees_conflict(tx, step, place, trouble);
                let Some(old) = self.newest(place, tx).cloned() else { return Ok(0) };
                let sets = self.sets_in_order(sets, (tx, step), Assigned::Upsert)?;
                let sql = self.tables.upserted(&insert.table, &sets, old.id, new.id);
                let Some(fresh) = self.fresh(table, sql, Some(step)).await?.pop() else {
                    return Ok(0);
                };
                let changed = self.version(fresh, tx);
                if self.merges(tx) && !(counts_changed && old.row == changed.row) {
                    let written =
                        written_columns(&self.subject.reading.schema.tables[table], &sets);
                    let rows = (old, changed);
                    let changes = self.write_row((tx, step), place, rows, &written, trouble);
                    changes.iter().for_each(|c| self.key_is_free(tx, step, c, trouble));
                    done.extend(changes);
                    return Ok(if counts_changed { 2 } else { 1 });
                }
                let alone = self.conduct(tx).alone_is_optimistic && self.txs[tx].autocommit;
                if !alone || old.row != changed.row {
                    self.take(place, tx, self.strength(tx, table, &old, &changed), trouble);
                }
                if counts_changed && old.row == changed.row {
                    // Whether a row that stays as it is counts has been seen both ways.
                    return Ok(self.choices.choose(2) as u64);
                }
                self.holds_rules_of_row(tx, table, &changed, trouble);
                self.store.add_version(place, changed.clone());
                let change = Change { place, old: Some(old), new: Some(changed) };
                self.key_is_free(tx, step, &change, trouble);
                done.push(change);
                return Ok(if counts_changed { 2 } else { 1 });
            }
        }
        if self.conduct(tx).conflicts_before_checks {
            self.holds_rules_of_row(tx, table, &new, trouble);
        }
        if self.conduct(tx).miscounts {
            replaced = replaced.min(1);
        }
        let place = self.add_row(tx, table, &new);
        if !self.buffers(tx) {
            self.lock(place, tx, Strength::Update);
        }
        self.takes_unseen(tx, &unseen, place);
        self.takes_the_place(tx, place, &new);
        done.push(Change { place, old: None, new: Some(new) });
        Ok(1 + replaced)
    }

    /// What IGNORE puts in the place of a NULL that must not be: the value that
    /// the column's type has for nothing.
    async fn without_nulls(
        &mut self,
        tx: TxId,
        step: usize,
        table: usize,
        mut new: Version,
    ) -> Result<Version, Stop> {
        let columns = &self.subject.reading.schema.tables[table].columns;
        for (place, column) in columns.iter().enumerate() {
            if !column.not_null || new.row[place] != Value::Null || column.generated.is_some() {
                continue;
            }
            let nothing = match column.of_type {
                _ if column.numbered.is_some() => None,
                Type::Int | Type::BigInt | Type::Decimal | Type::Float | Type::Bool => Some("0"),
                Type::Text(_) | Type::Blob => Some("''"),
                Type::Date | Type::Other(_) => None,
            };
            let Some(nothing) = nothing else {
                let why = "what IGNORE puts in the place of a NULL is not modelled";
                return Err(Stop::not_modelled(step, why));
            };
            self.use_rule(step, self.conduct(tx).rules.constraint);
            let put = Put::Literal(nothing);
            let sql = self.tables.with_column(table, new.id, &column.name, &put);
            let Some(fresh) = self.fresh(table, sql, Some(step)).await?.pop() else { break };
            new = self.version(fresh, tx);
        }
        Ok(new)
    }

    /// Where rows have locks and snapshots are kept, the rule of upserts says
    /// when they fail: it explains none that goes through.
    fn use_upsert_rule(&mut self, tx: TxId, step: usize) {
        let conduct = self.conduct(tx);
        if conduct.locks == Locks::Database || conduct.changed != Changed::Abort {
            self.use_rule(step, conduct.rules.upsert);
        }
    }

    /// Where nobody waits, a row of the snapshot is reason enough to write
    /// nothing.
    fn ignores_what_it_sees(&mut self, tx: TxId, step: usize, place: Place) -> bool {
        if !self.conduct(tx).refuses {
            return false;
        }
        let snapshot = self.kept_snapshot(tx, step);
        self.visible(place, tx, snapshot).is_some()
    }

    /// Who keeps a snapshot cannot act on a row that is not in it.
    fn sees_conflict(&mut self, tx: TxId, step: usize, place: Place, trouble: &mut Trouble) {
        let conduct = self.conduct(tx);
        // With one writer it is the whole database that may not have changed.
        if conduct.changed != Changed::Abort || conduct.locks == Locks::Database {
            return;
        }
        let snapshot = self.kept_snapshot(tx, step);
        let seen = self.visible(place, tx, snapshot).map(|v| v.id);
        let newest = self.newest(place, tx).map(|v| (v.id, v.at));
        if seen != newest.map(|(id, _)| id) {
            let rule = self.conduct(tx).rules.upsert;
            let started = self.started.get(&step).copied().unwrap_or(self.now);
            if newest.is_some_and(|(_, at)| at > started) {
                // It may have looked before the change, and waited for another row.
                trouble.may(ErrorClass::Serialization, rule);
                return;
            }
            let why = "the row that has its key was changed after its snapshot";
            trouble.must(ErrorClass::Serialization, rule, why);
        }
    }

    /// Whether a row that is committed has one of the keys.
    fn key_is_committed(&self, tx: TxId, table: usize, new: &Version) -> bool {
        (0..self.keys[table].len()).any(|key| {
            let Some(cells) = self.key_of(table, key, new) else { return false };
            let has = |v: &Version| {
                let theirs = self.key_of(table, key, v).filter(|_| !v.dead);
                theirs.is_some_and(|theirs| same_key(&cells, &theirs, self.folds_case(tx)))
            };
            self.store.places(table).any(|p| self.newest(p, tx).is_some_and(has))
        })
    }

    /// Whether the transaction itself has written a row with one of the keys.
    fn has_taken(&self, tx: TxId, taken: &[(usize, Place)]) -> bool {
        taken.iter().any(|(_, place)| self.newest(*place, tx).is_some_and(|v| v.by == tx))
    }

    /// An INSERT that does not look before the COMMIT whether its key is free.
    /// The row that has its primary key is not seen any more.
    fn takes_unseen(&mut self, tx: TxId, taken: &[(usize, Place)], new: Place) {
        for (key, old) in taken.iter().copied() {
            let statement = self.statements;
            self.taken_twice.push(TakenTwice { by: tx, old, new, statement });
            let was = self.newest(old, tx).filter(|v| !v.dead).cloned();
            if let Some(was) = was.filter(|_| self.keys[old.table][key].primary) {
                self.store.delete(old, was, tx, statement, self.now);
            }
        }
    }
}
