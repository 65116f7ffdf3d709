//! Every rule cites a page of a manual that says what the rule says.
//!
//! `data/manual-quotations.txt` records each citation as it was found in a copy of
//! the manual. A rule whose quotation is not recorded there fails, and where
//! Debian installs a manual, the quotations are searched in it again.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use isolde_catalog::engines::{self, ENGINES};
use isolde_catalog::{BeginForm, Citation, Evidence, Level, Rule, TargetInfo, concurrency_model};
use std::collections::BTreeSet;
use std::path::Path;

const RECORD: &str = include_str!("data/manual-quotations.txt");
const POSTGRES_MANUAL: &str = "/usr/share/doc/postgresql-doc-15/html";
const SQLITE_MANUAL: &str = "/usr/share/doc/sqlite3";
const MARIADB_HELP: &str = "/usr/share/mysql/fill_help_tables.sql";

/// One line of the record.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Recorded {
    copy: &'static str,
    page: &'static str,
    kind: &'static str,
    text: &'static str,
}

fn record() -> Vec<Recorded> {
    let lines = RECORD.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entry = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [copy, page, kind, text] => Recorded { copy, page, kind, text },
        _ => panic!("not four columns: {line}"),
    };
    lines.map(entry).collect()
}

/// The rules that are listed, and those that only a concurrency model cites.
fn rules() -> Vec<&'static Rule> {
    let mut all: Vec<&'static Rule> = engines::rules().collect();
    for engine in ENGINES.iter().filter(|d| d.semantics.is_some()) {
        let modes = engine.modes.iter().map(|(mode, _)| format!("{}+{mode}", engine.name));
        for name in modes.chain([engine.name.to_string()]) {
            let on = TargetInfo { engine: name, ..TargetInfo::default() };
            for (level, form) in
                Level::ALL.iter().flat_map(|level| BeginForm::ALL.map(|form| (*level, form)))
            {
                let model = concurrency_model(&on, level, Some(form));
                all.extend(model.into_iter().flat_map(|model| model.rules.all()));
            }
        }
    }
    let mut seen = BTreeSet::new();
    all.retain(|rule| seen.insert(rule.id));
    all
}

fn citations(rule: &'static Rule) -> impl Iterator<Item = Citation> {
    std::iter::once(rule.citation).chain(rule.elsewhere.iter().map(|(_, citation)| *citation))
}

/// The text with white space as single blanks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of an HTML page.
fn text_of_html(html: &str) -> String {
    let mut text = String::new();
    let mut inside_tag = false;
    for c in html.chars() {
        match c {
            '<' => inside_tag = true,
            '>' if inside_tag => inside_tag = false,
            c if !inside_tag => text.push(c),
            _ => {}
        }
    }
    let entities =
        [("&nbsp;", " "), ("&#160;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\"")];
    for (entity, character) in entities {
        text = text.replace(entity, character);
    }
    words(&text.replace("&amp;", "&"))
}

#[test]
fn every_rule_has_a_quotation_a_section_or_a_case() {
    let rules = rules();
    assert!(rules.len() > 90, "{}", rules.len());
    for rule in rules {
        for citation in citations(rule) {
            assert!(citation.page.starts_with("https://"), "{}: {}", rule.id, citation.page);
            match citation.evidence {
                Evidence::Quotation(text) | Evidence::Section(text) => {
                    let length = text.chars().count();
                    assert!((4..=200).contains(&length), "{}: {length}: {text}", rule.id);
                    assert_eq!(words(text), text, "{}: more than one line", rule.id);
                }
                Evidence::None => {
                    assert!(rule.undocumented.is_some(), "{}: no evidence at all", rule.id)
                }
            }
        }
    }
}

#[test]
fn every_citation_is_recorded_as_found() {
    let record = record();
    let mut cited = BTreeSet::new();
    for rule in rules() {
        for citation in citations(rule) {
            let (kind, text) = match citation.evidence {
                Evidence::Quotation(text) => ("quotation", text),
                Evidence::Section(heading) => ("section", heading),
                Evidence::None => continue,
            };
            // Anchors change nothing in the text of a page.
            let page = citation.page.split('#').next().unwrap();
            let found = record.iter().find(|r| (r.page, r.kind, r.text) == (page, kind, text));
            assert!(found.is_some(), "{}: never found on {page}: {text}", rule.id);
            cited.insert((page, text));
        }
    }
    for line in &record {
        assert!(cited.contains(&(line.page, line.text)), "no rule cites {line:?}");
    }
}

/// A manual whose text may not be copied is cited by section, and no line claims
/// a quotation without naming the copy that it was found in.
#[test]
fn quotations_name_the_copy_of_the_manual() {
    let copies = ["postgresql-doc-15", "sqlite3-doc", "mariadb-server", "mysqld"];
    for line in record() {
        match line.kind {
            "quotation" => {
                assert!(copies.iter().any(|copy| line.copy.starts_with(copy)), "{line:?}");
            }
            "section" => assert!(line.copy.starts_with("read "), "{line:?}"),
            kind => panic!("neither quotation nor section: {kind}"),
        }
    }
}

/// Searches the quotations of a manual of HTML pages in the pages.
fn search_pages(copy: &str, folder: &str) {
    if !Path::new(folder).join("index.html").exists() {
        eprintln!("skipped: {folder} is not installed");
        return;
    }
    let lines: Vec<Recorded> = record().into_iter().filter(|r| r.copy.starts_with(copy)).collect();
    assert!(lines.len() > 10, "{copy}: {}", lines.len());
    for line in lines {
        let file = Path::new(folder).join(line.page.rsplit('/').next().unwrap());
        let html = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let text = text_of_html(&String::from_utf8_lossy(&html));
        assert!(text.contains(line.text), "{} does not say: {}", file.display(), line.text);
    }
}

#[test]
fn quotations_of_postgres_are_in_the_installed_manual() {
    search_pages("postgresql-doc-15", POSTGRES_MANUAL);
}

#[test]
fn quotations_of_sqlite_are_in_the_installed_manual() {
    search_pages("sqlite3-doc", SQLITE_MANUAL);
}

/// MariaDB's server brings its manual's pages on statements as help texts, one line
/// each with the address of the page. Older packages have older texts.
#[test]
fn quotations_of_mariadb_are_in_the_installed_help() {
    let help = std::fs::read(MARIADB_HELP).unwrap_or_default();
    let help = String::from_utf8_lossy(&help);
    if !help.contains("https://mariadb.com/docs/server/reference/sql-statements/") {
        eprintln!("skipped: {MARIADB_HELP} is missing, or of another edition");
        return;
    }
    for line in record().iter().filter(|r| r.copy.starts_with("mariadb-server")) {
        let topic = help.lines().find(|topic| topic.contains(&format!("'{}'", line.page)));
        let topic = topic.unwrap_or_else(|| panic!("no help text of {}", line.page));
        let text = words(&topic.replace("\\n", " ").replace("''", "'"));
        assert!(text.contains(line.text), "{} does not say: {}", line.page, line.text);
    }
}

#[test]
fn text_of_a_page_has_no_tags() {
    let html = "<p>a <code>SELECT</code>\n  sees &lt;rows&gt;</p>";
    assert_eq!(text_of_html(html), "a SELECT sees <rows>");
}
