//! The page of all rules (`docs/semantics.md`), generated from their tables.

use super::{
    HOLD_FOR, Rule, RuleSet, concurrency_model, dolt, duckdb, innodb, postgres, sqlite, tidb, turso,
};
use isolde_model::Level;
use isolde_model::history::TargetInfo;
use isolde_sql::BeginForm;
use std::collections::BTreeMap;

/// One engine's section of the page: its title, its rules, and the targets,
/// levels and settings that select among them.
struct Section {
    title: &'static str,
    about: &'static str,
    rules: &'static [&'static Rule],
    engines: &'static [&'static str],
    levels: &'static [Level],
    settings: &'static [(&'static str, &'static str)],
}

/// The four of the standard.
const STANDARD: &[Level] =
    &[Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

static SECTIONS: [Section; 7] = [
    Section {
        title: "PostgreSQL",
        about: "`postgres`, from its manual's chapter on concurrency control.",
        rules: postgres::RULES,
        engines: &["postgres"],
        levels: STANDARD,
        settings: &[],
    },
    Section {
        title: "SQLite",
        about: "`sqlite`, `sqlite+wal` and `sqlite+shared-cache`. SERIALIZABLE is the only level, \
                except that a shared cache also has READ UNCOMMITTED.",
        rules: sqlite::RULES,
        engines: &["sqlite", "sqlite+wal", "sqlite+shared-cache"],
        levels: &[Level::ReadUncommitted, Level::Serializable],
        settings: &[],
    },
    Section {
        title: "InnoDB",
        about: "`mysql` and `mariadb`; rules `M…` apply to MariaDB only.",
        rules: innodb::RULES,
        engines: &["mysql", "mariadb"],
        levels: STANDARD,
        settings: &[("innodb_snapshot_isolation", "ON")],
    },
    Section {
        title: "DuckDB",
        about: "`duckdb`. Snapshot isolation is its only level.",
        rules: duckdb::RULES,
        engines: &["duckdb"],
        levels: &[Level::Snapshot],
        settings: &[],
    },
    Section {
        title: "TiDB",
        about: "`tidb` and `tidb+optimistic`. The form of BEGIN decides whether a transaction is \
                pessimistic or optimistic; for a plain BEGIN the target does.",
        rules: tidb::RULES,
        engines: &["tidb", "tidb+optimistic"],
        levels: &[Level::ReadCommitted, Level::RepeatableRead],
        settings: &[],
    },
    Section {
        title: "Turso",
        about: "`turso+mvcc`: concurrent transactions. `turso` follows the rules of SQLite's \
                write-ahead log, except that SAVEPOINT takes the snapshot.",
        rules: turso::RULES,
        engines: &["turso+mvcc"],
        levels: &[Level::Snapshot],
        settings: &[],
    },
    Section {
        title: "Dolt",
        about: "`dolt`. It accepts the names of all levels, which have no effect.",
        rules: dolt::RULES,
        engines: &["dolt"],
        levels: STANDARD,
        settings: &[],
    },
];

const HEAD: &str = "\
# The rules

How the supported engines behave by design, statement by statement. `isolde hunt` uses these rules to tell
a bug from documented behaviour, and `isolde explain` cites them ([explain.md](explain.md)). The sentences
are Isolde's; each links to the page of the manual that documents it. Where the manual is silent or
contradicts the engine, the rule says so, with a library case that shows what the engine does. Engines and
versions that are not listed have no rules: `explain` reports `not modelled`, and a hunt reports what it
finds there as `undecided` ([hunt.md](hunt.md)).

`isolde list --rules` generates this page from `crates/reference/src/rules`.
";

pub fn markdown() -> String {
    let mut page = HEAD.to_string();
    for section in &SECTIONS {
        let (title, about, versions) = (section.title, section.about, section.versions());
        page.push_str(&format!("\n## {title}\n\n{about} For {versions}.\n\n"));
        page.push_str("| id | rule | at | what it says |\n|---|---|---|---|\n");
        let (levels, used) = section.used();
        let all: Vec<Level> = levels.keys().copied().collect();
        let more = used.into_iter().filter(|r| !section.rules.contains(r));
        for rule in section.rules.iter().copied().chain(more) {
            let at: Vec<Level> =
                all.iter().copied().filter(|l| levels[l].contains(&rule)).collect();
            let at = match at.len() {
                0 => "see rule".to_string(),
                n if n == all.len() => "every level".to_string(),
                _ => at.iter().map(|l| l.short()).collect::<Vec<_>>().join(", "),
            };
            let mut about = rule.about.to_string();
            if !rule.versions.is_empty() {
                about.push_str(&format!(" ({})", rule.versions));
            }
            if let Some(observed) = rule.undocumented {
                let (said, case) = (observed.about, observed.case);
                about.push_str(&format!(
                    ". *Undocumented:* {said} ([{case}](../cases/{case}.case))"
                ));
            }
            let (id, name, page_of) = (rule.id, rule.name, rule.page);
            page.push_str(&format!("| {id} | [{name}]({page_of}) | {at} | {about} |\n"));
        }
    }
    page
}

impl Section {
    /// `postgres@9.1-`, as cases name versions.
    fn versions(&self) -> String {
        let mut plain: Vec<&str> =
            self.engines.iter().map(|e| e.split('+').next().unwrap_or(e)).collect();
        plain.dedup();
        let of = |engine: &&str| {
            let begins = |entry: &&str| entry.split('@').next() == Some(*engine);
            HOLD_FOR.split_whitespace().find(begins).map(|entry| format!("`{entry}`"))
        };
        plain.iter().filter_map(of).collect::<Vec<_>>().join(" and ")
    }

    /// The rules of each level, and all of them in the order of their first
    /// appearance.
    fn used(&self) -> (BTreeMap<Level, Vec<&'static Rule>>, Vec<&'static Rule>) {
        let mut levels: BTreeMap<Level, Vec<&'static Rule>> = BTreeMap::new();
        let mut all: Vec<&'static Rule> = Vec::new();
        let targets = self.engines.iter().flat_map(|engine| {
            let plain = TargetInfo {
                target: (*engine).into(),
                engine: (*engine).into(),
                version: String::new(),
                settings: BTreeMap::new(),
                follows: None,
            };
            let set = self.settings.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            [TargetInfo { settings: set, ..plain.clone() }, plain]
        });
        for on in targets {
            for (level, form) in self.levels.iter().flat_map(|l| BeginForm::ALL.map(|f| (*l, f))) {
                let Some(model) = concurrency_model(&on, level, Some(form)) else { continue };
                let serial = (level == Level::Serializable).then_some(model.rules.serial);
                let rules = model.rules.of_statements().into_iter();
                let more = [
                    model.conflicts.may_abort,
                    model.snapshot.not_taken_by_empty_read,
                    model.conflicts.noop_update_may_write,
                    serial,
                ];
                for rule in rules.chain(more.into_iter().flatten()) {
                    let at = levels.entry(level).or_default();
                    if !at.contains(&rule) {
                        at.push(rule);
                    }
                    if !all.contains(&rule) {
                        all.push(rule);
                    }
                }
            }
        }
        (levels, all)
    }
}

impl RuleSet {
    fn of_statements(&self) -> [&'static Rule; 12] {
        let RuleSet { read, own_writes, write, changed_row, held_row, unique, .. } = self;
        let RuleSet { foreign, upsert, deadlock, constraint, savepoint, rollback, .. } = self;
        [
            read,
            own_writes,
            write,
            changed_row,
            held_row,
            unique,
            foreign,
            upsert,
            deadlock,
            constraint,
            savepoint,
            rollback,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_lists_each_rule_once_with_its_levels() {
        let page = markdown();
        for rule in SECTIONS.iter().flat_map(|s| s.rules) {
            let lines = page.lines().filter(|l| l.starts_with(&format!("| {} |", rule.id)));
            assert_eq!(lines.count(), 1, "{}", rule.id);
        }
        let line = |id: &str| page.lines().find(|l| l.starts_with(&format!("| {id} |"))).unwrap();
        assert!(line("P1").contains("| RU, RC |"), "{}", line("P1"));
        assert!(line("P9").contains("| SER |"), "{}", line("P9"));
        assert!(line("P14").contains("| every level |"), "{}", line("P14"));
    }

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn undocumented_rules_name_a_case_and_versions_parse() {
        let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/cases");
        for rule in SECTIONS.iter().flat_map(|s| s.rules) {
            if let Some(observed) = rule.undocumented {
                let file = format!("{cases}/{}.case", observed.case);
                assert!(std::path::Path::new(&file).is_file(), "{}: {file}", rule.id);
            }
            for entry in rule.versions.split_whitespace().chain(HOLD_FOR.split_whitespace()) {
                assert!(
                    entry.parse::<isolde_sql::selector::Selector>().is_ok(),
                    "{}: {entry}",
                    rule.id
                );
            }
        }
    }

    #[test]
    fn versions_older_than_the_rules_have_no_model() {
        let has = |engine: &str, version: &str| {
            let on = TargetInfo {
                engine: engine.into(),
                version: version.into(),
                ..TargetInfo::default()
            };
            concurrency_model(&on, Level::Serializable, Some(BeginForm::Plain)).is_some()
        };
        assert!(has("postgres", "15.18") && has("sqlite+wal", "3.45.1") && has("mysql", "9.7.4"));
        assert!(!has("postgres", "9.0.1") && !has("cockroach", "24.1"));
    }
}
