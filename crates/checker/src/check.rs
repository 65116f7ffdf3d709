//! All levels of a history, the cheap ones first: what a weak level forbids, the
//! stronger ones forbid as well, and what a strong one has shown need not be asked again.

use crate::anomaly::Class;
use crate::candidate;
use crate::graph::{Anti, Components, Graph, Kinds, Plain, Search, Split};
use crate::history::History;
use crate::joined::Joined;
use crate::level::Level;
use crate::predicate::PredicateEdges;
use crate::registers::{self, Budget, Decision, Goal, Keep, Problem};
use crate::report::{Open, Report, Verdict};
use crate::weak::{self, Line, Outcome, Rule};
use crate::witness;

/// What to look at, and how long to search.
#[derive(Clone, Debug)]
pub struct Options {
    /// The levels that need a verdict; others get one where it costs nothing.
    pub levels: Vec<Level>,
    /// Whether to look for a witness of every class of anomalies when a level that was
    /// asked for is violated.
    pub anomalies: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { levels: Level::ALL.to_vec(), anomalies: true }
    }
}

/// A verdict for every level.
pub fn check(history: &History) -> Report {
    check_with(history, &Options::default())
}

/// A verdict for the levels that are asked for.
pub fn check_with(history: &History, options: &Options) -> Report {
    let mut checker = Checker::of(Joined::of(history));
    checker.decide_all(options);
    checker.report(options)
}

struct Checker<'h> {
    joined: Joined<'h>,
    predicates: PredicateEdges,
    /// Dependencies that are certain, and which kinds of them were wanted so far.
    graph: Option<(Kinds, Graph)>,
    problem: Option<Problem>,
    verdicts: [Option<Verdict>; Level::ALL.len()],
    open: Vec<Open>,
}

/// What makes every level false, and what makes those from read committed on.
const MALFORMED: [Class; 2] = [Class::DuplicateVersions, Class::IncompatibleOrders];
const NOT_COMMITTED: [Class; 6] = [
    Class::ThinAirRead,
    Class::FutureRead,
    Class::Internal,
    Class::G1a,
    Class::G1b,
    Class::DirtyUpdate,
];

impl<'h> Checker<'h> {
    fn of(joined: Joined<'h>) -> Checker<'h> {
        Checker {
            predicates: PredicateEdges::of(&joined),
            joined,
            graph: None,
            problem: None,
            verdicts: [None; Level::ALL.len()],
            open: Vec::new(),
        }
    }

    fn decide_all(&mut self, options: &Options) {
        for level in Level::ALL {
            if level.keeps_times() && !self.joined.history.has_times() {
                self.verdicts[level as usize] = Some(Verdict::NotApplicable);
            }
        }
        if MALFORMED.iter().any(|class| self.joined.found.has(*class)) {
            self.conclude(Level::ReadUncommitted, Verdict::Violated);
        }
        if NOT_COMMITTED.iter().any(|class| self.joined.found.has(*class)) {
            self.conclude(Level::ReadCommitted, Verdict::Violated);
        }
        // The two that need no more than one look at the graph, then from the top, since a
        // level that holds speaks for all below.
        let weakest = [Level::ReadUncommitted, Level::ReadCommitted];
        for level in weakest.into_iter().chain(Level::ALL.into_iter().rev()) {
            let wanted = options.levels.contains(&level);
            if wanted && self.verdicts[level as usize].is_none() {
                let verdict = self.decide(level);
                self.conclude(level, verdict);
            }
        }
    }

    /// Notes a verdict, and what follows from it.
    fn conclude(&mut self, level: Level, verdict: Verdict) {
        let verdict = match verdict {
            // Reads that could have seen several writes were left out.
            Verdict::Holds if self.joined.ambiguous > 0 && level != Level::ReadUncommitted => {
                Verdict::Unknown
            }
            verdict => verdict,
        };
        match self.verdicts[level as usize] {
            None | Some(Verdict::Unknown) => self.verdicts[level as usize] = Some(verdict),
            Some(_) => return,
        }
        match verdict {
            Verdict::Holds => {
                for weaker in level.implies() {
                    self.conclude(*weaker, verdict);
                }
            }
            Verdict::Violated => {
                for stronger in Level::ALL {
                    if stronger.implies().contains(&level) {
                        self.conclude(stronger, verdict);
                    }
                }
            }
            Verdict::Unknown | Verdict::NotApplicable | Verdict::NotAsked => {}
        }
    }

    fn decide(&mut self, level: Level) -> Verdict {
        let sessions = level.keeps_sessions();
        let order = match (sessions, level.keeps_times()) {
            (_, true) => Kinds::SESSION.and(Kinds::TIME),
            (true, false) => Kinds::SESSION,
            _ => Kinds::NONE,
        };
        let keep = Keep { sessions, times: level.keeps_times() };
        match level {
            Level::ReadUncommitted => self.acyclic(Kinds::WW),
            Level::ReadCommitted => self.acyclic(Kinds::DEPENDENCIES),
            Level::MonotonicAtomicView | Level::StrongSessionMonotonicAtomicView => {
                self.weak(Rule::Monotonic, sessions)
            }
            Level::ReadAtomic | Level::StrongSessionReadAtomic => self.weak(Rule::Atomic, sessions),
            Level::Causal => self.weak(Rule::Causal, sessions),
            Level::CursorStability => self.by_candidate(level, Self::has_cursor_cycle),
            Level::ConsistentView => {
                self.weak(Rule::Atomic, false);
                self.weak(Rule::Causal, true);
                match self.verdicts[level as usize] {
                    Some(verdict) => verdict,
                    None => self.by_candidate(level, Self::has_single_cycle),
                }
            }
            // They differ in predicates only.
            Level::RepeatableRead if self.predicates.is_empty() => {
                if self.verdicts[Level::Serializable as usize].is_none() {
                    let verdict = self.decide(Level::Serializable);
                    self.conclude(Level::Serializable, verdict);
                }
                self.verdicts[Level::Serializable as usize].unwrap_or(Verdict::Unknown)
            }
            Level::RepeatableRead => {
                let kinds = Kinds::DEPENDENCIES.and(Kinds::ITEM_ANTI);
                self.serializable(level, kinds, keep)
            }
            Level::SnapshotIsolation
            | Level::StrongSessionSnapshotIsolation
            | Level::StrongSnapshotIsolation => self.snapshot(level, order, keep),
            Level::Serializable | Level::StrongSessionSerializable | Level::StrictSerializable => {
                let kinds = Kinds::DEPENDENCIES.and(Kinds::ANTI).and(order);
                self.serializable(level, kinds, keep)
            }
        }
    }

    /// A graph with edges of these kinds at least. Small ones are made for weak levels, since
    /// anti-dependencies are most of the edges.
    fn graph(&mut self, kinds: Kinds) -> &Graph {
        let wanted = match &self.graph {
            Some((made, _)) if made.includes(kinds) => None,
            Some((made, _)) => Some(made.and(kinds)),
            None => Some(kinds),
        };
        if let Some(wanted) = wanted {
            self.graph = None;
            self.graph = Some((wanted, Graph::of(&self.joined, &self.predicates, wanted)));
        }
        &self.graph.as_ref().expect("it was just made").1
    }

    fn acyclic(&mut self, kinds: Kinds) -> Verdict {
        // No graph is needed to put all in a line.
        if kinds == Kinds::DEPENDENCIES && self.predicates.is_empty() {
            return match Line::of(&self.joined, false) {
                Some(_) => Verdict::Holds,
                None => Verdict::Violated,
            };
        }
        let graph = self.graph(kinds);
        match Components::of(&Plain { graph, kinds }).is_acyclic() {
            true => Verdict::Holds,
            false => Verdict::Violated,
        }
    }

    fn weak(&mut self, rule: Rule, sessions: bool) -> Verdict {
        match weak::decide(&self.joined, rule, sessions) {
            Outcome::Holds => Verdict::Holds,
            Outcome::Violated(told) => {
                let cycle = weak::cycle(&self.joined, &told, sessions);
                // In every order of versions some read misses a part of what it knew.
                if witness::keep(&mut self.joined, cycle, Class::GSingle).is_none() {
                    self.conclude(Level::ConsistentView, Verdict::Violated);
                }
                Verdict::Violated
            }
            Outcome::TooWide => Verdict::Unknown,
        }
    }

    /// Versions whose order nobody knows and nobody has read can be put in any order
    /// that the rest allows; so the graph decides, unless some of them were read.
    fn serializable(&mut self, level: Level, kinds: Kinds, keep: Keep) -> Verdict {
        if !self.joined.needs_search() {
            return self.acyclic(kinds);
        }
        // The search knows all edges but those of predicates.
        if !self.predicates.is_empty() && self.acyclic(kinds) == Verdict::Violated {
            return Verdict::Violated;
        }
        self.search(level, Goal::Serializable, keep)
    }

    fn snapshot(&mut self, level: Level, order: Kinds, keep: Keep) -> Verdict {
        let searches = self.joined.has_open_orders();
        if !searches || !self.predicates.is_empty() {
            let kinds = Kinds::DEPENDENCIES.and(Kinds::ANTI).and(order);
            let graph = self.graph(kinds);
            if !Components::of(&Split { graph, kinds }).is_acyclic() {
                return Verdict::Violated;
            }
        }
        if searches { self.search(level, Goal::SnapshotIsolation, keep) } else { Verdict::Holds }
    }

    fn search(&mut self, level: Level, goal: Goal, keep: Keep) -> Verdict {
        // The search takes it that known orders of versions contradict no read.
        if self.verdicts[Level::ReadCommitted as usize].is_none() {
            let verdict = self.acyclic(Kinds::DEPENDENCIES);
            self.conclude(Level::ReadCommitted, verdict);
        }
        if self.verdicts[Level::ReadCommitted as usize] == Some(Verdict::Violated) {
            return Verdict::Violated;
        }
        let problem = self.problem.get_or_insert_with(|| self.joined.problem());
        match registers::decide(problem, goal, keep, &Budget::default()) {
            Decision::Holds { .. }
                if self.predicates.is_empty() || level == Level::RepeatableRead =>
            {
                Verdict::Holds
            }
            // The search knows nothing of predicates.
            Decision::Holds { commit_order } => {
                let ordered = candidate::ordered(&self.joined, &commit_order);
                let whole = Checker::of(ordered).decide(level);
                if whole == Verdict::Holds { Verdict::Holds } else { Verdict::Unknown }
            }
            Decision::Violated { cycle } => {
                let Keep { sessions, times } = registers::needs(&cycle);
                self.conclude(level.keeping(sessions, times), Verdict::Violated);
                if witness::of_search(&mut self.joined, &cycle, goal) {
                    self.conclude(Level::ConsistentView, Verdict::Violated);
                }
                Verdict::Violated
            }
            Decision::Unknown { open_pairs, transactions } => {
                self.open.push(Open { level, pairs: open_pairs, transactions });
                Verdict::Unknown
            }
        }
    }

    /// A level that is decided exactly where all orders are known; elsewhere a cycle of
    /// certain edges says no, an order that works says yes, and else it stays open.
    fn by_candidate(&mut self, level: Level, has_cycle: fn(&mut Self) -> bool) -> Verdict {
        if self.acyclic(Kinds::DEPENDENCIES) == Verdict::Violated || has_cycle(self) {
            return Verdict::Violated;
        }
        if !self.joined.has_open_orders() {
            return Verdict::Holds;
        }
        let Some(places) = candidate::places(&self.joined, &self.predicates) else {
            return Verdict::Unknown;
        };
        let mut ordered = Checker::of(candidate::ordered(&self.joined, &places));
        let kinds = Kinds::DEPENDENCIES;
        if ordered.acyclic(kinds) == Verdict::Holds && !has_cycle(&mut ordered) {
            return Verdict::Holds;
        }
        // The next stronger level that is decided exactly.
        if self.verdicts[Level::SnapshotIsolation as usize].is_none() {
            let verdict = self.snapshot(Level::SnapshotIsolation, Kinds::NONE, Keep::default());
            self.conclude(Level::SnapshotIsolation, verdict);
        }
        let by_search = [Level::SnapshotIsolation, level].map(|l| self.verdicts[l as usize]);
        match by_search {
            [Some(Verdict::Holds), _] => Verdict::Holds,
            [_, Some(verdict)] => verdict,
            _ => Verdict::Unknown,
        }
    }

    /// Whether somebody read an item and overwrote it after another had.
    fn has_cursor_cycle(&mut self) -> bool {
        let joined = &self.joined;
        let mut updates = Vec::new();
        for node in 0..joined.nodes() as u32 {
            for read in joined.reads.of(node) {
                if joined.wrote(node, read.item).is_none() {
                    continue;
                }
                let order = joined.order.of(read.item);
                let next = order.get(read.place as usize);
                if next.is_some_and(|next| *next != node) {
                    return true;
                }
                if next.is_none() {
                    // Its own version stands somewhere after the known ones.
                    updates.push((read.item, read.writer, node));
                }
            }
        }
        updates.sort_unstable();
        updates.dedup();
        let from_one_version =
            updates.windows(2).any(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
        // Or saw it change before overwriting it: one of the two came first.
        updates.sort_unstable_by_key(|(item, writer, node)| (*item, *node, *writer));
        from_one_version
            || updates.windows(2).any(|pair| (pair[0].0, pair[0].2) == (pair[1].0, pair[1].2))
    }

    /// Whether a cycle has exactly one anti-dependency.
    fn has_single_cycle(&mut self) -> bool {
        if self.has_cursor_cycle() {
            return true;
        }
        let kinds = Kinds::DEPENDENCIES.and(Kinds::ANTI);
        let graph = self.graph(kinds);
        let components = Components::of(&Plain { graph, kinds });
        if components.is_acyclic() {
            return false;
        }
        let mut search = Search::new(graph, usize::MAX);
        (0..graph.nodes).any(|from| {
            graph.from(from).iter().any(|arc| {
                arc.kind().is_anti_dependency()
                    && search
                        .way((arc.to, from), Kinds::DEPENDENCIES, Anti::None, &components)
                        .is_some()
            })
        })
    }

    fn report(self, options: &Options) -> Report {
        let Checker { mut joined, predicates, verdicts, open, .. } = self;
        let violated =
            options.levels.iter().any(|level| verdicts[*level as usize] == Some(Verdict::Violated));
        if violated && options.anomalies {
            let mut found = std::mem::take(&mut joined.found);
            let keep = Keep {
                sessions: options.levels.iter().any(|level| level.keeps_sessions()),
                times: options.levels.iter().any(|level| level.keeps_times()),
            };
            witness::find(&joined, &predicates, keep, &mut found);
            joined.found = found;
        }
        Report {
            verdicts: verdicts.map(|verdict| verdict.unwrap_or(Verdict::NotAsked)),
            transactions: joined.history.len(),
            committed: joined.nodes(),
            anomalies: joined.found.into_anomalies(),
            open,
            ambiguous_reads: joined.ambiguous,
            unplaced_predicate_reads: predicates.unplaced,
        }
    }
}
