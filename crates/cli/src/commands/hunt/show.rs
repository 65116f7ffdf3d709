//! What people see of a hunt: how it goes, what it found, what to try next.

use super::super::Context;
use super::wish::Wish;
use crate::console::Style;
use isolde_hunt::cause::Label;
use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_hunt::hunt::{Ended, Hunt, Watch};
use isolde_hunt::report::grouped;
use isolde_hunt::summary::{Identity, Summary};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a line is worth printing where it stays.
const QUIET_LINE: Duration = Duration::from_secs(5);

pub fn beginning(context: &Context<'_>, hunt: &Hunt<'_>, folder: &Folder) {
    let identity = &hunt.identity;
    let levels = identity.levels.join(", ");
    let shard = if hunt.shard.of > 1 { format!(", shard {}", hunt.shard) } else { String::new() };
    context.console.note(&format!(
        "hunting on {} {}{} at {levels}; seed {}{shard}; output in {}",
        identity.target,
        identity.server_version,
        planted(identity),
        identity.seed,
        folder.path().display()
    ));
}

/// What is found in an engine with a planted fault is not the engine's.
fn planted(identity: &Identity) -> String {
    identity.fault().map_or(String::new(), |fault| format!(" with the planted fault {fault}"))
}

/// Runs the work and shows how it goes, on a thread of its own. `earlier`
/// cases were run before the hunt was resumed.
pub fn watching(
    context: &Context<'_>,
    hunt: &Hunt<'_>,
    earlier: u64,
    watch: &Watch,
    work: impl FnOnce() -> Ended,
) -> Ended {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            let mut last_line = began;
            let mut told: BTreeSet<String> = BTreeSet::new();
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                tell_news(context, watch, &mut told);
                let facts = progress(hunt, watch, earlier, began.elapsed());
                context.console.progress_of(&facts);
                if !context.console.shows_progress() && last_line.elapsed() >= QUIET_LINE {
                    last_line = Instant::now();
                    context.console.note(&facts.join(", "));
                }
            }
            context.console.end_progress();
            tell_news(context, watch, &mut told);
        });
        let outcome = work();
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

/// One line for each kind of finding; the counts tell of the rest.
fn tell_news(context: &Context<'_>, watch: &Watch, told: &mut BTreeSet<String>) {
    let news = {
        let mut news = watch.news.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::take(&mut *news)
    };
    let notices = std::mem::take(
        &mut *watch.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
    );
    for notice in notices {
        context.console.end_progress();
        context.console.note(&notice);
    }
    for finding in news {
        if !told.insert(finding.defect().to_string()) {
            continue;
        }
        context.console.end_progress();
        let known = finding.known.first().map_or(String::new(), |k| format!("; it is {k}"));
        context.console.note(&format!("case {}: {}{known}", finding.case_number, finding.title));
    }
}

/// How it goes, the most important first: a narrow screen shows less.
fn progress(hunt: &Hunt<'_>, watch: &Watch, earlier: u64, elapsed: Duration) -> Vec<String> {
    let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let share = |part: u64, whole: u64| 100.0 * part as f64 / (whole.max(1)) as f64;
    let cases = get(&watch.cases);
    let rate = cases.saturating_sub(earlier) as f64 / elapsed.as_secs_f64().max(0.001);
    let of_shard = hunt.cases.map(|all| all / hunt.shard.of);
    let mut facts = vec![format!("{cases} cases")];
    facts.extend(time_left(hunt.time, of_shard, cases, rate, elapsed).map(|t| clock(t) + " left"));
    facts.push(format!("{} bug", get(&watch.bug)));
    facts.push(format!("{} undecided", get(&watch.undecided)));
    facts.push(format!("{} documented", get(&watch.documented)));
    facts.push(format!("{rate:.0} a second"));
    facts.push(format!("{:.0}% waited", share(get(&watch.waited), get(&watch.statements))));
    facts.push(format!("{:.0}% aborted", share(get(&watch.aborted), get(&watch.transactions))));
    facts
}

/// Until the time is up or the cases are done, whichever is first. None before
/// anybody can know.
fn time_left(
    time: Option<Duration>,
    all: Option<u64>,
    cases: u64,
    rate: f64,
    elapsed: Duration,
) -> Option<Duration> {
    let by_clock = time.map(|time| time.saturating_sub(elapsed));
    let by_cases = all
        .filter(|_| rate > 0.0)
        .and_then(|all| Duration::try_from_secs_f64(all.saturating_sub(cases) as f64 / rate).ok());
    by_clock.into_iter().chain(by_cases).min()
}

/// `0:05`, `12:30`, `1:02:03`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

pub fn ending(
    context: &Context<'_>,
    wish: &Wish,
    folder: &Folder,
    summary: &Summary,
    findings: &[Finding],
) {
    let console = context.console;
    let identity = &summary.identity;
    console.print(&format!(
        "{} {}{}, seed {}: {} cases in {:.1} s ({:.0} a second), {} statements, {:.1}% of them valid",
        identity.target,
        identity.server_version,
        planted(identity),
        identity.seed,
        summary.cases,
        summary.seconds,
        summary.cases as f64 / summary.seconds.max(0.001),
        summary.statements,
        100.0 * summary.valid_share,
    ));
    let v = summary.violations;
    let line = format!(
        "violations: {} bug{}, {} undecided, {} documented; {} distinct finding{}",
        v.bug,
        match &summary.baseline {
            Some(judged) => format!(" ({} known, {} new)", judged.known, judged.new),
            None => String::new(),
        },
        v.undecided,
        v.documented,
        summary.distinct,
        if summary.distinct == 1 { "" } else { "s" }
    );
    let style = match (summary.new_bugs(), v.undecided) {
        (0, 0) => Style::Good,
        (0, _) => Style::Doubt,
        _ => Style::Bad,
    };
    console.print(&console.paint(style, &line));
    for (behaviour, count) in &summary.by_behaviour {
        console.say(&console.paint(Style::Dim, &format!("  {count} documented: {behaviour}")));
    }
    for line in topology(summary) {
        console.say(&console.paint(Style::Dim, &line));
    }
    if let Some(line) = predicted(summary) {
        console.print(&line);
        for (why, count) in &summary.not_modelled {
            let line = format!("  {count} not modelled: {why}");
            console.say(&console.paint(Style::Dim, &line));
        }
    }
    for (why, count) in &summary.unknown {
        let line = format!("  {count} unknown: {why}");
        console.print(&console.paint(Style::Doubt, &line));
    }
    if summary.not_confirmed > 0 {
        console.say(&format!("  {} did not happen again and do not count", summary.not_confirmed));
    }
    if summary.not_run > 0 {
        console.say(&format!("  {} cases had a schema that it refused", summary.not_run));
    }
    show_findings(context, folder, summary, findings);
    console.print(&format!("report: {}", folder.path().join("report.html").display()));
    super::next::show(context, wish, folder, summary, findings);
}

/// How much the rules of the engine say of what ran; nothing where nobody
/// asked them.
fn predicted(summary: &Summary) -> Option<String> {
    let all = summary.predicted + summary.not_modelled.values().sum::<u64>();
    (all > 0).then(|| {
        let share = 100.0 * summary.predicted as f64 / all as f64;
        format!("predicted by the engine's rules: {share:.1}% of {all} cases")
    })
}

fn findings_of(count: usize) -> String {
    if count == 1 { "1 finding".into() } else { format!("{count} findings") }
}

/// Two lines for each defect: a finding of it, and what all of them have in
/// common.
fn show_findings(context: &Context<'_>, folder: &Folder, summary: &Summary, findings: &[Finding]) {
    const MOST: usize = 8;
    let console = context.console;
    let known = |f: &Finding| {
        summary.baseline.as_ref().is_some_and(|judged| judged.signatures.contains(&f.signature))
    };
    let mut groups = grouped(findings, &known);
    // What is new first; what `--all` makes a finding last.
    groups.sort_by_key(|g| (g.label == Label::Documented, g.known));
    let place = folder.path().join("findings");
    for group in groups.iter().take(MOST) {
        let Some(finding) = group.findings.first() else { continue };
        let word = if group.known { "known: " } else { "" };
        let folder = place.join(&finding.id);
        console.print(&format!("  {}  {word}{}", folder.display(), finding.title));
        let name = group.name.map_or(String::new(), |name| format!("{name}: "));
        let line = format!("    {} of it: {name}{}", group.findings.len(), group.reason);
        console.print(&console.paint(Style::Dim, &line));
    }
    let shown: usize = groups.iter().take(MOST).map(|g| g.findings.len()).sum();
    if shown < findings.len() {
        let more = findings_of(findings.len() - shown);
        console.print(&format!("  {more} more, of others, in {}", place.display()));
    }
}

/// What the topological oracle met: graphs and their edges, rounds, what was left out.
fn topology(summary: &Summary) -> Vec<String> {
    let met = &summary.topology;
    if met.is_empty() {
        return Vec::new();
    }
    let listed = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(", ");
    let mut lines = vec![format!("{} graphs, {} orders", met.graphs, met.orders)];
    let edges: u64 = met.edges.values().sum();
    if edges > 0 {
        let kinds = listed(&mut met.edges.iter().map(|(kind, count)| format!("{kind} {count}")));
        lines.push(format!("  edges: {kinds}; exact matches took {} away", met.spared));
    }
    for (what, rounds) in [("waits", &met.blocked), ("cycles", &met.cyclic)] {
        let times = listed(&mut rounds.iter().map(|(times, cases)| format!("{times}: {cases}")));
        lines.push(format!("  runs more because of {what} (how many: in how many cases): {times}"));
    }
    for (why, count) in &met.left_out {
        lines.push(format!("  {count} statements left out: {why}"));
    }
    for (why, count) in &met.unknown {
        lines.push(format!("  {count} cases unknown: {why}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunt_ends_with_its_time_or_with_its_cases() {
        let seconds = Duration::from_secs;
        let left = |time, all| time_left(time, all, 100, 10.0, seconds(10));
        assert_eq!(left(Some(seconds(60)), None), Some(seconds(50)));
        assert_eq!(left(Some(seconds(5)), None), Some(Duration::ZERO));
        assert_eq!(left(None, Some(400)), Some(seconds(30)));
        assert_eq!(left(Some(seconds(60)), Some(400)), Some(seconds(30)));
        assert_eq!(time_left(None, Some(400), 0, 0.0, seconds(1)), None);
        assert_eq!(clock(seconds(5)) + " " + &clock(seconds(3723)), "0:05 1:02:03");
    }
}
