//! `isolde triage FINDING…`: which findings are the same, and which known bug
//! or earlier finding each is most like.

use super::triage_judge::{Judge, Told};
use super::triage_show;
use super::{Context, Outcome};
use crate::exit_code::ExitCode;
use crate::library;
use crate::triage_args::TriageArgs;
use isolde_core::case;
use isolde_core::triage::{Answer, Features, Labelled, Weights, decide, groups, rank, same};
use isolde_hunt::known::KnownBug;
use isolde_hunt::triage::{self, Report};
use serde::Serialize;
use std::convert::Infallible;
use std::path::Path;

/// What all the folders hold, and what is concluded from it.
#[derive(Serialize)]
pub struct Triage {
    pub findings: usize,
    pub distinct: usize,
    pub groups: Vec<Group>,
}

/// Findings that are the same.
#[derive(Serialize)]
pub struct Group {
    pub reason: String,
    pub findings: Vec<String>,
    /// The known bug or the earlier finding that it is; none if it is new.
    pub same_as: Option<String>,
    pub why: String,
    /// The finding that was compared with the candidates.
    pub compared: String,
    pub ranking: Vec<Candidate>,
    /// Pairs that the judge was asked about, and how many it may be at most.
    pub questions: usize,
    pub most_questions: usize,
}

#[derive(Serialize)]
pub struct Candidate {
    pub name: String,
    pub title: String,
    pub similarity: f64,
    pub same: bool,
    /// Features with their weights, those that weigh most.
    pub shared: Vec<(String, f64)>,
    pub only_one: Vec<(String, f64)>,
}

/// Something that a finding may be: a known bug, or a finding elsewhere.
struct Other {
    name: String,
    /// Reports of one bug have the same.
    bug: String,
    features: Features,
    told: Told,
}

const FEATURES_SHOWN: usize = 4;

pub fn run(context: &Context<'_>, args: &TriageArgs) -> Outcome {
    let (mut reports, mut known) = (Vec::new(), Vec::new());
    for path in &args.findings {
        let read = triage::read(path)?;
        reports.extend(read.reports);
        known.extend(read.known);
    }
    let mut earlier = Vec::new();
    for path in &args.against {
        let read = triage::read(path)?;
        earlier.extend(read.reports);
        known.extend(read.known);
    }
    let mut seen: Vec<std::path::PathBuf> = Vec::new();
    reports.retain(|r| is_new(&mut seen, &r.place));
    earlier.retain(|r| is_new(&mut seen, &r.place));
    let mut others = of_library(&known);
    others.extend(earlier.iter().map(of_report));
    let mut judge = Judge::new(args.judge.as_deref(), args.judge_timeout);
    let features: Vec<&Features> = reports.iter().map(|r| &r.features).collect();
    let all = groups(&features);
    let mut told = Vec::new();
    for (n, group) in all.iter().enumerate() {
        context.console.progress(&format!("group {} of {}", n + 1, all.len()));
        told.push(one(&reports, &group.members, group.reason.clone(), &others, args, &mut judge));
    }
    context.console.end_progress();
    for note in judge.notes() {
        context.console.note(note);
    }
    let triage = Triage { findings: reports.len(), distinct: told.len(), groups: told };
    if context.json {
        context.console.print(&serde_json::to_string(&triage).unwrap_or_default());
    } else {
        triage_show::show(context, &triage);
    }
    Ok(ExitCode::Fine)
}

fn is_new(seen: &mut Vec<std::path::PathBuf>, place: &Path) -> bool {
    let real = std::fs::canonicalize(place).unwrap_or_else(|_| place.into());
    let new = !seen.contains(&real);
    seen.push(real);
    new
}

/// Known bugs as they ran where the findings were found, each once a level.
fn of_library(known: &[KnownBug]) -> Vec<Other> {
    let library = library::load(None, None).unwrap_or_default();
    let mut others: Vec<Other> = Vec::new();
    for bug in known {
        if others.iter().any(|o| o.bug == bug.id && o.features == bug.features) {
            continue;
        }
        let case = library.iter().find(|entry| entry.case.id == bug.id).map(|e| &e.case);
        others.push(Other {
            name: bug.id.clone(),
            bug: bug.id.clone(),
            features: bug.features.clone(),
            told: Told {
                name: bug.id.clone(),
                title: bug.title.clone(),
                level: Some(bug.level),
                wrong: bug.features.key(),
                about: case.map_or(String::new(), |c| c.about.trim().to_string()),
                case: case.map_or(String::new(), case::format),
            },
        });
    }
    others
}

fn of_report(report: &Report) -> Other {
    let name = report.place.display().to_string();
    let bug = match report.finding.known.first() {
        Some(known) => known.clone(),
        None => report.features.key(),
    };
    Other { told: told(report), name, bug, features: report.features.clone() }
}

fn told(report: &Report) -> Told {
    let finding = &report.finding;
    Told {
        name: report.place.display().to_string(),
        title: finding.title.clone(),
        level: finding.level,
        wrong: report.features.key(),
        about: finding.explanation.join("\n"),
        case: finding.case.clone(),
    }
}

/// Ranks what the findings of a group may be. Weights are counted in all that
/// is known but the finding itself.
fn one(
    reports: &[Report],
    members: &[usize],
    reason: String,
    others: &[Other],
    args: &TriageArgs,
    judge: &mut Judge,
) -> Group {
    let shortest = |n: &&usize| (reports[**n].finding.case.lines().count(), **n);
    let Some(first) = members.iter().min_by_key(shortest) else {
        unreachable!("a group has a finding")
    };
    let finding = &reports[*first];
    let beside: Vec<Other> = (0..reports.len())
        .filter(|n| !members.contains(n))
        .map(|n| of_report(&reports[n]))
        .collect();
    let pool: Vec<&Other> = others.iter().chain(&beside).collect();
    let labelled: Vec<Labelled<'_>> =
        pool.iter().map(|o| Labelled { features: &o.features, bug: &o.bug }).collect();
    let weights = Weights::counted(&labelled);
    let ranked = rank(&finding.features, &labelled, &weights);
    let most = usize::from(args.candidates).min(ranked.len());
    let times = usize::from(args.times);
    let candidate = |n: usize| pool[ranked[n].report];
    let subject = told(finding);
    let decided = decide(most, times, |a, b, again| {
        let (x, y) = (candidate(a), candidate(b));
        let features = [&finding.features, &x.features, &y.features];
        Ok::<Answer, Infallible>(judge.compare(&subject, [&x.told, &y.told], features, again))
    });
    let Ok(decided) = decided;
    let winner = decided.order.first().map(|n| candidate(*n));
    let built_in = |other: &Other| same(&finding.features, &other.features);
    let (is_same, why) = match (&decided.last, winner) {
        (Some(answer), _) => (answer.same, answer.reason.clone()),
        (None, Some(other)) if built_in(other) => (true, "the same went wrong".into()),
        (None, Some(_)) => (false, "something else went wrong".into()),
        (None, None) => (false, "there is nothing to compare it with".into()),
    };
    let name = |r: &Report| r.place.display().to_string();
    let named = finding.finding.known.first().cloned();
    Group {
        reason,
        findings: members.iter().map(|n| name(&reports[*n])).collect(),
        same_as: winner.filter(|_| is_same).map(|o| o.name.clone()).or(named),
        why,
        compared: name(finding),
        questions: decided.questions,
        most_questions: times * most.saturating_sub(1),
        ranking: decided
            .order
            .iter()
            .map(|n| {
                let other = candidate(*n);
                let decisive = weights.decisive(&finding.features, &other.features, FEATURES_SHOWN);
                let owned = |all: Vec<(&str, f64)>| {
                    all.into_iter().map(|(f, w)| (f.to_string(), w)).collect()
                };
                Candidate {
                    name: other.name.clone(),
                    title: other.told.title.clone(),
                    similarity: ranked[*n].similarity,
                    same: built_in(other),
                    shared: owned(decisive.shared),
                    only_one: owned(decisive.apart),
                }
            })
            .collect(),
    }
}
