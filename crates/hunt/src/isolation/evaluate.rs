//! Evaluates predicates on row versions, by the engine itself.

use isolde_engines::engine::{Engine, EngineResult, Outcome};
use isolde_oracles::instrument::{Evaluation, Instrument};
use isolde_oracles::instrumented_run::read_bits;

/// For each predicate whether each version satisfies it; none where the engine cannot compute it
/// on some version.
pub type PredicateResults = (Evaluation, Vec<Option<Vec<bool>>>);

/// Evaluates all predicates on the version tables that are in the database.
pub fn evaluate(
    engine: &mut dyn Engine,
    instrument: &Instrument,
    evaluations: Vec<Evaluation>,
) -> EngineResult<Vec<PredicateResults>> {
    let mut all = Vec::new();
    for evaluation in evaluations {
        let mut satisfied: Vec<Option<Vec<bool>>> = vec![None; evaluation.predicates.len()];
        let loaded = engine.batch(&evaluation.load_sql(instrument))?;
        if !matches!(loaded, Outcome::Error(_)) {
            for (range, sql) in evaluation.ask_sql(instrument) {
                match engine.control(&sql)? {
                    Outcome::Rows { rows, .. } => {
                        read_bits(&mut satisfied[range], &rows, evaluation.versions.len());
                    }
                    // One of them overflows or divides by zero: each is asked alone.
                    _ => {
                        for at in range {
                            let sql = evaluation.ask_for(instrument, at..at + 1);
                            if let Outcome::Rows { rows, .. } = engine.control(&sql)? {
                                read_bits(
                                    &mut satisfied[at..=at],
                                    &rows,
                                    evaluation.versions.len(),
                                );
                            }
                        }
                    }
                }
            }
        }
        all.push((evaluation, satisfied));
    }
    Ok(all)
}
