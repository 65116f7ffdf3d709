//! What a run starts from: tables, rows, and the version tables on which statements are evaluated.

use isolde_generator::Plan;
use isolde_model::history::TargetInfo;
use isolde_model::parsed_case::ParsedCase;
use isolde_model::{Case, Level};
use isolde_reference::version_tables::VersionTables;
use isolde_sql::lexer;
use std::sync::Arc;

/// The tables and rows that a run starts from.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// The statements that create the tables.
    pub create: Vec<String>,
    /// The statements that bring the tables back to their first rows.
    pub reset: Vec<String>,
    /// The case changes the schema, so the tables cannot be used again after it.
    pub changes_schema: bool,
    /// Version tables, on which statements are evaluated on chosen row versions; none where the
    /// tables or rows are not known well enough.
    pub versions: Option<VersionFixture>,
    /// The parsed case; none where it is not understood.
    pub reading: Option<Arc<ParsedCase>>,
}

impl PartialEq for Fixture {
    /// Whether two runs start from the same tables and rows, whatever they then execute.
    fn eq(&self, other: &Fixture) -> bool {
        self.create == other.create
            && self.reset == other.reset
            && self.changes_schema == other.changes_schema
    }
}

/// The version tables of a case, and the statements that load its first rows into them.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionFixture {
    pub create: Vec<String>,
    pub load: Vec<String>,
    /// The statements that create the tables with the first rows, where the rows are copied from
    /// those tables.
    pub from_setup: Option<Vec<String>>,
}

impl Fixture {
    /// The fixture of a generated case.
    pub fn of(plan: &Plan) -> Fixture {
        Fixture {
            create: plan.create_sql(),
            reset: plan.reset_sql(),
            changes_schema: plan.changes_schema(),
            versions: Some(VersionFixture::of(plan)),
            reading: Some(Arc::new(ParsedCase::from(plan))),
        }
    }

    /// The fixture of a case from a file. Its setup runs anew for each run, since how to restore
    /// its rows is not known.
    pub fn of_case(case: &Case, on: &TargetInfo, default_level: Level) -> Fixture {
        let setup = case.setup_for(&on.engine, &on.version);
        let reading = ParsedCase::of_case(case, on, default_level);
        let preparation = ParsedCase::preparation(case, on);
        let preparation = preparation.into_iter().map(str::to_string).collect();
        Fixture {
            create: setup.iter().map(|s| s.sql.clone()).collect(),
            reset: Vec::new(),
            changes_schema: true,
            versions: Some(VersionFixture::of_setup(&reading, preparation)),
            reading: Some(Arc::new(reading)),
        }
    }
}

impl VersionFixture {
    fn of(plan: &Plan) -> VersionFixture {
        let tables = VersionTables { schema: &plan.schema, dialect: &plan.dialect };
        let load = tables.load_sql(&plan.rows);
        VersionFixture { create: tables.create_sql(), load, from_setup: None }
    }

    fn of_setup(reading: &ParsedCase, mut preparation: Vec<String>) -> VersionFixture {
        preparation.retain(|sql| !is_maintenance(sql));
        let tables = VersionTables { schema: &reading.schema, dialect: &reading.dialect };
        let (create, load) = (tables.create_sql(), tables.copy_sql());
        VersionFixture { create, load, from_setup: Some(preparation) }
    }
}

/// Whether a statement changes no row of a table, and may be refused in a transaction or when it
/// runs again.
fn is_maintenance(sql: &str) -> bool {
    let words: Vec<String> =
        lexer::outer_words(sql).iter().take(2).map(|(_, w)| w.to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(words.as_slice(), ["vacuum" | "analyze" | "checkpoint", ..] | ["create", "role"])
}
