//! The top of the page: the target, the settings, and the results in numbers.

use super::html::{code, details, link, number, plural, table, text};
use super::prose;
use isolde_hunt::HuntError;
use isolde_hunt::cause::Verdict;
use isolde_hunt::finding::Finding;
use isolde_hunt::summary::{Shard, Summary};
use isolde_hunt::tally::Counts;
use isolde_model::Level;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

const EXAMPLES: usize = 2;

/// The verdict. `kinds` is the number of distinct findings per cause.
pub fn headline(summary: &Summary, kinds: impl Fn(Verdict) -> usize) -> Markup {
    let v = summary.violations;
    let of = |label: Verdict| match kinds(label) {
        0 => String::new(),
        n => format!(", {n} distinct,"),
    };
    let (class, words) = if v.bug > 0 {
        let found = plural(v.bug, "violation");
        let class = if summary.new_bugs() > 0 { "bug" } else { "fine" };
        let known = match &summary.baseline {
            Some(judged) => format!(" ({} in the baseline, {} new)", judged.known, judged.new),
            None => String::new(),
        };
        (class, format!("{found}{} caused by a bug{known}", of(Verdict::Bug)))
    } else if let Some(why) = summary.nothing_tested() {
        ("undecided", format!("Nothing was tested: {why}"))
    } else if v.undecided > 0 {
        let found = plural(v.undecided, "undecided violation");
        (
            "undecided",
            format!("{found}{}, none known to be caused by a bug", of(Verdict::Undecided)),
        )
    } else {
        ("fine", "No violation, except those that the documentation allows".into())
    };
    let id = &summary.identity;
    html! {
        header {
            p.brand { "Isolde · hunt report" }
            h1 { (text(&id.target)) " " span { (text(&id.server_version)) } }
            p class={ "verdict " (class) } { (words) ", in " (plural(summary.cases, "case")) }
            @if let Some(fault) = id.fault() {
                // A blank, since the paragraphs are inline.
                " "
                p class="verdict undecided" {
                    "A fault was planted: " (code(fault))
                    ". The findings are due to it, not to the engine."
                }
            }
        }
    }
}

pub fn facts(summary: &Summary) -> Markup {
    let id = &summary.identity;
    let rate = summary.cases as f64 / summary.seconds.max(0.001);
    let share = |part: u64, of: u64| format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64);
    let mut pairs: Vec<(&str, String)> = vec![
        ("Isolde", text(&id.version)),
        ("seed", id.seed.to_string()),
        ("levels", text(&id.levels.join(", "))),
        ("oracles", text(&id.oracles.join(", "))),
        (
            "cases",
            format!("{} in {:.1} s ({rate:.0} per second)", number(summary.cases), summary.seconds),
        ),
        ("statements", number(summary.statements)),
        ("statements including serial runs", number(summary.statements_in_all)),
        ("valid statements", format!("{:.1} %", 100.0 * summary.valid_share)),
        ("blocked", format!("{} of statements", share(summary.waited, summary.statements))),
        ("aborted", format!("{} of transactions", share(summary.aborted, summary.transactions))),
    ];
    let checked: u64 = summary.predicted + summary.not_modelled.values().sum::<u64>();
    if checked > 0 {
        let whole = share(summary.predicted, checked);
        pairs.push(("predicted by rules", format!("{whole} of cases")));
    }
    // Zero counts and options that are off are left out.
    for (name, count) in [
        ("not confirmed", summary.not_confirmed),
        ("unknown", summary.unknown.values().sum()),
        ("cases not run", summary.not_run),
    ] {
        if count > 0 {
            pairs.push((name, number(count)));
        }
    }
    if summary.shards != [Shard::WHOLE] {
        pairs.push(("shards", shards(&summary.shards)));
    }
    // The number of cases is shown above.
    let is_shown = |(name, value): &(&String, &String)| *value != "false" && *name != "cases";
    let asked = id.options.iter().filter(is_shown);
    let shown = |value: &str| if value == "true" { "yes".into() } else { text(value) };
    pairs.extend(asked.map(|(name, value)| (name.as_str(), shown(value))));
    html! {
        dl.facts {
            @for (name, value) in &pairs { div { dt { (text(name)) } dd { (value) } } }
        }
    }
}

/// The shards that are present.
fn shards(all: &[Shard]) -> String {
    let Some(of) = all.first().map(|s| s.of) else { return "none".into() };
    if all.len() as u64 == of {
        return format!("all {of}");
    }
    let names: Vec<String> = all.iter().take(20).map(ToString::to_string).collect();
    let more = if all.len() > names.len() { ", …" } else { "" };
    format!("{}{more} ({} of {of} present)", names.join(", "), all.len())
}

pub fn counts(summary: &Summary) -> Markup {
    html! {
        h2 { "Violations by cause" }
        div.two {
            (by_cause("level", &summary.by_level))
            (by_cause("oracle", &summary.by_oracle))
        }
    }
}

fn by_cause(head: &str, all: &BTreeMap<String, Counts>) -> Markup {
    if all.is_empty() {
        return html! { p.note { "No violation at any " (head) "." } };
    }
    // Levels from weak to strong; other names stay as they are.
    let mut all: Vec<(&String, &Counts)> = all.iter().collect();
    all.sort_by_key(|(name, _)| name.parse::<Level>().ok());
    let cell = |label: Verdict, n: u64| match n {
        0 => html! { span.zero { "0" } },
        n => html! { span class={ "n " (label.name()) } { (number(n)) } },
    };
    let rows: Vec<Vec<Markup>> = all
        .iter()
        .map(|(name, c)| {
            vec![
                html! { (text(name)) },
                cell(Verdict::Bug, c.bug),
                cell(Verdict::Locking, c.locking),
                cell(Verdict::Undecided, c.undecided),
                cell(Verdict::Documented, c.documented),
            ]
        })
        .collect();
    table(&[head, "bug", "locking", "undecided", "documented"], &rows)
}

/// Documented anomalies by behaviour and level, with a few examples of each.
pub fn documented(summary: &Summary, all: &Result<Vec<Finding>, HuntError>) -> Markup {
    let all = match all {
        Ok(all) => all,
        Err(error) => {
            return html! { h2 { "Documented anomalies" } p.damage { (text(&error.to_string())) } };
        }
    };
    if all.is_empty() && summary.by_behaviour.is_empty() {
        return html! {};
    }
    let levels: BTreeSet<Option<Level>> = all.iter().map(|f| f.level).collect();
    let mut groups: BTreeMap<&str, Vec<&Finding>> =
        summary.by_behaviour.keys().map(|name| (name.as_str(), Vec::new())).collect();
    for finding in all {
        let name = finding.cause.behaviour.as_ref().map_or("", |b| b.name.as_str());
        groups.entry(name).or_default().push(finding);
    }
    let mut heads = vec!["behaviour", "total"];
    heads.extend(levels.iter().map(|l| l.map_or("default", |l| l.short())));
    let row = |(name, found): (&&str, &Vec<&Finding>)| {
        let kept = found.len() as u64;
        let counted = summary.by_behaviour.get(*name).copied().unwrap_or(kept);
        let at = |level: &Option<_>| found.iter().filter(|f| f.level == *level).count() as u64;
        let mut row = vec![about(name, found), html! { (number(counted)) }];
        row.extend(levels.iter().map(|l| html! { (number(at(l))) }));
        row
    };
    let rows: Vec<Vec<Markup>> = groups.iter().map(row).collect();
    html! {
        h2 { "Documented anomalies" }
        (table(&heads, &rows))
        @for finding in groups.values().flat_map(|found| found.iter().take(EXAMPLES)) {
            (example(finding))
        }
    }
}

fn example(finding: &Finding) -> Markup {
    let line = html! { (text(&finding.title)) " · case " (finding.case_number) };
    let body = html! {
        p.sentences { "Evidence: " (prose::reasons(&finding.cause.evidence)) }
        pre tabindex="0" { (text(&finding.case)) }
    };
    details("run", &line, &body)
}

fn about(name: &str, found: &[&Finding]) -> Markup {
    let behaviour = found.first().and_then(|f| f.cause.behaviour.as_ref());
    html! {
        (code(name))
        @if let Some(behaviour) = behaviour { br; (link(&behaviour.link, &behaviour.about)) }
    }
}

pub fn coverage(summary: &Summary) -> Markup {
    let features: Vec<Vec<Markup>> = summary
        .features
        .iter()
        .map(|(name, c)| {
            let share = format!("{:.0}", 100.0 * c.succeeded as f64 / c.appeared.max(1) as f64);
            let bar = html! {
                meter min="0" max="100" value=(share) aria-label="share that succeeded" {}
                " " (share) " %"
            };
            vec![code(name), html! { (number(c.appeared)) }, html! { (number(c.succeeded)) }, bar]
        })
        .collect();
    let refusals: Vec<Vec<Markup>> = summary
        .refusals
        .iter()
        .map(|(id, r)| {
            vec![code(id), html! { (number(r.count)) }, html! { (text(&r.message)) }, code(&r.sql)]
        })
        .collect();
    let settings: Vec<Vec<Markup>> =
        summary.identity.settings.iter().map(|(k, v)| vec![code(k), code(v)]).collect();
    let blocks = [
        (
            format!("Coverage: {}", plural(features.len() as u64, "feature")),
            table(&["feature", "appeared", "succeeded", ""], &features),
            features.is_empty(),
        ),
        (
            format!("Rejected by the engine: {}", plural(refusals.len() as u64, "kind of error")),
            table(&["error", "times", "message", "first statement"], &refusals),
            refusals.is_empty(),
        ),
        (
            format!("Server settings: {}", settings.len()),
            table(&["setting", "value"], &settings),
            settings.is_empty(),
        ),
    ];
    html! {
        @if blocks.iter().any(|(_, _, empty)| !empty) { h2 { "Coverage and settings" } }
        @for (name, table, _) in blocks.iter().filter(|(_, _, empty)| !empty) {
            (details("block", &html! { (name) }, table))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_shows_how_many_are_present() {
        let shard = |part| Shard { part, of: 3 };
        assert_eq!(shards(&[shard(1), shard(2), shard(3)]), "all 3");
        assert_eq!(shards(&[shard(1), shard(3)]), "1/3, 3/3 (2 of 3 present)");
    }
}
