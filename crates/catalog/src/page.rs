//! The page of all rules (`docs/semantics.md`), generated from their tables.

use crate::availability::Availability;
use crate::begin_form::BeginForm;
use crate::citation::{Citation, Evidence};
use crate::description::{EngineDescription, Semantics};
use crate::engines::ENGINES;
use crate::level::Level;
use crate::lookup::concurrency_model;
use crate::rule::Rule;
use crate::target::TargetInfo;
use std::collections::BTreeMap;

/// One engine's section of the page.
struct Section {
    title: &'static str,
    about: &'static str,
    semantics: &'static Semantics,
    /// The targets that follow the rules, with their modes.
    targets: Vec<String>,
}

fn sections() -> Vec<Section> {
    let section = |engine: &&'static EngineDescription| {
        let semantics = engine.semantics.as_ref()?;
        let about = semantics.page.about?;
        let mut targets = vec![engine.name.to_string()];
        targets.extend(engine.modes.iter().map(|(mode, _)| format!("{}+{mode}", engine.name)));
        targets.extend(semantics.page.also.iter().map(|name| name.to_string()));
        Some(Section { title: semantics.page.title, about, semantics, targets })
    };
    ENGINES.iter().filter_map(section).collect()
}

const HEAD: &str = "\
# The rules

How the supported engines behave by design, statement by statement. `isolde hunt` uses these rules to tell
a bug from documented behaviour, and `isolde explain` cites them ([explain.md](explain.md)). The sentences
are Isolde's; each links to the page of the manual that documents it, and quotes the page or names its
section. Where the manual is silent or contradicts the engine, the rule says so, with a library case that
shows what the engine does. Engines and versions that are not listed have no rules: `explain` reports
`not modelled`, and a hunt reports what it finds there as `undecided` ([hunt.md](hunt.md)).

`isolde list --rules` generates this page from `crates/catalog/src/engines`.
";

pub fn markdown() -> String {
    let mut page = HEAD.to_string();
    for section in &sections() {
        let (title, about, versions) = (section.title, section.about, section.versions());
        page.push_str(&format!("\n## {title}\n\n{about} For {versions}.\n\n"));
        page.push_str("| id | rule | at | what it says |\n|---|---|---|---|\n");
        let (levels, used) = section.used();
        let all: Vec<Level> = levels.keys().copied().collect();
        let more = used.into_iter().filter(|r| !section.semantics.rules.contains(r));
        for rule in section.semantics.rules.iter().copied().chain(more) {
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
            for (engine, citation) in citations(rule) {
                about.push_str(&source(engine, &citation));
            }
            if let Some(observed) = rule.undocumented {
                let (said, case) = (observed.about, observed.case);
                about.push_str(&format!(
                    ". *Undocumented:* {said} ([{case}](../cases/{case}.case))"
                ));
            }
            let (id, name, page_of) = (rule.id, rule.name, rule.citation.page);
            page.push_str(&format!("| {id} | [{name}]({page_of}) | {at} | {about} |\n"));
        }
    }
    page
}

/// The citations of a rule, each with the engine whose manual it is; None for the
/// manual that the name of the rule links to.
fn citations(rule: &Rule) -> Vec<(Option<&'static str>, Citation)> {
    let own = std::iter::once((None, rule.citation));
    own.chain(rule.elsewhere.iter().map(|(engine, citation)| (Some(*engine), *citation))).collect()
}

/// What a manual says: a quotation, or the heading of a section.
fn source(engine: Option<&str>, citation: &Citation) -> String {
    let text = match citation.evidence {
        Evidence::Quotation(text) => format!("“{text}”"),
        Evidence::Section(heading) => format!("section “{heading}”"),
        Evidence::None => return String::new(),
    };
    match engine {
        Some(engine) => format!(". *[{engine}]({}):* {text}", citation.page),
        None => format!(". *Manual:* {text}"),
    }
}

impl Section {
    /// `postgres@9.1-`, as cases name versions.
    fn versions(&self) -> String {
        let mut plain: Vec<&str> =
            self.targets.iter().map(|t| t.split('+').next().unwrap_or(t)).collect();
        plain.dedup();
        let of = |name: &&str| {
            let engine = ENGINES.iter().find(|d| d.name == *name)?;
            match engine.semantics.as_ref()?.rules_hold_for {
                Availability::Since(first) => Some(format!("`{name}@{first}-`")),
                _ => Some(format!("`{name}`")),
            }
        };
        plain.iter().filter_map(of).collect::<Vec<_>>().join(" and ")
    }

    /// The rules of each level, and all of them in the order of their first
    /// appearance.
    fn used(&self) -> (BTreeMap<Level, Vec<&'static Rule>>, Vec<&'static Rule>) {
        let mut levels: BTreeMap<Level, Vec<&'static Rule>> = BTreeMap::new();
        let mut all: Vec<&'static Rule> = Vec::new();
        let targets = self.targets.iter().flat_map(|engine| {
            let plain = TargetInfo {
                target: engine.clone(),
                engine: engine.clone(),
                version: String::new(),
                settings: BTreeMap::new(),
                follows: None,
            };
            let set = self
                .semantics
                .page
                .settings
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect();
            [TargetInfo { settings: set, ..plain.clone() }, plain]
        });
        for on in targets {
            for (level, form) in
                self.semantics.page.levels.iter().flat_map(|l| BeginForm::ALL.map(|f| (*l, f)))
            {
                let Some(model) = concurrency_model(&on, level, Some(form)) else { continue };
                let serial = (level == Level::Serializable).then_some(model.rules.serial);
                let rules = model.rules.of_statements().into_iter();
                let more = [
                    model.conflicts.may_abort,
                    model.snapshot.not_taken_by_empty_read,
                    model.conflicts.noop_update_may_write,
                    model.locking.gap_locks,
                    model.locking.skip_locked,
                    model.locking.no_wait,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_lists_each_rule_once_with_its_levels() {
        let page = markdown();
        for rule in crate::engines::rules() {
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
        for rule in crate::engines::rules() {
            if let Some(observed) = rule.undocumented {
                let file = format!("{cases}/{}.case", observed.case);
                assert!(std::path::Path::new(&file).is_file(), "{}: {file}", rule.id);
            }
            for entry in rule.versions.split_whitespace() {
                assert!(entry.parse::<crate::Selector>().is_ok(), "{}: {entry}", rule.id);
            }
        }
    }
}
