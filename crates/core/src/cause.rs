//! Why a violation happened: a bug, documented behaviour, or undecided.
//!
//! A cause is a claim, so it carries its evidence, and the rules of the engine
//! ([`crate::semantics`]) decide: `documented` is a run that is inside from the
//! first statement to the final rows, `bug` a statement that no rule allows,
//! `undecided` a run of which a part is not modelled. Where an engine has no
//! rules, nothing but its death is certain.

use crate::inquiry::Desk;
use crate::oracle::Difference;
use crate::semantics::rules::Rule;
use crate::semantics::{Explanation, Subject, explain};
use crate::{History, Level};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    Bug,
    Undecided,
    Documented,
}

impl Label {
    pub const ALL: [Label; 3] = [Label::Bug, Label::Documented, Label::Undecided];

    pub fn name(self) -> &'static str {
        match self {
            Label::Bug => "bug",
            Label::Undecided => "undecided",
            Label::Documented => "documented",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    pub label: Label,
    /// The rule that explains it, the most telling of those that were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<Explained>,
    /// What was looked at and what came of it, in sentences.
    pub evidence: Vec<String>,
    /// The level of the session whose statement broke a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    pub name: String,
    pub about: String,
    pub link: String,
}

impl Cause {
    pub fn new(label: Label, evidence: Vec<String>) -> Cause {
        Cause { label, behaviour: None, evidence, level: None }
    }

    /// The cause of whatever an engine without rules does.
    pub fn without_rules(engine: &str) -> Cause {
        let why = format!(
            "there are no rules for {engine}: whether its documentation allows this is not known"
        );
        Cause::new(Label::Undecided, vec![why])
    }

    pub fn name(&self) -> String {
        match &self.behaviour {
            Some(behaviour) => format!("{}: {}", self.label.name(), behaviour.name),
            None => self.label.name().into(),
        }
    }
}

/// The cause of a run's violation, of which the differences are known.
pub async fn find(subject: &Subject<'_>, differences: &[&Difference], desk: &Desk) -> Cause {
    if !subject.has_rules() {
        return Cause::without_rules(&subject.history.on.engine);
    }
    let label = |step: Option<usize>| {
        step.map_or("the final rows", |s| subject.history.steps[s].label.as_str())
    };
    match explain(subject, desk).await {
        Explanation::Outside { step, rule, why } => {
            let evidence = match rule {
                Some(rule) => {
                    let (id, about, page) = (rule.id, rule.about, rule.page);
                    format!("{}: {why}; rule {id}: {about} ({page})", label(step))
                }
                None => format!("{}: {why}", label(step)),
            };
            let level = step.map(|s| subject.reading.levels[s]);
            Cause { level, ..Cause::new(Label::Bug, vec![evidence]) }
        }
        Explanation::NotModelled { step, why } => {
            let place = step.map_or(String::new(), |s| format!("{}: ", label(Some(s))));
            Cause::new(Label::Undecided, vec![format!("{place}not modelled: {why}")])
        }
        Explanation::Inside { rules, order } => {
            let mut evidence =
                vec!["every statement and the final rows are as the rules have it".to_string()];
            let mut decisive = decisive(subject.history, &rules, differences);
            if let Some((order, rule)) = order {
                evidence.push(format!("the serial order is {}", order.join(", ")));
                decisive.insert(0, rule);
            }
            evidence.extend(decisive.iter().map(|r| format!("rule {}: {}", r.id, r.about)));
            let behaviour = decisive.first().map(|rule| Explained {
                name: rule.name.into(),
                about: rule.about.into(),
                link: rule.page.into(),
            });
            Cause { behaviour, ..Cause::new(Label::Documented, evidence) }
        }
    }
}

/// The rules behind the statements that differ, or behind all when only the
/// final rows do, the most telling first.
fn decisive(
    history: &History,
    rules: &[Vec<&'static Rule>],
    differences: &[&Difference],
) -> Vec<&'static Rule> {
    let differs = |step: usize| {
        let label = &history.steps[step].label;
        differences.iter().any(|d| d.label() == Some(label))
    };
    let some = (0..rules.len()).any(differs);
    let steps = (0..rules.len()).filter(|s| !some || differs(*s));
    let mut found: Vec<&'static Rule> = Vec::new();
    for rule in steps.flat_map(|s| &rules[s]) {
        if !found.contains(rule) {
            found.push(rule);
        }
    }
    found.sort_by_key(|r| r.weight);
    found
}
