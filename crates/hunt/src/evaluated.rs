//! What the engine has evaluated already, as long as its version tables stand.
//!
//! Versions are only ever added, and a statement names those that it reads by
//! their numbers: the same text has the same answer, also for the next case
//! that begins with the same rows. Three cases in a row do, and most of their
//! statements meet rows that nobody has changed.

use crate::executor::VersionFixture;
use isolde_core::history::DbError;
use isolde_core::semantics::version_tables::MADE_MARK;
use isolde_core::value::Row;
use std::collections::HashMap;

pub type Answered = Result<Vec<Row>, DbError>;

#[derive(Default)]
pub struct Evaluated {
    /// The rows that the version tables began with.
    of: Option<VersionFixture>,
    /// By text, and by how often an inquiry had asked it before: two statements
    /// that say the same make versions of their own.
    known: HashMap<(Vec<String>, usize), Answered>,
    /// The last number under which versions were filed.
    filed: u32,
}

/// How often one inquiry has asked each thing.
pub type Asked = HashMap<Vec<String>, usize>;

impl Evaluated {
    /// Whether the version tables have these first rows.
    pub fn is_of(&self, versions: &VersionFixture) -> bool {
        self.of.as_ref() == Some(versions)
    }

    /// The version tables have these first rows, and no others.
    pub fn begin(&mut self, versions: &VersionFixture) {
        *self = Evaluated { of: Some(versions.clone()), ..Evaluated::default() };
    }

    pub fn forget(&mut self) {
        *self = Evaluated::default();
    }

    /// What was answered, or asks for it: the statements as they are to be sent.
    pub fn answer<E>(
        &mut self,
        statements: Vec<String>,
        asked: &mut Asked,
        evaluate: impl FnOnce(&[String]) -> Result<Answered, E>,
    ) -> Result<Answered, E> {
        let nth = asked.entry(statements.clone()).or_default();
        let question = (statements, *nth);
        *nth += 1;
        if let Some(answer) = self.known.get(&question) {
            return Ok(answer.clone());
        }
        self.filed += 1;
        let filed = self.filed.to_string();
        let sent: Vec<String> = question.0.iter().map(|s| s.replace(MADE_MARK, &filed)).collect();
        let answer = evaluate(&sent)?;
        self.known.insert(question, answer.clone());
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::Value;

    /// An engine that answers with how many questions it was asked.
    struct Counting(i64);

    impl Counting {
        fn ask(&mut self, known: &mut Evaluated, text: &str, asked: &mut Asked) -> i64 {
            let answer = known.answer(vec![text.into()], asked, |_| {
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
    fn the_same_text_is_asked_once_for_each_time_that_one_inquiry_asks_it() {
        let (mut engine, mut known) = (Counting(0), Evaluated::default());
        known.begin(&rows("a"));
        let mut first = Asked::default();
        assert_eq!([0; 2].map(|_| engine.ask(&mut known, "x", &mut first)), [1, 2]);
        let mut second = Asked::default();
        assert_eq!([0; 3].map(|_| engine.ask(&mut known, "x", &mut second)), [1, 2, 3]);
        assert_eq!(engine.ask(&mut known, "y", &mut second), 4);
    }

    #[test]
    fn other_first_rows_have_other_answers() {
        let (mut engine, mut known) = (Counting(0), Evaluated::default());
        known.begin(&rows("a"));
        assert!(known.is_of(&rows("a")) && !known.is_of(&rows("b")));
        assert_eq!(engine.ask(&mut known, "x", &mut Asked::default()), 1);
        known.begin(&rows("b"));
        assert_eq!(engine.ask(&mut known, "x", &mut Asked::default()), 2);
        known.forget();
        assert!(!known.is_of(&rows("b")));
    }

    #[test]
    fn versions_are_filed_under_a_number_of_their_own() {
        let mut known = Evaluated::default();
        let mut sent = Vec::new();
        for _ in 0..2 {
            let text = vec![format!("select {MADE_MARK}"), "select 1".into()];
            let asked = &mut Asked::default();
            let mut keep = |s: &[String]| {
                sent.push(s.to_vec());
                Err("the server died")
            };
            assert!(known.answer(text, asked, &mut keep).is_err());
        }
        assert_eq!(sent, [["select 1", "select 1"], ["select 2", "select 1"]]);
    }
}
