//! The anomaly of a run that no serial order explains, in the words of the field.
//!
//! A replay that explains the run knows which row versions each statement read.
//! With the version chains that gives Adya's dependencies between the committed
//! transactions; the shortest cycle names the anomaly. Where the condition of a
//! statement depends on the row alone, the engine says which versions match it, and
//! other rows do not count. The name explains a verdict and never decides one: a
//! run without such a cycle stays without a name.

use super::MOST_WAYS;
use crate::model::{ReferenceModel, ViewedRows};
use crate::search::{Choices, EvalCache};
use crate::stop::Stop;
use crate::subject::Subject;
use crate::version_tables::{Search, VersionId};
use crate::world::{FIRST_ROWS, Place, TxId, Version};
use isolde_catalog::{Anomaly, SnapshotAt};
use isolde_model::inquiry::Channel;
use isolde_sql::{Conflict, InsertSource, Source, Stmt, Write};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An anomaly, as textbooks and manuals call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnomalyClass {
    DirtyRead,
    DirtyWrite,
    LostUpdate,
    NonRepeatableRead,
    Phantom,
    ReadSkew,
    WriteSkew,
    CircularInformationFlow,
}

impl AnomalyClass {
    pub fn name(self) -> &'static str {
        match self {
            AnomalyClass::DirtyRead => "dirty read",
            AnomalyClass::DirtyWrite => "dirty write",
            AnomalyClass::LostUpdate => "lost update",
            AnomalyClass::NonRepeatableRead => "non-repeatable read",
            AnomalyClass::Phantom => "phantom",
            AnomalyClass::ReadSkew => "read skew",
            AnomalyClass::WriteSkew => "write skew",
            AnomalyClass::CircularInformationFlow => "circular information flow",
        }
    }

    /// The anomaly of the matrix that a level must not allow in order to prevent it.
    pub fn in_matrix(self) -> Anomaly {
        match self {
            AnomalyClass::DirtyRead => Anomaly::G1b,
            AnomalyClass::DirtyWrite => Anomaly::G0,
            AnomalyClass::LostUpdate => Anomaly::P4,
            AnomalyClass::NonRepeatableRead | AnomalyClass::ReadSkew => Anomaly::GSingle,
            AnomalyClass::Phantom => Anomaly::Pmp,
            AnomalyClass::WriteSkew => Anomaly::G2Item,
            AnomalyClass::CircularInformationFlow => Anomaly::G1c,
        }
    }
}

/// An anomaly with the transactions and rows that show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedAnomaly {
    pub class: AnomalyClass,
    /// What happened, in a sentence.
    pub text: String,
    /// It is between plain reads alone: with one snapshot per transaction they agree.
    #[serde(skip)]
    pub plain_reads: bool,
    /// A read misses a row that comes later, which no lock on the rows that it found
    /// prevents.
    #[serde(skip)]
    pub misses_rows: bool,
    /// The later write computes its values from those of the earlier one: nothing that
    /// was written is lost, but what was decided on the old values is wrong.
    #[serde(skip)]
    pub keeps_values: bool,
}

impl NamedAnomaly {
    fn new(class: AnomalyClass, text: String) -> NamedAnomaly {
        NamedAnomaly { class, text, plain_reads: false, misses_rows: false, keeps_values: false }
    }
}

/// Names the anomaly of a run that is within the rules and has no serial order.
pub async fn name_anomaly(subject: &Subject<'_>, channel: &Channel) -> Option<NamedAnomaly> {
    let (mut cache, mut choices) = (EvalCache::default(), Choices::default());
    for _ in 0..MOST_WAYS {
        let mut model = ReferenceModel::new(subject, channel, &mut cache, &mut choices);
        if model.run().await.is_ok() {
            return model.anomaly().await.ok().flatten();
        }
        if !choices.advance() {
            break;
        }
    }
    None
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Dependency {
    /// Both wrote the row.
    Write,
    /// The second read what the first wrote.
    Read,
    /// The second wrote what the first had read before.
    Anti,
}

/// A dependency between two transactions through one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: TxId,
    to: TxId,
    kind: Dependency,
    place: Place,
    /// The row is not in the result of the reader: it is not there yet or not any
    /// more, or does not match.
    absent: bool,
    /// The reader is a statement that writes.
    writes: bool,
    /// The reader is a plain SELECT.
    plain: bool,
}

impl ReferenceModel<'_> {
    async fn anomaly(&mut self) -> Result<Option<NamedAnomaly>, Stop> {
        if let Some(dirty) = self.dirty_read().await? {
            return Ok(Some(dirty));
        }
        let mut edges: BTreeSet<Edge> = self.write_dependencies();
        for read in self.trace.views().to_vec() {
            if self.is_committed(read.tx) {
                edges.extend(self.read_dependencies(&read).await?);
            }
        }
        Ok(shortest_cycle(&edges).and_then(|cycle| self.classify(&cycle, &edges)))
    }

    fn is_committed(&self, tx: TxId) -> bool {
        self.world.committed_before(tx, usize::MAX)
    }

    /// A read of a version whose writer had not committed, or never did.
    async fn dirty_read(&mut self) -> Result<Option<NamedAnomaly>, Stop> {
        for read in self.trace.views().to_vec() {
            let Some((table, _)) = read.uncommitted.first().copied() else { continue };
            let dirty: Vec<VersionId> = read.uncommitted.iter().map(|(_, id)| *id).collect();
            let matching = self.matching(read.step, table, &dirty).await?;
            let counts = |id: VersionId| matching.as_ref().is_none_or(|m| m.contains(&id));
            let mut dirty = read.uncommitted.iter().filter(|(t, id)| *t == table && counts(*id));
            let Some((_, id)) = dirty.next() else { continue };
            let writer = self.world.tables()[table]
                .iter()
                .flat_map(|c| &c.versions)
                .find(|v| v.id == *id)
                .map(|v| self.world.session(v.by));
            let (reader, table) =
                (self.world.session(read.tx), &self.subject.reading.schema.tables[table].name);
            let text = match writer {
                Some(writer) => {
                    format!("{reader} reads a row of {table} that {writer} has not committed yet")
                }
                None => format!("{reader} reads a row of {table} that is rolled back later"),
            };
            return Ok(Some(NamedAnomaly::new(AnomalyClass::DirtyRead, text)));
        }
        Ok(None)
    }

    fn write_dependencies(&self) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for table in 0..self.world.table_count() {
            for place in self.world.places(table) {
                let versions = self.world.chain(place).versions.iter();
                let committed: Vec<&Version> =
                    versions.filter(|v| self.is_committed(v.by)).collect();
                for two in committed.windows(2).filter(|two| two[0].by != two[1].by) {
                    let (from, to, kind) = (two[0].by, two[1].by, Dependency::Write);
                    edges.insert(Edge {
                        from,
                        to,
                        kind,
                        place,
                        absent: false,
                        writes: true,
                        plain: false,
                    });
                }
            }
        }
        edges
    }

    /// What one statement read, and who wrote it before and after.
    async fn read_dependencies(&mut self, read: &ViewedRows) -> Result<Vec<Edge>, Stop> {
        let mut edges = Vec::new();
        if self.operation(read.step).is_some_and(inserts_only) {
            return Ok(edges);
        }
        let writes = !matches!(self.operation(read.step), Some(Stmt::Select(_)) | None);
        let plain = matches!(
            self.operation(read.step),
            Some(Stmt::Select(select)) if select.locking.is_none()
        );
        for (table, seen) in &read.tables {
            let matching = self.matching(read.step, *table, &[]).await?;
            let counts = |v: &&Version| matching.as_ref().is_none_or(|m| m.contains(&v.id));
            for place in self.world.places(*table) {
                let versions = &self.world.chain(place).versions;
                let own =
                    versions.iter().position(|v| v.by == read.tx && v.statement == read.statement);
                // A write acts on the version before its own.
                let at = match own {
                    Some(own) => own.checked_sub(1),
                    None => versions.iter().rposition(|v| !v.dead && seen.contains(&v.id)),
                };
                let now = at.map(|at| &versions[at]);
                if now.is_some_and(|v| v.by == read.tx) {
                    continue;
                }
                let others =
                    |v: &&Version| v.by != read.tx && v.by != FIRST_ROWS && self.is_committed(v.by);
                let edge =
                    |from, to, kind, absent| Edge { from, to, kind, place, absent, writes, plain };
                // A row that is not in view was deleted before, or is inserted later.
                let in_view = |v: &&Version| self.world.committed_before(v.by, read.snapshot);
                let deleted = match now {
                    None => versions.iter().rposition(|v| v.dead && in_view(&v)),
                    Some(_) => None,
                };
                // A write tests a row again that has changed since its snapshot.
                let newest =
                    versions.iter().rposition(|v| self.world.committed_before(v.by, read.at + 1));
                let tested = writes && own.is_none() && now.is_some_and(|v| counts(&v));
                let rechecked = newest.filter(|_| tested);
                for at in [at.or(deleted), rechecked].into_iter().flatten() {
                    let version = &versions[at];
                    let before = at.checked_sub(1).map(|before| &versions[before]);
                    let matches = !version.dead && counts(&version);
                    let matched = before.is_some_and(|v| !v.dead && counts(&v));
                    if others(&version) && (matches || matched) {
                        edges.push(edge(version.by, read.tx, Dependency::Read, !matches));
                    }
                }
                let later = versions[at.or(deleted).map_or(0, |at| at + 1)..].iter();
                let Some(next) = later.filter(|v| v.statement != read.statement).find(others)
                else {
                    continue;
                };
                let is_item = now.is_some_and(|v| counts(&v));
                if is_item || !next.dead && counts(&next) {
                    edges.push(edge(read.tx, next.by, Dependency::Anti, !is_item));
                }
            }
        }
        Ok(edges)
    }

    /// The versions of a table that match the condition of a statement; none if that
    /// depends on more than the row.
    async fn matching(
        &mut self,
        step: usize,
        table: usize,
        rolled_back: &[VersionId],
    ) -> Result<Option<BTreeSet<VersionId>>, Stop> {
        let search = match self.operation(step) {
            Some(Stmt::Select(select)) if select.sources().len() == 1 => match &select.from {
                Some(Source::Table { name, alias }) => {
                    let filter = select.filter.as_ref();
                    Some(Search { table: name, alias: alias.as_deref(), join: None, filter })
                }
                _ => None,
            },
            Some(Stmt::Write(Write::Update(u))) if u.join.is_none() => Some(Search {
                table: &u.table,
                alias: u.alias.as_deref(),
                join: None,
                filter: u.filter.as_ref(),
            }),
            Some(Stmt::Write(Write::Delete(d))) if d.join.is_none() => Some(Search {
                table: &d.table,
                alias: d.alias.as_deref(),
                join: None,
                filter: d.filter.as_ref(),
            }),
            _ => None,
        };
        let Some(search) = search.filter(|s| crate::statements::decides_by_row(*s)) else {
            return Ok(None);
        };
        let chains = self.world.tables()[table].iter();
        let known = chains.flat_map(|c| &c.versions).filter(|v| !v.dead).map(|v| v.id);
        let all = known.chain(rolled_back.iter().copied()).collect();
        let found = self.found_among(all, (table, search), step).await?;
        Ok(Some(found.into_iter().collect()))
    }

    fn classify(&self, cycle: &[Edge], all: &BTreeSet<Edge>) -> Option<NamedAnomaly> {
        let name = |tx: TxId| self.world.session(tx);
        let row = |place: Place| self.row_name(place);
        let antis: Vec<&Edge> = cycle.iter().filter(|e| e.kind == Dependency::Anti).collect();
        let named = |class, text| Some(NamedAnomaly::new(class, text));
        let of_reads = |class, text, plain_reads| {
            Some(NamedAnomaly { plain_reads, ..NamedAnomaly::new(class, text) })
        };
        // Without dirty reads a cycle has an anti-dependency; where writes to one row are
        // merged, the order of its versions does not say which came first.
        let reads_dirty =
            |e: &Edge| self.world.concurrency(e.from).snapshot.taken == SnapshotAt::Dirty;
        match (antis[..].first(), antis.len()) {
            (None, _) if !cycle.iter().any(reads_dirty) => None,
            (None, _) if cycle.iter().all(|e| e.kind == Dependency::Write) => {
                let (a, b) = (name(cycle[0].from), name(cycle[0].to));
                named(AnomalyClass::DirtyWrite, format!("the writes of {a} and {b} are mixed"))
            }
            (None, _) => {
                let (a, b) = (name(cycle[0].from), name(cycle[0].to));
                let text = format!("{a} and {b} each read or overwrite what the other one wrote");
                named(AnomalyClass::CircularInformationFlow, text)
            }
            (Some(anti), 1) => {
                let (reader, writer) = (anti.from, anti.to);
                let back: Vec<&Edge> =
                    all.iter().filter(|e| e.from == writer && e.to == reader).collect();
                let overwrites =
                    |e: &&Edge| e.writes && !e.absent && e.place == anti.place && !anti.absent;
                if back.iter().copied().any(|e| overwrites(&e)) {
                    let (a, b, row) = (name(writer), name(reader), row(anti.place));
                    let lost = self.lost_values(anti.place, writer, reader);
                    let keeps_values = lost.is_none();
                    let text = match lost {
                        Some(lost) => format!(
                            "{a}'s write{lost} to {row} is overwritten by {b}, which had read the \
                             row before"
                        ),
                        None => {
                            format!("{b} changes {row}, which {a} has changed since {b} read it")
                        }
                    };
                    let update = NamedAnomaly::new(AnomalyClass::LostUpdate, text);
                    return Some(NamedAnomaly { keeps_values, ..update });
                }
                let (a, b) = (name(reader), name(writer));
                let again = back.iter().find(|e| e.kind == Dependency::Read);
                match again {
                    Some(e) if e.place == anti.place && !anti.absent => {
                        let row = row(anti.place);
                        let text = format!("{a} reads {row} before and after {b} changes it");
                        of_reads(AnomalyClass::NonRepeatableRead, text, anti.plain && e.plain)
                    }
                    Some(e) if anti.absent && e.place.table == anti.place.table => {
                        let row = row(anti.place);
                        let text = format!(
                            "{a} reads by a condition before and after {b} changes which rows match it ({row})"
                        );
                        of_reads(AnomalyClass::Phantom, text, anti.plain && e.plain)
                    }
                    Some(e) => {
                        let (one, other) = (row(anti.place), row(e.place));
                        let text =
                            format!("{a} reads {one} before and {other} after {b} changes both");
                        of_reads(AnomalyClass::ReadSkew, text, anti.plain && e.plain)
                    }
                    None => {
                        let row = row(anti.place);
                        let text = format!(
                            "{a} reads {row} before {b} changes it, and something else afterwards \
                             that depends on the change"
                        );
                        named(AnomalyClass::ReadSkew, text)
                    }
                }
            }
            (Some(anti), _) => {
                let other = antis.iter().find(|e| e.from == anti.to).unwrap_or(&antis[1]);
                let half = |e: &Edge| {
                    let (reader, writer, row) = (name(e.from), name(e.to), row(e.place));
                    match e.absent {
                        true => format!("{reader} does not find {row}, which {writer} then writes"),
                        false => format!("{reader} reads {row}, which {writer} then changes"),
                    }
                };
                let text = format!("{}; {}", half(anti), half(other));
                let misses_rows = antis.iter().any(|e| e.absent);
                let skew = NamedAnomaly::new(AnomalyClass::WriteSkew, text);
                Some(NamedAnomaly { misses_rows, ..skew })
            }
        }
    }
}

/// Whether a statement inserts given values and reads no row.
fn inserts_only(statement: &Stmt) -> bool {
    let mut queries = false;
    statement.visit(&mut |e| queries |= e.subquery().is_some());
    match statement {
        Stmt::Write(Write::Insert(insert)) => {
            matches!(insert.conflict, Conflict::Fail)
                && !matches!(insert.source, InsertSource::Select(_))
                && !queries
        }
        _ => false,
    }
}

/// The cycle with the fewest transactions; of several edges between two
/// transactions, one that makes the anomaly as specific as possible.
fn shortest_cycle(edges: &BTreeSet<Edge>) -> Option<Vec<Edge>> {
    let mut between: BTreeMap<(TxId, TxId), Vec<&Edge>> = BTreeMap::new();
    for edge in edges {
        between.entry((edge.from, edge.to)).or_default().push(edge);
    }
    let nodes: BTreeSet<TxId> = between.keys().map(|(from, _)| *from).collect();
    let cycles = nodes.iter().filter_map(|start| path_back(*start, &between));
    let path = cycles.min_by_key(Vec::len)?;
    let pairs = path.iter().zip(path.iter().cycle().skip(1));
    // Edges are ordered by kind, writes first: those say most.
    let mut cycle: Vec<Edge> = pairs
        .filter_map(|(from, to)| between.get(&(*from, *to))?.first().copied().copied())
        .collect();
    // A cycle of two is lost update or read skew if one direction is an
    // anti-dependency; prefer it on the row that the other direction is about.
    if let [one, two] = cycle[..]
        && let (Some(anti), Some(other)) = match (one.kind, two.kind) {
            (Dependency::Anti, _) => (Some(one), Some(two)),
            (_, Dependency::Anti) => (Some(two), Some(one)),
            _ => (None, None),
        }
    {
        let same_row = between[&(anti.from, anti.to)]
            .iter()
            .find(|e| e.kind == Dependency::Anti && e.place == other.place);
        if let Some(same_row) = same_row {
            cycle = vec![**same_row, other];
        }
    }
    Some(cycle)
}

/// The transactions of a shortest way from one back to itself.
fn path_back(start: TxId, between: &BTreeMap<(TxId, TxId), Vec<&Edge>>) -> Option<Vec<TxId>> {
    let mut before: BTreeMap<TxId, TxId> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for (_, to) in between.keys().filter(|(from, _)| *from == at) {
            if *to == start {
                let mut path = vec![at];
                while *path.last()? != start {
                    path.push(before[path.last()?]);
                }
                path.reverse();
                return Some(path);
            }
            if *to != start && !before.contains_key(to) {
                before.insert(*to, at);
                queue.push_back(*to);
            }
        }
    }
    None
}
