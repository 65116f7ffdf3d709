//! `isolde triage FINDING…`: groups findings by defect, and ranks the known bugs
//! and earlier findings that each group resembles.

mod judge;
mod show;

use super::Outcome;
use super::context::Context;
use crate::args::triage::TriageArgs;
use crate::exit_code::ExitCode;
use crate::library;
use isolde_hunt::known::KnownBug;
use isolde_hunt::triage::{self, Report};
use isolde_model::case;
use isolde_triage::{Answer, Features, LabelledReport, Weights, decide, groups, rank, same};
use judge::{Judge, ReportText};
use serde::Serialize;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// The groups of all findings.
#[derive(Serialize)]
pub struct Triage {
    pub findings: usize,
    pub distinct: usize,
    pub groups: Vec<Group>,
}

/// Findings of one defect.
#[derive(Serialize)]
pub struct Group {
    pub reason: String,
    pub findings: Vec<String>,
    /// The known bug or earlier finding that it is the same as; none if it is
    /// new.
    pub same_as: Option<String>,
    pub why: String,
    /// The finding that was compared with the candidates.
    pub compared: String,
    pub ranking: Vec<Candidate>,
    /// Number of pairs that the judge compared, and the maximum.
    pub questions: usize,
    pub most_questions: usize,
}

/// A known bug or finding that a group was compared with.
#[derive(Serialize)]
pub struct Candidate {
    pub name: String,
    pub title: String,
    pub similarity: f64,
    pub same: bool,
    /// The features with the largest weights.
    pub shared: Vec<(String, f64)>,
    pub only_one: Vec<(String, f64)>,
}

/// A report that a finding may duplicate: a known bug, or another finding.
struct OtherReport {
    name: String,
    /// The bug; equal for all reports of one bug.
    bug: String,
    features: Features,
    text: ReportText,
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
    let mut folders: Vec<PathBuf> = Vec::new();
    reports.retain(|r| is_new(&mut folders, &r.place));
    earlier.retain(|r| is_new(&mut folders, &r.place));
    let mut others = known_bugs(&known);
    others.extend(earlier.iter().map(OtherReport::of));
    let mut judge = Judge::new(args.judge.as_deref(), args.judge_timeout);
    // The hunt has grouped its findings by these keys, too.
    let features: Vec<(String, &Features)> =
        reports.iter().map(|r| (r.finding.defect().to_string(), &r.features)).collect();
    let all = groups(&features);
    let mut groups_found = Vec::new();
    for (n, group) in all.iter().enumerate() {
        context.console.progress(&format!("group {} of {}", n + 1, all.len()));
        let reason = group.reason.clone();
        groups_found.push(rank_group(&reports, &group.members, reason, &others, args, &mut judge));
    }
    context.console.end_progress();
    for note in judge.notes() {
        context.console.note(note);
    }
    let triage =
        Triage { findings: reports.len(), distinct: groups_found.len(), groups: groups_found };
    if context.json {
        context.console.print(&serde_json::to_string(&triage)?);
    } else {
        show::show(context, &triage);
    }
    Ok(ExitCode::Success)
}

/// Whether a folder is not in the list yet; adds it.
fn is_new(folders: &mut Vec<PathBuf>, folder: &Path) -> bool {
    let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.into());
    let is_new = !folders.contains(&real);
    folders.push(real);
    is_new
}

/// The known bugs as they ran during the hunts, each once per level.
fn known_bugs(known: &[KnownBug]) -> Vec<OtherReport> {
    let library = library::load(None, None).unwrap_or_default();
    let mut others: Vec<OtherReport> = Vec::new();
    for bug in known {
        if others.iter().any(|o| o.bug == bug.id && o.features == bug.features) {
            continue;
        }
        let case = library.iter().find(|entry| entry.case.id == bug.id).map(|e| &e.case);
        others.push(OtherReport {
            name: bug.id.clone(),
            bug: bug.id.clone(),
            features: bug.features.clone(),
            text: ReportText {
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

impl OtherReport {
    fn of(report: &Report) -> OtherReport {
        let name = report.place.display().to_string();
        let bug = match report.finding.known.first() {
            Some(known) => known.clone(),
            None => report.features.key(),
        };
        OtherReport { text: text_of(report), name, bug, features: report.features.clone() }
    }
}

fn text_of(report: &Report) -> ReportText {
    let finding = &report.finding;
    ReportText {
        name: report.place.display().to_string(),
        title: finding.title.clone(),
        level: finding.level,
        wrong: report.features.key(),
        about: finding.explanation.join("\n"),
        case: finding.case.clone(),
    }
}

/// Ranks the reports that a group may duplicate. The weights of features come
/// from all reports but those of the group.
fn rank_group(
    reports: &[Report],
    members: &[usize],
    reason: String,
    others: &[OtherReport],
    args: &TriageArgs,
    judge: &mut Judge,
) -> Group {
    let shortest = |n: &&usize| (reports[**n].finding.case.lines().count(), **n);
    let Some(first) = members.iter().min_by_key(shortest) else {
        unreachable!("a group has a finding")
    };
    let finding = &reports[*first];
    let other_groups: Vec<OtherReport> = (0..reports.len())
        .filter(|n| !members.contains(n))
        .map(|n| OtherReport::of(&reports[n]))
        .collect();
    let pool: Vec<&OtherReport> = others.iter().chain(&other_groups).collect();
    let labelled: Vec<LabelledReport<'_>> =
        pool.iter().map(|o| LabelledReport { features: &o.features, bug: &o.bug }).collect();
    let weights = Weights::counted(&labelled);
    let ranked = rank(&finding.features, &labelled, &weights);
    let most = usize::from(args.candidates).min(ranked.len());
    let times = usize::from(args.times);
    let candidate = |n: usize| pool[ranked[n].report];
    let subject = text_of(finding);
    let decided = decide(most, times, |a, b, again| {
        let (x, y) = (candidate(a), candidate(b));
        let features = [&finding.features, &x.features, &y.features];
        Ok::<Answer, Infallible>(judge.compare(&subject, [&x.text, &y.text], features, again))
    });
    let Ok(decided) = decided;
    let winner = decided.order.first().map(|n| candidate(*n));
    let built_in = |other: &OtherReport| same(&finding.features, &other.features);
    let (is_same, why) = match (&decided.last, winner) {
        (Some(answer), _) => (answer.same, answer.reason.clone()),
        (None, Some(other)) if built_in(other) => (true, "the same failure".into()),
        (None, Some(_)) => (false, "a different failure".into()),
        (None, None) => (false, "nothing to compare with".into()),
    };
    let mut by_similarity = decided.order.clone();
    by_similarity.sort_by(|a, b| ranked[*b].similarity.total_cmp(&ranked[*a].similarity));
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
        ranking: by_similarity
            .iter()
            .map(|n| {
                let other = candidate(*n);
                let decisive = weights.compare(&finding.features, &other.features, FEATURES_SHOWN);
                let owned = |all: Vec<(&str, f64)>| {
                    all.into_iter().map(|(f, w)| (f.to_string(), w)).collect()
                };
                Candidate {
                    name: other.name.clone(),
                    title: other.text.title.clone(),
                    similarity: ranked[*n].similarity,
                    same: built_in(other),
                    shared: owned(decisive.shared),
                    only_one: owned(decisive.apart),
                }
            })
            .collect(),
    }
}
