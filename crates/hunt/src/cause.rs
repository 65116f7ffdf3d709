//! Why a violation happened: a bug, documented behaviour, or undecided.
//!
//! A cause is a claim, so it carries its evidence. Where the engine has rules
//! ([`isolde_core::semantics`]), they decide: `documented` is a run that is
//! inside from the first statement to the final rows, `bug` a statement that
//! no rule allows, `undecided` a run of which a part is not modelled.
//!
//! Engines whose rules are not written yet have counterfactuals: the same case
//! with a documented behaviour taken away, in which the violation is gone.

use crate::check::{Checked, check_unbroken, commit_ordered, levels_of};
use crate::confirm::Rate;
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use crate::snapshot;
use isolde_core::generate::Plan;
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::{
    Concurrent, Difference, Executed, Oracle, Serial, at_level, executed, in_transactions,
    other_orders, serial_transactions, unknown_serial, with_locking_reads,
};
use isolde_core::profile::{Behaviour, Counterfactual};
use isolde_core::semantics::rules::Rule;
use isolde_core::semantics::{Explanation, Subject, explain};
use isolde_core::sql::Kind;
use isolde_core::{Case, History, Level, Profile};
use serde::{Deserialize, Serialize};

/// Serial orders to try before none is said to explain a result.
const ORDERS: usize = 60;

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
    /// The documented behaviour that explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<Explained>,
    /// What was tried and what came of it, in sentences.
    pub evidence: Vec<String>,
    /// A stronger level at which the violation stays and whose promise it
    /// breaks: the same case is a bug there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug_at: Option<Level>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    pub name: String,
    pub about: String,
    pub link: String,
}

impl Cause {
    pub(crate) fn new(label: Label, evidence: Vec<String>) -> Cause {
        Cause { label, behaviour: None, evidence, bug_at: None }
    }

    pub fn name(&self) -> String {
        match &self.behaviour {
            Some(behaviour) => format!("{}: {}", self.label.name(), behaviour.name),
            None => self.label.name().into(),
        }
    }
}

/// Finds the cause of what `checked` violates. Without a plan (the case comes
/// from a file) nobody can predict what snapshots give.
pub fn find(
    executor: &mut Executor,
    fixture: &Fixture,
    plan: Option<&Plan>,
    case: &Case,
    checked: &Checked,
    oracles: &[Oracle],
    rate: Rate,
) -> Result<Cause, HuntError> {
    if checked.crashed() {
        let text = "the engine died, hangs, or reported that it is broken inside";
        return Ok(Cause::new(Label::Bug, vec![text.into()]));
    }
    if let Some(cause) = by_rules(executor, (fixture, case), checked)? {
        return Ok(cause);
    }
    let profile = executor.runner.engine.profile().clone();
    let level = levels_of(case, &profile).first().copied().unwrap_or(profile.default_level);
    if let Some(evidence) = without_concurrency(checked) {
        return Ok(Cause::new(Label::Bug, vec![evidence]));
    }
    let reads_dirty = level == Level::ReadUncommitted && level < profile.default_level;
    if !reads_dirty && only_one_writes(case, checked) {
        let text = "only one committed transaction writes, so nothing that others did explains \
                    what it left behind; every level rules that out";
        return Ok(Cause::new(Label::Bug, vec![text.into()]));
    }
    let mut unknown = false;
    let mut evidence = Vec::new();
    let applies = |b: &&Behaviour| {
        b.levels.contains(&level)
            && b.word.as_ref().is_none_or(|word| differing_write_has(checked, word))
    };
    for behaviour in profile.behaviours.iter().filter(applies) {
        match (Looking { executor, plan, fixture, case, checked, oracles, rate })
            .without(behaviour)?
        {
            Counter::Removed(text) => {
                evidence.push(text);
                let explained = Explained {
                    name: behaviour.name.clone(),
                    about: behaviour.about.clone(),
                    link: behaviour.link.clone(),
                };
                return Ok(Cause {
                    label: Label::Documented,
                    behaviour: Some(explained),
                    evidence,
                    bug_at: None,
                });
            }
            Counter::Stays(text) => evidence.push(text),
            Counter::Unknown(text) => {
                unknown = true;
                evidence.push(text);
            }
            Counter::NotApplicable => {}
        }
    }
    let tried_orders = profile
        .behaviours
        .iter()
        .any(|b| b.levels.contains(&level) && b.removed_by == Counterfactual::AnotherOrder);
    if !tried_orders && let Some(order) = explaining_order(executor, fixture, case, checked)? {
        evidence.push(format!(
            "the outcome is that of another serial order ({order}), though not of the order of \
             the commits"
        ));
        return Ok(Cause::new(Label::Undecided, evidence));
    }
    if unknown {
        return Ok(Cause::new(Label::Undecided, evidence));
    }
    if profile.serial_writes.contains(&level) {
        evidence.push(format!("{level} promises that conflicting writes wait or fail"));
        return Ok(Cause::new(Label::Bug, evidence));
    }
    evidence.push(format!(
        "no documented behaviour in the engine's profile explains it, and {level} does not \
         promise that writes are as in a serial run"
    ));
    let mut cause = Cause::new(Label::Undecided, evidence);
    cause.bug_at = stronger_promise(&profile, level);
    Ok(cause)
}

/// What the rules of the engine say of the run; none without rules.
fn by_rules(
    executor: &mut Executor,
    (fixture, case): (&Fixture, &Case),
    checked: &Checked,
) -> Result<Option<Cause>, HuntError> {
    let Some(reading) = fixture.reading.as_deref() else { return Ok(None) };
    let subject = Subject { history: &checked.concurrent, reading };
    if !subject.has_rules() {
        return Ok(None);
    }
    let about = &subject;
    let inquiry = Inquiry::new(|desk| async move { explain(about, &desk).await });
    let explanation = executor.inquire((fixture, case), inquiry, &mut Vec::new())?;
    let label = |step: Option<usize>| {
        step.map_or("the final rows", |s| checked.concurrent.steps[s].label.as_str())
    };
    Ok(Some(match explanation {
        Explanation::Outside { step, rule, why } => {
            let evidence = match rule {
                Some(rule) => {
                    let (id, about, page) = (rule.id, rule.about, rule.page);
                    format!("{}: {why}; rule {id}: {about} ({page})", label(step))
                }
                None => format!("{}: {why}", label(step)),
            };
            Cause::new(Label::Bug, vec![evidence])
        }
        Explanation::NotModelled { step, why } => {
            let where_ = step.map_or(String::new(), |s| format!("{}: ", label(Some(s))));
            let evidence = format!("{where_}not modelled: {why}");
            Cause::new(Label::Undecided, vec![evidence])
        }
        Explanation::Inside { rules, order } => {
            let mut evidence =
                vec!["every statement and the final rows are as the rules have it".to_string()];
            let mut decisive = decisive(&checked.concurrent, &rules, checked);
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
    }))
}

/// The rules behind the statements that differ, or behind all when only the
/// final rows do, the most telling first.
fn decisive(
    history: &History,
    rules: &[Vec<&'static Rule>],
    checked: &Checked,
) -> Vec<&'static Rule> {
    let differs = |step: usize| {
        let label = &history.steps[step].label;
        checked.violations.iter().flat_map(|v| &v.differences).any(|d| d.label() == Some(label))
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

enum Counter {
    Removed(String),
    Stays(String),
    /// The run without the behaviour does not tell.
    Unknown(String),
    /// The change of the run changes nothing in this case.
    NotApplicable,
}

/// What a counterfactual is made from.
struct Looking<'a> {
    executor: &'a mut Executor,
    plan: Option<&'a Plan>,
    fixture: &'a Fixture,
    case: &'a Case,
    checked: &'a Checked,
    oracles: &'a [Oracle],
    rate: Rate,
}

impl Looking<'_> {
    /// The same case without a documented behaviour.
    fn without(self, behaviour: &Behaviour) -> Result<Counter, HuntError> {
        let Looking { executor, plan, fixture, case, checked, oracles, rate } = self;
        let (changed, what) = match behaviour.removed_by {
            Counterfactual::LockingRead => match with_locking_reads(case) {
                Some(changed) => {
                    (changed, "with a locking read of the same rows before each write".to_string())
                }
                None => return Ok(Counter::NotApplicable),
            },
            Counterfactual::Level(level) => (at_level(case, level), format!("at {level}")),
            Counterfactual::InTransactions => match in_transactions(case) {
                Some(changed) => (changed, "with a transaction around each statement".to_string()),
                None => return Ok(Counter::NotApplicable),
            },
            Counterfactual::AnotherOrder => {
                return Ok(match explaining_order(executor, fixture, case, checked)? {
                    Some(order) => {
                        Counter::Removed(format!("the outcome is that of the serial order {order}"))
                    }
                    None => Counter::Stays(
                        "no serial order of the committed transactions explains it".into(),
                    ),
                });
            }
            Counterfactual::Snapshots => {
                let Some(plan) = plan else { return Ok(Counter::NotApplicable) };
                let predicted = snapshot::explains(executor, plan, case, &checked.concurrent)?;
                return Ok(if predicted {
                    Counter::Removed(
                        "each transaction alone on the rows of its snapshot, put together, gives \
                         this outcome"
                            .into(),
                    )
                } else {
                    Counter::Stays("snapshots do not predict this outcome".into())
                });
            }
        };
        for _ in 0..rate.trials_to_be_sure() {
            let moment = "in a changed run that was to tell the cause";
            let again = check_unbroken(executor, fixture, &changed, oracles, moment)?;
            // A stronger level may promise a serial order that is not that of
            // the commits; the behaviour is gone all the same.
            let orders = |b: &Behaviour| b.removed_by == Counterfactual::AnotherOrder;
            let explained = again.violated()
                && executor.runner.engine.profile().behaviours.iter().any(orders)
                && explaining_order(executor, fixture, &changed, &again)?.is_some();
            if again.violated() && !explained {
                return Ok(Counter::Stays(format!("{what} the violation stays")));
            }
            if let Some(why) = again.unknown {
                return Ok(Counter::Unknown(format!("{what} it is not known: {why}")));
            }
        }
        Ok(Counter::Removed(format!("{what} the violation is gone")))
    }
}

/// Whether at most one committed transaction wrote, and what it did is all
/// that differs. A write that fails in one run only is left to the ladder:
/// engines may refuse a key that another transaction has merely touched.
fn only_one_writes(case: &Case, checked: &Checked) -> bool {
    let writes =
        |step: &usize| matches!(case.steps[*step].kind(), Kind::Write | Kind::Ddl | Kind::Other);
    let done = |t: &Executed| t.committed() && t.steps.iter().any(writes);
    let writers = executed(&checked.concurrent).iter().filter(|t| done(t)).count();
    let plain =
        |d: &Difference| matches!(d, Difference::Final { .. } | Difference::Affected { .. });
    writers <= 1 && checked.violations.iter().flat_map(|v| &v.differences).all(plain)
}

fn differing_write_has(checked: &Checked, word: &str) -> bool {
    checked.violations.iter().flat_map(|v| &v.differences).any(|d| match d {
        Difference::Affected { sql, .. } | Difference::Success { sql, .. } => {
            sql.to_ascii_lowercase().contains(word)
        }
        _ => false,
    })
}

/// The violation needs nothing but one transaction after the other: the
/// serial run of whole transactions differs from that of their statements.
fn without_concurrency(checked: &Checked) -> Option<String> {
    let by_itself = checked.violates(Oracle::StmtWss).is_some()
        && checked.violates(Oracle::TxWss).is_none()
        && checked.replays.iter().any(|(r, _)| r.name == Serial::Transactions);
    by_itself.then(|| {
        "it needs no concurrency: the same transactions one after the other end otherwise than \
         their statements in autocommit, which every level rules out"
            .into()
    })
}

/// The strongest level that was tried and at which the violation stayed, if
/// that level promises serial writes.
fn stronger_promise(profile: &Profile, level: Level) -> Option<Level> {
    profile.behaviours.iter().rev().find_map(|b| match b.removed_by {
        Counterfactual::Level(strong)
            if b.levels.contains(&level) && profile.serial_writes.contains(&strong) =>
        {
            Some(strong)
        }
        _ => None,
    })
}

/// A serial order of the committed transactions, other than that of their
/// commits, which ends as the concurrent run did: `s2, s1`.
pub fn explaining_order(
    executor: &mut Executor,
    fixture: &Fixture,
    case: &Case,
    checked: &Checked,
) -> Result<Option<String>, HuntError> {
    let commit_ordered = commit_ordered(case, executor.runner.engine.profile());
    let run = Concurrent::new(case, &checked.concurrent, commit_ordered);
    for order in other_orders(&run, false, ORDERS) {
        let names: Vec<&str> = order.iter().map(|t| t.session.as_str()).collect();
        let names = names.join(", ");
        let replay = serial_transactions(&run, &order, commit_ordered);
        let history = executor.run_unbroken(fixture, &replay.case, "in a serial run")?;
        let differences: Vec<Difference> =
            isolde_core::oracle::differences(&run, &replay, &history);
        if differences.is_empty() && unknown_serial(&history).is_none() {
            return Ok(Some(names));
        }
    }
    Ok(None)
}
