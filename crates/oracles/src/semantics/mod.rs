//! Every statement and the final rows are inside of what the rules of the
//! engine allow ([`isolde_reference`]); at SERIALIZABLE a serial order explains
//! them as well.
//!
//! What it does not verify: what is not modelled, which it says; and that a
//! statement that waited had to.

use crate::description::OracleDescription;
use crate::judgement::{Judgement, OracleVerdict};
use crate::run::ConcurrentRun;
use isolde_catalog::Rule;
use isolde_model::breach::Breach;
use isolde_model::difference::{Difference, NO_SERIAL_ORDER};
use isolde_model::inquiry::Channel;
use isolde_reference::{Analysis, Conclusion, SerialSearch, Subject, analyse};

pub(crate) static ORACLE: OracleDescription = OracleDescription {
    name: "semantics",
    about: "every statement returns, changes and refuses what the documented rules of its level \
        let it, and at SERIALIZABLE a serial order explains it all",
    reference: "with the rules of the engine",
    // The model follows the statements as they were sent, whatever transaction they were meant for.
    judges_unknown_runs: true,
    judge: |run, channel| Box::pin(judge(run, channel)),
    ..OracleDescription::PLAIN
};

async fn judge(run: &ConcurrentRun<'_>, channel: &Channel) -> Judgement {
    if let Some(why) = run.unknown_history() {
        return Judgement::unknown(why);
    }
    let Some(reading) = run.reading else {
        return Judgement::unknown("the tables of the case are not understood");
    };
    let subject = Subject::new(run.history, reading);
    if !subject.has_rules() {
        return Judgement::unknown("there are no rules for this engine");
    }
    let analysis = analyse(&subject, channel, SerialSearch::WherePromised).await;
    let verdict = match &analysis.conclusion {
        Conclusion::Allowed { .. } => OracleVerdict::Consistent,
        Conclusion::NotModelled { why, .. } => OracleVerdict::Unknown(why.clone()),
        Conclusion::Broken { step, rule, breach } => {
            OracleVerdict::Violated(vec![difference(run, *step, *rule, breach)])
        }
        Conclusion::LockingDiffers { step, rule, breach, .. } => {
            OracleVerdict::Violated(vec![difference(run, Some(*step), Some(rule), breach)])
        }
    };
    Judgement { analysis: Some(Box::new(analysis)), ..Judgement::of(verdict) }
}

/// The difference of a statement that failed for no reason that a rule knows, and succeeds alone.
pub fn own_error_difference(run: &ConcurrentRun<'_>, analysis: &Analysis) -> Option<Difference> {
    let step = analysis.own_error_step()?;
    match &analysis.conclusion {
        Conclusion::Broken { step: Some(at), rule, breach } if *at == step => {
            Some(difference(run, Some(step), *rule, breach))
        }
        _ => None,
    }
}

fn difference(
    run: &ConcurrentRun<'_>,
    step: Option<usize>,
    rule: Option<&Rule>,
    breach: &Breach,
) -> Difference {
    let label = step.map_or_else(String::new, |s| run.case.label(s));
    let sql = step.map_or_else(String::new, |s| run.case.steps[s].sql.clone());
    let (rule, about, page) = match rule {
        Some(rule) => (rule.id, rule.about, run.history.on.manual_page(rule)),
        None => (NO_SERIAL_ORDER, IN_ORDER, String::new()),
    };
    let (rule, about) = (rule.into(), about.into());
    let (why, breach) = (breach.to_string(), Some(Box::new(breach.clone())));
    Difference::Rule { label, sql, rule, about, page, why, breach }
}

const IN_ORDER: &str =
    "at SERIALIZABLE what has committed is as if one transaction had run after the other";
