//! Every statement and the final rows are inside of what the rules of the
//! engine allow ([`crate::semantics`]); at SERIALIZABLE a serial order explains
//! them as well.
//!
//! What it does not verify: what is not modelled, which it says; and that a
//! statement that waited had to.

use super::{Concurrent, Difference, Judgement, Verdict};
use crate::inquiry::Desk;
use crate::semantics::{Explanation, Subject, explain};

pub const ABOUT: &str = "every statement returns, changes and refuses what the documented rules of \
    its level let it, and at SERIALIZABLE a serial order explains it all";

pub async fn judge(run: &Concurrent<'_>, desk: &Desk) -> Judgement {
    let Some(reading) = run.reading else {
        return unknown("the tables of the case are not understood");
    };
    let subject = Subject { history: run.history, reading };
    if !subject.has_rules() {
        return unknown("there are no rules for this engine");
    }
    match explain(&subject, desk).await {
        Explanation::Inside { .. } => Judgement::of(Verdict::Consistent),
        Explanation::NotModelled { why, .. } => unknown(&why),
        Explanation::Outside { step, rule, why } => {
            let label = step.map_or_else(String::new, |s| run.case.label(s));
            let sql = step.map_or_else(String::new, |s| run.case.steps[s].sql.clone());
            let (rule, about, page) = match rule {
                Some(rule) => (rule.id, rule.about, rule.page),
                None => (NO_SERIAL_ORDER, IN_ORDER, ""),
            };
            let (rule, about, page) = (rule.into(), about.into(), page.into());
            let broken = Difference::Rule { label, sql, rule, about, page, why };
            Judgement::of(Verdict::Violated(vec![broken]))
        }
    }
}

/// What stands for a rule where each statement is allowed, but there is no
/// serial order of them all.
pub const NO_SERIAL_ORDER: &str = "serializable";

const IN_ORDER: &str =
    "at SERIALIZABLE what has committed is as if one transaction had run after the other";

fn unknown(why: &str) -> Judgement {
    Judgement::of(Verdict::Unknown(why.into()))
}
