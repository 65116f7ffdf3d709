//! The page of all rules, made from their tables.

use super::{
    HOLD_FOR, Rule, Used, conduct, dolt, duckdb, innodb, postgres, snapshot, sqlite, tidb,
};
use crate::Level;
use crate::generate::BeginForm;
use crate::history::TargetInfo;
use std::collections::BTreeMap;

/// An engine of the page: its title, its rules, and what they may depend on.
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
                but that a shared cache has READ UNCOMMITTED, too.",
        rules: sqlite::RULES,
        engines: &["sqlite", "sqlite+wal", "sqlite+shared-cache"],
        levels: &[Level::ReadUncommitted, Level::Serializable],
        settings: &[],
    },
    Section {
        title: "InnoDB",
        about: "`mysql` and `mariadb`; `M…` is MariaDB's alone.",
        rules: innodb::RULES,
        engines: &["mysql", "mariadb"],
        levels: STANDARD,
        settings: &[("innodb_snapshot_isolation", "ON")],
    },
    Section {
        title: "DuckDB",
        about: "`duckdb`. Snapshots are its only level.",
        rules: duckdb::RULES,
        engines: &["duckdb"],
        levels: &[Level::Snapshot],
        settings: &[],
    },
    Section {
        title: "TiDB",
        about: "`tidb` and `tidb+optimistic`: how a transaction was begun decides, and for a plain \
                BEGIN the target.",
        rules: tidb::RULES,
        engines: &["tidb", "tidb+optimistic"],
        levels: &[Level::ReadCommitted, Level::RepeatableRead],
        settings: &[],
    },
    Section {
        title: "Turso",
        about: "`turso+mvcc`, the concurrent transactions. `turso` without them follows SQLite's \
                write-ahead log, but that SAVEPOINT takes the snapshot.",
        rules: snapshot::RULES,
        engines: &["turso+mvcc"],
        levels: &[Level::Snapshot],
        settings: &[],
    },
    Section {
        title: "Dolt",
        about: "`dolt`. Levels have names and no effect.",
        rules: dolt::RULES,
        engines: &["dolt"],
        levels: STANDARD,
        settings: &[],
    },
];

const HEAD: &str = "\
# The rules

What Isolde knows of how engines behave, statement by statement: `isolde hunt` tells a bug from
documented behaviour by them, and `isolde explain` names them ([explain.md](explain.md)). The sentences
are Isolde's; the links go to the page of the manual that says so. Where manual and engine disagree, or the
manual is silent, both are said, with a case of the library that shows it. Engines and versions that are not
here have no rules: `explain` says `not modelled`, and what a hunt finds there is `undecided`
([hunt.md](hunt.md)).

This page is made by `isolde list --rules`, from `crates/core/src/semantics/rules`.
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
                0 => "as it says".to_string(),
                n if n == all.len() => "every level".to_string(),
                _ => at.iter().map(|l| l.short()).collect::<Vec<_>>().join(", "),
            };
            let mut about = rule.about.to_string();
            if !rule.versions.is_empty() {
                about.push_str(&format!(" ({})", rule.versions));
            }
            if let Some(seen) = rule.seen {
                let (said, case) = (seen.about, seen.case);
                about.push_str(&format!(". *Seen:* {said} ([{case}](../cases/{case}.case))"));
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

    /// The rules of each level, and all of them in the order in which they
    /// are met.
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
                let Some(conduct) = conduct(&on, level, Some(form)) else { continue };
                let serial = (level == Level::Serializable).then_some(conduct.rules.serial);
                let rules = conduct.rules.of_statements().into_iter();
                let more = [conduct.may_abort, conduct.unread, conduct.writes_equal, serial];
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

impl Used {
    fn of_statements(&self) -> [&'static Rule; 12] {
        let Used { read, own_writes, write, changed_row, held_row, unique, .. } = self;
        let Used { foreign, upsert, deadlock, constraint, savepoint, rollback, .. } = self;
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
    fn every_rule_is_there_once_with_its_levels() {
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
    fn what_is_seen_against_a_manual_has_a_case_and_versions_can_be_read() {
        let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases");
        for rule in SECTIONS.iter().flat_map(|s| s.rules) {
            if let Some(seen) = rule.seen {
                let file = format!("{cases}/{}.case", seen.case);
                assert!(std::path::Path::new(&file).is_file(), "{}: {file}", rule.id);
            }
            for entry in rule.versions.split_whitespace().chain(HOLD_FOR.split_whitespace()) {
                assert!(entry.parse::<crate::case::Selector>().is_ok(), "{}: {entry}", rule.id);
            }
        }
    }

    #[test]
    fn versions_before_the_rules_have_none() {
        let has = |engine: &str, version: &str| {
            let on = TargetInfo {
                engine: engine.into(),
                version: version.into(),
                ..TargetInfo::default()
            };
            conduct(&on, Level::Serializable, Some(BeginForm::Plain)).is_some()
        };
        assert!(has("postgres", "15.18") && has("sqlite+wal", "3.45.1") && has("mysql", "9.7.4"));
        assert!(!has("postgres", "9.0.1") && !has("cockroach", "24.1"));
    }
}
