//! Results of evaluations on the version tables, kept as long as the tables exist.
//!
//! Versions are only added, never removed, and a statement names the versions that it reads by
//! their numbers. The same text therefore has the same result, also for the next case that starts
//! from the same rows. Three cases in a row do, and most of their statements read unchanged rows.

use crate::run::fixture::VersionFixture;
use isolde_model::history::DbError;
use isolde_model::value::Row;
use isolde_reference::version_tables::MADE_MARK;
use std::collections::HashMap;

/// The rows of an evaluation, or the error of the engine.
pub type EvaluationResult = Result<Vec<Row>, DbError>;

/// The results so far, for one set of first rows.
#[derive(Default)]
pub struct EvaluationCache {
    /// The first rows of the version tables.
    of: Option<VersionFixture>,
    /// By the statements and by how often the inquiry had requested them before: two statements
    /// with the same text create versions of their own.
    known: HashMap<(Vec<String>, usize), EvaluationResult>,
    /// The last number given to versions that a statement creates.
    last_number: u32,
}

/// How often one inquiry has requested each evaluation.
pub type RequestCounts = HashMap<Vec<String>, usize>;

impl EvaluationCache {
    /// Whether the version tables have these first rows.
    pub fn is_of(&self, versions: &VersionFixture) -> bool {
        self.of.as_ref() == Some(versions)
    }

    /// Starts anew for version tables that hold these first rows only.
    pub fn begin(&mut self, versions: &VersionFixture) {
        *self = EvaluationCache { of: Some(versions.clone()), ..EvaluationCache::default() };
    }

    pub fn forget(&mut self) {
        *self = EvaluationCache::default();
    }

    /// The known result, or the one of `evaluate`, which gets the statements to be sent.
    pub fn answer<E>(
        &mut self,
        statements: Vec<String>,
        counts: &mut RequestCounts,
        evaluate: impl FnOnce(&[String]) -> Result<EvaluationResult, E>,
    ) -> Result<EvaluationResult, E> {
        let nth = counts.entry(statements.clone()).or_default();
        let request = (statements, *nth);
        *nth += 1;
        if let Some(answer) = self.known.get(&request) {
            return Ok(answer.clone());
        }
        self.last_number += 1;
        let number = self.last_number.to_string();
        let sent: Vec<String> = request.0.iter().map(|s| s.replace(MADE_MARK, &number)).collect();
        let answer = evaluate(&sent)?;
        self.known.insert(request, answer.clone());
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_model::Value;

    /// An engine that returns the number of requests so far.
    struct Counting(i64);

    impl Counting {
        fn ask(
            &mut self,
            known: &mut EvaluationCache,
            text: &str,
            counts: &mut RequestCounts,
        ) -> i64 {
            let answer = known.answer(vec![text.into()], counts, |_| {
                self.0 += 1;
                Ok::<_, ()>(Ok(vec![vec![Value::Int(self.0)]]))
            });
            match answer.unwrap().unwrap()[0][0] {
                Value::Int(i) => i,
                ref other => panic!("{other:?}"),
            }
        }
    }

    fn rows(load: &str) -> VersionFixture {
        VersionFixture { create: Vec::new(), load: vec![load.into()], from_setup: None }
    }

    #[test]
    fn repeated_statements_of_one_inquiry_are_evaluated_separately_and_cached() {
        let (mut engine, mut known) = (Counting(0), EvaluationCache::default());
        known.begin(&rows("a"));
        let mut first = RequestCounts::default();
        assert_eq!([0; 2].map(|_| engine.ask(&mut known, "x", &mut first)), [1, 2]);
        let mut second = RequestCounts::default();
        assert_eq!([0; 3].map(|_| engine.ask(&mut known, "x", &mut second)), [1, 2, 3]);
        assert_eq!(engine.ask(&mut known, "y", &mut second), 4);
    }

    #[test]
    fn results_are_dropped_when_the_first_rows_change() {
        let (mut engine, mut known) = (Counting(0), EvaluationCache::default());
        known.begin(&rows("a"));
        assert!(known.is_of(&rows("a")) && !known.is_of(&rows("b")));
        assert_eq!(engine.ask(&mut known, "x", &mut RequestCounts::default()), 1);
        known.begin(&rows("b"));
        assert_eq!(engine.ask(&mut known, "x", &mut RequestCounts::default()), 2);
        known.forget();
        assert!(!known.is_of(&rows("b")));
    }

    #[test]
    fn each_evaluation_gets_its_own_version_number() {
        let mut known = EvaluationCache::default();
        let mut sent = Vec::new();
        for _ in 0..2 {
            let text = vec![format!("select {MADE_MARK}"), "select 1".into()];
            let counts = &mut RequestCounts::default();
            let mut keep = |s: &[String]| {
                sent.push(s.to_vec());
                Err("the server died")
            };
            assert!(known.answer(text, counts, &mut keep).is_err());
        }
        assert_eq!(sent, [["select 1", "select 1"], ["select 2", "select 1"]]);
    }
}
