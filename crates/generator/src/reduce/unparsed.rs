//! Reduces a case that cannot be parsed completely: whole steps, setup statements and final
//! queries are removed, and none is changed.

use super::{OperationGraph, Owner, Reducible};
use isolde_model::Case;
use isolde_model::case::Step;
use isolde_sql::{Control, Kind, Stmt};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub struct UnparsedCase {
    pub case: Case,
}

/// The setup statements and final queries that are still to be tried, the next one last.
#[derive(Clone, Debug)]
pub struct OuterStatements {
    left: Vec<OuterStatement>,
}

#[derive(Clone, Copy, Debug)]
enum OuterStatement {
    Setup { setup: usize, statement: usize },
    Final(usize),
}

/// The transaction state of a session.
#[derive(Clone, Copy, Default)]
struct SessionState {
    /// The step that began the open transaction.
    begun: Option<usize>,
    transaction: usize,
}

impl UnparsedCase {
    /// Drops the expectations of the case, because the numbers of its steps change.
    pub fn of(case: &Case) -> UnparsedCase {
        let mut case = case.clone();
        case.expectations.clear();
        case.shows_when.clear();
        case.possible_when.clear();
        UnparsedCase { case }
    }
}

/// The savepoint that a step sets or needs.
fn savepoint(step: &Step) -> Option<&str> {
    match step.statement() {
        Some(Stmt::Control(
            Control::Savepoint(name) | Control::RollbackTo(name) | Control::Release(name),
        )) => Some(name),
        _ => None,
    }
}

impl Reducible for UnparsedCase {
    type Simplifications = OuterStatements;

    /// All steps of a transaction require its BEGIN.
    fn graph(&self) -> OperationGraph {
        let names = self.case.sessions();
        let mut sessions = vec![SessionState::default(); names.len()];
        let mut places: Vec<Owner> = Vec::new();
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
            places.push(Owner { session, transaction: open.transaction });
            carried.extend(open.begun.filter(|begun| *begun != n).map(|begun| (begun, n)));
            match (step.kind(), savepoint(step)) {
                (Kind::Savepoint, Some(name)) => {
                    savepoints.insert((open.transaction, name), n);
                }
                (Kind::RollbackTo | Kind::Release, Some(name)) => {
                    let creator = savepoints.get(&(open.transaction, name));
                    carried.extend(creator.map(|creator| (*creator, n)));
                }
                (Kind::Commit | Kind::Rollback, _) => open.begun = None,
                _ => {}
            }
        }
        let mut graph = OperationGraph::new(places);
        carried.into_iter().for_each(|(earlier, later)| graph.add_requirement(earlier, later));
        graph
    }

    fn keeping(&self, kept: &[bool]) -> UnparsedCase {
        let mut case = self.case.clone();
        let mut kept = kept.iter();
        case.steps.retain(|_| *kept.next().unwrap_or(&true));
        let sessions: Vec<String> = case.sessions().into_iter().map(str::to_string).collect();
        case.session_levels.retain(|(name, _)| sessions.contains(name));
        UnparsedCase { case }
    }

    fn simplifications(&self, pass: usize) -> Option<OuterStatements> {
        let statements = |setup: usize| 0..self.case.setups[setup].statements.len();
        let setups = (0..self.case.setups.len()).flat_map(|setup| {
            statements(setup).map(move |statement| OuterStatement::Setup { setup, statement })
        });
        let finals = (0..self.case.finals.len()).map(OuterStatement::Final);
        (pass == 0).then(|| OuterStatements { left: setups.chain(finals).collect() })
    }

    fn next(statements: &mut OuterStatements, best: &UnparsedCase) -> Option<UnparsedCase> {
        let mut case = best.case.clone();
        match statements.left.pop()? {
            OuterStatement::Setup { setup, statement } => {
                case.setups[setup].statements.remove(statement);
            }
            OuterStatement::Final(place) => {
                case.finals.remove(place);
            }
        }
        Some(UnparsedCase { case })
    }

    /// Nothing to do: statements are removed from the last to the first, so the indexes of the
    /// others stay valid.
    fn accept(_: &mut OuterStatements) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_model::case;

    const TEXT: &str = "case: x\n\nsetup:\n  create table t (a int);\n  insert into t values (1);\n\n\
        s1> begin;\ns1> savepoint p;\ns2> select 1;\ns1> rollback to p;\ns1> commit;\ns1> select 2;\n\n\
        final:\n  select a from t;\n";

    #[test]
    fn step_is_removed_with_those_that_require_it() {
        let unparsed = UnparsedCase::of(&case::parse(TEXT).unwrap());
        let graph = unparsed.graph();
        let without = |gone: usize| {
            let mut kept = vec![true; graph.len()];
            graph.remove(&[gone], &mut kept);
            unparsed.keeping(&kept).case.steps.len()
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(without), [2, 4, 5, 5, 5, 5]);
        assert_eq!(graph.transactions().len(), 3);
    }

    #[test]
    fn setup_statements_and_final_queries_are_removed_one_by_one() {
        let unparsed = UnparsedCase::of(&case::parse(TEXT).unwrap());
        let mut statements = unparsed.simplifications(0).unwrap();
        let mut best = unparsed.clone();
        let mut sizes = Vec::new();
        while let Some(smaller) = UnparsedCase::next(&mut statements, &best) {
            sizes.push((smaller.case.setups[0].statements.len(), smaller.case.finals.len()));
            best = smaller;
            UnparsedCase::accept(&mut statements);
        }
        assert_eq!(sizes, [(2, 0), (1, 0), (0, 0)]);
        assert!(unparsed.simplifications(1).is_none());
    }
}
