//! Why a violation happened: a bug, documented behaviour, or undecided.
//!
//! A cause is a claim, so it carries its evidence, and the rules of the engine
//! ([`crate`]) decide: `documented` is a run that is inside from the
//! first statement to the final rows, `bug` a statement that no rule allows,
//! `undecided` a run of which a part is not modelled. Where an engine has no
//! rules, nothing but its death is certain.

use super::{Analysis, Conclusion, SerialOrder};
use crate::subject::Subject;
use isolde_catalog::Rule;
use isolde_model::difference::Difference;
use isolde_model::{History, Level, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    pub label: Verdict,
    /// The rule that explains it, the most telling of those that were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<Explained>,
    /// The examined facts and the conclusions from them, as sentences.
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
    pub fn new(label: Verdict, evidence: Vec<String>) -> Cause {
        Cause { label, behaviour: None, evidence, level: None }
    }

    /// The cause of whatever an engine without rules does.
    pub fn without_rules(engine: &str) -> Cause {
        let why = format!(
            "there are no rules for {engine}: whether its documentation allows this is not known"
        );
        Cause::new(Verdict::Undecided, vec![why])
    }

    pub fn name(&self) -> String {
        match &self.behaviour {
            Some(behaviour) => format!("{}: {}", self.label.name(), behaviour.name),
            None => self.label.name().into(),
        }
    }
}

/// Finds the cause of a run's violation from its analysis and the differences.
pub fn find(subject: &Subject<'_>, differences: &[&Difference], analysis: &Analysis) -> Cause {
    if !subject.has_rules() {
        return Cause::without_rules(&subject.history.on.engine);
    }
    let on = &subject.history.on;
    let label = |step: Option<usize>| {
        step.map_or("the final rows", |s| subject.history.steps[s].label.as_str())
    };
    match &analysis.conclusion {
        Conclusion::Broken { step, rule, breach } => {
            let evidence = match rule {
                Some(rule) => {
                    let (id, about, page) = (rule.id, rule.about, on.manual_page(rule));
                    format!("{}: {breach}; rule {id}: {about} ({page})", label(*step))
                }
                None => format!("{}: {breach}", label(*step)),
            };
            let level = step.map(|s| subject.reading.levels[s]);
            Cause { level, ..Cause::new(Verdict::Bug, vec![evidence]) }
        }
        Conclusion::LockingDiffers { step, rule, breach, rest } => {
            let (id, about, page) = (rule.id, rule.about, on.manual_page(rule));
            let place = label(Some(*step));
            let broken = format!("{place}: {breach}; rule {id}: {about} ({page})");
            let level = Some(subject.reading.levels[*step]);
            let (verdict, results) = match rest {
                None => {
                    let within = "every result and the final rows are within the rules";
                    (Verdict::Locking, within.to_string())
                }
                Some(why) => {
                    (Verdict::Undecided, format!("{place}: the rest is not modelled: {why}"))
                }
            };
            Cause { level, ..Cause::new(verdict, vec![broken, results]) }
        }
        Conclusion::NotModelled { step, why } => {
            let place = step.map_or(String::new(), |s| format!("{}: ", label(Some(s))));
            Cause::new(Verdict::Undecided, vec![format!("{place}not modelled: {why}")])
        }
        Conclusion::Allowed { rules, order } => {
            let mut evidence =
                vec!["every statement and the final rows are within the rules".to_string()];
            let mut decisive = decisive(subject.history, rules, differences);
            if let Some(SerialOrder::Found(order)) = &analysis.serial {
                evidence.push(format!("the serial order {} explains it", order.join(", ")));
                return Cause::new(Verdict::Consistent, evidence);
            }
            if let Some((order, rule)) = order {
                evidence.push(format!("the serial order is {}", order.join(", ")));
                decisive.insert(0, rule);
            }
            evidence.extend(decisive.iter().map(|r| format!("rule {}: {}", r.id, r.about)));
            if let Some(anomaly) = &analysis.anomaly {
                evidence.insert(0, format!("{}: {}", anomaly.class.name(), anomaly.text));
            }
            let name = |rule: &Rule| match &analysis.anomaly {
                Some(anomaly) => format!("{} ({})", anomaly.class.name(), rule.name),
                None => rule.name.to_string(),
            };
            let behaviour = decisive.first().map(|rule| Explained {
                name: name(rule),
                about: rule.about.into(),
                link: on.manual_page(rule),
            });
            Cause { behaviour, ..Cause::new(Verdict::Documented, evidence) }
        }
    }
}

/// The rules that explain the statements that differ, or all statements when only
/// the final rows differ; the most specific rule first.
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
    found.sort_by_key(|r| r.rank);
    found
}
