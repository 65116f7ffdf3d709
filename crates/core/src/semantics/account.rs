//! An account of a run for people: what each statement saw or did, by which
//! rules, and what is to be said of the whole.
//!
//! A statement that ends a prediction ends the account, too: whatever comes
//! behind it hangs on what it did.

use super::rules::Rule;
use super::transaction::{End, FIRST_ROWS};
use super::walk::Walk;
use super::{Explanation, Operation, SerialOrder, Subject, predict_steps, serial_order};
use crate::history::What;
use crate::inquiry::Desk;
use crate::oracle::executed;
use crate::sql::Stmt;
use crate::transcript::summary;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be said of a run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whole {
    /// As the rules have it, and as if one transaction had followed the other
    /// in the order of the commits.
    Consistent,
    /// As the rules have it, and not serial in the order of the commits.
    Documented,
    Bug,
    Undecided,
}

impl Whole {
    pub fn name(self) -> &'static str {
        match self {
            Whole::Consistent => "consistent",
            Whole::Documented => "documented",
            Whole::Bug => "bug",
            Whole::Undecided => "undecided",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepVerdict {
    #[serde(rename = "inside")]
    Inside,
    #[serde(rename = "outside")]
    Outside,
    #[serde(rename = "not modelled")]
    NotModelled,
}

impl StepVerdict {
    pub fn name(self) -> &'static str {
        match self {
            StepVerdict::Inside => "inside",
            StepVerdict::Outside => "outside",
            StepVerdict::NotModelled => "not modelled",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub label: Whole,
    /// What the label rests on, in a sentence.
    pub why: String,
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
}

impl From<&Rule> for CitedRule {
    fn from(rule: &Rule) -> CitedRule {
        CitedRule {
            id: rule.id.into(),
            name: rule.name.into(),
            about: rule.about.into(),
            page: rule.page.into(),
        }
    }
}

/// What a walk knows of the steps it came through.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    pub rules: Vec<Vec<&'static Rule>>,
    /// Those whose outcome was held against the rules.
    pub settled: BTreeSet<usize>,
    /// For whom a statement waited, whose writes it saw, and whose it did not.
    pub sights: BTreeMap<usize, Vec<String>>,
    pub unmodelled: BTreeMap<usize, String>,
}

/// When a statement looked at the rows.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// None when it sees what is not committed, too.
    pub snapshot: Option<usize>,
    pub at: usize,
    pub by: usize,
}

impl Walk<'_> {
    pub fn steps(&self) -> Steps {
        let sights = self.looks.iter().map(|(step, look)| (*step, self.sight(*step, *look)));
        let mut sights: BTreeMap<usize, Vec<String>> = sights.collect();
        for (step, whom) in &self.waited_for {
            sights.entry(*step).or_default().insert(0, whom.clone());
        }
        Steps {
            rules: self.used.clone(),
            settled: self.settled.clone(),
            sights,
            unmodelled: self.unmodelled.clone(),
        }
    }

    /// What others had written in the tables of a plain read when it looked.
    /// Writes look at more than their snapshot.
    fn sight(&self, step: usize, look: Look) -> Vec<String> {
        let reads_lock = self.conduct(look.by).reads_lock && !self.txs[look.by].autocommit;
        let names = match &self.subject.reading.operations[step] {
            Operation::Statement(statement) => match &**statement {
                Stmt::Select(select) if select.locking.is_none() && !reads_lock => select.sources(),
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let tables = self.subject.reading.schema.tables.iter().zip(&self.store.tables);
        let mut writers: BTreeSet<usize> = BTreeSet::new();
        for (_, chains) in tables.filter(|(t, _)| names.contains(&t.name.as_str())) {
            let versions = chains.iter().flat_map(|c| &c.versions).filter(|v| v.at <= look.at);
            let session = &self.txs[look.by].session;
            let others = |by: &usize| *by != FIRST_ROWS && self.txs[*by].session != *session;
            writers.extend(versions.map(|v| v.by).filter(others));
        }
        writers.into_iter().map(|by| self.of_writer(by, look)).collect()
    }

    fn of_writer(&self, by: usize, look: Look) -> String {
        let session = &self.txs[by].session;
        match (self.txs[by].end, look.snapshot) {
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

/// What is known of a run beside a serial one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serially {
    /// Whether an order explains it is to be found out.
    Unknown,
    /// It is not as the serial run in the order of the commits.
    Differs,
}

/// What the rules say of a run, step by step and as a whole.
pub async fn account(subject: &Subject<'_>, desk: &Desk, serially: Serially) -> Account {
    let (explanation, steps) = if subject.has_rules() {
        let (prediction, steps) = predict_steps(subject, desk.clone()).await;
        (super::explained(subject, desk, prediction).await, steps)
    } else {
        let why = "there are no rules for this engine".into();
        (Explanation::NotModelled { step: None, why }, Steps::default())
    };
    let (label, why) = whole(subject, desk, &explanation, serially).await;
    let told: Vec<StepAccount> =
        (0..subject.history.steps.len()).map(|n| step(subject, &explanation, &steps, n)).collect();
    let mut rules: Vec<CitedRule> = Vec::new();
    let order = match &explanation {
        Explanation::Inside { order: Some((_, rule)), .. } => Some(*rule),
        Explanation::Outside { rule, .. } => *rule,
        _ => None,
    };
    for rule in steps.rules.iter().flatten().copied().chain(order) {
        if !rules.iter().any(|r| r.id == rule.id) {
            rules.push(rule.into());
        }
    }
    rules.retain(|r| {
        order.is_some_and(|o| o.id == r.id) || told.iter().any(|s| s.rules.contains(&r.id))
    });
    Account { label, why, steps: told, rules }
}

async fn whole(
    subject: &Subject<'_>,
    desk: &Desk,
    found: &Explanation,
    serially: Serially,
) -> (Whole, String) {
    let place = |step: &Option<usize>| match step {
        Some(step) => format!("{}: ", subject.history.steps[*step].label),
        None => String::new(),
    };
    match found {
        Explanation::Outside { step, rule, why } => {
            let rule = rule.map_or(String::new(), |r| format!(" (rule {})", r.id));
            (Whole::Bug, format!("{}{why}{rule}", place(step)))
        }
        Explanation::NotModelled { step, why } => {
            (Whole::Undecided, format!("{}not modelled: {why}", place(step)))
        }
        Explanation::Inside { .. } if serially == Serially::Differs => {
            let why = "as the rules have it, and not as in the order of the commits";
            (Whole::Documented, why.into())
        }
        Explanation::Inside { .. } => {
            let commits: Vec<String> = executed(subject.history)
                .into_iter()
                .filter(|t| t.committed())
                .map(|t| t.session)
                .collect();
            match serial_order(subject, desk.clone()).await {
                SerialOrder::Found(order) if order == commits => {
                    let why = "as if the transactions had run one after the other, in the order \
                               of their commits";
                    (Whole::Consistent, why.into())
                }
                SerialOrder::Found(order) => {
                    let order = order.join(", ");
                    let why = format!("as in the serial order {order}, not that of the commits");
                    (Whole::Documented, why)
                }
                SerialOrder::None { .. } => {
                    let why = "as the rules of the level have it, and as in no serial order";
                    (Whole::Documented, why.into())
                }
                SerialOrder::CutOff => {
                    let why = "as the rules have it; there are too many serial orders to try";
                    (Whole::Undecided, why.into())
                }
                SerialOrder::NotModelled { step, why } => {
                    let place = place(&step);
                    let why = format!(
                        "as the rules have it; whether it is serial is not modelled: {place}{why}"
                    );
                    (Whole::Undecided, why)
                }
            }
        }
    }
}

fn step(subject: &Subject<'_>, found: &Explanation, steps: &Steps, n: usize) -> StepAccount {
    let history = subject.history;
    let rules = steps.rules.get(n).map_or(&[][..], Vec::as_slice);
    let mut ids: Vec<String> = rules.iter().map(|r| r.id.to_string()).collect();
    let reply = history.outcome(n).reply;
    let ended = |at: usize| format!("after {}", history.steps[at].label);
    let (verdict, why) = match found {
        Explanation::Outside { step: Some(at), rule, why } if *at == n => {
            ids = rule.map_or(ids, |r| vec![r.id.into()]);
            (StepVerdict::Outside, why.clone())
        }
        Explanation::NotModelled { step: Some(at), why } if *at == n => {
            (StepVerdict::NotModelled, why.clone())
        }
        _ if steps.unmodelled.contains_key(&n) => {
            (StepVerdict::NotModelled, steps.unmodelled[&n].clone())
        }
        _ if steps.settled.contains(&n) => {
            let sights = steps.sights.get(&n).map_or(&[][..], Vec::as_slice);
            (StepVerdict::Inside, sights.join("; "))
        }
        _ if matches!(reply, Some(What::NotSent { .. })) => {
            (StepVerdict::Inside, "its transaction had ended".into())
        }
        Explanation::Inside { .. } => (StepVerdict::Inside, "it still waited at the end".into()),
        Explanation::Outside { step: Some(at), .. }
        | Explanation::NotModelled { step: Some(at), .. } => (StepVerdict::NotModelled, ended(*at)),
        Explanation::Outside { step: None, why, .. }
        | Explanation::NotModelled { step: None, why } => (StepVerdict::NotModelled, why.clone()),
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
