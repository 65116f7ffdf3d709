//! A readable account of a run: what each statement saw or did, the rules that
//! explain it, and the conclusion about the whole run.
//!
//! A statement that ends a prediction ends the account as well: everything after
//! it depends on what it did.

use super::{Analysis, Conclusion, ControlRun, NamedAnomaly, SerialOrder};
use crate::model::{Look, ReferenceModel};
use crate::subject::Subject;
use crate::world::{End, FIRST_ROWS};
use isolde_catalog::Rule;
use isolde_model::Verdict;
use isolde_model::breach::Breach;
use isolde_model::executed_transactions::executed_transactions;
use isolde_model::history::{EventKind, TargetInfo};
use isolde_model::parsed_case::Operation;
use isolde_model::transcript::summary;
use isolde_sql::Stmt;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The conclusion about one statement of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepVerdict {
    #[serde(rename = "inside")]
    Allowed,
    #[serde(rename = "outside")]
    Broken,
    #[serde(rename = "not modelled")]
    NotModelled,
}

impl StepVerdict {
    pub fn name(self) -> &'static str {
        match self {
            StepVerdict::Allowed => "inside",
            StepVerdict::Broken => "outside",
            StepVerdict::NotModelled => "not modelled",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub label: Verdict,
    /// What the label rests on, in a sentence.
    pub why: String,
    /// The anomaly, where the label is documented and the anomaly has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anomaly: Option<NamedAnomaly>,
    /// The breach, where the label is a bug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breach: Option<Breach>,
    pub steps: Vec<StepAccount>,
    /// The rules that the steps name, each once.
    pub rules: Vec<CitedRule>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepAccount {
    /// `s2.3`
    pub step: String,
    pub sql: String,
    pub outcome: String,
    pub verdict: StepVerdict,
    /// The ids of the rules.
    pub rules: Vec<String>,
    pub why: String,
}

/// A rule, as it is quoted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CitedRule {
    pub id: String,
    pub name: String,
    pub about: String,
    pub page: String,
    /// What the page says, word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quotation: Option<String>,
}

impl CitedRule {
    /// A rule as it is cited for a run on an engine.
    fn of(rule: &Rule, on: &TargetInfo) -> CitedRule {
        CitedRule {
            id: rule.id.into(),
            name: rule.name.into(),
            about: rule.about.into(),
            page: on.manual_page(rule),
            quotation: on.citation(rule).quotation().map(String::from),
        }
    }
}

/// What a replay found out about the steps that it reached.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    pub rules: Vec<Vec<&'static Rule>>,
    /// Those whose outcome was held against the rules.
    pub settled: BTreeSet<usize>,
    /// What a statement waited for, and whose writes it saw or did not see.
    pub sights: BTreeMap<usize, Vec<String>>,
    pub unmodelled: BTreeMap<usize, String>,
    /// The statement that breaks a rule and the writes before it, with the rows that they read.
    pub controls: Vec<ControlRun>,
}

impl ReferenceModel<'_> {
    pub fn steps(&self) -> Steps {
        let sights = self.trace.looks().map(|(step, look)| (step, self.sight(step, look)));
        let mut sights: BTreeMap<usize, Vec<String>> = sights.collect();
        for (step, wait) in self.trace.waits() {
            sights.entry(*step).or_default().insert(0, wait.clone());
        }
        Steps {
            rules: self.trace.rules().to_vec(),
            settled: self.trace.settled().clone(),
            sights,
            unmodelled: self.trace.unmodelled().clone(),
            controls: Vec::new(),
        }
    }

    /// What others had written in the tables of a plain read when it looked.
    /// Writes look at more than their snapshot.
    fn sight(&self, step: usize, look: Look) -> Vec<String> {
        let reads_lock = self.world.concurrency(look.by).locking.plain_reads_lock
            && !self.world.tx(look.by).autocommit;
        let names = match &self.subject.reading.operations[step] {
            Operation::Statement(statement) => match &**statement {
                Stmt::Select(select) if select.locking.is_none() && !reads_lock => select.sources(),
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let tables = self.subject.reading.schema.tables.iter().zip(self.world.tables());
        let mut writers: BTreeSet<usize> = BTreeSet::new();
        for (_, chains) in tables.filter(|(t, _)| names.contains(&t.name.as_str())) {
            let versions = chains.iter().flat_map(|c| &c.versions).filter(|v| v.at <= look.at);
            let session = self.world.session(look.by);
            let others = |by: &usize| *by != FIRST_ROWS && self.world.session(*by) != session;
            writers.extend(versions.map(|v| v.by).filter(others));
        }
        writers.into_iter().map(|by| self.of_writer(by, look)).collect()
    }

    fn of_writer(&self, by: usize, look: Look) -> String {
        let session = self.world.session(by);
        match (self.world.tx(by).end, look.snapshot) {
            (End::Committed(at), Some(snapshot)) if at < snapshot => {
                format!("sees what {session} committed before")
            }
            (End::Committed(at), Some(_)) if at <= look.at => {
                format!("does not see what {session} committed after its snapshot")
            }
            (_, Some(_)) => format!("does not see what {session} had not committed"),
            (_, None) => format!("sees what {session} wrote, committed or not"),
        }
    }
}

impl Account {
    /// The account of an analysed run, step by step and as a whole.
    pub fn new(subject: &Subject<'_>, analysis: &Analysis) -> Account {
        let (label, why) = run_verdict(subject, analysis);
        let steps: Vec<StepAccount> =
            (0..subject.history.steps.len()).map(|n| step(subject, analysis, n)).collect();
        let (decisive, breach) = match &analysis.conclusion {
            Conclusion::Allowed { order, .. } => (order.as_ref().map(|(_, rule)| *rule), None),
            Conclusion::Broken { rule, breach, .. } => (*rule, Some(breach.clone())),
            Conclusion::LockingDiffers { rule, breach, .. } => (Some(*rule), Some(breach.clone())),
            Conclusion::NotModelled { .. } => (None, None),
        };
        let mut rules: Vec<CitedRule> = Vec::new();
        for rule in analysis.steps.rules.iter().flatten().copied().chain(decisive) {
            if !rules.iter().any(|r| r.id == rule.id) {
                rules.push(CitedRule::of(rule, &subject.history.on));
            }
        }
        rules.retain(|r| {
            decisive.is_some_and(|d| d.id == r.id) || steps.iter().any(|s| s.rules.contains(&r.id))
        });
        let anomaly = analysis.anomaly.clone();
        Account { label, why, anomaly, breach, steps, rules }
    }
}

fn run_verdict(subject: &Subject<'_>, analysis: &Analysis) -> (Verdict, String) {
    let place = |step: &Option<usize>| match step {
        Some(step) => format!("{}: ", subject.history.steps[*step].label),
        None => String::new(),
    };
    match (&analysis.conclusion, &analysis.serial) {
        (Conclusion::Broken { step, rule, breach }, _) => {
            let rule = rule.map_or(String::new(), |r| format!(" (rule {})", r.id));
            (Verdict::Bug, format!("{}{breach}{rule}", place(step)))
        }
        (Conclusion::LockingDiffers { step, rule, breach, rest: None }, _) => {
            let step = place(&Some(*step));
            let why = format!("every result is right, but {step}{breach} (rule {})", rule.id);
            (Verdict::Locking, why)
        }
        (Conclusion::LockingDiffers { step, breach, rest: Some(why), .. }, _) => {
            let step = place(&Some(*step));
            let why =
                format!("{step}{breach}; whether the results are right is not modelled: {why}");
            (Verdict::Undecided, why)
        }
        (Conclusion::NotModelled { step, why }, _) => {
            (Verdict::Undecided, format!("{}not modelled: {why}", place(step)))
        }
        (Conclusion::Allowed { .. }, None) => {
            let why = "the rules allow it; no serial order was searched for";
            (Verdict::Undecided, why.into())
        }
        (Conclusion::Allowed { .. }, Some(SerialOrder::Found(order))) => {
            let commits: Vec<String> = executed_transactions(subject.history)
                .into_iter()
                .filter(|t| t.committed() && !t.steps.iter().all(|s| subject.is_utility(*s)))
                .map(|t| t.session)
                .collect();
            let order = match *order == commits {
                true => "in the order of their commits".to_string(),
                false => format!("in the order {}", order.join(", ")),
            };
            let why = format!("the transactions could have run one after another, {order}");
            (Verdict::Consistent, why)
        }
        (Conclusion::Allowed { .. }, Some(SerialOrder::None { .. })) => {
            let why = "the rules of the level allow it, although no serial order of the \
                       transactions gives this result";
            let why = match &analysis.anomaly {
                Some(anomaly) => format!("{}: {}; {why}", anomaly.class.name(), anomaly.text),
                None => why.into(),
            };
            (Verdict::Documented, why)
        }
        (Conclusion::Allowed { .. }, Some(SerialOrder::CutOff)) => {
            let why = "the rules allow it; there are too many serial orders to try them all";
            (Verdict::Undecided, why.into())
        }
        (Conclusion::Allowed { .. }, Some(SerialOrder::NotModelled { step, why })) => {
            let place = place(step);
            let why = format!(
                "the rules allow it; whether a serial order gives the same is not modelled: \
                 {place}{why}"
            );
            (Verdict::Undecided, why)
        }
    }
}

fn step(subject: &Subject<'_>, analysis: &Analysis, n: usize) -> StepAccount {
    let (history, steps) = (subject.history, &analysis.steps);
    let rules = steps.rules.get(n).map_or(&[][..], Vec::as_slice);
    let mut ids: Vec<String> = rules.iter().map(|r| r.id.to_string()).collect();
    let reply = history.outcome(n).reply;
    let ended = |at: usize| format!("after {}", history.steps[at].label);
    let (verdict, why) = match &analysis.conclusion {
        Conclusion::Broken { step: Some(at), rule, breach } if *at == n => {
            ids = rule.map_or(ids, |r| vec![r.id.into()]);
            (StepVerdict::Broken, breach.to_string())
        }
        Conclusion::LockingDiffers { step: at, rule, breach, .. } if *at == n => {
            ids = vec![rule.id.into()];
            (StepVerdict::Broken, breach.to_string())
        }
        Conclusion::NotModelled { step: Some(at), why } if *at == n => {
            (StepVerdict::NotModelled, why.clone())
        }
        _ if steps.unmodelled.contains_key(&n) => {
            (StepVerdict::NotModelled, steps.unmodelled[&n].clone())
        }
        _ if steps.settled.contains(&n) => {
            let sights = steps.sights.get(&n).map_or(&[][..], Vec::as_slice);
            (StepVerdict::Allowed, sights.join("; "))
        }
        _ if matches!(reply, Some(EventKind::NotSent { .. })) => {
            (StepVerdict::Allowed, "its transaction had ended".into())
        }
        Conclusion::Allowed { .. } | Conclusion::LockingDiffers { .. } => {
            (StepVerdict::Allowed, "it still waited at the end".into())
        }
        Conclusion::Broken { step: Some(at), .. }
        | Conclusion::NotModelled { step: Some(at), .. } => (StepVerdict::NotModelled, ended(*at)),
        Conclusion::Broken { step: None, breach, .. } => {
            (StepVerdict::NotModelled, breach.to_string())
        }
        Conclusion::NotModelled { step: None, why } => (StepVerdict::NotModelled, why.clone()),
    };
    if verdict == StepVerdict::NotModelled {
        ids.clear();
    }
    StepAccount {
        step: history.steps[n].label.clone(),
        sql: history.steps[n].sql.clone(),
        outcome: summary(history, n),
        verdict,
        rules: ids,
        why,
    }
}
