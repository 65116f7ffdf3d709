//! A case: schema and rows, transactions, and the order in which their
//! statements are submitted, with what is expected of each engine and level.
//!
//! The text form is documented in `docs/case-format.md`; [`parse`] reads it,
//! [`format()`] writes it, and the two round-trip.

mod error;
mod expect;
mod format;
mod parse;
mod parsed;
#[cfg(test)]
mod tests;

pub use error::{ParseError, text_of};
pub use expect::{Claim, Expected, Subject};
pub use format::format;
pub use isolde_sql::selector::Selector;
pub use parse::parse;
pub use parsed::Parsed;

use crate::{Anomaly, Level};
use isolde_sql as sql;
use isolde_sql::dialect::Family;
use isolde_sql::{Control, Stmt};
use serde::{Deserialize, Serialize};

/// A line number that does not take part in comparisons, so that a case
/// equals itself after a round trip through the formatter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(pub usize);

impl PartialEq for Line {
    fn eq(&self, _: &Line) -> bool {
        true
    }
}

/// The word in a prompt that sends a statement whatever became of its
/// transaction.
pub const ANYWAY: &str = "anyway";

/// What kind of thing a case shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseKind {
    Bug,
    Fixed,
    Documented,
    Disputed,
    Scenario,
}

impl CaseKind {
    pub const ALL: [(&'static str, CaseKind); 5] = [
        ("bug", CaseKind::Bug),
        ("fixed", CaseKind::Fixed),
        ("documented", CaseKind::Documented),
        ("disputed", CaseKind::Disputed),
        ("scenario", CaseKind::Scenario),
    ];
}

/// Which side of a predicate a matrix scenario probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// The anomaly shows in what a SELECT returns.
    Read,
    /// The anomaly shows in what an UPDATE or DELETE hits.
    Write,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    pub id: String,
    pub title: String,
    pub link: Option<String>,
    /// Where it was reported on: `mysql 5.7.17, 8.0.11`, in the report's words.
    pub reported: Option<String>,
    /// What the steps were rebuilt from, where the source prints none to copy.
    pub rebuilt: Option<String>,
    /// Where the case is meant to run; empty means anywhere.
    pub engines: Vec<Selector>,
    pub kind: Option<CaseKind>,
    pub anomaly: Option<Anomaly>,
    pub variant: Option<Variant>,
    /// The level of every session that has none of its own.
    pub level: Option<Level>,
    pub session_levels: Vec<(String, Level)>,
    /// What a server must be started with for the case: `--name=value`.
    pub server_options: Vec<String>,
    pub about: String,
    /// What the reporter expected and what they saw.
    pub reporter: String,
    /// Comment lines above the first section.
    pub notes: Vec<String>,
    pub setups: Vec<Setup>,
    pub steps: Vec<Step>,
    pub finals: Vec<Statement>,
    pub final_notes: Vec<String>,
    pub expectations: Vec<Expectation>,
    /// The bug shows when all claims of any of these hold.
    pub shows_when: Vec<Condition>,
    /// The anomaly happened when all claims of any of these hold.
    pub possible_when: Vec<Condition>,
    pub trailing_notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub sql: String,
    pub line: Line,
}

/// What prepares the database; engine-specific ones win over the general one.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    pub on: Vec<Selector>,
    pub statements: Vec<Statement>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub session: String,
    /// The level of the transaction that starts here.
    pub level: Option<Level>,
    /// Sent even if the engine has ended or failed its transaction, as a
    /// client does that ignores an abort.
    pub anyway: bool,
    pub sql: String,
    /// What [`Step::statement`] answers.
    pub parsed: Parsed,
    pub notes: Vec<String>,
    pub line: Line,
    pub origin: Origin,
}

/// The operation of a generated plan that a step is, by its number. It takes no
/// part in comparisons, because the text of a case does not say it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin(pub Option<u32>);

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    pub on: Vec<Selector>,
    pub levels: Vec<Level>,
    pub claims: Vec<Claim>,
    /// What may happen instead, where the engine leaves it open.
    pub or: Vec<Vec<Claim>>,
    pub notes: Vec<String>,
    pub line: Line,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The levels at which it counts; empty means all.
    pub levels: Vec<Level>,
    pub claims: Vec<Claim>,
    pub notes: Vec<String>,
}

impl Case {
    /// The sessions in the order in which they first appear.
    pub fn sessions(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for step in &self.steps {
            if !names.contains(&step.session.as_str()) {
                names.push(&step.session);
            }
        }
        names
    }

    /// `s2.3`, the third statement of session s2.
    pub fn label(&self, step: usize) -> String {
        let session = &self.steps[step].session;
        let nth = self.steps[..=step].iter().filter(|s| s.session == *session).count();
        format!("{session}.{nth}")
    }

    pub fn step_of_label(&self, session: &str, nth: usize) -> Option<usize> {
        self.steps
            .iter()
            .enumerate()
            .filter(|(_, s)| s.session == session)
            .nth(nth.checked_sub(1)?)
            .map(|(i, _)| i)
    }

    /// In whose SQL the case is written, if all its engines are of one family.
    pub fn family(&self) -> Family {
        common_family(&self.engines)
    }

    /// The same case, its steps in the SQL of a family: where a case does not
    /// say for whom it is, the engine that it runs on does.
    pub fn read_as(mut self, family: Family) -> Case {
        self.steps.iter_mut().for_each(|step| step.parsed.read_as(family));
        self
    }

    /// The setup for an engine: its own if there is one, else the general one.
    pub fn setup_for(&self, engine: &str, version: &str) -> Vec<&Statement> {
        let own = self.setups.iter().find(|s| s.on.iter().any(|x| x.matches(engine, version)));
        let general = || self.setups.iter().find(|s| s.on.is_empty());
        own.or_else(general).map_or_else(Vec::new, |s| s.statements.iter().collect())
    }

    /// The level of a session when the run asks for `chosen`.
    pub fn session_level(&self, session: &str, chosen: Option<Level>) -> Option<Level> {
        let own = self.session_levels.iter().find(|(name, _)| name == session).map(|(_, l)| *l);
        own.or(chosen).or(self.level)
    }

    pub fn expectations_for(
        &self,
        engine: &str,
        version: &str,
        level: Option<Level>,
    ) -> Vec<&Expectation> {
        self.expectations
            .iter()
            .filter(|e| e.on.is_empty() || e.on.iter().any(|s| s.expects(engine, version)))
            .filter(|e| e.levels.is_empty() || level.is_some_and(|l| e.levels.contains(&l)))
            .collect()
    }

    /// What makes the case show what it is about; for a scenario of the
    /// matrix, that its anomaly is possible.
    pub fn when_it_shows(&self) -> &[Condition] {
        if self.shows_when.is_empty() { &self.possible_when } else { &self.shows_when }
    }

    pub fn runs_on(&self, engine: &str, version: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|s| s.matches(engine, version))
    }
}

fn common_family(engines: &[Selector]) -> Family {
    let mut families = engines.iter().map(|selector| Family::of(&selector.engine));
    match families.next() {
        Some(first) if families.all(|family| family == first) => first,
        _ => Family::Other,
    }
}

impl Setup {
    /// In whose SQL it is written, in a case of that of `whole`.
    pub fn family(&self, whole: Family) -> Family {
        if self.on.is_empty() { whole } else { common_family(&self.on) }
    }
}

impl Expectation {
    /// The outcomes of which a run must show one.
    pub fn outcomes(&self) -> Vec<&[Claim]> {
        std::iter::once(&self.claims).chain(&self.or).map(Vec::as_slice).collect()
    }
}

impl Step {
    pub fn plain(session: &str, sql: &str, line: Line) -> Step {
        Step {
            session: session.into(),
            level: None,
            anyway: false,
            sql: sql.into(),
            parsed: Parsed::later(Family::Other),
            notes: Vec::new(),
            line,
            origin: Origin::default(),
        }
    }

    /// `s1>`, `s1(serializable)>` or `s1(anyway)>`.
    pub fn prompt(&self) -> String {
        match (self.level, self.anyway) {
            (Some(level), _) => format!("{}({})>", self.session, level.name().to_lowercase()),
            (None, true) => format!("{}({ANYWAY})>", self.session),
            (None, false) => format!("{}>", self.session),
        }
    }

    /// The same with the level's short name, for a screen.
    pub fn short_prompt(&self) -> String {
        match self.level {
            Some(level) => format!("{}({})>", self.session, level.short()),
            None => self.prompt(),
        }
    }

    pub fn kind(&self) -> sql::Kind {
        sql::kind(&self.sql)
    }

    /// Whether its session begins transactions without BEGIN from here on.
    /// What cannot be read, such as a SET of several things, may do it, too.
    pub fn turns_off_autocommit(&self) -> bool {
        match self.statement() {
            Some(statement) => *statement == Stmt::Control(Control::SetAutocommit(false)),
            None => {
                let words = sql::outer_words(&self.sql);
                words.iter().any(|(_, word)| word.to_ascii_lowercase().ends_with("autocommit"))
            }
        }
    }

    /// What its text says; none where it could not be read with all that it
    /// says. The first call reads it.
    pub fn statement(&self) -> Option<&Stmt> {
        self.parsed.of(&self.sql)
    }
}
