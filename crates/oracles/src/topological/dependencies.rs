//! What each statement of a run saw, and the dependencies that follow (TxCheck, lemmas 1 to
//! 7), with what the paper leaves out: rows that are not there yet or no more.

use super::graph::{Graph, Kind, Node};
use super::keys;
use super::moments::Ended;
use super::observed_run::{Run, Unusable};
use super::observed_statement::ObservedStatement;
use crate::instrument::{
    Entry, Predicate, Probe, ProbeResult, Referenced, StatementId, VersionOrder,
};
use isolde_model::history::TxEnd;
use isolde_model::parsed_case::Operation;
use isolde_sql::{InsertSource, Stmt, Write};
use std::collections::{BTreeMap, HashMap};

impl Run<'_> {
    /// The graph, and how many edges exact matches took away from it.
    pub fn graph(&self) -> Result<(Graph, u64), Unusable> {
        let orders = self.observed.version_orders();
        let statements = self.statements(&orders)?;
        let mut graph = Graph::default();
        for seen in &statements {
            let step = seen.id as usize - 1;
            let (label, sql) = (self.case.label(step), self.case.steps[step].sql.clone());
            graph.nodes.push(Node { step, label, sql });
        }
        let place_of: HashMap<StatementId, usize> =
            statements.iter().enumerate().map(|(n, seen)| (seen.id, n)).collect();
        for (row, order) in &orders {
            for pair in order.writers.windows(2) {
                if let (Some(from), Some(to)) = (place_of.get(&pair[0]), place_of.get(&pair[1])) {
                    graph.add(*from, *to, Kind::ItemWrite, &self.instrument.row_name(row));
                }
            }
        }
        let mut spared = 0;
        for (node, seen) in statements.iter().enumerate() {
            let exact = self.predicate(seen);
            for (row, place) in &seen.places {
                let order = &orders[row];
                let (from, to) = around(order, *place);
                let (exact_from, exact_to) = match exact {
                    Some(predicate) if predicate.table == order.table => {
                        self.exactly_around(predicate, row, order, *place).unwrap_or((from, to))
                    }
                    _ => (from, to),
                };
                spared += u64::from(from.is_some() && exact_from.is_none());
                spared += u64::from(to.is_some() && exact_to.is_none());
                let (read, anti) = self.kinds(seen, row, order);
                if let Some(from) = exact_from.and_then(|id| place_of.get(&id)) {
                    graph.add(*from, node, read, &self.instrument.row_name(row));
                }
                if let Some(to) = exact_to.and_then(|id| place_of.get(&id)) {
                    graph.add(node, *to, anti, &self.instrument.row_name(row));
                }
            }
        }
        keys::add(&mut graph, &statements, &orders, self.instrument);
        Ok((graph, spared))
    }

    /// The statements of committed transactions that took effect or returned something, and
    /// those that were refused for the rows that they met.
    fn statements(
        &self,
        orders: &BTreeMap<String, VersionOrder>,
    ) -> Result<Vec<ObservedStatement<'_>>, Unusable> {
        let moments = self.moments();
        let mut all = Vec::new();
        let committed = self.observed.transactions.iter().enumerate();
        for (number, transaction) in committed.filter(|(_, t)| t.how == TxEnd::Committed) {
            // What is taken back again may be why a later statement fails.
            let mut taken_back = false;
            for observed in &transaction.statements {
                let step = observed.id as usize - 1;
                let Operation::Statement(statement) = &self.operations[step] else { continue };
                let moment = moments[&step];
                taken_back |= observed.undone && !moment.refused;
                let counts = !observed.undone || moment.refused && !taken_back;
                let unseen = || self.instrument.checked(statement, self.scopes[step]).unfollowed;
                if !statement.is_data() || !counts || moment.refused && unseen() {
                    continue;
                }
                let (transaction, places) = (number, BTreeMap::new());
                all.push(ObservedStatement {
                    id: observed.id,
                    transaction,
                    statement,
                    observed,
                    moment,
                    places,
                });
            }
        }
        all.sort_by_key(|seen| seen.moment.answered);
        let ends = self.ended();
        let made: HashMap<StatementId, (usize, usize)> =
            all.iter().map(|seen| (seen.id, (seen.transaction, seen.moment.answered))).collect();
        for seen in &mut all {
            let step = seen.id as usize - 1;
            let referenced = match seen.moment.refused {
                true => self.instrument.checked(seen.statement, self.scopes[step]),
                false => self.instrument.referenced(seen.statement, self.scopes[step]),
            };
            let view = self.views.get(&step).map_or(&[][..], Vec::as_slice);
            seen.places = self.places(seen, (&referenced, view), orders, (&made, &ends))?;
        }
        Ok(all)
    }

    /// Which version of each row a statement met.
    fn places(
        &self,
        seen: &ObservedStatement<'_>,
        (referenced, view): (&Referenced, &[Entry]),
        orders: &BTreeMap<String, VersionOrder>,
        (made, ends): (&HashMap<StatementId, (usize, usize)>, &[Ended]),
    ) -> Result<BTreeMap<String, usize>, Unusable> {
        let step = seen.id as usize - 1;
        let entries: HashMap<&str, &Entry> = view.iter().map(|e| (e.row.as_str(), e)).collect();
        // Committed by then, or its own transaction's work.
        let is_there = |writer: &StatementId| {
            made.get(writer).is_some_and(|(transaction, answered)| {
                if *transaction == seen.transaction {
                    *answered < seen.moment.answered
                } else {
                    ends[*transaction].is_before(&seen.moment)
                }
            })
        };
        const ROLLED_BACK: &str = "it read what was rolled back";
        let is_lasting = |entry: &Entry| {
            let order = orders.get(&entry.row);
            order.is_some_and(|o| entry.last().is_none_or(|last| o.writers.contains(&last)))
        };
        if self.dirty[step] && !view.iter().all(is_lasting) {
            return Err(Unusable(step, ROLLED_BACK));
        }
        let mut places = BTreeMap::new();
        for (row, order) in orders {
            let now = order.writers.iter().rposition(is_there).map_or(0, |at| at + 1);
            let viewed = match referenced.viewed.contains(&order.table) {
                false => None,
                true => Some(match entries.get(row.as_str()) {
                    Some(entry) => order.place(entry),
                    None => match (order.is_inserted, order.is_deleted) {
                        (true, false) => 0,
                        (false, true) => order.writers.len(),
                        // Not there yet, or no more.
                        (true, true) if order.is_absent(now) && !self.dirty[step] => now,
                        (true, true) => {
                            let why = "whether it came before a row or after it is not known";
                            return Err(Unusable(step, why));
                        }
                        (false, false) if self.dirty[step] => {
                            return Err(Unusable(step, ROLLED_BACK));
                        }
                        // It should have been visible; the comparison will show it.
                        (false, false) => now,
                    },
                }),
            };
            let current = referenced.current.contains(&order.table).then_some(now);
            match (viewed, current) {
                (Some(viewed), Some(current)) if viewed != current => {
                    let why = "what it reads inside may be its snapshot or what is there";
                    return Err(Unusable(step, why));
                }
                (Some(place), _) | (None, Some(place)) => {
                    places.insert(row.clone(), place);
                }
                (None, None) => {}
            }
        }
        Ok(places)
    }

    /// What a statement looks for, where nothing else of the table matters to it.
    fn predicate<'s>(&self, seen: &ObservedStatement<'s>) -> Option<&'s Predicate> {
        self.matches.as_ref()?;
        let predicate = seen.observed.results.iter().find_map(|(probe, _)| match probe {
            Probe::Read { cells, .. } => match &cells[..] {
                [Some(predicate)] => Some(predicate),
                _ => None,
            },
            Probe::Rows { predicate, .. } => predicate.as_ref(),
            _ => None,
        })?;
        let name = &self.instrument.schema.tables[predicate.table].name;
        let named = seen.statement.tables().into_iter().filter(|t| t == name).count();
        (named == 1).then_some(predicate)
    }

    /// The writers next to a place between whom a statement may stand without anything
    /// changing for it. None where the engine has not said it of a version.
    fn exactly_around(
        &self,
        predicate: &Predicate,
        row: &str,
        order: &VersionOrder,
        place: usize,
    ) -> Option<(Option<StatementId>, Option<StatementId>)> {
        let matches = self.matches.as_ref()?;
        let is_match = |place: usize| match order.is_absent(place) {
            true => Some(false),
            false => {
                let last = place.checked_sub(1).map(|at| order.writers[at]);
                matches.of(predicate, row, last)
            }
        };
        if is_match(place)? {
            return Some(around(order, place));
        }
        let mut low = place;
        while low > 0 && !is_match(low - 1)? {
            low -= 1;
        }
        let mut high = place;
        while high < order.writers.len() && !is_match(high + 1)? {
            high += 1;
        }
        let from = low.checked_sub(1).map(|at| order.writers[at]);
        Some((from, order.writers.get(high).copied()))
    }

    /// The kinds of the edges from the writer of what a statement saw, and to the writer of
    /// what came next.
    fn kinds(&self, seen: &ObservedStatement<'_>, row: &str, order: &VersionOrder) -> (Kind, Kind) {
        let wrote = order.writers.contains(&seen.id);
        let returned = seen.observed.results.iter().any(|(_, results)| match results {
            ProbeResult::Read(cells) => cells.iter().flatten().any(|entry| entry.row == row),
            _ => false,
        });
        match seen.statement {
            Stmt::Select(_) if returned => (Kind::ItemRead, Kind::ItemAnti),
            Stmt::Select(_) => (Kind::PredicateRead, Kind::PredicateAnti),
            _ if wrote => (Kind::ItemWrite, Kind::ItemWrite),
            statement
                if gives_values(statement, &self.instrument.schema.tables[order.table].name) =>
            {
                (Kind::ValueWrite, Kind::ValueWrite)
            }
            _ => (Kind::PredicateWrite, Kind::PredicateWrite),
        }
    }
}

/// The writer of a version and the writer of the next.
fn around(order: &VersionOrder, place: usize) -> (Option<StatementId>, Option<StatementId>) {
    (place.checked_sub(1).map(|at| order.writers[at]), order.writers.get(place).copied())
}

/// Whether what a write writes is made of the rows of a table.
fn gives_values(statement: &Stmt, table: &str) -> bool {
    use isolde_sql::sources_below;
    match statement {
        Stmt::Write(Write::Insert(insert)) => match &insert.source {
            InsertSource::Select(select) => select.sources().contains(&table),
            InsertSource::Values(rows) => {
                rows.iter().flatten().any(|value| sources_below(value).contains(&table))
            }
            InsertSource::Defaults => false,
        },
        Stmt::Write(Write::Update(update)) => {
            update.sets.iter().any(|(_, value)| sources_below(value).contains(&table))
        }
        _ => false,
    }
}
