//! The top of the page: what was hunted, how, and what came of it in numbers.

use super::html::{code, details, link, number, plural, table, text};
use super::prose;
use isolde_core::Level;
use isolde_hunt::HuntError;
use isolde_hunt::cause::Label;
use isolde_hunt::finding::Finding;
use isolde_hunt::summary::{Shard, Summary};
use isolde_hunt::tally::Counts;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

const EXAMPLES: usize = 2;

/// `kinds` says how many distinct findings a cause has.
pub fn headline(summary: &Summary, kinds: impl Fn(Label) -> usize) -> Markup {
    let v = summary.violations;
    let of = |label: Label| match kinds(label) {
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
        (class, format!("{found}{} with cause bug{known}", of(Label::Bug)))
    } else if v.undecided > 0 {
        let found = plural(v.undecided, "undecided violation");
        ("undecided", format!("{found}{}, none with cause bug", of(Label::Undecided)))
    } else {
        ("fine", "No violation that the documentation does not explain".into())
    };
    let id = &summary.identity;
    html! {
        header {
            p.brand { "Isolde · hunt report" }
            h1 { (text(&id.target)) " " span { (text(&id.server_version)) } }
            p class={ "verdict " (class) } { (words) ", in " (plural(summary.cases, "case")) }
            @if let Some(fault) = id.fault() {
                // They stand beside each other like words.
                " "
                p class="verdict undecided" {
                    "A fault was planted: " (code(fault))
                    ". What was found is not the engine's."
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
            format!("{} in {:.1} s ({rate:.0} a second)", number(summary.cases), summary.seconds),
        ),
        ("statements", number(summary.statements)),
        ("statements with all replays", number(summary.statements_in_all)),
        ("valid statements", format!("{:.1} %", 100.0 * summary.valid_share)),
        ("waited", format!("{} of statements", share(summary.waited, summary.statements))),
        ("aborted", format!("{} of transactions", share(summary.aborted, summary.transactions))),
    ];
    let asked: u64 = summary.predicted + summary.not_modelled.values().sum::<u64>();
    if asked > 0 {
        let whole = share(summary.predicted, asked);
        pairs.push(("predicted by rules", format!("{whole} of cases")));
    }
    // What did not happen and what was not asked for needs no place.
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
    // The number of cases stands above.
    let told = |(name, value): &(&String, &String)| *value != "false" && *name != "cases";
    let asked = id.options.iter().filter(told);
    let shown = |value: &str| if value == "true" { "yes".into() } else { text(value) };
    pairs.extend(asked.map(|(name, value)| (name.as_str(), shown(value))));
    html! {
        dl.facts {
            @for (name, value) in &pairs { div { dt { (text(name)) } dd { (value) } } }
        }
    }
}

/// Which shards are here, and which are not.
fn shards(all: &[Shard]) -> String {
    let Some(of) = all.first().map(|s| s.of) else { return "none".into() };
    if all.len() as u64 == of {
        return format!("all {of}");
    }
    let names: Vec<String> = all.iter().take(20).map(ToString::to_string).collect();
    let more = if all.len() > names.len() { ", …" } else { "" };
    format!("{}{more} ({} of {of} are here)", names.join(", "), all.len())
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
    let cell = |label: Label, n: u64| match n {
        0 => html! { span.zero { "0" } },
        n => html! { span class={ "n " (label.name()) } { (number(n)) } },
    };
    let rows: Vec<Vec<Markup>> = all
        .iter()
        .map(|(name, c)| {
            vec![
                html! { (text(name)) },
                cell(Label::Bug, c.bug),
                cell(Label::Undecided, c.undecided),
                cell(Label::Documented, c.documented),
            ]
        })
        .collect();
    table(&[head, "bug", "undecided", "documented"], &rows)
}

/// Documented violations by behaviour and level, with a few examples of each.
pub fn documented(summary: &Summary, all: &Result<Vec<Finding>, HuntError>) -> Markup {
    let all = match all {
        Ok(all) => all,
        Err(error) => {
            return html! { h2 { "Documented" } p.damage { (text(&error.to_string())) } };
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
    let mut heads = vec!["behaviour", "in all"];
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
        h2 { "Violations that the documentation explains" }
        (table(&heads, &rows))
        @for finding in groups.values().flat_map(|found| found.iter().take(EXAMPLES)) {
            (example(finding))
        }
    }
}

fn example(finding: &Finding) -> Markup {
    let line = html! { (text(&finding.title)) " · case " (finding.case_number) };
    let body = html! {
        p.sentences { "How that was found out: " (prose::reasons(&finding.cause.evidence)) }
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
            format!("Refused as nonsense: {}", plural(refusals.len() as u64, "kind of error")),
            table(&["error", "times", "message", "first statement"], &refusals),
            refusals.is_empty(),
        ),
        (
            format!("Settings of the server: {}", settings.len()),
            table(&["setting", "value"], &settings),
            settings.is_empty(),
        ),
    ];
    html! {
        @if blocks.iter().any(|(_, _, empty)| !empty) { h2 { "How it was hunted" } }
        @for (name, table, _) in blocks.iter().filter(|(_, _, empty)| !empty) {
            (details("block", &html! { (name) }, table))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_that_are_not_here_are_seen() {
        let shard = |part| Shard { part, of: 3 };
        assert_eq!(shards(&[shard(1), shard(2), shard(3)]), "all 3");
        assert_eq!(shards(&[shard(1), shard(3)]), "1/3, 3/3 (2 of 3 are here)");
    }
}
