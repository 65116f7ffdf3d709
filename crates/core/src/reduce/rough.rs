//! A case of which not everything is understood: whole steps, setup statements and final
//! queries are taken away, and nothing is changed inside of them.

use super::{Graph, Place, Subject};
use crate::Case;
use crate::case::Step;
use crate::sql::{Kind, Stmt};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub struct Rough {
    pub case: Case,
}

/// Statements of the setups and final queries, from the last to the first.
#[derive(Clone, Debug)]
pub struct Around {
    left: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    Setup { setup: usize, statement: usize },
    Final(usize),
}

/// Where a session stands.
#[derive(Clone, Copy, Default)]
struct Open {
    /// The step that began its transaction.
    begun: Option<usize>,
    transaction: usize,
}

impl Rough {
    /// What the case claims of steps is gone: their numbers change.
    pub fn of(case: &Case) -> Rough {
        let mut case = case.clone();
        case.expectations.clear();
        case.shows_when.clear();
        case.possible_when.clear();
        Rough { case }
    }
}

/// The savepoint that a step makes or needs.
fn savepoint(step: &Step) -> Option<&str> {
    match step.statement() {
        Some(Stmt::Savepoint(name) | Stmt::RollbackTo(name) | Stmt::Release(name)) => Some(name),
        _ => None,
    }
}

impl Subject for Rough {
    type Inside = Around;

    /// A transaction ends with its beginning, and what is in it goes with that.
    fn graph(&self) -> Graph {
        let names = self.case.sessions();
        let mut sessions = vec![Open::default(); names.len()];
        let mut places: Vec<Place> = Vec::new();
        let mut carried: Vec<(usize, usize)> = Vec::new();
        let mut savepoints: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        let mut transactions = 0;
        for (n, step) in self.case.steps.iter().enumerate() {
            let session = names.iter().position(|name| *name == step.session).unwrap_or(0);
            let open = &mut sessions[session];
            if step.kind() == Kind::Begin || open.begun.is_none() {
                transactions += 1;
                open.transaction = transactions;
                open.begun = (step.kind() == Kind::Begin).then_some(n);
            }
            places.push(Place { session, transaction: open.transaction });
            carried.extend(open.begun.filter(|begun| *begun != n).map(|begun| (begun, n)));
            match (step.kind(), savepoint(step)) {
                (Kind::Savepoint, Some(name)) => {
                    savepoints.insert((open.transaction, name), n);
                }
                (Kind::RollbackTo | Kind::Release, Some(name)) => {
                    let maker = savepoints.get(&(open.transaction, name));
                    carried.extend(maker.map(|maker| (*maker, n)));
                }
                (Kind::Commit | Kind::Rollback, _) => open.begun = None,
                _ => {}
            }
        }
        let mut graph = Graph::new(places);
        carried.into_iter().for_each(|(earlier, later)| graph.carry(earlier, later));
        graph
    }

    fn keeping(&self, kept: &[bool]) -> Rough {
        let mut case = self.case.clone();
        let mut kept = kept.iter();
        case.steps.retain(|_| *kept.next().unwrap_or(&true));
        let sessions: Vec<String> = case.sessions().into_iter().map(str::to_string).collect();
        case.session_levels.retain(|(name, _)| sessions.contains(name));
        Rough { case }
    }

    fn inside(&self, pass: usize) -> Option<Around> {
        let statements = |setup: usize| 0..self.case.setups[setup].statements.len();
        let setups = (0..self.case.setups.len()).flat_map(|setup| {
            statements(setup).map(move |statement| Piece::Setup { setup, statement })
        });
        let finals = (0..self.case.finals.len()).map(Piece::Final);
        (pass == 0).then(|| Around { left: setups.chain(finals).collect() })
    }

    fn next(inside: &mut Around, best: &Rough) -> Option<Rough> {
        let mut case = best.case.clone();
        match inside.left.pop()? {
            Piece::Setup { setup, statement } => {
                case.setups[setup].statements.remove(statement);
            }
            Piece::Final(place) => {
                case.finals.remove(place);
            }
        }
        Some(Rough { case })
    }

    /// They go from the last to the first, so the places of those that are left stay.
    fn taken(_: &mut Around) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case;

    const TEXT: &str = "case: x\n\nsetup:\n  create table t (a int);\n  insert into t values (1);\n\n\
        s1> begin;\ns1> savepoint p;\ns2> select 1;\ns1> rollback to p;\ns1> commit;\ns1> select 2;\n\n\
        final:\n  select a from t;\n";

    #[test]
    fn steps_go_with_what_makes_no_sense_without_them() {
        let rough = Rough::of(&case::parse(TEXT).unwrap());
        let graph = rough.graph();
        let without = |gone: usize| {
            let mut kept = vec![true; graph.len()];
            graph.take(&[gone], &mut kept);
            rough.keeping(&kept).case.steps.len()
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(without), [2, 4, 5, 5, 5, 5]);
        assert_eq!(graph.transactions().len(), 3);
    }

    #[test]
    fn setups_and_final_queries_go_one_by_one() {
        let rough = Rough::of(&case::parse(TEXT).unwrap());
        let mut inside = rough.inside(0).unwrap();
        let mut best = rough.clone();
        let mut sizes = Vec::new();
        while let Some(smaller) = Rough::next(&mut inside, &best) {
            sizes.push((smaller.case.setups[0].statements.len(), smaller.case.finals.len()));
            best = smaller;
            Rough::taken(&mut inside);
        }
        assert_eq!(sizes, [(2, 0), (1, 0), (0, 0)]);
        assert!(rough.inside(1).is_none());
    }
}
