//! The output of a hunt: its progress, its findings, and what to do next.

use super::request::HuntRequest;
use crate::commands::context::Context;
use crate::console::Style;
use isolde_hunt::cause::Verdict;
use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_hunt::hunt::{Hunt, HuntMonitor, HuntResult};
use isolde_hunt::report::group_by_defect;
use isolde_hunt::summary::{Identity, Summary};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often progress is printed where lines are not replaced.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

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

/// A warning that the findings are due to a planted fault, not to the engine.
fn planted(identity: &Identity) -> String {
    identity.fault().map_or(String::new(), |fault| format!(" with the planted fault {fault}"))
}

/// Runs the work while another thread shows its progress. `earlier` cases were
/// run before the hunt was resumed.
pub fn watching(
    context: &Context<'_>,
    hunt: &Hunt<'_>,
    earlier: u64,
    watch: &HuntMonitor,
    work: impl FnOnce() -> HuntResult,
) -> HuntResult {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            let mut last_line = began;
            let mut announced: BTreeSet<String> = BTreeSet::new();
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                announce(context, watch, &mut announced);
                let facts = progress(hunt, watch, earlier, began.elapsed());
                context.console.progress_facts(&facts);
                if !context.console.shows_progress() && last_line.elapsed() >= LOG_INTERVAL {
                    last_line = Instant::now();
                    context.console.note(&facts.join(", "));
                }
            }
            context.console.end_progress();
            announce(context, watch, &mut announced);
        });
        let outcome = work();
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

/// Prints notices, and the first finding of each defect.
fn announce(context: &Context<'_>, watch: &HuntMonitor, announced: &mut BTreeSet<String>) {
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
        if !announced.insert(finding.defect().to_string()) {
            continue;
        }
        context.console.end_progress();
        let known = finding.known.first().map_or(String::new(), |k| format!("; known as {k}"));
        context.console.note(&format!("case {}: {}{known}", finding.case_number, finding.title));
    }
}

/// The facts of the progress line, the most important first: a narrow screen
/// shows fewer of them.
fn progress(hunt: &Hunt<'_>, watch: &HuntMonitor, earlier: u64, elapsed: Duration) -> Vec<String> {
    let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let share = |part: u64, whole: u64| 100.0 * part as f64 / (whole.max(1)) as f64;
    let cases = get(&watch.cases);
    let rate = cases.saturating_sub(earlier) as f64 / elapsed.as_secs_f64().max(0.001);
    let of_shard = hunt.cases.map(|all| all / hunt.shard.of);
    let mut facts = vec![format!("{cases} cases")];
    facts.extend(time_left(hunt.time, of_shard, cases, rate, elapsed).map(|t| clock(t) + " left"));
    facts.push(format!("{} bug", get(&watch.bug)));
    facts.push(format!("{} locking", get(&watch.locking)));
    facts.push(format!("{} undecided", get(&watch.undecided)));
    facts.push(format!("{} documented", get(&watch.documented)));
    facts.push(format!("{rate:.0} per second"));
    facts.push(format!("{:.0}% blocked", share(get(&watch.waited), get(&watch.statements))));
    facts.push(format!("{:.0}% aborted", share(get(&watch.aborted), get(&watch.transactions))));
    facts
}

/// The time until the time limit or the last case, whichever is first; none
/// while that is unknown.
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
    request: &HuntRequest,
    folder: &Folder,
    summary: &Summary,
    findings: &[Finding],
) {
    let console = context.console;
    let identity = &summary.identity;
    let cases = format!(
        "seed {}: {} cases in {:.1} s ({:.0} per second), {} statements, {:.1}% of them valid",
        identity.seed,
        summary.cases,
        summary.seconds,
        summary.cases as f64 / summary.seconds.max(0.001),
        summary.statements,
        100.0 * summary.valid_share,
    );
    let v = summary.violations;
    let line = format!(
        "{} on {} {}{}; violations: {} bug{}, {} locking, {} undecided, {} documented; {} distinct \
         finding{}",
        verdict(summary),
        identity.target,
        identity.server_version,
        planted(identity),
        v.bug,
        match &summary.baseline {
            Some(judged) => format!(" ({} known, {} new)", judged.known, judged.new),
            None => String::new(),
        },
        v.locking,
        v.undecided,
        v.documented,
        summary.distinct,
        if summary.distinct == 1 { "" } else { "s" }
    );
    let doubts = v.undecided + v.locking + u64::from(summary.nothing_tested().is_some());
    let style = match (summary.new_bugs(), doubts) {
        (0, 0) => Style::Good,
        (0, _) => Style::Doubt,
        _ => Style::Bad,
    };
    console.print(&console.paint(style, &line));
    console.print(&cases);
    for (behaviour, count) in &summary.by_behaviour {
        console.comment(&console.paint(Style::Dim, &format!("  {count} documented: {behaviour}")));
    }
    for line in summary.oracle_tallies.lines() {
        console.comment(&console.paint(Style::Dim, &line));
    }
    if let Some(share) = summary.effective_share() {
        let line = format!("{:.0}% of the statements that succeeded had an effect", 100.0 * share);
        console.comment(&console.paint(Style::Dim, &line));
    }
    if let Some(line) = prediction_line(summary) {
        console.print(&line);
        for (why, count) in &summary.not_modelled {
            let line = format!("  {count} not modelled: {why}");
            console.comment(&console.paint(Style::Dim, &line));
        }
    }
    for (why, count) in &summary.unknown {
        let line = format!("  {count} unknown: {why}");
        console.print(&console.paint(Style::Doubt, &line));
    }
    if let Some(why) = summary.nothing_tested() {
        console.print(&console.paint(Style::Doubt, &format!("  nothing was tested: {why}")));
    }
    if summary.reordered > 0 {
        console.comment(&format!(
            "  {} consistent in a serial order other than that of the commits",
            summary.reordered
        ));
    }
    if summary.not_confirmed > 0 {
        console.comment(&format!(
            "  {} not counted: they did not happen again",
            summary.not_confirmed
        ));
    }
    if summary.not_run > 0 {
        console.comment(&format!(
            "  {} cases not run: the engine rejected their schema",
            summary.not_run
        ));
    }
    show_findings(context, folder, summary, findings);
    console.print(&format!("report: {}", folder.path().join("report.html").display()));
    super::next::show(context, request, folder, summary, findings);
}

/// The answer to the question that a hunt asks.
fn verdict(summary: &Summary) -> &'static str {
    let v = summary.violations;
    if summary.new_bugs() == 0 && summary.nothing_tested().is_some() {
        return "Nothing tested";
    }
    match (summary.new_bugs(), v.bug, v.undecided) {
        (1.., _, _) => "Bug found",
        (0, 1.., _) => "No new bug found",
        (0, 0, 1..) => "No bug confirmed",
        (0, 0, 0) => "No bug found",
    }
}

/// The share of cases that the rules of the engine predicted; none if they were
/// not used.
fn prediction_line(summary: &Summary) -> Option<String> {
    let all = summary.predicted + summary.not_modelled.values().sum::<u64>();
    (all > 0).then(|| {
        let share = 100.0 * summary.predicted as f64 / all as f64;
        format!("{share:.1}% of {all} cases were predicted by the engine's rules")
    })
}

fn finding_count(count: usize) -> String {
    if count == 1 { "1 finding".into() } else { format!("{count} findings") }
}

/// Prints two lines per defect: one of its findings, and what all of them have
/// in common.
fn show_findings(context: &Context<'_>, folder: &Folder, summary: &Summary, findings: &[Finding]) {
    const MOST: usize = 8;
    let console = context.console;
    let known = |f: &Finding| {
        summary.baseline.as_ref().is_some_and(|judged| judged.signatures.contains(&f.signature))
    };
    let mut groups = group_by_defect(findings, &known);
    // New defects first; documented anomalies, with `--all`, last.
    groups.sort_by_key(|g| (g.label == Verdict::Documented, g.known));
    let place = folder.path().join("findings");
    for group in groups.iter().take(MOST) {
        let Some(finding) = group.findings.first() else { continue };
        let word = if group.known { "known: " } else { "" };
        let folder = place.join(&finding.id);
        console.print(&format!("  {}  {word}{}", folder.display(), finding.title));
        let link = group.findings.iter().find_map(|f| f.known_link.as_deref());
        let link = link.map_or(String::new(), |link| format!(" <{link}>"));
        let name = group.name.map_or(String::new(), |name| format!(" of {name}{link}"));
        let count = finding_count(group.findings.len());
        let line = format!("    {count}{name}: {}", group.reason);
        console.print(&console.paint(Style::Dim, &line));
    }
    let shown: usize = groups.iter().take(MOST).map(|g| g.findings.len()).sum();
    if shown < findings.len() {
        let more = finding_count(findings.len() - shown);
        console.print(&format!("  and {more} of other defects in {}", place.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_ends_with_the_time_or_with_the_cases() {
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
