//! The top of the page: what was hunted, how, and what came of it in numbers.

use super::html::{self, code, details, escape, link, number, plural, table, text};
use super::prose;
use crate::cause::Label;
use crate::finding::Finding;
use crate::summary::{Shard, Summary};
use crate::tally::Counts;
use isolde_core::Level;
use std::collections::{BTreeMap, BTreeSet};

const EXAMPLES: usize = 2;

/// `kinds` says how many signatures the findings of a cause have.
pub fn headline(summary: &Summary, kinds: impl Fn(Label) -> usize) -> String {
    let v = summary.violations;
    let of = |label: Label| match kinds(label) {
        0 => String::new(),
        n => format!(" of {}", plural(n as u64, "kind")),
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
    let planted = id.fault().map_or(String::new(), |fault| {
        format!(
            "<p class=\"verdict undecided\">A fault was planted: {}. What was found is not \
                 the engine's.</p>\n",
            code(fault)
        )
    });
    format!(
        "<header><p class=brand>Isolde · hunt report</p><h1>{} <span>{}</span></h1>\n\
         <p class=\"verdict {class}\">{words}, in {}</p>\n{planted}</header>\n",
        text(&id.target),
        text(&id.server_version),
        plural(summary.cases, "case")
    )
}

pub fn facts(summary: &Summary) -> String {
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
        pairs.push(("shards", escape(&shards(&summary.shards))));
    }
    // The number of cases stands above.
    let told = |(name, value): &(&String, &String)| *value != "false" && *name != "cases";
    let asked = id.options.iter().filter(told);
    let shown = |value: &str| if value == "true" { "yes".into() } else { text(value) };
    pairs.extend(asked.map(|(name, value)| (name.as_str(), shown(value))));
    let list: String = pairs
        .iter()
        .map(|(k, v)| format!("<div><dt>{}</dt><dd>{v}</dd></div>\n", text(k)))
        .collect();
    format!("<dl class=facts>{list}</dl>\n")
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

pub fn counts(summary: &Summary) -> String {
    let body = by_cause("level", &summary.by_level) + &by_cause("oracle", &summary.by_oracle);
    format!("<h2>Violations by cause</h2>\n<div class=two>{body}</div>\n")
}

fn by_cause(head: &str, all: &BTreeMap<String, Counts>) -> String {
    // Levels from weak to strong; other names stay as they are.
    let mut all: Vec<(&String, &Counts)> = all.iter().collect();
    all.sort_by_key(|(name, _)| name.parse::<Level>().ok());
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|(name, c)| {
            let cell = |label: Label, n: u64| match n {
                0 => "<span class=zero>0</span>".to_string(),
                n => format!("<span class=\"n {}\">{}</span>", label.name(), number(n)),
            };
            vec![
                text(name),
                cell(Label::Bug, c.bug),
                cell(Label::Undecided, c.undecided),
                cell(Label::Documented, c.documented),
            ]
        })
        .collect();
    if rows.is_empty() {
        return format!("<p class=note>No violation at any {head}.</p>\n");
    }
    table(&[head, "bug", "undecided", "documented"], &rows)
}

/// Documented violations by behaviour and level, with a few examples of each.
pub fn documented(summary: &Summary, all: &Result<Vec<Finding>, String>) -> String {
    let all = match all {
        Ok(all) => all,
        Err(what) => return format!("<h2>Documented</h2><p class=damage>{}</p>\n", text(what)),
    };
    if all.is_empty() && summary.by_behaviour.is_empty() {
        return String::new();
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
    let mut rows = Vec::new();
    let mut examples = String::new();
    for (name, found) in &groups {
        let kept = found.len() as u64;
        let counted = summary.by_behaviour.get(*name).copied().unwrap_or(kept);
        let mut row = vec![about(name, found), number(counted)];
        let at = |level: &Option<_>| found.iter().filter(|f| f.level == *level).count() as u64;
        row.extend(levels.iter().map(|l| number(at(l))));
        rows.push(row);
        for finding in found.iter().take(EXAMPLES) {
            let body = format!(
                "<p class=sentences>How that was found out: {}</p><pre tabindex=0>{}</pre>",
                prose::reasons(&finding.cause.evidence),
                text(&finding.case)
            );
            let line = format!("{} · case {}", text(&finding.title), finding.case_number);
            examples.push_str(&details("run", &line, &body));
        }
    }
    let body = table(&heads, &rows) + &examples;
    format!("<h2>Violations that the documentation explains</h2>\n{body}")
}

fn about(name: &str, found: &[&Finding]) -> String {
    let behaviour = found.first().and_then(|f| f.cause.behaviour.as_ref());
    match behaviour {
        Some(b) => format!("{}<br>{}", code(name), link(&b.link, &b.about)),
        None => code(name),
    }
}

pub fn coverage(summary: &Summary) -> String {
    let rows: Vec<Vec<String>> = summary
        .features
        .iter()
        .map(|(name, c)| {
            let share = 100.0 * c.succeeded as f64 / c.appeared.max(1) as f64;
            let bar = format!(
                "<meter min=0 max=100 value={share:.0} aria-label=\"share that succeeded\"></meter> \
                 {share:.0} %"
            );
            vec![code(name), number(c.appeared), number(c.succeeded), bar]
        })
        .collect();
    let refusals: Vec<Vec<String>> = summary
        .refusals
        .iter()
        .map(|(id, r)| vec![code(id), number(r.count), text(&r.message), code(&r.sql)])
        .collect();
    let mut out = String::new();
    if !rows.is_empty() {
        let name = format!("Coverage: {}", plural(rows.len() as u64, "feature"));
        let heads = ["feature", "appeared", "succeeded", ""];
        out.push_str(&details("block", &name, &table(&heads, &rows)));
    }
    if !refusals.is_empty() {
        let name =
            format!("Refused as nonsense: {}", plural(refusals.len() as u64, "kind of error"));
        let heads = ["error", "times", "message", "first statement"];
        out.push_str(&details("block", &name, &table(&heads, &refusals)));
    }
    let settings: Vec<Vec<String>> =
        summary.identity.settings.iter().map(|(k, v)| vec![code(k), code(v)]).collect();
    if !settings.is_empty() {
        let name = format!("Settings of the server: {}", settings.len());
        out.push_str(&details("block", &name, &html::table(&["setting", "value"], &settings)));
    }
    if out.is_empty() { out } else { format!("<h2>How it was hunted</h2>\n{out}") }
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
