//! Asks the engine which versions satisfy which predicates.

use isolde_core::instrument::{Evaluation, Instrument};
use isolde_core::oracle::isolation::read_bits;
use isolde_engines::engine::{Engine, EngineResult, Outcome};

/// For each predicate, of each version whether it satisfies it; none where the engine
/// cannot compute it on some version.
pub type Evaluated = (Evaluation, Vec<Option<Vec<bool>>>);

/// On the tables of versions that stand in the database.
pub fn evaluate(
    engine: &mut dyn Engine,
    instrument: &Instrument,
    evaluations: Vec<Evaluation>,
) -> EngineResult<Vec<Evaluated>> {
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
                    // One of them overflows or divides by nothing: each by itself.
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
