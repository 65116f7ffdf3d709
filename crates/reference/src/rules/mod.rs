//! The documented behaviour of each engine: rules with manual pages, and one
//! concurrency model per isolation level.
//!
//! A [`Rule`] is one sentence about one thing that an engine does by design, with
//! the page of the manual that documents it. A [`ConcurrencyModel`] is what the
//! reference model follows for one transaction; engine, level and BEGIN form
//! select it. A new engine is one file here and one line in
//! [`concurrency_model`].

mod concurrency;
pub mod dolt;
pub mod duckdb;
pub mod innodb;
pub mod page;
pub mod postgres;
pub mod sqlite;
pub mod tidb;
pub mod turso;

pub use concurrency::*;
use isolde_model::Level;
use isolde_model::history::TargetInfo;
use isolde_sql::BeginForm;
use isolde_sql::dialect::is_among;

/// One thing that an engine does by design.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    pub id: &'static str,
    /// A short name, as reports print it.
    pub name: &'static str,
    /// What the engine does, in one sentence.
    pub about: &'static str,
    /// The page of the manual that documents it.
    pub page: &'static str,
    /// The versions that the rule holds for, in the notation of cases
    /// (`mariadb@10.11.8-`); empty for all versions that have rules
    /// (`HOLD_FOR`).
    pub versions: &'static str,
    pub undocumented: Option<Undocumented>,
    /// The position in which reports cite the rule among those that explain a
    /// run, the lowest first: that a row was re-checked explains more than that
    /// rows are locked.
    pub rank: u8,
}

/// Behaviour on which the manual is silent, or says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undocumented {
    pub about: &'static str,
    /// The library case that shows it.
    pub case: &'static str,
}

/// The versions that have rules. Before PostgreSQL 9.1 SERIALIZABLE was snapshot
/// isolation, and before TiDB 4.0 there was no READ COMMITTED; for the other
/// engines these are the oldest versions that were examined.
const HOLD_FOR: &str = "postgres@9.1- sqlite@3.7- turso@0.2- mysql@5.6- mariadb@10.0- tidb@4.0- \
                        duckdb@2.0- dolt@2.0-";

/// Makes a rule that every version follows and the manual documents.
const fn rule(
    id: &'static str,
    name: &'static str,
    page: &'static str,
    about: &'static str,
) -> Rule {
    Rule { id, name, about, page, versions: "", undocumented: None, rank: 9 }
}

impl Rule {
    const fn ranked(mut self, rank: u8) -> Rule {
        self.rank = rank;
        self
    }

    const fn holds_for(mut self, versions: &'static str) -> Rule {
        self.versions = versions;
        self
    }

    /// Marks a rule that the manual does not mention or contradicts, with the
    /// case that shows it.
    const fn undocumented(mut self, about: &'static str, case: &'static str) -> Rule {
        self.undocumented = Some(Undocumented { about, case });
        self
    }
}

/// The rules that a prediction cites, by the step of a statement that follows
/// each.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleSet {
    pub read: &'static Rule,
    pub own_writes: &'static Rule,
    pub write: &'static Rule,
    pub changed_row: &'static Rule,
    pub held_row: &'static Rule,
    pub unique: &'static Rule,
    pub foreign: &'static Rule,
    pub upsert: &'static Rule,
    pub deadlock: &'static Rule,
    pub constraint: &'static Rule,
    pub savepoint: &'static Rule,
    pub rollback: &'static Rule,
    /// Why the committed transactions have a serial order.
    pub serial: &'static Rule,
}

/// The concurrency model of a transaction on this engine at this level. `begun`
/// is the form of its BEGIN, None for an autocommitted statement. None when the
/// engine or its version has no rules.
pub fn concurrency_model(
    on: &TargetInfo,
    level: Level,
    begun: Option<BeginForm>,
) -> Option<ConcurrencyModel> {
    if let Some(follows) = &on.follows {
        let engine = follows.engine.clone();
        let followed = TargetInfo { engine, follows: None, ..on.clone() };
        return concurrency_model(&followed, level, begun);
    }
    if !on.version.is_empty() && !is_among(HOLD_FOR, &on.engine, &on.version) {
        return None;
    }
    let plain = on.engine.split('+').next().unwrap_or(&on.engine);
    let form = begun.unwrap_or(BeginForm::Plain);
    match plain {
        "postgres" => Some(postgres::concurrency_model(level)),
        "sqlite" => sqlite::concurrency_model(&on.engine, level, form),
        "turso" if on.engine.ends_with("+mvcc") => Some(turso::concurrent()),
        "tidb" => Some(tidb::concurrency_model(on, level, begun)),
        "turso" => turso::single_writer(level, form),
        "dolt" => Some(dolt::concurrency_model()),
        "duckdb" => Some(duckdb::concurrency_model()),
        "mysql" | "mariadb" => Some(innodb::concurrency_model(on, level, form)),
        _ => None,
    }
}
